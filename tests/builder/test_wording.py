"""builder/easg/wording/: slots -> sentences."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.easg import wording
from builder.easg.annotations import USUAL_NAMES, read_clips
from builder.easg.questions import candidates, questions
from builder.easg.records import Action, Clip
from builder.easg.wording import after, answer_action, answer_object, answer_relation, before, direct, indirect, purpose
from builder.easg.wording.words import NOUN_SLIPS, VERB_SLIPS, noun_of, the

DOES = "What did the camera wearer do right before "


def action(text: str) -> Action:
    """`action("put, jug, into cabinet")`, as wording.md and the tables below write it."""
    verb, noun, *relations = text.split(", ")
    pairs = tuple((relation, tail) for relation, _, tail in (part.partition(" ") for part in relations))
    return Action(verb, noun, pairs)


def asked(text: str, kind: str) -> str:
    """The question of a kind: direct, before, after, or the number of the asked relation from 1."""
    if kind.isdigit():
        return indirect(action(text), int(kind) - 1)
    return {"direct": direct, "before": before, "after": after}[kind](action(text))


# A real action as verb, object, relation and tail; the kind of question; the question, with CW for the camera wearer.
GOLDEN = [
    # the worked examples
    ("put, jug, into cabinet", "before", "What did CW do right before putting the jug into the cabinet?"),
    ("cut, wire, with wire cutter", "direct", "What did CW cut with the cutter?"),
    ("scoop out, flour, from container, with container", "1", "What did CW scoop the flour out of?"),
    ("take, bottle, with oil, on table", "1", "What was in the bottle that CW took on the table?"),
    ("transfer, cardboard, into cardboard:1", "1", "What did CW transfer the cardboard into?"),
    ("pass, seed, to bowl:1, from bowl", "direct", "What did CW pass from one bowl to another?"),
    ("chop, onion, from board, into pot", "direct", "What did CW chop from the board into the pot?"),
    ("take out, tissue, from pocket", "direct", "What did CW take out of the pocket?"),
    ("losse, screw, from motorcycle", "direct", "What did CW loosen on the motorcycle?"),
    ("tight, wire, with cutter", "1", "What did CW tighten the wire with?"),
    ("move, motorcycle, towards himself", "1", "In which direction did CW move the motorcycle?"),
    ("move, plate, with flour", "1", "What was on the plate that CW moved?"),
    ("force, cable, between pipe", "1", "Where did CW force the cable?"),
    (
        "cut, dough, into pieces, with scrapper",
        "before",
        "What did CW do right before cutting the dough into pieces with the scraper?",
    ),
    ("put, motorbike, on side, on floor", "1", "How did CW put the motorbike down on the floor?"),
    # the other relation of the same kind
    ("put, motorbike, on side, on floor", "2", "Where did CW put the motorbike down on its side?"),
    ("pick up, peeler, from glass, from tray", "1", "What, other than the tray, did CW pick the peeler up from?"),
    ("detach, dough, from mixture, from table", "1", "What, other than the table, did CW detach the dough from?"),
    ("drop, wrench, on platform, on lift", "2", "Where, other than on the platform, did CW drop the wrench?"),
    ("put, cutter, on table, on dough strip", "1", "Where, other than on the dough strip, did CW put the cutter?"),
    ("pull out, paper, from rack, from shelf", "2", "What, other than the rack, did CW pull the paper out of?"),
    ("knead, dough, on table, in mixture", "2", "Where, other than on the table, did CW knead the dough?"),
    ("drop, ring, on newspaper, in table", "1", "Where, other than on the table, did CW drop the ring?"),
    # the more to read
    ("tie, jacket, around waist", "1", "What did CW tie the jacket around?"),
    ("tie, jacket, around waist", "direct", "What did CW tie around their waist?"),
    ("move, sponge, around car", "1", "What did CW move the sponge around?"),
    ("wash, onion, under sink faucet, with water", "1", "Where did CW wash the onion with water?"),
    ("wash, onion, under sink faucet, with water", "2", "What did CW use to wash the onion under the sink faucet?"),
    ("wipe, finger, on tissue, with tissue", "1", "What did CW wipe their finger on?"),
    ("wipe, finger, on tissue, with tissue", "2", "What did CW wipe their finger with?"),
    ("scoop, flour, on countertop, with scrapper", "direct", "What did CW scoop from the countertop with the scraper?"),
    ("scoop, flour, on countertop, with scrapper", "1", "Where was the flour that CW scooped with the scraper?"),
    ("pick, foam, with liquid wash", "1", "What was on the foam that CW picked up?"),
    ("pick, foam, with liquid wash", "direct", "What did CW pick up that had dishwashing liquid on it?"),
    ("touch, wire, with terminal", "1", "What did CW touch the wire with?"),
    ("remove, hand, from bag, with soil", "2", "What was in the hand that CW removed from the bag?"),
    ("take, knot, on brake shoe pack", "1", "Where was the knot that CW took?"),
    ("take, knot, on brake shoe pack", "direct", "What did CW take from the brake shoe pack?"),
    ("pull, potato, on pot, from plate", "1", "What did CW pull the potato from the plate onto?"),
    ("pull, potato, on pot, from plate", "direct", "What did CW pull from the plate onto the pot?"),
    # pick
    ("pick, pan, from rack", "1", "Where did CW pick the pan up from?"),
    ("pick, paper, from box", "1", "What did CW pick the paper up from?"),
    ("pick, dirt, from flower", "direct", "What did CW pick off the flower?"),
    ("pick, dirt, from flower", "1", "What did CW pick the dirt off?"),
    ("pick, wire, from wall", "direct", "What did CW take from the wall?"),
    ("pick, plate, on table cloth", "direct", "What did CW pick up from the table cloth?"),
    ("pick, iron, from ironing board", "direct", "What did CW pick up from the board?"),
    ("pick, wrench, from floor", "after", "What did CW do right after picking the wrench up from the floor?"),
    # particles
    ("pull out, nail, with plier", "1", "What did CW pull the nail out with?"),
    ("bring out, nylon, from shelf", "before", "What did CW do right before bringing the nylon from the shelf?"),
    ("bring out, cutter, from pocket", "1", "What did CW bring the cutter out of?"),
    ("pour off, water, in plate", "before", "What did CW do right before pouring the water off the plate?"),
    ("turn over, bicycle, on floor", "1", "Where did CW turn over the bicycle?"),
    ("pour down, soil, to mixture", "direct", "What did CW pour down into the mixture?"),
    ("open, tap, on basin", "before", "What did CW do right before turning the tap on at the basin?"),
    ("put down, wrench, in rag", "1", "Where did CW put down the wrench?"),
    # relations
    ("put, shears, in pocket", "1", "Where did CW put the shears?"),
    ("put, jug, into cabinet", "1", "What did CW put the jug into?"),
    ("carry, container, to table", "1", "Where did CW carry the container to?"),
    ("apply, soap, to sponge", "1", "What did CW apply the soap to?"),
    ("press, dough, into scale", "direct", "What did CW press onto the scale?"),
    ("dip, foam, in water", "1", "What did CW dip the foam in?"),
    ("press, sheet, against furniture", "1", "Where did CW press the sheet?"),
    ("stretch, paper, towards door", "1", "What did CW stretch the paper towards?"),
    ("move, onion, towards knife, from board", "1", "What did CW move the onion from the board towards?"),
    ("touch, wire, on ceiling", "1", "Where was the wire that CW touched?"),
    ("force, cable, between pipe", "direct", "What did CW force between the pipes?"),
    ("play, card, on table, in center", "1", "What did CW play the card in the center of?"),
    ("play, card, on table, in center", "2", "Where on the table did CW play the card?"),
    ("add, water, into pot", "direct", "What did CW add to the pot?"),
    ("tighten, screw, to motorcycle", "direct", "What did CW tighten onto the motorcycle?"),
    ("remove, glasses, from face", "direct", "What did CW remove from their face?"),
    ("pass, seed, to bowl:1, from bowl", "1", "What did CW pass the seed to, from another one like it?"),
    ("transfer, cardboard, into cardboard:1", "direct", "What did CW transfer into another one like it?"),
    ("take, wood, from woods", "direct", "What did CW take from others like it?"),
    # tools
    ("iron, short, with ironbox, on board", "1", "What did CW use to iron the shorts on the board?"),
    ("iron, short, with ironbox, on board", "2", "Where did CW iron the shorts with the iron?"),
    ("tighten, screw, on engine, with wrench", "1", "Where was the screw that CW tightened with the wrench?"),
    ("tighten, screw, on engine, with wrench", "2", "What did CW use to tighten the screw on the engine?"),
    ("put, trash, on floor, with mop", "2", "What did CW put the trash on the floor with?"),
    ("peel, tape, with driver", "direct", "What did CW peel with the screwdriver?"),
    ("spray, car, with hoes", "direct", "What did CW spray with the hose?"),
    ("spray, car, with hoes", "1", "What did CW use to spray the car?"),
    ("turn, handle, on machine", "direct", "What on the machine did CW turn?"),
    ("turn, spoon, to cup", "direct", "What did CW turn towards the cup?"),
    ("turn, spoon, to cup", "1", "What did CW turn the spoon towards?"),
    ("move, plate, with flour", "direct", "What did CW move that had flour on it?"),
    ("take, bottle, with oil, on table", "direct", "Which thing with oil in it did CW take from the table?"),
    ("use, tablet, with finger", "direct", "What did CW use with their finger?"),
    ("plaster, wall, with cement", "direct", "What did CW plaster with cement?"),
]

# Relations and verbs of the file that no question of the paper's set holds.
UNASKED = [
    ("pick sup, carton, from floor", "direct", "What did CW pick up from the floor?"),
    ("pass, wire, through socket", "1", "What did CW pass the wire through?"),
    ("put, pack, inside box", "1", "Where did CW put the pack?"),
    ("put off, tap, near sink", "direct", "What did CW turn off near the sink?"),
    ("put on, tap, near basin", "before", "What did CW do right before turning the tap on near the basin?"),
    ("put on, cover, with lid", "before", "What did CW do right before putting the cover on with the lid?"),
    ("screw, bolt, onto part", "1", "Where did CW screw the bolt?"),
    ("dip in, brush, in can", "before", "What did CW do right before dipping the brush in the can?"),
    ("seperate, dough, into trey", "direct", "What did CW separate into the tray?"),
    ("unhang, top, from rack", "before", "What did CW do right before taking the top down from the rack?"),
    ("hang, hose, in shelf", "before", "What did CW do right before hanging the hose on the shelf?"),
    ("keep, sock, in drawer", "before", "What did CW do right before putting the sock in the drawer?"),
    ("pick, cup, in tray", "1", "Where was the cup that CW picked up?"),
    ("pick, scissors, on tray", "1", "Where were the scissors that CW picked up?"),
    (
        "look at, weighing_scale, on TABLE",
        "before",
        "What did CW do right before looking at the weighing scale on the table?",
    ),
    ("fjordle, USB cable, beneath TV", "direct", "What did CW fjordle beneath the TV?"),
]


@pytest.mark.parametrize(("text", "kind", "question"), GOLDEN + UNASKED)
def test_a_real_action_is_asked_in_good_english(text: str, kind: str, question: str) -> None:
    assert asked(text, kind) == question.replace("CW", "the camera wearer")


def test_before_and_after_tell_the_whole_action() -> None:
    text = "pass, seed, to bowl:1, from bowl"
    assert asked(text, "before") == f"{DOES}passing the seed from one bowl to another?"
    assert asked(text, "after") == asked(text, "before").replace("before", "after")
    text = "take, bottle, with oil, on table"
    assert asked(text, "before") == f"{DOES}taking the bottle with oil in it from the table?"


def test_answers_are_the_annotations_own_words_without_its_marks() -> None:
    scoop = action("scoop out, flour, from container, into bowl:1")
    assert (answer_object(scoop), answer_relation(scoop, 0), answer_relation(scoop, 1)) == (
        "flour",
        "from container",
        "into another bowl",
    )
    assert answer_action(action("pick sup, weighing_scale")) == "pick sup weighing scale"
    assert answer_relation(action("put, cup, on TABLE"), 0) == "on table"
    assert answer_relation(Action("put", "cup", (("on", " table "),)), 0) == "on table"
    assert answer_object(action("pick, USB cable")) == "USB cable"


def test_the_first_form_of_an_inflection_is_taken() -> None:
    forms = [asked(f"{verb}, rope, on rack", "before") for verb in ("hang", "tie", "wet", "fjordle")]
    doing = ["hanging", "tying", "wetting", "fjordling"]
    assert forms == [f"{DOES}{form} the rope on the rack?" for form in doing]
    told = purpose([(1, action("tear, rope")), (2, action("hang, coat")), (3, action("bend, rod"))], 3)
    assert [answer for *_, answer in told] == ["Tore it.", "Hung it.", "Bent it."]


# --- purpose


def of(*texts: str) -> list[tuple[int, Action]]:
    return list(enumerate(map(action, texts), 1))


def test_a_tool_is_asked_for_what_it_was_used() -> None:
    told = purpose(of("pick, wrench, from table", "tighten, screw, on engine, with wrench"), 1)
    assert told == [("wrench", "What did the camera wearer use the wrench for?", "Tightening the screw on the engine.")]


def test_what_was_done_with_an_object_is_told_in_order_and_without_repeating_the_verb() -> None:
    clip = of(
        "pick, tray, from table", "pick, tray", "pick up, tray, from rack", "put, tray, into oven", "put, tray, in oven"
    )
    told = purpose(clip, 1)
    assert told == [
        (
            "tray",
            "What did the camera wearer do with the tray?",
            "Picked it up from the table and from the rack and put it into the oven.",
        )
    ]


def test_tails_serve_as_objects_where_the_direct_objects_are_too_few() -> None:
    told = purpose(of("put, cable, inside box", "force, cable, between pipe"), 3)
    assert [row[0] for row in told] == ["cable", "box", "pipe"]
    assert told[1][1:] == ("What did the camera wearer do with the box?", "Put the cable inside it.")
    assert told[2][2] == "Forced the cable between them."
    tightened = purpose(of("tighten, screw, on engine, with wrench"), 5)
    assert [row[0] for row in tightened] == ["wrench", "screw", "engine"], "as many as there are"
    assert purpose([], 3) == [] and purpose(of("cut, wire"), 0) == []


def test_two_spellings_of_an_object_are_one_object() -> None:
    told = purpose(of("seperate, dough, into trey", "carry, tray", "iron, short, with ironbox", "drop, iron box"), 9)
    assert sorted(row[0] for row in told) == ["dough", "ironbox", "short", "trey"]


# --- anything that an annotation may hold

WORDS = st.one_of(
    st.sampled_from(
        [
            "pick",
            "put on",
            "take out",
            "cut",
            "bowl:1",
            "bowl",
            "the cup",
            "TABLE",
            "glasses",
            "himself",
            "_",
            " :1",
            "?",
        ]
    ),
    st.text(max_size=12),
    st.sampled_from(["{a}", "🙂 tea", "'q'", '"x"', "a?b?", "x:1:2", "pick pick", "%s", "center", "side"]),
)
RELATIONS = st.one_of(st.sampled_from(["from", "on", "in", "into", "with", "towards", "on_top_of"]), WORDS)
ACTIONS = st.builds(Action, WORDS, WORDS, st.lists(st.tuples(RELATIONS, WORDS), min_size=1, max_size=3).map(tuple))


def fault(text: str) -> str:
    """What is wrong with the form of a sentence, "" if nothing."""
    words = text.lower().split()
    doubled = [a for a, b in pairwise(words) if a == b]
    faults = {"underscore": "_" in text, "mark": re.search(r":\s*\d", text), "doubled": doubled, "blank": "  " in text}
    return ", ".join(name for name, found in faults.items() if found)


@given(ACTIONS)
def test_any_action_gives_a_question(any_action: Action) -> None:
    texts = [direct(any_action), before(any_action), after(any_action)]
    texts += [indirect(any_action, which) for which in range(len(any_action.relations))]
    for text in texts:
        assert text.endswith("?") and text.count("?") == 1 and not fault(text), text
        assert "the camera wearer" in text


@given(st.lists(ACTIONS, max_size=5), st.integers(-1, 6))
def test_any_clip_gives_as_many_purposes_as_it_has_objects(actions: list[Action], count: int) -> None:
    told = purpose(list(enumerate(actions, 1)), count)
    assert told == purpose(list(enumerate(actions, 1)), count), "deterministic"
    assert len(told) <= max(count, 0)
    assert len(told) >= min(max(count, 0), len({the(action.object) for action in actions}))
    assert len({question for _, question, _ in told}) == len(told), "each question once"
    for _, question, answer in told:
        assert question.endswith("?") and question.count("?") == 1 and not fault(question)
        assert answer.endswith(".") and not re.search(r"_|:\s*\d", answer)


# --- the real data

# The annotation itself has the answer's noun in the asked slots.
FORCED = {
    "303505b9:17:indirect:1",  # cardboard into another cardboard
    "f6c66eab:40:indirect:1",  # iron with ironbox
}
# Two actions of a clip with the same asked slots and different answers (wording.md): inherent in the paper's set.
SAME_SLOTS = {
    ("3121a918", "What did the camera wearer pick up from the plate?"),
    ("5ec85bbd", "What did the camera wearer pick up from the table?"),
    ("9f39ac52", "What did the camera wearer touch with the brush?"),
    ("c1ef9d03", "Where did the camera wearer carry the tray from?"),
}


@pytest.fixture(scope="module")
def clips(upstream: Path) -> list[Clip]:
    return read_clips(**{role: upstream / name for role, name in USUAL_NAMES.items()})[0]


@pytest.fixture(scope="module")
def rows(clips: list[Clip]) -> list[tuple[str, str, str, str]]:
    """Action questions: (id with the clip's first 8 digits, noun of the answer as annotated, question, answer)."""
    out = []
    for slots in (slots for clip in clips for slots in questions(clip)):
        short, asked_action = slots.clip[:8] + slots.id.removeprefix(slots.clip), slots.action
        if slots.type == "direct":
            out.append((short, asked_action.object, direct(asked_action), answer_object(asked_action)))
        elif slots.which is not None:
            text, answer = indirect(asked_action, slots.which), answer_relation(asked_action, slots.which)
            out.append((short, asked_action.relations[slots.which][1], text, answer))
        else:
            assert slots.neighbour and slots.neighbour.action
            question = before if slots.type == "before" else after
            out.append((short, "", question(asked_action), answer_action(slots.neighbour.action)))
    return out


def holds(text: str, phrase: str) -> bool:
    """Whether the words of a phrase stand in a text; the actor ("the camera wearer") holds no answer "camera"."""
    text = text.lower().replace(wording.WEARER, "")
    return bool(phrase) and re.search(rf"(?<!\w){re.escape(phrase.lower())}(?!\w)", text) is not None


@pytest.mark.real
def test_all_real_questions_are_well_formed(clips: list[Clip], rows: list[tuple[str, str, str, str]]) -> None:
    purposes = [row for clip in clips for row in purpose(candidates(clip), clip.purpose_count)]
    assert (len(rows), len(purposes)) == (1139, 668)
    slips = VERB_SLIPS.keys() | NOUN_SLIPS.keys()
    for question, answer in [row[2:] for row in rows] + [row[1:] for row in purposes]:
        assert question.endswith("?") and question.count("?") == 1, question
        assert not fault(question), question
        assert not holds(question, answer.rstrip(".")), question
        assert not [slip for slip in slips if holds(question, slip)], question


@pytest.mark.real
def test_no_real_question_names_its_answer(rows: list[tuple[str, str, str, str]]) -> None:
    told = {short for short, noun, question, _ in rows if holds(question, noun) or holds(question, noun_of(noun))}
    assert told == FORCED


@pytest.mark.real
def test_no_two_real_questions_of_a_clip_are_the_same_beyond_the_forced(
    clips: list[Clip], rows: list[tuple[str, str, str, str]]
) -> None:
    answers = defaultdict(set)
    for short, _, question, answer in rows:
        answers[short[:8], question].add(answer)
    for clip in clips:
        for _, question, answer in purpose(candidates(clip), clip.purpose_count):
            answers[clip.uid[:8], question].add(answer)
    assert {key for key, several in answers.items() if len(several) > 1} == SAME_SLOTS


def test_a_particle_is_no_place_and_water_is_no_tool() -> None:
    assert asked("put on, tap, on board", "direct") == "What did the camera wearer turn on at the board?"
    assert asked("spray, car, with water", "1") == "What did the camera wearer spray the car with?"


@pytest.mark.real
def test_the_golden_actions_are_real_and_at_least_sixty(clips: list[Clip]) -> None:
    asked_actions = {(a.verb, a.object, a.indirect) for clip in clips for s in questions(clip) for a in [s.action]}
    golden = {(a.verb, a.object, a.indirect) for a in (action(text) for text, *_ in GOLDEN)}
    assert len(golden) >= 60 and golden <= asked_actions, golden - asked_actions
