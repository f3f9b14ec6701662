"""The core of video question answering with an LLM judge: engines, prompts, judge, scores, run folders.

>>> from videoqa import evaluate
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from videoqa.evaluation import Evaluation, evaluate
    from videoqa.hosts.training import log_scores

__all__ = ["Evaluation", "evaluate", "log_scores"]
PLACES = {"Evaluation": "evaluation", "evaluate": "evaluation", "log_scores": "hosts.training"}


def __getattr__(name: str) -> Any:
    """What people use from Python, imported when it is first asked for: importing a part imports this."""
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{PLACES[name]}"), name)
