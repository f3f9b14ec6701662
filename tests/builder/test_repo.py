"""builder/repo.py and easg/{rows,card,dataset}.py: the folder that is the dataset, whole or not there at all."""

from __future__ import annotations

import errno
import os
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard

import easg_bench
from builder import repo
from builder.easg import dataset, readings
from builder.easg.annotations import USUAL_NAMES, read_clips
from builder.easg.card import CONFIG_NOTES, recorded
from builder.easg.questions import SameFrame
from builder.easg.rows import clip_rows, question_rows
from builder.errors import BuildError
from easg_bench import CONFIGS, FEATURES, TYPES

ROOT = Path(__file__).resolve().parents[2]
Save = Callable[[dict[str, Any]], Path]


@pytest.fixture
def make(raw: dict[str, Any], save: Save, tmp_path: Path) -> Callable[..., Path]:
    """Builds `raw` as it is now into a folder of tmp_path/out."""

    def build(name: str = "easg-bench", same_frame: SameFrame = "last") -> Path:
        sources = {role: save(raw) / file for role, file in USUAL_NAMES.items()}
        clips, _ = read_clips(**sources)
        rows: defaultdict[str, list[Any]] = defaultdict(list)
        for clip in clips:
            questions = question_rows(clip, same_frame, Counter(), readings=readings.read(tmp_path / "source"))
            for config, of_clip in clip_rows(clip, questions, Counter()).items():
                rows[config] += of_clip
        out = tmp_path / "out" / name
        dataset.write(out, [rows], list(sources.values()), recorded(same_frame, "template"))
        return out

    return build


def tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {path.name.split("-")[0]: pq.read_table(path).to_pylist() for path in (folder / "data").iterdir()}


def test_a_row_says_all_that_is_known_of_the_question(make: Callable[..., Path], raw: dict[str, Any]) -> None:
    row = next(row for row in tables(make())["direct"] if row["id"] == "kitchen:2:direct")
    assert row.pop("question").endswith("?")
    shown = {"graph": "graph at 90", "frame": 90, "seconds": 3.0, "object": "water", "box": [0.1, 0.1, 0.3, 0.3]}
    shown["attribute"] = None
    assert row == {
        "id": "kitchen:2:direct",
        "clip": "kitchen",
        "video": "video-1",
        "type": "direct",
        "answer": "water",
        "choices": None,
        "gold": None,
        "context": raw["narrations"]["kitchen"],
        "frame": 90,
        "start_s": 80 / 30,
        "end_s": 110 / 30,
        "clip_start_s": 1.0,
        "evidence": [shown],
        "review": "clear",
    }


def test_a_purpose_row_has_no_moment_of_its_own(make: Callable[..., Path]) -> None:
    rows = tables(make())["purpose"]
    assert len(rows) == 3
    assert {row["id"].rsplit(":", 1)[0] for row in rows} == {"kitchen:purpose", "garden:purpose"}
    assert all(row["frame"] is row["start_s"] is row["end_s"] is None for row in rows)


def test_ids_are_unique_and_clips_without_narrations_have_an_empty_context(make: Callable[..., Path]) -> None:
    rows = [row for kind in TYPES for row in tables(make())[kind]]
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["context"] for row in rows if row["clip"] == "garden"} == {""}


def test_without_spans_the_start_of_the_clip_is_null(raw: dict[str, Any], make: Callable[..., Path]) -> None:
    raw["spans"] = {}
    assert {row["clip_start_s"] for row in tables(make())["direct"]} == {None}


def test_the_graphs_config_has_every_graph_also_those_without_an_action(make: Callable[..., Path]) -> None:
    rows = tables(make())["graphs"]
    assert [(row["clip"], row["index"], row["verb"], row["vote"]) for row in rows] == [
        ("kitchen", 1, "pick up", None),
        ("kitchen", 2, "pour", 0.0),
        ("kitchen", 3, "put", 0.2),
        ("kitchen", 4, "wipe", 0.4),
        ("garden", 1, None, None),
        ("garden", 2, "pull", 0.1),
        ("garden", 3, "drop", None),
    ]
    assert rows[1]["relations"] == [{"relation": "into", "tail": "cup"}, {"relation": "from", "tail": "jug"}]
    assert [box["object"] for box in rows[1]["boxes"]] == ["water", "left_hand"]


def test_the_same_input_gives_the_same_bytes_and_another_gives_other_file_names(
    raw: dict[str, Any], make: Callable[..., Path]
) -> None:
    one, two = make("one"), make("two")
    assert repo.folder_sha256(one) == repo.folder_sha256(two)
    raw["narrations"]["kitchen"] += " (4.00s) #C C wipes the table."
    again = make("two")
    assert repo.folder_sha256(one) != repo.folder_sha256(again)
    changed = {path.name for path in (again / "data").iterdir()} - {path.name for path in (one / "data").iterdir()}
    assert {name.split("-")[0] for name in changed} == set(CONFIGS) - {"default", "graphs"}


def test_the_card_declares_every_config_counts_it_and_explains_every_column(make: Callable[..., Path]) -> None:
    folder = make()
    card = DatasetCard.load(folder / "README.md")
    declared = {config["config_name"]: config["data_files"] for config in card.data.to_dict()["configs"]}
    assert list(declared) == list(CONFIGS)
    for files in declared.values():
        assert [file["split"] for file in files] == ["test"]
        assert all((folder / path).is_file() for file in files for path in file["path"])
    assert "| `default` | 17 |" in card.text
    assert "| `graphs` | 7 |" in card.text
    assert set(re.findall(r"^\| `(\w+)` \|", card.text.split("## Columns")[1], re.M)) == set(FEATURES)
    assert "Ego4D licence" in card.text and "2506.05787" in card.text
    assert repo.file_sha256(folder.parent.parent / "source" / "recorded_votes.json") in card.text
    assert "$" not in card.text and len(CONFIG_NOTES) == len(CONFIGS)
    assert "](statistics.png)" in card.text and (folder / "statistics.png").read_bytes().startswith(b"\x89PNG")


def test_a_former_build_is_replaced_and_nothing_else_is_left(raw: dict[str, Any], make: Callable[..., Path]) -> None:
    out = make()
    raw["annotations"]["kitchen"]["graphs"].pop()
    raw["votes"]["scores"]["kitchen"].pop("4")
    make()
    assert len(tables(out)["graphs"]) == 6
    assert len(list((out / "data").iterdir())) == len(CONFIGS) - 1
    assert [path.name for path in out.parent.iterdir()] == ["easg-bench"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"thesis.doc": "x"}, "holds something else (thesis.doc)"),
        ({"README.md": "# my project"}, "a dataset that this builder did not make"),
        ({"README.md": repo.MARK, "data/train.csv": ""}, "holds something else (data/train.csv)"),
        ({"data/a.parquet": ""}, "a dataset that this builder did not make"),
    ],
)
def test_a_folder_that_holds_something_else_is_left_alone(
    files: dict[str, str], message: str, make: Callable[..., Path], tmp_path: Path
) -> None:
    out = tmp_path / "out" / "easg-bench"
    for name, text in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text)
    with pytest.raises(BuildError, match=re.escape(message)):
        make()
    assert {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} == set(files)


def test_an_empty_folder_is_taken_and_a_file_is_not(make: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "out" / "empty").mkdir(parents=True)
    assert (make("empty") / "README.md").is_file()
    (tmp_path / "out" / "file").write_text("x")
    with pytest.raises(BuildError, match="is a file"):
        make("file")


def test_no_space_left_is_told_and_the_former_build_stays(
    make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = repo.folder_sha256(out := make())

    def full(*args: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(repo.pq, "ParquetWriter", full)
        with pytest.raises(BuildError, match=r"easg-bench: cannot be written: No space left on device"):
            make()
    real = Path.rename
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda path, to: full() if ".new-" in path.name else real(path, to))
        with pytest.raises(BuildError, match="No space left"):
            make()
    assert repo.folder_sha256(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["easg-bench"]


KILLED = """
import os, signal, sys
from pathlib import Path
real = Path.rename
def kill(path, to):
    if ".new-" in path.name:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(path, to)
Path.rename = kill
from builder.__main__ import app
app(sys.argv[1:])
"""


def test_a_build_killed_between_two_renames_is_undone_by_the_next(
    raw: dict[str, Any], make: Callable[..., Path], tmp_path: Path
) -> None:
    before = repo.folder_sha256(out := make())
    arguments = ["build", "--source", str(tmp_path / "source"), "--out", str(out)]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], cwd=ROOT, capture_output=True, timeout=120)
    assert done.returncode == -9 and not out.exists() and len(list(out.parent.iterdir())) == 2
    with pytest.raises(ZeroDivisionError), repo.replaced(out):  # the next build fails as well
        raise ZeroDivisionError
    assert repo.folder_sha256(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["easg-bench"]


def test_a_build_that_is_running_keeps_its_folders(make: Callable[..., Path]) -> None:
    out = make()
    beside = out.with_name(f".easg-bench.new-{os.getppid()}")
    beside.mkdir()
    make()
    assert beside.is_dir()


def test_a_disk_that_takes_no_more_leaves_nothing_half_written(raw: dict[str, Any], save: Save, tmp_path: Path) -> None:
    raw["narrations"]["kitchen"] = random.Random(0).randbytes(200_000).hex()  # does not compress below the limit
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000));"
        "from builder.__main__ import app; app(sys.argv[1:])"
    )
    out = tmp_path / "out" / "easg-bench"
    command = [sys.executable, "-B", "-c", code, "build", "--source", str(save(raw)), "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert "easg-bench: cannot be written: " in done.stderr and "Traceback" not in done.stderr
    assert list(out.parent.iterdir()) == []


def test_a_type_without_questions_has_no_config_and_no_questions_at_all_no_dataset(
    raw: dict[str, Any], make: Callable[..., Path]
) -> None:
    raw["votes"]["scores"] = {}
    folder = make()
    assert [row["type"] for row in easg_bench.load(folder)] == ["purpose"] * 3
    with pytest.raises(
        ValueError,
        match=r"'before' not found. Available: \['default', 'purpose', 'unambiguous', ",
    ):
        easg_bench.load(folder, "before")
    raw["purpose_counts"] = {}
    with pytest.raises(BuildError, match=r"no question comes out of .*EASG_unict_master_final\.json"):
        make("empty")
    assert not (folder.parent / "empty").exists()


@pytest.mark.real
def test_every_real_box_is_inside_its_frame_and_every_action_question_has_one(real_build: Path) -> None:
    rows = [row for kind in TYPES for row in tables(real_build)[kind]]
    boxes = [item["box"] for row in rows for item in row["evidence"]]
    boxes += [item["box"] for row in tables(real_build)["graphs"] for item in row["boxes"]]
    assert all(0 <= left < right <= 1 and 0 <= top < bottom <= 1 for left, top, right, bottom in boxes)
    asked = [row for row in rows if row["type"] != "purpose"]
    assert len(asked) == 1139 and all(row["evidence"] for row in asked)
    assert len({row["id"] for row in rows}) == 1807
    assert [row["clip"] for row in tables(real_build)["narrations"] if not row["narrations"]] == [
        "8709efb8-d4f2-40c8-b34a-8a6524d5e7f6"
    ]
