"""The card of the WorldQA dataset, README.md of its repo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from builder.card import Card
from videoqa.benchmarks.worldqa.data import CHOICE, OPEN

NOTES = {
    OPEN: "open-ended questions with their answers; the default config",
    CHOICE: "the same as multiple choice: one row for each rotation of the options",
}


MADE = """
Nothing is changed but the form. The builder was written from the schema of the public copy, without a row of it at
hand. The paper counts 1,007 questions, of which 851 were released: scores on these stand in no column with the paper's.
"""
CARD = Card(
    name="WorldQA open-ended questions",
    tasks=("video-text-to-text", "question-answering", "multiple-choice"),
    tags=("world-knowledge", "video-with-sound", "long-reasoning"),
    notes=NOTES,
    heading="WorldQA questions",
    intro="Questions on videos with sound whose answers need knowledge of the world as well as what is seen and heard.",
    columns="""\
| column | what |
|---|---|
| `id` | number of the question in the source |
| `video`, `clip` | number of the video; a clip is a whole video |
| `answer` | the ground truth of an open-ended question |
| `choices` | options of a multiple-choice question, moved round once more in each row of its `group` |
| `gold` | index of the right one in `choices` |
| `group`, `order` | the question that the row is a rotation of; the place of each option in its first row |
| `object_description`, `rationale` | as in the source |
| `knowledge`, `steps` | knowledge types and reasoning steps, where a file of notes has them |
| `events`, `duration_s` | what happens in the video, with seconds, and its length, where a file of notes has them |
| `context` | the same events as text |

The other columns are those of every benchmark of easg-bench and are empty here.""",
    rights="The terms of the questions are those of their source, listed above: see there.",
    citing="Cite WorldQA (arXiv 2405.03272).",
    bibtex="""\
@article{zhang2024worldqa,
  title = {{WorldQA}: Multimodal World Knowledge in Videos through Long-Chain Reasoning},
  author = {Zhang, Yuanhan and Zhang, Kaichen and Li, Bo and Pu, Fanyi and Setiadharma, Christopher Arif and
            Yang, Jingkang and Liu, Ziwei},
  journal = {arXiv preprint arXiv:2405.03272},
  year = {2024}
}""",
)


def text(files: Mapping[str, str], sizes: Mapping[str, int], sources: Sequence[Path], folder: Path, out: Path) -> str:
    """The whole card, from the path of each config's data file in the repo and its number of rows; `sources` are files
    of `folder`, or beside it; `out` is the repo's folder."""
    named = {
        path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name: path for path in sources
    }
    return CARD.text({"default": files[OPEN], **files}, sizes, named, MADE.strip(), folder=out)
