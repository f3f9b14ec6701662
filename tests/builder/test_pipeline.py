"""builder/easg/pipeline.py, and `build`, `explain` and `agreement` with a model as people run them."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted import Scripted
from typer.testing import CliRunner

import easg_bench
from builder.__main__ import app
from builder.easg import pipeline
from builder.easg.annotations import USUAL_NAMES, read_clips
from builder.easg.pipeline import FUNNEL, Method
from builder.easg.questions import candidates
from builder.easg.readings import Readings

ROOT = Path(__file__).resolve().parents[2]
Save = Callable[[dict[str, Any]], Path]
LLM = ["--votes", "llm", "--wording", "llm", "--attributes", "wording", "--runs", "2", "--engine", "scripted"]


def good(text: str, seed: int) -> str:
    """What a model says that answers well: by the prompt, of any stage."""
    numbers = [int(n) for n in re.findall(r"^(\d+): \{", text, re.M)]
    if '"repeat"' in text:
        return json.dumps({n: "repeat" if n == 1 else "unique" for n in numbers})
    if '"generic"' in text:
        bad = {int(n) for n in re.findall(r"^(\d+): .*do with the weed", text, re.M)}
        return json.dumps({n: "generic" if n in bad else "specific" for n in numbers})
    if "Objects: " in text:
        return json.dumps({"water": "cold"})
    if "Choose " in text:
        things = re.findall(r"^- (?:pull|drop|pick up|put) (\w+)", text, re.M)[:2]
        return json.dumps(
            {
                t: {"question": f"What did the camera wearer do with the {t}?", "answer": f"Handled the {t}."}
                for t in things
            }
        )
    if not (given := re.findall(r"^Given: (\{.*\})$", text, re.M)):
        return "I have no better one."  # when asked again
    action = json.loads(given[-1])
    relations = " ".join(f"{r.split()[0]} the {' '.join(r.split()[1:])}" for r in action["relations"] if "?" not in r)
    open_end = " ".join(r.split()[0] for r in action["relations"] if "?" in r)
    if "right before" in text or "right after" in text:
        when = "before" if "right before" in text else "after"
        who = "they" if action["object"] == "jug" else "the camera wearer"
        return f"What did the camera wearer do right {when} {who} {action['verb']} the {action['object']} {relations}?"
    thing = "" if action["object"] == "?" else f"the {action['object']}"
    return " ".join(f"What did the camera wearer {action['verb']} {thing} {relations} {open_end}".split()) + "?"


def run(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    made = Scripted(good)
    monkeypatch.setattr("videoqa.engines.open_engine", lambda spec: made)
    return made


@pytest.fixture
def source(raw: dict[str, Any], save: Save) -> Path:
    raw["narrations"]["kitchen"] = "(3.00s) #C C pours cold water into the cup."
    return save({role: raw[role] for role in ("annotations", "narrations", "spans")})


def test_a_model_makes_a_dataset_from_annotations_and_narrations_alone(
    engine: Scripted, source: Path, tmp_path: Path
) -> None:
    code, out, err = run("build", "--source", source, "--out", tmp_path / "a", *LLM)
    assert code == 0, err
    rows = {row["id"]: row for row in easg_bench.load(tmp_path / "a")}
    direct, indirect = rows["kitchen:2:direct"], rows["kitchen:2:indirect:2"]
    assert direct["question"] == "What did the camera wearer pour into the cup from the jug?"
    assert direct["answer"] == "water" and direct["evidence"][0]["attribute"] == "cold"
    assert indirect["question"] == "What did the camera wearer pour the cold water into the cup from?"
    assert "kitchen:purpose:cup" in rows and "garden:purpose:weed" not in rows, "generic"
    before = rows["kitchen:3:before"]["question"]
    assert before == "What did the camera wearer do right before putting the jug on the table?", "they: the template"
    graphs = {(g["clip"], g["index"]): g["vote"] for g in easg_bench.load(tmp_path / "a", "graphs")}
    assert graphs["kitchen", 1] == 1.0 and graphs["kitchen", 2] == 0.0 and graphs["garden", 1] is None
    card = (tmp_path / "a" / "README.md").read_text()
    assert "A language model, `scripted`, had part in it." in card and "questions say them" in card
    funnel = {name: int(n) for n, name in re.findall(r"^ +(\d+)  (.+)$", out.split("stages:")[0], re.M)}
    assert list(funnel) == [name for name in FUNNEL if name in funnel]
    assert funnel["candidates"] == 6 and funnel["candidates: kept"] == 5 and funnel["candidates: voted out"] == 1
    assert funnel["wording fallbacks to the template"] == 2, "before and after the jug"
    assert funnel["questions left out as generic"] == 1
    assert funnel["questions kept"] == funnel["questions worded"] - 1 == len(rows)


def test_explain_tells_a_made_and_an_unmade_question(engine: Scripted, source: Path, tmp_path: Path) -> None:
    run("build", "--source", source, "--out", tmp_path / "a", *LLM)

    def told(id: str) -> str:
        code, out, err = run("explain", id, "--data", tmp_path / "a")
        assert code == 0, err
        return out

    made = told("kitchen:2:direct")
    for said in (
        "graph     2 of 4: pour water, into cup, from jug",
        "step 1    candidate",
        "step 2    kept: score 0 of 2 votes, kept below 0.5; labels unique, unique",
        "scripted, seed 2, temperature 0.7, prompt ",
        "step 3    direct question: the answer is the object: water",
        "model: attempt 1 holds",
        "generic   kept: 0 of 2 say generic",
        'attribute frame 90: {"water": "cold"}',
        "row       {",
    ):
        assert said in made
    assert "step 2    voted out: score 1 of 2 votes" in told("kitchen:1:direct") and "row       none" in told(
        "kitchen:1:direct"
    )
    assert "no action" in told("garden:1:before")
    assert "graph 1 is no action, so there is neither before nor after" in told("garden:2:after")
    assert "generic   left out: 2 of 2 say generic" in told("garden:purpose:weed")
    assert 'it says "they"' in (out := told("kitchen:3:before")) and "template: 3 attempts fail" in out
    for id, message in (("kitchen:9:direct", "the graph from 1 to 4"), ("attic:1:direct", "no clip of")):
        assert message in run("explain", id, "--data", tmp_path / "a")[2]


def test_explain_tells_recorded_scores(
    raw: dict[str, Any], save: Callable[[dict[str, Any]], Path], tmp_path: Path
) -> None:
    run("build", "--source", save(raw), "--out", tmp_path / "a")
    out = run("explain", "kitchen:3:after", "--data", tmp_path / "a")[1]
    assert "step 2    recorded: score 0.2, kept below 0.5" in out
    assert "step 3    after question: the answer is graph 4: wipe table" in out and "wording   template: " in out
    assert "recorded: no score, not kept" in run("explain", "kitchen:1:direct", "--data", tmp_path / "a")[1]


def test_agreement_is_printed(engine: Scripted, source: Path, raw: dict[str, Any], tmp_path: Path) -> None:
    run("build", "--source", source, "--out", tmp_path / "a", *LLM)
    recorded = tmp_path / "recorded.json"
    recorded.write_text(json.dumps(raw["votes"]))
    code, out, err = run("agreement", tmp_path / "a.stages", recorded)
    assert code == 0 and out.startswith("votes against the recorded ones, 4 actions of 2 clips:"), err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--votes", "llm"], "--engine is missing"),
        (["--votes", "llm", "--engine", "x", "--clip", "attic"], "has no clip attic"),
        (["--wording", "llm", "--engine", "x"], "recorded_votes.json: no such file"),
    ],
)
def test_what_is_missing_is_one_line(options: list[str], message: str, source: Path, tmp_path: Path) -> None:
    code, out, err = run("build", "--source", source, "--out", tmp_path / "a", *options)
    assert (code, out) == (2, "") and message in err and len(err.splitlines()) == 1
    assert not (tmp_path / "a").exists() and not (tmp_path / "a.stages").exists()


def test_one_clip_can_be_tried(engine: Scripted, source: Path, tmp_path: Path) -> None:
    code, out, _ = run(
        "build", "--source", source, "--out", tmp_path / "a", *LLM, "--clip", "kitchen", "--generic", "off"
    )
    assert code == 0 and "clips: 1 annotated" in out and "generic" not in out


@pytest.mark.parametrize("reply", ["", "Lo siento.", "x" * 50_000, '{"a": {"b": [1]}}'])
def test_a_model_of_no_use_keeps_nothing_and_is_told(
    reply: str, engine: Scripted, source: Path, tmp_path: Path
) -> None:
    engine.script = lambda text, seed: reply
    code, _, err = run("build", "--source", source, "--out", tmp_path / "a", *LLM)
    assert code == 2 and "no question comes out of" in err and not (tmp_path / "a").exists()
    assert (tmp_path / "a.stages" / "replies.jsonl").exists()


@pytest.mark.real
def test_a_good_model_on_real_clips_passes_every_stage(engine: Scripted, upstream: Path, tmp_path: Path) -> None:
    clips, _ = read_clips(upstream / USUAL_NAMES["annotations"], upstream / USUAL_NAMES["narrations"])
    some = [clip for clip in clips if 8 <= len(candidates(clip)) <= 12][:3]
    options = [part for clip in some for part in ("--clip", clip.uid)]
    files = [part for role in ("annotations", "narrations") for part in (f"--{role}", upstream / USUAL_NAMES[role])]
    code, out, err = run("build", *files, "--out", tmp_path / "a", *LLM, *options)
    assert code == 0, err
    rows = list(easg_bench.load(tmp_path / "a"))
    assert {row["clip"] for row in rows} == {clip.uid for clip in some} and len(rows) > 20
    n = {name: int(n) for n, name in re.findall(r"^ +(\d+)  (.+)$", out, re.M)}
    assert n["vote replies that cannot be read"] == n["candidates: unreadable"] == 0
    assert n["candidates"] == sum(len(candidates(clip)) for clip in some)
    assert n["action questions worded by the model"] > n["wording fallbacks to the template"]


# -- size


def synthetic(folder: Path, clips: int) -> Path:
    """`clips` clips of 100 graphs, every action different, with a relation, kept by the vote: 4 questions each."""
    verbs, nouns = (
        ["pick", "put", "cut", "wash", "lift", "move", "hold", "turn", "open", "drop"],
        ["cup", "jug", "pan", "pot", "rag", "lid", "bag", "box", "nut", "rod"],
    )
    data: dict[str, dict[str, Any]] = {role: {} for role in ("annotations", "narrations", "purpose_counts")}
    for c in range(clips):
        graphs = []
        for i in range(100):
            verb, noun, place = verbs[i % 10], nouns[i // 10], nouns[(i + c) % 10]
            boxes = {name: {"left": 1.0, "top": 2.0, "width": 30.0, "height": 20.0} for name in (noun, place)}
            says = [["CW", "verb", verb], [verb, "dobj", noun], [verb, "from", place]]
            frames = {"pre": 30 * i, "pnr": 30 * i + 9, "post": 30 * i + 20}
            graphs.append({"graph_uid": f"{c}-{i}", **frames, "triplets": says, "groundings": {"pnr": boxes}})
        size = {"video_uid": f"v{c}", "split": "val", "W": 1920, "H": 1080}
        data["annotations"][f"clip-{c}"] = {**size, "graphs": graphs}
        data["narrations"][f"clip-{c}"] = " ".join(f"({t}.00s) #C C does thing {t}." for t in range(0, 100, 5))
        data["purpose_counts"][f"clip-{c}"] = 3
    scores = {clip: {str(i): 0.0 for i in range(1, 101)} for clip in data["annotations"]}
    folder.mkdir()
    for role, content in {**data, "votes": {"scores": scores}}.items():
        (folder / USUAL_NAMES[role]).write_text(json.dumps(content))
    return folder


MEASURED = """
import resource, sys
from builder.__main__ import app
try:
    app(["build", "--source", sys.argv[1], "--out", sys.argv[2]])
finally:
    print("peak KiB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_20_000_graphs_build_in_a_minute_of_cpu_in_flat_memory(tmp_path: Path) -> None:
    """80,000 questions; what grows with the clips is the annotations themselves (0.6 MB a clip), not their rows."""
    peaks = {}
    for clips in (50, 200):
        command = [
            sys.executable,
            "-c",
            MEASURED,
            str(synthetic(tmp_path / f"in-{clips}", clips)),
            str(tmp_path / "out"),
        ]
        begun, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
        peaks[clips] = int(done.stdout.split()[-1]) / 1024
        print(f"{clips} clips: {seconds:.0f} s of CPU, {time.monotonic() - begun:.0f} s, peak {peaks[clips]:.0f} MiB")
    assert "total 80," in done.stdout and seconds < 60
    assert peaks[200] - peaks[50] < 150 * 1.5


def test_the_pipeline_without_a_model_needs_no_stages() -> None:
    assert not Method().uses_model
    assert list(pipeline.rows([], Method(), Readings(), None, Counter(), Counter())) == []
