"""builder/easg/questions.py: which actions are asked, and the counts of the paper."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.easg.annotations import USUAL_NAMES, read_clips
from builder.easg.questions import candidates, kept, questions
from builder.easg.records import Action, Clip, Graph

CUT, PICK, HOLD = Action("cut", "wire", (("with", "cutter"),)), Action("pick", "cup", ()), Action("hold", "bag", ())
PUT = Action("put", "jug", (("on", "table"), ("from", "shelf")))


def clip(*actions: Action | None, votes: dict[int, float] | None = None, pnr: list[int] | None = None) -> Clip:
    """A clip whose graph i does actions[i - 1]; every graph has the vote 0 unless told otherwise."""
    frames = pnr or list(range(100, 100 + 10 * len(actions), 10))
    graphs = tuple(
        Graph(index, f"g{index}", {"pre": frame - 1, "pnr": frame, "post": frame + 1}, (), {}, action)
        for index, (action, frame) in enumerate(zip(actions, frames, strict=True), 1)
    )
    return Clip("c", "v", "val", 10, 10, graphs, votes=votes or dict.fromkeys(range(1, len(graphs) + 1), 0.0))


def ids(of: Clip, **options: Any) -> list[str]:
    return [slots.id.removeprefix("c:") for slots in questions(of, **options)]


def test_an_action_that_occurs_twice_is_no_candidate() -> None:
    assert candidates(clip(PICK, CUT, PICK, None)) == [(2, CUT)]
    other = Action("cut", "wire", (("with", "knife"),))
    assert candidates(clip(CUT, other)) == [(1, CUT), (2, other)], "another relation makes another action"


def test_an_action_is_kept_below_the_threshold_only_and_never_without_a_vote() -> None:
    of = clip(PICK, CUT, PUT)
    assert kept(of, {1: 0.49, 2: 0.5}) == [(1, PICK)]
    assert kept(of, {1: 0.49, 2: 0.5}, threshold=0.6) == [(1, PICK), (2, CUT)]
    assert kept(of, {}) == []


def test_an_action_with_relations_gets_a_question_of_every_type() -> None:
    of = clip(PICK, PUT, HOLD)
    assert ids(of) == ["2:direct", "2:indirect:1", "2:indirect:2", "2:before", "2:after"]
    before, after = questions(of)[-2:]
    assert before.neighbour and before.neighbour.action == PICK
    assert after.neighbour and after.neighbour.action == HOLD


def test_the_first_graph_has_no_before_and_the_last_no_after() -> None:
    assert ids(clip(CUT, PICK)) == ["1:direct", "1:indirect:1", "1:after"]
    assert ids(clip(PICK, CUT)) == ["2:direct", "2:indirect:1", "2:before"]
    assert ids(clip(CUT)) == ["1:direct", "1:indirect:1"]


def test_a_neighbour_that_is_no_action_costs_what_it_costs_in_the_paper() -> None:
    assert ids(clip(None, CUT, PICK)) == ["2:direct", "2:indirect:1"], "before it: both are lost"
    assert ids(clip(PICK, CUT, None)) == ["2:direct", "2:indirect:1", "2:before"], "after it: only after is lost"


def test_of_two_asked_actions_in_one_frame_the_later_stays_unless_all_are_wanted() -> None:
    of = clip(CUT, PUT, PICK, pnr=[100, 100, 100])
    assert ids(of) == ["2:direct", "2:indirect:1", "2:indirect:2", "2:before", "2:after"]
    assert ids(of, same_frame="all")[:3] == ["1:direct", "1:indirect:1", "1:after"]


def test_the_order_of_graphs_survives_the_loss_of_one() -> None:
    cuts = [Action("cut", name, (("with", "knife"),)) for name in "abc"]
    assert [slots.graph.index for slots in questions(clip(*cuts, pnr=[100, 90, 100])) if slots.type == "direct"] == [
        2,
        3,
    ]


def test_a_neighbour_on_the_wrong_side_in_time_is_told() -> None:
    late, early = clip(PICK, CUT, HOLD, pnr=[100, 100, 110]), clip(PICK, CUT, HOLD, pnr=[90, 100, 100])
    assert [slots.type for slots in questions(late) if slots.out_of_order] == ["before"]
    assert [slots.type for slots in questions(early) if slots.out_of_order] == ["after"]


actions = st.sampled_from([None, CUT, PICK, HOLD, PUT, Action("cut", "wire", ())])


@given(
    done=st.lists(st.tuples(actions, st.integers(1, 5), st.sampled_from([0.0, 0.4, 0.5, 1.0])), min_size=1, max_size=9)
)
def test_ids_are_unique_and_the_paper_only_loses_questions(done: list[tuple[Action | None, int, float]]) -> None:
    of = clip(*(action for action, _, _ in done), pnr=[frame for _, frame, _ in done])
    of.votes.update({index: vote for index, (_, _, vote) in enumerate(done, 1)})
    every, last = ids(of, same_frame="all"), ids(of)
    assert len(set(every)) == len(every)
    assert last == [id for id in every if id in set(last)]
    assert bool(last) == bool(every)


@pytest.mark.real
def test_the_real_counts_are_the_papers(upstream: Path) -> None:
    clips, _ = read_clips(**{role: upstream / name for role, name in USUAL_NAMES.items()})
    assert sum(len(candidates(of)) for of in clips) == 2379
    assert sum(len(kept(of, of.votes)) for of in clips) == 994
    last = [slots for of in clips for slots in questions(of)]
    assert Counter(slots.type for slots in last) == {"direct": 284, "indirect": 315, "before": 272, "after": 268}
    assert Counter(slots.type for slots in last if slots.out_of_order) == {"before": 7, "after": 2}
    assert len({slots.clip for slots in last}) == 138
    every = [slots for of in clips for slots in questions(of, "all")]
    assert Counter(slots.type for slots in every) == {"direct": 287, "indirect": 319, "before": 275, "after": 271}
    assert len({slots.id for slots in every}) == 1152
