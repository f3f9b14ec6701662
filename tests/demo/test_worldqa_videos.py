"""The WorldQA demo's videos: what is seen and heard at which second."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from demo import sounds, worldqa_videos
from demo.worldqa import QUESTIONS, VIDEOS

LONGEST_SPEECH = 4.0  # seconds


def test_a_sound_is_heard_from_its_second_on_and_nowhere_else() -> None:
    samples = sounds.track([(1.0, "crack", ""), (3.0, "horn", "")], 4.0)
    assert len(samples) == 4 * sounds.RATE and samples.dtype == np.float32
    loud = np.abs(samples).reshape(8, -1).max(axis=1) > 0.05  # half a second each
    assert loud.tolist() == [False, False, True, False, False, False, True, True]
    assert np.abs(samples).max() <= 1


def test_the_same_sounds_give_the_same_samples() -> None:
    heard = [(float(at), name, "") for at, name in enumerate(sounds.MADE)]
    assert np.array_equal(sounds.track(heard, 5.0), sounds.track(heard, 5.0))


def test_what_begins_behind_the_end_is_not_heard() -> None:
    assert not sounds.track([(5.0, "horn", "")], 2.0).any()


@pytest.mark.parametrize("name", sounds.MADE)
def test_every_sound_can_be_heard_and_is_no_noise_beyond_its_bounds(name: str) -> None:
    samples = sounds.MADE[name]()
    assert 0.2 < np.abs(samples).max() < 2 and np.isfinite(samples).all()


def test_without_a_synthesiser_tones_stand_in_the_place_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sounds, "_espeak", lambda: None)
    assert not sounds.speaks()
    assert len(sounds.speech("Where is that bus?")) > len(sounds.speech("bus")) > 0
    assert len(sounds.speech("")) == 0


def test_words_are_spoken_where_the_synthesiser_is() -> None:
    pytest.importorskip("espeakng_loader")
    short, long = (sounds.speech(text) for text in ("Stop!", "Thank you, Peter. You saved my morning."))
    assert sounds.RATE / 4 < len(short) < len(long) < LONGEST_SPEECH * sounds.RATE
    assert np.abs(long).max() > 0.3


def test_every_event_is_seen_and_every_sound_is_within_its_video() -> None:
    assert set(worldqa_videos.SEEN) == set(worldqa_videos.HEARD) == set(VIDEOS) == {row[0] for row in QUESTIONS}
    for video, (seconds, events) in VIDEOS.items():
        assert {event for event, *_ in worldqa_videos.SEEN[video]} == set(range(len(events)))
        assert all(0 <= start < seconds for start, _, _ in worldqa_videos.HEARD[video])
        assert any(name == "speech" for _, name, _ in worldqa_videos.HEARD[video])
        assert any(name in sounds.MADE for _, name, _ in worldqa_videos.HEARD[video])


def test_a_thing_moves_while_its_event_lasts_and_stays_where_it_ended() -> None:
    where = {second: worldqa_videos.boxes("1", second)["bus"][0] for second in (6, 10, 14, 20)}
    assert where == {6: -40, 10: 30, 14: 100, 20: 100}
    assert "bus" not in worldqa_videos.boxes("1", 5.9)


def test_a_video_has_pictures_and_sound_of_the_same_length(tmp_path: Path) -> None:
    worldqa_videos.render("3", tmp_path / "3.mp4")
    with av.open(str(tmp_path / "3.mp4")) as file:
        assert [stream.type for stream in file.streams] == ["video", "audio"]
        assert sum(1 for _ in file.decode(video=0)) == 18 * worldqa_videos.FPS
    with av.open(str(tmp_path / "3.mp4")) as file:
        heard = np.concatenate([frame.to_ndarray()[0] for frame in file.decode(audio=0)])
    assert len(heard) / sounds.RATE == pytest.approx(18.0, abs=0.2)
    claps = heard[14 * sounds.RATE : 17 * sounds.RATE]
    assert np.abs(claps).max() > 0.2 > 0.02 > np.abs(heard[10 * sounds.RATE : 11 * sounds.RATE]).max()
