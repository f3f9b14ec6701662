"""EASG-Bench as a dataset: the row, its features, the configs, and `load()`.

A row (real data, shortened):

    {"id": "4901cdd8-d7e5-401d-b95c-4bd30f489d64:4:before", "clip": "4901cdd8-...", "video": "...", "type": "before",
     "question": "What did the camera wearer do right before putting the jug into the cabinet?",
     "answer": "pick jug", "choices": None, "gold": None, "context": "(1.06s) #C C ...", "frame": 1234,
     "start_s": 40.3, "end_s": 41.9, "clip_start_s": 0.0,
     "evidence": [{"graph": "...", "frame": 1234, "seconds": 41.13, "object": "jug", "box": [0.1, 0.2, 0.4, 0.5],
                   "attribute": None}]}

    >>> import easg_bench
    >>> easg_bench.load("build/easg-bench", "direct")[0]["question"]
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TypedDict

from datasets import Dataset, Features, List, Value, load_dataset
from datasets.exceptions import DatasetsError

TYPES = ("purpose", "direct", "indirect", "before", "after")
REPO = "easg-bench"  # the one place that names the dataset: a folder beside you or a Hub repo


class Evidence(TypedDict):
    """What grounds a question: one object in one frame."""

    graph: str  # graph_uid of the annotation (repeats within some clips)
    frame: int  # of the full video
    seconds: float  # of the full video
    object: str
    box: list[float]  # left, top, right, bottom in 0..1
    attribute: str | None  # "wooden", where a narration near the frame says so; None also where nobody asked


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
                "attribute": Value("string"),
            }
        ),
    }
)
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
    """The rows of one config (a key of CONFIGS), from a folder that the builder wrote or from a Hub repo.

    A folder is read into memory and past the cache of `datasets`, which would go on serving the rows of a file that
    was rewritten in place, or of another folder of the same name. Raises ValueError where the columns differ from
    CONFIGS[config]: `datasets` itself fills a missing one with None and says nothing.
    """
    if config not in CONFIGS:
        raise ValueError(f"config {config!r}: the configs are {', '.join(CONFIGS)}")
    try:
        if Path(path_or_repo).is_dir():
            with tempfile.TemporaryDirectory() as cache:
                data = load_dataset(str(path_or_repo), config, split=split, cache_dir=cache, keep_in_memory=True)
        else:
            data = load_dataset(str(path_or_repo), config, split=split)
    except (FileNotFoundError, ConnectionError) as error:
        raise FileNotFoundError(
            f"{path_or_repo}: no such folder here, and no dataset of this name to be had from the Hub ({error})"
        ) from error
    except DatasetsError as error:
        raise ValueError(
            f"{path_or_repo}, config {config}: not a dataset of `python -m builder build`: {error.__cause__ or error}"
        ) from error
    _check_features(data.features, CONFIGS[config], f"{path_or_repo}, config {config}")
    return data


def _check_features(found: Features, wanted: Features, where: str) -> None:
    wrong = [f"{name} is missing" for name in wanted if name not in found]
    wrong += [f"{name} is unknown" for name in found if name not in wanted]
    wrong += [
        f"{name} is {found[name]}, not {wanted[name]}"
        for name in wanted
        if name in found and found[name] != wanted[name]
    ]
    if wrong:
        raise ValueError(f"{where}: these are not the columns of this version of easg_bench: {'; '.join(wrong)}")
