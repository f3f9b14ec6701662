"""The experts on a video: each looks at it or listens to it once and reports in text, whatever will be asked.

    image-text   frames of the video, to any vision engine (videoqa/engines)
    speech-text  its sound, to a speech model (speech.py)
    audio-text   its sound, to a model that tells kinds of sounds apart (sounds.py)

That a video has no sound is a report too. An expert that fails is the error of all questions on its video: an answer
without its report would be that of another agent.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from videoqa.asking import VIDEO_ERROR, with_frames
from videoqa.benchmarks.worldqa.retriever import prompts, sounds, speech
from videoqa.engines import check_engine, model_place, open_engine
from videoqa.errors import UserError
from videoqa.extras import said
from videoqa.frames import VideoError
from videoqa.reading.thinking import without_thinking
from videoqa.rows import Row
from videoqa.sound import Sound, read_sound
from videoqa.steps import Step, Steps
from videoqa.videos import Source, Videos

IMAGE, SPEECH, AUDIO = EXPERTS = ("image-text", "speech-text", "audio-text")
NOTHING_SEEN = "(the model describes nothing)"
NO_SOUND = "(the video has no sound track)"
DESCRIPTION_TOKENS = 256
_ENDS = 1 << 20  # bytes at a file's beginning and end, which tell it apart from others

# What a spec begins with, and the packages that it needs
NEEDS = {"faster-whisper:": ("faster_whisper",), "yamnet:": ("onnxruntime",), "": ("torch", "transformers")}

Ear = Callable[[Sound], str]


@dataclass(frozen=True, slots=True)
class Expert:
    """An expert that is ready: `report` of a row's video (raises VideoError, ExpertError); `settings` move its
    words."""

    settings: Mapping[str, Any]
    report: Callable[[Row, Videos], str]


class ExpertError(Exception):
    """An expert failed on this video."""


def open_expert(name: str, spec: str, device: str = "auto") -> Expert:
    """The expert of this name with the model that `spec` names. Raises UserError."""
    try:
        if name == IMAGE:
            return _image_text(spec, device)
        if name == SPEECH:
            transcribe, settings = speech.open_transcriber(spec, device)
            return _ears(partial(_spoken, transcribe), settings)
        classify, settings = sounds.open_classifier(spec, device)
        return _ears(lambda sound: sounds.report(sound.samples, classify), settings)
    except UserError as error:
        raise UserError(f"{name}: {error}") from error
    except ImportError:
        raise
    except Exception as error:  # for a model or a device that is none, libraries raise whatever they like
        raise UserError(f"{name}: {spec} cannot be loaded: {_why(error)}") from error


def check_expert(name: str, spec: str) -> None:
    """Raise what `open_expert` would of a spec that cannot be right, without loading a model: a folder that there is
    not, a package that is missing."""
    if name == IMAGE:
        check_engine(spec)
        return
    prefix = next((one for one in NEEDS if one and spec.startswith(one)), "")
    for package in NEEDS[prefix]:
        if find_spec(package) is None:
            raise UserError(said(package))
    model_place(spec.removeprefix(prefix))


def _image_text(spec: str, device: str) -> Expert:
    engine = open_engine(spec, device=device)

    def report(row: Row, videos: Videos) -> str:
        conversation = with_frames("", prompts.DESCRIBE, videos.frames(row))
        ((_, reply),) = engine.generate([conversation], max_new_tokens=DESCRIPTION_TOKENS)
        if reply.text is None:
            raise ExpertError(reply.error or "no reply")
        return (without_thinking(reply.text) or "").strip() or NOTHING_SEEN

    return Expert({"model": engine.name, **engine.settings}, report)


def _ears(listen: Ear, settings: Mapping[str, Any]) -> Expert:
    def report(row: Row, videos: Videos) -> str:
        source = videos.source(row)
        sound = read_sound(source.path, source.start_s, source.end_s)
        return NO_SOUND if sound is None else listen(sound)

    return Expert(settings, report)


def _spoken(transcribe: speech.Transcriber, sound: Sound) -> str:
    return speech.report(sound.samples, transcribe)


# -- the reports on the videos of a run -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reports:
    """What the experts say of each clip, by their names, and why there is nothing, where one failed."""

    of_clips: Mapping[str, Mapping[str, str]]
    failed: Mapping[str, str]


def reports(
    rows: Sequence[Row], videos: Videos, specs: Mapping[str, str], steps: Steps, device: str = "auto"
) -> Reports:
    """The reports of the experts `specs` (name -> model) on the clips of the rows, expert by expert, so that one model
    is loaded at a time, and none for what the steps know already."""
    clips = {row["clip"]: row for row in reversed(rows)}
    of_clips: dict[str, dict[str, str]] = {clip: {} for clip in dict.fromkeys(row["clip"] for row in rows)}
    failed: dict[str, str] = {}
    for name in (name for name in EXPERTS if name in specs):
        expert: Expert | None = None
        for clip in of_clips:
            if clip in failed:
                continue
            try:
                seen = _input(name, specs[name], videos.source(clips[clip]), videos)
            except VideoError as error:
                failed[clip] = VIDEO_ERROR + str(error)
                continue
            if (known := steps.done(clip, None, name, 0, _short(specs[name]), seen)) is None:
                expert = expert or open_expert(name, specs[name], device)
                began = time.monotonic()
                output, fault = _reported(expert, name, clips[clip], videos)
                seconds = round(time.monotonic() - began, 3)
                steps.keep(Step(clip, None, name, 0, _short(specs[name]), seen, output, seconds, fault))
                if output is None:
                    failed[clip] = fault or name
                    continue
                of_clips[clip][name] = output
            else:
                of_clips[clip][name] = known["output"]
    return Reports(of_clips, failed)


def _reported(expert: Expert, name: str, row: Row, videos: Videos) -> tuple[str | None, str | None]:
    """What the expert says, or why it says nothing."""
    try:
        return expert.report(row, videos), None
    except VideoError as error:
        return None, VIDEO_ERROR + str(error)
    except UserError:  # no video can be reported on, as where a server refuses the key
        raise
    except Exception as error:  # a model that stumbles over this video: the others go on
        return None, f"{name}: {_why(error)}"


def _why(error: Exception) -> str:
    """An error of a library in one line, with its type where that is not plain from the text."""
    text = " ".join(str(error).split())[:300]
    return text if text and isinstance(error, ExpertError | OSError | ValueError | RuntimeError) else repr(error)[:300]


def _short(spec: str) -> str:
    """The model of a spec without the folders of this machine."""
    prefix = next(one for one in ("vllm:", *NEEDS) if spec.startswith(one))
    place, mark, options = spec.removeprefix(prefix).partition("?")
    there = Path(place).expanduser()
    return f"{prefix}{there.name if there.exists() else place}{mark}{options}"


def _input(name: str, spec: str, source: Source, videos: Videos) -> dict[str, Any]:
    """What a report depends on: the file by its content, its part, the frames, the model by its content or name."""
    seen: dict[str, Any] = {"file": source.path.name, "content": _content(source.path)}
    if source.start_s or source.end_s is not None:
        seen |= {"start_s": source.start_s, "end_s": source.end_s}
    if name == IMAGE:
        seen |= {"frames": str(videos.policy), "asked": prompts.DESCRIBE, "max_new_tokens": DESCRIPTION_TOKENS}
    return seen | {"model": model_of(spec)}


def model_of(spec: str) -> str:
    """Tells the models of two specs apart: the spec, and of a folder the hash of what is in it."""
    from videoqa.engines.chat import revision

    place = spec.removeprefix("vllm:").partition("?")[0]
    for prefix in NEEDS:
        place = place.removeprefix(prefix)
    folder = Path(place).expanduser()
    return f"{_short(spec)} {revision(str(folder))}" if folder.is_dir() else spec


def _content(path: Path) -> str:
    """Tells video files apart by their size, beginning and end."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(_ENDS))
        file.seek(max(0, size - _ENDS))
        digest.update(file.read(_ENDS))
    return digest.hexdigest()[:12]
