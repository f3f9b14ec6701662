"""WorldQA (arXiv 2405.03272): questions on videos with sound that ask for knowledge of the world as well.

The open-ended questions are a track: a judge compares the key points of an answer with those of the ground truth and
gives 0, 0.3, 0.5 or 1; the score is their mean x 100. The judge rates the ground truth too, so that one sees what it
gives a right answer, but nothing is divided by that. Multiple choice is the other track: each question is asked in
every rotation of its options and is right only if it is right in all (CircularEval). Both read one folder of data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from videoqa import positions
from videoqa.asking import frames_way, text_way
from videoqa.benchmark import Extras, ScorerOptions, Track
from videoqa.benchmarks.worldqa import prompts
from videoqa.benchmarks.worldqa.data import CHOICE, COUNTS, OPEN
from videoqa.benchmarks.worldqa.graded import probes
from videoqa.benchmarks.worldqa.published import AGENT, AUGMENTED, MULTIPLE_CHOICE, OPEN_ENDED, TEXT, VIDEO
from videoqa.benchmarks.worldqa.retriever.agent import Asking, agent_way
from videoqa.benchmarks.worldqa.retriever.prompts import ANSWER
from videoqa.benchmarks.worldqa.rubrics import rubric
from videoqa.choices import check_rotations
from videoqa.choosing import choice_way
from videoqa.errors import UserError
from videoqa.judge import Judge
from videoqa.letters import Letters
from videoqa.matching import Matched
from videoqa.measures import CIRCULAR, PERCENT
from videoqa.rows import Row

if TYPE_CHECKING:
    from videoqa.engines import Engine

FRAMES = 8  # of the videos that augmented models are compared with; WorldRetriever sees as many


def load(data: str, config: str) -> list[Row]:
    """The open-ended questions, from a folder that the builder wrote or from a Hub repo."""
    from videoqa import dataset
    from videoqa.benchmarks.worldqa.data import features

    return list(dataset.load(data, config, dict.fromkeys(("default", OPEN), features())))


def judge(engine: Engine | None, options: ScorerOptions) -> Judge:
    """The judge of these options. Raises UserError without an engine."""
    if engine is None:
        raise UserError("WorldQA's open-ended answers are rated by a judge: name one with --judge")
    if options.reading != "ours":
        raise UserError(f"--reading {options.reading}: allowed is ours")
    mode: Any = options.mode
    sampling: Any = options.sampling
    return Judge(engine, rubric(options.rubric), mode, sampling)


def load_rotations(data: str, config: str) -> list[Row]:
    """The multiple-choice questions, each in every rotation of its options. Raises UserError where one is missing,
    there twice, or none of its question."""
    from videoqa import dataset
    from videoqa.benchmarks.worldqa.data import rotated_features

    rows = list(dataset.load(data, config, {CHOICE: rotated_features()}))
    try:
        check_rotations(rows, COUNTS)
    except UserError as error:
        raise UserError(f"{data}, config {config}: {error}") from error
    return rows


def letters(engine: Engine | None, options: ScorerOptions) -> Letters | Matched:
    """The comparison of letters; an engine says what replies mean that name no option."""
    if options != ScorerOptions():
        raise UserError("WorldQA's multiple choice compares letters: it has no options of a judge")
    return Letters() if engine is None else Matched(engine)


def knowledge(row: Row) -> list[str]:
    """The types of knowledge that a question asks for."""
    return list(row.get("knowledge") or ())


def steps(row: Row) -> list[str]:
    """How many steps of reasoning a question takes."""
    return [] if row.get("steps") is None else [str(row["steps"])]


BREAKDOWNS = {"knowledge type": knowledge, "reasoning steps": steps}
# In every rotation the right option stands at each letter once, so neither chance nor one letter always says anything
SHIFTS = tuple(f"right_in_shift_{number}" for number in range(1, max(COUNTS) + 1))
_BY_POSITION = positions.extras(max(COUNTS))
_BASELINES = ("chance", *(name for name in _BY_POSITION.names if name.startswith("always_")))


def by_position(row: Row, line: Mapping[str, Any]) -> dict[str, float]:
    """How often an answer is right by the letter of the right option, and by that of the one chosen."""
    return {name: value for name, value in _BY_POSITION.of(row, line).items() if name not in _BASELINES}


WORLDQA_OPEN = Track(
    name="worldqa-open",
    title="WorldQA open-ended",
    prefix="worldqa_open",
    repo="worldqa-open",
    types=(OPEN,),
    load=load,
    ways={
        "blind": text_way(TEXT, prompts.INSTRUCTION, prompts.blind),
        "augmented": text_way(AUGMENTED, prompts.INSTRUCTION, prompts.augmented(None)),
        f"augmented-{FRAMES}": text_way(AUGMENTED, prompts.INSTRUCTION, prompts.augmented(FRAMES)),
        "frames": frames_way(VIDEO, prompts.INSTRUCTION, prompts.blind),
        "retriever": agent_way(AGENT, prompts.INSTRUCTION, Asking(prompts.asked, prompts.asked, ANSWER)),
    },
    way="blind",
    scorer=judge,
    measure=PERCENT,
    rubric=rubric,
    published=OPEN_ENDED,
    probes=probes,
    breakdowns=BREAKDOWNS,
    max_new_tokens=128,
)
WORLDQA_MC = Track(
    name="worldqa-mc",
    title="WorldQA multiple choice",
    prefix="worldqa_mc",
    repo=WORLDQA_OPEN.repo,
    types=(CHOICE,),
    load=load_rotations,
    ways={
        "blind": choice_way(TEXT, prompts.CHOICE),
        "augmented": choice_way(AUGMENTED, prompts.augmented_choice(None)),
        f"augmented-{FRAMES}": choice_way(AUGMENTED, prompts.augmented_choice(FRAMES)),
        "frames": choice_way(VIDEO, prompts.CHOICE, frames=True),
        "retriever": agent_way(
            AGENT,
            prompts.CHOICE_INSTRUCTION,
            Asking(prompts.lettered_question, prompts.asked, prompts.NOW_CHOOSE),
        ),
    },
    way="blind",
    scorer=letters,
    measure=CIRCULAR,
    published=MULTIPLE_CHOICE,
    extras=Extras(
        ("consistency", "right_in_one", *SHIFTS, *(name for name in _BY_POSITION.names if name not in _BASELINES)),
        by_position,
        title="By shift and by position",
    ),
    lines=positions.lines,
    configs=(CHOICE,),
    breakdowns=BREAKDOWNS,
    grouped=True,
    matches=True,
)
TRACKS = (WORLDQA_OPEN, WORLDQA_MC)
