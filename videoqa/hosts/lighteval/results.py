"""The results that lighteval writes (results_*.json), as results of ours."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

from videoqa.benchmark import Track
from videoqa.errors import UserError
from videoqa.hosts.lighteval import families
from videoqa.results import FORMAT, LONGEST, MAX_BYTES, Result, parse, read, short

_TASK = re.compile(r"(?P<family>\w+):(?P<type>[\w-]+)(\|\d+)?")
_AVERAGE = "_average"


def read_each(path: str | Path) -> list[Result]:
    """The results in a file: one of a run, or one for each family of our tasks in lighteval's results_*.json."""
    path = Path(path)
    if not path.name.startswith("results_"):
        return [read(path)]
    with path.open("rb") as file:
        return from_lighteval(file.read(MAX_BYTES + 1), path.name)


def from_lighteval(text: bytes, name: str) -> list[Result]:
    """The results in lighteval 0.13's results_DATE.json, one for each family of our tasks.

    lighteval writes neither judge nor revision of the data nor clips, so each such result is a group of its own:
    its key holds the hash of the file, and it is compared with nothing but itself. `clusters` is 0: not known.
    """
    known = families()
    try:
        data = json.loads(text)
        by_family: dict[str, dict[str, dict[str, float]]] = {}
        for task, figures in data["results"].items():
            parts = _TASK.fullmatch(task)
            if parts and parts["family"] in known and parts["type"] in (*known[parts["family"]][0].types, _AVERAGE):
                by_family.setdefault(parts["family"], {})[parts["type"]] = figures
        if not by_family:
            raise UserError(f"none of our tasks among {', '.join(map(short, list(data['results'])[:5]))}")
        read = {
            family: _of_lighteval(data, *known[family], by_type, name, text) for family, by_type in by_family.items()
        }
    except (ValueError, OverflowError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{name}: not a lighteval result with our tasks: {error!r}") from error
    return [parse(json.dumps(one).encode(), name) for _, one in sorted(read.items())]


def _of_lighteval(
    data: dict[str, Any], track: Track, way: str, by_type: dict[str, dict[str, float]], name: str, text: bytes
) -> dict[str, Any]:
    key = f"judge not recorded by lighteval, {hashlib.sha256(text).hexdigest()[:12]}"
    types = {t: _summary_of(by_type[t], track) for t in track.types if t in by_type}
    scored = [s for s in types.values() if s["value"] is not None]
    avg: dict[str, Any] = {field: sum(s[field] for s in types.values()) for field in _COUNTS}
    values = [s["value"] for s in scored]
    average = _summary_of(by_type[_AVERAGE], track) if _AVERAGE in by_type else {}
    avg |= {
        "mean": math.fsum(s["mean"] for s in scored) / len(scored) if scored else None,
        "value": math.fsum(values) / len(values) if values else None,
        "interval": average.get("interval"),
        "standard_error": None,
        "mean_interval": None,
    }
    config = data["config_general"]
    repos = {str(task.get("hf_repo")) for task in data.get("config_tasks", {}).values()}
    date = re.search(r"(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)", name)
    unknown = "not recorded"
    judge: dict[str, Any] = {
        "key": key,
        "settings": {},
        "mass": None,
        **dict.fromkeys(("model", "mode", "sampling", "reading", "rubric"), unknown),
    }
    return {
        "format": FORMAT,
        "track": track.name,
        "measure": track.measure.name,
        "model": config["model_name"],
        "kind": track.ways[way].kind,
        "prompt": way,
        "frames": None,
        "data": {
            "data": repos.pop() if len(repos) == 1 else unknown,
            "config": "default",
            "limit": config.get("max_samples"),
            "revision": unknown,
            "rows": avg["n"],
        },
        "scorer": key,
        "judge": judge if track.rubric is not None else None,
        "calibration": {
            "means": {t: 100 * s["mean"] / s["value"] for t, s in types.items() if s["value"]},
            "n": avg["n"],
        }
        if track.measure.needs_truth
        else None,
        "types": types,
        "avg": avg,
        "types_missing": [t for t in track.types if t not in types or types[t]["value"] is None],
        "versions": {"lighteval": str(config.get("lighteval_sha") or "?")[:100]},
        "date": f"{date[1]}T{date[2]}:{date[3]}:{date[4]}" if date else "1970-01-01T00:00:00",
        "command": f"lighteval, {name}"[:LONGEST],
    }


_COUNTS = ("n", "n_scored", "unreadable", "empty", "errors", "clusters")


def _summary_of(figures: dict[str, float], track: Track) -> dict[str, Any]:
    """One task's figures as a Summary; what is not a number is None."""
    n, unreadable, empty, errors = (
        int(figures[f"{track.prefix}_{k}"]) for k in ("n", "unreadable", "empty", "judge_errors")
    )
    mean, value, low, high = (
        None if math.isnan(figures[f"{track.prefix}_{k}"]) else float(figures[f"{track.prefix}_{k}"])
        for k in ("score", track.measure.name, "low", "high")
    )
    return {
        "n": n,
        "n_scored": n - unreadable,
        "unreadable": unreadable,
        "empty": empty,
        "errors": errors,
        "clusters": 0,
        "mean": mean,
        "standard_error": None,
        "mean_interval": None,
        "value": value,
        "interval": None if low is None or high is None else [low, high],
    }
