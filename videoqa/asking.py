"""Ask the model under test: rows -> conversations -> answers. A `Way` is one way to put a question (one --prompt); a
track has several, made here or in its own folder.

    videos = Videos.of("videos", Policy.parse("uniform:8"), all_rows)
    for index, answer in track("easg-bench").ways["two-stage"].ask(engine, rows, 64, videos): ...

    Answer(text="Picked up the jug.", located="12.5 s to 14.0 s", shown=["demo-tea.mp4 at 0.0 s", ...])

A clip is decoded once for all its questions. Clips are taken together until their frames fill `FRAME_BYTES`, so that
batches are large and memory does not grow with the number of clips. A clip without a usable video is the error of its
rows, marked `VIDEO_ERROR`; the others go on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from videoqa.engines import Conversation, Engine, Reply
from videoqa.errors import UserError
from videoqa.frames import VideoError
from videoqa.regions import with_regions
from videoqa.rows import Row
from videoqa.videos import Shown, Videos

VIDEO_ERROR = "video_error: "  # how the error of a row begins whose video cannot be used
FRAME_BYTES = 1 << 30  # of decoded frames that are held at a time; one clip may have more


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's answer to one row, or why there is none."""

    text: str | None
    error: str | None = None
    finished: bool = True  # False: cut by max_new_tokens
    refusal: bool = False  # the server says that the model refused; `text` is what it said
    located: str | None = None  # turn 1's reply in a two-stage run
    shown: list[str] = field(default_factory=list)  # the frames, as file and second of the clip
    warning: str | None = None  # what was wrong with the video
    reasoning: str | None = None  # turn 1's reply where the model thinks first and chooses in turn 2
    probabilities: tuple[float, ...] | None = None  # of the options, where the model was asked for them
    mass: float | None = None  # the probability of all of these answers together
    conversation: Conversation = ()  # the whole of it, frames as in `shown`
    prompt_tokens: int = 0  # read and written in all turns, as the engine or its server counts them; 0: not told
    new_tokens: int = 0

    def after(self, prompt_tokens: int, new_tokens: int) -> Answer:
        """The answer with what turns before it cost."""
        return replace(self, prompt_tokens=self.prompt_tokens + prompt_tokens, new_tokens=self.new_tokens + new_tokens)


Asker = Callable[[Engine, Sequence[Row], int, Videos | None], Iterator[tuple[int, Answer]]]
Turns = Callable[[Engine, Sequence[Row], Mapping[int, Shown], int], Iterator[tuple[int, Answer]]]
Query = Callable[[Row], str]


@dataclass(frozen=True, slots=True)
class Agent:
    """What a way needs that lets experts work before the model answers. A spec is the text that names an expert's
    model on the command line."""

    experts: Mapping[str, str]  # every expert, and what its spec may be
    # from the specs of those that work, the run folder that keeps each step, other runs' folders whose steps count as
    # done, and the device ("auto", "cpu", "cuda") of the models that are loaded
    open: Callable[[Mapping[str, str], Path, Sequence[Path], str], Asker]
    named: Callable[[str, str], str]  # from expert and spec: the model as results name it, without a folder or key


@dataclass(frozen=True, slots=True)
class Way:
    """One way of asking. `ask(engine, rows, max_new_tokens, videos)` gives each row's index and answer, as they are
    known. `instruction` and `query` are its texts, for hosts that ask the model themselves: both stand in the user's
    turn, so that the prompt is the same through every host and every chat template."""

    kind: str  # what the model saw: "language-only", "video"; a column of reports, a filter and colour of the Space
    ask: Asker
    instruction: str
    query: Query
    frames: bool = False  # shows frames, so it needs videos
    types: tuple[str, ...] = ()  # question types that it asks; empty: all
    texts: tuple[str, ...] = ()  # further fixed texts of its prompts
    captions: bool = False  # shows the row's context, which a file of captions may give
    protocols: Mapping[str, Asker] = field(default_factory=dict)  # multiple choice: by what is read off the model
    agent: Agent | None = None

    @property
    def plain(self) -> bool:
        """Asks in one turn of text, so that programs which know no frames and no second turn can ask it. (The last of
        the fixed texts is that of a second turn.)"""
        return not (self.frames or self.agent or any(self.texts[-1:]))

    def check_protocol(self, wanted: str | None) -> None:
        """Raises UserError for a protocol that the way does not have."""
        if wanted is not None and not self.protocols:
            raise UserError(f"--protocol {wanted}: is for multiple choice")
        if wanted is not None and wanted not in self.protocols:
            raise UserError(f"--protocol {wanted}: allowed are {', '.join(self.protocols)}")

    def protocol(self, wanted: str | None, engine: Engine) -> str | None:
        """The protocol to ask by: the wanted one, or the best one that the engine has; None where the way has none.
        Raises UserError for one that the way or the engine does not have."""
        self.check_protocol(wanted)
        if not self.protocols:
            return None
        if wanted not in (None, "generation") and not engine.can_choose:
            raise UserError(f"--protocol {wanted}: {engine.name} gives no probabilities; use generation")
        return wanted or ("likelihood" if engine.can_choose else "generation")

    def of_its_types(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that it asks. Raises UserError where it asks none of these."""
        asked = [row for row in rows if not self.types or row["type"] in self.types]
        if rows and not asked:
            raise UserError(f"this prompt asks {' and '.join(self.types)} questions, and these rows have none")
        return asked


def text_way(kind: str, instruction: str, query: Query) -> Way:
    """A way that asks in one turn of text: the instruction, then `query(row)`."""

    def ask(
        engine: Engine, rows: Sequence[Row], max_new_tokens: int, videos: Videos | None = None
    ) -> Iterator[tuple[int, Answer]]:
        conversations: list[Conversation] = [[{"role": "user", "content": instruction + query(row)}] for row in rows]
        for index, reply in engine.generate(conversations, max_new_tokens=max_new_tokens):
            yield index, answer_of(reply, conversations[index])

    return Way(kind, ask, instruction, query)


def frames_way(
    kind: str,
    instruction: str,
    query: Query,
    *,
    turns: Turns | None = None,
    types: tuple[str, ...] = (),
    texts: tuple[str, ...] = (),
) -> Way:
    """A way that shows frames of the clip. `turns` asks the rows whose frames are at hand (default: one turn with the
    frames, then the question)."""
    asked = turns or _one_turn(instruction, query)

    def ask(
        engine: Engine, rows: Sequence[Row], max_new_tokens: int, videos: Videos | None
    ) -> Iterator[tuple[int, Answer]]:
        if videos is None:
            raise UserError("this prompt shows frames: a folder of videos is needed")
        for shown, failed in _watched(rows, videos):
            yield from failed.items()
            if shown:
                yield from asked(engine, rows, shown, max_new_tokens)

    return Way(kind, ask, instruction, query, frames=True, types=types, texts=texts)


def _one_turn(instruction: str, query: Query) -> Turns:
    def turns(
        engine: Engine, rows: Sequence[Row], shown: Mapping[int, Shown], max_new_tokens: int
    ) -> Iterator[tuple[int, Answer]]:
        asked = list(shown)
        conversations = [with_frames(instruction, query(rows[i]), shown[i]) for i in asked]
        for k, reply in engine.generate(conversations, max_new_tokens=max_new_tokens):
            yield asked[k], answer_of(reply, conversations[k], shown[asked[k]])

    return turns


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
            frames = videos.frames(rows[indices[0]])
        except VideoError as error:
            failed |= dict.fromkeys(indices, Answer(None, VIDEO_ERROR + str(error)))
            continue
        if frames.warning:
            warnings.warn(f"clip {clip}: {frames.warning}", stacklevel=2)
        of_clip: dict[int, Shown] = {}
        for index in indices:
            try:
                of_clip[index] = with_regions(rows[index], frames, videos)
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


def with_frames(instruction: str, question: str, shown: Shown) -> Conversation:
    """One turn: the frames in order of time, each behind its second, then the question."""
    head = {"type": "text", "text": instruction + "Frames of the video, each with its second:"}
    tail = {"type": "text", "text": "\n\n" + question}
    return [{"role": "user", "content": [head, *frame_parts(shown), tail]}]


def frame_parts(shown: Shown) -> list[dict[str, Any]]:
    """The frames as parts of a message, each behind its second of the clip and what is marked on it."""
    parts: list[dict[str, Any]] = []
    for image, second, mark in zip(shown.images, shown.seconds, shown.marks or [""] * len(shown.images), strict=True):
        label = f"\n{second:.1f} s{f', with {mark} marked' if mark else ''}: "
        parts += [{"type": "text", "text": label}, {"type": "image", "image": image}]
    return parts


def answer_of(
    reply: Reply, conversation: Conversation, shown: Shown | None = None, located: str | None = None
) -> Answer:
    """The answer in a reply: `located` is the reply of a first turn, where there was one."""
    return Answer(
        text=None if reply.text is None else reply.text.strip(),
        error=reply.error,
        finished=reply.finished,
        refusal=reply.refusal,
        located=located,
        shown=shown.names if shown else [],
        warning=shown.warning if shown else None,
        conversation=_told(conversation, iter(shown.names if shown else ())),
        prompt_tokens=reply.prompt_tokens,
        new_tokens=reply.new_tokens,
    )


def _told(conversation: Conversation, names: Iterator[str]) -> Conversation:
    """The conversation with the name of each frame in place of its picture, to be kept."""
    return [
        {**m, "content": [p if p["type"] == "text" else {"type": "image", "image": next(names)} for p in m["content"]]}
        if not isinstance(m["content"], str)
        else m
        for m in conversation
    ]
