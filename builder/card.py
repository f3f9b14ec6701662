"""The card of a dataset, README.md of its repo: what the cards of all benchmarks have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

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

    def text(
        self,
        files: Mapping[str, str | Sequence[str]],
        sizes: Mapping[str, int],
        sources: Mapping[str, Path],
        made: str,
        *,
        first: str = "",
        example: str = "",
    ) -> str:
        """The whole card, from the data files of each config, by their paths in the repo, and the numbers of rows.

        `sources` are the files that the rows were made from, by the names that the card gives them; `made` says how.
        `first` is the config that is loaded where none is named, if it is not called "default"; `example` is the one
        that the card's example loads.
        """
        front = DatasetCardData(
            pretty_name=self.name,
            language="en",
            license="other",
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
            config=example and f', "{example}"',
            counts="\n".join(f"| `{name}` | {sizes[name]:,} | {self.notes[name]} |" for name in files if name in sizes),
            columns=self.columns,
            inputs="\n".join(f"- `{name}`, sha256 `{file_sha256(path)}`" for name, path in sources.items()),
            made=made,
            rights=self.rights,
            citing=self.citing,
        )


FRAME = Template("""\
---
$front
---
$mark

# $heading

$intro

```python
from datasets import load_dataset

rows = load_dataset("path/of/this/folder"$config, split="test")
```

| config | rows | what |
|---|---|---|
$counts

All configs have one split, `test`: nothing here is meant for training.

$columns

## How it was made

Built by the `builder` of the project easg-bench from

$inputs

$made

## Rights

The videos are not part of this dataset. $rights

## Citing

$citing
""")
