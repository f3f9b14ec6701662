"""The videos of the WorldQA demo, with sound: four short scenes whose things are boxes with names.

    python -m demo.worldqa_videos build/worldqa-videos        # 1.mp4 to 4.mp4

What is seen, said and heard belongs to the events of demo/worldqa.py: a thing moves in a straight line while its event
lasts, and stays where it ended up. The command gives the same files each time.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from demo.sounds import RATE, Sound, speaks, track
from demo.worldqa import VIDEOS

FPS = 5
WIDTH, HEIGHT = 320, 240
INK = "#1d1d1f"
DAY, NIGHT = "#f2efe9", "#3b3f4a"
COLOURS = ("#9db4c0", "#c9a227", "#7a9e7e", "#b5838d", "#6d8ea0", "#d08c60", "#8e7dbe", "#a3a380", "#bc6c6c")

Box = tuple[int, int, int, int]  # left, top, width, height in percent of the picture
Move = tuple[int, str, Box, Box]  # event of the video, thing, where it is at the event's start and at its end

WOMAN, BUS, CAR = (12, 40, 10, 35), (0, 25, 40, 40), (0, 50, 28, 22)
MAN, NUT, WRENCH, PIPE = (10, 25, 14, 55), (70, 50, 8, 10), (52, 52, 20, 5), (0, 80, 34, 4)
CAKE, GIRL, CROWN, CANDLES = (40, 60, 22, 18), (44, 25, 12, 28), (44, 18, 12, 7), (43, 50, 16, 10)
COOK, POT, STOVE, PHONE = (12, 22, 14, 58), (55, 45, 18, 20), (48, 65, 34, 25), (90, 30, 8, 10)

SEEN: dict[str, list[Move]] = {
    "1": [
        (0, "bus stop", (4, 20, 6, 55), (4, 20, 6, 55)),
        (0, "woman in a raincoat", WOMAN, WOMAN),
        (0, "watch", (20, 52, 5, 5), (20, 52, 5, 5)),
        (1, "bus", (-40, *BUS[1:]), (100, *BUS[1:])),
        (1, "arms", (9, 30, 16, 8), (9, 22, 16, 8)),
        (2, "red car", (100, *CAR[1:]), (48, *CAR[1:])),
        (2, "man", (105, 44, 8, 10), (54, 44, 8, 10)),
        (3, "woman in a raincoat", WOMAN, (58, 42, 8, 24)),
    ],
    "2": [
        (0, "man", MAN, MAN),
        (0, "rusty nut", NUT, NUT),
        (0, "short wrench", WRENCH, (52, 54, 20, 5)),
        (1, "steel pipe", PIPE, (24, 51, 34, 7)),
        (2, "steel pipe", (24, 51, 34, 7), (30, 74, 34, 7)),
        (2, "rusty nut", NUT, (70, 52, 10, 10)),
        (3, "bottle", (30, 70, 5, 14), (18, 30, 5, 14)),
    ],
    "3": [
        (0, "cake", CAKE, CAKE),
        (0, "seven candles", CANDLES, CANDLES),
        (0, "girl", GIRL, GIRL),
        (0, "paper crown", CROWN, CROWN),
        (0, "children", (4, 35, 24, 45), (4, 35, 24, 45)),
        (1, "hands on her ears", (40, 28, 20, 8), (40, 27, 20, 8)),
        (2, "girl", GIRL, (44, 30, 12, 26)),
        (2, "smoke", (48, 45, 4, 5), (46, 20, 8, 25)),
        (3, "children", (4, 35, 24, 45), (4, 31, 24, 49)),
    ],
    "4": [
        (0, "cook", COOK, (38, *COOK[1:])),
        (0, "pot", POT, POT),
        (0, "stove", STOVE, STOVE),
        (0, "hourglass", (84, 52, 5, 13), (84, 52, 5, 13)),
        (0, "telephone", PHONE, PHONE),
        (1, "cook", (38, *COOK[1:]), (-20, *COOK[1:])),
        (2, "steam", (58, 40, 10, 5), (50, 5, 30, 38)),
        (3, "cook", (-20, *COOK[1:]), (28, *COOK[1:])),
        (3, "pot", POT, (40, 72, 18, 20)),
        (3, "window", (4, 6, 14, 22), (0, 6, 6, 22)),
    ],
}
HEARD: dict[str, list[Sound]] = {
    "1": [
        (1.0, "speech", "Half past eight already. Where is that bus?"),
        (6.5, "engine", ""),
        (10.5, "speech", "Stop! Please stop!"),
        (14.0, "horn", ""),
        (16.2, "speech", "Anna! Do you want a lift to work?"),
        (20.5, "speech", "Thank you, Peter. You saved my morning."),
    ],
    "2": [
        (1.5, "speech", "Come on, turn! It is stuck."),
        (8.5, "speech", "I need a longer lever."),
        (16.5, "crack", ""),
        (17.5, "speech", "Finally!"),
        (23.0, "speech", "That was hard work."),
    ],
    "3": [
        (0.5, "speech", "Are you ready? One, two, three!"),
        (5.0, "speech", "For she's a jolly good fellow, which nobody can deny!"),
        (11.2, "speech", "Make a wish!"),
        (14.0, "claps", ""),
        (15.0, "speech", "Hooray!"),
    ],
    "4": [
        (0.5, "speech", "Eight minutes, and they are done."),
        (7.2, "telephone", ""),
        (12.0, "speech", "Hello? Yes, we have a free table tonight."),
        (15.2, "hiss", ""),
        (17.0, "alarm", ""),
        (21.5, "speech", "Oh no, my noodles!"),
    ],
}
DARK = {"3": (0.0, 16.0)}  # video -> from second to second without light


def boxes(video: str, second: float) -> dict[str, tuple[float, ...]]:
    """Where each thing is in the video at this second, in percent; a thing is there from its first event on."""
    events, places = VIDEOS[video][1], {}
    for event, thing, first, last in SEEN[video]:
        start, end, _ = events[event]
        if second >= start:
            way = min(1.0, (second - start) / (end - start))
            places[thing] = tuple(a + way * (b - a) for a, b in zip(first, last, strict=True))
    return places


def draw(video: str, second: float) -> Image.Image:
    """The picture at this second: what came last is in front."""
    dark = DARK.get(video, (0.0, 0.0))
    picture = Image.new("RGB", (WIDTH, HEIGHT), NIGHT if dark[0] <= second < dark[1] else DAY)
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(size=11)
    things = list(dict.fromkeys(thing for _, thing, _, _ in SEEN[video]))
    for thing, place in boxes(video, second).items():
        left, top, width, height = (
            part * size / 100 for part, size in zip(place, (WIDTH, HEIGHT, WIDTH, HEIGHT), strict=True)
        )
        colour = COLOURS[things.index(thing) % len(COLOURS)]
        pen.rounded_rectangle((left, top, left + width, top + height), radius=3, fill=colour, outline=INK)
        pen.text((left + 2, top + 1), thing, fill=INK, font=font)
    return picture


def render(video: str, path: Path) -> None:
    """Write one video with its sound: H.264 and AAC."""
    seconds = VIDEOS[video][0]
    beside = path.with_suffix(".new.mp4")
    with av.open(str(beside), "w") as container:
        # a fixed quantizer and one thread, so that two renders do not differ
        pictures = container.add_stream("libx264", rate=FPS, options={"qp": "33", "preset": "veryfast", "threads": "1"})
        pictures.pix_fmt, pictures.gop_size, pictures.time_base = "yuv420p", 4 * FPS, Fraction(1, FPS)
        pictures.width, pictures.height = WIDTH, HEIGHT
        sound = container.add_stream("aac", rate=RATE, layout="mono", options={"threads": "1"})
        samples = track(HEARD[video], seconds)
        for number in range(round(seconds * FPS)):
            frame = av.VideoFrame.from_image(draw(video, number / FPS))
            frame.pts, frame.time_base = number, Fraction(1, FPS)
            container.mux(pictures.encode(frame))
            heard = _audio(samples, number * RATE // FPS, (number + 1) * RATE // FPS)
            container.mux(sound.encode(heard))
        container.mux(pictures.encode(None))
        container.mux(sound.encode(None))
    beside.replace(path)


def _audio(samples: np.ndarray, start: int, end: int) -> av.AudioFrame:
    frame = av.AudioFrame.from_ndarray(samples[None, start:end], format="fltp", layout="mono")
    frame.sample_rate, frame.pts, frame.time_base = RATE, start, Fraction(1, RATE)
    return frame


def main(folder: Path) -> None:
    """Render all videos as `<video>.mp4`."""
    folder.mkdir(parents=True, exist_ok=True)
    for video in VIDEOS:
        render(video, folder / f"{video}.mp4")
    voice = "eSpeak NG's" if speaks() else "tones in its place; pip install '.[sound]' for words"
    print(f"{len(VIDEOS)} videos with sound in {folder}; speech: {voice}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
