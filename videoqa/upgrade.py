"""Result files of format 1, which knew one benchmark only, in the form of today's (results.py checks their fields)."""

from __future__ import annotations

from typing import Any

from videoqa.benchmark import track


def upgraded(head: dict[str, Any], to: int) -> dict[str, Any]:
    """A result of format 1 in the form of today's: there was one track, and each value was called `relative`."""

    def summary(old: Any) -> Any:
        return {"value" if k == "relative" else k: v for k, v in old.items()} if isinstance(old, dict) else old

    types = head.get("types")
    new = {key: value for key, value in head.items() if key != "located"}
    new |= {"format": to, "track": track().name, "measure": track().measure.name, "avg": summary(head.get("avg"))}
    new["types"] = {name: summary(one) for name, one in types.items()} if isinstance(types, dict) else types
    judge = head.get("judge")
    new["scorer"] = judge.get("key") if isinstance(judge, dict) else None
    new["extras"] = _located(head["located"]) if head.get("located") else {}
    return new


def _located(old: Any) -> Any:
    """What format 1 said of located steps, {type: {n, read, hit_rate, iou}}, as extras."""
    try:
        return {
            f"located_{name}": {
                kind: {"n": of["n"], "mean": of[key] / of["n"] if key == "read" else of[key]}
                for kind, of in old.items()
            }
            for name, key in (("read", "read"), ("hit", "hit_rate"), ("iou", "iou"))
        }
    except (AttributeError, LookupError, TypeError, ZeroDivisionError):
        return old  # the check of its fields says what is wrong
