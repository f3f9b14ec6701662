"""builder/publish.py against a Hub on loopback: plan, one commit, nothing half done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi, constants
from typer.testing import CliRunner

from builder.__main__ import app
from builder.errors import BuildError
from builder.publish import Plan, plan, publish
from builder.publish import content as published
from builder.repo import MARK
from tests.hub_server import HubServer

NAME = "org/easg-bench"
ROWS = {"default": 17}
Save = Callable[[dict[str, Any]], Path]


@pytest.fixture(autouse=True)
def plain_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through Git LFS: hf_xet's storage is not on loopback."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer({NAME: {".gitattributes": b"* text"}}, lfs=(".parquet", ".png")) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a build leaves, as far as publishing looks at it."""
    out = tmp_path / "easg-bench"
    (out / "data").mkdir(parents=True)
    (out / "README.md").write_text(f"---\nlicense: other\n---\n{MARK}\n")
    (out / "statistics.png").write_bytes(b"picture")
    for name in ("direct-1", "purpose-1"):
        (out / "data" / f"{name}.parquet").write_bytes(name.encode() * 100)
    return out


def api(hub: HubServer) -> HfApi:
    return HfApi(endpoint=hub.url, token="hf_token")


def put(hub: HubServer, folder: Path) -> tuple[Plan, str | None]:
    planned = plan(folder, NAME, ROWS, api(hub))
    return planned, publish(folder, planned, api(hub))


def commits(hub: HubServer) -> list[str]:
    return [request for request in hub.requests if "/commit/" in request]


def content(folder: Path) -> dict[str, bytes]:
    """The files as they are published: the card names the repo."""
    return {p.relative_to(folder).as_posix(): published(p, NAME) for p in folder.rglob("*") if p.is_file()}


def test_all_files_go_up_in_one_commit_with_the_card_last(hub: HubServer, folder: Path) -> None:
    planned, address = put(hub, folder)
    assert list(planned.files.items()) == [
        ("data/direct-1.parquet", "new"),
        ("data/purpose-1.parquet", "new"),
        ("statistics.png", "new"),
        ("README.md", "new"),
    ]
    assert hub.files[NAME]["main"] == {".gitattributes": b"* text", **content(folder)}
    assert len(commits(hub)) == 1
    assert address and address.startswith(f"{hub.url}/datasets/{NAME}/commit/")


def test_the_plan_says_rows_files_sizes_and_what_differs(hub: HubServer, folder: Path) -> None:
    put(hub, folder)
    (folder / "data" / "direct-1.parquet").rename(folder / "data" / "direct-2.parquet")
    (folder / "README.md").write_text(f"{MARK} and more")
    assert str(plan(folder, NAME, ROWS, api(hub))).splitlines() == [
        f"publish to {NAME}",
        "  default                    17 rows",
        "  gone     data/direct-1.parquet                             ",
        "  new      data/direct-2.parquet                                      0.8 kB",
        "  same     data/purpose-1.parquet                                     0.9 kB",
        "  same     statistics.png                                             0.0 kB",
        f"  changed  README.md                                         {len(MARK) / 1000 + 0.009:12,.1f} kB",
        "  to upload: 0.9 kB",
    ]
    assert len(commits(hub)) == 1, "a plan changes nothing"


def test_a_second_publish_of_the_same_bytes_is_no_commit(hub: HubServer, folder: Path) -> None:
    put(hub, folder)
    planned, address = put(hub, folder)
    assert address is None and not planned.changes
    assert str(planned).endswith("nothing differs: nothing to do")
    assert len(commits(hub)) == 1


def test_a_rebuild_takes_the_former_data_away_and_leaves_what_is_not_the_builders(hub: HubServer, folder: Path) -> None:
    put(hub, folder)
    hub.files[NAME]["main"]["notes/thanks.md"] = b"thanks"
    (folder / "data" / "direct-1.parquet").rename(folder / "data" / "direct-2.parquet")
    put(hub, folder)
    assert hub.files[NAME]["main"] == {".gitattributes": b"* text", "notes/thanks.md": b"thanks", **content(folder)}


@pytest.mark.parametrize("step", ["/lfs/", "/preupload/", "/commit/", "/objects/batch"])
def test_an_interrupted_publish_leaves_the_old_revision_whole(step: str, hub: HubServer, folder: Path) -> None:
    put(hub, folder)
    before = dict(hub.files[NAME]["main"])
    (folder / "data" / "direct-1.parquet").write_bytes(b"other bytes")
    hub.refused = step
    with pytest.raises(BuildError, match=rf"{NAME}: "):
        put(hub, folder)
    assert hub.files[NAME]["main"] == before
    hub.refused = None
    assert put(hub, folder)[1]
    assert hub.files[NAME]["main"]["data/direct-1.parquet"] == b"other bytes"


def test_what_somebody_changed_meanwhile_is_not_overwritten(hub: HubServer, folder: Path) -> None:
    planned = plan(folder, NAME, ROWS, api(hub))
    hub.files[NAME]["main"]["data/theirs.parquet"] = b"x"
    with pytest.raises(BuildError, match="somebody changed it meanwhile"):
        publish(folder, planned, api(hub))
    assert hub.files[NAME]["main"] == {".gitattributes": b"* text", "data/theirs.parquet": b"x"}


def test_a_repo_that_is_not_there_is_made(hub: HubServer, folder: Path) -> None:
    planned = plan(folder, "org/new", ROWS, api(hub))
    assert planned.base is None and "will be made, private" in str(planned)
    assert publish(folder, planned, api(hub))
    assert hub.files["org/new"]["main"] == content(folder)


def test_another_dataset_on_the_hub_is_left_alone(hub: HubServer, folder: Path) -> None:
    hub.files[NAME]["main"] = {"README.md": b"# squad", "data/train.parquet": b"x"}
    with pytest.raises(BuildError, match="holds a dataset that this builder did not make"):
        plan(folder, NAME, ROWS, api(hub))
    (folder / "README.md").write_text("# mine")
    with pytest.raises(BuildError, match="easg-bench: holds a dataset that this builder did not make"):
        plan(folder, "org/new", ROWS, api(hub))


def test_a_hub_that_is_not_there_and_a_name_that_is_none_are_told(hub: HubServer, folder: Path) -> None:
    with pytest.raises(BuildError, match="org/a b: "):
        plan(folder, "org/a b", ROWS, api(hub))
    with pytest.raises(BuildError, match="the Hub cannot be reached"):
        plan(folder, NAME, ROWS, HfApi(endpoint="http://127.0.0.1:9", token="hf_token"))


def run(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def test_the_command_line_plans_and_refuses_errors(
    raw: dict[str, Any], save: Save, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: api(hub))
    out = tmp_path / "out"
    assert run("build", "--source", save(raw), "--out", out)[0] == 0
    code, said, err = run("publish", out, "--repo", NAME, "--dry-run")
    assert code == 0, err
    assert "default                    17 rows" in said and "published" not in said
    assert not commits(hub)
    code, said, err = run("publish", out, "--repo", NAME)
    assert code == 0 and f"published: {hub.url}/datasets/{NAME}/commit/" in said, err
    assert hub.files[NAME]["main"] == {".gitattributes": b"* text", **content(out)}

    raw["annotations"]["kitchen"]["graphs"][1]["triplets"][1][2] = "water **cold**"
    assert run("build", "--source", save(raw), "--out", out)[0] == 0
    code, said, err = run("publish", out, "--repo", NAME)
    assert code == 2 and "not published, for it has" in err and "error: markup left" in said
    assert len(commits(hub)) == 1


@pytest.mark.real
def test_the_plan_of_the_real_build(hub: HubServer, real_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: api(hub))
    code, said, err = run("publish", real_build, "--repo", NAME, "--dry-run")
    assert code == 0, err
    assert "default                 1,807 rows" in said and "language_neutral        1,675 rows" in said
    assert said.count("  new      ") == 13 and json.dumps(said).isascii()
