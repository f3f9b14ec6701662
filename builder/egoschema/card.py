"""The card of the EgoSchema dataset, README.md of its repo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from builder.card import Card

OFFICIAL = """\
The questions, options, answers and clips are EgoSchema's own (arXiv 2308.09126), from the files above; nothing is
changed but the form. Options stand in the order of these files, and `gold` counts in it: never mix it with an order
from elsewhere. The right answers of 4,531 of the 5,031 questions are not public."""
MADE = """\
These are **not** questions of EgoSchema. They were made in its manner by the builder of easg-bench: $how"""
NOTES = {
    "full": "all questions; `gold` is null where the answer is not public. Accuracy on them comes from the validation "
    "server alone: `easg-bench submission`",
    "subset": "the questions with a public answer. They are easier than the full set: never one column",
    "made": "questions in the manner of EgoSchema, made by the builder",
}


CARD = Card(
    name="EgoSchema questions",
    tasks=("video-text-to-text", "question-answering", "multiple-choice"),
    tags=("egocentric-video", "ego4d", "long-video"),
    notes=NOTES,
    heading="EgoSchema questions",
    intro="Multiple choice on first-person clips of three minutes: each question has five options, one of them right.",
    columns="""\
| column | what |
|---|---|
| `id` | the question's uid |
| `clip` | `<video>:<start>`: questions about the same three minutes share it |
| `video` | uid of the full video |
| `choices` | the options, in the order of the source |
| `gold` | index of the right one in `choices`; null where it is withheld |
| `context` | what is told of the clip in words; empty in the official files |
| `start_s`, `end_s`, `clip_start_s` | where the clip lies, seconds of the full video |

The other columns are those of every benchmark of easg-bench and are empty here.""",
    rights="""\
For Ego4D videos get and keep to the Ego4D licence. The terms of the questions
are those of their source, listed above: see there.""",
    citing="Cite EgoSchema (arXiv 2308.09126), and Ego4D, whose videos it stands on.",
    bibtex="""\
@inproceedings{mangalam2023egoschema,
  title = {{EgoSchema}: A Diagnostic Benchmark for Very Long-form Video Language Understanding},
  author = {Mangalam, Karttikeya and Akshulakov, Raiymbek and Malik, Jitendra},
  booktitle = {Advances in Neural Information Processing Systems, Datasets and Benchmarks},
  year = {2023}
}""",
    licence=("ego4d-license", "https://ego4ddataset.com/ego4d-license/"),
)


def text(files: Mapping[str, str], sizes: Mapping[str, int], sources: Sequence[Path], made: str, folder: Path) -> str:
    """The whole card, from the path of each config's data file in the repo and its number of rows."""
    first = next(iter(files))
    return CARD.text(
        files, sizes, {path.name: path for path in sources}, made, folder=folder, first=first, example=first
    )
