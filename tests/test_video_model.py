"""The lighteval model over our engines: rows in, whole answers out, with all that was asked and shown."""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lighteval")

from lighteval.models.custom.custom_model import CustomModelConfig
from lighteval.models.model_loader import load_custom_model
from lighteval.tasks.requests import Doc

from tests.scripted import Scripted
from videoqa.hosts.lighteval import model as lighteval_model
from videoqa.hosts.lighteval.model import VideoModel

FILE = Path(__file__).resolve().parents[1] / "tasks" / "video_model.py"
QUESTION = "What did the camera wearer do right before wiping the table?"


def script(asked: Any, _: int) -> str | None:
    text = asked if isinstance(asked, str) else "".join(part.get("text", "") for part in asked)
    if "too long" in text:
        return None
    return "3 s to 4 s" if "Find in the video" in text else "Dropped the cup."


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, demo_videos: Path) -> VideoModel:
    monkeypatch.setattr(lighteval_model, "open_engine", lambda spec: Scripted(script, name=spec))
    monkeypatch.setenv("EASG_BENCH_VIDEOS", str(demo_videos))
    monkeypatch.setenv("EASG_BENCH_FRAMES", "uniform:3")
    return VideoModel(CustomModelConfig(model_name="tiny", model_definition_file_path=str(FILE)))


def doc(prompt: str, clip: str = "demo-tea", question: str = QUESTION) -> Doc:
    row: dict[str, Any] = {
        "id": f"{clip}:{prompt}",
        "clip": clip,
        "video": "",
        "type": "before",
        "question": question,
        "context": "C.",
    }
    row |= {"answer": "drop cup", "clip_start_s": 120.0, "clip_end_s": 190.0, "prompt": prompt, "track": "easg-bench"}
    return Doc(query="", choices=["drop cup"], gold_index=0, specific=row, generation_size=64, task_name="t|0")


def told(response: Any) -> dict[str, Any]:
    return json.loads(response.input)


def test_answers_are_whole_strings_in_the_order_of_the_rows(model: VideoModel) -> None:
    prompts = ["frames", "blind", "two-stage", "narrations", "frames"]
    responses = model.greedy_until([doc(prompt) for prompt in prompts])
    assert [response.text for response in responses] == [["Dropped the cup."]] * 5
    assert [bool(told(response)["located"]) for response in responses] == [p == "two-stage" for p in prompts]


def test_the_two_stage_conversation_has_both_turns_and_the_frames(model: VideoModel) -> None:
    (response,) = model.greedy_until([doc("two-stage")])
    first, reply, second = told(response)["conversation"]
    frames = [part["image"] for part in first["content"] if part["type"] == "image"]
    assert len(frames) == 3 and frames[0] == "demo-tea.mp4 at 0.0 s"
    assert reply["content"] == "3 s to 4 s" and QUESTION in second["content"]


def test_a_row_that_fails_is_an_empty_answer_with_its_error(model: VideoModel) -> None:
    rows = [doc("frames", clip="absent"), doc("frames", question="too long"), doc("frames")]
    responses = model.greedy_until(rows)
    assert [response.text for response in responses] == [[""], [""], ["Dropped the cup."]]
    errors = [told(response)["error"] for response in responses]
    assert errors[0].startswith("video_error: ") and errors[1] == "the prompt does not fit" and errors[2] is None


def test_a_failed_row_is_asked_again_the_next_time(
    model: VideoModel, demo_videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EASG_BENCH_VIDEOS", str(tmp_path))
    assert told(model.greedy_until([doc("frames")])[0])["error"]
    shutil.copy(demo_videos / "demo-tea.mp4", tmp_path)
    assert model.greedy_until([doc("frames")])[0].text == ["Dropped the cup."]


def test_a_missing_video_folder_is_told_with_its_variable(model: VideoModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EASG_BENCH_VIDEOS", "/nowhere/at/all")
    with pytest.raises(ValueError, match="EASG_BENCH_VIDEOS: /nowhere/at/all"):
        model.greedy_until([doc("frames")])


def test_lighteval_finds_the_model_in_the_task_file(model: VideoModel) -> None:
    config = CustomModelConfig(model_name="tiny", model_definition_file_path=str(FILE))
    loaded = load_custom_model(config)
    assert type(loaded) is VideoModel and not inspect.isabstract(VideoModel)
    loaded._cache._init_registry(None)
    loaded.cleanup()
    with pytest.raises(RuntimeError, match="given back"):
        loaded.greedy_until([doc("frames")])
