"""The metric as a Space: a table of answers in, the judge's scores out.

The judge is the owner's choice, by the variable JUDGE of the Space, and not the visitors': a spec can name any model to
load or any server to call.

(`evaluate.utils.launch_gradio_widget` is written for gradio 2 and fails with gradio 6.)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COLUMNS = ["predictions", "references", "questions", "contexts", "types"]
BEFORE = "What did the camera wearer do right before putting the jug into the cabinet?"
NARRATIONS = "(1.06s) #C C picks a jug. (3.10s) #C C opens the cabinet."
EXAMPLES = [
    ["She picked up the jug.", "pick jug", BEFORE, NARRATIONS, "before"],
    ["She closed the cabinet.", "pick jug", BEFORE, NARRATIONS, "before"],
]
# the default is small enough for a free Space, and too small to be a judge
JUDGE = os.environ.get("JUDGE", "HuggingFaceTB/SmolLM2-135M-Instruct")


def score(table: list[list[str]], engine: Any = JUDGE) -> dict[str, Any]:
    """The judge's scores of the rows of the table; rows without a reference are left out."""
    import evaluate

    rows = [row for row in table if row[COLUMNS.index("references")].strip()]
    metric = evaluate.load(str(HERE / "easg_judge.py"))
    return metric.compute(**{name: [row[at] for row in rows] for at, name in enumerate(COLUMNS)}, engine=engine)


def page() -> Any:
    """The Space as gradio Blocks."""
    import gradio

    card = (HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    with gradio.Blocks(title="EASG Judge") as blocks:
        gradio.Markdown(f"Judge: `{JUDGE}`")
        table = gradio.Dataframe(EXAMPLES, headers=COLUMNS, type="array", interactive=True, wrap=True)
        result = gradio.JSON(label="scores")
        gradio.Button("Compute", variant="primary").click(score, table, result)
        gradio.Markdown(card)
    return blocks


if __name__ == "__main__":
    page().launch()
