"""videoqa/results.py: a result file is read whole or refused with the field, what came and what is allowed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.benchmarks.easg.published import TYPES
from videoqa.hosts.lighteval.results import from_lighteval, read_each
from videoqa.results import MAX_BYTES, files, parse, read
from videoqa.scores import Calibration, Scored, summarize


def result(model: str = "org/model", scores: dict[str, list[float]] | None = None, **changed: Any) -> dict[str, Any]:
    """A result as runs.result() makes it, of few rows; `changed` replaces fields."""
    from dataclasses import asdict

    scores = scores or {t: [4.0, 7.0, 6.0] for t in TYPES}
    rows = [Scored(f"c{i}:{i}:{t}", f"c{i}", t, s) for t, given in scores.items() for i, s in enumerate(given)]
    truth = Calibration.of("k", [Scored(row.id, row.clip, row.type, 8.0) for row in rows], types=TYPES)
    summed = summarize(rows, truth, key="k", types=TYPES)
    return {
        "format": 2,
        "track": "easg-bench",
        "measure": "relative",
        "model": model,
        "kind": "language-only",
        "prompt": "narrations",
        "frames": None,
        "data": {"data": "demo", "config": "default", "limit": None, "revision": "0a1b2c3d4e5f", "rows": len(rows)},
        "scorer": "judge bfloat16 transformers, dist greedy, easg-bench-1a2b3c4d",
        "judge": {
            "key": "judge bfloat16 transformers, dist greedy, easg-bench-1a2b3c4d",
            "model": "org/judge",
            "settings": {"dtype": "bfloat16"},
            "mode": "dist",
            "sampling": "greedy",
            "reading": "ours",
            "rubric": "easg-bench-1a2b3c4d",
            "mass": 0.97,
        },
        "calibration": {"means": dict(truth.means), "n": len(rows)},
        "types": {t: asdict(s) for t, s in summed.by_type.items()},
        "avg": asdict(summed.avg),
        "types_missing": list(summed.types_missing),
        "versions": {"easg-bench": "0.1.0"},
        "date": "2025-06-30T12:00:00+00:00",
        "command": "easg-bench run --model org/model",
        **changed,
    }


def text(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode()


def test_a_result_comes_back_with_every_digit() -> None:
    data = result(scores={t: [1 / 3 + 4, 2 / 7 + 5] for t in TYPES})
    found = parse(text(data), "x")
    assert json.loads(found.model_dump_json(exclude_unset=True)) == json.loads(text(data))
    assert found.column("before").value == data["types"]["before"]["value"]  # type: ignore[union-attr]
    assert found.column("Avg.") is found.avg


def test_the_group_is_the_judge_with_all_that_moves_a_score_and_the_questions() -> None:
    one = parse(text(result()), "x")
    data = result()
    data["data"] = data["data"] | {"revision": "ffff"}
    assert one.group == "judge bfloat16 transformers, dist greedy, easg-bench-1a2b3c4d, data 0a1b2c3d4e5f"
    assert parse(text(data), "x").group != one.group


@pytest.mark.parametrize(
    ("model", "name"),
    [("org/model", "org/model"), ("/home/me/models/mine", "mine"), ("build/models/mine", "mine"), ("./mine", "mine")],
)
def test_a_model_folder_is_called_by_its_last_part(model: str, name: str) -> None:
    assert parse(text(result(model=model)), "x").name == name


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    *parents, last = path.split(".")

    def apply(data: dict[str, Any]) -> None:
        for parent in parents:
            data = data[parent]
        data[last] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("format", 3, "format is 3; this version of easg-bench reads 1 and 2"),
        ("types.before.value", math.nan, "types.before.value: should be a finite number, not nan"),
        ("types.before.value", math.inf, "types.before.value: should be a finite number"),
        ("types.before.value", -3.0, "types.before.value: should be greater than or equal to 0, not -3.0"),
        ("types.before.value", 10_000.0, "types.before.value: should be less than or equal to 1000, not 10000.0"),
        ("types.before.value", 99.0, "types.before.value is 99.0, but 100 x mean"),
        ("types.before.value", "71", "types.before.value: should be a valid number, not '71'"),
        ("types.before.n", 2.5, "types.before.n: should be a valid integer, not 2.5"),
        ("types.before.n", 7, "do not add up to n 7"),
        ("types.before.interval", [60.0, 40.0], "interval ends before it begins: 60.0 to 40.0"),
        ("types.elsewhere", {}, "types.elsewhere"),
        ("avg.value", 80.0, "avg.value is 80.0, but the plain mean of the types is"),
        ("types_missing", ["before"], "types_missing is ['before'], but scored are"),
        ("kind", "psychic", "the file: kind is 'psychic'; the kinds of EASG-Bench are language-only, video, two-stage"),
        ("model", "m" * 100_000, "model: string should have at most 200 characters"),
        ("model", "", "model: string should have at least 1 character"),
        ("model", "abc\u202egnp.exe", "model: holds the invisible character U+202E at position 3"),
        ("model", "a\u200bb", "U+200B"),
        ("model", None, "model: should be a valid string"),
        ("date", "yesterday", "date: string should match pattern"),
        ("judge.settings", {str(i): 1 for i in range(99)}, "judge.settings: dictionary should have at most 50 items"),
        ("judge.settings", {"a": [{"b": math.inf}]}, "judge.settings: holds a number that is none"),
        ("judge.settings", {"seed": 10**400}, "judge.settings: holds a number that is none"),
        ("surprise", 1, "surprise: extra inputs are not permitted"),
    ],
)
def test_a_wrong_field_is_named_with_what_came_and_what_is_allowed(path: str, value: Any, reason: str) -> None:
    data = result()
    change(path, value)(data)
    with pytest.raises(ValueError) as caught:
        parse(text(data), "there/scores.json")
    said = str(caught.value)
    assert said.startswith("there/scores.json: ") and reason in said
    assert len(said) < 1_000 and "\u202e" not in said


def test_a_missing_field_is_said_to_be_missing() -> None:
    data = result()
    del data["judge"]["rubric"]
    with pytest.raises(ValueError, match=r"x: judge\.rubric is missing"):
        parse(text(data), "x")


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "javascript:alert(1)", "نموذج", "a'\"&{}$_%|b", "../../etc"]
)
def test_visible_names_of_any_kind_are_only_names(name: str) -> None:
    assert parse(text(result(model=name)), "x").model == name


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"3", b"null", b"\xff\xfe", b"PK\x03\x04zip", b"[" * 100_000, b'{"format": NaN}']
)
def test_what_is_no_result_file_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"^x: "):
        parse(content, "x")


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    with path.open("wb") as file:
        file.truncate(200_000_000)  # sparse
    with pytest.raises(ValueError, match=f"at most {MAX_BYTES:,}"):
        read(path)


def test_types_without_a_readable_score_are_missing_not_zero() -> None:
    data = result(scores={"before": [5.0, 6.0]})
    found = parse(text(data), "x")
    assert found.column("after") is None
    assert found.types_missing == ["purpose", "direct", "indirect", "after"]


def test_a_run_folder_gives_the_first_judges_result_first(tmp_path: Path) -> None:
    for name in ("scores-abc.json", "scores.json"):
        (tmp_path / name).write_bytes(text(result()))
    assert [path.name for path in files(tmp_path)] == ["scores.json", "scores-abc.json"]
    assert files(tmp_path / "scores-abc.json") == [tmp_path / "scores-abc.json"]
    with pytest.raises(FileNotFoundError, match="easg-bench judge"):
        files(tmp_path / "..")


def lighteval(**changed: float) -> dict[str, Any]:
    """What lighteval 0.13 writes of two types of one family, shortened."""
    one = {
        "easg_relative": 80.0,
        "easg_relative_stderr": 2.0,
        "easg_low": 76.0,
        "easg_high": 84.0,
        "easg_score": 6.4,
        "easg_n": 5.0,
        "easg_unreadable": 1.0,
        "easg_empty": 0.0,
        "easg_judge_errors": 1.0,
        "easg_match_f1": math.nan,
    }
    return {
        "config_general": {"model_name": "org/model", "max_samples": 5, "lighteval_sha": "?"},
        "results": {
            "easg_bench_narrations:before|0": one | changed,
            "easg_bench_narrations:after|0": one | {"easg_relative": 60.0, "easg_score": 4.8},
            "easg_bench_narrations:_average|0": one | {"easg_relative": 70.0, "easg_low": 65.0, "easg_high": 75.0},
            "all": {"easg_relative": 70.0},
        },
        "config_tasks": {"easg_bench_narrations:before": {"hf_repo": "org/easg-bench"}},
    }


def test_a_lighteval_result_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "results_2026-11-29T23-21-28.089025.json"
    path.write_bytes(text(lighteval()))
    (found,) = read_each(path)
    assert (found.model, found.prompt, found.kind) == ("org/model", "narrations", "language-only")
    assert found.types["before"].value == 80.0 and found.types["before"].unreadable == 1
    assert found.avg.value == 70.0 and found.avg.interval == (65.0, 75.0) and found.avg.n == 10
    assert found.types_missing == ["purpose", "direct", "indirect"]
    assert found.date == "2026-11-29T23:21:28" and found.data.data == "org/easg-bench"


def test_two_lighteval_results_are_never_in_one_group_since_their_judge_is_not_known() -> None:
    one, other = (from_lighteval(text(lighteval(easg_n=n)), "results_x.json")[0] for n in (5.0, 6.0))
    assert one.group != other.group and "not recorded" in one.group


@pytest.mark.parametrize("content", [b"{}", b"[]", b'{"results": {"mmlu|0": {}}}', b'{"results": 3}', b"[" * 100_000])
def test_another_lighteval_result_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"results_x\.json: not a lighteval result with our tasks"):
        from_lighteval(content, "results_x.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


BASE = text(result())


@given(st.sampled_from(sorted(json.loads(BASE))), JSON)
def test_whatever_stands_in_a_field_it_is_read_or_refused_in_words(field: str, value: Any) -> None:
    data = json.loads(BASE)
    data[field] = value
    try:
        found = parse(text(data), "x")
    except ValueError as error:
        assert str(error).startswith("x: ")
    else:
        assert math.isfinite(found.avg.value or 0)
