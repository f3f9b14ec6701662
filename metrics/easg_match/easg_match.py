"""`evaluate` module: EASG-Bench answers against their references without a model. All of it is
videoqa/benchmarks/easg/match.py."""

import datasets
import evaluate

from videoqa.benchmarks.easg.match import match_scores  # From: easg-bench
from videoqa.benchmarks.easg.published import TYPES  # From: easg-bench
from videoqa.columns import checked_columns  # From: easg-bench

_DESCRIPTION = """
Compares answers to EASG-Bench questions with their references by words alone: exact match, token F1, and whether the
verb, relation and object of the reference occur. Cheap enough for every training step. It is no substitute for the
judge (easg_judge): it knows no synonyms and no negation, and its numbers are not those of the paper.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: the answers of a model, one text a row; None and "" are empty answers and match nothing.
    references: the ground truth answers.
    types: the question types: purpose, direct, indirect, before or after.
Returns:
    A flat dict of numbers. Per type that has rows, 0 to 1: "direct_exact", "direct_f1" (words); "direct_object",
    "indirect_object", "before_object", "after_object" (all words of the object occur); "before_verb", "after_verb";
    "indirect_relation". "exact", "f1", "verb", "relation", "object": the plain mean over the types that have it.
    Counts: "direct_n", ..., "n", "empty".
Example:
    >>> metric = evaluate.load("metrics/easg_match")
    >>> found = metric.compute(predictions=["He picked up the jug."], references=["pick jug"], types=["before"])
    >>> found["before_verb"], found["before_object"], found["exact"]
    (1.0, 1.0, 0.0)
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


class EasgMatch(evaluate.Metric):
    """Model-free scores, per type and overall."""

    def _info(self):
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": text, "references": text, "types": text}),
            codebase_urls=["https://github.com/fpv-iplab/EASG-bench"],
        )

    def add_batch(self, *, predictions=None, references=None, types=None, **unknown):
        """Add rows, checked as they come. `compute` with rows calls this."""
        columns = checked_columns({"predictions": predictions, "references": references, "types": types}, TYPES)
        super().add_batch(**columns, **unknown)

    def add(self, *, prediction=None, reference=None, **row):
        """Add one row."""
        self.add_batch(predictions=[prediction], references=[reference], **{k: [v] for k, v in row.items()})

    def _compute(self, predictions, references, types):
        if not predictions:
            raise ValueError("there are no rows to compare")
        return match_scores(predictions, references, types)
