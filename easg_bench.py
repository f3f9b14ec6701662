"""EASG-Bench as a dataset: the row, its features, the configs, and `load()`.

A row (real data, shortened):

    {"id": "4901cdd8-d7e5-401d-b95c-4bd30f489d64:4:before", "clip": "4901cdd8-...", "video": "...", "type": "before",
     "question": "What did the camera wearer do right before putting the jug into the cabinet?",
     "answer": "pick jug", "choices": None, "gold": None, "context": "(1.06s) #C C ...", "frame": 1234,
     "start_s": 40.3, "end_s": 41.9, "clip_start_s": 0.0,
     "evidence": [{"graph": "...", "frame": 1234, "seconds": 41.13, "object": "jug", "box": [0.1, 0.2, 0.4, 0.5],
                   "attribute": None}], "review": "clear"}

    >>> import easg_bench
    >>> easg_bench.load("build/easg-bench", "direct")[0]["question"]
"""

from videoqa.benchmarks.easg.data import (
    CONFIGS,
    FEATURES,
    GRAPH_FEATURES,
    JUDGMENTS,
    LABELS,
    NARRATION_FEATURES,
    NEUTRAL_FEATURES,
    QA,
    REPO,
    REVIEWED,
    REVIEWS,
    load,
    review_of,
)
from videoqa.benchmarks.easg.published import TYPES
from videoqa.rows import Evidence

__all__ = [
    "CONFIGS",
    "FEATURES",
    "GRAPH_FEATURES",
    "JUDGMENTS",
    "LABELS",
    "NARRATION_FEATURES",
    "NEUTRAL_FEATURES",
    "QA",
    "REPO",
    "REVIEWED",
    "REVIEWS",
    "TYPES",
    "Evidence",
    "load",
    "review_of",
]
