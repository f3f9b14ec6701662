"""What the public notebook generate_QA.ipynb printed -> recorded_votes.json and recorded_purpose_counts.json.

The language model's votes of the paper are public only as printed output. Two cells print, clip by clip,

    Clip 82dc7a9e-... processed in 15.52 seconds       Generating questions for clip 5293587a-...
    Warning: 1 out of 5 outputs could not be parsed.   Successfully generated purpose questions: 5
    Output: {'2': 0.0, '1': 0.1111111111111111}

and a later one `No mapping found for clip a14bf5af-... frame 5874` for each action that was asked. Three real clips
have no printed scores: there the asked actions get 0, the other candidates 1, and the clips are marked as inferred.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.easg.questions import THRESHOLD, candidates
from builder.easg.records import Clip
from builder.errors import BuildError
from videoqa.files import reckonable

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LINES = re.compile(
    r"Clip (?P<voted>\S+) processed in [\d.]+ seconds"
    r"|Output: (?P<scores>\{.*)"
    r"|Generating questions for clip (?P<generated>\S+)"
    r"|Successfully generated purpose questions: (?P<count>\d+)"
    r"|No mapping found for clip (?P<asked>\S+) frame (?P<frame>\d+)"
)


@dataclass
class _Printed:
    """What the cells printed, by clip."""

    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    asked: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))  # clip -> pnr frames
    warnings: list[str] = field(default_factory=list)


def read_notebook(path: Path, clips: Sequence[Clip]) -> tuple[dict[str, Any], dict[str, int], list[str]]:
    """The content of recorded_votes.json, that of recorded_purpose_counts.json, and warnings for people.

    `clips` are the annotated ones; what was printed of others is left out. A clip without printed scores and without
    an asked action stays without votes. Raises BuildError where the file is no notebook or has no such output.
    """
    printed = _Printed()
    for cell in _printed_by_cell(path):
        _read_cell(cell, printed)
    if not printed.scores or not printed.counts:
        missing = "votes ('Clip ... processed in', 'Output: {...}')" if not printed.scores else "purpose counts"
        raise BuildError(f"{path}: no cell printed {missing}; is this generate_QA.ipynb with its outputs?")

    known = {clip.uid for clip in clips}
    for uid in sorted((printed.scores.keys() | printed.counts.keys() | printed.asked.keys()) - known):
        printed.warnings.append(f"clip {uid}: printed, but the annotations have no such clip; left out")
    scores = {uid: votes for uid, votes in printed.scores.items() if uid in known}
    inferred = [clip for clip in clips if clip.uid not in scores and clip.uid in printed.asked]
    scores |= {clip.uid: _inferred(clip, printed.asked[clip.uid], printed.warnings) for clip in inferred}
    printed.warnings += [
        f"clip {clip.uid}: neither scores nor asked actions were printed; no votes"
        for clip in clips
        if clip.uid not in scores
    ]
    votes = {"threshold": THRESHOLD, "inferred_clips": [clip.uid for clip in inferred], "scores": scores}
    return votes, {uid: count for uid, count in printed.counts.items() if uid in known}, printed.warnings


def _inferred(clip: Clip, asked_frames: set[int], warnings: list[str]) -> dict[str, float]:
    """0 for the candidates whose frame was asked, 1 for the others."""
    frames = {index: clip.graphs[index - 1].frames["pnr"] for index, _ in candidates(clip)}
    if unknown := sorted(asked_frames - set(frames.values())):
        warnings.append(f"clip {clip.uid}: frame {', '.join(map(str, unknown))} was asked, but is no candidate's")
    return {str(index): 0.0 if frame in asked_frames else 1.0 for index, frame in frames.items()}


def _read_cell(text: str, printed: _Printed) -> None:
    voted = generated = None  # the clip that the next scores or the next count belong to
    for line in text.splitlines():
        match = _LINES.match(line.strip())
        if match is None:
            continue
        if match["voted"]:
            voted = match["voted"]
        elif match["scores"] and voted:
            scores = _scores(match["scores"])
            if scores is None:
                printed.warnings.append(f"clip {voted}: the printed scores are cut or damaged: {match['scores'][:60]}")
            else:
                if voted in printed.scores:
                    printed.warnings.append(f"clip {voted}: scores were printed twice; the later ones count")
                printed.scores[voted] = scores
            voted = None
        elif match["generated"]:
            generated = match["generated"]
            printed.counts[generated] = 0  # what the notebook made where it printed no success
        elif match["count"] and generated:
            printed.counts[generated] = int(match["count"])
            generated = None
        elif match["asked"]:
            printed.asked[match["asked"]].add(int(match["frame"]))


def _scores(text: str) -> dict[str, float] | None:
    """A printed Python dict {'graph index': score}; None where it is anything else, such as half of one."""
    try:
        scores = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    fits = isinstance(scores, dict) and all(
        isinstance(key, str)
        and key.isascii()
        and key.isdecimal()
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and reckonable(value)
        and value >= 0
        for key, value in scores.items()
    )
    return scores if fits else None


def _printed_by_cell(path: Path) -> list[str]:
    """The text output of each cell, without its progress bars (stderr) and colours.

    One print may be spread over several outputs, because a progress bar came between: they are put together first.
    """
    try:
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
        cells = notebook["cells"]
        return [_ANSI.sub("", "".join(map(_text, cell.get("outputs", [])))) for cell in cells]
    except OSError as error:
        raise BuildError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BuildError(f"{path}: no notebook, for it is no valid JSON: {error}") from None
    except (KeyError, TypeError, AttributeError):
        raise BuildError(f"{path}: no notebook, for that is an object with cells that have outputs") from None


def _text(output: dict[str, Any]) -> str:
    """Of a stream or of a cell's value, whose text is a string or a list of strings."""
    text = "" if output.get("name") == "stderr" else output.get("text") or output.get("data", {}).get("text/plain", "")
    return text if isinstance(text, str) else "".join(text)
