"""The result file: what a run's scores.json holds, read with every field checked.

    {"format": 1, "model": "Qwen/Qwen3-8B", "kind": "language-only", "prompt": "narrations", "frames": null,
     "data":  {"data": "easg-bench", "config": "default", "limit": null, "revision": "0a1b2c3d4e5f", "rows": 1807},
     "judge": {"key": "...", "model": "...", "settings": {"dtype": "bfloat16"}, "mode": "dist", "sampling": "greedy",
               "reading": "ours", "rubric": "easg-bench-1a2b3c4d", "mass": 0.98},
     "calibration": {"means": {"before": 6.8}, "n": 1807},
     "types": {"before": {"n": 272, "n_scored": 271, "unreadable": 1, "empty": 0, "errors": 0, "clusters": 120,
                          "mean": 5.1, "standard_error": 0.2, "mean_interval": [4.8, 5.4],
                          "relative": 75.0, "interval": [70.4, 79.1]}},
     "avg": {as one type}, "types_missing": ["purpose", "direct", "indirect", "after"],
     "versions": {"easg-bench": "0.1.0"}, "date": "2025-06-30T12:00:00+00:00", "command": "easg-bench run ..."}

What each field means stands at the classes below; `relative` is 100 x equation 1. A file that comes from elsewhere may
hold anything, so numbers must be finite, possible and agree with each other, and names must be short and visible.
Results of a lighteval run (its results_*.json) are read into the same form, as far as they carry it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from videoqa.scores import TYPES

FORMAT = 1
MAX_BYTES = 1_000_000  # a file of a run has about 5 kB
MAX_RELATIVE = 1_000.0  # every answer 10 of 10, every ground truth 1 of 10

# Controls, and what makes a text look like another: zero width characters and changes of direction. Right-to-left
# letters themselves are fine.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def _visible(text: str) -> str:
    if found := _UNSEEN.search(text):
        raise ValueError(f"holds the invisible character U+{ord(found.group()):04X} at position {found.start()}")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_visible)]
COLUMNS = (*TYPES, "Avg.")  # of every table
LONGEST = 2_000  # characters of a path, a list of frames, a command
Text = Annotated[str, StringConstraints(max_length=LONGEST), AfterValidator(_visible)]
Short = Annotated[str, StringConstraints(max_length=100), AfterValidator(_visible)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Score = Annotated[float, Field(ge=0, le=100)]
Relative = Annotated[float, Field(ge=0, le=MAX_RELATIVE)]
Type = Literal["purpose", "direct", "indirect", "before", "after"]
Kind = Literal["language-only", "video", "two-stage"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Summary(_Part):
    """One type, or all of them (`avg`): the fields of videoqa.scores.Summary. None: it could not be computed."""

    n: Count
    n_scored: Count
    unreadable: Count  # n - n_scored; includes `errors`
    empty: Count  # empty predictions: scored, with the lowest score
    errors: Count  # calls of the judge that failed
    clusters: Count  # clips with a scored row
    mean: Score | None
    standard_error: Score | None
    mean_interval: tuple[Score, Score] | None  # 95%
    relative: Relative | None
    interval: tuple[Relative, Relative] | None  # 95%, of `relative`

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.n_scored + self.unreadable != self.n:
            raise ValueError(f"n_scored {self.n_scored} and unreadable {self.unreadable} do not add up to n {self.n}")
        if self.errors > self.unreadable or self.clusters > self.n_scored or self.empty > self.n:
            raise ValueError("errors, clusters or empty is more than the rows it counts")
        for name, value in (("mean_interval", self.mean_interval), ("interval", self.interval)):
            if value is not None and value[0] > value[1]:
                raise ValueError(f"{name} ends before it begins: {value[0]} to {value[1]}")
        return self


class Data(_Part):
    """The questions: where they were loaded from, and the hash of their content."""

    data: Text
    config: Name
    limit: Count | None
    revision: Name
    rows: Count


class Judge(_Part):
    """Who gave the scores, and everything that moves them; `key` is all of it in one line."""

    key: Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_visible)]
    model: Name
    settings: Annotated[dict[Short, Any], Field(max_length=50)]
    mode: Name
    sampling: Name
    reading: Name
    rubric: Name
    mass: Annotated[float, Field(ge=0, le=1.001)] | None  # mean probability of the allowed scores (mode dist)


class Calibration(_Part):
    """What the judge gave the ground truth: mean per type, and of how many verdicts."""

    means: dict[Type, Score]
    n: Count


class Located(_Part):
    """Two-stage runs: how well the model located the steps (videoqa.locate); rates are over all n."""

    n: Count
    read: Count  # replies in which a time could be read
    hit_rate: Annotated[float, Field(ge=0, le=1)]
    iou: Annotated[float, Field(ge=0, le=1)]


class Result(_Part):
    """A result file."""

    format: Literal[1]
    model: Name
    kind: Kind  # what the model saw: no video; frames; frames in two turns
    prompt: Name  # blind, narrations, ...
    frames: Text | None = None  # which frames of the video (uniform:8, ...)
    data: Data
    judge: Judge
    calibration: Calibration
    types: dict[Type, Summary]
    avg: Summary
    types_missing: list[Type]
    unanswered: Count = 0  # rows without an answer: in no count above
    video_errors: Count = 0  # of them, those whose video cannot be used
    located: dict[Type | Literal["all"], Located] | None = None
    versions: Annotated[dict[Short, Short], Field(max_length=50)]
    date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d[0-9:.+Z-]*$", max_length=40)]
    command: Text

    @model_validator(mode="after")
    def _agree(self) -> Self:
        scored = [name for name in TYPES if name in self.types and self.types[name].mean is not None]
        if sorted(self.types_missing) != sorted(set(TYPES) - set(scored)):
            raise ValueError(f"types_missing is {self.types_missing}, but scored are {scored}")
        for name in ("n", "n_scored"):
            if (total := sum(getattr(s, name) for s in self.types.values())) != getattr(self.avg, name):
                raise ValueError(f"avg.{name} is {getattr(self.avg, name)}, but the types add up to {total}")
        for name, summary in self.types.items():
            scale = self.calibration.means.get(name)
            expected = 100 * summary.mean / scale if summary.mean is not None and scale else None
            _same(f"types.{name}.relative", summary.relative, expected, "100 x mean / mean of the ground truth")
        relatives = [self.types[name].relative for name in scored]
        whole = [r for r in relatives if r is not None]
        expected = math.fsum(whole) / len(whole) if whole and len(whole) == len(relatives) else None
        _same("avg.relative", self.avg.relative, expected, "the plain mean of the types")
        return self

    @property
    def name(self) -> str:
        """The model without the folder that it was loaded from; a Hub id stays as it is."""
        folder = self.model.startswith(("/", ".", "~")) or self.model.count("/") > 1
        return (PurePosixPath(self.model).name if folder else "") or self.model

    @property
    def label(self) -> str:
        """How a run is called in tables: "SmolLM2-135M-Instruct (blind)"."""
        return f"{self.name} ({self.prompt})"

    @property
    def group(self) -> str:
        """Only scores of one group can be compared: one judge, mode, rubric and sampling, the same questions."""
        return f"{self.judge.key}, data {self.data.revision}"

    def column(self, name: str) -> Summary | None:
        """One type's summary, or that of "Avg."."""
        return self.avg if name == "Avg." else self.types.get(name)  # type: ignore[call-overload]


def _same(where: str, found: float | None, expected: float | None, what: str) -> None:
    if (found is None) != (expected is None) or (
        found is not None and expected is not None and not math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-6)
    ):
        raise ValueError(f"{where} is {found}, but {what} is {expected}")


def parse(text: bytes, where: str) -> Result:
    """The result in the bytes of a file. Raises ValueError that begins with `where` and names each wrong field, what
    came and what is allowed."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"{where}: {len(text):,} bytes; a result file has at most {MAX_BYTES:,}")
    try:
        head = json.loads(text)
        if not isinstance(head, dict):
            raise ValueError(f"a JSON object is expected, not a {type(head).__name__}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: this is no result file (scores.json of a run): {error}") from error
    if (found := head.get("format")) != FORMAT:
        raise ValueError(f"{where}: format is {_short(found)}; this version of easg-bench reads {FORMAT}")
    try:
        return Result.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(f"{where}: {'; '.join(map(_reason, error.errors()[:5]))}") from error


def read(path: str | Path) -> Result:
    """The result in a file."""
    path = Path(path)
    with path.open("rb") as file:
        return parse(file.read(MAX_BYTES + 1), str(path))


def read_each(path: str | Path) -> list[Result]:
    """The results in a file: one of a run, or one for each prompt of a lighteval run (results_*.json)."""
    path = Path(path)
    if not path.name.startswith("results_"):
        return [read(path)]
    with path.open("rb") as file:
        return from_lighteval(file.read(MAX_BYTES + 1), path.name)


def files(folder: str | Path) -> list[Path]:
    """The result files of a run folder, the first judge's first; a file stands for itself."""
    folder = Path(folder)
    if folder.is_file():
        return [folder]
    found = sorted(folder.glob("scores*.json"), key=lambda p: (p.name != "scores.json", p.name))
    if not found:
        raise FileNotFoundError(f"{folder} has no scores.json: run `easg-bench judge {folder}` first")
    return found


# -- lighteval --------------------------------------------------------------------------------------------------------

_TASK = re.compile(r"easg_bench(?P<family>_\w+)?:(?P<type>\w+)(\|\d+)?")
_PROMPTS: dict[str, tuple[str, Kind]] = {
    "": ("blind", "language-only"),
    "_narrations": ("narrations", "language-only"),
    "_frames": ("frames", "video"),
    "_two_stage": ("two-stage", "two-stage"),
}


def from_lighteval(text: bytes, name: str) -> list[Result]:
    """The results in lighteval 0.13's results_DATE.json, one for each prompt of our tasks.

    lighteval writes neither judge nor revision of the data nor clips, so each such result is a group of its own:
    its key holds the hash of the file, and it is compared with nothing but itself. `clusters` is 0: not known.
    """
    try:
        data = json.loads(text)
        by_prompt: dict[str, dict[str, dict[str, float]]] = {}
        for task, figures in data["results"].items():
            found = _TASK.fullmatch(task)
            if found and (found["type"] in TYPES or found["type"] == "_average"):
                by_prompt.setdefault(found["family"] or "", {})[found["type"]] = figures
        if not by_prompt:
            raise ValueError(f"no task easg_bench*:TYPE among {', '.join(map(_short, list(data['results'])[:5]))}")
        told = {family: _of_lighteval(data, family, found, name, text) for family, found in by_prompt.items()}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{name}: not a lighteval result with our tasks: {error!r}") from error
    return [parse(json.dumps(one).encode(), name) for _, one in sorted(told.items())]


def _of_lighteval(
    data: dict[str, Any], family: str, by_type: dict[str, dict[str, float]], name: str, text: bytes
) -> dict[str, Any]:
    prompt, kind = _PROMPTS[family]
    key = f"judge not recorded by lighteval, {hashlib.sha256(text).hexdigest()[:12]}"
    types = {t: _summary_of(by_type[t]) for t in TYPES if t in by_type}
    scored = [s for s in types.values() if s["relative"] is not None]
    avg: dict[str, Any] = {field: sum(s[field] for s in types.values()) for field in _COUNTS}
    relatives = [s["relative"] for s in scored]
    average = _summary_of(by_type["_average"]) if "_average" in by_type else {}
    avg |= {
        "mean": math.fsum(s["mean"] for s in scored) / len(scored) if scored else None,
        "relative": math.fsum(relatives) / len(relatives) if relatives else None,
        "interval": average.get("interval"),
        "standard_error": None,
        "mean_interval": None,
    }
    config = data["config_general"]
    tasks = data.get("config_tasks", {})
    repos = {str(task.get("hf_repo")) for at, task in tasks.items() if _TASK.fullmatch(at)}
    date = re.search(r"(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)", name)
    return {
        "format": FORMAT,
        "model": config["model_name"],
        "kind": kind,
        "prompt": prompt,
        "frames": None,
        "data": {
            "data": repos.pop() if len(repos) == 1 else "not recorded",
            "config": "default",
            "limit": config.get("max_samples"),
            "revision": "not recorded",
            "rows": avg["n"],
        },
        "judge": {
            "key": key,
            "model": "not recorded",
            "settings": {},
            "mode": "not recorded",
            "sampling": "not recorded",
            "reading": "not recorded",
            "rubric": "not recorded",
            "mass": None,
        },
        "calibration": {
            "means": {t: 100 * s["mean"] / s["relative"] for t, s in types.items() if s["relative"]},
            "n": avg["n"],
        },
        "types": types,
        "avg": avg,
        "types_missing": [t for t in TYPES if t not in types or types[t]["relative"] is None],
        "versions": {"lighteval": str(config.get("lighteval_sha") or "?")[:100]},
        "date": f"{date[1]}T{date[2]}:{date[3]}:{date[4]}" if date else "1970-01-01T00:00:00",
        "command": f"lighteval, {name}"[:2_000],
    }


_COUNTS = ("n", "n_scored", "unreadable", "empty", "errors", "clusters")


def _summary_of(figures: dict[str, float]) -> dict[str, Any]:
    """One task's figures as a Summary; what is not a number is None."""
    n, unreadable, empty, errors = (int(figures[f"easg_{k}"]) for k in ("n", "unreadable", "empty", "judge_errors"))
    mean, relative, low, high = (
        None if math.isnan(figures[f"easg_{k}"]) else float(figures[f"easg_{k}"])
        for k in ("score", "relative", "low", "high")
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
        "relative": relative,
        "interval": None if low is None or high is None else [low, high],
    }


# -- words ------------------------------------------------------------------------------------------------------------


def _reason(error: Any) -> str:
    """One field's fault in words: "types.before.relative: input should be less than or equal to 1000, not 10000.0"."""
    field = ".".join(map(str, error["loc"])) or "the file"
    if error["type"] == "missing":
        return f"{field} is missing"
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    said = "" if error["type"] == "value_error" else f", not {_short(error['input'])}"
    return f"{_short(field, '')}: {message[:1].lower()}{message[1:]}{said}"


def _short(value: Any, quote: str = "'") -> str:
    text = f"{quote}{value}{quote}" if isinstance(value, str) else str(value)
    text = _UNSEEN.sub("�", text)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text):,} characters)"
