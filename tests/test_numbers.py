"""Numbers that nothing can be reckoned with, and records without theirs: one line, wherever they come from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.easg.annotations import read_clips
from builder.easg.grounded_file import read_rows
from builder.errors import BuildError
from tests.test_results import result, text
from videoqa.errors import UserError
from videoqa.files import Lines
from videoqa.hosts.lighteval.results import from_lighteval
from videoqa.results import parse
from videoqa.rubric import Sampling
from videoqa.store import VERDICT_KINDS, VerdictStore

HUGE = 10**400
NUMBERS = (HUGE, -HUGE, float("inf"), float("-inf"), float("nan"))


@pytest.mark.parametrize("number", [*NUMBERS, True])
@pytest.mark.parametrize("field", ["score", "most_likely", "mass"])
def test_a_verdict_line_of_no_number_is_named(number: Any, field: str, tmp_path: Path) -> None:
    lines = Lines(tmp_path / "verdicts.jsonl", kinds=VERDICT_KINDS)
    lines.append({"score": 1.0, field: number})
    with pytest.raises(UserError, match=rf"verdicts\.jsonl, line 1: {field} cannot be"):
        lines.read()


@pytest.mark.parametrize("missing", ["score", "status"])
def test_a_record_of_the_store_without_a_score_is_named(missing: str, tmp_path: Path) -> None:
    VerdictStore(tmp_path, "judge")
    (path,) = tmp_path.iterdir()
    record = {"prompt": "1234", "score": 6.0, "status": "ok"}
    del record[missing]
    Lines(path).append(record)
    with pytest.raises(UserError, match=rf"{path.name}, record 2: a verdict needs score and status"):
        VerdictStore(tmp_path, "judge")


@pytest.mark.parametrize("number", [HUGE, float("inf"), float("-inf")])
@pytest.mark.parametrize("figure", ["n", "unreadable", "score", "relative", "low", "high"])
def test_a_figure_of_lighteval_that_is_none_is_one_line(number: Any, figure: str) -> None:
    names = ("n", "unreadable", "empty", "judge_errors", "score", "relative", "low", "high")
    figures = dict.fromkeys((f"easg_{name}" for name in names), 0.0) | {"easg_n": 4, f"easg_{figure}": number}
    results = {"easg_bench_narrations:before|0": figures}
    with pytest.raises(UserError, match=r"^results_x\.json: "):
        from_lighteval(text({"results": results, "config_general": {"model_name": "m"}}), "results_x.json")


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_judges_settings_hold_numbers(number: float) -> None:
    data = result()
    data["judge"] = data["judge"] | {"settings": {"temperature": [number]}}
    with pytest.raises(UserError, match=r"^x: judge\.settings: holds a number that is none"):
        parse(text(data), "x")


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("field", ["temperature", "top_p", "seed", "max_new_tokens"])
def test_a_rubric_samples_with_numbers(number: Any, field: str) -> None:
    with pytest.raises(UserError, match="sampling needs a temperature above 0"):
        Sampling(**{field: number})


@pytest.mark.parametrize("place", ["W", "pnr", "left", "vote", "vote key", "start"])
def test_a_number_of_400_digits_in_a_source_is_refused_in_one_line(
    place: str, raw: dict[str, Any], save: Callable[[dict[str, Any]], Path]
) -> None:
    clip = raw["annotations"]["kitchen"]
    if place == "W":
        clip["W"] = HUGE
    elif place == "pnr":
        clip["graphs"][0]["pnr"] = HUGE
    elif place == "left":
        clip["graphs"][0]["groundings"]["pnr"]["cup"]["left"] = HUGE
    elif place == "vote":
        raw["votes"]["scores"]["kitchen"]["2"] = HUGE
    elif place == "vote key":
        raw["votes"]["scores"]["kitchen"]["1" * 5_000] = 1
    else:
        raw["spans"]["kitchen"]["start_frame"] = HUGE
    folder = save(raw)
    names = ("EASG_unict_master_final", "clip_narrations", "recorded_votes", "recorded_purpose_counts", "clip_spans")
    with pytest.raises(BuildError, match=r"^[^\n]{1,400}$"):
        read_clips(*(folder / f"{name}.json" for name in names))


def test_a_frame_number_of_5000_digits_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "grounded.json"
    file.write_text(json.dumps({"clip": {"1" * 5_000: {"graph_uid": "g", "questions": []}}}))
    with pytest.raises(BuildError, match="a key is purpose or a frame number"):
        read_rows(file, None, Counter())
