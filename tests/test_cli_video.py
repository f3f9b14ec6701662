"""The command line with videos: frames, two stages, shards and their merge, the videos of a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.scripted import Scripted
from videoqa import results
from videoqa.commands import command_line
from videoqa.rows import shard as part_of
from videoqa.runs import Run, RunMismatch, merge_runs


def script(asked: Any, _: int) -> str:
    text = asked if isinstance(asked, str) else "".join(part.get("text", "") for part in asked)
    if "Find in the video" in text:
        return "2 s to 4 s"
    return "dropped the cup" if "Answer with a short phrase" in text else "6\n"


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("videoqa.engines.open_engine", lambda spec, **_: Scripted(script, name=spec))


@pytest.fixture
def some_videos(demo_videos: Path, tmp_path: Path) -> Path:
    """All of the demo's videos but that of demo-tea."""
    folder = tmp_path / "some videos"
    folder.mkdir()
    for path in demo_videos.glob("*.mp4"):
        if path.stem != "demo-tea":
            (folder / path.name).symlink_to(path)
    return folder


def bench(*arguments: Any) -> Any:
    return CliRunner().invoke(command_line(), [str(a) for a in arguments])


def test_rows_without_a_video_are_counted_and_the_run_goes_on(
    demo_data: Path, some_videos: Path, demo_videos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    command = ["run", "--model", "m", "--judge", "j", "--mode", "score", "--data", demo_data, "--prompt", "frames"]
    command += ["--frames", "uniform:2", "--store", tmp_path / "store", "--out", out]
    done = bench(*command, "--videos", some_videos)
    assert done.exit_code == 3 and "rows have no video that can be read (video_error)" in done.stderr
    found = results.read(out / "scores.json")
    assert found.kind == "video" and found.frames == "uniform:2"
    assert 0 < found.video_errors == found.unanswered == 60 - found.avg.n
    assert all(line["frames"] for line in Run(out).answers().values() if line["error"] is None)
    # the missing video comes: only its rows are asked
    done = bench(*command, "--videos", demo_videos)
    assert done.exit_code == 0, done.output
    assert results.read(out / "scores.json").video_errors == 0


def test_two_stages_ask_before_and_after_and_the_report_has_table_3(
    demo_data: Path, demo_videos: Path, tmp_path: Path
) -> None:
    for prompt in ("frames", "two-stage"):
        done = bench(
            "run", "--model", "m", "--judge", "j", "--mode", "score", "--data", demo_data, "--prompt", prompt,
            "--frames", "uniform:2", "--videos", demo_videos, "--store", tmp_path / "store", "--out", tmp_path / prompt,
        )  # fmt: skip
        assert done.exit_code == 0, done.output
    assert "Table 3" in done.output and "88.33" in done.output
    found = results.read(tmp_path / "two-stage" / "scores.json")
    assert found.kind == "two-stage" and list(found.types) == ["before", "after"]
    hit, iou = (found.extras[f"located_{name}"]["all"]["mean"] for name in ("hit", "iou"))
    assert 0 < hit < 1 and iou > 0
    done = bench("report", tmp_path / "frames", tmp_path / "two-stage")
    assert all(f"m ({prompt}, uniform:2)" in done.output for prompt in ("frames", "two-stage"))
    assert "located iou" in done.output
    done = bench("compare", tmp_path / "two-stage", tmp_path / "frames")
    assert done.exit_code == 0, done.output


def test_a_set_whose_clips_lie_elsewhere_is_not_the_one_that_was_shown(
    demo_data: Path, demo_videos: Path, tmp_path: Path
) -> None:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    data, out = tmp_path / "demo", tmp_path / "run"
    shutil.copytree(demo_data, data)
    command = ["answer", "--model", "m", "--data", data, "--prompt", "frames", "--frames", "uniform:2"]
    command += ["--videos", demo_videos, "--limit", "5", "--out", out]
    judge = ["judge", out, "--judge", "j", "--mode", "score", "--store", tmp_path / "store"]
    done = bench(*command)
    assert done.exit_code == 0 and ", frames uniform:2" in done.output and f"data: {data}, config" in done.output
    for path in data.glob("data/*.parquet"):
        table = pq.read_table(path)
        if "clip_start_s" in table.column_names:
            at = table.schema.get_field_index("clip_start_s")
            pq.write_table(table.set_column(at, "clip_start_s", pc.add(table["clip_start_s"], 1.0)), path)
    assert "clips is" in str(bench(*command).exception)
    assert "now lie elsewhere in their videos" in str(bench(*judge).exception)
    config = json.loads((out / "config.json").read_text())
    del config["clips"]  # a run from before it was kept
    (out / "config.json").write_text(json.dumps(config))
    assert bench(*command).exit_code == 0
    assert bench(*judge).exit_code == 0


def test_shards_are_a_whole_run_again(demo_data: Path, demo_videos: Path, tmp_path: Path) -> None:
    command = ["answer", "--model", "m", "--data", demo_data, "--prompt", "two-stage", "--frames", "uniform:2"]
    command += ["--videos", demo_videos]
    shards = [tmp_path / f"shard{n}" for n in (1, 2, 3)]
    assert bench(*command, "--out", tmp_path / "whole").exit_code == 0
    for n, folder in enumerate(shards, 1):
        assert bench(*command, "--shard", f"{n}/3", "--out", folder).exit_code == 0
    assert bench("merge", *shards[:2], "--out", tmp_path / "part").exception is not None
    for _ in range(2):  # a merge that was stopped is done again
        done = bench("merge", *shards, "--out", tmp_path / "merged")
        assert done.exit_code == 0, done.output
    whole, merged = Run(tmp_path / "whole"), Run(tmp_path / "merged")
    said = [{name: {**line, "seconds": 0} for name, line in run.answers().items()} for run in (merged, whole)]
    assert said[0] == said[1] and merged.config == whole.config
    assert len(merged.answers_file.read()) == len(whole.answers_file.read())
    done = bench("judge", tmp_path / "merged", "--judge", "j", "--mode", "score", "--store", tmp_path / "store")
    assert done.exit_code == 0, done.output


def test_shards_of_different_runs_are_told_apart(tmp_path: Path) -> None:
    a = Run(tmp_path / "a", {"model": "m", "shard": "1/2"})
    b = Run(tmp_path / "b", {"model": "n", "shard": "2/2"})
    with pytest.raises(RunMismatch, match="model is 'n', not 'm'"):
        merge_runs([a, b], tmp_path / "out")
    with pytest.raises(RunMismatch, match="these are 1/2, 1/2"):
        merge_runs([a, a], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_clip_is_in_one_shard() -> None:
    rows = [{"clip": f"c{n // 3}", "id": n} for n in range(30)]
    parts = [part_of(rows, f"{n}/4") for n in range(1, 5)]
    assert sorted(row["id"] for part in parts for row in part) == list(range(30))
    for part in parts:
        assert all(sum(row["clip"] == other["clip"] for other in part) == 3 for row in part)
    assert part_of(rows, None) == rows


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"])
def test_a_wrong_shard_says_what_is_allowed(shard: str) -> None:
    with pytest.raises(ValueError, match="from 1/4 to 4/4"):
        part_of([], shard)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prompt", "frames"], "give --videos"),
        (["--prompt", "frames", "--videos", "/nowhere"], "no such folder"),
        (["--prompt", "frames", "--videos", ".", "--frames", "fps:0"], "fps must be above 0"),
        (["--prompt", "frames", "--videos", ".", "--frames", "uniform:8:fps:1"], "is not one of"),
        (["--prompt", "two-stage", "--videos", ".", "--config", "direct"], "asks before and after"),
    ],
)
def test_wrong_options_are_told(options: list[str], message: str, demo_data: Path, tmp_path: Path) -> None:
    done = bench("answer", "--model", "m", "--data", demo_data, "--out", tmp_path / "run", *options)
    assert isinstance(done.exception, ValueError) and message in str(done.exception)


def test_videos_check_names_what_is_missing_and_what_is_lost(
    demo_data: Path, some_videos: Path, demo_videos: Path
) -> None:
    done = bench("videos", "check", demo_videos, "--data", demo_data)
    assert done.exit_code == 0 and "8 of 8 clips" in done.output
    (some_videos / "demo-dishes.mp4").unlink()
    (some_videos / "demo-dishes.mp4").write_bytes(b"")
    done = bench("videos", "check", some_videos, "--data", demo_data)
    assert done.exit_code == 3 and "6 of 8 clips" in done.output
    assert "missing demo-tea: no file" in done.output and "missing demo-dishes:" in done.output
    assert "questions lost (purpose" in done.output


def test_videos_list_is_what_the_downloader_takes(demo_data: Path, tmp_path: Path) -> None:
    uids = json.loads((Path(__file__).parents[1] / "demo" / "data" / "EASG_unict_master_final.json").read_text())
    wanted = sorted({clip["video_uid"] for clip in uids.values()})
    printed = bench("videos", "list", "--data", demo_data)
    assert [line for line in printed.stdout.splitlines() if line in wanted] == wanted
    done = bench("videos", "list", "--data", demo_data, "--out", tmp_path / "uids.txt")
    assert done.exit_code == 0 and (tmp_path / "uids.txt").read_text().split() == wanted
