"""builder/easg/grounding.py: boxes of the objects that a pair names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.easg.grounding import of_action_question, of_purpose, plain
from builder.easg.questions import Slots
from builder.easg.records import Action, Box, Graph

BOX = Box(0.1, 0.2, 0.3, 0.4)
FRAMES = {"pre": 30, "pnr": 60, "post": 90}


def slots(action: Action, *, pre: str = "", pnr: str = "", post: str = "", neighbour: Action | None = None) -> Slots:
    """A direct question about `action`; each stage shows the comma-separated names."""
    shown = {"pre": pre, "pnr": pnr, "post": post}
    boxes = {stage: {name: BOX for name in names.split(",") if name} for stage, names in shown.items()}
    graph = Graph(2, "g2", FRAMES, (), boxes, action)
    if neighbour is None:
        return Slots("c", graph, action, "direct")
    return Slots("c", graph, action, "before", neighbour=Graph(1, "g1", FRAMES, (), {}, neighbour))


PUT = Action("put", "jug", (("into", "wire_cutter"),))


def named(of: Slots, text: str = "") -> tuple[list[str], str | None]:
    evidence, stage = of_action_question(of, text, "")
    return [item["object"] for item in evidence], stage


def test_evidence_says_graph_frame_seconds_object_and_box() -> None:
    evidence, stage = of_action_question(slots(PUT, pnr="jug"), "What ...?", "jug")
    where = {"graph": "g2", "frame": 60, "seconds": 2.0}
    box = [0.1, 0.2, 0.3, 0.4]
    assert evidence == [{**where, "object": "jug", "box": box, "attribute": None}]
    assert stage == "pnr"


def test_the_point_of_no_return_comes_first_then_before_then_after() -> None:
    assert named(slots(PUT, pre="jug", pnr="jug", post="jug"))[1] == "pnr"
    assert named(slots(PUT, pre="jug", pnr="left_hand", post="jug"))[1] == "pre"
    assert named(slots(PUT, pre="left_hand", post="jug"))[1] == "post"
    assert named(slots(PUT, pnr="left_hand")) == ([], None)


def test_names_match_with_underscores_blanks_and_capitals() -> None:
    assert named(slots(PUT, pnr="Jug,wire cutter,left_hand"))[0] == ["Jug", "wire cutter"]


def test_a_name_that_the_wording_corrects_is_still_found() -> None:
    trey = Action("pick", "trey", (("from", "bowl:1"),))
    assert named(slots(trey, pnr="trey,bowl:1"), "the tray out of another bowl")[0] == ["trey", "bowl:1"]


def test_the_other_bowl_is_not_taken_for_the_bowl() -> None:
    assert named(slots(Action("put", "bowl", ()), pnr="bowl,bowl:1"), "the bowl")[0] == ["bowl"]


def test_the_text_names_objects_as_whole_words_only() -> None:
    shown = slots(Action("cut", "wire", ()), pnr="pan,top_pan")
    assert named(shown, "the panel")[0] == []
    assert named(shown, "The pan?")[0] == ["pan"]
    assert named(shown, "a top pan")[0] == ["pan", "top_pan"]


def test_the_neighbours_object_counts_where_the_asked_graph_shows_it() -> None:
    assert named(slots(PUT, pnr="lid", neighbour=Action("lift", "lid", ())))[0] == ["lid"]


def test_a_purpose_is_grounded_in_every_graph_that_names_the_object() -> None:
    held = slots(Action("hold", "wire cutter", ()), pre="wire_cutter", post="wire_cutter")
    other = slots(Action("hold", "jug", ()), pnr="wire_cutter")
    asked = [(of.graph, of.action) for of in (slots(PUT, pnr="wire_cutter"), held, other)]
    assert [item["frame"] for item in of_purpose("wire_cutter", asked)] == [60, 30]
    assert of_purpose("spoon", asked) == []


@given(name=st.text(max_size=8))
def test_any_name_is_found_where_it_stands_and_an_empty_one_nowhere(name: str) -> None:
    of = slots(Action("cut", "wire", ()))
    of.graph.boxes["pnr"][name] = BOX
    assert named(of, f"x {plain(name)} x")[0] == ([name] if plain(name) else [])
    assert named(of, "")[0] == ([name] if plain(name) == "wire" else [])


@pytest.mark.parametrize("text", ["(cup", "cup.", "[a-z]+", "c++"])
def test_marks_in_names_are_not_patterns(text: str) -> None:
    of = slots(Action("cut", "wire", ()))
    of.graph.boxes["pnr"][text] = BOX
    assert named(of, "cup")[0] == []
    assert named(of, f"the {text} there")[0] == [text]
