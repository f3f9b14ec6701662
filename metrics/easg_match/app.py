"""The metric as a Space: a table of answers in, the scores out.

(`evaluate.utils.launch_gradio_widget` is written for gradio 2 and fails with gradio 6.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COLUMNS = ["predictions", "references", "types"]
EXAMPLES = [
    ["The camera wearer picked up the jug.", "pick jug", "before"],
    ["into the cupboard", "in cabinet", "indirect"],
    ["the screw", "screw", "direct"],
]


def score(table: list[list[str]]) -> dict[str, Any]:
    """The scores of the rows of the table; rows without a reference are left out."""
    import evaluate

    rows = [row for row in table if row[COLUMNS.index("references")].strip()]
    metric = evaluate.load(str(HERE / "easg_match.py"))
    return metric.compute(**{name: [row[at] for row in rows] for at, name in enumerate(COLUMNS)})


def page() -> Any:
    """The Space as gradio Blocks."""
    import gradio

    card = (HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    with gradio.Blocks(title="EASG Match") as blocks:
        table = gradio.Dataframe(EXAMPLES, headers=COLUMNS, type="array", interactive=True, wrap=True)
        result = gradio.JSON(label="scores")
        gradio.Button("Compute", variant="primary").click(score, table, result)
        gradio.Markdown(card)
    return blocks


if __name__ == "__main__":
    page().launch()
