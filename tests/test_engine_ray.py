"""videoqa/engines/ray.py: copies of an engine on a Ray cluster that is started here, most of them of the stand-in for
vLLM (tests/stand_in), two of a real vision model."""

from __future__ import annotations

import functools
import json
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.repo import folder_sha256
from tests.scripted import Scripted
from videoqa import runs
from videoqa.engines import Conversation, open_engine, ray_cluster
from videoqa.engines import ray as ray_engine
from videoqa.engines.ray import ALONE, RayEngine, alike, blocks
from videoqa.engines.ray_copy import About, Copy, versions
from videoqa.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
STAND_IN = ROOT / "tests" / "stand_in"
DIGITS = [str(n) for n in range(1, 11)]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of one node, which claims 4 CPUs and 4 GPUs; its workers find the stand-in."""
    ray = pytest.importorskip("ray", reason="the package ray is not installed (extra `ray`)")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(STAND_IN), os.environ.get("PYTHONPATH", "")]))
        patched.setenv("RAY_AUTH_MODE", "disabled")  # no token file in the home folder
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patched.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        ray.init(
            address="local", num_cpus=4, num_gpus=4, object_store_memory=80_000_000, log_to_driver=False,
            include_dashboard=False,
        )  # fmt: skip
        yield ray.get_runtime_context().gcs_address
        ray.shutdown()


def rows(*texts: str) -> list[Conversation]:
    return [[{"role": "user", "content": text}] for text in texts]


def all_ready(engine: Any) -> Any:
    """The engine once every copy has started, so that each gets a block."""
    while any(member.about is None for member in engine._pool._members):
        engine._pool._wait([])
    return engine


@pytest.fixture(scope="module")
def pair(cluster: str) -> Any:
    return open_engine("ray:2*vllm:model", device="cpu")


def test_the_results_are_those_of_one_process(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine("ray:2*vllm:folder/model?cpus=1&max_model_len=100", device="cpu")
    asked = rows(*(f"row {n}" for n in range(50)), "long " * 40)
    replies = dict(engine.generate(asked, max_new_tokens=50, start="Score: ", stop=["7"]))
    chosen = dict(engine.choice_logprobs(asked, DIGITS, start="Score: "))
    monkeypatch.syspath_prepend(str(STAND_IN))
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)  # as for a copy without a GPU
    alone = open_engine("vllm:folder/model?max_model_len=100")
    assert (engine.name, engine.settings) == (alone.name, alone.settings)
    assert (engine.can_choose, engine.can_follow) == (alone.can_choose, alone.can_follow)
    assert engine.can_force == alone.can_force
    expected = dict(alone.generate(asked, max_new_tokens=50, start="Score: ", stop=["7"]))
    assert {n: reply.text for n, reply in replies.items()} == {n: reply.text for n, reply in expected.items()}
    assert "do not fit" in (replies[50].error or "")
    assert chosen == dict(alone.choice_logprobs(asked, DIGITS, start="Score: "))
    sys.modules.pop("vllm", None)


def test_each_copy_has_gpus_of_its_own_as_many_as_its_options_ask_for(cluster: str) -> None:
    engine = all_ready(open_engine("ray:2*vllm:model?tensor_parallel_size=2"))
    texts = {reply.text or "" for _, reply in engine.generate(rows(*"abcdefgh" * 40), max_new_tokens=50)}
    gpus = {text.split()[1] for text in texts}
    assert len(gpus) == 2, f"both copies work, each on its GPUs: {gpus}"
    assert sorted(",".join(gpus).split(",")) == ["0", "1", "2", "3"]


def test_rows_of_a_copy_that_died_are_asked_again(
    pair: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once = f"kill -9 unless {tmp_path / 'dead'}"
    got = list(pair.generate(rows(*"abcdef", once, *"ghijkl"), max_new_tokens=500))
    assert sorted(index for index, _ in got) == list(range(13)), "each row once"
    assert [reply.error for _, reply in got] == [None] * 13
    assert "died" in capsys.readouterr().err


def test_a_row_that_kills_its_copy_is_that_rows_error_and_the_others_are_answered(pair: Any) -> None:
    replies = dict(pair.generate(rows("a", "b", "kill -9", "c"), max_new_tokens=50))
    assert [n for n, reply in sorted(replies.items()) if reply.error is None] == [0, 1, 3]
    assert replies[2].text is None and f"died, {ALONE} times" in (replies[2].error or "")


def test_a_reader_that_stops_early_leaves_no_copy_at_work(pair: Any) -> None:
    stream = pair.generate(rows("a", "b", "c"), max_new_tokens=50)
    next(stream)
    stream.close()
    assert len(dict(pair.generate(rows("a", "b"), max_new_tokens=50))) == 2


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ([0, 1, 1, 2], "gave a result of its row 1 twice, or of a row of others"),
        ([0, 7, 1, 2], "gave a result of its row 7 twice, or of a row of others"),
        ([-1, 0, 1, 2], "gave a result of its row -1 twice, or of a row of others"),
        ([0, 2], "1 rows came back without a result"),
    ],
)
def test_a_copy_that_gives_other_rows_than_it_was_asked_ends_the_run(pair: Any, places: list[int], told: str) -> None:
    stream = pair.spread(functools.partial(results_of, places), ["a", "b", "c"], [[0, 1, 2]], str)
    with pytest.raises(RuntimeError, match=told):
        list(stream)


def results_of(places: list[int], _: Any, items: list[str]) -> Iterator[tuple[int, str]]:
    """What a faulty copy does with a block."""
    return ((place, items[place % len(items)]) for place in places)


def test_other_code_of_ours_on_a_node_is_refused_though_its_version_is_the_same(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_engine, "versions", lambda: {**versions(), "the code of easg-bench": "another"})
    with pytest.raises(UserError, match=r"the code of easg-bench is another here and .* install the same on all nodes"):
        open_engine("ray:1*vllm:model", device="cpu")


class OtherWeights(Copy):
    """A copy whose folder of the model holds other weights than the next one's."""

    def open(self, *arguments: Any) -> Any:
        about: Any = super().open(*arguments)
        about.settings["revision"] = str(os.getpid())
        return about


def test_another_model_under_the_same_name_on_a_node_is_refused(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "Copy", OtherWeights)
    engine = open_engine("ray:2*vllm:model", device="cpu")
    with pytest.raises(UserError, match=r"copies of vllm:model .* are not the same: revision is \d+ on node"):
        all_ready(engine)


def test_what_a_copy_refuses_is_one_line(cluster: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"/none is no chat template: .*on node") as caught:
        open_engine(f"ray:2*vllm:model?chat_template={tmp_path}/none", device="cpu")
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"no node of the Ray cluster can hold a copy .*5 GPUs.*the nodes have 4 GPUs"):
        open_engine("ray:1*vllm:model?gpus=5")


def test_another_cluster_than_the_one_connected_to_is_refused(cluster: str) -> None:
    with pytest.raises(UserError, match=r"cannot be to 127\.0\.0\.1:1 as well"):
        open_engine("ray:1*vllm:model?address=127.0.0.1:1")


WAITING = """
import sys, time
from videoqa.engines.ray_cluster import connect
connect(sys.argv[1])
import ray
answer = ray.remote(lambda: time.sleep(60)).remote()
print("asked", flush=True)
ray.get(answer)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_any_other_run_ends_one_with_copies_and_not_as_an_abort(cluster: str, name: str) -> None:
    number = getattr(signal, name)
    run = subprocess.Popen(
        [sys.executable, "-c", WAITING, cluster],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # nohup ignores it
    )
    assert run.stdout is not None and run.stderr is not None
    assert run.stdout.readline() == "asked\n", run.stderr.read()
    run.send_signal(number)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == -number and "Fatal" not in errors, errors


def test_a_process_with_handlers_of_its_own_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="the package ray is not installed (extra `ray`)")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: signal.signal(signal.SIGTERM, print))
    before = signal.signal(signal.SIGTERM, mine := lambda *_: None)
    try:
        ray_cluster.connect("local")
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No cluster that this process knows; Ray's own file of the last one is in this folder."""
    ray = pytest.importorskip("ray", reason="the package ray is not installed (extra `ray`)")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("nobody may be connected to"))
    monkeypatch.setattr(ray_cluster, "PATIENCE_S", 0.5)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return tmp_path


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def one_line(spec: str) -> str:
    with pytest.raises(UserError) as caught:
        open_engine(spec)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_wrong_address_is_one_line(elsewhere: Path, nobody: str) -> None:
    for address in (nobody, "nowhere", "127.0.0.1:many", "127.0.0.1:99999"):
        assert f"no Ray cluster answers at '{address}'" in one_line(f"ray:1*vllm:model?address={address}")
    assert "HOST:PORT of the head" in one_line("ray:1*vllm:model?address=ray://127.0.0.1:10001")


def test_an_address_that_a_dead_cluster_left_behind_is_one_line(
    elsewhere: Path, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / "ray").mkdir()
    (elsewhere / "ray" / "ray_current_cluster").write_text(nobody)
    told = one_line("ray:1*vllm:model")
    assert nobody in told and "`ray stop` removes" in told and "address=local" in told
    monkeypatch.setenv("RAY_ADDRESS", nobody)
    assert f"{nobody}' (RAY_ADDRESS)" in one_line("ray:1*vllm:model")


def test_a_head_that_goes_while_rows_are_asked_is_one_line_after_a_while(
    nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(100, 200, 2))
    monkeypatch.setattr(ray_cluster, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with socket.create_server(("127.0.0.1", 0)) as server:
        head = ray_cluster.Head(f"127.0.0.1:{server.getsockname()[1]}")
        for _ in range(15):
            head.look()
    for _ in range(10):
        head.look()  # it may come back
    with pytest.raises(UserError, match=r"is gone\. What came before is kept"):
        head.look()
    assert head.gone


@pytest.mark.parametrize("answer", [None, b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_what_is_no_head_of_a_cluster_is_told_in_seconds(elsewhere: Path, answer: bytes | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            line, _ = server.accept()
            with line:
                line.recv(1000)
                if answer is not None:
                    line.sendall(answer)
                    return
                line.recv(1000)  # says nothing until the other side gives up

        thread = threading.Thread(target=serve)
        thread.start()
        told = one_line(f"ray:1*vllm:model?address={address}")
        thread.join()
    assert ("nothing came back" if answer is None else "is no head of a Ray cluster") in told


class Far(RayEngine):
    """A RayEngine whose copy is a pickle away: what is sent and what comes back is bytes, as on another machine."""

    def __init__(self) -> None:
        self.name, self.settings = "m", {"engine": "scripted"}
        self.can_choose = self.can_follow = self.can_force = False
        self.sizes: list[int] = []
        self.at_work = False

    def spread(self, task: Any, items: Any, groups: Any, failed: Any) -> Any:
        for block in blocks(groups, 8):
            sent = pickle.dumps((task, [items[index] for index in block]))
            self.sizes.append(len(sent))
            self.at_work = True
            far_task, far_items = pickle.loads(sent)
            done = list(far_task(Scripted(lambda *_: "a cup"), far_items))
            self.at_work = False
            yield from ((block[place], result) for place, result in pickle.loads(pickle.dumps(done)))


def lines(run: runs.Run) -> dict[str, dict[str, Any]]:
    """The run's answers without the time that they took."""
    return {
        id: {name: value for name, value in line.items() if name != "seconds"} for id, line in run.answers().items()
    }


def noting(where: list[bool], far: Far, read: Any) -> Any:
    """`read`, which notes where it runs."""

    def noted(self: Any, row: Any) -> Any:
        where.append(far.at_work)
        return read(self, row)

    return noted


def test_frames_are_read_by_the_copy_and_no_picture_is_sent(
    demo_data: Path, demo_videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from videoqa import videos
    from videoqa.commands import command_line

    read = videos.Videos.frames
    folders = []
    far = Far()
    engines: list[Any] = [Scripted(lambda *_: "a cup", name="m"), far]
    for n, engine in enumerate(engines):
        where: list[bool] = []
        monkeypatch.setattr("videoqa.engines.open_engine", lambda *_, engine=engine, **__: engine)
        monkeypatch.setattr(videos.Videos, "frames", noting(where, far, read))
        how = ["--data", demo_data, "--prompt", "frames", "--videos", demo_videos, "--frames", "uniform:2"]
        how += ["--model", "m", "--limit", "10", "--out", tmp_path / str(n)]
        done = CliRunner().invoke(command_line(), ["answer", *map(str, how)])
        assert done.exit_code == 0, done.output
        assert where and set(where) == {n == 1}
        folders.append(runs.Run(tmp_path / str(n)))
    assert far.sizes and max(far.sizes) < 20_000, "rows and the place of the videos, no pictures"
    assert folders[0].config == folders[1].config
    assert lines(folders[0]) == lines(folders[1])
    assert all(line["frames"] for line in folders[1].answers().values())


@pytest.mark.slow
def test_frames_are_read_where_the_model_is(
    cluster: str, tiny_vision: Path, demo_data: Path, demo_videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from videoqa import asking, videos
    from videoqa.commands import command_line

    here: list[str] = []
    read = videos.Videos.frames

    def noted(self: Any, row: Any) -> Any:
        here.append(row["clip"])
        return read(self, row)

    sizes: list[int] = []
    spread = RayEngine.spread

    def weighed(self: Any, task: Any, items: Any, *more: Any) -> Iterator[tuple[int, Any]]:
        sizes.append(len(pickle.dumps((task, items))))
        for index, result in spread(self, task, items, *more):
            sizes.append(len(pickle.dumps(result)))
            yield index, result

    monkeypatch.setattr(RayEngine, "spread", weighed)
    monkeypatch.setattr(videos.Videos, "frames", noted)
    folders = []
    for n, spec in enumerate((str(tiny_vision), f"ray:2*{tiny_vision}?cpus=1")):
        how = ["--data", demo_data, "--prompt", "frames", "--videos", demo_videos, "--frames", "uniform:2"]
        how += ["--model", spec, "--device", "cpu", "--max-new-tokens", "8", "--out", tmp_path / str(n)]
        done = CliRunner().invoke(command_line(), ["answer", *map(str, how)])
        assert done.exit_code == 0, done.output
        folders.append(runs.Run(tmp_path / str(n)))
        assert bool(here) == (n == 0), "with Ray no frame is read in this process"
        here.clear()
    assert folders[0].config == folders[1].config
    assert lines(folders[0]) == lines(folders[1])
    assert all(line["frames"] for line in folders[1].answers().values())
    assert asking.VIDEO_ERROR not in (tmp_path / "1" / "answers.jsonl").read_text()
    rows = len(folders[1].answers())
    assert len(sizes) == 1 + rows and max(sizes[1:]) < 5_000, "answers, no pictures"
    assert sizes[0] < 3_000 * rows, "rows and the place of the videos"


def by_seed(text: str, seed: int) -> str:
    """What a sampled model says in a stage of the builder: by the prompt and the seed."""
    numbers = [line.split(":")[0] for line in text.splitlines() if line[:1].isdigit()]
    labels = ("repeat", "unique") if '"repeat"' in text else ("specific", "generic")
    places = random.Random(f"{seed} {text}")
    return json.dumps({number: labels[places.random() < 0.7] for number in numbers})


class Saying(Copy):
    """A copy of a scripted model."""

    def open(self, *_: Any) -> About:
        self._engine = Scripted(by_seed)
        return About("scripted", self._engine.settings, False, False, False, versions(), "127.0.0.1")


def test_a_build_by_a_model_is_the_same_with_copies(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from builder.__main__ import app

    monkeypatch.setattr(ray_engine, "Copy", Saying)
    made = {"one": Scripted(by_seed), "copies": all_ready(open_engine("ray:2*model?cpus=1", device="cpu"))}
    for name, engine in made.items():
        monkeypatch.setattr("videoqa.engines.open_engine", lambda *_, engine=engine: engine)
        how = ["--source", ROOT / "demo" / "data", "--out", tmp_path / name, "--runs", "2", "--engine", "model"]
        how += ["--votes", "llm", "--wording", "llm", "--purposes", "llm"]
        done = CliRunner().invoke(app, ["build", *map(str, how)])
        assert done.exit_code == 0, done.output
    assert folder_sha256(tmp_path / "one") == folder_sha256(tmp_path / "copies")
    one, copies = (tmp_path / f"{name}.stages" for name in made)
    assert {path.name for path in one.iterdir()} == {path.name for path in copies.iterdir()} >= {"votes.jsonl"}
    for path in one.iterdir():
        mine, theirs = (file.read_text().splitlines() for file in (path, copies / path.name))
        if path.name in ("replies.jsonl", "prompts.jsonl"):  # written as replies come
            mine, theirs = sorted(mine), sorted(theirs)
        assert mine == theirs, path.name
    seeds = {json.loads(line)["seed"] for line in (copies / "replies.jsonl").read_text().splitlines()}
    assert {1, 2} <= seeds, "sampled votes"


def test_conversations_with_the_same_beginning_are_alike() -> None:
    context = "A long context of the clip that both of its questions share. "
    other = "Another clip of which there are two questions as well, long enough. "
    asked = rows(context + "What?", other + "What?", context + "Where?", other + "Where?")
    assert sorted(alike(asked)) == [[0, 2], [1, 3]]
    with_parts = [[{"role": "user", "content": [{"type": "image", "image": "x.png"}, {"type": "text", "text": "a b"}]}]]
    assert alike(with_parts) == [[0]]


@given(st.lists(st.integers(1, 30), max_size=20), st.integers(1, 20))
def test_blocks_hold_every_item_once_and_cut_only_groups_that_are_too_large(sizes: list[int], size: int) -> None:
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    groups = [list(range(at, at + n)) for at, n in zip(starts, sizes, strict=True)]
    made = blocks(groups, size)
    assert [item for block in made for item in block] == list(range(sum(sizes)))
    assert all(0 < len(block) <= size for block in made)
    for group in groups:
        assert len(group) > size or any(set(group) <= set(block) for block in made)
