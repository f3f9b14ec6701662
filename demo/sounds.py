"""Sounds made by a computer, for the demo's videos: mono samples from -1 to 1 at RATE.

    track([(0.5, "speech", "Come on, turn!"), (4.0, "crack", "")], seconds=6.0)

Speech is eSpeak NG's, through the package espeakng-loader (the extra `sound`). Where it is not installed a tone for
each syllable stands in its place, which nobody understands: `speaks()` says which of the two it is. The same calls in
the same order give the same samples; one sentence said twice by eSpeak NG differs a little, like a person's.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import cache

import numpy as np

RATE = 16_000  # samples a second: what recognizers of speech take
LOUDEST = 0.8
Sound = tuple[float, str, str]  # second where it begins, name in MADE or "speech", what is said


def track(sounds: Sequence[Sound], seconds: float) -> np.ndarray:
    """All sounds of a video, each from its second on; what would go on behind the end is cut."""
    whole = np.zeros(round(seconds * RATE))
    for start, name, text in sounds:
        samples = speech(text) if name == "speech" else MADE[name]()
        at = round(start * RATE)
        there = whole[at : at + len(samples)]
        there += samples[: len(there)]
    return (LOUDEST * whole / max(1.0, float(np.abs(whole).max(initial=0)))).astype(np.float32)


# -- speech -----------------------------------------------------------------------------------------------------------


def speaks() -> bool:
    """Whether speech is speech, and not tones."""
    return _espeak() is not None


def speech(text: str) -> np.ndarray:
    """The text, spoken."""
    library = _espeak()
    return _tones(text) if library is None else _spoken(library, text)


_RETRIEVAL, _UTF8 = 1, 1  # of espeak_Initialize and espeak_Synth: samples are handed back; the text's encoding
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


@cache
def _espeak() -> tuple[ctypes.CDLL, int] | None:
    """eSpeak NG and its samples a second; None where it is not installed."""
    try:
        import espeakng_loader
    except ImportError:
        return None
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(_RETRIEVAL, 0, espeakng_loader.get_data_path().encode(), 0)
    if rate <= 0 or library.espeak_SetVoiceByName(b"en") != 0:
        raise RuntimeError(f"eSpeak NG cannot be started (it says {rate})")
    return library, rate


def _spoken(espeak: tuple[ctypes.CDLL, int], text: str) -> np.ndarray:
    library, rate = espeak
    parts: list[np.ndarray] = []

    def take(samples: ctypes._Pointer[ctypes.c_short], count: int, _: object) -> int:
        if samples and count > 0:
            parts.append(np.ctypeslib.as_array(samples, shape=(count,)).copy())
        return 0

    callback = _CALLBACK(take)
    library.espeak_SetSynthCallback(callback)
    data = text.encode()
    if library.espeak_Synth(data, len(data) + 1, 0, 0, 0, _UTF8, None, None) != 0 or library.espeak_Synchronize() != 0:
        raise RuntimeError(f"eSpeak NG cannot say {text!r}")
    samples = np.concatenate([np.zeros(0, np.int16), *parts]) / 32768
    return _at_rate(samples, rate)


def _at_rate(samples: np.ndarray, rate: int) -> np.ndarray:
    """The samples at RATE: by straight lines between means of neighbours, which is enough for speech."""
    if rate == RATE or not len(samples):
        return samples
    width = max(1, round(rate / RATE))
    smooth = np.convolve(samples, np.ones(width) / width, mode="same")
    times = np.arange(int(len(samples) * RATE / rate)) * rate / RATE
    return np.interp(times, np.arange(len(samples)), smooth)


def _tones(text: str) -> np.ndarray:
    """A tone for each group of vowels, higher or lower by its letters, and a pause between words."""
    parts = [np.zeros(0)]
    for word in text.lower().split():
        for vowels in re.findall(r"[aeiouy]+", word):
            parts.append(0.5 * _fade(_tone(140 + 15 * (sum(map(ord, vowels)) % 8), 0.16)))
        parts.append(np.zeros(RATE // 14))
    return np.concatenate(parts)


# -- other sounds -----------------------------------------------------------------------------------------------------


def _times(seconds: float) -> np.ndarray:
    return np.arange(round(seconds * RATE)) / RATE


def _tone(hertz: float, seconds: float, overtones: int = 3) -> np.ndarray:
    """A tone with overtones, each half as loud as the one below."""
    times = _times(seconds)
    return sum((np.sin(2 * np.pi * hertz * n * times) / 2**n for n in range(1, overtones + 1)), np.zeros(len(times)))


def _fade(samples: np.ndarray, seconds: float = 0.02) -> np.ndarray:
    """The samples, beginning and ending softly."""
    edge = min(len(samples) // 2, round(seconds * RATE))
    shape = np.ones(len(samples))
    if edge:
        shape[:edge], shape[-edge:] = np.linspace(0, 1, edge), np.linspace(1, 0, edge)
    return samples * shape


def _noise(seconds: float) -> np.ndarray:
    return np.random.default_rng(len(_times(seconds))).uniform(-1, 1, len(_times(seconds)))


def _again(samples: np.ndarray, times: int, pause: float) -> np.ndarray:
    return np.concatenate([np.concatenate([samples, np.zeros(round(pause * RATE))]) for _ in range(times)])


def horn() -> np.ndarray:
    """A car's horn, twice: two tones a third apart."""
    return _again(_fade(0.5 * (_tone(400, 0.45, 6) + _tone(500, 0.45, 6))), 2, 0.3)


def engine() -> np.ndarray:
    """A bus that comes, passes and goes."""
    times = _times(6.0)
    loudness = np.exp(-(((times - 3.0) / 1.5) ** 2))
    return loudness * (0.6 * _tone(55, 6.0, 8) + 0.15 * _noise(6.0))


def crack() -> np.ndarray:
    """A loud, short crack."""
    times = _times(0.25)
    return np.exp(-times / 0.03) * _noise(0.25) + 0.5 * np.exp(-times / 0.06) * _tone(180, 0.25)


def claps() -> np.ndarray:
    """Hands that clap for three seconds."""
    one = np.exp(-_times(0.08) / 0.012) * _noise(0.08)
    whole = np.zeros(3 * RATE)
    for at in np.random.default_rng(3).integers(0, len(whole) - len(one), 60):
        whole[at : at + len(one)] += 0.5 * one
    return whole


def telephone() -> np.ndarray:
    """An old telephone, three rings of a second."""
    ring = _fade(0.4 * (_tone(1_000, 1.0, 2) + _tone(1_250, 1.0, 2)) * np.sign(np.sin(2 * np.pi * 20 * _times(1.0))))
    return _again(ring, 3, 0.7)


def hiss() -> np.ndarray:
    """Water on a hot stove for three seconds."""
    noise = _noise(3.0)
    return _fade(0.35 * np.diff(noise, prepend=noise[:1]), 0.5)


def alarm() -> np.ndarray:
    """A smoke alarm: high beeps for four seconds."""
    return _again(_fade(0.6 * _tone(3_100, 0.15, 2)), 13, 0.15)


MADE = {"horn": horn, "engine": engine, "crack": crack, "claps": claps}
MADE |= {"telephone": telephone, "hiss": hiss, "alarm": alarm}
