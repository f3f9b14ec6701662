"""A run on disk: everything that was asked, answered and rated, each line as soon as it is known.

    RUN/config.json     what makes two runs comparable: data and revision, model, prompt
    RUN/questions.jsonl the questions, where the run was not made from a data set (`easg-bench rejudge`)
    RUN/answers.jsonl   {"id": "...:4:before", "prediction": "It was picked up.", "error": null, ...}
    RUN/steps.jsonl     what an agent did for each answer (videoqa.steps)
    RUN/verdicts.jsonl  {"id": "...:4:before", "of": "answer" or "truth", "judge": "...", "score": 6.5, ...}
    RUN/scores.json     the result, one judge's; another judge's stands beside it as scores-<hash>.json

A run that was killed goes on where it stopped. The verdict store is the same kind of file for all runs together: a
prompt that a judge has rated once is never rated again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from videoqa import repeats, results, steps
from videoqa.asking import VIDEO_ERROR
from videoqa.benchmark import Track, track, track_of
from videoqa.captions import with_captions
from videoqa.choices import rearranged
from videoqa.errors import UserError
from videoqa.files import Lines, record_in, short_hash, write_json
from videoqa.judge import MIN_MASS
from videoqa.rating import Of, arrangements, breakdowns, is_withheld, rate, scored, summarize
from videoqa.repeats import repeated
from videoqa.reply import STATUSES, Verdict
from videoqa.rows import Row, clips_revision, questions, revision, sample, shard
from videoqa.scorer import Scorer
from videoqa.scores import Calibration, Scored, each_once
from videoqa.store import VERDICT_KINDS, VerdictStore, check_scale, line_of, verdict_of
from videoqa.usage import usage_of

NOT_ASKED: Mapping[str, Any] = {"error": "not asked"}
SKIPPED = Verdict(0.0, "skipped", "its question was lost already")
ANSWER_KINDS = {
    **{"id": str, "prediction": str | None, "error": str | None, "located": str, "reasoning": str},
    **{"probabilities": list | None, "mass": float | int | None},
    **{"prompt_tokens": int, "new_tokens": int, "seconds": float | int},
}


class RunMismatch(UserError):
    """The folder holds a run of something else."""


class Run:
    """The folder of one run. Opening it with another configuration than it was begun with is an error that says what
    differs; `config` None opens what is there."""

    def __init__(self, folder: str | Path, config: dict[str, Any] | None = None) -> None:
        self.folder = Path(folder)
        path = self.folder / "config.json"
        if config is None and not path.exists():
            raise FileNotFoundError(f"{self.folder} is no run folder: it has no config.json")
        kept = _run_config(path) if path.exists() else None
        if config is not None:
            _check_place(self.folder, kept, config)
        if kept is None and config is not None:
            write_json(path, config)
        self.config: dict[str, Any] = kept or config or {}
        self.questions_file = Lines(self.folder / "questions.jsonl")
        self.answers_file = Lines(self.folder / "answers.jsonl", "id", "prediction", "error", kinds=ANSWER_KINDS)
        self.steps_file = Lines(self.folder / steps.FILE)
        self.verdicts_file = Lines(
            self.folder / "verdicts.jsonl", "id", "of", "judge", "score", "status", kinds=VERDICT_KINDS
        )

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep a second process from running the same run at the same time."""
        with (self.folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RunMismatch(f"{self.folder} is being run by another process") from error
            yield

    @property
    def track(self) -> Track:
        """The benchmark that the run is of."""
        return track(self.config.get("track"))

    def answers(self) -> dict[str, dict[str, Any]]:
        """The last answer line of each id."""
        return {line["id"]: line for line in self.answers_file.read()}

    def verdicts(self, judge: str, of: str) -> dict[str, Verdict]:
        """The judge's last verdict on each id's answer (`of` "answer") or ground truth ("truth")."""
        lines = (v for v in self.verdicts_file.read() if v["judge"] == judge and v["of"] == of)
        return {line["id"]: verdict_of(line, f"{self.verdicts_file.path}: {line['id']}") for line in lines}

    def scores_path(self, judge: str) -> Path:
        """Where this judge's result stands: scores.json for the run's first judge."""
        first = self.folder / "scores.json"
        if not first.exists():
            return first
        kept = record_in(first.read_bytes()) or {}
        key = kept.get("scorer") or (kept.get("judge") or {}).get("key")
        if not isinstance(key, str):
            raise UserError(f"{first} is no result: delete it and judge again, the verdicts are kept")
        if kept.get("format", results.FORMAT) not in results.FORMATS:
            raise UserError(f"{first} was written by a newer easg-bench (format {kept['format']}): update")
        if key == judge:
            return first
        return self.folder / f"scores-{short_hash(judge)}.json"


def check_place(folder: Path, known: Mapping[str, Any]) -> None:
    """Raise RunMismatch (NotADirectoryError for a file) where a run with these parts of its config cannot be begun or
    gone on with in this folder."""
    path = folder / "config.json"
    kept = _run_config(path) if path.exists() else None
    _check_place(folder, kept and {key: value for key, value in kept.items() if key in known}, known)


def _check_place(folder: Path, kept: Mapping[str, Any] | None, config: Mapping[str, Any]) -> None:
    if kept is None:
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"{folder} is a file: give another --out")
        if folder.exists() and any(not path.name.startswith(".") for path in folder.iterdir()):
            raise RunMismatch(f"{folder} holds something else than a run: give another --out")
    elif difference := _difference(kept, config):
        raise RunMismatch(f"{folder} is another run ({difference}): give another --out or delete it")


def _difference(mine: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """What differs between two configs, in words; a config from before there were tracks names none."""
    keys = [key for key in {**mine, **other} if mine.get(key) != other.get(key)]
    if "clips" in keys and None in (mine.get("clips"), other.get("clips")):  # a run from before it was kept
        keys.remove("clips")
    if "track" in keys and track(mine.get("track")).name == track(other.get("track")).name:
        keys.remove("track")
    return "; ".join(f"{key} is {mine.get(key)!r}, not {other.get(key)!r}" for key in keys)


def _run_config(path: Path) -> dict[str, Any]:
    """What a run's config.json holds; many other folders have a file of this name."""
    config = record_in(path.read_bytes())
    kinds: dict[str, Any] = {**dict.fromkeys(("data", "revision", "model", "prompt"), str), "config": str}
    if config is None or not {"data", "revision", "model", "prompt"} <= set(config):
        raise RunMismatch(f"{path.parent} holds something else than a run: its config.json is not a run's")
    if config.get("format", 1) != 1:
        raise RunMismatch(f"{path} was written by a newer easg-bench (format {config['format']}): update")
    kinds["experts"] = dict | None
    kinds |= dict.fromkeys(("limit", "repeats"), int | None)
    kinds |= dict.fromkeys(("protocol", "order", "captions", "shard", "clips"), str | None)
    for key, kind in (kinds | {"rows": int}).items():
        if key in config and not isinstance(config[key], kind):
            raise RunMismatch(f"{path}: {key} cannot be {config[key]!r}"[:300])
    return config


def merge_runs(shards: Sequence[Run], out: str | Path) -> Run:
    """One run of all its shards: answers and verdicts are put together, scores are for `easg-bench judge` to make.
    Raises RunMismatch where the shards are not all the parts of one run, or one of them has not been answered whole."""
    parts = sorted(str(run.config.get("shard")) for run in shards)
    wholes = [{k: v for k, v in run.config.items() if k != "shard"} for run in shards]
    for run, whole in zip(shards, wholes, strict=True):
        if difference := _difference(whole, wholes[0]):
            raise RunMismatch(f"{run.folder} and {shards[0].folder} are no shards of one run: {difference}")
    count = parts[0].partition("/")[2]
    if parts != sorted(f"{n}/{count}" for n in range(1, int(count or 1) + 1)):
        raise RunMismatch(f"all shards of one run are needed, each once; these are {', '.join(parts)}")
    for run in shards:
        rows, answers = rows_of(run), run.answers()
        if left := sum(row["id"] not in answers for row in rows):
            raise RunMismatch(f"{run.folder}: {left} of its {len(rows)} rows have not been asked yet: let it end first")
    merged = Run(out, {**wholes[0], "shard": None})
    for lines in ("answers_file", "verdicts_file", "steps_file"):
        have = {json.dumps(line, sort_keys=True) for line in getattr(merged, lines).read()}
        for run in shards:
            for line in getattr(run, lines).read():
                if json.dumps(line, sort_keys=True) not in have:
                    getattr(merged, lines).append(line)
    return merged


def judge_rows(
    scorer: Scorer,
    rows: Sequence[Row],
    predictions: Mapping[str, str | None],
    run: Run,
    store: VerdictStore | None,
    again: bool = False,
) -> Iterator[tuple[str, Verdict]]:
    """Rate the answers and, where the scorer wants it, the ground truths that the run has no verdict on yet: those of
    the types that have an answer. Errors of the judge are tried again, with `again` also replies that could not be
    read."""
    settled = (
        ("ok", "empty_prediction", "skipped")
        if again
        else tuple(status for status in STATUSES if status != "judge_error")
    )
    asked: list[tuple[Of, Row, str | None]] = []
    verdicts = [line for line in run.verdicts_file.read() if line["judge"] == scorer.key]
    skipped = {name for name, line in run.answers().items() if line.get("skipped")}
    sides: tuple[Of, ...] = ("answer", "truth") if scorer.needs_truth else ("answer",)
    answered = {row["type"] for row in rows if row["id"] in predictions}
    for of in sides:
        known = {line["id"]: (line["status"], line.get("rated")) for line in verdicts if line["of"] == of}
        for row in rows:
            if row["id"] not in predictions if of == "answer" else row["type"] not in answered:
                continue
            text = predictions[row["id"]] if of == "answer" else row["answer"]
            status, rated = known.get(row["id"], ("judge_error", None))
            if status not in settled or rated not in (None, short_hash(text or "")):  # None: an imported verdict
                if row["id"] in skipped:
                    yield row["id"], _rated(run, scorer, of, row, text, SKIPPED)
                else:
                    asked.append((of, row, text))
    for index, verdict in rate(scorer, asked, store):
        of, row, text = asked[index]
        yield row["id"], _rated(run, scorer, of, row, text, verdict)


def _rated(run: Run, scorer: Scorer, of: Of, row: Row, text: str | None, verdict: Verdict) -> Verdict:
    """The verdict, which is on disk now."""
    line = {"id": row["id"], "of": of, "judge": scorer.key, "rated": short_hash(text or ""), **line_of(verdict)}
    run.verdicts_file.append(line)
    return verdict


def result(run: Run, rows: Sequence[Row], scorer: Mapping[str, Any]) -> dict[str, Any]:
    """What scores.json holds (videoqa.results): the track's measure of the run's verdicts by the scorer that `scorer`
    describes, and everything that a number needs to be compared with another."""
    answers = run.answers()
    key, of_track = scorer["key"], run.track
    given, truths = (run.verdicts(key, of) for of in ("answer", "truth"))
    if values := scorer.get("values"):
        for name, verdict in [*given.items(), *truths.items()]:
            check_scale(verdict, values, f"{run.verdicts_file.path}: {name}")
    given = {name: v for name, v in given.items() if answers.get(name, NOT_ASKED)["error"] is None}
    scores, scale = summarize(of_track, key, rows, given, truths)
    if scale is None and truths:  # what the judge gives the ground truth stands beside scores that it does not divide
        scale = Calibration.of(key, scored(rows, truths), types=of_track.types)
    masses = [v.mass for v in given.values() if v.mass is not None]
    about = {"mass": math.fsum(masses) / len(masses) if masses else None, "low_mass": sum(m < MIN_MASS for m in masses)}
    errors = [answers.get(row["id"], NOT_ASKED)["error"] for row in rows]
    skipped = sum(v.status == "skipped" for v in given.values())
    answered = {name: line for name, line in answers.items() if line["error"] is None}
    extras = of_track.extras.summary(rows, answered) if of_track.extras and not skipped else {}

    def one_pass(of: Sequence[Row]) -> float | None:
        return summarize(of_track, key, of, given, truths)[0].avg.value

    command = " ".join(shlex.join(sys.argv).split())
    way = of_track.ways.get(run.config["prompt"])
    return {
        "format": results.FORMAT,
        "track": of_track.name,
        "measure": of_track.measure.name,
        "model": run.config["model"],
        "kind": way.kind if way else of_track.kinds[0],
        "prompt": run.config["prompt"],
        "frames": run.config.get("frames"),
        "protocol": run.config.get("protocol"),
        "experts": run.config.get("experts"),
        "order": run.config.get("order"),
        "settings": {**run.config.get("model_settings", {}), **_count_of(run)},
        "data": {k: run.config[k] for k in ("data", "config", "limit", "revision", "rows")},
        "scorer": key,
        "judge": {**scorer, **about} if "model" in scorer else None,
        "calibration": {"means": dict(scale.means), "n": len(scale.rows)} if scale else None,
        "types": {t: asdict(s) for t, s in scores.by_type.items()},
        "avg": asdict(scores.avg),
        "types_missing": list(scores.types_missing),
        "unanswered": sum(error is not None for error in errors),
        "refusals": sum(line.get("refusal") is True for line in answered.values()),
        "cut": sum(line.get("finished") is False for line in answered.values()),
        "video_errors": sum((error or "").startswith(VIDEO_ERROR) for error in errors),
        "usage": usage_of(answered.values()),
        "withheld": questions(row for row in rows if is_withheld(row)),
        "skipped": skipped,
        "unmatched": sum(v.matched is not None for v in given.values()),
        "matched": sum(v.matched is not None and v.status == "ok" for v in given.values()),
        "extras": extras | arrangements(rows, given) | repeats.figures(rows, given, one_pass),
        "breakdowns": {
            name: {value: asdict(one) for value, one in of.items()}
            for name, of in breakdowns(of_track, key, rows, given, truths).items()
        },
        "versions": _versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command if len(command) <= results.LONGEST else f"{command[: results.LONGEST - 1]}…",
    }


def _count_of(run: Run) -> dict[str, int]:
    """How many answers each question got, where it is not one."""
    return {"repeats": count} if (count := run.config.get("repeats")) else {}


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in ("easg-bench", "datasets", "transformers", "torch", "vllm", "ray", "litellm", "scipy"):
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


# -- the questions of a run -------------------------------------------------------------------------------------------


def opened_data(benchmark: str | None, data: str | None) -> tuple[Track, str]:
    """The track and the data that a command line names: a folder by its full path, so that a run can be gone on with
    from another folder; a Hub repo as it is."""
    of_track = track_of(data) if benchmark is None and data is not None else track(benchmark)
    place = data or of_track.repo
    return of_track, str(Path(place).resolve()) if Path(place).is_dir() else place


def load_rows(of_track: Track, data: str, config: str | None = None) -> list[Row]:
    """The questions of a config (None: the track's default one). Raises UserError for a type that the track does not
    have and an id that comes twice: now, and not when hours of answers are to be scored."""
    config = config or of_track.configs[0]
    rows = of_track.load(data, config)
    try:
        each_once((Scored(row["id"], row["clip"], row["type"], None) for row in rows), of_track.types)
    except UserError as error:
        raise UserError(f"{data}, config {config}: {error}") from error
    return rows


def whole_clips(of_track: Track, data: str, config: str) -> list[Row]:
    """The rows of the config, or of the track's default one where it lacks questions of its clips: they tell where the
    clips lie in their videos."""
    return load_rows(of_track, data, config if config in of_track.configs else None)


def asked_rows(of_track: Track, config: Mapping[str, Any]) -> list[Row]:
    """The rows that a run's config says: a sample of the data's, with captions, their options rearranged."""
    rows = load_rows(of_track, config["data"], config["config"])
    if (captions := config.get("captions")) is not None:
        rows = with_captions(rows, Path(captions))
    return repeated(rearranged(sample(rows, config["limit"]), config.get("order")), config.get("repeats"))


def rows_of(run: Run) -> list[Row]:
    """The questions that a run asks, checked to be those that were answered."""
    kept: list[Row] = list(run.questions_file.read())
    config = run.config
    rows = kept or asked_rows(run.track, config)
    if revision(rows) != config["revision"]:
        raise RunMismatch(
            f"{run.folder} was answered on revision {config['revision']} of {config['data']}, which is now "
            f"{revision(rows)}: run it again with another --out"
        )
    if config.get("clips") and not kept:
        now = clips_revision(whole_clips(run.track, config["data"], config["config"]))
        if now != config["clips"]:
            raise RunMismatch(
                f"{run.folder} was shown clips of {config['data']} that now lie elsewhere in their videos (clips "
                f"{config['clips']}, now {now}): run it again with another --out"
            )
    way = run.track.ways.get(config["prompt"])  # None: imported answers
    return shard(way.of_its_types(rows) if way else rows, config.get("shard"))
