"""`evaluate` module: EASG-Bench answers rated by an LLM judge, as relative scores. Thin around videoqa."""

import functools
import os
from collections.abc import Mapping
from dataclasses import replace

import datasets
import evaluate

from videoqa.benchmarks.easg import EASG  # From: easg-bench
from videoqa.benchmarks.easg import rubric as named_rubric  # From: easg-bench
from videoqa.columns import checked_columns  # From: easg-bench
from videoqa.engines import open_engine  # From: easg-bench
from videoqa.judge import Judge  # From: easg-bench
from videoqa.rating import rate_in_order, scored_row  # From: easg-bench
from videoqa.rubric import Rubric  # From: easg-bench
from videoqa.scores import Calibration  # From: easg-bench

_DESCRIPTION = """
Rates answers to EASG-Bench questions with an LLM judge that sees the clip's narrations, the question and the ground
truth. A score is relative (equation 1 of the paper): 100 x mean score of the answers / mean score that the same judge
gives the ground truth, per question type; "avg" is the plain mean of the types.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: the answers of a model, one text a row; None and "" are empty answers: the lowest score, counted apart.
    references: the ground truth answers.
    questions: the questions.
    contexts: the narrations of each row's clip, which the judge reads; "" where there are none.
    types: the question types: purpose, direct, indirect, before or after.
    engine: the judge: an object of videoqa.engines, or its spec, e.g. a folder or Hub id, "vllm:ID" or
        "server:NAME@http://HOST/v1", with options behind a question mark ("FOLDER?batch_size=4&dtype=bfloat16"). The
        model of the last spec stays in memory, so that a training loop loads it once.
    mode: "dist" (one forward pass; the default of engines that give probabilities), "score" or "paper".
    sampling: "greedy", or "paper": the paper's temperature and top_p.
    rubric: "ours", "paper" (after `easg-bench fetch`), a rubric file, or a videoqa.judge.Rubric.
    calibration: None: the judge rates the references too. Or what it gave them before: a videoqa.scores.Calibration, or
        {"judge": the result's "judge", "means": {type: mean score of the ground truth}}. One of another judge is an
        error.
    clips: the clip of each row, for the intervals: rows of one clip are not independent. None: rows of one context
        are taken for rows of one clip.
    store: folder where verdicts are kept, so that nothing is judged twice. None: in the Hugging Face cache folder;
        False: nowhere.
Returns:
    A flat dict of plain numbers; what cannot be computed is None. "avg" and, per type that has rows, "direct": the
    relative score; "direct_low", "direct_high": its 95% interval; "direct_mean": the judge's mean score in the
    rubric's unit; "direct_truth": the mean that it gave the ground truth; "direct_n", "direct_n_scored",
    "direct_unreadable" (in no mean), "direct_empty", "direct_errors" (failed calls, part of unreadable),
    "direct_clips". All rows: "avg_low", "avg_high", "avg_mean", "n", "n_scored", "unreadable", "empty", "errors",
    "clips", "truth_unreadable", and "mass" (mode dist: probability of the allowed scores; far below 1 the judge did
    not understand its task). And two texts: "judge" (all that moves a score) and "mode".
Example:
    >>> metric = evaluate.load("metrics/easg_judge")
    >>> found = metric.compute(predictions=answers, references=truths, questions=questions, contexts=narrations,
    ...                        types=types, engine="Qwen/Qwen2.5-7B-Instruct")
    >>> found["avg"], found["avg_low"], found["avg_high"]
"""

_CITATION = """
@article{rodin2025easg,
  title = {{EASG-Bench}: Video {Q\\&A} Benchmark with Egocentric Action Scene Graphs},
  author = {Rodin, Ivan and Wu, Tz-Ying and Min, Kyle and Sridhar, Sharath Nittur and Furnari, Antonino and
            Tripathi, Subarna and Farinella, Giovanni Maria},
  journal = {arXiv preprint arXiv:2506.05787},
  year = {2025}
}
"""

_opened = functools.lru_cache(maxsize=1)(open_engine)


class EasgJudge(evaluate.Metric):
    """Relative scores of an LLM judge, per type and overall, with 95% intervals."""

    def _info(self):
        names = ("predictions", "references", "questions", "contexts", "types")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({name: datasets.Value("string") for name in names}),
            codebase_urls=["https://github.com/fpv-iplab/EASG-bench"],
        )

    def add_batch(self, *, predictions=None, references=None, questions=None, contexts=None, types=None, **unknown):
        """Add rows, checked as they come. `compute` with rows calls this."""
        columns = {"predictions": predictions, "references": references, "questions": questions}
        super().add_batch(**checked_columns(columns | {"contexts": contexts, "types": types}, EASG.types), **unknown)

    def add(self, *, prediction=None, reference=None, **row):
        """Add one row."""
        self.add_batch(predictions=[prediction], references=[reference], **{k: [v] for k, v in row.items()})

    def _compute(
        self,
        predictions,
        references,
        questions,
        contexts,
        types,
        engine=None,
        mode=None,
        sampling="greedy",
        rubric="ours",
        calibration=None,
        clips=None,
        store=None,
    ):
        if not predictions:
            raise ValueError("there are no rows to judge")
        if clips is not None and len(clips) != len(predictions):
            raise ValueError(f"the columns differ in length: {len(predictions)} predictions, {len(clips)} clips")
        judge = _judge(engine, mode, sampling, rubric)
        constants = None if calibration is None else _constants(calibration, judge.key, types)
        columns = zip(questions, references, contexts, strict=True)
        rows = [{"question": q, "answer": a, "context": c} for q, a, c in columns]
        asked = [("answer", row, text) for row, text in zip(rows, predictions, strict=True)]
        asked += [("truth", row, row["answer"]) for row in rows] if constants is None else []
        verdicts = rate_in_order(judge, asked, store)
        mine, theirs = verdicts[: len(rows)], verdicts[len(rows) :]
        clips = contexts if clips is None else clips
        measure = constants or Calibration.of(judge.key, _scored(theirs, clips, types), types=EASG.types)
        scores = EASG.measure.compute(_scored(mine, clips, types), measure, key=judge.key, types=EASG.types)

        figures = {"avg": scores.avg.value, **_numbers("avg_", scores.avg), **_counts("", scores.avg)}
        for name, summary in scores.by_type.items():
            figures |= {name: summary.value, **_numbers(f"{name}_", summary), **_counts(f"{name}_", summary)}
            figures[f"{name}_truth"] = measure.means.get(name)
        figures["truth_unreadable"] = sum(verdict.score is None for verdict in theirs)
        masses = [verdict.mass for verdict in verdicts if verdict.mass is not None]
        figures["mass"] = sum(masses) / len(masses) if masses else None
        return figures | {"judge": judge.key, "mode": judge.mode}


def _judge(engine, mode, sampling, rubric):
    if engine is None:
        raise ValueError("easg_judge needs a judge: engine=, an engine of videoqa.engines or the spec of one")
    if isinstance(engine, str | os.PathLike):
        engine = _opened(os.fspath(engine))
    return Judge(engine, rubric if isinstance(rubric, Rubric) else named_rubric(rubric), mode, sampling)


def _constants(calibration, key, types):
    """A given calibration, if it is this judge's and has all types that are asked for."""
    if isinstance(calibration, Calibration):
        of, measure = calibration.key, calibration
    elif isinstance(calibration, Mapping) and set(calibration) == {"judge", "means"}:
        of, measure = calibration["judge"], Calibration(calibration["judge"], dict(calibration["means"]))
    else:
        raise ValueError(
            f"calibration is {calibration!r}; allowed are None, a videoqa.scores.Calibration and "
            '{"judge": key, "means": {type: mean score}}'
        )
    if of != key and not of.startswith(f"{key}, data "):  # a run's calibration also names its data
        raise ValueError(f"the calibration is of another judge:\n  calibration: {of}\n  this judge:  {key}")
    if missing := [name for name in EASG.types if name in types and not measure.means.get(name, 0) > 0]:
        raise ValueError(f"the calibration has no mean above 0 for {', '.join(missing)}: {dict(measure.means)}")
    return replace(measure, key=key)


def _scored(verdicts, clips, types):
    rows = enumerate(zip(verdicts, clips, types, strict=True))
    return [scored_row(f"{row:09d}", clip, name, verdict) for row, (verdict, clip, name) in rows]


def _numbers(prefix, summary):
    low, high = summary.interval or (None, None)
    return {f"{prefix}low": low, f"{prefix}high": high, f"{prefix}mean": summary.mean}


def _counts(prefix, summary):
    counts = {name: getattr(summary, name) for name in ("n", "n_scored", "unreadable", "empty", "errors")}
    return {f"{prefix}{name}": count for name, count in (counts | {"clips": summary.clusters}).items()}
