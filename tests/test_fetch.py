"""The public sources: from a server on loopback and from folders, with everything that can go wrong on the way."""

from __future__ import annotations

import hashlib
import json
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from videoqa.benchmarks.easg import rubric
from videoqa.benchmarks.easg import sources as public
from videoqa.benchmarks.easg.rubrics import rubric_file
from videoqa.benchmarks.easg.sources import ANNOTATIONS, NOTEBOOK, RUBRIC, SOURCES, SPANS, VOTES
from videoqa.commands import command_line
from videoqa.download import CHECKSUMS, TRIES, Source
from videoqa.errors import UserError

RULE = "Give a mark from 1 to 10.\nOne line.\n"
# the form of the public judge script, in other words
SCRIPT = r"""
def setup_seed(seed):
    torch.manual_seed(seed)

def ask(text):
    setup_seed(7)
    messages = [{"role": "system", "content": "Be strict."}, {"role": "user", "content": text}]
    return model.generate(messages, do_sample=True, temperature=0.5, top_p=0.8, max_new_tokens=most)

parser.add_argument('--rule')
parser.add_argument('--max-tokens', type=int, default=99)
content = (f'<c>\n{cap_str}\n' f'<q> {ques} <g> {ans1}\n' f'<a> {ans2}\n{prompt}\n')
raise SystemExit("this script must never run")
"""
ANNOTATED = '{"clip": "' + "graphs " * 20_000 + '"}'


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Site:
    """Files by path on loopback. `faults` are the statuses (0: the connection is cut) of a path's first answers."""

    files: dict[str, bytes]
    url: str = ""
    ranges: bool = True
    kind: str = "application/octet-stream"
    faults: dict[str, list[int]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)  # bytes by path

    def sources(self, **sha256: str) -> tuple[Source, ...]:
        """The real table with this server's addresses and the checksums of its files where the real one has some."""

        def here(source: Source) -> Source:
            path = source.url.rpartition("/")[2]
            known = hashlib.sha256(self.files[path]).hexdigest() if source.sha256 and path in self.files else None
            return replace(source, url=f"{self.url}/{path}", sha256=sha256.get(source.name.partition(".")[0], known))

        return tuple(map(here, SOURCES))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr("videoqa.download.WAIT", 0.0)
    archive = tmp_path / "EASG.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for number in range(300):
            zipped.writestr(f"EASG/frames/{number}/frame.jpg", bytes(10_000))
        zipped.writestr(f"EASG/{ANNOTATIONS}", ANNOTATED, zipfile.ZIP_DEFLATED)
    served = Site(
        {
            "rule.txt": RULE.encode(),
            "eval_llama_review.py": SCRIPT.encode(),
            "scale.json": b'{"purpose": 7.0}',
            "clip_narrations.json": b'{"clip": "(1.00s) #C C stirs."}',
            NOTEBOOK: b'{"cells": []}',
            "easg_train.pkl": b"\x80\x04 train \r\n",
            "easg_val.pkl": b"\x80\x04 val",
            "EASG.zip": archive.read_bytes(),
        }
    )
    archive.unlink()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            path = self.path.strip("/")
            served.asked[path] += 1
            status = served.faults[path].pop(0) if served.faults.get(path) else 200
            whole = body = served.files.get(path, b"")
            if status == 200 and path not in served.files:
                status = 404
            start = stop = 0
            if status == 200 and served.ranges and "Range" in self.headers:
                first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
                start, stop, status = int(first), int(last) + 1, 206
                body = whole[start:stop]
            self.send_response(status or 200)
            self.send_header("Content-Type", served.kind)
            self.send_header("Content-Length", str(len(body)))
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(whole)}")
            self.end_headers()
            try:
                self.wfile.write(body if status else body[: len(body) // 2])
                served.sent[path] += len(body)
            except ConnectionError:
                pass  # the client only wanted to know whether ranges work
            self.close_connection = not status

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sources"


def run(folder: Path, sources: tuple[Source, ...], local: Path | None = None) -> str:
    lines: list[str] = []
    public.fetch(folder, local, sources, lines.append)
    return "\n".join(lines)


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_every_source_is_fetched_and_the_rubric_is_made(site: Site, folder: Path) -> None:
    said = run(folder, site.sources())
    assert left(folder) == {source.name for source in SOURCES} | {RUBRIC, CHECKSUMS}
    assert (folder / ANNOTATIONS).read_text() == ANNOTATED
    assert (folder / "easg_train.pkl").read_bytes() == site.files["easg_train.pkl"]
    rubric = rubric_file(folder / RUBRIC)
    assert (rubric.system, rubric.rule) == ("Be strict.", RULE)
    assert rubric.layout == "<c>\n{context}\n<q> {question} <g> {answer}\n<a> {prediction}\n{rule}\n"
    sampling = rubric.sampling
    assert (sampling.temperature, sampling.top_p, sampling.seed, sampling.max_new_tokens) == (0.5, 0.8, 7, 99)
    assert "licence" in said
    for command in ("builder read-notebook", "builder spans", "build"):
        assert f"easg-bench {command}" in said


def test_what_is_there_and_right_is_not_fetched_again(site: Site, folder: Path) -> None:
    run(folder, site.sources())
    once = site.asked.copy()
    said = run(folder, site.sources())
    assert site.asked == once
    assert said.count("there ") == len(SOURCES)


def test_a_damaged_file_is_fetched_again(site: Site, folder: Path) -> None:
    run(folder, site.sources())
    (folder / "scale.json").write_text("{}")
    (folder / NOTEBOOK).write_text("{}")
    run(folder, site.sources())
    for name in ("scale.json", NOTEBOOK):
        assert (folder / name).read_bytes() == site.files[name]
        assert site.asked[name] == 2


def test_a_wrong_checksum_names_file_expected_and_got_and_leaves_nothing(site: Site, folder: Path) -> None:
    with pytest.raises(ValueError, match=r"scale\.json from http") as error:
        run(folder, site.sources(scale="0" * 64))
    assert "0" * 64 in str(error.value)
    assert hashlib.sha256(site.files["scale.json"]).hexdigest() in str(error.value)
    assert left(folder) == {"rule.txt", "eval_llama_review.py"}


def test_what_a_killed_fetch_left_goes_with_the_next(site: Site, folder: Path) -> None:
    half = folder / ".scale.json.part-999999999-ab12" / "scale.json"
    half.parent.mkdir(parents=True)
    half.write_text("{")
    run(folder, site.sources())
    assert not half.parent.exists() and not list(folder.glob(".*.part-*"))


def test_checksums_that_are_none_are_named(site: Site, folder: Path) -> None:
    folder.mkdir()
    for text in ("{", "[]", "[" * 100_000):
        (folder / CHECKSUMS).write_text(text)
        with pytest.raises(UserError, match="not the checksums that fetch keeps"):
            run(folder, site.sources())


def test_a_wrong_checksum_does_not_replace_a_file_that_was_there(site: Site, folder: Path) -> None:
    folder.mkdir()
    (folder / "scale.json").write_text("mine")
    with pytest.raises(ValueError, match="sha256"):
        run(folder, site.sources(scale="0" * 64))
    assert (folder / "scale.json").read_text() == "mine"


def test_a_source_without_published_checksum_must_stay_what_came_first(site: Site, folder: Path) -> None:
    said = run(folder, site.sources())
    assert "no checksum of it is published" in said
    assert json.loads((folder / CHECKSUMS).read_text())[ANNOTATIONS] == sha256(ANNOTATED)
    (folder / NOTEBOOK).unlink()
    site.files[NOTEBOOK] = b'{"cells": ["other"]}'
    with pytest.raises(ValueError, match=rf"{NOTEBOOK} from .*of the first one, kept in .*{CHECKSUMS}"):
        run(folder, site.sources())


def test_line_ends_of_another_system_do_not_matter(site: Site, folder: Path) -> None:
    sources = site.sources()
    site.files["rule.txt"] = RULE.replace("\n", "\r\n").encode()
    run(folder, sources)
    assert rubric_file(folder / RUBRIC).rule == RULE


def test_only_the_annotations_of_the_archive_are_fetched(site: Site, folder: Path) -> None:
    run(folder, site.sources())
    assert site.sent["EASG.zip"] < len(site.files["EASG.zip"]) // 2


def test_a_server_without_ranges_sends_the_whole_archive_and_it_is_not_kept(site: Site, folder: Path) -> None:
    site.ranges = False
    run(folder, site.sources())
    assert (folder / ANNOTATIONS).read_text() == ANNOTATED
    assert "EASG.zip" not in left(folder)


@pytest.mark.parametrize("name", ["rule.txt", "EASG.zip"])
def test_faults_that_may_pass_are_tried_again(site: Site, folder: Path, name: str) -> None:
    site.faults[name] = [503, 0, 429]
    run(folder, site.sources())
    assert (folder / ANNOTATIONS).read_text() == ANNOTATED


def test_a_fault_that_stays_is_one_clear_line(site: Site, folder: Path) -> None:
    site.faults["rule.txt"] = [500] * 99
    with pytest.raises(ConnectionError, match=r"rule\.txt cannot be fetched from http.*500.*--from") as error:
        run(folder, site.sources())
    assert "\n" not in str(error.value)
    assert site.asked["rule.txt"] == TRIES
    assert left(folder) == set()


def test_a_missing_file_is_not_asked_for_again(site: Site, folder: Path) -> None:
    del site.files["easg_val.pkl"]
    with pytest.raises(ConnectionError, match=r"easg_val\.pkl cannot be fetched.*404"):
        run(folder, site.sources())
    assert site.asked["easg_val.pkl"] == 1


def test_no_network_is_one_clear_line(site: Site, folder: Path) -> None:
    gone = tuple(replace(source, url="http://127.0.0.1:9/rule.txt") for source in site.sources())
    with pytest.raises(ConnectionError, match=r"rule\.txt cannot be fetched from http://127\.0\.0\.1:9"):
        run(folder, gone)


def test_a_web_page_in_place_of_a_file_is_refused(site: Site, folder: Path) -> None:
    site.kind = "text/html; charset=utf-8"
    with pytest.raises(ValueError, match="web page"):
        run(folder, site.sources())


def zip_of(path: Path, **members: str) -> None:
    with zipfile.ZipFile(path, "w") as zipped:
        for name, text in members.items():
            zipped.writestr(name.replace("__", "/") + ".json", text)


def test_an_archive_without_the_annotations_names_what_it_has(site: Site, folder: Path, tmp_path: Path) -> None:
    zip_of(tmp_path / "new.zip", EASG__easg_v2="{}")
    site.files["EASG.zip"] = (tmp_path / "new.zip").read_bytes()
    with pytest.raises(ValueError, match=rf"one {ANNOTATIONS} is expected in it, not 0; .*EASG/easg_v2\.json"):
        run(folder, site.sources())


def test_an_archive_that_is_cut_is_no_archive(site: Site, folder: Path) -> None:
    site.files["EASG.zip"] = site.files["EASG.zip"][:-3000]
    with pytest.raises(ValueError, match="no whole zip archive"):
        run(folder, site.sources())
    assert ANNOTATIONS not in left(folder)


def test_a_flipped_byte_of_the_annotations_is_found(site: Site, folder: Path) -> None:
    data = bytearray(site.files["EASG.zip"])
    data[data.rindex(b"PK\x03\x04") + 100] ^= 0xFF
    site.files["EASG.zip"] = bytes(data)
    with pytest.raises(ValueError, match="no whole zip archive"):
        run(folder, site.sources())
    assert ANNOTATIONS not in left(folder)


@pytest.mark.parametrize("script", ["print(1)", "def (", SCRIPT.replace("{ques}", "{whatever}")])
def test_another_script_is_not_taken_for_the_judge(script: str) -> None:
    with pytest.raises(ValueError, match="not the public judge script"):
        public.rubric_of(RULE, script)


# -- from a folder ----------------------------------------------------------------------------------------------------


@pytest.fixture
def local(site: Site, tmp_path: Path) -> Path:
    """A folder with every source as it is published."""
    folder = tmp_path / "local"
    folder.mkdir()
    for name, data in site.files.items():
        (folder / name).write_bytes(data)
    return folder


def test_every_source_can_be_a_local_file(site: Site, local: Path, folder: Path) -> None:
    said = run(folder, site.sources(), local)
    assert not site.asked
    assert (folder / ANNOTATIONS).read_text() == ANNOTATED
    assert rubric_file(folder / RUBRIC).rule == RULE
    assert "fetched" not in said


def test_a_wrong_checksum_of_a_local_file_is_an_error(site: Site, local: Path, folder: Path) -> None:
    sources = site.sources()
    (local / "clip_narrations.json").write_text("{}")
    with pytest.raises(ValueError, match=r"clip_narrations\.json from .*local.*sha256"):
        run(folder, sources, local)


def test_a_local_file_sets_no_checksum_for_the_network(site: Site, local: Path, folder: Path) -> None:
    (local / NOTEBOOK).write_text("{}")
    run(folder, site.sources(), local)
    run(folder, site.sources())
    assert (folder / NOTEBOOK).read_bytes() == site.files[NOTEBOOK]


def test_what_is_made_from_a_source_stands_for_it(site: Site, local: Path, folder: Path) -> None:
    for name in (NOTEBOOK, "easg_train.pkl", "easg_val.pkl"):
        (local / name).unlink()
    for name in (*VOTES, SPANS):
        (local / name).write_text("{}")
    said = run(folder, site.sources(), local)
    assert {*VOTES, SPANS} <= left(folder)
    assert "read-notebook" not in said and "builder spans" not in said


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("EASG.zip", f"no {ANNOTATIONS} or EASG.zip"),
        ("scale.json", "no scale.json"),
        (NOTEBOOK, f"no {NOTEBOOK}, nor {VOTES[0]} and {VOTES[1]} that are made from it"),
    ],
)
def test_a_local_folder_that_lacks_a_file_says_which(
    site: Site, local: Path, folder: Path, name: str, message: str
) -> None:
    (local / name).unlink()
    (local / VOTES[0]).write_text("{}")  # one of two is not enough
    with pytest.raises(FileNotFoundError) as error:
        run(folder, site.sources(), local)
    assert message in str(error.value)


@pytest.mark.real
def test_the_command_line_takes_the_real_files_and_the_judge_finds_the_rubric(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path))
    done = CliRunner().invoke(command_line(), ["fetch", "--from", str(upstream)], catch_exceptions=False)
    assert done.exit_code == 0
    assert public.paper_rubric().is_relative_to(tmp_path / "easg-bench")
    assert rubric_file(public.paper_rubric()) == rubric_file(upstream / RUBRIC)
    for name in ("scale.json", "clip_narrations.json", ANNOTATIONS, *VOTES, SPANS):
        assert (public.sources_folder() / name).read_bytes() == (upstream / name).read_bytes()


def test_the_paper_rubric_that_is_not_there_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="easg-bench fetch"):
        rubric("paper")


def test_files_of_repositories_are_pinned_by_commit() -> None:
    for source in SOURCES:
        if not source.in_zip:
            _, _, commit, _ = source.url.removeprefix("https://raw.githubusercontent.com/").split("/", 3)
            assert len(commit) == 40 and int(commit, 16)
    assert sum(source.sha256 is not None for source in SOURCES) == 4
