"""Scores during training: a callback of transformers' Trainer that asks the model the benchmark at each evaluation.

trainer = Trainer(model, ..., processing_class=tokenizer)
log_scores(trainer, data="build/easg-bench", judge="server:NAME@http://HOST/v1", limit=100)
trainer.train()             # logs easg_score, easg_low, easg_high, easg_before, ... and whatever reports get
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from videoqa.evaluation import Evaluation, evaluate
from videoqa.hosts.trackers import flat

if TYPE_CHECKING:
    from transformers import Trainer, TrainerCallback


def log_scores(trainer: Trainer, **asked: Any) -> TrainerCallback:
    """Add a callback to the trainer that evaluates its model, with the arguments of `videoqa.evaluate`, whenever the
    trainer evaluates, and logs the scores. They are in the metrics as well, so that `metric_for_best_model` can name
    one. Each step has a run folder below the trainer's output folder."""
    from transformers import TrainerCallback

    class Scores(TrainerCallback):
        def on_evaluate(self, args: Any, state: Any, control: Any, **kept: Any) -> None:
            if not state.is_world_process_zero:
                return
            folder = Path(asked.get("out") or Path(args.output_dir) / "easg-bench") / f"step-{state.global_step}"
            model = trainer.accelerator.unwrap_model(trainer.model)
            name = asked.get("name") or f"{Path(args.output_dir).name} step {state.global_step}"
            told = {"progress": False, **asked, "out": folder, "name": name}
            found = figures(evaluate((model, trainer.processing_class), **told))
            metrics = kept.get("metrics")
            if metrics is not None:
                metrics |= found
            trainer.log(found)

    callback = Scores()
    trainer.add_callback(callback)
    return callback


def figures(evaluation: Evaluation) -> dict[str, float]:
    """An evaluation as flat numbers, named as Trainer names its own."""
    return {f"eval_{name}": value for name, value in flat(evaluation.result).items()}
