"""The question pipeline, from clips to question rows: steps 2 to 6 of formats.md section 2, each by record or by model.

    candidates -> uniqueness vote -> wording -> grounding -> generic filter -> attributes

With recorded votes and template wording no model is needed, and the result is the paper's selection. Clips are taken
in groups: the engine gets large batches, and the rows of the whole dataset are never in memory together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from builder.easg import attributes, generic, votes
from builder.easg.card import PURPOSE_NOTES, SAME_FRAME_NOTES
from builder.easg.llm_wording import actions, purposes
from builder.easg.questions import SameFrame, questions
from builder.easg.readings import Purpose, Readings
from builder.easg.records import Clip
from builder.easg.rows import Pair, question_rows
from builder.easg.votes import VoteCount
from builder.stages import Stages
from easg_bench import QA

DECISIONS = ("votes", "wording", "purpose", "generic", "attributes")  # the stages of a build, in their order
GROUP = 64  # clips
PURPOSES = 3  # of a clip by template where no count is recorded: the paper's mean, 668 in 221 clips

Attributes = Literal["off", "column", "wording"]
Purposes = Literal["written", "template", "llm"]


@dataclass(frozen=True, slots=True)
class Method:
    """How each step is done. The defaults are the paper's recorded data with template wording and written purposes."""

    same_frame: SameFrame = "last"
    votes: Literal["recorded", "llm"] = "recorded"
    vote_count: VoteCount = "received"
    runs: int = 5
    wording: Literal["template", "llm"] = "template"
    purposes: Purposes = "written"  # of clips that no reader wrote any for: by template
    generic: bool = False
    attributes: Attributes = "off"
    counted: bool = True  # the clips' purpose_count is known

    @property
    def uses_model(self) -> bool:
        return self.votes == "llm" or "llm" in (self.wording, self.purposes) or self.generic or self.attributes != "off"


def rows(
    clips: Sequence[Clip],
    method: Method,
    readings: Readings,
    stages: Stages | None,
    counts: Counter[str],
    funnel: Counter[str],
) -> Iterator[tuple[Clip, list[QA]]]:
    """Each clip, with the votes that its questions are based on, and its questions.

    `readings` are the readers' purposes, labels and wording. `stages` may be None if no model is used. What was
    grounded is added to `counts`; how many candidates and questions each step left, to `funnel`.
    """
    written = {uid: _pairs(pairs) for uid, pairs in readings.purposes.items() if method.purposes == "written"}
    for start in range(0, len(clips), GROUP):
        group = list(clips[start : start + GROUP])
        if not method.counted:
            group = [replace(clip, purpose_count=PURPOSES) for clip in group]
        of_clip = {
            clip.uid: written[clip.uid][: clip.purpose_count] if method.counted else written[clip.uid]
            for clip in group
            if clip.uid in written
        }
        if stages is None:
            for clip in group:
                pairs = of_clip.get(clip.uid)
                yield clip, question_rows(clip, method.same_frame, counts, pairs=pairs, readings=readings)
        else:
            yield from _with_model(group, method, readings, of_clip, stages, counts, funnel)


def _pairs(purposes: Sequence[Purpose]) -> list[Pair]:
    return [Pair(one.object, one.question, one.answer, one.graphs, one.review) for one in purposes]


def _with_model(
    group: list[Clip],
    method: Method,
    readings: Readings,
    pairs: Mapping[str, Sequence[Pair]],
    stages: Stages,
    counts: Counter[str],
    funnel: Counter[str],
) -> Iterator[tuple[Clip, list[QA]]]:
    if method.votes == "llm":
        group = votes.vote(group, stages, runs=method.runs, count=method.vote_count, funnel=funnel)
    worded: dict[str, str] = {}
    if method.wording == "llm":
        worded = actions.word([s for clip in group for s in questions(clip, method.same_frame)], stages, funnel)
    if method.purposes == "llm":
        made_up = purposes.purposes(group, stages, funnel, counted=method.counted)
        pairs = {clip.uid: [Pair(*pair) for pair in made_up.get(clip.uid, [])] for clip in group}
    made: list[QA] = []
    for clip in group:
        of_clip = pairs.get(clip.uid)
        made += question_rows(clip, method.same_frame, counts, worded=worded, pairs=of_clip, readings=readings)
    funnel["questions worded"] += len(made)
    if method.generic:
        made = generic.filter_rows(made, stages, runs=method.runs, funnel=funnel)
    if method.attributes != "off":
        made = attributes.add(made, stages, worded=method.attributes == "wording", funnel=funnel)
    funnel["questions kept"] += len(made)
    by_clip: dict[str, list[QA]] = {clip.uid: [] for clip in group}
    for row in made:
        by_clip[row["clip"]].append(row)
    yield from ((clip, by_clip[clip.uid]) for clip in group)


FUNNEL = (  # in the order of the steps
    "vote replies",
    "vote replies that cannot be read",
    "candidates",
    "candidates: voted out",
    "candidates: unreadable",
    "candidates: kept",
    "action questions worded by the model",
    "wording fallbacks to the template",
    "purpose replies that cannot be read",
    "purpose pairs of the model",
    "purpose pairs dropped",
    "questions worded",
    "generic replies that cannot be read",
    "questions without a specific/generic vote (kept)",
    "questions left out as generic",
    "moments asked for attributes",
    "objects with an attribute",
    "questions kept",
)


def funnel_text(funnel: Counter[str]) -> str:
    """The funnel for a terminal: the steps of this build, in order."""
    return "\n".join(["funnel:", *(f"{funnel[name]:7,}  {name}" for name in FUNNEL if name in funnel)])


def card_text(method: Method, model: str) -> str:
    """The card's paragraph on how the questions were made, for a build with a model."""
    vote = "the recorded uniqueness vote"
    if method.votes == "llm":
        over = "the votes that it got" if method.vote_count == "received" else "all replies that could be read"
        vote = f"the model's uniqueness vote ({method.runs} runs, temperature {votes.TEMPERATURE}, over {over})"
    parts = [
        f"A language model, `{model}`, had part in it. An action is asked if it occurs once in its clip and",
        f"{vote} is below 0.5. {SAME_FRAME_NOTES[method.same_frame]}",
        WORDED[method.wording],
        PURPOSE_NOTES[method.purposes],
        f"Pairs that the model called generic in most of {method.runs} runs are left out." if method.generic else "",
        DESCRIBED[method.attributes],
    ]
    return "\n".join(filter(None, parts))


WORDED = {
    "template": "The wording of the action questions is by template.",
    "llm": (
        "The model worded the action questions; where three attempts failed the checks the wording is by template."
    ),
}
DESCRIBED = {
    "off": "Attributes of objects are not included.",
    "column": "Attributes are adjectives that the model found in the narrations near the frame.",
    "wording": "Attributes are adjectives that the model found in the narrations near the frame; questions say them.",
}
