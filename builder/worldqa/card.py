"""The card of the WorldQA dataset, README.md of its repo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from huggingface_hub import DatasetCardData

from builder.repo import MARK, file_sha256
from videoqa.benchmarks.worldqa.data import CHOICE, OPEN

NOTES = {
    OPEN: "open-ended questions with their answers; the default config",
    CHOICE: "the same as multiple choice: one row for all rotations of the options",
}


def text(files: Mapping[str, str], sizes: Mapping[str, int], sources: Sequence[Path], folder: Path) -> str:
    """The whole card, from the path of each config's data file in the repo and its number of rows; `sources` are files
    of `folder`, or beside it."""
    paths = {"default": files[OPEN], **files}
    front = DatasetCardData(
        pretty_name="WorldQA open-ended questions",
        language="en",
        license="other",
        task_categories=["video-text-to-text", "question-answering", "multiple-choice"],
        tags=["world-knowledge", "video-with-sound", "long-reasoning"],
        configs=[
            {"config_name": config, "data_files": [{"split": "test", "path": path}]} for config, path in paths.items()
        ],
    ).to_yaml()
    named = [path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name for path in sources]
    return CARD.substitute(
        front=front,
        mark=MARK,
        counts="\n".join(f"| `{config}` | {sizes[config]:,} | {NOTES[config]} |" for config in files),
        inputs="\n".join(
            f"- `{name}`, sha256 `{file_sha256(path)}`" for name, path in zip(named, sources, strict=True)
        ),
    )


CARD = Template("""\
---
$front
---
$mark

# WorldQA questions

Questions on videos with sound whose answers need knowledge of the world as well as what is seen and heard.

```python
from datasets import load_dataset

rows = load_dataset("path/of/this/folder", split="test")
```

| config | rows | what |
|---|---|---|
$counts

All configs have one split, `test`: nothing here is meant for training.

| column | what |
|---|---|
| `id` | number of the question in the source |
| `video`, `clip` | number of the video; a clip is a whole video |
| `answer` | the ground truth of an open-ended question |
| `choices` | options of a multiple-choice question, in the order of its first row in the source |
| `gold` | index of the right one in `choices` |
| `object_description`, `rationale` | as in the source |
| `knowledge`, `steps` | knowledge types and reasoning steps, where a file of notes has them |
| `events`, `duration_s` | what happens in the video, with seconds, and its length, where a file of notes has them |
| `context` | the same events as text |

The other columns are those of every benchmark of easg-bench and are empty here.

## How it was made

Built by the `builder` of the project easg-bench from

$inputs

Nothing is changed but the form. The builder was written from the schema of the public copy, without a row of it at
hand. The paper counts 1,007 questions, of which 851 were released: scores on these stand in no column with the paper's.

## Rights

The videos are not part of this dataset. The terms of the questions are those of their source, listed above: see there.

## Citing

Cite WorldQA (arXiv 2405.03272).
""")
