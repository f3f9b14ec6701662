"""Scores in an experiment tracker: one run of Trackio or Weights & Biases for each result.

easg-bench run ... --log trackio:egocentric       logs easg_score, easg_low, easg_high, easg_before, ...
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from importlib.util import find_spec

from videoqa.benchmark import track
from videoqa.errors import UserError
from videoqa.results import Result, describe_judge

TRACKERS = ("trackio", "wandb")  # packages of one interface: init(project, name, config), log, finish


def check_tracker(log: str | None) -> None:
    """Raise UserError where `log` (TRACKER:PROJECT) names no tracker, no project, or a package that is missing."""
    if log is None:
        return
    name, _, project = log.partition(":")
    if name not in TRACKERS or not project:
        raise UserError(f"--log {log}: TRACKER:PROJECT is expected; trackers are {', '.join(TRACKERS)}")
    if find_spec(name) is None:
        raise UserError(f"--log {log}: the package {name} is missing: pip install {name}")


def log_results(log: str, results: Sequence[Result]) -> None:
    """Log each result as a run of its own."""
    check_tracker(log)
    name, _, project = log.partition(":")
    tracker = importlib.import_module(name)
    for result in results:
        about = {
            "model": result.model,
            "prompt": result.prompt,
            "frames": result.frames,
            "judge": describe_judge(result),
        }
        about |= {"data": result.data.data, "config": result.data.config, "revision": result.data.revision}
        run = tracker.init(project=project, name=result.label, config=about)
        run.log(flat(result))
        run.finish()


def flat(result: Result) -> dict[str, float]:
    """A result as flat numbers with the benchmark's prefix; what cannot be computed is left out."""
    low, high = result.avg.interval or (None, None)
    failed = result.unanswered + result.avg.unreadable
    found = {"score": result.avg.value, "low": low, "high": high, "failed": failed}
    found |= {name: summary.value for name, summary in result.types.items()}
    prefix = track(result.track).prefix
    return {f"{prefix}_{name}": float(value) for name, value in found.items() if value is not None}
