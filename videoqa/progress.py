"""Progress bars, which `easg-bench --quiet` hides."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm

hidden = False


def bar(*arguments: Any, **how: Any) -> Any:
    """tqdm, unless bars are hidden."""
    return tqdm(*arguments, **{"disable": hidden, **how})
