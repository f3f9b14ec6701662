"""The metric as a Space: a table of answers and the judge's spec in, the score out.

(`evaluate.utils.launch_gradio_widget` is written for gradio 2 and fails with gradio 6.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COLUMNS = ["predictions", "references", "questions"]
EXAMPLES = [["He is late.", "He is late, and it rains.", "Why does he run?"]]


def score(table: list[list[str]], engine: str) -> dict[str, Any]:
    """The scores of the rows of the table by this judge; rows without a ground truth are left out."""
    import evaluate

    rows = [row for row in table if row[1].strip()]
    metric = evaluate.load(str(HERE / "keypoints.py"))
    columns = {name: [row[at] for row in rows] for at, name in enumerate(COLUMNS)}
    return metric.compute(**columns, engine=engine, store=False)


def page() -> Any:
    """The Space as gradio Blocks."""
    import gradio

    card = (HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    with gradio.Blocks(title="Key Points") as blocks:
        table = gradio.Dataframe(EXAMPLES, headers=COLUMNS, type="array", interactive=True, wrap=True)
        engine = gradio.Textbox("HuggingFaceTB/SmolLM2-135M-Instruct", label="judge")
        result = gradio.JSON(label="scores")
        gradio.Button("Compute", variant="primary").click(score, [table, engine], result)
        gradio.Markdown(card)
    return blocks


if __name__ == "__main__":
    page().launch()
