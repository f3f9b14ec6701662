"""Ask the model under test: rows -> conversations -> answers, in one turn or two, with frames where the prompt shows
them.

    videos = Videos.of("videos", Policy.parse("uniform:8"), all_rows)
    for index, answer in ask(engine, rows, "two-stage", max_new_tokens=64, videos=videos): ...

    Answer(text="Picked up the jug.", located="12.5 s to 14.0 s", shown=["demo-tea.mp4 at 0.0 s", ...])

A clip is decoded once for all its questions. Clips are taken together until their frames fill `FRAME_BYTES`, so that
batches are large and memory does not grow with the number of clips. A clip without a usable video is the error of its
rows, marked `VIDEO_ERROR`; the others go on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from videoqa.engines import Conversation, Engine, Reply
from videoqa.frames import Policy, VideoError, clip_ends, find_video, read_frames, video_files
from videoqa.prompts import PROMPTS, VIDEO_PROMPTS, frames, locate, second_turn
from videoqa.regions import marked_frames

Row = Mapping[str, Any]  # a question: id, clip, video, clip_start_s, question, context

VIDEO_ERROR = "video_error: "  # how the error of a row begins whose video cannot be used
LOCATE_TOKENS = 48  # longest answer to "when does it begin and end?"
FRAME_BYTES = 1 << 30  # of decoded frames that are held at a time; one clip may have more


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's answer to one row, or why there is none."""

    text: str | None
    error: str | None = None
    finished: bool = True  # False: cut by max_new_tokens
    located: str | None = None  # turn 1's reply in a two-stage run
    shown: list[str] = field(default_factory=list)  # the frames, as file and second of the clip
    warning: str | None = None  # what was wrong with the video
    conversation: Conversation = ()  # the whole of it, frames as in `shown`


@dataclass(frozen=True, slots=True)
class Shown:
    """A clip's frames; `seconds` count from the clip's beginning, `marks` are the regions drawn on each frame."""

    images: list[Any]
    seconds: list[float]
    file: str
    warning: str | None
    marks: list[str] = field(default_factory=list)  # empty: none on any

    @property
    def names(self) -> list[str]:
        marks = self.marks or [""] * len(self.seconds)
        told = zip(self.seconds, marks, strict=True)
        return [f"{self.file} at {second:.1f} s{f' with {mark}' if mark else ''}" for second, mark in told]


@dataclass(frozen=True, slots=True)
class Videos:
    """A folder of videos, what is taken of each, and where clips end in their full videos."""

    files: Mapping[str, Path]
    policy: Policy
    ends: Mapping[str, float]

    @classmethod
    def of(cls, folder: str | Path, policy: Policy, rows: Iterable[Row]) -> Videos:
        """`rows` are all questions of the data set: where only a full video is there, a clip ends with its last one."""
        return cls(video_files(folder), policy, clip_ends(rows))

    def frames(self, row: Row) -> Shown:
        """The frames of the row's clip. Raises VideoError."""
        clip = row["clip"]
        source = find_video(self.files, clip, row["video"], row["clip_start_s"], self.ends.get(clip))
        found = read_frames(source.path, self.policy, source.start_s, source.end_s)
        seconds = [second - source.start_s for second in found.seconds]
        return Shown(found.images, seconds, source.path.name, found.warning)

    def marked(self, row: Row, shown: Shown) -> Shown:
        """The clip's frames and, for a language-neutral row, among them those with its regions. Raises VideoError."""
        if not row.get("question_coordinates"):
            return shown
        clip = row["clip"]
        source = find_video(self.files, clip, row["video"], row["clip_start_s"], self.ends.get(clip))
        drawn = [(m.second - source.start_s, " and ".join(m.labels), m.image) for m in marked_frames(row, source)]
        plain = [(second, "", image) for second, image in zip(shown.seconds, shown.images, strict=True)]
        seconds, marks, images = zip(*sorted([*plain, *drawn], key=lambda frame: frame[:2]), strict=True)
        return replace(shown, images=list(images), seconds=list(seconds), marks=list(marks))


def ask(
    engine: Engine, rows: Sequence[Row], prompt: str, *, max_new_tokens: int, videos: Videos | None = None
) -> Iterator[tuple[int, Answer]]:
    """Each row's index and answer, as they are known. `prompt` is a name of PROMPTS or VIDEO_PROMPTS; the latter need
    `videos`."""
    if prompt in PROMPTS:
        # who sees no frames is told a language-neutral question's boxes in words
        asked = [row.get("question_coordinates") or row["question"] for row in rows]
        conversations = [PROMPTS[prompt](text, row["context"]) for text, row in zip(asked, rows, strict=True)]
        for index, reply in engine.generate(conversations, max_new_tokens=max_new_tokens):
            yield index, _answer(reply, conversations[index])
        return
    if prompt not in VIDEO_PROMPTS:
        raise ValueError(f"prompt {prompt!r}: allowed are {', '.join([*PROMPTS, *VIDEO_PROMPTS])}")
    if videos is None:
        raise ValueError(f"the prompt {prompt!r} shows frames: a folder of videos is needed")
    turns = _one_turn if prompt == "frames" else _two_turns
    for shown, failed in _watched(rows, videos):
        yield from failed.items()
        if shown:
            yield from turns(engine, rows, shown, max_new_tokens)


def _watched(rows: Sequence[Row], videos: Videos) -> Iterator[tuple[dict[int, Shown], dict[int, Answer]]]:
    """The frames of as many rows, clip by clip, as FRAME_BYTES allows, and the errors of rows without a video."""
    by_clip: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        by_clip.setdefault(row["clip"], []).append(index)
    shown: dict[int, Shown] = {}
    failed: dict[int, Answer] = {}
    held = 0
    for clip, indices in by_clip.items():
        try:
            found = videos.frames(rows[indices[0]])
        except VideoError as error:
            failed |= dict.fromkeys(indices, Answer(None, VIDEO_ERROR + str(error)))
            continue
        if found.warning:
            warnings.warn(f"clip {clip}: {found.warning}", stacklevel=2)
        of_clip: dict[int, Shown] = {}
        for index in indices:
            try:
                of_clip[index] = videos.marked(rows[index], found)
            except VideoError as error:
                failed[index] = Answer(None, VIDEO_ERROR + str(error))
        pictures = {id(image): image for one in of_clip.values() for image in one.images}
        size = sum(3 * image.width * image.height for image in pictures.values())
        if shown and held + size > FRAME_BYTES:
            yield shown, failed
            shown, failed, held = {}, {}, 0
        shown |= of_clip
        held += size
    yield shown, failed


def _one_turn(
    engine: Engine, rows: Sequence[Row], shown: Mapping[int, Shown], max_new_tokens: int
) -> Iterator[tuple[int, Answer]]:
    asked = list(shown)
    conversations = [frames(rows[i]["question"], shown[i].images, shown[i].seconds, shown[i].marks) for i in asked]
    for k, reply in engine.generate(conversations, max_new_tokens=max_new_tokens):
        yield asked[k], _answer(reply, conversations[k], shown[asked[k]])


def _two_turns(
    engine: Engine, rows: Sequence[Row], shown: Mapping[int, Shown], max_new_tokens: int
) -> Iterator[tuple[int, Answer]]:
    asked = list(shown)
    firsts = [locate(rows[i]["question"], shown[i].images, shown[i].seconds, shown[i].marks) for i in asked]
    located: dict[int, str] = {}
    for k, reply in engine.generate(firsts, max_new_tokens=LOCATE_TOKENS):
        if reply.text is None:
            yield asked[k], _answer(reply, firsts[k], shown[asked[k]])
        else:
            located[k] = reply.text.strip()
    again = sorted(located)
    seconds = [second_turn(firsts[k], located[k], rows[asked[k]]["question"]) for k in again]
    for n, reply in engine.generate(seconds, max_new_tokens=max_new_tokens):
        index = asked[again[n]]
        yield index, _answer(reply, seconds[n], shown[index], located[again[n]])


def _answer(reply: Reply, conversation: Conversation, shown: Shown | None = None, located: str | None = None) -> Answer:
    return Answer(
        text=None if reply.text is None else reply.text.strip(),
        error=reply.error,
        finished=reply.finished,
        located=located,
        shown=shown.names if shown else [],
        warning=shown.warning if shown else None,
        conversation=_told(conversation, iter(shown.names if shown else ())),
    )


def _told(conversation: Conversation, names: Iterator[str]) -> Conversation:
    """The conversation with the name of each frame in place of its picture, to be kept."""
    return [
        {**m, "content": [p if p["type"] == "text" else {"type": "image", "image": next(names)} for p in m["content"]]}
        if not isinstance(m["content"], str)
        else m
        for m in conversation
    ]
