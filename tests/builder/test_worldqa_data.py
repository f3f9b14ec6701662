"""builder/worldqa: the public copy's rows, their rotations, and every way in which files can be
wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.worldqa.files import rows_of
from builder.worldqa.questions import choice_questions, open_questions, read
from videoqa.benchmarks.worldqa.data import KNOWLEDGE, features
from videoqa.errors import UserError
from videoqa.reading.choices import read_choice
from videoqa.rows import Question, revision

Json = Any
OPTIONS = {
    3: ["To open the tin.", "To cut bread.", "To tighten a screw."],
    4: ["He lost a bet, i.e. 2.5 dollars.", "He won.", "C is asleep.", "It rains."],
    5: ["one", "two", "three", "four", "five"],
}


def rotations(video: str, question: str, options: Sequence[str], right: int = 0) -> list[dict[str, Any]]:
    """The rows of MC on one question."""
    rows = []
    for by in range(len(options)):
        moved = [*options[by:], *options[:by]]
        lettered = [f"{letter}. {text}" for letter, text in zip("ABCDE", moved, strict=False)]
        rows.append(
            {
                "question_idx": f"{question}-{len(options)}-{by}",
                "question": question,
                "answer": lettered[moved.index(options[right])],
                "video_idx": video,
                "object_description": "a man in red",
                "option": lettered,
            }
        )
    return rows


def placed(rows: Sequence[Json]) -> list[tuple[str, Json]]:
    return [(f"row {number}", row) for number, row in enumerate(rows)]


def mc() -> list[dict[str, Any]]:
    """Questions of 3, 4 and 5 options, their rows mixed: rows 0, 3, 6 are of the first, 1, 4, 7, 9 of the next."""
    every = [rotations(f"v{count}", f"Why {count}?", options) for count, options in OPTIONS.items()]
    return [group[by] for by in range(5) for group in every if by < len(group)]


def generation() -> list[dict[str, Any]]:
    return [
        {
            "question_idx": str(number),
            "question": f"Why {count}?",
            "answer": OPTIONS[count][0],
            "video_idx": f"v{count}",
            "object_description": "a man in red",
            "rationale": "One sees a tin.",
        }
        for number, count in enumerate(OPTIONS)
    ]


def single() -> list[dict[str, Any]]:
    return [row for row in mc() if row["question_idx"].endswith("-1")]


def saved(folder: Path, **configs: Json) -> Path:
    for config, rows in configs.items():
        (folder / config).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), folder / config / "test-00000-of-00001.parquet")
    return folder


def test_a_row_has_the_keys_of_every_benchmark_and_the_columns_of_this_one() -> None:
    (row, *_) = open_questions(placed(generation()))
    assert list(row)[: len(Question.__annotations__)] == list(Question.__annotations__)
    assert list(row) == list(features())
    assert (row["id"], row["clip"], row["video"], row["type"]) == ("0", "v3", "v3", "open")
    assert (row["answer"], row["choices"], row["gold"], row["rationale"]) == (
        "To open the tin.",
        None,
        None,
        "One sees a tin.",
    )


def test_the_rotations_of_a_question_are_one_row_with_as_many_options_as_the_data_say() -> None:
    rows = choice_questions(placed(mc()), open_questions(placed(generation())))
    assert [(row["id"], len(row["choices"]), row["gold"]) for row in rows] == [("0", 3, 0), ("1", 4, 0), ("2", 5, 0)]
    assert [row["choices"] for row in rows] == list(OPTIONS.values())  # full stops within an option stay


def test_an_option_is_not_cut_at_its_first_full_stop() -> None:  # W02 of the public reports
    options = ["Lifts a bag of 2 kg.", "Uses a 2.5 kg weight, e.g. a kettlebell", "Uses a 2"]
    (row,) = choice_questions(placed(rotations("v", "What is he doing?", options, right=1)), ())
    assert row["choices"] == options and row["choices"][row["gold"]] == "Uses a 2.5 kg weight, e.g. a kettlebell"
    assert read_choice("B. Uses a 2.5 kg weight, e.g. a kettlebell", options).index == 1


@given(st.permutations(range(12)), st.integers(0, 2))
def test_the_order_of_the_rows_changes_no_question(order: list[int], right: int) -> None:
    rows = [row for count, options in OPTIONS.items() for row in rotations("v", f"{count}?", options, right)]
    every = choice_questions(placed([rows[i] for i in order]), ())
    assert {frozenset(row["choices"]): row["choices"][row["gold"]] for row in every} == {
        frozenset(options): options[right] for options in OPTIONS.values()
    }


@pytest.mark.parametrize("gone", range(12))
def test_a_missing_rotation_is_named_with_the_rows_of_its_question(gone: int) -> None:
    rows = placed(mc())
    _, lost = rows.pop(gone)
    with pytest.raises(UserError, match=r"begins with .* is missing") as error:
        choice_questions(rows, ())
    beside = [where for where, row in rows if row["question"] == lost["question"]]
    assert ", ".join(beside) in str(error.value) and str(error.value).count("is missing") == 1


def test_a_rotation_that_comes_twice_is_named_with_both_rows() -> None:
    with pytest.raises(UserError, match="row 0, row 12: one rotation comes 2 times"):
        choice_questions(placed([*mc(), mc()[0]]), ())


def test_options_in_another_order_than_moved_round_are_no_rotation() -> None:
    rows = mc()
    rows[3]["option"] = ["A. To open the tin.", "B. To tighten a screw.", "C. To cut bread."]
    rows[3]["answer"] = "A. To open the tin."
    with pytest.raises(UserError, match="row 3: the options are not those of row 0 moved round") as error:
        choice_questions(placed(rows), ())
    assert "row 0, row 3, row 6: the rotation that begins with 'To cut bread.' is missing" in str(error.value)


def test_a_row_with_a_foreign_option_is_named_with_the_rows_of_its_question() -> None:
    rows = mc()
    rows[3]["option"][0] = "A. To cut cake."
    with pytest.raises(UserError, match="rows of one question have foreign options: row 0, row 6; row 3"):
        choice_questions(placed(rows), ())


def test_one_text_may_be_two_questions_with_options_of_their_own() -> None:
    rows = rotations("v", "Why?", OPTIONS[3]) + rotations("v", "Why?", OPTIONS[4])
    assert len(choice_questions(placed(rows), ())) == 2


def test_two_equal_options_have_their_rotations_all_the_same() -> None:
    rows = rotations("v", "Why?", ["a", "a", "b", "c"]) + rotations("v", "How?", list("abab"))
    assert len(choice_questions(placed(rows), ())) == 2


def test_a_question_all_of_whose_options_are_equal_is_refused() -> None:
    with pytest.raises(UserError, match="all options have one text"):
        choice_questions(placed(rotations("v", "Why?", ["a", "a", "a"])), ())


def test_rotations_with_different_right_answers_are_refused() -> None:
    rows = mc()
    rows[3]["answer"] = rows[3]["option"][0]
    with pytest.raises(UserError, match="row 0, row 3, row 6: the rotations have 2 different right answers"):
        choice_questions(placed(rows), ())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"option": ["A. a", "B. b"]}, "option is a list of 2"),
        ({"option": ["A. a", "C. b", "B. c"]}, "option B begins with 'C. b'"),
        ({"option": ["A. a", "B.  ", "C. c"]}, "option B is empty"),
        ({"option": None}, "option is None"),
        ({"answer": "D. d"}, "'D. d' is none of the options"),
        ({"answer": "To cut"}, "'To cut' is none of the options"),
        ({"question": " "}, "question is empty"),
        ({"video_idx": None}, "video_idx is None"),
        ({"question_idx": True}, "question_idx is True"),
        ({"object_description": 3}, "object_description is 3"),
    ],
)
def test_a_row_of_another_form_is_named_with_what_is_wrong(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as error:
        choice_questions(placed([mc()[0] | change]), ())
    assert "row 0" in str(error.value) and said in str(error.value)


def test_an_answer_may_be_the_letter_alone() -> None:
    rows = [row | {"answer": row["answer"][0]} for row in mc()]
    assert [row["gold"] for row in choice_questions(placed(rows), ())] == [0, 0, 0]


def test_an_open_question_that_comes_twice_is_named_with_both_rows() -> None:
    with pytest.raises(UserError, match="question_idx 0 comes twice: row 0, row 3"):
        open_questions(placed([*generation(), generation()[0]]))
    with pytest.raises(UserError, match="one question of video v3 comes twice: row 0, row 3"):
        open_questions(placed([*generation(), generation()[0] | {"question_idx": "9"}]))


def test_a_missing_column_is_named() -> None:
    row = generation()[0]
    del row["object_description"]
    with pytest.raises(UserError, match="row 0: column object_description is missing"):
        open_questions([("row 0", row)])


def test_a_folder_of_the_copy_is_read_with_one_id_for_both_forms_of_a_question(tmp_path: Path) -> None:
    found = read(saved(tmp_path, Generation=generation(), MC=mc(), MC_PPL=single()))
    assert [row["id"] for row in found.open] == [row["id"] for row in found.choice] == ["0", "1", "2"]
    assert found.alone == ()


def test_a_question_that_generation_lacks_is_told(tmp_path: Path) -> None:
    found = read(saved(tmp_path, Generation=generation()[1:], MC=mc()))
    assert found.alone == ("mc-Why 3?-3-0",)


def test_files_may_be_json_or_json_lines_named_after_their_config(tmp_path: Path) -> None:
    (tmp_path / "Generation.json").write_text(json.dumps(generation()))
    (tmp_path / "MC.jsonl").write_text("\n".join(map(json.dumps, mc())))
    (tmp_path / "MC_PPL-test.jsonl").write_text("\n".join(map(json.dumps, single())) + "\n")
    found = read(tmp_path)
    assert (len(found.open), len(found.choice)) == (3, 3)
    assert len(rows_of(tmp_path, "MC")) == 12  # and none of MC_PPL's
    assert rows_of(tmp_path, "MC")[3][0] == "MC.jsonl row 3"


def test_the_parts_of_a_config_are_read_in_order(tmp_path: Path) -> None:
    saved(tmp_path, MC=mc()[:5])
    pq.write_table(pa.Table.from_pylist(mc()[5:]), tmp_path / "MC" / "test-00001-of-00002.parquet")
    assert [where for where, _ in rows_of(tmp_path, "MC")][4:6] == [
        "MC/test-00000-of-00001.parquet row 4",
        "MC/test-00001-of-00002.parquet row 0",
    ]
    assert len(read(tmp_path).choice) == 3


def test_one_config_in_files_of_two_kinds_is_refused(tmp_path: Path) -> None:
    saved(tmp_path, MC=mc())
    (tmp_path / "MC.json").write_text(json.dumps(mc()))
    with pytest.raises(UserError, match=r"several kinds: MC/test-00000"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("MC.json", "{}", "it is a list of rows"),
        ("MC.json", "[3]", "MC.json row 0: holds 3"),
        ("MC.json", '[{"a": NaN}]', "NaN is no number"),
        ("MC.jsonl", '{"a": 1, "a": 2}', "MC.jsonl, line 1: a comes twice"),
        ("MC.jsonl", "{", "is no JSON"),
        ("MC.parquet", "no parquet", "cannot be read as parquet"),
        ("other.json", "[]", "no files of Generation, MC or MC_PPL"),
    ],
)
def test_a_file_that_holds_something_else_is_named(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=r"\S") as error:
        read(tmp_path)
    assert said in str(error.value)


def test_mc_ppl_has_to_have_the_questions_of_mc(tmp_path: Path) -> None:
    other = single()
    other[0] |= {"answer": other[0]["option"][0]}
    with pytest.raises(UserError, match="has two right answers"):
        read(saved(tmp_path, MC=mc(), MC_PPL=other))
    with pytest.raises(UserError, match="is only in MC"):
        read(saved(tmp_path, MC=mc(), MC_PPL=single()[1:]))


# -- notes ------------------------------------------------------------------------------------------------------------


def notes(folder: Path, **of: Json) -> Path:
    (folder / "notes.json").write_text(json.dumps(of))
    return folder / "notes.json"


def test_notes_are_joined_to_questions_and_videos(tmp_path: Path) -> None:
    told = notes(
        tmp_path,
        questions={"1": {"knowledge": ["tool use", "societal norm"], "steps": 10}},
        videos={"v4": {"duration_s": 9, "events": [[4, 9, "He pays."], [0, 4.5, "He loses."]]}},
    )
    found = read(saved(tmp_path / "copy", Generation=generation(), MC=mc()), told)
    for row in (found.open[1], found.choice[1]):
        assert (row["knowledge"], row["steps"], row["duration_s"]) == (["societal norm", "tool use"], 10, 9.0)
        assert [event["text"] for event in row["events"]] == ["He loses.", "He pays."]
        assert row["context"] == "0 s to 4.5 s: He loses.\n4 s to 9 s: He pays.\n9 s: end of the video"
    assert (found.open[0]["knowledge"], found.open[0]["steps"], found.open[0]["events"]) == ([], None, [])


def test_other_events_are_another_revision_of_the_data(tmp_path: Path) -> None:
    copy = saved(tmp_path / "copy", Generation=generation())
    told = [{"events": [[0, 4, "He runs."]]}, {"events": [[0, 5, "He runs."]]}, {"duration_s": 9}, {}]
    revisions = {revision(read(copy, notes(tmp_path, videos={"v4": one})).open) for one in told}
    assert len(revisions) == len(told)


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ({"questions": {"0": {"knowledge": ["history"]}}}, "knowledge is ['history']"),
        ({"questions": {"0": {"knowledge": [KNOWLEDGE[0], KNOWLEDGE[0]]}}}, "names one type twice"),
        ({"questions": {"0": {"steps": 1}}}, "steps is 1; it is a whole number from 2 to 10"),
        ({"questions": {"0": {"steps": True}}}, "steps is True"),
        ({"questions": {"0": {"hops": 3}}}, "'hops' is unknown"),
        ({"questions": {"9": {}}}, "there is no question 9"),
        ({"videos": {"w": {}}}, "there is no question on video w"),
        ({"videos": {"v3": {"events": [[2, 1, "x"]]}}}, "2 to 1 is no span"),
        ({"videos": {"v3": {"events": [[0, 1, " "]]}}}, "it is [start, end, text]"),
        ({"videos": {"v3": {"duration_s": 0}}}, "duration_s is 0"),
        ({"videos": {"v3": {"duration_s": 5, "events": [[0, 6, "x"]]}}}, "behind the video's end"),
        ({"video": {}}, "'video' is unknown"),
    ],
)
def test_notes_that_cannot_be_right_are_named(tmp_path: Path, of: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as error:
        read(saved(tmp_path / "copy", Generation=generation()), notes(tmp_path, **of))
    assert "notes.json" in str(error.value) and said in str(error.value)
