"""The metric as a Space: a table of replies in, the accuracy out; options stand in one cell, a line each.

(`evaluate.utils.launch_gradio_widget` is written for gradio 2 and fails with gradio 6.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COLUMNS = ["predictions", "references", "choices"]
EXAMPLES = [
    ["The answer is (B).", "1", "C is cooking.\nC is cleaning.\nC is painting."],
    ["C is painting.", "2", "C is cooking.\nC is cleaning.\nC is painting."],
    ["A or B", "0", "C is cooking.\nC is cleaning.\nC is painting."],
]


def score(table: list[list[str]]) -> dict[str, Any]:
    """The scores of the rows of the table; rows without options are left out."""
    import evaluate

    rows = [row for row in table if row[2].strip()]
    metric = evaluate.load(str(HERE / "choice_accuracy.py"))
    return metric.compute(
        predictions=[row[0] for row in rows],
        references=[int(row[1]) for row in rows],
        choices=[[line.strip() for line in row[2].splitlines() if line.strip()] for row in rows],
    )


def page() -> Any:
    """The Space as gradio Blocks."""
    import gradio

    card = (HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    with gradio.Blocks(title="Choice Accuracy") as blocks:
        table = gradio.Dataframe(EXAMPLES, headers=COLUMNS, type="array", interactive=True, wrap=True)
        result = gradio.JSON(label="scores")
        gradio.Button("Compute", variant="primary").click(score, table, result)
        gradio.Markdown(card)
    return blocks


if __name__ == "__main__":
    page().launch()
