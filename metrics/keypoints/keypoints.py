"""`evaluate` module: open-ended answers rated by key points by an LLM judge, as WorldQA's are. Thin around videoqa."""

import functools
import os

import datasets
import evaluate

from videoqa.benchmarks.worldqa import WORLDQA_OPEN  # From: easg-bench
from videoqa.benchmarks.worldqa import rubric as named_rubric  # From: easg-bench
from videoqa.columns import checked_columns  # From: easg-bench
from videoqa.engines import open_engine  # From: easg-bench
from videoqa.judge import Judge  # From: easg-bench
from videoqa.rating import rate_in_order, scored_row  # From: easg-bench

_DESCRIPTION = """
Rates open-ended answers with an LLM judge by the key points of the ground truth: 1 all of them and nothing else, 0.5
some missing or something added, 0.3 some right and some contradicted, 0 none. The score is the mean x 100 (WorldQA).
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: the answers of a model, one text a row; None and "" are empty answers: 0, counted apart.
    references: the ground truth answers.
    questions: the questions.
    engine: the judge: an object of videoqa.engines, or its spec, e.g. a folder or Hub id, "vllm:ID" or
        "server:NAME@http://HOST/v1", with options behind a question mark. The model of the last spec stays in memory.
    mode: "dist" (one forward pass, exact; the default of engines that give probabilities), "score" or "paper".
    rubric: "ours", or a rubric file.
    clips: what the rows of one video share, for the interval (optional); without it each row is a clip.
    truth: whether the judge rates the references too, so that one sees what it gives a right answer (default True).
    store: folder where verdicts are kept. None: in the Hugging Face cache folder; False: nowhere.
Returns:
    A flat dict: "keypoints" (0 to 100; None where nothing could be read), "low", "high" (95% interval), "truth" (what
    the judge gives the references, 0 to 100; the score is not divided by it), "n", "n_scored", "unreadable" (in no
    mean), "empty", "errors" (failed calls), "clips", "mass" (mode dist), and the texts "judge" and "mode".
Example:
    >>> metric = evaluate.load("metrics/keypoints")
    >>> found = metric.compute(predictions=answers, references=truths, questions=questions, engine=JUDGE)
    >>> found["keypoints"], found["truth"]
"""

_CITATION = """
@article{zhang2024worldqa,
  title = {{WorldQA}: Multimodal World Knowledge in Videos through Long-Chain Reasoning},
  journal = {arXiv preprint arXiv:2405.03272},
  year = {2024}
}
"""

_opened = functools.lru_cache(maxsize=1)(open_engine)
(_TYPE,) = WORLDQA_OPEN.types


class KeyPoints(evaluate.Metric):
    """The mean of the judge's scores by key points, with a 95% interval."""

    def _info(self):
        names = ("predictions", "references", "questions")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({name: datasets.Value("string") for name in names}),
            codebase_urls=["https://huggingface.co/datasets/lmms-lab/worldqa"],
        )

    def add_batch(self, *, predictions=None, references=None, questions=None, **unknown):
        """Add rows, checked as they come. `compute` with rows calls this."""
        columns = {"predictions": predictions, "references": references, "questions": questions}
        super().add_batch(**checked_columns(columns, ()), **unknown)

    def add(self, *, prediction=None, reference=None, **row):
        """Add one row."""
        self.add_batch(predictions=[prediction], references=[reference], **{k: [v] for k, v in row.items()})

    def _compute(
        self,
        predictions,
        references,
        questions,
        engine=None,
        mode=None,
        rubric="ours",
        clips=None,
        truth=True,
        store=None,
    ):
        if not predictions:
            raise ValueError("there are no rows to judge")
        if clips is not None and len(clips) != len(predictions):
            raise ValueError(f"the columns differ in length: {len(predictions)} predictions, {len(clips)} clips")
        judge = _judge(engine, mode, rubric)
        rows = [{"question": q, "answer": a, "context": ""} for q, a in zip(questions, references, strict=True)]
        asked = [("answer", row, text) for row, text in zip(rows, predictions, strict=True)]
        asked += [("truth", row, row["answer"]) for row in rows] if truth else []
        verdicts = rate_in_order(judge, asked, store)
        clips = range(len(rows)) if clips is None else clips
        avg, of_truth = _scores(judge, verdicts[: len(rows)], clips), None
        if truth:
            of_truth = _scores(judge, verdicts[len(rows) :], clips).value
        low, high = avg.interval or (None, None)
        masses = [verdict.mass for verdict in verdicts if verdict.mass is not None]
        counts = {name: getattr(avg, name) for name in ("n", "n_scored", "unreadable", "empty", "errors")}
        return {
            **{"keypoints": avg.value, "low": low, "high": high, "truth": of_truth, **counts, "clips": avg.clusters},
            **{"mass": sum(masses) / len(masses) if masses else None, "judge": judge.key, "mode": judge.mode},
        }


def _judge(engine, mode, rubric):
    if engine is None:
        raise ValueError("keypoints needs a judge: engine=, an engine of videoqa.engines or the spec of one")
    if isinstance(engine, str | os.PathLike):
        engine = _opened(os.fspath(engine))
    return Judge(engine, named_rubric(rubric), mode)


def _scores(judge, verdicts, clips):
    rows = [
        scored_row(f"{at:09d}", str(clip), _TYPE, verdict)
        for at, (verdict, clip) in enumerate(zip(verdicts, clips, strict=True))
    ]
    return WORLDQA_OPEN.measure.compute(rows, None, key=judge.key, types=WORLDQA_OPEN.types).avg
