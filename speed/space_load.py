"""The Space under load, on this machine alone: 2,000 result files of 60 models, then 50 viewers for a minute, and the
same once more while one attacks.

    python speed/space_load.py [--viewers 50] [--seconds 60]

A viewer fetches the page, then filters the leaderboard again and again with a second between. The attacker searches for
100,000 words and uploads 20 MB of "{}" lines, over and over, without waiting for the replies; it is a process of its
own, so that the viewers, threads of this one, do not wait for it here. Printed: how long reading the files and a filter
take in the process, what the viewers waited (median, 95th percentile), errors, and the server's memory before and
after.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "space")]
HOST = "127.0.0.1"  # never anything else
PORT = 7987
MODELS, FILES = 60, 2_000


def fill(folder: Path) -> None:
    """Write the result files: every model under judges and prompts, newer and older ones."""
    from videoqa.results import read

    rng = random.Random(0)
    template = read(next((ROOT / "space" / "demo").rglob("scores.json"))).model_dump_json()
    for number in range(FILES):
        data = json.loads(template)
        factor = rng.uniform(0.2, 1)
        for summary in (*data["types"].values(), data["avg"]):
            for field in ("mean", "value", "standard_error"):
                summary[field] *= factor
            for field in ("mean_interval", "interval"):
                summary[field] = [end * factor for end in summary[field]]
        data["avg"]["value"] = sum(one["value"] for one in data["types"].values()) / len(data["types"])
        data["model"] = f"org/model-{number % MODELS}"
        data["scorer"] = data["judge"]["key"] = f"judge {number // MODELS % 4}"
        data["prompt"] = ("blind", "narrations")[number // (4 * MODELS) % 2]
        data["date"] = f"2025-{1 + number % 12:02}-01T00:00:00+00:00"
        path = folder / "results" / "m" / str(number) / "scores.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(data), encoding="utf-8")


def memory(pid: int) -> float:
    """Resident memory in MB."""
    line = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


def watch(url: str, until: float, pages: list[float], filters: list[float], errors: list[str]) -> None:
    """One viewer."""
    rng = random.Random(threading.get_ident())
    tab = f"{rng.getrandbits(64):x}"  # as a browser tab has one
    with httpx.Client(base_url=url, timeout=30) as client:
        try:
            start = time.perf_counter()
            client.get("/").raise_for_status()
            pages.append(time.perf_counter() - start)
            while time.perf_counter() < until:
                asked: dict[str, Any] = {
                    "data": [None, None, f"model-{rng.randrange(MODELS)}", [], []],
                    "session_hash": tab,
                }
                start = time.perf_counter()
                event = client.post("/gradio_api/call/rank", json=asked).raise_for_status().json()["event_id"]
                text = client.get(f"/gradio_api/call/rank/{event}").raise_for_status().text
                filters.append(time.perf_counter() - start)
                if "event: complete" not in text:
                    errors.append(text[:200])
                time.sleep(1)
        except httpx.HTTPError as error:
            errors.append(repr(error))


def attack(url: str, seconds: float) -> list[str]:
    """One attacker: endless searches and uploads, whose replies nobody waits for. What each round came to."""
    until, done = time.perf_counter() + seconds, []
    words = {"data": [None, None, None, "a " * 100_000, None], "session_hash": "attacker"}
    lines = b"{}\n" * (20_000_000 // 3 - 1_000)
    result = next((ROOT / "space" / "demo").rglob("scores.json")).read_bytes()
    names = ("scores.json", "answers.jsonl", "verdicts.jsonl")
    files = [("files", (name, result if name.endswith("json") else lines)) for name in names]
    with httpx.Client(base_url=url, timeout=30) as client:
        while time.perf_counter() < until:
            try:
                for _ in range(5):
                    client.post("/gradio_api/call/find", json=words)
                paths = client.post("/gradio_api/upload", files=files).raise_for_status().json()
                sent = [
                    {"path": path, "orig_name": name, "meta": {"_type": "gradio.FileData"}}
                    for path, name in zip(paths, names, strict=True)
                ]
                call = client.post("/gradio_api/call/check", json={"data": [sent], "session_hash": "attacker"})
                done.append("upload" if call.is_success else call.text[:100])
            except (httpx.HTTPError, ValueError) as error:
                done.append(repr(error)[:100])
    return done


def told(name: str, seconds: list[float]) -> str:
    """Median and 95th percentile."""
    ordered = sorted(seconds) or [float("nan")]
    late = ordered[int(len(ordered) * 0.95)]
    return f"{name}: {len(seconds)}, median {statistics.median(ordered):.3f} s, 95% {late:.3f} s"


def main() -> None:
    """Run it all; bounded in viewers and time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    asked = parser.parse_args()
    viewers, seconds = min(asked.viewers, 100), min(asked.seconds, 120)
    import columns
    import leaderboard

    with tempfile.TemporaryDirectory() as name, ProcessPoolExecutor(1, get_context("spawn")) as pool:
        folder = Path(name)
        fill(folder)
        start = time.perf_counter()
        board = leaderboard.load(folder)
        print(f"{FILES} files read in {time.perf_counter() - start:.2f} s; refused: {len(board.refused)}")
        group = next(iter(board.groups().values()))
        start = time.perf_counter()
        columns.board(group, leaderboard.lines(group, search="model-1"))
        print(f"a filter of a group of {len(group.entries)}: {time.perf_counter() - start:.4f} s in the process")
        env: dict[str, Any] = {"GRADIO_SERVER_NAME": HOST, "GRADIO_SERVER_PORT": str(PORT), "EASG_BENCH_RESULTS": name}
        server = subprocess.Popen([sys.executable, str(ROOT / "space/app.py")], env=os.environ | env)
        try:
            url = f"http://{HOST}:{PORT}"
            for _ in range(240):
                try:
                    httpx.get(url, timeout=5)
                    break
                except httpx.HTTPError:
                    time.sleep(0.5)
            pages: list[float] = []
            filters: list[float] = []
            errors: list[str] = []
            watch(url, time.perf_counter() + 5, pages, filters, errors)  # one viewer alone first
            print(told("alone: pages", pages))
            print(told("alone: filters", filters))
            for attacked in (False, True):
                pages, filters, errors = [], [], []
                before, until = memory(server.pid), time.perf_counter() + seconds
                threads = [
                    threading.Thread(target=watch, args=(url, until, pages, filters, errors)) for _ in range(viewers)
                ]
                attacker: Future[list[str]] | None = pool.submit(attack, url, seconds) if attacked else None
                for thread in threads:
                    thread.start()
                time.sleep(seconds / 2)
                half = memory(server.pid)
                for thread in threads:
                    thread.join()
                attacks = attacker.result() if attacker else []
                beside = f" beside an attacker ({len(attacks)} rounds, {sorted(set(attacks))[:2]})" if attacker else ""
                print(f"{viewers} viewers for {seconds:.0f} s{beside}; errors: {len(errors)} {errors[:2]}")
                print(told("pages", pages))
                print(told("filters", filters))
                after = memory(server.pid)
                print(f"memory of the server: {before:.0f} MB before, {half:.0f} at half time, {after:.0f} after")
        finally:
            server.terminate()
            server.wait(30)


if __name__ == "__main__":
    main()
