"""videoqa/reading/choices.py and choices.py: which option a reply chose, and that nothing is taken from one that does
not say."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.choices import LETTERS, lettered, shifts, shuffled
from videoqa.reading.choices import READ, STATUSES, Choice, is_right, read_choice

OPTIONS = [
    "A person rinses a pan with water",
    "The woman cuts an onion",
    "The man is repairing a wheel.",
    "A dog sleeps",
    "C is doing laundry.",
]
TWINS = ["wash", "cut", "wash", "dry", "peel"]


def read(reply: str | None, choices: list[str] = OPTIONS, numbered: bool = False) -> str:
    """The letter of the option that was read, or the status."""
    choice = read_choice(reply, choices, numbered=numbered)
    return choice.status if choice.index is None else LETTERS[choice.index]


@pytest.mark.parametrize(
    "reply",
    [
        "D",
        "d",
        "D.",
        "D)",
        "(D)",
        "[D]",
        "{D}",
        '"D"',
        "'D'",
        "**D**",
        "**D.**",
        "`D`",
        "*D*",
        "> D",
        "- D",
        "## D",
        "D!",
        "$D$",
        "\\boxed{D}",
        "$\\boxed{\\text{D}}$",
        "[[D]]",
        "Ｄ",
        "（Ｄ）",
        "Option D",
        "option d.",
        "Choice D",
        "Letter D",
        "D</s>",
        "D<|im_end|>",
        "<answer>D</answer>",
        "<answer> A dog sleeps </answer>",
        "Answer: D",
        "answer: d.",
        "ANSWER: $D$",
        "**Answer:** **D**",
        "Answer:\\boxed{D}",
        "Answer: \\\\boxed{D}",
        "Ans: D",
        "Answer - D",
        "Answer=D",
        "Answer → D",
        "Final Answer: (D)",
        "My final choice is D!",
        "Selected option: D",
        "Correct: D",
        "The answer is (D).",
        'The answer is "D"',
        "The answer is most likely to be D.",
        "The answer would be D",
        "The answer seems to be D.",
        "The correct option is (D) because C is",
        "The best answer to the question is D.",
        "The option that best describes the video is D.",
        "the answer is d because it sleeps",
        "D is correct.",
        "D is the correct answer.",
        "d is the correct answer",
        "(D) is the best option for this video",
        "Therefore, D is the answer.",
        "Option D best describes the video",
        "D is the most accurate",
        "I choose D",
        "I'd go with D.",
        "I would select option (D).",
        "I think it's D.",
        "D because C is wrong",
        "D, since C is there",
        "D - a dog",
        "D: a dog",
        "D. A dog sleeps",
        "d) a dog",
        "(D) A dog sleeps.",
        "D. something else",
        "The correct option is (D): A dog sleeps.",
        "A dog sleeps (D)",
        "A dog sleeps, option D",
        "It could be option D.",
        "It looks like (D).",
        "The answer isn't A; it's D.",
        "Not A, the answer is D.",
        "The answer is D, not C.",
        "I am not sure but the answer is D",
        "I'm not sure, but I think the answer is D",
        "Among the options, A and B are wrong, C is partially right, and D is the best answer.",
        "A dog sleeps",
        "a dog sleeps.",
        "The answer is a dog sleeps",
        "I believe a dog sleeps because C is there.",
        "There is no doubt that a dog sleeps.",
        "While the woman cuts an onion, a dog sleeps.",
        "Option A is wrong. Option D fits.",
    ],
)
def test_a_choice_is_read_in_every_form(reply: str) -> None:
    assert read(reply) == "D"


@pytest.mark.parametrize(
    "reply",
    [
        "Answer:\n\nD",
        "### Answer\nD",
        "The correct answer is:\n\n**(D) A dog sleeps**",
        "D\n\nExplanation: option A is about pans.",
        "D\n\nC is repairing a wheel",
        "Answer: D\nExplanation: A dog. The answer is not C.",
        "D. A dog sleeps\n\nThe other options are wrong: the woman cuts an onion does not occur.",
        "A. no\nB. no\nC. no\nD. yes\nSo the answer is D.",
        "ANSWER: A ... wait, no.\nANSWER: D",
        "D\nD\nD",
        "D\n\nQuestion: What is next?\nAnswer: A",  # a base model goes on with a question of its own
        "Question: What is next?\nAnswer: D",
    ],
)
def test_a_verdict_stands_whatever_is_around_it(reply: str) -> None:
    assert read(reply) == "D"


@pytest.mark.parametrize(
    "reply",
    [
        "C",
        "c",
        "C.",
        "(C)",
        "C:",
        "C. He washes",
        "C\n\nC is there",
        "The answer is C.",
        "Answer: C because C is washing",
        "The answer to what C does is C.",
        "**Answer: C** — C (the camera wearer) is there",
        "Answer: C, as he turns it",
        "The answer is option C which",
        "The answer is option C shows a wheel",
        "Option C shows a wheel",
        "I think it's C.",
        "The man is repairing a wheel",
        "The man is repairing a wheel (C)",
        "The answer is C: the man is repairing a wheel",
        "answer: C. The man is repairing a wheel.",
        "C is the correct answer.",
    ],
)
def test_the_letter_c_is_read_where_it_is_the_letter(reply: str) -> None:
    assert read(reply) == "C"


@pytest.mark.parametrize(
    "reply",
    [
        "C is washing dishes",
        "#C C washes dishes.",
        "#C",
        "C's hands are wet",
        "c's hands",
        "The answer is C's hands",
        "Answer: C is washing the car",
        "Answer: C, the camera wearer, cuts",
        "Answer: C (the camera wearer)",
        "Answer: C – the camera wearer is at it",
        "C, while cooking, cuts it.",
        "C is correct in washing the cup",
        "C is right next to the table.",
        "The best option C has is to wash",
        "The camera wearer (C) washes dishes.",
        "The person in the video is C.",
        "option (A) is wrong, the main person is C.",
        "In this video, it is C.",
        "I think C, the man with the hat, is cooking",
        "C and a man walk",
        "The answer is 'C' is washing",
        "Option C is the owner",
    ],
)
def test_the_camera_wearer_c_is_not_option_c(reply: str) -> None:
    assert read(reply) == "unreadable"


@pytest.mark.parametrize(
    "reply",
    [
        "C is doing laundry",
        "c is doing laundry.",
        "The answer is C is doing laundry.",
        "option C is doing laundry",
        "The answer is E. C is doing laundry.",
        "What does C do? C is doing laundry.",
        '{"answer": "C is doing laundry"}',
    ],
)
def test_an_option_about_c_is_read_by_its_text(reply: str) -> None:
    assert read(reply) == "E"


@pytest.mark.parametrize(
    "reply",
    [
        "A and C",
        "A or B",
        "A, or maybe B",
        "Answer: D/E",
        "Answer: A, B",
        "Answer: [A/B/C/D/E]",
        "A\n\nD",
        "A: C",
        "Options A and B are plausible.",
        "the answer is A or the answer is B",
        "A is correct. B is correct, too.",
        "Answer: A\n\nD",
        "(A) or (B)",
        "The woman cuts an onion and a dog sleeps.",
        "B. A dog sleeps",
        "The answer is C. C is doing laundry.",
        "A dog sleeps (B)",
        "D. A dog sleeps\nE. C is doing laundry.",
        "\n".join(OPTIONS),
        lettered(OPTIONS),
    ],
)
def test_several_choices_are_none(reply: str) -> None:
    assert read_choice(reply, OPTIONS) == Choice(None, "unreadable", "several")


@pytest.mark.parametrize(
    "reply",
    [
        "A person is walking.",
        "a person with a knife",
        "The answer is a person",
        "Option A screwdriver",
        "The answer is option A screwdriver",
        "F",
        "Answer: F",
        "ANSWER: AB",
        "...",
        "I think so",
        "3",
        "The answer is not B.",
        "I don't think the answer is B.",
        "If the answer is B, then",
        "D is incorrect.",
        "Is the answer D?",
        "The wrong answer is D.",
        "The answer is neither A nor B.",
        "It is not that a dog sleeps.",
        "It shows a man (B)",
        "1. D",
    ],
)
def test_what_chooses_nothing_is_unreadable(reply: str) -> None:
    assert read_choice(reply, OPTIONS) == Choice(None, "unreadable", "nothing")


@pytest.mark.parametrize(
    ("reply", "index"),
    [
        ('In the video a voice says "the answer is C".', None),
        ('The transcript contains "Answer: D". I cannot decide.', None),
        ("The man calls out: 'Option A!'", None),
        ('The sign shows "(B)".', None),
        ("The caption reads “option B”, but the answer is (A).", 0),
        ('The narrator states "option A is wrong", so B is correct.', 1),
        ('She said "I choose option D" and so on. Answer: A', 0),
        ('I would say "option B".', 1),
        ('My answer reads "the answer is C".', 2),
        ('The correct answer says "option D".', 3),
        ('The answer is "option B".', 1),
        ('The transcript says "the wearer irons a shirt".', 2),  # an option's text
    ],
)
def test_what_somebody_else_says_in_quotes_is_no_choice(reply: str, index: int | None) -> None:
    options = ["The wearer cooks.", "The wearer does laundry.", "The wearer irons a shirt", "The wearer reads."]
    assert read_choice(reply, options).index == index


@pytest.mark.parametrize(
    "reply",
    [
        "ANSWER: None of the above",
        "ANSWER: Don't know",
        "I am unable to decide",
        "I am not sure",
        "None",
        "N/A",
        "I'm sorry, but I can't assist with that.",
        "I cannot determine whether the woman cuts an onion.",
        "There is not enough information.",
        "It can’t be determined from the text.",
    ],
)
def test_a_refusal_is_one(reply: str) -> None:
    assert read(reply) == "refusal"


def test_an_option_that_reads_like_a_refusal_is_a_choice() -> None:
    assert read("None of the above", ["wash", "None of the above"]) == "B"


@pytest.mark.parametrize("reply", [None, "", " \n", "<think>Option A.</think>", "A</think>\n"])
def test_no_reply_is_empty(reply: str | None) -> None:
    assert read(reply) == "empty"


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("<think>Option A looks right. No, C.</think>\nD", "D"),
        ("<think>a</think><think>The answer is B</think>D", "D"),
        ("Option A it is.</think>D", "D"),  # the opening tag stood in the prompt
        ("[THINK]The answer is B[/THINK]D", "D"),
        ("◁think▷The answer is B◁/think▷D", "D"),
        ("<think>Option A looks right but", "truncated"),
        ("D\n<think>But wait", "truncated"),
    ],
)
def test_thinking_is_not_the_answer(reply: str, letter: str) -> None:
    assert read(reply) == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ('{"answer": "D"}', "D"),
        ('{"Final Answer": "(d)", "confidence": 2}', "D"),
        ('```json\n{"answer": "d", "why": "C sleeps, not B"}\n```', "D"),
        ('["D"]', "D"),
        ('{"answer": ["D"]}', "D"),
        ('{"answer": "D", "why": ', "D"),  # cut
        ('{"answer": "C", "option": "D"}', "unreadable"),
        ('{"answer": "A or B"}', "unreadable"),
        ('{"answer": null}', "unreadable"),
        ('{"answer": true}', "unreadable"),
        ('{"answer": 3}', "unreadable"),
        ('{"answer": "I do not know"}', "refusal"),
        ("[" * 5000, "unreadable"),
        ('{"answer": ' + "9" * 5000 + "}", "unreadable"),
    ],
)
def test_json_is_read_by_its_key(reply: str, letter: str) -> None:
    assert read(reply) == letter


@pytest.mark.parametrize(
    "reply", ["3", "(3)", "3.", "Option 3", "The answer is 3.", "3. A dog", '{"answer": 3, "confidence": 2}']
)
def test_digits_are_labels_only_where_the_prompt_numbered(reply: str) -> None:
    assert read(reply, numbered=True) == "D"
    assert read(reply) == "unreadable"


@pytest.mark.parametrize(
    "reply", ["Answer: 3.5", "Answer: 30", "3 people walk", "2 or 3", "-3", "5", "C", "Answer: 3%", "Answer: 3,000"]
)
def test_not_every_digit_is_a_label(reply: str) -> None:
    assert read(reply, numbered=True) == "unreadable"


def test_equal_options_are_right_by_text() -> None:
    for reply in ("wash", "A", "C", "The answer is wash"):
        choice = read_choice(reply, TWINS)
        assert choice.index == 0
        assert is_right(choice, 0, TWINS) and is_right(choice, 2, TWINS) and not is_right(choice, 1, TWINS)
    assert not is_right(Choice(None, "refusal"), 0, TWINS)


def test_an_option_within_another_is_read_where_it_stands_alone() -> None:
    choices = ["C cuts", "C cuts an onion", "C cuts an onion with a knife"]
    assert [read(f"In the video, {text}.", choices) for text in choices] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("reply", "choices", "letter"),
    [
        ("No", ["Yes", "No"], "B"),
        ("Yes, he does.", ["Yes", "No"], "A"),
        ("There is no man, yes", ["Yes", "No"], "unreadable"),
        ("5 < 6", ["5 < 6", "5 > 6"], "A"),
        ("so 5 < 6", ["5 < 6", "5 > 6"], "unreadable"),
        ("B", ["B", "A"], "unreadable"),  # the letter says the second, the text the first
        ("I", [f"option {i} of ten" for i in range(10)], "I"),
        ("I think so", [f"number {i} of ten" for i in range(10)], "unreadable"),
        ("J", [f"number {i} of ten" for i in range(10)], "J"),
        ("C", ["wash", "dry"], "unreadable"),
    ],
)
def test_odd_options_are_kept_apart(reply: str, choices: list[str], letter: str) -> None:
    assert read(reply, choices) == letter


def test_of_a_long_reply_start_and_end_are_read() -> None:
    filler = "He walks on. " * READ
    assert read(f"D\n{filler}") == read(f"{filler}\nThe answer is D.") == "D"
    assert read(f"{filler}\nThe answer is D.\n{filler}") == "unreadable"
    assert read(f"<think>{filler}</think>D") == "D"


PIECES = [
    "A",
    "b",
    "C",
    "(D)",
    "I",
    "ı",
    "İ",
    "K",
    "ﬁ",
    "answer",
    " is ",
    ": ",
    "option ",
    "not ",
    " or ",
    "/",
    "\n",
    ". ",
    "<think>",
]
PIECES += [
    "</think>",
    "{",
    "}",
    '"',
    "'",
    "\\boxed",
    "[",
    "]",
    "```",
    "0",
    "3",
    "١",
    "$",
    "#",
    "wash",
    "correct",
    "\ud800",
    "\0",
    "ﷺ",
]


@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=25).map("".join),
    st.lists(
        st.sampled_from([*TWINS, "", "A", "b", "...", "C cuts", "3", "I"]) | st.text(max_size=8),
        min_size=2,
        max_size=10,
    ),
    st.booleans(),
)
def test_no_reply_raises_or_gives_an_index_that_is_none(reply: str, choices: list[str], numbered: bool) -> None:
    choice = read_choice(reply, choices, numbered=numbered)
    assert choice.status in STATUSES
    assert (choice.index in range(len(choices))) == (choice.status == "ok")
    assert read_choice(reply, choices, numbered=numbered) == choice


@pytest.mark.parametrize("count", [0, 1, 11])
def test_two_to_ten_options_can_be_lettered(count: int) -> None:
    with pytest.raises(ValueError, match="2 to 10 can be lettered"):
        read_choice("A", ["wash"] * count)


def test_a_choice_has_an_index_exactly_when_it_is_ok() -> None:
    for index, status in ((None, "ok"), (1, "refusal"), (None, "guessed")):
        with pytest.raises(ValueError, match="status"):
            Choice(index, status)


@pytest.mark.parametrize(
    "reply",
    [
        '{"answer": "D"}\n{"answer": "A"}',
        "Answer: D\n\nWhat is next?\nA. x\nB. y\nAnswer: A",
        "D\n\nWhat is next?\nA. x\nB. y\nAnswer: A",
        "First, the answer seems to be A. But wait.",
        "Option A: no. Option B: no. Option D: yes.",
        "A: no. B: no. C: no. D: yes.",
        "(A) pans (B) onions (D) dog",
        "(A) is plausible, but the video shows more of (D).",
        "A. pans, B. onions, C. wheels, D. dogs",
        "Answer: C washes. Option A is about something else.",
        "Answer: (A)(B)",
        "Answer: A B",
    ],
)
def test_a_second_choice_that_takes_nothing_back_leaves_none(reply: str) -> None:
    assert read(reply) == "unreadable"


@pytest.mark.parametrize(
    "reply",
    [
        "I first thought the answer is B. However, the answer is D.",
        "B\nOn second thought, the answer is D.",
        lettered(OPTIONS) + "\nAnswer: D",
        "The answer is D. C is doing laundry is wrong.",
        "Answer: D Option A is about something else.",
        "The answer is the dog (D). Option A is not.",
        "D (not C)",
        "**D** (A dog sleeps)",
    ],
)
def test_the_last_word_is_the_choice(reply: str) -> None:
    assert read(reply) == "D"


BEFORE = [
    "",
    "C is in a room and C washes. ",
    "Option {other} is wrong because C is not there. ",
    "Option {other} describes cooking, which C does only once. ",
    "The camera wearer (C) holds a sponge. ",
    "#C C washes a plate.\n#C C dries a plate.\n",
    "First, the answer seems to be {other}. But wait. ",
    "<think>The answer is {other}.</think>",
    "I would rule out {other}. ",
    "It could be {other}, but C washes more. ",
]
STATEMENTS = [
    "The answer is {letter}.",
    "Answer: {letter}",
    "**Final answer:** {letter}. {text}",
    "So the correct option is {letter}, since C does it.",
    "Therefore, {letter} is the correct answer.",
    "The best answer is {text}",
]
AFTER = [
    "",
    " C is there all the time.",
    " Option {other} is about something else.",
    " The others ({other}, for one) are wrong.",
    "\n\nC, the camera wearer, uses a sponge. A second person (B) looks on.",
    " Not {other}.",
    "\n\nThe answer is not {other}.",
    "\n- {other}: wrong\n- C washes",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_whatever_stands_around_a_statement_the_choice_is_never_another(statement: str) -> None:
    choices = [
        "C is cooking.",
        "C is doing laundry.",
        "C is cleaning the kitchen.",
        "C is cleaning dishes.",
        "C rests.",
    ]
    counts: Counter[str] = Counter()
    for index, other in ((3, 0), (1, 2), (2, 0), (4, 1)):
        fields = {"letter": LETTERS[index], "text": choices[index], "other": LETTERS[other]}
        for before, after in itertools.product(BEFORE, AFTER):
            reply = f"{before}{statement}{after}".format(**fields)
            letter = read(reply, choices)
            assert letter in (LETTERS[index], "unreadable"), reply
            counts["read" if letter != "unreadable" else letter] += 1
    assert counts["read"] > 0.75 * counts.total()


# -- options and their rearrangements


def test_options_are_lettered_in_their_order() -> None:
    assert lettered(["wash", "cut"]) == "A. wash\nB. cut"


def test_every_option_stands_once_at_every_place_in_the_shifts() -> None:
    of_all = shifts(TWINS, 1)
    assert len(of_all) == 5
    assert of_all[0].choices == tuple(TWINS)
    for place in range(5):
        assert sorted(shift.order[place] for shift in of_all) == [0, 1, 2, 3, 4]
    for shift in of_all:
        assert shift.gold is not None
        assert shift.order[shift.gold] == 1
        assert [TWINS[i] for i in shift.order] == list(shift.choices)


def test_a_shuffle_depends_on_seed_and_row_alone_and_can_be_undone() -> None:
    one = shuffled(OPTIONS, 3, 7, "row")
    assert one == shuffled(list(OPTIONS), 3, 7, "row")
    assert one.order == (4, 3, 1, 0, 2)  # the same on every machine
    assert one.gold is not None
    assert one.choices[one.gold] == OPTIONS[3]
    assert len({shuffled(OPTIONS, 3, 7, f"row {i}").order for i in range(50)}) > 20
    assert len({shuffled(OPTIONS, 3, seed, "row").order for seed in range(50)}) > 20
    places = Counter(shuffled(OPTIONS, 3, 0, str(i)).gold for i in range(1000))
    assert all(150 < places[place] < 250 for place in range(5))


@pytest.mark.parametrize("gold", [-1, 5, True, 1.0, "1"])
def test_a_gold_that_is_no_index_is_refused(gold: object) -> None:
    with pytest.raises(ValueError, match="gold"):
        shifts(OPTIONS, gold)  # type: ignore[arg-type]


def test_a_withheld_gold_stays_withheld() -> None:
    assert {shift.gold for shift in shifts(OPTIONS, None)} == {None}


# -- the 500 public questions


@pytest.fixture(scope="module")
def public(shared: Path) -> list[tuple[list[str], int]]:
    """(options, gold) of the 500 public questions."""
    questions = json.loads((shared / "egoschema" / "questions_subset.json").read_text("utf-8"))
    answers = json.loads((shared / "egoschema" / "subset_answers.json").read_text("utf-8"))
    return [([row[f"option {i}"] for i in range(5)], answers[row["q_uid"]]) for row in questions]


def figure(public: list[tuple[list[str], int]], reply: Callable[[list[str], int], str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for choices, gold in public:
        choice = read_choice(reply(choices, gold), choices)
        right = is_right(choice, gold, choices)
        counts["right" if right else choice.status if choice.index is None else "wrong"] += 1
    return counts


FORMS = [
    "The answer is {}",
    "The answer is ({}).",
    "**Answer:** **{}**",
    "The correct answer is option {}.",
    "I choose {}.",
]
FORMS += [
    "answer: {}\n\nThis is because C is there.",
    "\\boxed{{{}}}",
    '{{"answer": "{}"}}',
    "<think>A? C?</think>Final answer: {}",
]
FORMS += ["{}", "{} is the correct answer."]


@pytest.mark.real
def test_every_gold_text_is_read(public: list[tuple[list[str], int]]) -> None:
    assert figure(public, lambda choices, gold: choices[gold]) == {"right": 500}


@pytest.mark.real
@pytest.mark.parametrize("form", FORMS)
def test_the_answer_is_read_in_ten_forms_as_letter_and_as_text(public: list[tuple[list[str], int]], form: str) -> None:
    assert figure(public, lambda _, gold: form.format(LETTERS[gold])) == {"right": 500}
    assert figure(public, lambda _, gold: form.format(LETTERS[gold].lower())) == {"right": 500}
    assert figure(public, lambda choices, gold: form.format(choices[gold])) == {"right": 500}


@pytest.mark.real
@pytest.mark.parametrize(
    "form",
    [
        "I think {} because C is washing the dishes at the end.",
        "The video shows that {} and C is the main person.",
        "In the video, #C C moves. {} This is what C does.",
    ],
)
def test_a_gold_text_within_a_sentence_is_read(public: list[tuple[list[str], int]], form: str) -> None:
    assert figure(public, lambda choices, gold: form.format(choices[gold])) == {"right": 500}
    assert figure(public, lambda choices, gold: form.format(choices[gold].rstrip("."))) == {"right": 500}


@pytest.mark.real
@pytest.mark.parametrize("form", ["{}.", "The answer is {}.", "I think {} because C is there.", "In the video, {}."])
def test_the_start_of_an_option_is_not_a_letter(public: list[tuple[list[str], int]], form: str) -> None:
    for choices, gold in public:
        words = choices[gold].split()
        for count in range(2, min(6, len(words))):
            assert read_choice(form.format(" ".join(words[:count])), choices).index is None
