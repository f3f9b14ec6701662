"""The audio-text expert: which sounds are to be heard when, by a model that tells kinds of sounds apart.

    MIT/ast-finetuned-audioset-10-10-0.4593    a folder or Hub id, by transformers' audio-classification pipeline
    yamnet:build/models/yamnet                 a folder with YAMNet as ONNX (model.onnx, model.json, labels.csv)

What it says is text, window by window: "0 s to 5 s: Speech 0.93, Vehicle horn 0.41".
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from videoqa.errors import UserError
from videoqa.sound import RATE

if TYPE_CHECKING:
    import numpy as np

WINDOW_S = 5.0
SHORTEST_S = 0.5  # of a last window; a shorter rest belongs to the window before it
MOST, LEAST = 4, 0.15  # kinds of sounds for a window, and how sure the model must be
QUIET = 1e-4  # the greatest sample of silence
SILENCE = "(the sound track is silent)"
NOTHING_SURE = "(no kind of sound that the model is sure of)"

Scores = Sequence[tuple[str, float]]  # kinds of sounds and how sure the model is
Classifier = Callable[["np.ndarray"], Scores]  # of the samples of a window


def report(samples: np.ndarray, classify: Classifier) -> str:
    """What is to be heard when, a line for each window; equal lines of windows that follow each other are one."""
    if not len(samples) or float(abs(samples).max()) < QUIET:
        return SILENCE
    lines: list[tuple[float, float, str]] = []
    for start, end in windows(len(samples) / RATE):
        window = samples[round(start * RATE) : round(end * RATE)]
        heard = "" if float(abs(window).max()) < QUIET else _listed(classify(window))
        if lines and lines[-1][2] == heard:
            lines[-1] = (lines[-1][0], end, heard)
        else:
            lines.append((start, end, heard))
    told = [f"{start:g} s to {end:.3g} s: {heard}" for start, end, heard in lines if heard]
    return "\n".join(told) or NOTHING_SURE


def windows(seconds: float) -> list[tuple[float, float]]:
    """Where the windows of a sound begin and end."""
    count = max(1, int(seconds // WINDOW_S) + (seconds % WINDOW_S >= SHORTEST_S))
    return [(n * WINDOW_S, seconds if n == count - 1 else (n + 1) * WINDOW_S) for n in range(count)]


def _listed(scores: Scores) -> str:
    sure = sorted((one for one in scores if one[1] >= LEAST), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{label} {score:.2f}" for label, score in sure[:MOST])


def open_classifier(spec: str, device: str) -> tuple[Classifier, dict[str, Any]]:
    """The classifier that a spec names, and its settings. Raises UserError."""
    settings = {"window_s": WINDOW_S, "most": MOST, "least": LEAST}
    if spec.startswith("yamnet:"):
        classify, revision = _yamnet(Path(spec.removeprefix("yamnet:")))
        return classify, {"engine": "onnxruntime", "revision": revision, **settings}
    return _transformers(spec, device), {"engine": "transformers", **settings}


def _transformers(model: str, device: str) -> Classifier:
    from transformers import pipeline

    listen: Any = pipeline("audio-classification", model=model, device=_device(device), trust_remote_code=False)
    if (rate := listen.feature_extractor.sampling_rate) != RATE:
        raise UserError(f"{model}: hears {rate:,} samples a second; {RATE:,} are made")

    def classify(window: np.ndarray) -> Scores:
        # sounds of several kinds are heard at once, so each has a probability of its own
        heard = listen({"raw": window, "sampling_rate": RATE}, top_k=MOST, function_to_apply="sigmoid")
        return [(str(one["label"]), float(one["score"])) for one in heard]

    return classify


def _device(device: str) -> Any:
    import torch

    return ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device


# -- YAMNet -----------------------------------------------------------------------------------------------------------

# Its input, by the parameters that its authors publish (tensorflow/models, research/audioset/yamnet/params.py): a log
# mel spectrogram of 64 bands, in patches of 96 steps
STEP, SPAN, FFT = 160, 400, 512  # samples at RATE
BANDS, LOWEST_HZ, HIGHEST_HZ, OFFSET = 64, 125.0, 7_500.0, 0.001
PATCH, HOP = 96, 48  # steps


def log_mel(samples: np.ndarray) -> np.ndarray:
    """(steps, 64): the logarithm of the energy in each band, of Hann windows of 25 ms every 10 ms."""
    import numpy as np

    short = SPAN + STEP * (PATCH - 1) - len(samples)
    padded = np.pad(samples, (0, max(0, short))).astype(np.float64)
    frames = np.lib.stride_tricks.sliding_window_view(padded, SPAN)[::STEP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(SPAN) / SPAN)
    magnitude = np.abs(np.fft.rfft(frames * hann, FFT))
    return np.log(magnitude @ _bands() + OFFSET)


def _bands() -> np.ndarray:
    """(257, 64): triangles on the mel scale (1127 ln(1 + f / 700)), the first bin in none."""
    import numpy as np

    mels = 1127.0 * np.log1p(np.arange(FFT // 2 + 1) * (RATE / FFT) / 700.0)
    low, high = (1127.0 * np.log1p(hertz / 700.0) for hertz in (LOWEST_HZ, HIGHEST_HZ))
    edges = np.linspace(low, high, BANDS + 2)
    rising = (mels[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - mels[:, None]) / (edges[2:] - edges[1:-1])
    weights = np.maximum(0.0, np.minimum(rising, falling))
    weights[0] = 0.0
    return weights


def patches(spectrum: np.ndarray) -> np.ndarray:
    """(patches, 1, 96, 64), each half over the one before."""
    import numpy as np

    starts = range(0, len(spectrum) - PATCH + 1, HOP)
    return np.stack([spectrum[at : at + PATCH] for at in starts])[:, None]


def _yamnet(folder: Path) -> tuple[Classifier, str]:
    """YAMNet in a folder: model.onnx, from patches to one logit for each kind of sound; model.json, where both sides
    are quantized ({"input": {"scale": .., "zero": ..}, "output": {..}}); labels.csv with a column display_name."""
    import numpy as np
    import onnxruntime

    from videoqa.engines.chat import revision

    try:
        quantized = json.loads((folder / "model.json").read_text("utf-8"))
        with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
            labels = [line["display_name"] for line in csv.DictReader(file)]
        sides = [(float(quantized[side]["scale"]), float(quantized[side]["zero"])) for side in ("input", "output")]
    except OSError as error:
        raise UserError(f"{folder}: is no YAMNet folder (model.onnx, model.json, labels.csv): {error}") from None
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise UserError(f"{folder}: model.json or labels.csv cannot be read: {error!r}") from None
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    (scale, zero), (out_scale, out_zero) = sides
    (given,) = session.get_inputs()
    if given.type != "tensor(uint8)" or list(given.shape) != [1, 1, PATCH, BANDS]:
        raise UserError(
            f"{folder}: model.onnx takes {given.type} of {given.shape}, not uint8 of 1, 1, {PATCH}, {BANDS}"
        )

    def classify(window: np.ndarray) -> Scores:
        steps = np.clip(np.round(patches(log_mel(window)) / scale + zero), 0, 255).astype(np.uint8)
        raw = np.concatenate([session.run(None, {given.name: patch[None]})[0] for patch in steps])
        logits = (raw.astype(np.float64) - out_zero) * out_scale
        return list(zip(labels, (1 / (1 + np.exp(-logits))).mean(axis=0).tolist(), strict=True))

    return classify, revision(str(folder))
