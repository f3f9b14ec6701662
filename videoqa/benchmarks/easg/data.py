"""EASG-Bench as a dataset: its configs and their columns, and `load()`. The public face is easg_bench.py."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from datasets import Dataset, Features, List, Value

from videoqa import dataset
from videoqa.benchmarks.easg.published import TYPES
from videoqa.rows import Question

REPO = "easg-bench"  # the folder beside you that is read where none is named; ORG/NAME here would be read from the Hub

# The column `review`: what readers of the clip's graphs and narrations say of a question.
LABELS = (  # of an action question
    "clear",  # one right answer, and the question says what is asked
    "second_answer",  # another action of the clip answers it differently and truly
    "repeats",  # the answer is in the question
    "implausible",  # the annotation cannot be meant
    "unclear",  # the wording does not say what is asked
)
JUDGMENTS = ("supported", "plausible")  # of a purpose: shown by graphs or narrations; likely, contradicted by nothing
# Two readers who differ are both named, in the order of LABELS: "clear/second_answer"
REVIEWS = (*LABELS, *("/".join(pair) for pair in combinations(LABELS, 2)), *JUDGMENTS)
REVIEWED = ("clear", *JUDGMENTS)  # the rows of the config `reviewed`


def review_of(labels: Sequence[str]) -> str:
    """The value of `review` for what the readers of an action question said."""
    return "/".join(label for label in LABELS if label in labels)


class QA(Question):
    """A question of EASG-Bench."""

    review: str | None  # one of REVIEWS; None: nobody read the question as it stands


FEATURES = Features({**dataset.FEATURES, "review": Value("string")})
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
    "reviewed": FEATURES,  # those that every reader calls clear, and purposes called supported or plausible
    "language_neutral": NEUTRAL_FEATURES,  # objects that have a box are not named
    "narrations": NARRATION_FEATURES,  # one row per clip
    "graphs": GRAPH_FEATURES,  # one row per annotated action
}


def load(path_or_repo: str | Path = REPO, config: str = "default", split: str = "test") -> Dataset:
    """The rows of one config (a key of CONFIGS), from a folder that the builder wrote or from a Hub repo. Raises
    UserError where its columns are not those of CONFIGS[config]."""
    return dataset.load(path_or_repo, config, CONFIGS, split, later=("review",))  # older versions had no readings
