"""EASG-Bench as a dataset: the row, its features, the configs, and `load()`.

A row (real data, shortened):

    {"id": "4901cdd8-d7e5-401d-b95c-4bd30f489d64:4:before", "clip": "4901cdd8-...", "video": "...", "type": "before",
     "question": "What did the camera wearer do right before putting the jug into the cabinet?",
     "answer": "pick jug", "choices": None, "gold": None, "context": "(1.06s) #C C ...", "frame": 1234,
     "start_s": 40.3, "end_s": 41.9, "clip_start_s": 0.0,
     "evidence": [{"graph": "...", "frame": 1234, "seconds": 41.13, "object": "jug", "box": [0.1, 0.2, 0.4, 0.5]}]}

    >>> import easg_bench
    >>> easg_bench.load("build/easg-bench", "direct")[0]["question"]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

from datasets import Dataset, Features, List, Value, load_dataset

TYPES = ("purpose", "direct", "indirect", "before", "after")
REPO = "easg-bench"  # the one place that names the dataset: a folder beside you or a Hub repo


class Evidence(TypedDict):
    """What grounds a question: one object in one frame."""

    graph: str  # graph_uid of the annotation (repeats within some clips)
    frame: int  # of the full video
    seconds: float  # of the full video
    object: str
    box: list[float]  # left, top, right, bottom in 0..1


class QA(TypedDict):
    """One question. The same row serves EASG-Bench, EgoSchema and WorldQA."""

    id: str
    clip: str
    video: str
    type: str
    question: str
    answer: str | None
    choices: list[str] | None  # multiple choice only
    gold: int | None  # index into choices
    context: str  # the clip's timestamped narrations, what the judge sees; "" where there are none
    frame: int | None  # point of no return; None for purpose
    start_s: float | None  # pre to post, seconds of the full video
    end_s: float | None
    clip_start_s: float | None  # where the clip's own file starts in the full video
    evidence: list[Evidence]


FEATURES = Features(
    {
        "id": Value("string"),
        "clip": Value("string"),
        "video": Value("string"),
        "type": Value("string"),
        "question": Value("string"),
        "answer": Value("string"),
        "choices": List(Value("string")),
        "gold": Value("int32"),
        "context": Value("string"),
        "frame": Value("int32"),
        "start_s": Value("float64"),
        "end_s": Value("float64"),
        "clip_start_s": Value("float64"),
        "evidence": List(
            {
                "graph": Value("string"),
                "frame": Value("int32"),
                "seconds": Value("float64"),
                "object": Value("string"),
                "box": List(Value("float64"), length=4),
            }
        ),
    }
)
