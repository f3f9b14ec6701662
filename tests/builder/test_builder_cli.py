"""builder/__main__.py: `python -m builder build` as people run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from builder.__main__ import app
from builder.easg.annotations import USUAL_NAMES
from builder.repo import folder_sha256

ROOT = Path(__file__).resolve().parents[2]
Save = Callable[[dict[str, Any]], Path]


def run(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["build", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def test_a_build_prints_what_was_made_and_where(raw: dict[str, Any], save: Save, tmp_path: Path) -> None:
    code, out, err = run("--source", save(raw), "--out", tmp_path / "a")
    assert code == 0, err
    assert out.splitlines() == [
        "questions: purpose 3, direct 4, indirect 5, before 3, after 2, total 17",
        "clips: 2 annotated, 2 with questions, 2 with action questions",
        "made:",
        "     14  action questions grounded at pnr",
        "      2  purpose questions grounded",
        "      1  purpose questions without a box",
        "      5  questions without a grounded object: not language-neutral",
        "skipped or missing in the input:",
        "      1  clips without narrations",
        "      1  graphs without a verb",
        "      1  graphs without an action",
        "      1  graphs without boxes",
        f"dataset: {tmp_path / 'a'}",
        f"sha256: {folder_sha256(tmp_path / 'a')}",
    ]


def test_files_can_be_given_one_by_one_and_spans_are_optional(raw: dict[str, Any], save: Save, tmp_path: Path) -> None:
    folder = save(raw)
    files = [part for role, name in USUAL_NAMES.items() for part in (f"--{role.replace('_', '-')}", folder / name)]
    assert run("--source", folder, "--out", tmp_path / "a")[0] == 0
    assert run(*files, "--out", tmp_path / "b")[0] == 0
    assert folder_sha256(tmp_path / "a") == folder_sha256(tmp_path / "b")
    assert run(*files[:-2], "--out", tmp_path / "c")[0] == 0
    (folder / USUAL_NAMES["spans"]).unlink()
    assert run("--source", folder, "--out", tmp_path / "d")[0] == 0
    assert folder_sha256(tmp_path / "c") == folder_sha256(tmp_path / "d") != folder_sha256(tmp_path / "a")


def test_same_frame_all_keeps_what_the_papers_key_loses(raw: dict[str, Any], save: Save, tmp_path: Path) -> None:
    for graph in raw["annotations"]["kitchen"]["graphs"][1:3]:
        graph.update(pre=100, pnr=100, post=100)
    source = save(raw)
    assert "direct 3," in run("--source", source, "--out", tmp_path / "a")[1]
    assert "direct 4," in run("--source", source, "--out", tmp_path / "a", "--same-frame", "all")[1]
    assert run("--source", source, "--out", tmp_path / "a", "--same-frame", "first")[0] == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda raw: raw.update(annotations='{"kitchen": {"W"'),
            "EASG_unict_master_final.json: no valid JSON at line 1",
        ),
        (lambda raw: raw["annotations"]["kitchen"].update(W=0), "clip kitchen: W, the size of the frame"),
        (lambda raw: raw["annotations"]["garden"].update(graphs=[]), "clip garden: graphs must be"),
        (lambda raw: raw["votes"]["scores"].update(attic={}), "recorded_votes.json: clip attic: "),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    change: Callable[[dict[str, Any]], None], message: str, raw: dict[str, Any], save: Save, tmp_path: Path
) -> None:
    change(raw)
    code, out, err = run("--source", save(raw), "--out", tmp_path / "new" / "a")
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and message in err and len(err.splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_a_missing_option_or_file_is_named(raw: dict[str, Any], save: Save, tmp_path: Path) -> None:
    code, _, err = run("--annotations", save(raw) / USUAL_NAMES["annotations"], "--out", tmp_path / "a")
    assert (code, err) == (2, "error: --narrations is missing; give it, or --source for a folder that has it\n")
    code, _, err = run("--source", tmp_path / "nowhere", "--out", tmp_path / "a")
    assert (code, err) == (2, f"error: {tmp_path / 'nowhere' / 'EASG_unict_master_final.json'}: no such file\n")


def test_a_place_with_dots_in_its_name_is_refused_before_it_can_mean_another_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    code, _, err = run("--source", ROOT / "demo" / "data", "--out", tmp_path / "new" / "..")
    assert code == 2 and "without .." in err and (tmp_path / "mine.txt").exists()


def test_the_place_is_checked_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    code, _, err = run("--source", tmp_path / "nowhere", "--out", tmp_path)
    assert code == 2
    assert f"error: {tmp_path}: holds something else (mine.txt)" in err


@pytest.mark.real
def test_the_real_build_prints_the_papers_counts(real_build: Path) -> None:
    log = real_build.with_name("build.log").read_text(encoding="utf-8")
    assert "questions: purpose 668, direct 284, indirect 315, before 272, after 268, total 1,807\n" in log
    assert "clips: 221 annotated, 218 with questions, 138 with action questions\n" in log
    counts = {kind: int(n.replace(",", "")) for n, kind in re.findall(r"^ +([\d,]+)  (.+)$", log, re.M)}
    grounded = {stage: counts[f"action questions grounded at {stage}"] for stage in ("pnr", "pre", "post")}
    assert grounded == {"pnr": 1119, "pre": 8, "post": 12} and sum(grounded.values()) == 1139
    assert counts["purpose questions grounded"] == 668 and "purpose questions without a box" not in counts
    assert counts["rows whose neighbour is out of order"] == 9
    assert counts["graphs without a verb"] == 18 and counts["graphs without an action"] == 32


@pytest.mark.real
def test_the_real_build_gives_the_same_bytes_again(upstream: Path, real_build: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "builder", "build", "--source", str(upstream), "--out", str(tmp_path / "again")]
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    assert f"sha256: {folder_sha256(real_build)}\n" in done.stdout


@pytest.mark.real
def test_the_real_build_with_all_frames_has_the_thirteen_more(upstream: Path, tmp_path: Path) -> None:
    code, out, err = run("--source", upstream, "--out", tmp_path / "all", "--same-frame", "all")
    assert code == 0, err
    assert "questions: purpose 668, direct 287, indirect 319, before 275, after 271, total 1,820\n" in out
