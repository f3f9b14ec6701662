"""Twelve questions on four short videos in the form of WorldQA's public copy, with notes: all of it made up for the
demo, in worldqa.json; demo/worldqa_videos.py makes the videos. `python -m demo.worldqa build/worldqa-copy` writes

    Generation.jsonl, MC.jsonl, MC_PPL.jsonl    as the copy's configs
    notes.json                                  knowledge types, reasoning steps, events
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CONTENT = json.loads(Path(__file__).with_name("worldqa.json").read_text(encoding="utf-8"))
# video -> its length in seconds and what happens in it
VIDEOS: dict[str, tuple[float, list[tuple[float, float, str]]]] = {
    id: (one["duration_s"], [(start, end, text) for start, end, text in one["events"]])
    for id, one in CONTENT["videos"].items()
}
# video, question, options with the right one first, knowledge types, reasoning steps, what the answer rests on
QUESTIONS: list[tuple[str, str, list[str], list[str], int, str]] = [
    (one["video"], one["question"], one["options"], one["knowledge"], one["steps"], one["rationale"])
    for one in CONTENT["questions"]
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
