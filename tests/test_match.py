"""Model-free scores."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.easg.annotations import read_clips
from videoqa.benchmarks.easg.match import PARTS, bases, match, match_scores, split_action, words
from videoqa.benchmarks.easg.published import TYPES


def same(a: str, b: str) -> bool:
    return not bases(a).isdisjoint(bases(b))


@pytest.mark.parametrize(
    "forms",
    [
        "pick picks picked picking",
        "tape tapes taped taping",
        "tap taps tapped tapping",
        "drop drops dropped dropping",
        "move moves moved moving",
        "carry carries carried carrying",
        "tie ties tied tying",
        "lie lies lay lying",
        "use uses used using",
        "add adds added adding",
        "press presses pressed pressing",
        "roll rolls rolled rolling",
        "fix fixes fixed fixing",
        "open opens opened opening",
        "squeeze squeezes squeezed squeezing",
        "hold holds held holding",
        "take takes took taken taking",
        "tear tears tore torn tearing",
        "knife knives",
        "leaf leaves",
        "dish dishes",
        "potato potatoes",
        "box boxes",
    ],
)
def test_all_forms_of_a_word_are_the_same_as_its_base(forms: str) -> None:
    base, *others = forms.split()
    assert all(same(base, other) for other in others)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("tap", "tape"),
        ("taped", "tap"),
        ("tub", "tube"),
        ("plan", "plane"),
        ("cloth", "clothes"),
        ("seed", "see"),
        ("string", "str"),
        ("glass", "glas"),
        ("unfolded", "fold"),
    ],
)
def test_other_words_stay_other_words(a: str, b: str) -> None:
    assert not same(a, b)


def test_the_annotations_slips_mean_the_right_word() -> None:
    assert same("losse", "loosened") and same("tight", "tightening") and same("scrapper", "scraper")
    assert match("picked up the jug", "pick sup jug", "before").object == 1


def test_a_sentence_that_says_the_action_has_its_verb_and_object() -> None:
    found = match("The camera wearer picked up the jug.", "pick jug", "before")
    assert (found.verb, found.object, found.exact) == (1, 1, 0)
    assert found.f1 == pytest.approx(0.8)
    assert match("The camera wearer is picking the jug.", "pick jug", "before").exact == 1
    assert match("C picked a jug", "pick jug", "after").exact == 1


def test_particles_count_only_where_they_turn_the_action_round() -> None:
    assert match("turned the tap on", "turn off tap", "after").verb == 0
    assert match("turned the tap off", "turn off tap", "after").verb == 1
    assert match("turned the tap", "turn off tap", "after").verb == 1
    assert match("put the cup down on the table", "put down cup", "after").verb == 1


def test_relations_that_say_the_same_match() -> None:
    assert match("He put it into the bucket.", "in bucket", "indirect").relation == 1
    assert match("out of the bag", "from bag", "indirect").relation == 1
    assert match("using pliers", "with pliers", "indirect").relation == 1
    assert match("pliers", "with pliers", "indirect").relation == 0
    assert match("pliers", "with pliers", "indirect").object == 1
    assert match("from the bucket", "in bucket", "indirect").relation == 0


def test_all_words_of_an_object_must_occur() -> None:
    assert match("with a cutter", "with wire cutter", "indirect").object == 0
    assert match("with the wire cutters", "with wire cutter", "indirect").object == 1
    assert match("a bowl", "another bowl", "direct").object == 1
    assert match("bowl", "bowl:1", "direct").exact == 1


def test_parts_that_a_type_does_not_have_are_none() -> None:
    have = {name: {part for part in PARTS if getattr(match("a", "pick jug", name), part) is not None} for name in TYPES}
    assert have == {
        "purpose": {"exact", "f1"},
        "direct": {"exact", "f1", "object"},
        "indirect": {"exact", "f1", "relation", "object"},
        "before": {"exact", "f1", "verb", "object"},
        "after": {"exact", "f1", "verb", "object"},
    }


@pytest.mark.parametrize("answer", [None, "", "  ", "...", "<think>the jug, I think", "<think>jug</think>"])
@pytest.mark.parametrize("name", TYPES)
def test_an_empty_answer_matches_nothing(answer: str | None, name: str) -> None:
    found = match(answer, "pick jug", name)
    assert not any(getattr(found, part) for part in PARTS)


def test_what_a_model_thinks_is_not_its_answer() -> None:
    assert match("<think>the cup? no</think> the jug", "jug", "direct").exact == 1


def test_a_word_counts_once() -> None:
    assert match("jug jug jug", "jug", "direct").f1 == pytest.approx(0.5)


def test_words_of_other_scripts_and_forms_are_words() -> None:
    assert words("Die Tasse’s Henkel, ＣＵＰ!") == ["die", "tasse", "henkel", "cup"]
    assert match("कप", "कप", "direct").exact == 1


def test_a_strange_type_is_an_error() -> None:
    with pytest.raises(ValueError, match="'during': allowed are purpose, direct"):
        match("a", "b", "during")


@given(st.text(), st.text(), st.sampled_from(TYPES))
def test_any_texts_give_shares(prediction: str, reference: str, name: str) -> None:
    found = match(prediction, reference, name)
    shares = [value for part in PARTS if (value := getattr(found, part)) is not None]
    assert all(0 <= share <= 1 for share in shares)
    assert found.f1 == 1 or not found.exact


@given(st.lists(st.sampled_from(["pick", "picked", "jug", "from", "table", "taping", "bread"]), min_size=1, max_size=6))
def test_an_answer_matches_itself(said: list[str]) -> None:
    text = " ".join(said)
    assert match(text, text, "purpose").exact == match(text, text, "purpose").f1 == 1


def test_means_are_per_type_and_over_types() -> None:
    found = match_scores(
        ["jug", "pan", "picked a jug", None],
        ["jug", "jug", "pick jug", "pick jug"],
        ["direct", "direct"] + ["after"] * 2,
    )
    assert found["direct_exact"] == 0.5 and found["after_exact"] == 0.5 and found["after_verb"] == 0.5
    assert found["exact"] == 0.5 and found["verb"] == 0.5
    assert (found["n"], found["direct_n"], found["empty"]) == (4, 2, 1)
    assert not [key for key in found if key.startswith(("before", "purpose", "relation"))]
    more = match_scores(["jug", "x"], ["jug", "with jug"], ["direct", "indirect"])
    assert more["exact"] == 0.5, "each type weighs the same"
    assert json.loads(json.dumps(found)) == found


def test_a_whole_benchmark_takes_no_time() -> None:
    n = 1807
    begun = time.perf_counter()
    match_scores(["The camera wearer picked up the wooden jug from it."] * n, ["pick up jug"] * n, ["before"] * n)
    assert time.perf_counter() - begun < 20  # about 0.1 s


@pytest.mark.real
def test_real_actions_are_split_into_their_verb_and_object(upstream: Path) -> None:
    names = ("EASG_unict_master_final", "clip_narrations", "recorded_votes", "recorded_purpose_counts")
    clips, _ = read_clips(*(upstream / f"{name}.json" for name in names))
    actions = {(g.action.verb, g.action.object) for clip in clips for g in clip.graphs if g.action is not None}
    wrong = [(verb, thing) for verb, thing in actions if split_action(f"{verb} {thing}".split())[0] != verb.split()]
    assert len(actions) > 1000 and wrong == []
