"""lighteval 0.13: our tasks, its command line, our engines as its model, its results and details.

A task is FAMILY:TYPE, and a family is one way of asking one track: easg_bench_two_stage:before.
"""

from __future__ import annotations

from videoqa.benchmark import Track, tracks

PLAIN = "blind"  # the way whose family is named like its track


def families() -> dict[str, tuple[Track, str]]:
    """All families of tasks: each one's track and way of asking."""
    return {
        track.family + ("" if way == PLAIN else f"_{way.replace('-', '_')}"): (track, way)
        for track in tracks().values()
        for way, one in track.ways.items()
        if one.agent is None  # lighteval has no place for experts
    }
