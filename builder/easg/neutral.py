"""Questions without the names of the things to be seen: each grounded object becomes a reference to its box.

    What did the camera wearer do right before putting the jug into the cabinet?
    What did the camera wearer do right before putting <region 1> into <region 2>?

The EASG-Bench paper names such questions (language-neutral) and no public code makes them. `<region n>` is the n-th of
the row's `evidence`, which holds its frame, seconds and box; `question_coordinates` says the boxes in words, for models
that take no pictures with marks. The answer stays as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from builder.easg import wording
from builder.easg.grounding import occurs, plain
from easg_bench import QA, Evidence

ARTICLES = "the other|the|another|one|an|a|their|his|her|its"
FOLLOWED = ARTICLES.replace("the other|", "").split("|")  # by a verb, not by a noun
OTHER = ("another", "the other")  # how a wording tells `bowl:1` from `bowl`


def neutral_row(row: QA, counts: Counter[str]) -> dict[str, Any] | None:
    """The row of the config `language_neutral`; None, which `counts` counts by its reason, where there is none:

    the question names no object that has a box, or two things of one name ("from one container with another"), so that
    the name would stay. Of several boxes of an object (a purpose) the largest is the reference.
    """
    boxes = _largest(row)
    names = _names(boxes)
    regions: dict[str, int] = {}

    def region(match: re.Match[str]) -> str:
        article = " ".join((match["article"] or "").lower().split())
        name = names.get((match["noun"].lower(), article in OTHER))
        if name is None or article == "one" or (not article and _no_thing(match)):
            return match[0]
        return f"<region {regions.setdefault(name, len(regions) + 1)}>"

    question = row["question"]
    if names:  # "the camera wearer" is no camera
        parts = re.split(f"({wording.WEARER})", question)
        pattern = _pattern(names, boxes)
        question = "".join(part if part == wording.WEARER else pattern.sub(region, part) for part in parts)
    if not regions:
        counts["questions without a grounded object: not language-neutral"] += 1
        return None
    left = question.lower().replace(wording.WEARER, "")
    if any(occurs(noun, left) for name in regions for noun in _nouns(name)):
        counts["questions that name two things alike: not language-neutral"] += 1
        return None
    evidence = [boxes[name] for name in regions]
    return {**row, "question": question, "evidence": evidence, "question_coordinates": with_boxes(question, evidence)}


def with_boxes(question: str, evidence: list[Evidence]) -> str:
    """The question with its regions in words: boxes to three digits, and seconds of the full video."""
    regions = (
        f"<region {number}> is [{', '.join(f'{side:.3f}' for side in item['box'])}] at {item['seconds']:.2f} s"
        for number, item in enumerate(evidence, 1)
    )
    return f"{question}\n({'; '.join(regions)}; left, top, right, bottom in fractions of the frame)"


def _no_thing(match: re.Match[str]) -> bool:
    """Whether a noun without an article is a verb ("use to iron the shorts") or part of a name ("pieces of wood")."""
    before, behind = match.string[: match.start()].split()[-1:], match.string[match.end() :].split()[:1]
    return not before or before[0].lower() in ("to", "of") or (bool(behind) and behind[0].lower() in FOLLOWED)


def _largest(row: QA) -> dict[str, Evidence]:
    """The evidence by the object's name; the largest box counts, of equal ones the first."""

    def area(item: Evidence) -> float:
        left, top, right, bottom = item["box"]
        return (right - left) * (bottom - top)

    boxes: dict[str, Evidence] = {}
    for item in row["evidence"]:
        known = boxes.get(item["object"])
        if known is None or area(item) > area(known):
            boxes[item["object"]] = item
    return boxes


def _names(boxes: dict[str, Evidence]) -> dict[tuple[str, bool], str]:
    """(noun as a text may write it, whether it is "another" one) -> the evidence's own name."""
    return {(noun, ":" in name): name for name in reversed(boxes) for noun in _nouns(name)}


def _nouns(name: str) -> set[str]:
    return {plain(name), *wording.names(name)} - {""}


def _pattern(names: dict[tuple[str, bool], str], boxes: dict[str, Evidence]) -> re.Pattern[str]:
    """The nouns with their articles and attributes, the longest first; `<jug>` marks a grounded object as well."""
    nouns = "|".join(re.escape(noun) for noun in sorted({noun for noun, _ in names}, key=lambda n: (-len(n), n)))
    adjectives = sorted({item["attribute"] for item in boxes.values() if item["attribute"]})
    attribute = rf"(?:(?:{'|'.join(map(re.escape, adjectives))})\s+)?" if adjectives else ""
    article = rf"(?:\b(?P<article>{ARTICLES})\s+)?"
    return re.compile(rf"{article}{attribute}(?P<mark><)?(?<!\w)(?P<noun>{nouns})(?!\w)(?(mark)>)", re.IGNORECASE)
