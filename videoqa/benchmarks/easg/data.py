"""EASG-Bench as a dataset: its configs and their columns, and `load()`. The public face is easg_bench.py."""

from __future__ import annotations

from pathlib import Path

from datasets import Dataset, Features, List, Value

from videoqa import dataset
from videoqa.benchmarks.easg.published import TYPES
from videoqa.dataset import FEATURES

REPO = "easg-bench"  # the folder beside you that is read where none is named; ORG/NAME here would be read from the Hub

NARRATION_FEATURES = Features(
    {
        "clip": Value("string"),
        "video": Value("string"),
        "split": Value("string"),
        "clip_start_s": Value("float64"),
        "narrations": Value("string"),
    }
)
GRAPH_FEATURES = Features(
    {
        "clip": Value("string"),
        "video": Value("string"),
        "split": Value("string"),
        "index": Value("int32"),  # from 1 within the clip
        "graph": Value("string"),
        "pre": Value("int32"),  # frames of the full video
        "pnr": Value("int32"),
        "post": Value("int32"),
        "start_s": Value("float64"),
        "end_s": Value("float64"),
        "verb": Value("string"),  # None, as the object: the graph is no action
        "object": Value("string"),
        "relations": List({"relation": Value("string"), "tail": Value("string")}),
        "vote": Value("float64"),  # uniqueness score; None: not asked for
        "triplets": List(List(Value("string"), length=3)),
        "boxes": List(
            {"stage": Value("string"), "object": Value("string"), "box": List(Value("float64"), length=4)},
        ),
    }
)
NEUTRAL_FEATURES = Features({**FEATURES, "question_coordinates": Value("string")})  # <region n>: n-th of `evidence`
CONFIGS: dict[str, Features] = {
    "default": FEATURES,  # all questions
    **dict.fromkeys(TYPES, FEATURES),
    "unambiguous": FEATURES,  # those that no second action of their clip answers differently
    "language_neutral": NEUTRAL_FEATURES,  # objects that have a box are not named
    "narrations": NARRATION_FEATURES,  # one row per clip
    "graphs": GRAPH_FEATURES,  # one row per annotated action
}


def load(path_or_repo: str | Path = REPO, config: str = "default", split: str = "test") -> Dataset:
    """The rows of one config (a key of CONFIGS), from a folder that the builder wrote or from a Hub repo. Raises
    UserError where its columns are not those of CONFIGS[config]."""
    return dataset.load(path_or_repo, config, CONFIGS, split)
