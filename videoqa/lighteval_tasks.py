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
import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from videoqa import prompts
from videoqa.engines import open_engine
from videoqa.fetch import named_rubric
from videoqa.frames import DEFAULT, Policy, clip_ends
from videoqa.judge import Item, Judge, Verdict
from videoqa.locate import locate_rows
from videoqa.logs import METRIC
from videoqa.match import PARTS, match
from videoqa.runs import VerdictStore, default_store, describe, line_of, rate_once
from videoqa.scores import TYPES, Calibration, Scored, summarize

FAMILIES = {  # what stands before the colon of a task's name, and the prompt
    "easg_bench": "blind",
    "easg_bench_narrations": "narrations",
    "easg_bench_frames": "frames",
    "easg_bench_two_stage": "two-stage",
}
FIELDS = ("id", "clip", "video", "type", "question", "answer", "context", "start_s", "end_s", "clip_start_s")

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
        raise ValueError(f"EASG_BENCH_{name} is not set; it names {what[name]}")
    return value


def policy() -> Policy:
    """Which frames are shown."""
    return Policy.parse(setting("FRAMES", str(DEFAULT)))


@functools.cache
def judge() -> Judge:
    """The judge of all tasks, opened once. (Not a part of the metric: lighteval copies and hashes metrics.)"""
    engine = open_engine(setting("JUDGE"))
    mode: Any = setting("JUDGE_MODE", "") or None
    sampling: Any = setting("JUDGE_SAMPLING", "greedy")
    return Judge(engine, named_rubric(setting("JUDGE_RUBRIC", "ours")), mode, sampling)


# -- tasks ------------------------------------------------------------------------------------------------------------


def task_table(data: str, load: Callable[[str, str], Iterable[Mapping[str, Any]]]) -> list[LightevalTaskConfig]:
    """All tasks on the dataset `data`; `load(data, config)` gives its rows."""
    data = str(Path(data).resolve()) if Path(data).is_dir() else data

    @functools.cache
    def ends() -> dict[str, float]:
        return clip_ends(load(data, "default"))

    return [
        LightevalTaskConfig(
            name=f"{family}:{kind}",
            prompt_function=functools.partial(put, prompt=prompt, ends=ends),
            hf_repo=data,
            hf_subset=kind,
            hf_avail_splits=["test"],
            evaluation_splits=["test"],
            metrics=[metric(prompt)],
            generation_size=prompts.MAX_NEW_TOKENS,
            stop_sequence=[],
            version=_version(data),
        )
        for family, prompt in FAMILIES.items()
        for kind in (prompts.TWO_STAGE_TYPES if prompt == "two-stage" else TYPES)
    ]


def _version(data: str) -> int:
    """A number that changes with the prompts, the frames and the data. lighteval keeps answers by the task's text and
    the number of the row, so answers to other data or another prompt would be taken for these."""
    files = sorted(path.name for path in Path(data).glob("data/*.parquet"))  # named by their content
    texts = [prompts.INSTRUCTION, prompts.ask_blind(""), prompts.ask_narrations("", ""), prompts.look_beside("")]
    known = json.dumps([files, texts, setting("FRAMES", str(DEFAULT))])
    return int(hashlib.sha256(known.encode()).hexdigest()[:6], 16)


def put(
    line: dict[str, Any], task_name: str | None = None, *, prompt: str, ends: Callable[[], Mapping[str, float]]
) -> Doc:
    """A row as lighteval's Doc: the same prompt as `easg-bench run` makes, and in `specific` all that judging needs."""
    setting("JUDGE")  # before a model is loaded
    row = {name: line[name] for name in FIELDS}
    if prompt in prompts.VIDEO_PROMPTS:
        setting("VIDEOS")
        policy()
        row["clip_end_s"] = ends().get(line["clip"])
    question, context = line["question"], line["context"]
    return Doc(
        task_name=task_name or "",
        query=prompts.ask_narrations(question, context) if prompt == "narrations" else prompts.ask_blind(question),
        instruction=prompts.INSTRUCTION,
        choices=[line["answer"]],
        gold_index=0,
        specific={**row, "prompt": prompt},
    )


# -- the metric -------------------------------------------------------------------------------------------------------


def metric(prompt: str) -> SampleLevelMetric:
    """Judge, relative score and text scores as one metric."""
    return SampleLevelMetric(
        metric_name=METRIC,
        higher_is_better=True,
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=JudgeRows(),
        corpus_level_fn=RelativeScore(located=prompt == "two-stage"),
        batched_compute=True,
    )


class JudgeRows(SampleLevelComputation):
    """Rates the answers of a task, and its ground truth for the calibration."""

    def compute(  # type: ignore[override]
        self, responses: Sequence[ModelResponse], docs: Sequence[Doc], **_: Any
    ) -> list[dict[str, Any]]:
        """One flat record of plain values per row; they are what lighteval keeps in its details."""
        rows = [doc.specific or {} for doc in docs]
        told = [_told(response) for response in responses]
        said = [_text(response) for response in responses]
        errors = [_error(row, of) for row, of in zip(rows, told, strict=True)]
        asked = [i for i, error in enumerate(errors) if not error]
        items = [Item(rows[i]["question"], rows[i]["answer"], said[i], rows[i]["context"]) for i in asked]
        truths = [Item(row["question"], row["answer"], row["answer"], row["context"]) for row in rows]
        rater, verdicts = _rate([*items, *truths])
        of_answer = dict(zip(asked, verdicts[: len(asked)], strict=True))
        records = []
        for i, (row, truth) in enumerate(zip(rows, verdicts[len(asked) :], strict=True)):
            found = of_answer.get(i)
            matched = asdict(match(said[i], row["answer"], row["type"])) if found else {}
            records.append(
                {
                    "id": row["id"],
                    "clip": row["clip"],
                    "type": row["type"],
                    "score": _float(found.score if found else None),
                    "status": found.status if found else "unanswered",
                    "error": errors[i],
                    "judge": json.dumps(rater),
                    "verdict": json.dumps(line_of(found)) if found else "",
                    "truth_score": _float(truth.score),
                    "truth_status": truth.status,
                    "truth_verdict": json.dumps(line_of(truth)),
                    **{f"match_{part}": _float(matched.get(part)) for part in PARTS},
                    **_located(row, told[i].get("located")),
                }
            )
        for doc, record in zip(docs, records, strict=True):
            rated.setdefault(doc.task_name.split(":")[0], []).append(record)
        return records


def _rate(items: list[Item]) -> tuple[dict[str, Any], list[Verdict]]:
    """What is to be said of the judge, and its verdicts. Whatever fails is the error of the rows that have no verdict
    yet: an exception here would lose the whole run, answers included."""
    verdicts: dict[int, Verdict] = {}
    told: dict[str, Any] = {"key": "the judge could not be opened"}
    why = ""
    try:
        rater = judge()
        told = describe(rater)
        for index, verdict in rate_once(rater, items, VerdictStore(setting("STORE", str(default_store())), rater.key)):
            verdicts[index] = verdict
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        log.error("the judge failed: %s", why)
    return told, [verdicts.get(i) or Verdict(None, "judge_error", raw=why) for i in range(len(items))]


def _told(response: ModelResponse) -> dict[str, Any]:
    """What tasks/video_model.py tells beside the answer; nothing from other models."""
    try:
        told = json.loads(response.input) if isinstance(response.input, str) else None
    except ValueError:
        return {}
    return told if isinstance(told, dict) and "conversation" in told else {}


def _text(response: ModelResponse) -> str:
    """The answer; lighteval's own vision model gives a string where others give a list."""
    text = response.final_text
    return (text if isinstance(text, str) else text[0] if text else "").strip()


def _error(row: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    if row["prompt"] in prompts.VIDEO_PROMPTS and not told:
        return "the model was shown no frames: this task needs `lighteval custom` with tasks/video_model.py"
    return told.get("error") or ""


def _located(row: Mapping[str, Any], reply: str | None) -> dict[str, Any]:
    """Turn 1's reply beside the action's own seconds; not a number where no time was asked for."""
    found = [] if reply is None else locate_rows([row], {row["id"]: reply})
    told: dict[str, Any] = {
        "located": reply or "",
        **dict.fromkeys(("located_read", "located_hit", "located_iou"), math.nan),
    }
    for one in found:
        told |= {"located_read": float(one.said is not None), "located_hit": float(one.hit), "located_iou": one.iou}
    return told


class RelativeScore(CorpusLevelComputation):
    """A task's figures: the same keys for every task, all floats (lighteval's averages want that)."""

    def __init__(self, located: bool = False) -> None:
        self.located = located

    def compute_corpus(self, items: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        return figures(items, self.located)


def figures(records: Sequence[Mapping[str, Any]], located: bool = False) -> dict[str, float]:
    """Relative score x 100 with its interval, mean score and counts, and the text scores, of records of one type or of
    several (then the plain means over the types, as the paper's Avg.)."""
    key = "one judge of this run"
    scored = [_scored(r, "score", "status") for r in records if r["status"] != "unanswered"]
    truths = [_scored(r, "truth_score", "truth_status") for r in records]
    avg = summarize(scored, Calibration.of(key, truths), key=key).avg
    low, high = avg.interval or (math.nan, math.nan)
    found = {
        METRIC: _float(avg.relative),
        f"{METRIC}_stderr": (high - low) / (2 * 1.959964),
        "easg_low": low,  # of the 95% interval
        "easg_high": high,
        "easg_score": _float(avg.mean),  # 1 to 10
        "easg_n": float(avg.n),
        "easg_unreadable": float(avg.unreadable),
        "easg_empty": float(avg.empty),
        "easg_judge_errors": float(avg.errors),
        "easg_unanswered": float(len(records) - len(scored)),
    }
    for part in PARTS:
        found[f"easg_match_{part}"] = _mean_over_types(records, f"match_{part}")
    for name in ("read", "hit", "iou") if located else ():
        found[f"easg_located_{name}"] = _mean_over_types(records, f"located_{name}")
    return found


def _scored(record: Mapping[str, Any], score: str, status: str) -> Scored:
    value = None if math.isnan(record[score]) else record[score]
    return Scored(record["id"], record["clip"], record["type"], value, record[status])


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
