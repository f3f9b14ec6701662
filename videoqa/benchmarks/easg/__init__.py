"""EASG-Bench (arXiv 2506.05787): open questions on egocentric clips in five types, rated by a judge from 1 to 10 and
divided by what the judge gives the ground truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from videoqa.asking import frames_way, text_way
from videoqa.benchmark import Extras, ScorerOptions, Track
from videoqa.benchmarks.easg import prompts, script_file, sources
from videoqa.benchmarks.easg.locate import locate_rows
from videoqa.benchmarks.easg.match import PARTS, match
from videoqa.benchmarks.easg.paraphrase import paraphrase
from videoqa.benchmarks.easg.published import (
    PAPER_CALIBRATION,
    PAPER_KEY,
    PAPER_TABLE2,
    PAPER_TABLE3,
    TYPES,
)
from videoqa.benchmarks.easg.rubrics import OURS, read_as_script, rubric_file
from videoqa.benchmarks.easg.two_stage import TWO_STAGE_TYPES, look_beside, two_turns
from videoqa.errors import UserError
from videoqa.judge import Judge
from videoqa.measures import RELATIVE
from videoqa.rows import Row
from videoqa.rubric import Rubric

if TYPE_CHECKING:
    from videoqa.engines import Engine

RUBRICS = {"ours": lambda: OURS, "paper": lambda: rubric_file(sources.paper_rubric())}
READINGS = {"ours": None, "script": read_as_script}


def load(data: str, config: str) -> list[Row]:
    """The questions of a config. Raises UserError for one that holds no questions."""
    from videoqa.benchmarks.easg.data import CONFIGS
    from videoqa.benchmarks.easg.data import load as load_config

    if "question" not in CONFIGS.get(config, {"question"}):
        raise UserError(f"config {config}: holds no questions")
    return list(load_config(data, config))


def rubric(name: str) -> Rubric:
    """The rubric that a command line names: "ours", "paper" (after `easg-bench fetch`), or a file."""
    if name in RUBRICS:
        return RUBRICS[name]()
    if not Path(name).exists():
        raise FileNotFoundError(f"no rubric file {name}; allowed are {', '.join(RUBRICS)} and a file")
    return rubric_file(name)


def judge(engine: Engine | None, options: ScorerOptions) -> Judge:
    """The judge of these options. Raises UserError without an engine."""
    if engine is None:
        raise UserError("EASG-Bench is rated by a judge: name one with --judge")
    if options.reading not in READINGS:
        raise UserError(f"--reading {options.reading}: allowed are {', '.join(READINGS)}")
    mode: Any = options.mode
    sampling: Any = options.sampling
    return Judge(
        engine,
        rubric(options.rubric),
        mode,
        sampling,
        reading=options.reading,
        reader=READINGS[options.reading],
    )


LOCATED = ("located_read", "located_hit", "located_iou")


def extras(row: Row, line: Mapping[str, Any]) -> dict[str, float]:
    """Words in common with the ground truth (match.py) and, of a two-stage answer, how well turn 1 located the step
    (locate.py): a time could be read, its middle lies within the step, temporal IoU."""
    parts = asdict(match(line["prediction"], row["answer"], row["type"]))
    figures = {f"match_{part}": value for part, value in parts.items() if value is not None}
    if line.get("located") is None:
        return figures
    for one in locate_rows([row], {row["id"]: line["located"]}):
        figures |= dict(zip(LOCATED, (float(one.time is not None), float(one.hit), one.iou), strict=True))
    return figures


EASG = Track(
    name="easg-bench",
    title="EASG-Bench",
    prefix="easg",
    repo="easg-bench",
    types=TYPES,
    load=load,
    ways={
        "blind": text_way("language-only", prompts.INSTRUCTION, prompts.blind),
        "narrations": text_way("language-only", prompts.INSTRUCTION, prompts.narrations),
        "frames": frames_way("video", prompts.INSTRUCTION, prompts.question_alone),
        "two-stage": frames_way(
            "two-stage",
            prompts.INSTRUCTION,
            prompts.question_alone,
            turns=two_turns,
            types=TWO_STAGE_TYPES,
            texts=(look_beside(""),),
        ),
    },
    way="narrations",
    scorer=judge,
    measure=RELATIVE,
    rubric=rubric,
    constants={PAPER_KEY: PAPER_CALIBRATION},
    published=(*PAPER_TABLE2, *PAPER_TABLE3),
    beside=("frames", "two-stage"),
    beside_title="One turn and two (Table 3)",
    extras=Extras(
        tuple(f"match_{part}" for part in PARTS),
        extras,
        {"two-stage": LOCATED},
        "Words in common with the ground truth",
    ),
    importers={"script": script_file.read_script},
    commands="videoqa.benchmarks.easg.commands",
    paraphrase=paraphrase,
    first=True,
)
TRACKS = (EASG,)
