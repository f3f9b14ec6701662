"""Clips -> the dataset repo: a folder with README.md (the card) and data/*.parquet that load_dataset and the Hub take.

    easg-bench/
      README.md                            configs: default (all questions), one per type, unambiguous,
                                           language_neutral, narrations, graphs
      statistics.png                       what stats.py draws of them
      data/direct-0d6c7c8a3f52.parquet     284 rows like the one at the top of easg_bench.py

A data file is named after its content. `datasets` keys its cache by the names of the files, so a rebuilt folder, or
another one of the same name, is never answered with the cached rows of the first.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features
from huggingface_hub import DatasetCardData

from builder.easg import check, grounding, stats, wording
from builder.easg.neutral import neutral_row
from builder.easg.questions import SameFrame, Slots, candidates, questions
from builder.easg.records import FPS, STAGES, BuildError, Clip, Graph
from easg_bench import CONFIGS, QA, TYPES, Evidence

PICTURE = "statistics.png"
OWN = re.compile(rf"README\.md|{re.escape(PICTURE)}|data/[^/]+\.parquet")  # the files of a repo, by path in it
ROW_GROUP = 10_000  # rows; more than any config of the paper's set has
MARK = "<!-- built by python -m builder: the next build into this folder replaces it -->"


def clip_rows(clip: Clip, questions: Sequence[QA], counts: Counter[str]) -> dict[str, list[Any]]:
    """The rows of a clip and its questions for every config but `default`; `counts` learns as in derived_rows."""
    graphs = graph_rows(clip)
    return {
        **{kind: [row for row in questions if row["type"] == kind] for kind in TYPES},
        **derived_rows(questions, graphs, counts),
        "narrations": [narration_row(clip)],
        "graphs": graphs,
    }


def question_rows(
    clip: Clip,
    same_frame: SameFrame,
    counts: Counter[str],
    *,
    worded: Mapping[str, str] = MappingProxyType({}),
    pairs: Sequence[tuple[str, str, str]] | None = None,
) -> list[QA]:
    """All questions of a clip: purpose first, then by graph. `counts` learns what was grounded where, and how many
    rows have a neighbour that is out of order.

    A language model's wording goes before the template's: `worded` {id: question} of action questions, and `pairs`
    (object, question, answer) of purpose.
    """
    if pairs is None:
        pairs = wording.purpose(candidates(clip), clip.purpose_count)
        counts["purpose questions that the actions do not give"] += clip.purpose_count - len(pairs)
    return _purpose_rows(clip, pairs, counts) + _action_rows(clip, same_frame, worded, counts)


def derived_rows(
    questions: Sequence[QA], graphs: Sequence[Mapping[str, Any]], counts: Counter[str]
) -> dict[str, list[Any]]:
    """The rows of the configs that are made of a clip's questions and, if there are any, graphs. Without graphs nobody
    can tell which questions are unambiguous."""
    neutral = [row for question in questions if (row := neutral_row(question, counts))]
    clear = check.unambiguous(questions, graphs) if graphs else []
    return {"unambiguous": clear, "language_neutral": neutral}


def narration_row(clip: Clip) -> dict[str, Any]:
    """The clip's row of the config `narrations`."""
    return {
        "clip": clip.uid,
        "video": clip.video,
        "split": clip.split,
        "clip_start_s": _clip_start(clip),
        "narrations": clip.narrations,
    }


def graph_rows(clip: Clip) -> list[dict[str, Any]]:
    """The clip's rows of the config `graphs`: every annotated graph, also those without an action."""
    return [
        {
            "clip": clip.uid,
            "video": clip.video,
            "split": clip.split,
            "index": graph.index,
            "graph": graph.uid,
            **graph.frames,
            "start_s": graph.frames["pre"] / FPS,
            "end_s": graph.frames["post"] / FPS,
            "verb": graph.action and graph.action.verb,
            "object": graph.action and graph.action.object,
            "relations": [
                {"relation": relation, "tail": tail}
                for relation, tail in (graph.action.relations if graph.action else ())
            ],
            "vote": clip.votes.get(graph.index),
            "triplets": [list(triplet) for triplet in graph.triplets],
            "boxes": [
                {"stage": stage, "object": name, "box": [box.left, box.top, box.right, box.bottom]}
                for stage in STAGES
                for name, box in graph.boxes[stage].items()
            ],
        }
        for graph in clip.graphs
    ]


def recorded(same_frame: SameFrame) -> str:
    """What the card says of a build from recorded votes."""
    return RECORDED.format(same_frame=SAME_FRAME_NOTES[same_frame])


def check_place(out: Path) -> None:
    """Raise BuildError unless `out` is free: absent, an empty folder, or a former build, which will be replaced."""
    if ".." in out.parts:  # new/.. is what it is only once `new` is made
        raise BuildError(f"{out}: --out names a folder without ..")
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir():
        raise BuildError(f"{out}: is a file; --out names a folder")
    data = out / "data"
    paths = [path for path in out.iterdir() if path != data] + (list(data.iterdir()) if data.is_dir() else [])
    names = {path.relative_to(out).as_posix() for path in paths}
    others = sorted(name for name in names if not OWN.fullmatch(name))
    if others:
        raise BuildError(f"{out}: holds something else ({others[0]}); choose a new folder or empty this one")
    if names and ("README.md" not in names or MARK not in (out / "README.md").read_text("utf-8", "replace")):
        raise BuildError(
            f"{out}: holds a dataset that this builder did not make; choose a new folder or empty this one"
        )


def write(
    out: Path, batches: Iterable[Mapping[str, Sequence[Mapping[str, Any]]]], sources: Sequence[Path], made: str
) -> None:
    """Write the repo beside `out` and move it there when it is whole; a former build is replaced.

    A batch holds rows of whole clips for each config but `default`; of all batches only the rows of the last row groups
    are in memory. A config without rows is not declared, for `datasets` cannot read a file without rows. `sources` are
    the files that the rows were made from; the card names them with their sha256, and `made` says there how. Raises
    BuildError where there are no questions, or the place is taken or cannot be written; then nothing is left.
    """
    check_place(out)
    place, out = out, out.resolve()
    fresh = out.with_name(f".{out.name}.new-{os.getpid()}")
    former = out.with_name(f".{out.name}.old-{os.getpid()}")
    try:
        (fresh / "data").mkdir(parents=True)
        tables = {config: _Table(fresh / "data" / f"{config}.parquet", CONFIGS[config]) for config in CONFIGS}
        counted = stats.Stats()
        for rows in batches:
            for config, of_config in rows.items():
                tables[config].add(of_config)
            stats.count((row for kind in TYPES for row in rows.get(kind, ())), rows.get("graphs", ()), counted)
        sizes = {config: table.close() for config, table in tables.items()}
        if not any(sizes[kind] for kind in TYPES):
            raise BuildError(f"{place}: not written, for no question comes out of {', '.join(map(str, sources))}")
        files = {c: table.path.relative_to(fresh).as_posix() for c, table in tables.items() if sizes[c]}
        stats.draw(counted, fresh / PICTURE)
        (fresh / "README.md").write_text(_card(files, sizes, sources, made), encoding="utf-8")
        if out.exists():
            out.rename(former)
        try:
            fresh.rename(out)
        except OSError:
            if former.exists():
                former.rename(out)
            raise
    except OSError as error:
        raise BuildError(f"{place}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if out.exists():
            shutil.rmtree(former, ignore_errors=True)


def folder_sha256(folder: Path) -> str:
    """One sha256 over the names and bytes of all files of a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{_sha256(path)}  {path.relative_to(folder).as_posix()}\n".encode())
    return digest.hexdigest()


def _action_rows(clip: Clip, same_frame: SameFrame, worded: Mapping[str, str], counts: Counter[str]) -> list[QA]:
    rows: list[QA] = []
    for slots in questions(clip, same_frame):
        question, answer = _words(slots)
        question = worded.get(slots.id, question)
        evidence, stage = grounding.of_action_question(slots, question, answer)
        counts[f"action questions grounded at {stage}" if stage else "action questions without a box"] += 1
        counts["rows whose neighbour is out of order"] += slots.out_of_order
        rows.append(_row(clip, slots.id, slots.type, question, answer, evidence, slots.graph))
    return rows


def _words(slots: Slots) -> tuple[str, str]:
    """Question and answer."""
    if slots.which is not None:
        return wording.indirect(slots.action, slots.which), wording.answer_relation(slots.action, slots.which)
    if slots.neighbour and slots.neighbour.action:
        ask = wording.before if slots.type == "before" else wording.after
        return ask(slots.action), wording.answer_action(slots.neighbour.action)
    return wording.direct(slots.action), wording.answer_object(slots.action)


def _purpose_rows(clip: Clip, pairs: Sequence[tuple[str, str, str]], counts: Counter[str]) -> list[QA]:
    actions = candidates(clip)
    rows: list[QA] = []
    taken: Counter[str] = Counter()
    for name, question, answer in pairs:
        slug = re.sub(r"\W+", "-", name.replace("_", " ")).strip("-")
        taken[slug] += 1
        number = f"-{taken[slug]}" if taken[slug] > 1 else ""
        evidence = grounding.of_purpose(name, [(clip.graphs[index - 1], action) for index, action in actions])
        counts["purpose questions grounded" if evidence else "purpose questions without a box"] += 1
        rows.append(_row(clip, f"{clip.uid}:purpose:{slug}{number}", "purpose", question, answer, evidence, None))
    return rows


def _row(
    clip: Clip, id: str, type: str, question: str, answer: str, evidence: list[Evidence], graph: Graph | None
) -> QA:
    return {
        "id": id,
        "clip": clip.uid,
        "video": clip.video,
        "type": type,
        "question": question,
        "answer": answer,
        "choices": None,
        "gold": None,
        "context": clip.narrations,
        "frame": graph.frames["pnr"] if graph else None,
        "start_s": graph.frames["pre"] / FPS if graph else None,
        "end_s": graph.frames["post"] / FPS if graph else None,
        "clip_start_s": _clip_start(clip),
        "evidence": evidence,
    }


def _clip_start(clip: Clip) -> float | None:
    return None if clip.start_frame is None else clip.start_frame / FPS


class _Table:
    """A parquet file that grows by row groups. `path` ends in the start of the file's sha256 once it is closed."""

    def __init__(self, path: Path, features: Features) -> None:
        self.path, self.rows = path, 0
        self._schema = features.arrow_schema
        self._waiting: list[Mapping[str, Any]] = []
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows += len(rows)
        self._waiting += rows
        while len(self._waiting) >= ROW_GROUP:
            self._write(ROW_GROUP)

    def close(self) -> int:
        """Number of rows; without any there is no file."""
        if self._waiting:
            self._write(ROW_GROUP)
        if self._writer:
            self._writer.close()
            self.path = self.path.rename(self.path.with_stem(f"{self.path.stem}-{_sha256(self.path)[:12]}"))
        return self.rows

    def _write(self, count: int) -> None:
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        self._writer = self._writer or pq.ParquetWriter(self.path, self._schema, compression="zstd")
        self._writer.write_table(pa.Table.from_pylist(group, schema=self._schema))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _card(files: Mapping[str, str], sizes: Mapping[str, int], sources: Sequence[Path], made: str) -> str:
    paths = {
        "default": [files[kind] for kind in TYPES if kind in files],
        **{config: [path] for config, path in files.items()},
    }
    front = DatasetCardData(
        pretty_name="EASG-Bench questions",
        language="en",
        license="other",
        task_categories=["video-text-to-text", "question-answering"],
        tags=["egocentric-video", "scene-graphs", "ego4d"],
        configs=[
            {"config_name": config, "data_files": [{"split": "test", "path": path}]} for config, path in paths.items()
        ],
    ).to_yaml()
    n = {**sizes, "default": sum(sizes[kind] for kind in TYPES)}
    counts = "\n".join(f"| `{config}` | {n[config]:,} | {CONFIG_NOTES[config]} |" for config in paths)
    columns = "\n".join(f"| `{name}` | {note} |" for name, note in COLUMN_NOTES.items())
    inputs = "\n".join(f"- `{path.name}`, sha256 `{_sha256(path)}`" for path in sources)
    return CARD.substitute(
        front=front, mark=MARK, counts=counts, columns=columns, inputs=inputs, made=made, picture=PICTURE
    )


CONFIG_NOTES = {
    "default": "all questions",
    "purpose": "what an object was used for, or what was done with it",
    "direct": "the object of an action",
    "indirect": "where, with what, into what",
    "before": "the action before the one named",
    "after": "the action after the one named",
    "unambiguous": "the questions that no second action of the clip answers differently, by exact strings",
    "language_neutral": "`<region n>` in place of each object that has a box: the n-th of `evidence`",
    "narrations": "one row per clip: the timestamped narrations",
    "graphs": "one row per annotated action: triplets, boxes, uniqueness vote",
}
COLUMN_NOTES = {
    "id": "`<clip>:<graph index>:<type>` (imported: `f` and the frame for the index), behind `indirect` the relation's "
    "number; `<clip>:purpose:<object>`",
    "clip": "uid of the Ego4D clip",
    "video": "uid of the full Ego4D video that the clip is from",
    "type": "purpose, direct, indirect, before or after",
    "question": "one question; the actor is the camera wearer",
    "answer": 'the annotation\'s own words: an object, a relation ("from table") or an action ("pick jug")',
    "choices": "multiple choice only; null here",
    "gold": "index into `choices`; null here",
    "context": "the clip's narrations with their seconds in the full video, for the judge; may be empty",
    "frame": "point of no return of the asked action, a frame of the full video (30 fps); null for purpose",
    "start_s": "precondition of the asked action, seconds of the full video; null for purpose",
    "end_s": "postcondition of the asked action, seconds of the full video; null for purpose",
    "clip_start_s": "where a file of the clip alone starts in the full video; null where unknown",
    "evidence": "what the pair names: graph (uid), frame, seconds, object, box (left, top, right, bottom; 0..1), "
    "attribute (an adjective from the narrations; null where none was asked for or found)",
}
RECORDED = """\
An action is asked if it occurs once in its clip and the recorded uniqueness vote is below 0.5. {same_frame}
The selection and the answers follow the EASG-Bench paper; **the wording is by template**, so questions read
differently from the paper's, which a language model wrote. A template purpose in particular is not the paper's: it
says what the annotated actions say of the object, not why somebody might have done it. Attributes of objects are
not included, and the paper's filter of generic questions has no public code and is not applied."""
IMPORTED = """\
The questions are the authors' own, with their wording and groundings as they are in the file above. It does not say
from which video a clip is, nor where clip and action begin, so `video` is empty and these seconds are null; and it has
no action graphs, so there are no configs `graphs` and `unambiguous`."""
SAME_FRAME_NOTES = {
    "last": "Of two asked actions of a clip with the same point of no return only the later is kept, as in the paper.",
    "all": "Two asked actions of a clip with the same point of no return are both kept; the paper keeps the later.",
}
CARD = Template("""\
---
$front
---
$mark

# EASG-Bench questions

Open questions about egocentric clips, made from action scene graphs: what an object was for, what was acted on,
where or with what, what was done right before and right after. A model's answers are rated by an LLM judge that
reads the clip's narrations; the ratings are reported relative to what the same judge gives the true answers.

```python
from datasets import load_dataset

rows = load_dataset("path/of/this/folder", "direct", split="test")
```

| config | rows | what |
|---|---|---|
$counts

All configs have one split, `test`: nothing here is meant for training.

## Columns of the questions

| column | what |
|---|---|
$columns

`frame / 30` is a second of the full video; subtract `clip_start_s` for a second of the clip's own file.

## How it was made

Built by the `builder` of the project easg-bench from

$inputs

$made

Some questions have more than one right answer: "What did the camera wearer pick up from the plate?", where two things
were. The config `unambiguous`, where there is one, leaves them out: one text asked twice in a clip with different
answers; a direct question whose verb and relations, or an indirect one whose verb and object, are those of a second
action of the clip too; and a before or after question whose answer is the asked action itself. Scores on it compare
with those of others on it only.

The config `language_neutral` has the questions whose text names an object that has a box, with `<region 1>` for its
name; `evidence` holds its box (the largest, where a purpose has several), `question_coordinates` says it in words, and
the answer stays as it is.

![Questions by type, lengths, and what is annotated]($picture)

## Rights

The videos are not part of this dataset. Where the annotations above are those of EASG (fpv-iplab/EASG), they describe
Ego4D videos: for these, get and keep to the Ego4D licence. The terms of the annotations and narrations are those of
the files they came from.

## Citing

Cite the EASG-Bench paper (arXiv 2506.05787), and EASG and Ego4D, whose annotations and videos it stands on.
""")
