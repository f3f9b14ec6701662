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
from collections.abc import Callable, Mapping, Sequence
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
from videoqa.benchmark import Track
from videoqa.choices import LETTERS
from videoqa.errors import UserError
from videoqa.frames import DEFAULT
from videoqa.hosts.judged import figures, metric_name, policy, records, scorer, setting
from videoqa.hosts.lighteval import families
from videoqa.rows import HUB_NAME
from videoqa.videos import clip_ends

FIELDS = (
    *("id", "clip", "video", "type", "question", "answer", "choices", "gold", "context"),
    *("start_s", "end_s", "clip_start_s"),
)
ROTATED = ("group", "order")  # of rows that are one arrangement of a question's options

log = logging.getLogger(__name__)

# every row that was rated in this process, by the first part of its task's name, for the average over the types
rated: dict[str, list[dict[str, Any]]] = {}

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
        made = records(track, rows, texts, errors, [note.get("located") or "" for note in notes], scorer)
        for doc, record in zip(docs, made, strict=True):
            rated.setdefault(doc.task_name.split(":")[0], []).append(record)
        return made


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


class Figures(CorpusLevelComputation):
    """A task's figures: the same keys for every task of a family, all floats (lighteval's averages want that)."""

    def __init__(self, track: str) -> None:
        self.track = track

    def compute_corpus(self, items: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        return figures(items, benchmark.track(self.track))
