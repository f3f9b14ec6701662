"""The card of a dataset, README.md of its repo: what the cards of all benchmarks have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import pyarrow.parquet as pq
import yaml
from huggingface_hub import DatasetCardData

from builder.repo import MARK, file_sha256


@dataclass(frozen=True, slots=True)
class Card:
    """The texts of a benchmark's card."""

    name: str  # of the dataset; it begins with the track's title
    tasks: tuple[str, ...]  # of the Hub's task categories
    tags: tuple[str, ...]
    notes: Mapping[str, str]  # what a config holds
    heading: str
    intro: str
    columns: str  # what the columns hold
    rights: str
    citing: str
    bibtex: str
    licence: tuple[str, str] | None = None  # name and address; None: not known
    aside: tuple[str, ...] = ()  # configs that hold no questions

    def text(
        self,
        files: Mapping[str, str | Sequence[str]],
        sizes: Mapping[str, int],
        sources: Mapping[str, Path],
        made: str,
        *,
        folder: Path,
        first: str = "",
        example: str = "",
    ) -> str:
        """The whole card, from the data files of each config, by their paths in the repo, and the numbers of rows.

        `sources` are the files that the rows were made from, by the names that the card gives them; `made` says how.
        `first` is the config that is loaded where none is named, if it is not called "default"; `example` is the one
        that the card's example loads, and whose first row it shows; `folder` is the repo's.
        """
        paths = files.get(example or first or "default") or next(iter(files.values()))
        path = paths if isinstance(paths, str) else paths[0]
        licence: dict[str, Any] = (
            {"license_name": self.licence[0], "license_link": self.licence[1]} if self.licence else {}
        )
        front = DatasetCardData(
            pretty_name=self.name,
            language="en",
            license="other",
            **licence,
            size_categories=[size_category(max(sizes.values()))],
            task_categories=list(self.tasks),
            tags=list(self.tags),
            configs=[
                {"config_name": config, "data_files": [{"split": "test", "path": path}]}
                | ({"default": True} if config == first else {})
                for config, path in files.items()
            ],
        ).to_yaml()
        return FRAME.substitute(
            front=front,
            mark=MARK,
            heading=self.heading,
            intro=self.intro,
            place=PLACE,
            row=_shown(first_row(folder / path)),
            bibtex=self.bibtex,
            config=example and f', "{example}"',
            counts="\n".join(f"| `{name}` | {sizes[name]:,} | {self.notes[name]} |" for name in files if name in sizes),
            columns=self.columns,
            inputs="\n".join(f"- `{name}`, sha256 `{file_sha256(path)}`" for name, path in sources.items()),
            made=made,
            rights=self.rights,
            citing=self.citing,
        )

    def tasks_file(self, configs: Sequence[str]) -> str:
        """eval.yaml, by which the Hub knows the dataset as a benchmark: a task for each config that can be asked, of
        its name. Results name it (`easg-bench card`)."""
        tasks = [{"id": c, "config": c, "split": "test"} for c in configs if c not in self.aside]
        about = " ".join(self.intro.split())
        head = {"name": self.name, "description": about, "evaluation_framework": FRAMEWORK}
        return yaml.safe_dump({**head, "tasks": tasks}, sort_keys=False, allow_unicode=True, width=100)


FRAMEWORK = "easg-bench"  # what evaluates, as eval.yaml says it; the scores of others on these rows are not these
PLACE = "path/of/this/folder"  # in the card of a folder; a published card has the repo's name
LONGEST = 160  # characters of a text in the example row


def size_category(rows: int) -> str:
    """The Hub's word for a number of rows: "1K<n<10K"."""
    below = "1K"
    for bound, name in ((1_000, "1K"), (10_000, "10K"), (100_000, "100K"), (1_000_000, "1M")):
        if rows < bound:
            return f"n<{name}" if name == "1K" else f"{below}<n<{name}"
        below = name
    return "n>1M"


def first_row(path: Path) -> dict[str, Any]:
    """The first row of a parquet file."""
    return next(pq.ParquetFile(path).iter_batches(1)).to_pylist()[0]


def _shown(row: Mapping[str, Any]) -> str:
    """A row as JSON for people, a column a line."""
    cut = {k: f"{v[:LONGEST]} ..." if isinstance(v, str) and len(v) > LONGEST else v for k, v in row.items()}
    lines = (f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in cut.items())
    return "{\n" + ",\n".join(lines) + "\n}"


FRAME = Template("""\
---
$front
---
$mark

# $heading

$intro

```python
from datasets import load_dataset

rows = load_dataset("$place"$config, split="test")
```

| config | rows | what |
|---|---|---|
$counts

All configs have one split, `test`: nothing here is meant for training.

$columns

One row of them, long texts cut:

```json
$row
```

## How it was made

Built by the `builder` of the project easg-bench from

$inputs

$made

## Rights

The videos are not part of this dataset. $rights

## Citing

$citing

```bibtex
$bibtex
```
""")
