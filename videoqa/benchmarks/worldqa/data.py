"""The columns of WorldQA's rows; builder/worldqa makes them from the public copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasets import Features

OPEN, CHOICE = "open", "multiple-choice"  # question types
COUNTS = (3, 4, 5)  # how many options a question may have
KNOWLEDGE = ("societal norm", "tool use", "self motive", "social interaction", "multimodal association")


def features() -> Features:
    """The columns of a row: those of every benchmark, and WorldQA's own."""
    from datasets import Features, List, Value

    from videoqa.dataset import FEATURES

    event = {"start_s": Value("float64"), "end_s": Value("float64"), "text": Value("string")}
    return Features(
        {
            **FEATURES,
            "object_description": Value("string"),
            "rationale": Value("string"),
            "knowledge": List(Value("string")),  # of KNOWLEDGE; empty: none is known
            "steps": Value("int32"),  # of reasoning; None: not known
            "events": List(event),  # what people say happens in the video, in order of time
            "duration_s": Value("float64"),  # of the video; None: not known
        }
    )


def rotated_features() -> Features:
    """The columns of a row of multiple choice, which is one rotation of a question's options."""
    from datasets import Features, List, Value

    return Features({**features(), "group": Value("string"), "order": List(Value("int32"))})
