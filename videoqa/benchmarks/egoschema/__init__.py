"""EgoSchema (arXiv 2308.09126): multiple choice on clips of three minutes, one of five options, by accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from videoqa import positions
from videoqa.benchmark import ScorerOptions, Track
from videoqa.benchmarks.egoschema import prompts
from videoqa.benchmarks.egoschema.data import CONFIGS, COUNT, TYPE
from videoqa.benchmarks.egoschema.published import PUBLISHED
from videoqa.choosing import choice_way
from videoqa.errors import UserError
from videoqa.letters import Letters
from videoqa.measures import ACCURACY
from videoqa.rows import Row

if TYPE_CHECKING:
    from videoqa.engines import Engine


def load(data: str, config: str) -> list[Row]:
    """The questions of a config (a key of CONFIGS), from a folder that the builder wrote or from a Hub repo."""
    from videoqa import dataset

    return list(dataset.load(data, config, dict.fromkeys(CONFIGS, dataset.FEATURES)))


def letters(engine: Engine | None, options: ScorerOptions) -> Letters:
    """The comparison of letters, which has no options and needs no judge."""
    if engine is not None or options != ScorerOptions():
        raise UserError("EgoSchema compares letters: it has no judge and no options of one")
    return Letters()


TEXT, VIDEO = "language-only", "video"
EGOSCHEMA = Track(
    name="egoschema",
    title="EgoSchema",
    prefix="egoschema",
    repo="egoschema",
    types=(TYPE,),
    load=load,
    ways={
        "blind": choice_way(TEXT, prompts.BLIND),
        "narrations": choice_way(TEXT, prompts.NARRATIONS, captions=True),
        "frames": choice_way(VIDEO, prompts.BLIND, frames=True),
        "two-pass": choice_way(TEXT, prompts.TWO_PASS, captions=True),
        "two-pass-frames": choice_way(VIDEO, prompts.TWO_PASS_FRAMES, frames=True),
    },
    way="blind",
    scorer=letters,
    measure=ACCURACY,
    published=PUBLISHED,
    extras=positions.extras(COUNT),
    lines=positions.lines,
    configs=CONFIGS,
    commands="videoqa.benchmarks.egoschema.commands",
)
TRACKS = (EGOSCHEMA,)
