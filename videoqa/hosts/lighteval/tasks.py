"""The benchmark as lighteval tasks: one per question type and prompt, judged as `easg-bench run` judges.

    easg_bench:before               the question alone                    any model that lighteval runs
    easg_bench_narrations:before    the clip's narrations, the question   any model that lighteval runs
    easg_bench_frames:before        frames of the clip, the question      `lighteval custom` with tasks/video_model.py
    easg_bench_two_stage:before     first locate, then ask                the same; `before` and `after` only

What a task needs to know comes from the environment, read when it is first needed, so that a task file can be listed
and imported without any of it:

    EASG_BENCH_DATA             the dataset: a folder or a Hub repo (default: the repo's name in easg_bench.py)
    EASG_BENCH_JUDGE            the judge, as in `easg-bench run --judge`; options behind a question mark
    EASG_BENCH_JUDGE_MODE       dist, score or paper (default: dist where the engine has it, else score)
    EASG_BENCH_JUDGE_RUBRIC     `ours` (default), `paper` (after `easg-bench fetch`) or a file
    EASG_BENCH_JUDGE_SAMPLING   greedy (default) or paper
    EASG_BENCH_STORE            folder of the verdict store (default: in the HF cache folder)
    EASG_BENCH_VIDEOS           frames and two stages: the folder of the videos
    EASG_BENCH_FRAMES           frames and two stages: which frames (default: uniform:8)

The judge is opened when the answers are there and the model under test is gone, once for all tasks.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import logging
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lighteval.metrics.metrics import Metrics
from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from videoqa import benchmark
from videoqa.benchmark import ScorerOptions, Track
from videoqa.choices import LETTERS
from videoqa.engines import open_engine
from videoqa.errors import UserError
from videoqa.frames import DEFAULT, Policy
from videoqa.hosts.lighteval import families, metric_name
from videoqa.measures import alike_in_all, right_in_all
from videoqa.rating import Of, is_withheld, rate, scored_row
from videoqa.reply import Verdict
from videoqa.rows import HUB_NAME
from videoqa.scorer import Scorer
from videoqa.scores import Calibration, Scored
from videoqa.store import VerdictStore, default_store, line_of
from videoqa.videos import clip_ends

FIELDS = (
    *("id", "clip", "video", "type", "question", "answer", "choices", "gold", "context"),
    *("start_s", "end_s", "clip_start_s"),
)
ROTATED = ("group", "order")  # of rows that are one arrangement of a question's options

log = logging.getLogger(__name__)

# every row that was rated in this process, by the first part of its task's name, for the average over the types
rated: dict[str, list[dict[str, Any]]] = {}

# -- settings ---------------------------------------------------------------------------------------------------------


def setting(name: str, otherwise: str | None = None) -> str:
    """The environment variable EASG_BENCH_<name>. Raises ValueError where it is needed and not set."""
    value = os.environ.get(f"EASG_BENCH_{name}", "").strip() or otherwise
    if value is None:
        what = {"JUDGE": "the judge: a model folder, a Hub id, vllm:ID or server:NAME@http://HOST/v1"}
        what["VIDEOS"] = "the folder of the videos"
        raise UserError(f"EASG_BENCH_{name} is not set; it names {what[name]}")
    return value


def policy() -> Policy:
    """Which frames are shown."""
    return Policy.parse(setting("FRAMES", str(DEFAULT)))


@functools.cache
def scorer(track: str) -> Scorer:
    """The scorer of a track's tasks, opened once. (Not a part of the metric: lighteval copies and hashes metrics.)"""
    of_track = benchmark.track(track)
    engine = open_engine(setting("JUDGE")) if of_track.rubric is not None else None
    options = ScorerOptions(
        setting("JUDGE_RUBRIC", "ours"), setting("JUDGE_MODE", "") or None, setting("JUDGE_SAMPLING", "greedy")
    )
    return of_track.scorer(engine, options)


# -- tasks ------------------------------------------------------------------------------------------------------------


def task_table(track: Track, data: str, config: str | None = None) -> list[LightevalTaskConfig]:
    """All tasks of a track on the dataset `data`: one a question type, or, where there is but one type, those of the
    config (None: the track's default one). Multiple choice is asked by generation, and by log-probability as well."""
    if Path(data).is_dir() or not HUB_NAME.fullmatch(data):  # a bare name would be answered by the cache
        data = str(Path(data).resolve())
    config = config or track.configs[0]

    @functools.cache
    def ends() -> dict[str, float]:
        return clip_ends(track.load(data, config))

    tasks = [
        LightevalTaskConfig(
            name=f"{family}:{kind}",
            prompt_function=functools.partial(put, track=track.name, prompt=way, ends=ends),
            hf_repo=data,
            hf_subset=kind if len(track.types) > 1 else config,
            hf_avail_splits=["test"],
            evaluation_splits=["test"],
            metrics=[metric(track)],
            generation_size=track.max_new_tokens,
            stop_sequence=[],
            version=_version(track, data),
        )
        for family, (of_track, way) in families().items()
        if of_track is track
        for kind in track.ways[way].types or track.types
    ]
    # (not of rows that are arrangements of one question: lighteval's mean over them is no CircularEval)
    text_ways = {way: one for way, one in track.ways.items() if one.protocols and not (one.frames or one.captions)}
    return tasks + [
        LightevalTaskConfig(
            name=f"{track.family}_likelihood:{kind}",
            prompt_function=functools.partial(put_letters, track=track.name, prompt=way),
            hf_repo=data,
            hf_subset=config,
            hf_avail_splits=["test"],
            evaluation_splits=["test"],
            metrics=[Metrics.loglikelihood_acc],
            generation_size=-1,
            stop_sequence=[],
            version=_version(track, data),
        )
        for way in ({} if track.grouped else text_ways)
        for kind in track.types
    ]


_NOTHING = {"question": "", "context": "", "choices": None}  # a row that shows the fixed texts of a prompt


def _version(track: Track, data: str) -> int:
    """A number that changes with the prompts, the frames and the data. lighteval keeps answers by the task's text and
    the number of the row, so answers to other data or another prompt would be taken for these."""
    files = sorted(path.name for path in Path(data).glob("data/*.parquet"))  # named by their content
    texts = [[way.instruction, way.query(_NOTHING), *way.texts] for way in track.ways.values()]
    known = json.dumps([files, texts, setting("FRAMES", str(DEFAULT))])
    return int(hashlib.sha256(known.encode()).hexdigest()[:6], 16)


def put(
    line: dict[str, Any],
    task_name: str | None = None,
    *,
    track: str,
    prompt: str,
    ends: Callable[[], Mapping[str, float]],
) -> Doc:
    """A row as lighteval's Doc: the same prompt as `easg-bench run` makes, and in `specific` all that judging needs."""
    of_track = benchmark.track(track)
    if of_track.rubric is not None:
        setting("JUDGE")  # before a model is loaded
    row = {name: line[name] for name in (*FIELDS, *(name for name in ROTATED if name in line))}
    way = of_track.ways[prompt]
    if way.frames:
        setting("VIDEOS")
        policy()
        row["clip_end_s"] = ends().get(line["clip"])
    return Doc(
        task_name=task_name or "",
        query=way.query(line),
        instruction=way.instruction,
        choices=list(LETTERS[: len(row["choices"])]) if row["choices"] else [line["answer"]],
        gold_index=row["gold"] or 0,
        specific={**row, "prompt": prompt, "track": track},
    )


def put_letters(line: dict[str, Any], task_name: str | None = None, *, track: str, prompt: str) -> Doc:
    """A row of multiple choice for lighteval's own log-probabilities of the letters: the prompt of `put`."""
    if line["gold"] is None:
        raise UserError(f"question {line['id']}: its right answer is withheld, so it cannot be scored here")
    return put(line, task_name, track=track, prompt=prompt, ends=dict)


# -- the metric -------------------------------------------------------------------------------------------------------


def metric(track: Track) -> SampleLevelMetric:
    """Verdicts, the track's measure and its extras as one metric."""
    return SampleLevelMetric(
        metric_name=metric_name(track),
        higher_is_better=True,
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=RateRows(track.name),
        corpus_level_fn=Figures(track.name),
        batched_compute=True,
    )


class RateRows(SampleLevelComputation):
    """Rates the answers of a task and, where its scorer wants it, the ground truth."""

    def __init__(self, track: str) -> None:
        self.track = track

    def compute(  # type: ignore[override]
        self, responses: Sequence[ModelResponse], docs: Sequence[Doc], **_: Any
    ) -> list[dict[str, Any]]:
        """One flat record of plain values per row; they are what lighteval keeps in its details."""
        track = benchmark.track(self.track)
        rows = [doc.specific or {} for doc in docs]
        notes = [_notes(response) for response in responses]
        texts = [_text(response) for response in responses]
        errors = [_error(row, note, track) for row, note in zip(rows, notes, strict=True)]
        answers, truths, scorer_json = _rate(track, rows, texts, errors)
        records = []
        for i, (row, truth) in enumerate(zip(rows, truths, strict=True)):
            verdict = answers.get(i)
            records.append(
                {
                    "id": row["id"],
                    "clip": row["clip"],
                    "type": row["type"],
                    "score": _score(track, verdict),
                    "status": "withheld" if is_withheld(row) else verdict.status if verdict else "unanswered",
                    "group": row.get("group") or "",
                    "ways": len(row["choices"]) if row.get("group") else 0,
                    "choice": scored_row("", "", "", verdict, row).choice if verdict else "",
                    "error": errors[i],
                    "judge": scorer_json,
                    "verdict": json.dumps(line_of(verdict)) if verdict else "",
                    "truth_score": _float(truth.score if truth else None),
                    "truth_status": truth.status if truth else "",
                    "truth_verdict": json.dumps(line_of(truth)) if truth else "",
                    "located": notes[i].get("located") or "",
                    **_extras(track, row, texts[i], notes[i], verdict),
                }
            )
        for doc, record in zip(docs, records, strict=True):
            rated.setdefault(doc.task_name.split(":")[0], []).append(record)
        return records


def _rate(
    track: Track, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], errors: Sequence[str]
) -> tuple[dict[int, Verdict], list[Verdict | None], str]:
    """The verdicts on the answers by row, those on the ground truths, and what is to be said of the scorer, as JSON.
    Whatever fails is the error of the rows that have no verdict yet: an exception here would lose the whole run,
    answers included."""
    about: dict[str, Any] = {"key": "the judge could not be opened"}
    answers: dict[int, Verdict] = {}
    truths: dict[int, Verdict] = {}
    why = ""
    judged = track.rubric is not None  # by a judge, who rates the truths too
    answered = [i for i, error in enumerate(errors) if not error]
    sides: list[tuple[Of, int]] = [("answer", i) for i in answered]
    sides += [("truth", i) for i in range(len(rows))] if judged else []
    asked = [(of, rows[i], texts[i] if of == "answer" else rows[i]["answer"]) for of, i in sides]
    try:
        rater = scorer(track.name)
        about = rater.describe()
        store = VerdictStore(setting("STORE", str(default_store())), rater.key) if judged else None
        for k, verdict in rate(rater, asked, store):
            of, i = sides[k]
            (answers if of == "answer" else truths)[i] = verdict
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        log.error("the judge failed: %s", why)
    failed = Verdict(None, "judge_error", raw=why)
    of_truth = [truths.get(i, failed) if judged else None for i in range(len(rows))]
    return {i: answers.get(i, failed) for i in answered}, of_truth, json.dumps(about)


def _notes(response: ModelResponse) -> dict[str, Any]:
    """What tasks/video_model.py tells beside the answer; nothing from other models."""
    try:
        notes = json.loads(response.input) if isinstance(response.input, str) else None
    except (ValueError, RecursionError):
        return {}
    return notes if isinstance(notes, dict) and "conversation" in notes else {}


def _text(response: ModelResponse) -> str:
    """The answer; lighteval's own vision model gives a string where others give a list."""
    text = response.final_text
    return (text if isinstance(text, str) else text[0] if text else "").strip()


def _error(row: Mapping[str, Any], notes: Mapping[str, Any], track: Track) -> str:
    if track.ways[row["prompt"]].frames and not notes:
        return "the model was shown no frames: this task needs `lighteval custom` with tasks/video_model.py"
    return notes.get("error") or ""


def _extras(
    track: Track, row: Mapping[str, Any], text: str, notes: Mapping[str, Any], verdict: Verdict | None
) -> dict[str, float]:
    """The track's figures beside the score; not a number where the row has none."""
    if track.extras is None:
        return {}
    line = {"prediction": text, "located": notes.get("located")}
    figures = track.extras.figures(row, line) if verdict else {}
    return {name: figures.get(name, math.nan) for name in track.extras.named(row["prompt"])}


class Figures(CorpusLevelComputation):
    """A task's figures: the same keys for every task of a family, all floats (lighteval's averages want that)."""

    def __init__(self, track: str) -> None:
        self.track = track

    def compute_corpus(self, items: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        return figures(items, benchmark.track(self.track))


def figures(records: Sequence[Mapping[str, Any]], track: Track) -> dict[str, float]:
    """The track's measure with its interval, mean score and counts, and its extras, of records of one type or of
    several (then the plain means over the types)."""
    key = "one scorer of this run"
    asked = [record for record in records if record["status"] != "withheld"]
    each = [_scored(r, "score", "status") for r in asked if r["status"] != "unanswered" or track.measure.every_row]
    rows, alike = _questions(each)
    scale = None
    if track.measure.needs_truth:
        truths = [_scored(r, "truth_score", "truth_status") for r in records]
        scale = Calibration.of(key, truths, types=track.types)
    avg = track.measure.compute(rows, scale, key=key, types=track.types).avg
    low, high = avg.interval or (math.nan, math.nan)
    name, prefix = metric_name(track), track.prefix
    numbers = {
        name: _float(avg.value),
        f"{name}_stderr": (high - low) / (2 * 1.959964),
        f"{prefix}_low": low,  # of the 95% interval
        f"{prefix}_high": high,
        f"{prefix}_score": _float(avg.mean),  # in the scorer's own unit
        f"{prefix}_n": float(avg.n),
        f"{prefix}_unreadable": float(avg.unreadable),
        f"{prefix}_empty": float(avg.empty),
        f"{prefix}_judge_errors": float(avg.errors),
        f"{prefix}_unanswered": float(sum(record["status"] == "unanswered" for record in asked)),
    }
    if alike:
        numbers[f"{prefix}_consistency"] = math.fsum(row.score or 0.0 for row in alike) / len(alike)
    every = (*track.extras.names, *itertools.chain(*track.extras.of_way.values())) if track.extras else ()
    names = [name for name in every if records and name in records[0] and f"{prefix}_{name}" not in numbers]
    return numbers | {f"{prefix}_{name}": _mean_over_types(records, name) for name in names}


def _score(track: Track, verdict: Verdict | None) -> float:
    """The verdict's score; of a row without an answer 0 where the measure takes every row."""
    return 0.0 if verdict is None and track.measure.every_row else _float(verdict.score if verdict else None)


def _scored(record: Mapping[str, Any], score: str, status: str) -> Scored:
    value = None if math.isnan(record[score]) else record[score]
    grouped = (record.get("group", ""), record.get("ways", 0), record.get("choice", ""))
    return Scored(record["id"], record["clip"], record["type"], value, record[status], *grouped)


def _questions(rows: Sequence[Scored]) -> tuple[list[Scored], list[Scored]]:
    """One row for each question: those that were asked in all arrangements of their options are right if they are right
    in all; and the same with 1 where one option was chosen in all. A question of which a row is missing (a limit of
    lighteval's counts rows) is left out, for nobody knows whether it is right in all."""
    grouped = [row for row in rows if row.group]
    size = Counter(row.group for row in grouped)
    whole = [row for row in grouped if size[row.group] == row.ways]
    if cut := len({row.group for row in grouped}) - len({row.group for row in whole}):
        log.error("%d questions lack some of their arrangements and are left out", cut)
    return [row for row in rows if not row.group] + right_in_all(whole), alike_in_all(whole)


def _mean_over_types(records: Iterable[Mapping[str, Any]], name: str) -> float:
    """The plain mean of the types' means; not a number where no row has the value."""
    values: dict[str, list[float]] = {}
    for record in records:
        if not math.isnan(record[name]):
            values.setdefault(record["type"], []).append(record[name])
    means = [math.fsum(of) / len(of) for of in values.values()]
    return math.fsum(means) / len(means) if means else math.nan


def _float(value: float | None) -> float:
    return math.nan if value is None else float(value)
