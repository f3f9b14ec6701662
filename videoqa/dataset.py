"""Questions as a Hugging Face dataset: the columns of a row, and reading a folder or Hub repo with its columns checked.

Importing this module imports `datasets`, so the core does it only where rows are loaded.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, LargeList, List, Value, load_dataset
from datasets.exceptions import DatasetsError
from datasets.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from videoqa.errors import UserError
from videoqa.rows import HUB_NAME

PLACES = "--data FOLDER, a folder that `easg-bench build` wrote, or --data ORG/NAME, a dataset on the Hub"

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


def load(
    path_or_repo: str | Path,
    config: str,
    configs: Mapping[str, Features],
    split: str = "test",
    later: Collection[str] = (),
) -> Dataset:
    """The rows of one of `configs`, from a folder that the builder wrote or from a Hub repo.

    A folder is read into memory and past the cache of `datasets`, which would go on serving the rows of a file that
    was rewritten in place, or of another folder of the same name. A name that is neither a folder nor ORG/NAME is
    looked up nowhere, since the cache would answer it with whatever was once loaded under that name. Raises UserError
    where the columns differ from configs[config]: `datasets` itself fills a missing one with None and says nothing.
    Only the columns `later`, which data sets of older versions lack, are filled with None here too.
    """
    if config not in configs:
        raise UserError(f"config {config!r}: the configs are {', '.join(configs)}")
    where = f"{path_or_repo}, config {config}"
    is_folder = Path(path_or_repo).is_dir()
    if not is_folder and not HUB_NAME.fullmatch(str(path_or_repo)):
        kind = "a file, and no folder" if Path(path_or_repo).is_file() else "no such folder here"
        raise FileNotFoundError(f"{path_or_repo}: {kind}. Give {PLACES}")
    try:
        if is_folder:
            with tempfile.TemporaryDirectory() as cache, _without_bars():
                data = load_dataset(str(path_or_repo), config, split=split, cache_dir=cache, keep_in_memory=True)
        else:
            data = load_dataset(str(path_or_repo), config, split=split)
    except (FileNotFoundError, ConnectionError) as error:
        if is_folder:
            raise UserError(f"{path_or_repo}: this folder holds no data ({error}). Give {PLACES}") from error
        raise FileNotFoundError(
            f"{path_or_repo}: no such folder here, and no dataset of this name to be had from the Hub ({error})"
        ) from error
    except (DatasetsError, ValueError) as error:  # ValueError: another config or split than the builder's
        if str(error).startswith("BuilderConfig"):
            raise UserError(f"{path_or_repo}: has no config {config!r} ({error})") from error
        raise UserError(f"{where}: not a dataset of the builder: {error.__cause__ or error}. Give {PLACES}") from error
    for name in later:
        if name in configs[config] and name not in data.features:
            data = data.add_column(name, [None] * len(data))
    return _of_features(data, configs[config], where)


@contextlib.contextmanager
def _without_bars() -> Iterator[None]:
    """A folder is read in less than a second: no progress is worth a line."""
    hidden = are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if not hidden:
            enable_progress_bars()


def _of_features(data: Dataset, wanted: Features, where: str) -> Dataset:
    """The rows with exactly the columns that are wanted. Raises UserError where theirs are others."""
    found = data.features
    wrong = [f"{name} is missing" for name in wanted if name not in found]
    wrong += [f"{name} is unknown" for name in found if name not in wanted]
    wrong += [
        f"{name} is {found[name]}, not {wanted[name]}"
        for name in wanted
        if name in found and not _alike(found[name], wanted[name])
    ]
    if wrong:
        raise UserError(f"{where}: these are not the columns of this version: {'; '.join(wrong)}")
    if found == wanted:
        return data
    try:
        return data.select_columns(list(wanted)).cast(wanted, keep_in_memory=True)
    except (ValueError, TypeError) as error:  # arrow's: 2.5 is no whole number
        raise UserError(f"{where}: these are not the columns of this version: {error}") from error


def _alike(found: Any, wanted: Any) -> bool:
    """Whether values of the one kind can be the other's: what pandas writes back has large strings, whole numbers as
    floats where some are missing, lists of no fixed length, and no type where all are missing."""
    if isinstance(wanted, Value):
        if not isinstance(found, Value):
            return False
        also = {"string": ("large_string",), "int32": ("int64", "float64")}.get(wanted.dtype, ())
        return found.dtype in (wanted.dtype, "null", *also)
    if isinstance(found, Value):
        return found.dtype == "null"
    if isinstance(wanted, dict):
        same = isinstance(found, dict) and found.keys() == wanted.keys()
        return same and all(_alike(found[key], wanted[key]) for key in wanted)
    if isinstance(found, LargeList):
        return _alike(found.feature, wanted.feature)
    return isinstance(found, List) and found.length in (wanted.length, -1) and _alike(found.feature, wanted.feature)
