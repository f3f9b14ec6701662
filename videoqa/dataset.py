"""Questions as a Hugging Face dataset: the columns of a row, and reading a folder or Hub repo with its columns checked.

Importing this module imports `datasets`, so the core does it only where rows are loaded.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from datasets import Dataset, Features, List, Value, load_dataset
from datasets.exceptions import DatasetsError

from videoqa.errors import UserError

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


def load(path_or_repo: str | Path, config: str, configs: Mapping[str, Features], split: str = "test") -> Dataset:
    """The rows of one of `configs`, from a folder that the builder wrote or from a Hub repo.

    A folder is read into memory and past the cache of `datasets`, which would go on serving the rows of a file that
    was rewritten in place, or of another folder of the same name. Raises UserError where the columns differ from
    configs[config]: `datasets` itself fills a missing one with None and says nothing.
    """
    if config not in configs:
        raise UserError(f"config {config!r}: the configs are {', '.join(configs)}")
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
    except ValueError as error:  # what `datasets` raises where the card has no such config
        if not str(error).startswith("BuilderConfig"):
            raise
        raise UserError(f"{path_or_repo}: has no config {config!r}") from error
    except DatasetsError as error:
        raise UserError(
            f"{path_or_repo}, config {config}: not a dataset of the builder: {error.__cause__ or error}"
        ) from error
    _check_features(data.features, configs[config], f"{path_or_repo}, config {config}")
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
        raise UserError(f"{where}: these are not the columns of this version: {'; '.join(wrong)}")
