"""The speech-text expert: what is said when, by Whisper.

    openai/whisper-small.en               a folder or Hub id, by transformers' automatic-speech-recognition pipeline
    faster-whisper:build/models/tiny.en   the same in CTranslate2's form, by faster-whisper, which is quicker on CPUs

What it says is text, line by line: "3.2 s to 5.1 s: Get in, quick!". Whisper invents words where nobody speaks, so
silence is not given to it, and segments that it believes to be no speech itself are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from videoqa.sound import RATE

if TYPE_CHECKING:
    import numpy as np

QUIET = 1e-3  # the greatest sample of what is no speech
NOBODY = "(nobody is heard to speak)"
NO_SPEECH, UNSURE = 0.6, -1.0  # Whisper's own limits: probability of no speech, mean log-probability of the words

Spoken = Iterable[tuple[float, float | None, str]]  # start, end (None: of the sound) and words
Transcriber = Callable[["np.ndarray"], Spoken]


def report(samples: np.ndarray, transcribe: Transcriber) -> str:
    """What is said when, a line for each segment."""
    if not len(samples) or float(abs(samples).max()) < QUIET:
        return NOBODY
    lines = []
    for start, end, words in transcribe(samples):
        if said := " ".join(words.split()):
            lines.append(f"{start:.1f} s to {len(samples) / RATE if end is None else end:.1f} s: {said}")
    return "\n".join(lines) or NOBODY


def open_transcriber(spec: str, device: str) -> tuple[Transcriber, dict[str, Any]]:
    """The speech model that a spec names, and its settings. Raises UserError."""
    if spec.startswith("faster-whisper:"):
        return _faster_whisper(spec.removeprefix("faster-whisper:"), device)
    return _transformers(spec, device), {"engine": "transformers"}


def _transformers(model: str, device: str) -> Transcriber:
    import torch
    from transformers import pipeline

    place = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    listen = pipeline("automatic-speech-recognition", model=model, device=place, trust_remote_code=False)

    def transcribe(samples: np.ndarray) -> Spoken:
        heard: Any = listen({"raw": samples, "sampling_rate": RATE}, return_timestamps=True)
        for chunk in heard.get("chunks") or [{"timestamp": (0.0, None), "text": heard["text"]}]:
            start, end = chunk["timestamp"]
            yield start or 0.0, end, chunk["text"]

    return transcribe


def _faster_whisper(model: str, device: str) -> tuple[Transcriber, dict[str, Any]]:
    from faster_whisper import WhisperModel

    kind = "default" if device not in ("auto", "cpu") else "int8"
    whisper = WhisperModel(model, device=device, compute_type=kind)

    def transcribe(samples: np.ndarray) -> Spoken:
        segments, _ = whisper.transcribe(
            samples, beam_size=1, temperature=0.0, vad_filter=True, condition_on_previous_text=False
        )
        for one in segments:
            if not (one.no_speech_prob > NO_SPEECH and one.avg_logprob < UNSURE):
                yield one.start, one.end, one.text

    return transcribe, {"engine": "faster-whisper", "compute_type": kind, "beam_size": 1}
