"""The result file: what a run's scores.json holds, read with every field checked.

    {"format": 2, "track": "easg-bench", "measure": "relative",
     "model": "Qwen/Qwen3-8B", "kind": "language-only", "prompt": "narrations", "frames": null,
     "data":  {"data": "easg-bench", "config": "default", "limit": null, "revision": "0a1b2c3d4e5f", "rows": 1807},
     "scorer": "...",
     "judge": {"key": "...", "model": "...", "settings": {"dtype": "bfloat16"}, "mode": "dist", "sampling": "greedy",
               "reading": "ours", "rubric": "easg-bench-1a2b3c4d", "mass": 0.98},
     "calibration": {"means": {"before": 6.8}, "n": 1807},
     "types": {"before": {"n": 272, "n_scored": 271, "unreadable": 1, "empty": 0, "errors": 0, "clusters": 120,
                          "mean": 5.1, "standard_error": 0.2, "mean_interval": [4.8, 5.4],
                          "value": 75.0, "interval": [70.4, 79.1]}},
     "avg": {as one type}, "extras": {}, "types_missing": ["purpose", "direct", "indirect", "after"],
     "versions": {"easg-bench": "0.1.0"}, "date": "2025-06-30T12:00:00+00:00", "command": "easg-bench run ..."}

What each field means stands at the classes below. `judge` and `calibration` are null where nobody judges. Files of
format 1, which knew one benchmark only, are read as well. A file that comes from elsewhere may
hold anything, so numbers must be finite, possible and agree with each other, and names must be short and visible.
Results of a lighteval run (its results_*.json) are read into the same form, as far as they carry it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from videoqa.benchmark import AVERAGE, track
from videoqa.characters import first_unseen
from videoqa.errors import UserError
from videoqa.files import reckonable, short_hash
from videoqa.folders import without_folders
from videoqa.upgrade import upgraded

FORMAT = 2
FORMATS = (1, 2)  # that can be read
MAX_BYTES = 1_000_000  # a file of a run has about 5 kB
MAX_VALUE = 1_000.0  # of 10: every answer 10, every ground truth 1


def _visible(text: str) -> str:
    if (place := first_unseen(text)) is not None:
        raise ValueError(f"holds the invisible character U+{ord(text[place]):04X} at position {place}")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_visible)]
SET = ("temperature", "top_p", "seed", "thinking", "chat_template", "system", "stop", "repeats")
LONGEST = 2_000  # characters of a path, a list of frames, a command
Text = Annotated[str, StringConstraints(max_length=LONGEST), AfterValidator(_visible)]
Short = Annotated[str, StringConstraints(max_length=100), AfterValidator(_visible)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Score = Annotated[float, Field(ge=0, le=100)]
Figure = Annotated[float, Field(ge=-1e9, le=1e9)]
Value = Annotated[float, Field(ge=0, le=MAX_VALUE)]
Type = Annotated[str, StringConstraints(min_length=1, max_length=60), AfterValidator(_visible)]


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
    value: Value | None  # the track's measure
    interval: tuple[Value, Value] | None  # 95%, of `value`

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


def _reckonable(settings: dict[str, Any]) -> dict[str, Any]:
    if not reckonable(settings):
        raise ValueError("holds a number that is none (NaN, Infinity or one of hundreds of digits)")
    return settings


Moment = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d[0-9:.+Z-]*$", max_length=40)]


class Check(_Part):
    """What judge-check found of a judge."""

    fit: bool
    reasons: Annotated[tuple[Text, ...], Field(max_length=50)]  # why it is not fit
    rows: Count  # questions whose answers it rated
    date: Moment

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.fit == bool(self.reasons):
            raise ValueError("a judge is fit where no reason speaks against it, and only there")
        return self

    @property
    def said(self) -> str:
        """In words: "fit (30 questions, 2026-12-01)"."""
        about = f"{self.rows} questions, {self.date[:10]}"
        return f"fit ({about})" if self.fit else f"NOT fit ({about}): {'; '.join(self.reasons)}"


class Judge(_Part):
    """Who gave the scores, and everything that moves them; `key` is all of it in one line."""

    key: Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_visible)]
    model: Name
    settings: Annotated[dict[Short, Any], Field(max_length=50), AfterValidator(_reckonable)]
    mode: Name
    sampling: Name
    reading: Name
    rubric: Name
    values: tuple[Score, ...] = ()  # that the rubric allows; empty: not recorded
    mass: Annotated[float, Field(ge=0, le=1.001)] | None  # mean probability of the allowed scores (mode dist)
    low_mass: Count = 0  # answers whose mass was too low, so that they were asked again as text
    check: Check | None = None  # None: not checked


class Calibration(_Part):
    """What the judge gave the ground truth: mean per type, and of how many verdicts."""

    means: dict[Type, Score]
    n: Count


class Usage(_Part):
    """What the answers cost, of the rows that say it; tokens as the engine or its server counts them."""

    rows: Count  # with tokens or seconds
    prompt_tokens: Annotated[int, Field(ge=0, le=10**13)]
    new_tokens: Annotated[int, Field(ge=0, le=10**13)]
    seconds: Annotated[float, Field(ge=0, le=1e9)]  # from one answer to the next, added up


class Result(_Part):
    """A result file."""

    format: Literal[2]
    track: Name
    measure: Name  # videoqa.measures.Measure.name
    model: Name
    kind: Name  # what the model saw (videoqa.asking.Way.kind)
    prompt: Name  # blind, narrations, ...
    frames: Text | None = None  # which frames of the video (uniform:8, ...)
    protocol: Name | None = None  # multiple choice: what was read off the model (likelihood, generation, yes)
    # an agent's experts and their models; None: this one was left out
    experts: Annotated[dict[Short, Text | None], Field(max_length=20)] | None = None
    settings: Annotated[dict[Short, Any], Field(max_length=50), AfterValidator(_reckonable)] = {}  # of the model
    order: Name | None = None  # multiple choice: how the options were rearranged (circular, shuffle:7)
    data: Data
    scorer: Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_visible)]  # its key
    judge: Judge | None
    calibration: Calibration | None
    types: dict[Type, Summary]
    avg: Summary
    types_missing: list[Type]
    unanswered: Count = 0  # rows without an answer: in no count above, unless the measure takes every row
    refusals: Count = 0  # answers that the server says are refusals
    cut: Count = 0  # answers that ended at the longest length
    video_errors: Count = 0  # of them, those whose video cannot be used
    usage: Usage | None = None
    withheld: Count = 0  # questions whose right answer is not public: in no count above
    skipped: Count = 0  # multiple choice: rows that were not asked, since another arrangement had lost their question
    unmatched: Count = 0  # multiple choice: replies that name no option, so that an engine was asked what they mean
    matched: Count = 0  # of them, those that it says mean an option
    extras: Annotated[dict[Short, dict[Short, dict[Short, Figure]]], Field(max_length=40)] = {}  # name, type, figure
    # name ("reasoning steps"), value ("4"), score of the questions that have it
    breakdowns: Annotated[dict[Short, Annotated[dict[Short, Summary], Field(max_length=40)]], Field(max_length=10)] = {}
    versions: Annotated[dict[Short, Short], Field(max_length=50)]
    date: Moment
    command: Text

    @model_validator(mode="after")
    def _agree(self) -> Self:
        of_track = track(self.track)
        if self.measure != of_track.measure.name:
            raise ValueError(f"measure is {self.measure!r}; {of_track.title} is measured by {of_track.measure.name!r}")
        if self.kind not in of_track.kinds:
            raise ValueError(f"kind is {self.kind!r}; the kinds of {of_track.title} are {', '.join(of_track.kinds)}")
        means = self.calibration.means if self.calibration else {}
        if unknown := sorted({*self.types, *self.types_missing, *means} - {*of_track.types}):
            raise ValueError(f"type {unknown[0]!r}; the types of {of_track.title} are {', '.join(of_track.types)}")
        if of_track.measure.needs_truth and self.calibration is None:
            raise ValueError(f"calibration is missing: the measure {self.measure!r} divides by it")
        if self.judge is not None and self.judge.key != self.scorer:
            raise ValueError("scorer is not the key of the judge")
        scored = [name for name in of_track.types if name in self.types and self.types[name].mean is not None]
        if sorted(self.types_missing) != sorted(set(of_track.types) - set(scored)):
            raise ValueError(f"types_missing is {self.types_missing}, but scored are {scored}")
        for name in ("n", "n_scored"):
            if (total := sum(getattr(s, name) for s in self.types.values())) != getattr(self.avg, name):
                raise ValueError(f"avg.{name} is {getattr(self.avg, name)}, but the types add up to {total}")
        for name, summary in self.types.items():
            scale = means.get(name) if of_track.measure.needs_truth else 1.0
            expected = 100 * summary.mean / scale if summary.mean is not None and scale else None
            what = "100 x mean / mean of the ground truth" if of_track.measure.needs_truth else "100 x mean"
            _same(f"types.{name}.value", summary.value, expected, what)
        for name, by_value in self.breakdowns.items():
            for value, part in by_value.items():
                if part.n > self.avg.n:
                    raise ValueError(f"breakdowns.{name}.{value} has {part.n} questions, of {self.avg.n} in all")
                if not of_track.measure.needs_truth:
                    expected = None if part.mean is None else 100 * part.mean
                    _same(f"breakdowns.{name}.{value}", part.value, expected, "100 x mean")
        if self.matched > self.unmatched:
            raise ValueError(f"matched is {self.matched}, but only {self.unmatched} replies were unmatched")
        values = [self.types[name].value for name in scored]
        known = [value for value in values if value is not None]
        expected = math.fsum(known) / len(known) if known and len(known) == len(values) else None
        _same("avg.value", self.avg.value, expected, "the plain mean of the types")
        return self

    @property
    def name(self) -> str:
        """The model without the folder that it was loaded from; a Hub id stays as it is."""
        return _named(self.model)

    @property
    def label(self) -> str:
        """How a run is called in tables: "SmolLM2-135M-Instruct (blind)", "Qwen2.5-VL-7B (frames, uniform:8)"."""
        frames = self.frames if len(self.frames or "") <= 30 else f"{(self.frames or '')[:27]}..."
        of_run = (self.asking, frames, self.protocol, self.order, *self.set_values)
        return f"{self.name} ({', '.join(filter(None, of_run))})"

    @property
    def asking(self) -> str:
        """The prompt, with what an agent had to do without: "retriever without speech-text"."""
        missing = [name for name, model in (self.experts or {}).items() if model is None]
        return f"{self.prompt} without {' and '.join(missing)}" if missing else self.prompt

    @property
    def set_values(self) -> tuple[str, ...]:
        """What was set for the model beside what every run sets, as short texts: "temperature 0.7", "system 1a2b3c"."""
        shown: dict[str, Any] = dict(self.settings)
        for name in ("system", "stop"):  # long texts by their hash
            if name in shown:
                shown[name] = short_hash(json.dumps(shown[name]))[:6]
        return tuple(f"{name} {str(shown[name])[:20]}" for name in SET if name in shown)

    @property
    def gaps(self) -> tuple[str, ...]:
        """What the average leaves out, in words; empty for a run with a score for all that it could score."""
        gaps = []
        if self.data.limit is not None and self.data.limit <= self.data.rows:
            gaps.append(f"a limit of {self.data.limit:,} rows")
        if self.video_errors:
            gaps.append(f"{self.video_errors:,} rows without a video that can be read")
        if others := self.unanswered - self.video_errors:
            gaps.append(f"{others:,} rows without an answer")
        if self.avg.errors:
            gaps.append(f"{self.avg.errors:,} rows that the judge failed to rate")
        way = track(self.track).ways.get(self.prompt)
        own = way.types if way else ()  # the types that this prompt asks; empty: all
        if missing := [name for name in self.types_missing if not own or name in own]:
            gaps.append(f"no scores of {', '.join(missing)}")
        elif not own and (rest := self._rest) > 0:
            gaps.append(f"{rest:,} rows that were not asked or not rated")
        return tuple(gaps)

    @property
    def _rest(self) -> int:
        """Rows that are in no count."""
        left_out = self.withheld + (0 if track(self.track).measure.every_row else self.unanswered)
        return self.data.rows - left_out - self.avg.n

    @property
    def coverage(self) -> str:
        """How many of the data's rows have a score: "30 of 1,807"."""
        return f"{self.avg.n_scored:,} of {self.data.rows:,}"

    @property
    def group(self) -> str:
        """Only scores of one group can be compared: one judge, mode, rubric and sampling, the same questions, and the
        same protocol, where there are several."""
        return ", ".join(filter(None, (self.scorer, f"data {self.data.revision}", self.protocol)))

    def column(self, name: str) -> Summary | None:
        """One type's summary, or that of the average."""
        return self.avg if name == AVERAGE else self.types.get(name)


def _named(model: str) -> str:
    """A model without its folder."""
    path = model.replace("\\", "/")
    is_folder = path.startswith(("/", ".", "~", "file:")) or path[1:3] == ":/" or path.count("/") > 1
    is_folder |= "/" in path and " " in path
    return (PurePosixPath(path).name if is_folder else "") or model


def describe_judge(result: Result) -> str:
    """Who gave the scores, for people: each setting with its name. What tells two judges apart is `Result.scorer`."""
    judge = result.judge
    if judge is None or not judge.settings:
        return without_folders(result.scorer)
    settings = ", ".join(f"{name} {value}" for name, value in sorted(judge.settings.items()))
    reading = "" if judge.reading == "ours" else f", {judge.reading} reading"
    how = f"{judge.mode} {judge.sampling}{reading}, rubric {judge.rubric}"
    return f"{_named(judge.model)} ({how}; {without_folders(settings)})"


def _same(where: str, found: float | None, expected: float | None, what: str) -> None:
    if (found is None) != (expected is None) or (
        found is not None and expected is not None and not math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-6)
    ):
        raise ValueError(f"{where} is {found}, but {what} is {expected}")


def parse(text: bytes, where: str) -> Result:
    """The result in the bytes of a file. Raises ValueError that begins with `where` and names each wrong field, what
    came and what is allowed."""
    if len(text) > MAX_BYTES:
        raise UserError(f"{where}: {len(text):,} bytes; a result file has at most {MAX_BYTES:,}")
    try:
        head = json.loads(text)
        if not isinstance(head, dict):
            raise UserError(f"a JSON object is expected, not a {type(head).__name__}")
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: this is no result file (scores.json of a run): {error}") from error
    if (number := head.get("format")) not in FORMATS or isinstance(number, bool):
        readable = " and ".join(map(str, FORMATS))
        raise UserError(f"{where}: format is {short(number)}; this version of easg-bench reads {readable}")
    try:
        return Result.model_validate_json(json.dumps(upgraded(head, FORMAT)) if number == 1 else text)
    except ValidationError as error:
        raise UserError(f"{where}: {'; '.join(map(_reason, error.errors()[:5]))}") from error


def read(path: str | Path) -> Result:
    """The result in a file."""
    path = Path(path)
    with path.open("rb") as file:
        return parse(file.read(MAX_BYTES + 1), str(path))


def files(folder: str | Path) -> list[Path]:
    """The result files of a run folder, the first judge's first; a file stands for itself."""
    folder = Path(folder)
    if folder.is_file():
        return [folder]
    paths = sorted(folder.glob("scores*.json"), key=lambda p: (p.name != "scores.json", p.name))
    if not paths:
        raise FileNotFoundError(f"{folder} has no scores.json: run `easg-bench judge {folder}` first")
    return paths


def _reason(error: Any) -> str:
    """One field's fault in words: "types.before.relative: input should be less than or equal to 1000, not 10000.0"."""
    field = ".".join(map(str, error["loc"])) or "the file"
    if error["type"] == "missing":
        return f"{field} is missing"
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    input_given = "" if error["type"] == "value_error" else f", not {short(error['input'])}"
    return f"{short(field, '')}: {message[:1].lower()}{message[1:]}{input_given}"


def short(value: Any, quote: str = "'") -> str:
    text = f"{quote}{value}{quote}" if isinstance(value, str) else str(value)
    text = "".join("�" if first_unseen(character) == 0 else character for character in text[:100]) + text[100:]
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text):,} characters)"
