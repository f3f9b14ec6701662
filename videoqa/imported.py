"""Answers that something else wrote, as a run folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from videoqa.characters import first_unseen
from videoqa.errors import UserError
from videoqa.files import whole, write_json
from videoqa.plain_file import SUFFIXES, read_plain
from videoqa.reply import Verdict
from videoqa.rows import Row, questions, revision
from videoqa.runs import Run, RunMismatch, result
from videoqa.store import line_of

if TYPE_CHECKING:
    from videoqa.benchmark import Track


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer that a file holds: the row of the data set that it belongs to, and the judge's word if any."""

    id: str
    prediction: str
    verdict: Verdict | None = None
    scorer: Mapping[str, Any] = field(default_factory=dict)  # who gave the verdict (videoqa.scorer.Scorer.describe)
    more: Mapping[str, Any] = field(default_factory=dict)  # further fields of its answer line


Reader = Callable[[Path, Sequence[Row]], list[Answered]]


def _of(read: Callable[[Path, Sequence[Row]], list[tuple[str, str]]]) -> Reader:
    return lambda path, rows: [Answered(name, prediction) for name, prediction in read(path, rows)]


def _plain(path: Path, rows: Sequence[Row]) -> list[Answered]:
    lines = read_plain(path, {row["id"]: None for row in rows})
    return [Answered(line.pop("id"), line.pop("prediction"), more=line) for line in lines]


def readers(track: Track) -> dict[str, Reader]:
    """What `import-answers --from` takes: a plain table, the forms of the track, and those of the programs that run
    it."""
    from videoqa.hosts import logs

    hosts = {"lmms-eval": _of(logs.lmms_answers), "lighteval": _of(logs.details_answers)}
    return {"plain": _plain, **track.importers, **hosts}


def form_of(path: Path) -> str:
    """The form that a file has by its name, where none is said: a plain table, or else the public script's."""
    return "plain" if path.suffix in SUFFIXES else "script"


def import_run(
    path: Path,
    form: str,
    rows: Sequence[Row],
    out: Path,
    data: str,
    config: str,
    track: Track,
    model: str | None = None,
    prompt: str | None = None,
) -> list[Answered]:
    """Make the run folder `out` of the answers in `path`; `rows` are those of `data` and `config`. Whole or not at all.
    `model` is what results call it (None: the file's name), `prompt` one of the track's ways of asking (None: it is not
    known how the questions were asked).

    Where the file has verdicts of its own, they become the run's first result, under the published constants of the
    judge that the answers name.
    """
    out = out.resolve()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunMismatch(f"{out} is there already: give another --out")
    if prompt is not None:
        track.asked(prompt)
    if not (model or path.stem).strip() or len(model or "") > 200 or first_unseen(model or "") is not None:
        raise UserError(f"--model {model!r}: a name of 1 to 200 visible characters is expected")
    answered = readers(track)[form](path, rows)
    if not answered:
        raise UserError(f"{path}: holds no answers")
    with whole(out) as fresh:
        asked = {"model": model or path.stem, "prompt": prompt or "imported", "track": track.name}
        run = Run(fresh, {**_settings(path, form, rows, data, config), **asked})
        for one in answered:
            line = {"id": one.id, "prediction": one.prediction, "error": None, "finished": True}
            run.answers_file.append({**line, **{k: v for k, v in one.more.items() if k != "row"}})
            if one.verdict is not None:
                key = one.scorer["key"]
                run.verdicts_file.append({"id": one.id, "of": "answer", "judge": key, **line_of(one.verdict)})
        if scorer := next((one.scorer for one in answered if one.verdict), None):
            write_json(run.scores_path(scorer["key"]), result(run, rows, scorer))
    return answered


def _settings(path: Path, form: str, rows: Sequence[Row], data: str, config: str) -> dict[str, Any]:
    return {
        "format": 1,
        "data": data,
        "config": config,
        "limit": None,
        "revision": revision(rows),
        "rows": questions(rows),
        "model_settings": {},
        "imported": {"file": path.name, "form": form, "sha256": _sha256(path)},
    }


def _sha256(path: Path) -> str:
    """Of the file, or of the files of a folder one after the other."""
    digest = hashlib.sha256()
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        digest.update(file.read_bytes())
    return digest.hexdigest()
