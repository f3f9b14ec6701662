"""WorldQA (arXiv 2405.03272): questions on videos with sound that ask for knowledge of the world as well.

The open-ended questions are a track: a judge compares the key points of an answer with those of the ground truth and
gives 0, 0.3, 0.5 or 1; the score is their mean x 100. The judge rates the ground truth too, so that one sees what it
gives a right answer, but nothing is divided by that. The builder reads multiple choice as well; it is not yet a track.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from videoqa.asking import frames_way, text_way
from videoqa.benchmark import ScorerOptions, Track
from videoqa.benchmarks.worldqa import prompts
from videoqa.benchmarks.worldqa.data import OPEN
from videoqa.benchmarks.worldqa.published import AUGMENTED, OPEN_ENDED, TEXT, VIDEO
from videoqa.benchmarks.worldqa.rubrics import rubric
from videoqa.errors import UserError
from videoqa.judge import Judge
from videoqa.measures import PERCENT
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


def paraphrase(answer: str, kind: str) -> str:
    """The ground truth behind a sentence's beginning, for judge-check: the same key points."""
    return f"As far as I can tell, the answer is this: {answer.strip()}"


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
    },
    way="blind",
    scorer=judge,
    measure=PERCENT,
    rubric=rubric,
    published=OPEN_ENDED,
    paraphrase=paraphrase,
    max_new_tokens=128,
)
TRACKS = (WORLDQA_OPEN,)
