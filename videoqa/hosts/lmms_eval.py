"""A benchmark as an lmms-eval task: what tasks/lmms_eval/utils.py gives to its YAML files.

    lmms-eval asks:     doc_to_text(doc, {"track": "easg-bench", "prompt": "narrations"})  ->  the prompt
    then, row by row:   process_results(doc, ["a jug"])  ->  {"easg_relative": item, "easg_low": item, ...}
    then, by metric:    aggregation([item, ...])         ->  a number

lmms-eval knows one metric at a time, so every item says which one it is of; all rows are rated when the first metric is
asked for, together, and the figures are kept. lmms-eval loads the data by the name in the YAML file: they are compared
with those that EASG_BENCH_DATA names, or the folder of the benchmark's name.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from videoqa.benchmark import Track, track
from videoqa.errors import UserError
from videoqa.hosts.judged import figures_and_types, metric_name, records, scorer, setting, type_name
from videoqa.rows import Row, revision
from videoqa.runs import load_rows

Item = tuple[str, str, str, str, str]  # track, figure, prompt, id of the row, answer


def text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, str]) -> str:
    """The prompt of a row; the task's YAML names the track and the way of asking."""
    way = track(lmms_eval_specific_kwargs["track"]).asked(lmms_eval_specific_kwargs["prompt"])
    return way.instruction + way.query(doc)


def nothing_to_see(doc: Mapping[str, Any]) -> list[Any]:
    """The row's pictures and videos, of which these ways of asking show none."""
    return []


def checked(name: str, dataset: Any) -> Any:
    """The data that lmms-eval has loaded. Ends the program where they are not those that EASG_BENCH_DATA names (a bare
    name that is no folder is answered out of a cache, with whatever data had that name before), and where the judge has
    no name: an ordinary exception would be tried again five times."""
    of_track = track(name)
    try:
        if of_track.rubric is not None:
            setting("JUDGE")
        rows, loaded = rows_of(name), list(dataset)
    except (UserError, OSError) as error:
        raise SystemExit(f"easg-bench: {error}") from error
    if [_shown(row) for row in rows] != [_shown(doc) for doc in loaded]:
        raise SystemExit(
            f"easg-bench: lmms-eval loaded {len(loaded)} rows that are not the {len(rows)} of {place(of_track)}: "
            f"run it in the folder that holds {of_track.repo}/, and let EASG_BENCH_DATA be that or nothing"
        )
    print(f"{of_track.title}: {len(rows)} rows of {place(of_track)}, revision {revision(rows)}")
    return dataset


def results(name: str, prompt: str, doc: Mapping[str, Any], replies: Sequence[str]) -> dict[str, Item]:
    """What lmms-eval keeps of an answer, for each figure."""
    return {figure: (name, figure, prompt, doc["id"], replies[0].strip()) for figure in figure_names(track(name))}


def figure_names(of_track: Track) -> list[str]:
    """The figures of a track, as its YAML files list them: of all rows, then the measure by type."""
    prefix = of_track.prefix
    ours = [metric_name(of_track), *(f"{prefix}_{one}" for one in ("low", "high", "n", "unreadable", "empty"))]
    return ours + [type_name(of_track, kind) for kind in (of_track.types if len(of_track.types) > 1 else ())]


def figure(items: Sequence[Item]) -> float:
    """The figure that the items are of."""
    name, wanted, prompt = items[0][0], items[0][1], items[0][2]
    return _figures(name, prompt, tuple((item[3], item[4]) for item in items))[wanted]


@functools.cache
def _figures(name: str, prompt: str, answers: tuple[tuple[str, str], ...]) -> dict[str, float]:
    """All figures of a finished task."""
    of_track = track(name)
    known = {row["id"]: row for row in rows_of(name)}
    rows = [{**known[row_id], "prompt": prompt} for row_id, _ in answers]
    empty = [""] * len(rows)
    made = records(of_track, rows, [said for _, said in answers], empty, empty, scorer)
    return figures_and_types(made, of_track)


def place(of_track: Track) -> str:
    """The data: a folder by its full path, or a repo on the Hub."""
    named = setting("DATA", of_track.repo)
    return str(Path(named).resolve()) if Path(named).is_dir() else named


@functools.cache
def rows_of(name: str) -> list[Row]:
    """The track's rows, of its default config, which is that of the YAML files."""
    return load_rows(track(name), place(track(name)))


def _shown(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a model and a judge see of a row."""
    choices = row.get("choices")
    return (row["id"], row["question"], row["answer"], list(choices) if choices else None, row["context"])
