"""Twelve questions on four short videos in the form of WorldQA's public copy, with notes: all of it made up for the
demo; demo/worldqa_videos.py makes the videos. `python -m demo.worldqa build/worldqa-copy` writes

    Generation.jsonl, MC.jsonl, MC_PPL.jsonl    as the copy's configs
    notes.json                                  knowledge types, reasoning steps, events
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# video -> its length in seconds and what happens in it
VIDEOS: dict[str, tuple[float, list[tuple[float, float, str]]]] = {
    "1": (
        24.0,
        [
            (0, 6, "A woman in a raincoat stands at a bus stop and looks at her watch."),
            (6, 14, "A bus drives past without stopping; she waves with both arms."),
            (14, 20, "A car horn sounds twice. A man calls her name from a small red car."),
            (20, 24, "She gets into the red car and laughs."),
        ],
    ),
    "2": (
        30.0,
        [
            (0, 8, "A man tries to loosen a rusty nut with a short wrench and groans."),
            (8, 16, "He slides a long steel pipe over the handle of the wrench."),
            (16, 22, "With a loud crack the nut turns."),
            (22, 30, "He wipes his forehead and drinks from a bottle."),
        ],
    ),
    "3": (
        18.0,
        [
            (0, 5, "Children sit in a dark room around a cake with seven candles."),
            (5, 11, "They sing; a girl in a paper crown covers her ears and smiles."),
            (11, 14, "The girl closes her eyes for a moment, then blows the candles out."),
            (14, 18, "Everybody claps. Somebody switches the light on."),
        ],
    ),
    "4": (
        27.0,
        [
            (0, 7, "A cook drops noodles into boiling water and turns an hourglass."),
            (7, 15, "A telephone rings; he goes out of the kitchen."),
            (15, 21, "The pot boils over and hisses. A smoke alarm starts to beep."),
            (21, 27, "The cook runs back in, takes the pot off and opens the window."),
        ],
    ),
}
# video, question, options with the right one first, knowledge types, reasoning steps, what the answer rests on
QUESTIONS: list[tuple[str, str, list[str], list[str], int, str]] = [
    (
        "1",
        "Why does the woman wave with both arms?",
        [
            "She wants the bus to stop, because she is waiting for it.",
            "She greets a friend who sits in the bus.",
            "She wants to warn the driver of a red light, e.g. at 2.5 m height.",
            "She dances to music.",
        ],
        ["self motive", "societal norm"],
        3,
        "One stops a bus by a sign to its driver.",
    ),
    (
        "1",
        "What does the man want to say with his car horn?",
        [
            "He wants her attention, to offer her a ride.",
            "He complains about the traffic.",
            "He tests whether the horn works.",
            "He warns her of the bus.",
        ],
        ["social interaction", "multimodal association"],
        4,
        "The horn is followed by her name.",
    ),
    (
        "1",
        "Do the woman and the man know each other?",
        ["Yes, for he calls her by her name.", "No, for she looks at her watch.", "No, for he drives on."],
        ["social interaction"],
        2,
        "Only people who know somebody call them by name.",
    ),
    (
        "2",
        "Why does the man put a pipe over the wrench?",
        [
            "A longer lever turns the rusty nut with the same force of his arm.",
            "He wants to protect the wrench from rust.",
            "The wrench is too hot to be held.",
            "He measures how long the wrench is.",
        ],
        ["tool use"],
        4,
        "The torque grows with the length of the lever.",
    ),
    (
        "2",
        "What was the loud crack?",
        [
            "The rust that held the nut broke.",
            "The wrench fell on the floor.",
            "The man's bottle burst.",
            "A door was slammed.",
        ],
        ["multimodal association", "tool use"],
        3,
        "The nut turns at the moment of the crack.",
    ),
    (
        "2",
        "Why does he drink at the end?",
        [
            "The work was hard and made him thirsty.",
            "He wants to clean his teeth.",
            "The bottle leaks.",
            "He celebrates his birthday.",
        ],
        ["self motive"],
        2,
        "He groaned before and wipes his forehead.",
    ),
    (
        "3",
        "How old does the girl in the crown become?",
        ["Seven.", "Three.", "Ten.", "Twelve.", "It cannot be known, for there are two cakes."],
        ["societal norm"],
        3,
        "A birthday cake has a candle for each year.",
    ),
    (
        "3",
        "Why does the girl close her eyes before she blows?",
        [
            "She makes a wish, as is the custom.",
            "The smoke bites in her eyes.",
            "She is tired and falls asleep.",
            "She is afraid of the fire.",
        ],
        ["societal norm", "self motive"],
        3,
        "By custom one makes a wish before blowing the candles out.",
    ),
    (
        "3",
        "Why does she cover her ears and smile?",
        [
            "The singing is loud and a little embarrassing, but it pleases her.",
            "She has an earache.",
            "She wants to hear the telephone better.",
            "Her crown is slipping.",
        ],
        ["social interaction", "multimodal association"],
        4,
        "All sing for her at once.",
    ),
    (
        "4",
        "What is the hourglass for?",
        [
            "It shows when the noodles are done.",
            "It decorates the kitchen.",
            "It holds salt for the water.",
            "It measures how hot the water is.",
        ],
        ["tool use"],
        2,
        "Noodles are cooked for a certain time.",
    ),
    (
        "4",
        "Why does the alarm beep?",
        [
            "Water boiled over onto the stove while nobody was there, and made steam and smoke.",
            "The noodles are done.",
            "Somebody rings at the door.",
            "Its battery is empty.",
        ],
        ["multimodal association"],
        5,
        "The pot hisses before the beeping begins.",
    ),
    (
        "4",
        "Why does the cook open the window?",
        [
            "To let the smoke out, so that the alarm stops.",
            "To call for his neighbour.",
            "To throw the noodles out.",
            "To hear the telephone.",
        ],
        ["self motive", "tool use"],
        4,
        "A smoke alarm stops when the air is clear.",
    ),
]


def rows() -> dict[str, list[dict[str, Any]]]:
    """The rows of the three configs."""
    made: dict[str, list[dict[str, Any]]] = {"Generation": [], "MC": [], "MC_PPL": []}
    for number, (video, question, options, _, _, rationale) in enumerate(QUESTIONS):
        common = {
            "question_idx": str(number),
            "question": question,
            "video_idx": video,
            "object_description": VIDEOS[video][1][0][2],
        }
        made["Generation"].append(common | {"answer": options[0], "rationale": rationale})
        rotated = [common | one for one in _rotations(options)]
        made["MC"] += rotated
        made["MC_PPL"].append(rotated[number % len(rotated)])
    return made


def _rotations(options: list[str]) -> Iterator[dict[str, Any]]:
    for by in range(len(options)):
        moved = options[by:] + options[:by]
        lettered = [f"{letter}. {text}" for letter, text in zip("ABCDE", moved, strict=False)]
        yield {"option": lettered, "answer": lettered[moved.index(options[0])]}


def notes() -> dict[str, Any]:
    """The file of notes."""
    return {
        "questions": {
            str(number): {"knowledge": knowledge, "steps": steps}
            for number, (_, _, _, knowledge, steps, _) in enumerate(QUESTIONS)
        },
        "videos": {id: {"duration_s": length, "events": events} for id, (length, events) in VIDEOS.items()},
    }


def main(folder: Path) -> None:
    """Write the copy and its notes."""
    from videoqa.files import write_json, write_text

    for config, of in rows().items():
        write_text(folder / f"{config}.jsonl", "".join(json.dumps(row) + "\n" for row in of))
    write_json(folder / "notes.json", notes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
