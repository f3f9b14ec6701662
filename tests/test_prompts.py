"""What the model under test is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.asking import with_frames
from videoqa.benchmark import track
from videoqa.benchmarks.easg import prompts, two_stage
from videoqa.videos import Shown


def shown(*images: str, seconds: tuple[float, ...]) -> Shown:
    return Shown(list(images), list(seconds), "a.mp4", None)


def asked(way: str, question: str, context: str) -> str:
    """The text of a way without frames."""
    one = track().ways[way]
    return one.instruction + one.query({"question": question, "context": context})


@pytest.mark.parametrize(
    ("question", "step"),
    [
        (
            "What did the camera wearer do right before putting the jug into the cabinet?",
            ("before", "putting the jug into the cabinet"),
        ),
        ("What did the camera wearer do right after he cut the dough?", ("after", "he cut the dough")),
        ("Right after washing the pan, what did the person do?", ("after", "washing the pan")),
        ("Before picking up the red, chipped cup, what did she do?", ("before", "picking up the red, chipped cup")),
        ("What happened immediately BEFORE the tap was turned off", ("before", "the tap was turned off")),
        ("What did the camera wearer pour the water into?", None),
        ("What came before?", None),
    ],
)
def test_the_step_is_the_clause_behind_before_or_after(question: str, step: tuple[str, str] | None) -> None:
    assert two_stage.step_of(question) == step


@given(st.text())
def test_any_question_gives_a_step_with_words_or_none(question: str) -> None:
    found = two_stage.step_of(question)
    assert found is None or (found[0] in ("before", "after") and found[1].strip())


def test_every_frame_stands_behind_its_second_and_the_question_comes_last() -> None:
    (message,) = with_frames("", prompts.ask_blind("What?"), shown("first", "second", seconds=(0.0, 12.34)))
    content = message["content"]
    assert [part.get("image", part.get("text")) for part in content[1:]] == [
        "\n0.0 s: ",
        "first",
        "\n12.3 s: ",
        "second",
        "\n\nQuestion: What?\nAnswer:",
    ]


def test_as_many_seconds_as_frames_are_needed() -> None:
    with pytest.raises(ValueError, match="shorter"):
        with_frames("", "What?", shown("first", "second", seconds=(0.0,)))


def test_two_turns_keep_the_frames_and_the_first_reply() -> None:
    question = "What did the camera wearer do right before putting the jug into the cabinet?"
    first = two_stage.locate(question, shown("picture", seconds=(1.0,)))
    both = two_stage.second_turn(first, "1 s to 2 s", question)
    assert [message["role"] for message in both] == ["user", "assistant", "user"]
    assert both[0] == first[0] and {"type": "image", "image": "picture"} in both[0]["content"]
    assert "putting the jug into the cabinet" in both[0]["content"][-1]["text"]
    assert "what did" not in both[0]["content"][-1]["text"].lower()
    assert both[1]["content"] == "1 s to 2 s"
    assert "right before that step" in both[2]["content"] and both[2]["content"].endswith(f"{question}\nAnswer:")


def test_a_question_without_a_step_is_located_as_a_whole() -> None:
    told = two_stage.locate("What was poured?", shown(seconds=()))[0]["content"][-1]["text"]
    assert '"What was poured?"' in told
    assert "that moment" in two_stage.look_beside("What was poured?")


@given(st.text(), st.text())
def test_the_prompts_are_one_user_turn_that_begins_alike(question: str, context: str) -> None:
    for name in ("blind", "narrations"):
        text = asked(name, question, context)
        assert text.startswith(prompts.INSTRUCTION), name
        assert text.endswith(f"Question: {question or ''}\nAnswer:")


@given(st.text(min_size=1), st.text(min_size=1))
def test_narrations_stand_before_the_question_and_blind_shows_none(question: str, context: str) -> None:
    marked = f"<<{context}>>"
    text = asked("narrations", question, marked)
    assert text.count(marked) >= 1 and text.index(marked) < text.rindex(question)
    assert "<<" not in asked("blind", "What?", marked)


@pytest.mark.parametrize("context", ["", "  \n"])
def test_a_clip_without_narrations_is_said_to_have_none(context: str) -> None:
    text = asked("narrations", "What?", context)
    assert "\n(none)\n" in text and "None" not in text


def test_the_questions_of_a_clip_share_their_beginning_up_to_the_question() -> None:
    one, two = (asked("narrations", q, "(1.00s) #C C lifts {x}.") for q in ("What {}?", "Where?"))
    shared = one[: one.index("What {}?")]
    assert two.startswith(shared) and "#C C lifts {x}." in shared
