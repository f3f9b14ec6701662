"""videoqa/benchmarks/egoschema/data.py: the files' rows, and every way in which files can be wrong."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.benchmarks.egoschema.data import check_same, hub_rows, read, rows
from videoqa.errors import UserError
from videoqa.json_files import read_json
from videoqa.rows import Question

Json = Any


def questions() -> list[dict[str, Any]]:
    """Three official questions; one and two are of the same clip."""
    return [
        {
            "q_uid": uid,
            "google_drive_id": "x",
            "question": f"Why {uid}?",
            **{f"option {i}": f"{uid} is. It {i}." for i in range(5)},
        }
        for uid in ("one", "two", "three")
    ]


def spans() -> dict[str, Any]:
    return {
        "one": {"video_uid": "v", "starting_sec": 240, "ending_sec": 420},
        "two": {"video_uid": "v", "starting_sec": 240.0, "ending_sec": 420.0},
        "three": {"video_uid": "v", "starting_sec": 420.5, "ending_sec": 600.5},
        "further": {"video_uid": "w", "starting_sec": 0, "ending_sec": 180},
    }


def hub(answered: bool = True) -> list[dict[str, Any]]:
    return [
        {
            "question_idx": f"{number:05}",
            "question": row["question"],
            "video_idx": row["q_uid"],
            "option": [f"{letter}. {row[f'option {i}']}" for i, letter in enumerate("ABCDE")],
            "answer": str(number) if answered else None,
        }
        for number, row in enumerate(questions())
    ]


def test_a_row_has_the_keys_of_every_benchmark() -> None:
    row = rows(questions(), {"one": 3}, spans())[0]
    assert list(row) == list(Question.__annotations__)
    assert row == {
        "id": "one",
        "clip": "v:240",
        "video": "v",
        "type": "multiple-choice",
        "question": "Why one?",
        "answer": None,
        "choices": [f"one is. It {i}." for i in range(5)],
        "gold": 3,
        "context": "",
        "frame": None,
        "start_s": 240.0,
        "end_s": 420.0,
        "clip_start_s": 240.0,
        "evidence": [],
    }


def test_questions_of_the_same_seconds_share_a_clip_and_withheld_answers_are_none() -> None:
    made = rows(questions(), {"one": 3}, spans())
    assert [row["clip"] for row in made] == ["v:240", "v:240", "v:420.5"]
    assert [row["gold"] for row in made] == [3, None, None]


def test_a_hub_copy_gives_the_official_rows() -> None:
    answers = {"one": 0, "two": 1, "three": 2}
    assert hub_rows(hub(), spans(), "Subset") == rows(questions(), answers, spans())
    for config in ("GENERATION", "MC", "MC_PPL"):
        assert hub_rows(hub(answered=False), spans(), config) == rows(questions(), {}, spans())


@pytest.mark.parametrize("answer", [5, -1, True, False, "3", 3.0, None, [3]])
def test_an_answer_that_is_no_index_is_named(answer: Json) -> None:
    with pytest.raises(
        UserError, match=r"^subset_answers.json: two: the answer is .*; it is a whole number from 0 to 4$"
    ):
        rows(questions(), {"one": 4, "two": answer}, spans())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda q: q[1].pop("option 3"), "row 1: 'option 3' is missing"),
        (lambda q: q[1].update({"option 3": " "}), "row 1: 'option 3' is empty"),
        (lambda q: q[1].update({"option 3": None}), "row 1: 'option 3' is None"),
        (lambda q: q[1].update({"option 3": ["a"]}), "row 1: 'option 3' is a list of 1"),
        (lambda q: q[1].update({"option 5": "a"}), "row 1: 'option 5' is one option too many"),
        (lambda q: q[1].update({"question": ""}), "row 1: 'question' is empty"),
        (lambda q: q[1].pop("q_uid"), "row 1: 'q_uid' is missing"),
        (lambda q: q[1].update({"q_uid": "one"}), "q_uid one comes twice"),
        (lambda q: q[1].update({"q_uid": "four"}), "four is not in uid_to_ego4d.json"),
        (lambda q: q.append("five"), "row 3: is a text, not an object"),
    ],
)
def test_a_fault_of_a_question_is_named(spoil: Callable[[Json], object], message: str) -> None:
    data = questions()
    spoil(data)
    with pytest.raises(UserError) as caught:
        rows(data, {}, spans())
    assert str(caught.value) == f"questions.json: {message}"


def test_all_faults_are_named_at_once_and_very_many_are_counted() -> None:
    data = questions()
    data[0]["option 0"], data[2]["question"] = "", 7
    with pytest.raises(UserError) as caught:
        rows(data, {}, spans())
    assert str(caught.value) == "questions.json: row 0: 'option 0' is empty; row 2: 'question' is 7"
    bare = [{"q_uid": uid, "question": "Why?"} for uid in spans()]
    with pytest.raises(UserError, match=r"row 1: 'option 4' is missing; and 10 more$"):
        rows(bare, {}, spans())


@pytest.mark.parametrize(
    "span", [None, {}, {"video_uid": "v", "starting_sec": 1}, {"video_uid": "", "starting_sec": 0, "ending_sec": 1}]
)
def test_a_span_without_its_parts_is_named(span: Json) -> None:
    with pytest.raises(UserError, match=r"^uid_to_ego4d.json: one: "):
        rows(questions(), {}, {**spans(), "one": span})


@pytest.mark.parametrize(
    ("start", "end"), [("0", 1), (True, 2), (5, 5), (6, 5), (-1, 5), (float("nan"), 5), (0, float("inf"))]
)
def test_a_span_that_is_none_is_named(start: Json, end: Json) -> None:
    with pytest.raises(UserError, match=r"^uid_to_ego4d.json: one: "):
        rows(questions(), {}, {**spans(), "one": {"video_uid": "v", "starting_sec": start, "ending_sec": end}})


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_file_of_another_form_is_named(place: int) -> None:
    parts: list[Any] = [questions(), {}, spans()]
    parts[place] = {} if place == 0 else []
    with pytest.raises(UserError, match=r"json: holds (an object|a list of 0)"):
        rows(*parts)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda h: h[1]["option"].reverse(),
            "row 1: option A begins with 'E. two i'; row 1: option B begins with 'D. two i'",
        ),
        (lambda h: h[1]["option"].pop(), "row 1: option is a list of 4; it is a list of 5 texts"),
        (lambda h: h[1].update(option="A. x"), "row 1: option is a text; it is a list of 5 texts"),
        (lambda h: h[1]["option"].__setitem__(2, "C. "), "row 1: option C is empty"),
        (lambda h: h[1]["option"].__setitem__(2, "two is."), "row 1: option C begins with 'two is.'"),
        (lambda h: h[1].pop("answer"), "row 1: column answer is missing"),
        (lambda h: h[1].update(answer=1), 'row 1: answer is 1; it is "0" to "4"'),
        (lambda h: h[1].update(answer="5"), 'row 1: answer is \'5\'; it is "0" to "4"'),
        (lambda h: h[1].update(answer="1.0"), 'row 1: answer is \'1.0\'; it is "0" to "4"'),
        (lambda h: h[1].update(answer=None), 'row 1: answer is None; it is "0" to "4"'),
        (lambda h: h[1].update(video_idx="four"), "row 1: four is not in uid_to_ego4d.json"),
        (lambda h: h[1].update(video_idx="one"), "video_idx one comes twice"),
        (lambda h: h[1].update(question_idx=1), "row 1: question_idx is 1; it is the number of the question, in text"),
    ],
)
def test_a_fault_of_a_hub_row_is_named(spoil: Callable[[Json], object], message: str) -> None:
    data = hub()
    spoil(data)
    with pytest.raises(UserError) as caught:
        hub_rows(data, spans(), "Subset")
    assert str(caught.value).startswith(f"config Subset: {message}")


def test_only_the_subset_has_answers() -> None:
    with pytest.raises(UserError, match=r"config MC: row 0: answer is '0'; this config withholds it"):
        hub_rows(hub(), spans(), "MC")
    with pytest.raises(
        UserError, match="config 'mc': the configs of the Hub copies are GENERATION, MC, MC_PPL, Subset"
    ):
        hub_rows(hub(), spans(), "mc")


def test_an_option_is_never_cut_at_a_full_stop_or_twice() -> None:
    data = hub()
    data[0]["option"][1] = "B. A. Smith is there. He cuts."
    assert hub_rows(data, spans(), "Subset")[0]["choices"][1] == "A. Smith is there. He cuts."


def test_files_of_another_option_order_are_never_mixed() -> None:
    ours = rows(questions(), {"one": 0}, spans())
    theirs = copy.deepcopy(ours)
    check_same(ours, theirs, "a and b")
    theirs[1]["choices"] = theirs[1]["choices"][::-1]
    theirs[0]["gold"] = 1
    theirs[2]["question"] = "Why?"
    with pytest.raises(UserError) as caught:
        check_same(ours, theirs, "a and b")
    assert str(caught.value) == (
        "a and b: one has the answers 0 and 1; two has its options in another order; three has another question"
    )
    with pytest.raises(UserError, match="three is only in the first"):
        check_same(ours, ours[:2], "a and b")
    theirs = copy.deepcopy(ours)
    theirs[0]["choices"][0] = "else"
    with pytest.raises(UserError, match="one has other options"):
        check_same(ours, theirs, "a and b")


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    def write(**files: Json) -> Path:
        for name, data in files.items():
            text = data if isinstance(data, str) else json.dumps(data)
            (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_a_folder_gives_the_configs_that_it_has_files_for(save: Callable[..., Path]) -> None:
    folder = save(questions=questions(), subset_answers={"one": 3}, uid_to_ego4d=spans())
    assert {config: len(of) for config, of in read(folder).items()} == {"full": 3, "subset": 1}
    save(questions_subset=questions()[:1])
    assert {config: len(of) for config, of in read(folder).items()} == {"full": 3, "subset": 1}
    (folder / "questions.json").unlink()
    assert list(read(folder)) == ["subset"]


def test_files_of_a_folder_that_disagree_are_named(save: Callable[..., Path]) -> None:
    folder = save(questions=questions(), subset_answers={"one": 3, "four": 1}, uid_to_ego4d=spans())
    with pytest.raises(UserError, match=r"subset_answers.json: four is no question of questions.json"):
        read(folder)
    save(subset_answers={"one": 3}, questions_subset=questions()[:2])
    with pytest.raises(UserError, match=r"subset_answers.json: two, of questions_subset.json, has no answer"):
        read(folder)
    moved = questions()[:1]
    moved[0]["option 0"], moved[0]["option 1"] = moved[0]["option 1"], moved[0]["option 0"]
    save(questions_subset=moved)
    with pytest.raises(
        UserError, match=r"questions_subset.json and questions.json: one has its options in another order"
    ):
        read(folder)


def test_a_key_that_comes_twice_is_named(save: Callable[..., Path]) -> None:
    folder = save(questions=questions(), subset_answers='{"one": 3, "one": 2}', uid_to_ego4d=spans())
    with pytest.raises(UserError, match=r"subset_answers.json: one comes twice"):
        read(folder)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"one": NaN}', "\ufeff{}"])
def test_a_file_that_is_no_json_is_named(text: str, save: Callable[..., Path]) -> None:
    with pytest.raises(UserError, match=r"odd.json: "):
        read_json(save(odd=text) / "odd.json")


def test_a_folder_without_the_files_is_named(save: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"subset_answers.json: cannot be read: No such file"):
        read(tmp_path)
    save(subset_answers={}, uid_to_ego4d={})
    with pytest.raises(UserError, match=r"neither questions.json nor questions_subset.json is there"):
        read(tmp_path)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["one", "two", "", "A. x"]),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(["q_uid", "question", "option 0", "one", "video_uid", "starting_sec"]), inner, max_size=5
        )
    ),
    max_leaves=12,
)


@given(junk, junk, junk)
def test_junk_is_a_data_error(data: Json, answers: Json, where: Json) -> None:
    attempts: list[tuple[Json, Json, Json]] = [(data, answers, where), (data, {}, spans()), ([data], {}, spans())]
    for parts in [*attempts, (questions(), answers, spans())]:
        try:
            rows(*parts)
        except UserError:
            continue


@pytest.mark.real
def test_the_public_files_are_read_whole(shared: Path) -> None:
    found = read(shared / "egoschema")
    assert list(found) == ["subset"]
    subset = found["subset"]
    assert len(subset) == 500
    assert Counter(row["gold"] for row in subset)[4] / 500 == 0.234  # always E
    assert {row["end_s"] - row["start_s"] for row in subset} == {180.0}


@pytest.mark.real
def test_the_spans_are_those_of_3964_clips(shared: Path) -> None:
    where = read_json(shared / "egoschema" / "uid_to_ego4d.json")
    options = {f"option {i}": str(i) for i in range(5)}
    made = rows([{"q_uid": uid, "question": "Why?", **options} for uid in where], {}, where)
    assert len(made) == 5031
    clips = Counter(row["clip"] for row in made)
    assert (len(clips), max(clips.values()), len({row["video"] for row in made})) == (3964, 3, 1981)
