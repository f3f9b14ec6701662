"""A ground truth put as a sentence, by question type: for `judge-check`."""

from __future__ import annotations

import re

_DETERMINED = re.compile(r"(?:the|a|an|another|his|her|their|its|himself|herself|itself|\d+)\b", re.I)


def paraphrase(answer: str, kind: str) -> str:
    """The answer as a sentence, by question type: the same words, so that no judge can say that it became wrong."""
    text = answer.strip().rstrip(".") or answer
    if kind == "direct":
        return f"It was {_the(text)}."
    if kind == "indirect" and " " in text:
        relation, thing = text.split(" ", 1)
        return f"It was {relation} {_the(thing)}."
    if kind in ("before", "after"):
        return f"What the camera wearer did was {text}."
    if kind == "purpose" and text.split()[0].endswith("ing"):
        return f"The camera wearer used it for {text[0].lower()}{text[1:]}."
    return f"As far as I can tell, the answer is this: {text}."


def _the(noun: str) -> str:
    return noun if _DETERMINED.match(noun) else f"the {noun}"
