"""builder/worldqa/annotate.py and choices.py: what an engine says of open questions, and options that it makes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from builder.__main__ import app
from builder.errors import BuildError
from builder.stages import Stages
from builder.stages import read as read_stage
from builder.worldqa import annotate, choices
from builder.worldqa.annotate import Vote, agreement, read_vote
from builder.worldqa.questions import read
from demo.worldqa import main as demo
from tests.scripted import Scripted
from videoqa.benchmarks.worldqa.rubrics import KEY_POINTS
from videoqa.judge import Judge
from videoqa.store import VerdictStore


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The demo's twelve questions in the form of the public copy, and their notes."""
    folder = tmp_path / "copy"
    demo(folder)
    return folder


def rows(copy: Path, limit: int = 12) -> list[Any]:
    return list(read(copy, copy / "notes.json").open)[:limit]


# -- annotations ------------------------------------------------------------------------------------------------------

TOOL = frozenset({"tool use"})


@pytest.mark.parametrize(
    ("text", "steps", "knowledge"),
    [
        ('{"steps": ["He pulls.", "It turns."], "knowledge": ["tool use"]}', 2, TOOL),
        ('Sure!\n```json\n{"steps": 4, "Knowledge": "Tool_Use"}\n```', 4, TOOL),
        ('{"steps": ["a", "b"], "knowledge": ["tool use", "self-motive"]}', 2, TOOL | {"self motive"}),
        ('{"steps": 2, "knowledge": ["Tool use: a wrench loosens nuts", "self motive"]}', 2, TOOL | {"self motive"}),
        ('{"steps": 2, "knowledge": ["tool use: not needed", "self motive"]}', 2, None),
        ('{"steps": 2, "knowledge": ["tool use: 0", "self motive: 1"]}', 2, None),
        ('{"steps": 2, "knowledge": ["no tool use: he pulls"]}', 2, None),
        ('{"steps": ["a"], "knowledge": ["tool use"]}', None, TOOL),  # one step is none of the paper's
        ('{"steps": ["a", "a."], "knowledge": ["tool use"]}', None, TOOL),
        ('{"steps": ["...", "..."], "knowledge": ["..."]}', None, None),
        ('{"steps": ["a", "b"], "knowledge": ["physics", "tool use"]}', 2, None),
        ('{"steps": ["a", "b"], "knowledge": []}', 2, None),
        ('{"steps": true, "knowledge": null}', None, None),
        ('{"steps": ["a", "b"]} {"steps": ["a", "b", "c"], "knowledge": ["tool use"]}', None, TOOL),
        ('{"steps": 11, "knowledge": {"tool use": true}}', None, None),
        ("It needs three steps of tool use.", None, None),
        ("[[[[ {{{{", None, None),
        ("", None, None),
    ],
)
def test_a_reply_is_a_vote_or_none(text: str, steps: int | None, knowledge: frozenset[str] | None) -> None:
    assert read_vote(text) == Vote(steps, knowledge)


def annotation(*votes: tuple[int | None, str | None]) -> annotate.Annotation:
    made = tuple(Vote(steps, None if kinds is None else frozenset(kinds.split("+"))) for steps, kinds in votes)
    return annotate.Annotation("0", made, 0)


def test_votes_decide_by_median_and_majority_and_never_by_too_few() -> None:
    one = annotation((3, "tool use"), (5, "tool use+self motive"), (4, "self motive+societal norm"))
    assert (one.steps, one.knowledge) == (4, ["tool use", "self motive"])
    assert annotation((3, "tool use"), (6, "self motive")).steps == 3
    assert annotation((3, "tool use"), (6, "self motive")).knowledge is None  # no type has more than half
    few = annotation((3, "tool use"), (None, None), (None, None))
    assert (few.steps, few.knowledge) == (None, None)
    assert annotation((3, None), (4, "tool use"), (None, "tool use")).steps == 3


def test_agreement_is_that_of_fleiss() -> None:
    assert agreement([["a", "a"], ["b", "b"]]) == annotate.Agreement(2, 1.0, 1.0)
    found = agreement([["a", "b"], ["a", "b"]])
    assert found is not None and (found.same, found.kappa) == (0.0, -1.0)
    alike = agreement([["a", "a"], ["a"], []])
    assert alike == annotate.Agreement(1, 1.0, None)
    assert agreement([["a"], []]) is None
    # three raters, by hand: shares 1 and 1/3, labels a 5 of 6
    found = agreement([["a", "a", "a"], ["a", "a", "b"]])
    assert found is not None and found.same == pytest.approx(2 / 3)
    assert found.kappa == pytest.approx((2 / 3 - 26 / 36) / (1 - 26 / 36))


def said(text: str, seed: int) -> str | None:
    """Three votes: on most questions two say the same; one question fails once, another never makes sense."""
    if "Question: What is the hourglass for" in text:
        return "I think it is obvious."
    if "How old" in text and seed == 1:
        return None
    steps = ["It is seen.", "It is known.", "So it is.", "Really."][: 3 + (seed == 2)]
    return json.dumps({"steps": steps, "knowledge": ["tool use"] if seed else ["tool use", "self motive"]})


def test_annotating_by_command_goes_on_and_builds(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from videoqa import engines

    asked: list[Scripted] = []

    def opened(*_: Any, **__: Any) -> Scripted:
        asked.append(Scripted(said))
        return asked[-1]

    monkeypatch.setattr(engines, "open_engine", opened)
    out = tmp_path / "made.json"
    command = [
        "worldqa",
        "annotate",
        str(copy),
        "--engine",
        "m",
        "--out",
        str(out),
        "--notes",
        str(copy / "notes.json"),
    ]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 3, done.output
    assert "12 questions, 11 with steps, 11 with types" in done.output and "1 calls failed" in done.output
    assert "not decided in all: 1 (9)" in done.output and "agreement of votes" in done.output
    notes = json.loads(out.read_text())
    assert notes["questions"]["0"] == {"knowledge": ["tool use"], "steps": 3} and "9" not in notes["questions"]
    assert notes["videos"].keys() == {"1", "2", "3", "4"}
    assert "What is told of the video" in asked[0].asked[0] and "societal norm" in asked[0].asked[0]
    lines = read_stage(tmp_path / "made.json.stages", "annotations")
    assert len(lines) == 12 and lines[0]["votes"][2]["steps"] == 4
    CliRunner().invoke(app, command)
    assert len(asked[0].asked) == 36 and len(asked[1].asked) == 1  # only what failed
    built = ["worldqa", "build", "--source", str(copy), "--notes", str(out), "--out", str(tmp_path / "data")]
    assert CliRunner().invoke(app, built).exit_code == 0


# -- choices ----------------------------------------------------------------------------------------------------------


def writer(text: str, seed: int) -> str:
    """Wrong answers as long as the right one, another set in each round; blind it always says A."""
    if "Reply with the letter" in text:
        return "A"
    if "Reference answer" in text:
        return "Score: 0"
    answer = re.search(r"Correct answer: (.*)", text)
    n = re.search(r"Write (\d) wrong answers", text)
    assert answer and n
    return json.dumps({"wrong": [f"{answer[1][:-2]}{seed}{k}" for k in range(int(n[1]))]})


def made(
    copy: Path, tmp_path: Path, write: Any, *blind: Any, judge: Any = writer, limit: int = 3, **how: int
) -> list[choices.Draft]:
    with Stages(tmp_path / "s", Scripted(write), choices.DECISIONS) as writing:
        answering = [Stages(tmp_path / f"b{n}", Scripted(one), ()) for n, one in enumerate(blind)]
        grader = Judge(judge if isinstance(judge, Scripted) else Scripted(judge), KEY_POINTS)
        graded = VerdictStore(tmp_path / "j", grader.key)
        return choices.make(rows(copy, limit), writing, answering, grader, graded, **how)


def test_a_constant_letter_finds_nothing(copy: Path, tmp_path: Path) -> None:
    drafts = made(copy, tmp_path, writer, writer)
    assert [(draft.rounds, draft.state, len(draft.wrong)) for draft in drafts] == [(1, choices.PASSED, 3)] * 3


def knows(text: str, seed: int) -> str:
    """A blind model that finds the right answer as long as the options of the first round stand beside it."""
    options = re.findall(r"^([A-E])\. (.*)$", text, re.M)
    wrong = [letter for letter, option in options if re.search(r"\d\d$", option)]
    (right,) = [letter for letter, _ in options if letter not in wrong]
    old = any(re.search(r"1\d$", option) for _, option in options)
    return right if old else wrong[0]


def test_options_change_until_every_blind_model_fails(copy: Path, tmp_path: Path) -> None:
    drafts = made(copy, tmp_path, writer, writer, knows)
    assert [draft.rounds for draft in drafts] == [2, 2, 2] and all(draft.passed for draft in drafts)
    assert not any(re.search(r"1\d$", option) for draft in drafts for option in draft.wrong)
    lines = read_stage(tmp_path / "s", "rounds")
    assert [line["decision"] for line in lines[:3]] == ["scripted finds it in 4 of 4 rotations"] * 3


def always(text: str, seed: int) -> str:
    options = re.findall(r"^([A-E])\. (.*)$", text, re.M)
    return next(letter for letter, option in options if not re.search(r"\d\d$", option))


def test_a_question_that_never_fails_is_listed(copy: Path, tmp_path: Path) -> None:
    drafts = made(copy, tmp_path, writer, always, rounds=3)
    assert all(draft.rounds == 3 and not draft.passed for draft in drafts)
    report = choices.report(drafts, ["m"], "j")
    assert report["passed"] == {} and report["left_out"]["0"]["why"] == "scripted finds it in 4 of 4 rotations"
    assert "left out: 0, scripted finds it" in choices.summary(drafts)


def test_a_blind_model_that_cannot_be_read_or_fails_says_nothing(copy: Path, tmp_path: Path) -> None:
    drafts = made(copy, tmp_path, writer, lambda text, seed: "Well, it depends.", rounds=2)
    assert all(draft.state == "scripted is read in 0 of 4 rotations only" for draft in drafts)
    with pytest.raises(BuildError, match="gives no reply"):
        made(copy, tmp_path / "other", writer, lambda text, seed: None, rounds=2)


@pytest.mark.parametrize(
    ("reply", "grade"), [("Score: 1", 1.0), ("Score: 0.5\nSome.", 0.5), ("Score: 0.7", None), ("Wrong, I think.", None)]
)
def test_a_wrong_option_that_is_right_or_has_no_grade_is_refused(
    copy: Path, tmp_path: Path, reply: str, grade: float | None
) -> None:
    def judge(text: str, seed: int) -> str:
        return reply if re.search(r"^.*10\s*$", text, re.M) else "Score: 0.3"

    drafts = made(copy, tmp_path, writer, writer, judge=judge)
    assert all(draft.passed and draft.rounds == 2 for draft in drafts)
    assert [[(one["round"], one["grade"]) for one in draft.refused] for draft in drafts] == [[(1, grade)]] * 3
    assert all(draft.refused[0]["option"] not in draft.wrong and len(draft.wrong) == 3 for draft in drafts)
    assert all(sum(option.endswith(("11", "12")) for option in draft.wrong) == 2 for draft in drafts)  # kept
    assert choices.report(drafts, ["m"], "j")["refused"]["0"] == drafts[0].refused
    unread = 3 if grade is None else 0
    assert f"3 wrong answers refused by the judge, {unread} of them without a grade" in choices.summary(drafts)


def test_of_a_distribution_the_expected_grade_decides_and_it_is_asked_for_once(copy: Path, tmp_path: Path) -> None:
    def chances(text: str) -> dict[str, float]:
        likely = re.search(r"^.*10\s*$", text, re.M)
        return {"0": 0.5, "1": 0.5} if likely else {"0": 0.9, "1": 0.1}  # the likeliest grade is 0 in both

    judge = Scripted(writer, chances=chances, can_force=True)
    drafts = made(copy, tmp_path, writer, writer, judge=judge)
    assert [[(one["round"], one["grade"]) for one in draft.refused] for draft in drafts] == [[(1, 0.5)]] * 3
    again = Scripted(writer, chances=lambda text: None, can_force=True)
    assert [draft.refused for draft in made(copy, tmp_path, writer, writer, judge=again)] == [d.refused for d in drafts]


def test_a_question_whose_options_are_all_refused_is_left_out(copy: Path, tmp_path: Path) -> None:
    drafts = made(copy, tmp_path, writer, writer, judge=lambda text, seed: "Score: 1", rounds=2)
    assert not any(draft.passed for draft in drafts)
    assert {draft.state for draft in drafts} == {"scripted refuses 3 of 3 wrong answers"}


def test_faulty_options_are_written_again(copy: Path, tmp_path: Path) -> None:
    def write(text: str, seed: int) -> str:
        if seed == 1:
            return json.dumps({"wrong": ["No.", "Yes.", "Well."]})
        return writer(text, seed) if seed == 3 else json.dumps({"wrong": ["The same thing over and over, again."] * 3})

    drafts = made(copy, tmp_path, write, writer)
    assert [draft.rounds for draft in drafts] == [3, 3, 3] and all(draft.passed for draft in drafts)
    decisions = [line["decision"] for line in read_stage(tmp_path / "s", "rounds")]
    assert "longest by far" in decisions[0] and "has 1 wrong answers, not 3" in decisions[3]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"wrong": ["b", "c ", "B."]}', ["b", "c"]),
        ('["b", "right"]', ["b"]),
        ('{"answers": ["b"]}', []),
        ('{"wrong": ["...", 3, ""]}', []),
        ("Here: b, c", []),
    ],
)
def test_wrong_options_are_read_without_those_that_are_known(text: str, wrong: list[str]) -> None:
    assert choices.read_wrong(text, ["Right."]) == wrong


def test_making_choices_by_command_gives_the_public_form(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from videoqa import engines

    asked: list[Scripted] = []

    def opened(*_: Any, **__: Any) -> Scripted:
        asked.append(Scripted(writer))
        return asked[-1]

    monkeypatch.setattr(engines, "open_engine", opened)
    out = tmp_path / "made"
    command = ["worldqa", "make-choices", str(copy), "--engine", "m", "--out", str(out), "--options", "5"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code in (0, 3), done.output
    kept = json.loads((out / "choices.json").read_text())
    assert len(kept["passed"]) + len(kept["left_out"]) == 12 and set(kept["passed"].values()) == {1}
    assert f"{len(kept['passed'])} of 12 questions passed ({len(kept['passed'])} in round 1)" in done.output
    questions = read(out)  # the builder's own check: every rotation once, MC and MC_PPL the same
    assert len(questions.choice) == len(kept["passed"]) and not questions.alone
    truths = {row["id"]: row["answer"] for row in questions.open}
    assert all(
        row["choices"][row["gold"]] == truths[row["id"]] and len(row["choices"]) == 5 for row in questions.choice
    )
    before = (out / "MC.jsonl").read_bytes()
    CliRunner().invoke(app, command)
    assert asked[1].asked == [] and (out / "MC.jsonl").read_bytes() == before
    other = tmp_path / "other"
    other.mkdir()
    (other / "x").touch()
    assert "holds something else" in CliRunner().invoke(app, [*command[:-4], "--out", str(other)]).output
