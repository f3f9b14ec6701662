"""A run on disk: everything that was asked, answered and rated, each line as soon as it is known.

    RUN/config.json     what makes two runs comparable: data and revision, model, prompt
    RUN/questions.jsonl the questions, where the run was not made from a data set (`easg-bench rejudge`)
    RUN/answers.jsonl   {"id": "...:4:before", "prediction": "It was picked up.", "error": null, ...}
    RUN/verdicts.jsonl  {"id": "...:4:before", "of": "answer" or "truth", "judge": "...", "score": 6.5, ...}
    RUN/scores.json     the result, one judge's; another judge's stands beside it as scores-<hash>.json

A run that was killed goes on where it stopped. The verdict store is the same kind of file for all runs together: a
prompt that a judge has rated once is never rated again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from videoqa import results
from videoqa.asking import VIDEO_ERROR, Videos, ask
from videoqa.engines import Conversation, Engine
from videoqa.judge import Item, Judge, Verdict
from videoqa.locate import locate_rows, summarize_located
from videoqa.scores import PAPER_KEY, Calibration, Scored, summarize

Row = Mapping[str, Any]  # a question: id, clip, type, question, answer, context

# -- lines ------------------------------------------------------------------------------------------------------------


class Lines:
    """A JSON Lines file that many processes may append to and that survives being killed.

    Every record is one write to a file opened for appending, under a lock; what cannot be written whole is taken back.
    A last line that was cut off when a process died is dropped: by `read` with a warning, by `append` for good. Text is
    escaped to ASCII, so the locale, U+2028 and lone surrogates do no harm. `keys` are what every record must have,
    `kinds` of which type the values of some keys must be.
    """

    def __init__(self, path: Path, *keys: str, kinds: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self.keys = keys
        self.kinds = kinds or {}

    def read(self) -> list[dict[str, Any]]:
        """All whole records. Anything else, but for a last line that was cut off, is an error with its line number."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # not while another process writes a line
            lines = file.read().split(b"\n")
        records = []
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if (record := _record(line)) is None and number == len(lines):
                warnings.warn(f"{self.path}, line {number} was cut off and is dropped", stacklevel=2)
                break
            if record is None:
                raise ValueError(f"{self.path}, line {number}: not a JSON object: {line[:60].decode(errors='replace')}")
            if missing := [key for key in self.keys if key not in record]:
                raise ValueError(f"{self.path}, line {number}: a record needs {', '.join(missing)}")
            for key, kind in self.kinds.items():
                if key in record and not isinstance(record[key], kind):
                    raise ValueError(f"{self.path}, line {number}: {key} cannot be {record[key]!r}"[:300])
            records.append(record)
        return records

    def append(self, record: dict[str, Any]) -> None:
        """Put one record on disk. OSError names the file, which is then as it was before."""
        line = json.dumps(record, ensure_ascii=True).encode() + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = file.seek(0, os.SEEK_END)
            if end and file.seek(end - 1) >= 0 and file.read(1) != b"\n":
                file.seek(0)
                tail = file.readall().rpartition(b"\n")[2]
                if _record(tail) is None:
                    end -= len(tail)
                    file.truncate(end)
                else:
                    line = b"\n" + line
            try:
                if file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as error:
                file.truncate(end)
                raise OSError(error.errno, error.strerror, str(self.path)) from error


def _record(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line; None if it is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def write_json(path: Path, data: Any) -> None:
    """A JSON file, escaped to ASCII."""
    write_text(path, json.dumps(data, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write beside and rename, so that the file is always whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


# -- a run ------------------------------------------------------------------------------------------------------------


ANSWER_KINDS = {"id": str, "prediction": str | None, "error": str | None, "located": str}
VERDICT_KINDS = {
    **{"id": str, "of": str, "judge": str, "status": str, "explanation": str, "raw": str},
    **dict.fromkeys(("score", "most_likely", "mass"), float | int | None),
    "probabilities": list | None,
}


class RunMismatch(ValueError):
    """The folder holds a run of something else."""


class Run:
    """The folder of one run. Opening it with another configuration than it was begun with is an error that says what
    differs; `config` None opens what is there."""

    def __init__(self, folder: str | Path, config: dict[str, Any] | None = None) -> None:
        self.folder = Path(folder)
        path = self.folder / "config.json"
        if path.exists():
            found = _run_config(path)
            if config is not None and (differ := [k for k in {**found, **config} if found.get(k) != config.get(k)]):
                told = "; ".join(f"{k} is {found.get(k)!r}, not {config.get(k)!r}" for k in differ)
                raise RunMismatch(f"{self.folder} is another run ({told}): give another --out or delete it")
            self.config = found
        elif config is None:
            raise FileNotFoundError(f"{self.folder} is no run folder: it has no config.json")
        elif self.folder.exists() and any(not p.name.startswith(".") for p in self.folder.iterdir()):
            raise RunMismatch(f"{self.folder} holds something else than a run: give another --out")
        else:
            write_json(path, config)
            self.config = config
        self.questions_file = Lines(self.folder / "questions.jsonl")
        self.answers_file = Lines(self.folder / "answers.jsonl", "id", "prediction", "error", kinds=ANSWER_KINDS)
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

    def answers(self) -> dict[str, dict[str, Any]]:
        """The last answer line of each id."""
        return {line["id"]: line for line in self.answers_file.read()}

    def verdicts(self, judge: str, of: str) -> dict[str, Verdict]:
        """The judge's last verdict on each id's answer (`of` "answer") or ground truth ("truth")."""
        lines = (v for v in self.verdicts_file.read() if v["judge"] == judge and v["of"] == of)
        return {line["id"]: verdict_of(line) for line in lines}

    def scores_path(self, judge: str) -> Path:
        """Where this judge's result stands: scores.json for the run's first judge."""
        first = self.folder / "scores.json"
        if not first.exists():
            return first
        found = _record(first.read_bytes())
        if found is None or not isinstance(found.get("judge"), dict) or "key" not in found["judge"]:
            raise ValueError(f"{first} is no result: delete it and judge again, the verdicts are kept")
        if found.get("format", results.FORMAT) != results.FORMAT:
            raise ValueError(f"{first} was written by a newer easg-bench (format {found['format']}): update")
        if found["judge"]["key"] == judge:
            return first
        return self.folder / f"scores-{short_hash(judge)}.json"


def _run_config(path: Path) -> dict[str, Any]:
    """What a run's config.json holds; many other folders have a file of this name."""
    found = _record(path.read_bytes())
    kinds = {**dict.fromkeys(("data", "revision", "model", "prompt"), str), "config": str, "limit": int | None}
    if found is None or not {"data", "revision", "model", "prompt"} <= set(found):
        raise RunMismatch(f"{path.parent} holds something else than a run: its config.json is not a run's")
    if found.get("format", 1) != 1:
        raise RunMismatch(f"{path} was written by a newer easg-bench (format {found['format']}): update")
    for key, kind in (kinds | {"shard": str | None, "rows": int}).items():
        if key in found and not isinstance(found[key], kind):
            raise RunMismatch(f"{path}: {key} cannot be {found[key]!r}"[:300])
    return found


def short_hash(text: str) -> str:
    """Twelve hex digits that stand for a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def line_of(verdict: Verdict) -> dict[str, Any]:
    """The verdict as a record for a line."""
    return {k: v for k, v in asdict(verdict).items() if v is not None or k == "score"}


def verdict_of(line: dict[str, Any]) -> Verdict:
    """The verdict in a line."""
    fields = {k: line[k] for k in Verdict.__dataclass_fields__ if k in line}
    if fields.get("probabilities") is not None:
        fields["probabilities"] = tuple(fields["probabilities"])
    return Verdict(**fields)


# -- the verdict store ------------------------------------------------------------------------------------------------

STORE_FORMAT = 1


def default_store() -> Path:
    """Beside what else is kept in the Hugging Face cache folder."""
    from huggingface_hub.constants import HF_HOME

    return Path(HF_HOME) / "easg-bench" / "verdicts"


class VerdictStore:
    """What one judge said of which prompt, for all runs. Errors are not kept, so that they are tried again."""

    def __init__(self, folder: str | Path, judge: str) -> None:
        self._lines = Lines(Path(folder) / f"{short_hash(judge)}.jsonl", kinds=VERDICT_KINDS | {"prompt": str})
        self._known: dict[str, Verdict] = {}
        for line in self._lines.read():
            if line.get("format", STORE_FORMAT) != STORE_FORMAT:
                raise ValueError(
                    f"{self._lines.path} was written by a newer easg-bench (format {line['format']}, this one reads "
                    f"{STORE_FORMAT}): update, or give another --store"
                )
            if "prompt" in line:
                self._known[line["prompt"]] = verdict_of(line)
        if not self._lines.path.exists():
            self._lines.append({"format": STORE_FORMAT, "judge": judge})

    def get(self, prompt: str) -> Verdict | None:
        """The verdict on the prompt with this hash, if there is one."""
        return self._known.get(prompt)

    def put(self, prompt: str, verdict: Verdict) -> None:
        """Keep a verdict, unless it is an error."""
        if verdict.status != "judge_error" and prompt not in self._known:
            self._known[prompt] = verdict
            self._lines.append({"prompt": prompt, **line_of(verdict)})


def prompt_hash(conversation: Conversation) -> str:
    """Identifies a prompt by its whole text."""
    text = json.dumps(list(conversation), ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def rate_once(judge: Judge, items: Sequence[Item], store: VerdictStore | None) -> Iterator[tuple[int, Verdict]]:
    """Judge.rate, but each different prompt is asked once, and not at all if the store knows it."""
    conversations: dict[str, Conversation] = {}
    waiting: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        conversation = judge.prompt(item)
        if conversation is None:
            yield index, judge.empty
            continue
        key = prompt_hash(conversation)
        if store is not None and (verdict := store.get(key)) is not None:
            yield index, verdict
        else:
            conversations[key] = conversation
            waiting.setdefault(key, []).append(index)
    keys = list(waiting)
    for k, verdict in judge.rate_prompts([conversations[key] for key in keys]):
        if store is not None:
            store.put(keys[k], verdict)
        yield from ((index, verdict) for index in waiting[keys[k]])


@contextlib.contextmanager
def whole(out: Path) -> Iterator[Path]:
    """A folder beside `out` that becomes `out` once everything is in it."""
    fresh = out.with_name(f".{out.name}.new-{os.getpid()}")
    try:
        yield fresh
        fresh.replace(out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


# -- the steps of a run -----------------------------------------------------------------------------------------------


def data_revision(rows: Sequence[Row]) -> str:
    """Identifies a set of questions by its content, wherever it was loaded from and in whatever order."""
    kept = sorted([row[k] for k in ("id", "type", "question", "answer", "context")] for row in rows)
    return short_hash(json.dumps(kept, ensure_ascii=True))


def even_sample(rows: Sequence[Row], limit: int | None) -> list[Row]:
    """At most `limit` rows, the same number of each type as far as there are so many, spread evenly over each type's
    rows and kept in their order."""
    if limit is None or limit >= len(rows):
        return list(rows)
    if limit < 1:
        raise ValueError(f"limit {limit}: at least 1 row")
    by_type: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        by_type.setdefault(row["type"], []).append(index)
    quota = dict.fromkeys(by_type, 0)
    while sum(quota.values()) < limit:
        fewest = min((t for t in by_type if quota[t] < len(by_type[t])), key=lambda t: quota[t])
        quota[fewest] += 1
    chosen = {by_type[t][i * len(by_type[t]) // n] for t, n in quota.items() for i in range(n)}
    return [rows[i] for i in sorted(chosen)]


def shard_of(rows: Sequence[Row], shard: str | None) -> list[Row]:
    """The part "2/4" of the rows: those of every fourth clip, beginning with the second; all rows for None."""
    if shard is None:
        return list(rows)
    match = re.fullmatch(r"(\d+)/(\d+)", shard)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"shard {shard!r}: give the part and the number of parts, from 1/4 to 4/4")
    place = {clip: n for n, clip in enumerate(dict.fromkeys(row["clip"] for row in rows))}
    return [row for row in rows if place[row["clip"]] % int(match[2]) == int(match[1]) - 1]


def merge_runs(shards: Sequence[Run], out: str | Path) -> Run:
    """One run of all its shards: answers and verdicts are put together, scores are for `easg-bench judge` to make.
    Raises RunMismatch where the shards are not all the parts of one run."""
    parts = sorted(str(run.config.get("shard")) for run in shards)
    wholes = [{k: v for k, v in run.config.items() if k != "shard"} for run in shards]
    for run, whole in zip(shards, wholes, strict=True):
        if differ := [k for k in {**whole, **wholes[0]} if whole.get(k) != wholes[0].get(k)]:
            told = "; ".join(f"{k} is {whole.get(k)!r}, not {wholes[0].get(k)!r}" for k in differ)
            raise RunMismatch(f"{run.folder} and {shards[0].folder} are no shards of one run: {told}")
    count = parts[0].partition("/")[2]
    if parts != sorted(f"{n}/{count}" for n in range(1, int(count or 1) + 1)):
        raise RunMismatch(f"all shards of one run are needed, each once; these are {', '.join(parts)}")
    merged = Run(out, {**wholes[0], "shard": None})
    for lines in ("answers_file", "verdicts_file"):
        have = {json.dumps(line, sort_keys=True) for line in getattr(merged, lines).read()}
        for run in shards:
            for line in getattr(run, lines).read():
                if json.dumps(line, sort_keys=True) not in have:
                    getattr(merged, lines).append(line)
    return merged


def answer_rows(
    engine: Engine, rows: Sequence[Row], run: Run, videos: Videos | None = None
) -> Iterator[dict[str, Any]]:
    """Ask the model what the run lacks; every answer is on disk when its line comes out here. A row that failed has
    prediction None and its error, and is asked again the next time."""
    known = run.answers()
    todo = [row for row in rows if known.get(row["id"], {"error": "not asked"})["error"] is not None]
    prompt, longest = run.config["prompt"], run.config["max_new_tokens"]
    for index, answer in ask(engine, todo, prompt, max_new_tokens=longest, videos=videos):
        line: dict[str, Any] = {"id": todo[index]["id"], "prediction": answer.text, "error": answer.error}
        line["finished"] = answer.finished
        extra = {"located": answer.located, "frames": answer.shown or None, "warning": answer.warning}
        line |= {name: value for name, value in extra.items() if value is not None}
        run.answers_file.append(line)
        yield line


def judge_rows(
    judge: Judge, rows: Sequence[Row], predictions: Mapping[str, str | None], run: Run, store: VerdictStore | None
) -> Iterator[tuple[str, Verdict]]:
    """Rate the answers and, for the calibration, the ground truths that the run has no verdict on yet. Both go to the
    judge together, since the rows of a clip share their prompt's beginning. Judge errors are tried again."""
    asked: list[tuple[Row, str, str]] = []
    items = []
    for of in ("answer", "truth"):
        lines = (v for v in run.verdicts_file.read() if v["judge"] == judge.key and v["of"] == of)
        known = {line["id"]: (line["status"], line.get("rated")) for line in lines}
        for row in rows:
            if of == "answer" and row["id"] not in predictions:
                continue
            text = predictions[row["id"]] if of == "answer" else row["answer"]
            digest = short_hash(text or "")
            status, rated = known.get(row["id"], ("judge_error", None))
            if status == "judge_error" or rated not in (None, digest):  # None: an imported verdict
                asked.append((row, of, digest))
                items.append(Item(row["question"], row["answer"], text, row["context"]))
    for index, verdict in rate_once(judge, items, store):
        row, of, digest = asked[index]
        line = {"id": row["id"], "of": of, "judge": judge.key, "rated": digest, **line_of(verdict)}
        run.verdicts_file.append(line)
        yield row["id"], verdict


def scored(rows: Sequence[Row], verdicts: Mapping[str, Verdict]) -> list[Scored]:
    """The rows that have a verdict, as records for videoqa.scores."""
    return [
        Scored(row["id"], row["clip"], row["type"], verdicts[row["id"]].score, verdicts[row["id"]].status)
        for row in rows
        if row["id"] in verdicts
    ]


def calibration(judge: str, rows: Sequence[Row], truths: Mapping[str, Verdict]) -> Calibration:
    """What the judge of this key gives the ground truth of these questions, from its verdicts on it; for the paper's
    judge the paper's constants."""
    if judge == PAPER_KEY:
        return Calibration.paper()
    return Calibration.of(f"{judge}, data {data_revision(rows)}", scored(rows, truths))


def result(run: Run, rows: Sequence[Row], judge: Mapping[str, Any]) -> dict[str, Any]:
    """What scores.json holds (videoqa.results): equation 1 on the run's verdicts by the judge that `judge` describes,
    and everything that a number needs to be compared with another."""
    answers = run.answers()
    given, truths = (run.verdicts(judge["key"], of) for of in ("answer", "truth"))
    given = {name: v for name, v in given.items() if answers.get(name, {"error": "not asked"})["error"] is None}
    scale = calibration(judge["key"], rows, truths)
    scores = summarize(scored(rows, given), scale, key=scale.key)
    masses = [v.mass for v in given.values() if v.mass is not None]
    errors = [answers.get(row["id"], {"error": "not asked"})["error"] for row in rows]
    replies = {name: line["located"] for name, line in answers.items() if "located" in line}
    command = " ".join(" ".join(sys.argv).split())
    return {
        "format": results.FORMAT,
        "model": run.config["model"],
        "kind": {"frames": "video", "two-stage": "two-stage"}.get(run.config["prompt"], "language-only"),
        "prompt": run.config["prompt"],
        "frames": run.config.get("frames"),
        "data": {k: run.config[k] for k in ("data", "config", "limit", "revision", "rows")},
        "judge": {**judge, "mass": math.fsum(masses) / len(masses) if masses else None},
        "calibration": {"means": dict(scale.means), "n": len(scale.rows)},
        "types": {t: asdict(s) for t, s in scores.by_type.items()},
        "avg": asdict(scores.avg),
        "types_missing": list(scores.types_missing),
        "unanswered": sum(error is not None for error in errors),
        "video_errors": sum((error or "").startswith(VIDEO_ERROR) for error in errors),
        "located": summarize_located(locate_rows(rows, replies)) or None,
        "versions": _versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command if len(command) <= results.LONGEST else f"{command[: results.LONGEST - 1]}…",
    }


def describe(judge: Judge) -> dict[str, Any]:
    """What a result says of its judge, but for what the verdicts tell."""
    return {
        "key": judge.key,
        "model": judge.engine.name,
        "settings": judge.engine.settings,
        "mode": judge.mode,
        "sampling": judge.sampling,
        "reading": judge.reading,
        "rubric": f"{judge.rubric.name}-{judge.rubric.fingerprint}",
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("easg-bench", "datasets", "transformers", "torch", "vllm", "scipy"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
