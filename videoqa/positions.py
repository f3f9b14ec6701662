"""Figures of multiple-choice answers beside the accuracy: chance, one letter always, by position, how sure.

    figures(row, {"prediction": "B", "probabilities": [0.2, 0.5, 0.1, 0.1, 0.1], "mass": 0.98})
    -> {"chance": 0.2, "always_B": 0.0, ..., "right_at_D": 0.0, "chosen_B": 0.0, "mass": 0.98, "confidence": 0.5}

`right_at_D` is how often an answer is right where D is the right one, `chosen_B` how often where B was chosen. A model
that prefers a position has many answers there and few of them right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from videoqa.benchmark import Extras
from videoqa.choices import LETTERS
from videoqa.choosing import LEAST_MASS
from videoqa.reading.choices import Choice, is_right, read_choice
from videoqa.rows import Row

SURE = ("mass", "asked_again", "confidence")


def extras(options: int) -> Extras:
    """The figures of questions with so many options."""
    by_letter = [f"{of}_{letter}" for of in ("always", "right_at", "chosen") for letter in LETTERS[:options]]
    return Extras(("chance", *by_letter, *SURE), figures)


def figures(row: Row, line: Mapping[str, Any]) -> dict[str, float]:
    """The figures of one answer; no figure of what is right where that is withheld."""
    shares = _sureness(line)
    choices, gold = row["choices"], row.get("gold")
    if gold is None:
        return shares
    choice = read_choice(line["prediction"], choices)
    right = float(is_right(choice, gold, choices))
    shares["chance"] = 1 / len(choices)
    for index, letter in enumerate(LETTERS[: len(choices)]):
        shares[f"always_{letter}"] = float(is_right(Choice(index, "ok", "letter"), gold, choices))
    shares[f"right_at_{LETTERS[gold]}"] = right
    if choice.index is not None:
        shares[f"chosen_{LETTERS[choice.index]}"] = right
    return shares


def _sureness(line: Mapping[str, Any]) -> dict[str, float]:
    """How sure the model was, where it was asked for probabilities."""
    if line.get("mass") is None:
        return {}
    again = line["mass"] < LEAST_MASS
    sure = {"mass": line["mass"], "asked_again": float(again)}
    return sure if again else sure | {"confidence": max(line["probabilities"])}


def lines(extras: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    """A result's figures in words."""
    of = {name: by_type["all"] for name, by_type in extras.items()}

    def listed(name: str, form: str) -> str:
        known = [(letter, of[f"{name}_{letter}"]) for letter in LETTERS if f"{name}_{letter}" in of]
        return ", ".join(form.format(letter, 100 * one["mean"], int(one["n"])) for letter, one in known)

    sentences = []
    if "chance" in of:
        sentences.append(f"chance {100 * of['chance']['mean']:.1f}; always {listed('always', '{0} {1:.1f}')}")
    for name, where in (("right_at", "the right answer is"), ("chosen", "the answer chosen is")):
        if by_letter := listed(name, "{0} {1:.1f} (of {2})"):
            sentences.append(f"right where {where} {by_letter}")
    if "mass" in of:
        again = round(of["asked_again"]["mean"] * of["asked_again"]["n"])
        sure = f"; mean confidence {of['confidence']['mean']:.2f}" if "confidence" in of else ""
        sentences.append(f"mass on the answers {of['mass']['mean']:.3f}, {again} rows asked again by generation{sure}")
    if "consistency" in of:
        one, each = of["consistency"], of["right_in_one"]
        sentences.append(
            f"in all shifts the same option {100 * one['mean']:.1f} (of {one['n']:.0f} questions); "
            f"right in a single one {100 * each['mean']:.1f}"
        )
    return sentences
