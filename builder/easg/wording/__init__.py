"""Slots -> sentences: the template wording of questions, in the past tense, with "the camera wearer" as the actor.

One real action and what becomes of it:

    Action(verb="take out", object="tissue", relations=(("from", "pocket"),))
    direct    What did the camera wearer take out of the pocket?              -> tissue
    indirect  Where did the camera wearer take the tissue out of?             -> from pocket
    before    What did the camera wearer do right before taking the tissue out of the pocket?

Questions are in correct English: slips of the annotation are corrected, particles and prepositions are where they
belong. Answers keep the annotation's own words without its marks, because the paper's answers are these slots
(section 3).
"""

from builder.easg.wording.purpose import purpose
from builder.easg.wording.questions import (
    WEARER,
    after,
    answer_action,
    answer_object,
    answer_relation,
    before,
    direct,
    indirect,
)
from builder.easg.wording.words import names, spoken_verb

__all__ = [
    "WEARER",
    "after",
    "answer_action",
    "answer_object",
    "answer_relation",
    "before",
    "direct",
    "indirect",
    "names",
    "purpose",
    "spoken_verb",
]
