"""From rows to answers: prompts, frames, turns, and videos that cannot be used."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.scripted import Scripted
from videoqa import asking
from videoqa.asking import VIDEO_ERROR, Answer
from videoqa.benchmark import track
from videoqa.benchmarks.easg.two_stage import LOCATE_TOKENS
from videoqa.frames import Policy
from videoqa.videos import Videos


def row(name: str, clip: str = "demo-tea", **more: Any) -> dict[str, Any]:
    question = "What did the camera wearer do right before wiping the table?"
    context = "(61.0s) #C C wipes the table."
    found = {"id": name, "clip": clip, "video": "demo-kitchen", "type": "before", "question": question}
    return {**found, "context": context, "answer": "drop cup", "clip_start_s": 120.0, "end_s": None, **more}


def videos(folder: Path, rows: Sequence[dict[str, Any]], frames: str = "uniform:3") -> Videos:
    return Videos.of(folder, Policy.parse(frames), rows)


def answers(engine: Scripted, rows: Sequence[dict[str, Any]], prompt: str, seen: Videos | None) -> list[Answer]:
    found = dict(track().asked(prompt).ask(engine, rows, 9, seen))
    return [found[index] for index in range(len(rows))]


def text_of(asked: Any) -> str:
    return asked if isinstance(asked, str) else "".join(part.get("text", "<picture>") for part in asked)


def test_without_frames_the_prompt_is_text_and_answers_are_stripped() -> None:
    engine = Scripted(lambda asked, _: f"  {len(asked)} ")
    (blind,) = answers(engine, [row("a")], "blind", None)
    (told,) = answers(engine, [row("a")], "narrations", None)
    assert blind.text and told.text and int(blind.text) < int(told.text)
    assert "wipes the table" in text_of(told.conversation[0]["content"])


def test_frames_come_in_order_with_their_seconds(demo_videos: Path) -> None:
    engine = Scripted(lambda asked, _: text_of(asked))
    rows = [row("a")]
    (answer,) = answers(engine, rows, "frames", videos(demo_videos, rows))
    assert answer.text is not None and answer.text.count("<picture>") == 3
    assert answer.text.index("\n0.0 s: <picture>") < answer.text.rindex("s: <picture>")
    assert answer.shown[0] == "demo-tea.mp4 at 0.0 s" and len(answer.shown) == 3
    kept = [part["image"] for part in answer.conversation[0]["content"] if part["type"] == "image"]
    assert kept == answer.shown


def test_two_stages_ask_twice_and_keep_the_frames(demo_videos: Path) -> None:
    engine = Scripted(lambda asked, _: "2 s to 4 s" if "Find in the video" in text_of(asked) else "Dropped the cup.")
    rows = [row("a"), row("b", clip="demo-dishes")]
    found = answers(engine, rows, "two-stage", videos(demo_videos, rows))
    assert [answer.text for answer in found] == ["Dropped the cup."] * 2
    assert [answer.located for answer in found] == ["2 s to 4 s"] * 2
    for answer in found:
        first, reply, second = answer.conversation
        assert sum(part["type"] == "image" for part in first["content"]) == 3
        assert reply == {"role": "assistant", "content": "2 s to 4 s"} and "right before that step" in second["content"]
    assert [call["max_new_tokens"] for call in engine.calls] == [LOCATE_TOKENS, 9]


def test_a_first_turn_that_fails_is_the_rows_error(demo_videos: Path) -> None:
    rows = [row("a")]
    (answer,) = answers(Scripted(lambda *_: None), rows, "two-stage", videos(demo_videos, rows))
    assert answer.text is None and answer.error == "the prompt does not fit"


def test_clips_without_a_usable_video_are_errors_and_the_others_go_on(demo_videos: Path, tmp_path: Path) -> None:
    shutil.copy(demo_videos / "demo-tea.mp4", tmp_path / "good.mp4")
    (tmp_path / "empty.mp4").write_bytes(b"")
    whole = (demo_videos / "demo-dishes.mp4").read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    rows = [row(name, clip=name, video="elsewhere") for name in ("good", "empty", "cut", "absent", "good")]
    found = answers(Scripted(lambda *_: "yes"), rows, "frames", videos(tmp_path, rows))
    assert [answer.text for answer in found] == ["yes", None, None, None, "yes"]
    assert all((answer.error or "").startswith(VIDEO_ERROR) for answer in found[1:4])
    assert "0 bytes" in (found[1].error or "") and "absent" in (found[3].error or "")


@pytest.mark.parametrize("folder", ["with blanks", "Видео", "做饭 é"])
def test_paths_in_any_script_are_read(folder: str, demo_videos: Path, tmp_path: Path) -> None:
    there = tmp_path / folder
    there.mkdir()
    shutil.copy(demo_videos / "demo-tea.mp4", there / "clip 做饭 é.mp4")
    rows = [row("a", clip="clip 做饭 é")]
    plain = [row("a")]
    engine = Scripted(lambda *_: "yes")
    (answer,) = answers(engine, rows, "frames", videos(there, rows))
    (same,) = answers(engine, plain, "frames", videos(demo_videos, plain))
    assert [name.split(".mp4")[1] for name in answer.shown] == [name.split(".mp4")[1] for name in same.shown]
    seen, wanted = (videos(f, r).frames(r[0]).images for f, r in ((there, rows), (demo_videos, plain)))
    assert [image.tobytes() for image in seen] == [image.tobytes() for image in wanted]


def test_seconds_are_of_the_clip_also_where_only_the_full_video_is_there(demo_videos: Path, tmp_path: Path) -> None:
    shutil.copy(demo_videos / "demo-tea.mp4", tmp_path / "full.mp4")
    rows = [row("a", clip="part", video="full", clip_start_s=10.0, end_s=20.0)]
    (answer,) = answers(Scripted(lambda *_: "yes"), rows, "frames", videos(tmp_path, rows))
    seconds = [float(name.split(" at ")[1].split()[0]) for name in answer.shown]
    assert seconds[0] == 0.0 and seconds == sorted(seconds) and 8 < seconds[-1] <= 10


def test_clips_are_asked_together_until_their_frames_fill_the_memory(
    demo_videos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row("a"), row("b", clip="demo-dishes"), row("c"), row("d", clip="demo-shelf")]
    seen = videos(demo_videos, rows)
    reads: list[str] = []
    read = Videos.frames

    def counted(self: Videos, of: Any) -> Any:
        reads.append(of["clip"])
        return read(self, of)

    monkeypatch.setattr(Videos, "frames", counted)
    together, apart = Scripted(lambda *_: "yes"), Scripted(lambda *_: "yes")
    answers(together, rows, "frames", seen)
    assert [call["n"] for call in together.calls] == [4]
    monkeypatch.setattr(asking, "FRAME_BYTES", 1)
    answers(apart, rows, "frames", seen)
    assert [call["n"] for call in apart.calls] == [2, 1, 1]
    assert reads == ["demo-tea", "demo-dishes", "demo-shelf"] * 2


def test_frames_need_a_folder_and_prompts_a_known_name() -> None:
    with pytest.raises(ValueError, match="folder of videos"):
        list(track().asked("frames").ask(Scripted(lambda *_: "yes"), [row("a")], 1, None))
    with pytest.raises(ValueError, match="EASG-Bench has blind, narrations, frames, two-stage"):
        track().asked("sounds")


def test_a_language_neutral_question_has_its_regions_drawn_among_the_frames(demo_videos: Path) -> None:
    engine = Scripted(lambda asked, _: text_of(asked))
    where = {"graph": "g", "frame": 5553, "seconds": 185.1, "object": "cup", "box": [0.3, 0.5, 0.4, 0.7]}
    neutral = row("a", question="What is in <region 1>?", question_coordinates="... [0.3 ...", evidence=[where])
    rows = [row("plain"), neutral, neutral | {"id": "late", "evidence": [where | {"seconds": 9e9}]}]
    plain, marked, late = answers(engine, rows, "frames", videos(demo_videos, rows))
    assert marked.text is not None and plain.text is not None
    assert marked.text.count("<picture>") == plain.text.count("<picture>") + 1
    assert "\n65.1 s, with <region 1> marked: <picture>" in marked.text and "marked" not in plain.text
    assert "demo-tea.mp4 at 65.1 s with <region 1>" in marked.shown and len(marked.shown) == 4
    assert late.error is not None and late.error.startswith(VIDEO_ERROR)
    (blind,) = answers(engine, [neutral], "blind", None)
    assert blind.text is not None and "Question: ... [0.3 ..." in blind.text
