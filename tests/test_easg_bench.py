"""easg_bench.py: the rows as people load them, with the real `datasets` and its cache."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, concatenate_datasets
from typer.testing import CliRunner

import easg_bench
from builder.__main__ import app
from easg_bench import CONFIGS, FEATURES
from videoqa.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
Save = Callable[[dict[str, Any]], Path]


def python(code: str, cwd: Path, cache: Path, *args: str) -> str:
    """What a fresh process prints, offline and with a Hugging Face cache of its own."""
    env = {**os.environ, "HF_HOME": str(cache), "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *args]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def build(source: Path, out: Path, *options: str) -> None:
    result = CliRunner().invoke(app, ["build", "--source", str(source), "--out", str(out), *options])
    assert result.exit_code == 0, result.output


@pytest.fixture
def small(raw: dict[str, Any], save: Save, tmp_path: Path) -> Path:
    out = tmp_path / "here" / "easg-bench"
    build(save(raw), out)
    return out


COUNT = """
import sys
from datasets import load_dataset
print(*[len(load_dataset("easg-bench", config, split="test")) for config in sys.argv[1:]])
"""


@pytest.mark.real
def test_the_real_dataset_loads_by_name_and_a_rebuild_is_never_stale(
    upstream: Path, real_build: Path, tmp_path: Path
) -> None:
    cache, here = tmp_path / "cache", tmp_path / "here"
    configs = list(CONFIGS)
    assert python(COUNT, real_build.parent, cache, *configs) == "1807 668 284 315 272 268 1521 1379 1675 221 6250"
    build(upstream, here / "easg-bench", "--same-frame", "all")  # another folder of the same name
    assert python(COUNT, here, cache, *configs) == "1820 668 287 319 275 271 1527 1379 1683 221 6250"
    build(upstream, here / "easg-bench")  # the same folder, rebuilt
    assert python(COUNT, here, cache, *configs[:3]) == "1807 668 284"


@pytest.mark.real
def test_every_real_config_loads_with_its_features(real_build: Path) -> None:
    counts = {config: len(easg_bench.load(real_build, config)) for config in CONFIGS}
    assert counts == dict(zip(CONFIGS, (1807, 668, 284, 315, 272, 268, 1521, 1379, 1675, 221, 6250), strict=True))


def test_a_rebuilt_folder_is_read_fresh_in_a_fresh_process(
    raw: dict[str, Any], save: Save, small: Path, tmp_path: Path
) -> None:
    code = "from datasets import load_dataset; print(load_dataset('easg-bench', split='test')[0]['context'])"
    assert python(code, small.parent, tmp_path / "cache") == raw["narrations"]["kitchen"]
    raw["narrations"]["kitchen"] = raw["narrations"]["kitchen"].replace("cup", "mug")  # as many bytes, as many rows
    build(save(raw), small)
    assert python(code, small.parent, tmp_path / "cache") == raw["narrations"]["kitchen"]


def test_a_file_rewritten_in_place_is_read_fresh_by_load(small: Path) -> None:
    (path,) = small.glob("data/direct-*")
    assert len(easg_bench.load(small, "direct")) == 4
    pq.write_table(pq.read_table(path).slice(0, 1), path)
    assert len(easg_bench.load(small, "direct")) == 1


@pytest.mark.parametrize("config", CONFIGS)
def test_every_config_of_a_folder_loads_with_its_features(config: str, small: Path) -> None:
    """H06: a folder of the data repo loads without a loading script."""
    assert not list(small.rglob("*.py"))
    data = easg_bench.load(str(small), config)
    assert data.features == CONFIGS[config]
    assert len(data) > 0
    assert data[0]["clip"] == "kitchen"


def test_no_remote_code_and_no_warning_on_the_way(small: Path, tmp_path: Path) -> None:
    """H07"""
    for folder in ("videoqa", "builder", "metrics", "tasks", "space", "demo", "."):
        for path in (ROOT / folder).glob("*.py" if folder == "." else "**/*.py"):
            assert not re.search(r"trust_remote_code\s*=\s*True", path.read_text(encoding="utf-8")), path
    code = (
        "import easg_bench, sys, warnings; warnings.simplefilter('error');"
        "print(*[len(easg_bench.load('easg-bench', c)) for c in sys.argv[1:]])"
    )
    assert python(code, small.parent, tmp_path / "cache", *CONFIGS) == "17 3 4 5 3 2 17 2 12 2 7"


def test_rows_with_a_gold_and_rows_without_go_together(tmp_path: Path) -> None:
    """H08: a column that is null in all rows of one file and filled in another has one type all the same."""
    row = dict.fromkeys(FEATURES) | {"id": "a", "context": "", "evidence": []}
    shown = {"graph": "g", "frame": 1, "seconds": 0.1, "object": "cup", "box": [0.0, 0.0, 1.0, 1.0]}
    shown["attribute"] = "red"
    chosen = row | {"choices": ["x", "y"], "gold": 3, "frame": 7, "start_s": 0.5, "evidence": [shown]}
    parts = []
    for name, rows in {"subset": [chosen], "full": [row, row]}.items():
        folder = tmp_path / name
        folder.mkdir()
        pq.write_table(pa.Table.from_pylist(rows, schema=FEATURES.arrow_schema), folder / "a.parquet")
        (folder / "README.md").write_text(
            "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: a.parquet\n---\n"
        )
        parts.append(easg_bench.load(folder))
    together = concatenate_datasets(parts)
    assert together.features == FEATURES
    assert together["gold"][:] == [3, None, None]
    assert together["evidence"][:] == [[shown], [], []]


def test_rows_are_read_without_any_video_library(small: Path, tmp_path: Path) -> None:
    """H09"""
    code = """
import sys
sys.modules.update(dict.fromkeys(["torchcodec", "decord", "av"]))  # None: as if not installed
import easg_bench
print(*[len(easg_bench.load("easg-bench", config).select(range(2))[:5]["clip"]) for config in sys.argv[1:]])
"""
    assert python(code, small.parent, tmp_path / "cache", *CONFIGS) == " ".join(["2"] * len(CONFIGS))


def test_an_unknown_config_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"config 'why': the configs are default, purpose, direct, .*, graphs"):
        easg_bench.load(tmp_path, "why")


def test_columns_that_differ_are_named(small: Path) -> None:
    (path,) = small.glob("data/direct-*")
    table = pq.read_table(path).drop_columns(["gold"]).replace_schema_metadata()
    table = table.append_column("colour", pa.nulls(len(table), pa.string()))
    table = table.set_column(table.schema.get_field_index("frame"), "frame", pa.array(["x"] * len(table)))
    pq.write_table(table, path)
    with pytest.raises(ValueError, match="easg-bench, config direct: these are not the columns") as error:
        easg_bench.load(small, "direct")
    assert "gold is missing; colour is unknown; frame is Value('string'), not Value('int32')" in str(error.value)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """What the Hub, or its cache, is asked for: it has every dataset."""
    asked = []

    def load(name: str, config: str, split: str) -> Dataset:
        asked.append((name, config, split))
        return Dataset.from_dict({name: [] for name in FEATURES}, features=FEATURES)

    monkeypatch.setattr("videoqa.dataset.load_dataset", load)
    return asked


def test_an_org_and_a_name_go_to_the_hub(
    hub: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    easg_bench.load("somebody/easg-bench", "before", split="train")
    assert hub == [("somebody/easg-bench", "before", "train")]


@pytest.mark.parametrize("name", ["easg-bench", "./somebody/x", "a/b/c", "../easg-bench", "/nowhere/at-all"])
def test_a_name_that_is_no_folder_is_looked_up_nowhere(
    name: str, hub: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The cache of `datasets` would answer with the rows that it once had under this name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no such folder here\. Give --data FOLDER.* or --data ORG/NAME"):
        easg_bench.load(name)
    with pytest.raises(FileNotFoundError, match=r"^easg-bench: no such folder here"):
        easg_bench.load()
    assert not hub


def test_the_rows_that_were_once_loaded_by_a_bare_name_are_not_served_again(small: Path, tmp_path: Path) -> None:
    cache, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert python(COUNT, small.parent, cache, "default") == "17"
    code = "import easg_bench\ntry: print(len(easg_bench.load()))\nexcept FileNotFoundError as error: print(error)"
    assert python(code, elsewhere, cache).startswith("easg-bench: no such folder here")


def test_a_folder_without_data_is_there(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "notes.txt").write_text("x")
    for folder, message in ((empty, "this folder holds no data"), (tmp_path, "not a dataset of the builder")):
        with pytest.raises(UserError, match=f"{message}.*Give --data FOLDER") as error:
            easg_bench.load(folder)
        assert "no such folder" not in str(error.value)
    with pytest.raises(FileNotFoundError, match="a file, and no folder"):
        easg_bench.load(tmp_path / "notes.txt")


def test_what_pandas_wrote_back_is_read(small: Path) -> None:
    import pandas as pd

    before = {config: easg_bench.load(small, config)[:] for config in CONFIGS}
    for path in small.glob("data/*.parquet"):
        pd.read_parquet(path).to_parquet(path)
    assert pq.read_schema(path).field("clip").type == pa.large_string()
    for config, rows in before.items():
        data = easg_bench.load(small, config)
        assert data.features == CONFIGS[config]
        assert data[:] == rows


def test_a_column_of_fractions_is_no_column_of_whole_numbers(small: Path) -> None:
    (path,) = small.glob("data/direct-*")
    table = pq.read_table(path)
    at = table.schema.get_field_index("frame")
    pq.write_table(table.set_column(at, "frame", pa.array([2.5] * len(table))), path)
    with pytest.raises(ValueError, match="easg-bench, config direct: these are not the columns"):
        easg_bench.load(small, "direct")


def test_the_files_carry_no_feature_names_of_one_version(small: Path) -> None:
    """Those of `datasets` 4 ("List") end its versions 3 with an error."""
    for path in small.glob("data/*.parquet"):
        assert pq.read_schema(path).metadata is None, path


def test_a_name_that_is_nowhere_is_told(tmp_path: Path) -> None:
    code = """
import easg_bench
try:
    easg_bench.load("somebody/nothing")
except FileNotFoundError as error:
    print(error)
"""
    assert python(code, tmp_path, tmp_path / "cache").startswith(
        "somebody/nothing: no such folder here, and no dataset"
    )


def test_a_dataset_of_before_the_readings_is_read_and_its_questions_are_of_no_review(
    demo_data: Path, tmp_path: Path
) -> None:
    import shutil

    import pyarrow.parquet as pq

    from videoqa.rows import revision

    old = tmp_path / "old"
    shutil.copytree(demo_data, old)
    for path in (old / "data").glob("*.parquet"):
        table = pq.read_table(path)
        if "review" in table.column_names:
            pq.write_table(table.drop_columns(["review"]), path)
    rows = list(easg_bench.load(old))
    assert {row["review"] for row in rows} == {None}
    assert revision(rows) == revision(list(easg_bench.load(demo_data)))
