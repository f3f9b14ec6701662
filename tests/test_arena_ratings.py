"""videoqa/arena: pairs, votes that count once, Elo and Bradley-Terry against others' sums."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from videoqa.arena.ratings import bradley_terry, correlation, elo, elo_ratings, matrix
from videoqa.arena.votes import OUTCOMES, Vote, Votes, pairs
from videoqa.errors import UserError
from videoqa.scores import Scored


def votes(*rows: tuple[str, str, str]) -> list[Vote]:
    """Votes of one person, each on a question of its own: (a, b, outcome)."""
    return [Vote("anna", f"q{n:04}", *row) for n, row in enumerate(rows)]


def many(seed: int, count: int, strength: dict[str, float]) -> list[Vote]:
    """Votes as they fall between models of these strengths (in points), a tenth of them ties."""
    drawn = random.Random(seed)
    rows = []
    for _ in range(count):
        a, b = drawn.sample(sorted(strength), 2)
        wins = drawn.random() < 1 / (1 + 10 ** ((strength[b] - strength[a]) / 400))
        outcome = "tie" if drawn.random() < 0.05 else "both bad" if drawn.random() < 0.05 else "a" if wins else "b"
        rows.append((a, b, outcome))
    return votes(*rows)


# -- Elo --------------------------------------------------------------------------------------------------------------


def test_a_win_between_equals_moves_two_points_of_four() -> None:
    assert elo(votes(("x", "y", "a"))) == {"x": 1002.0, "y": 998.0}
    assert elo(votes(("x", "y", "b"))) == {"x": 998.0, "y": 1002.0}
    assert elo(votes(("x", "y", "tie"))) == elo(votes(("x", "y", "both bad"))) == {"x": 1000.0, "y": 1000.0}


OUTCOME = st.tuples(st.permutations("wxyz"), st.sampled_from(OUTCOMES))


@given(st.lists(OUTCOME, max_size=40))
def test_elo_is_that_of_an_independent_computation(rows: list[tuple[list[str], str]]) -> None:
    cast = votes(*[(two[0], two[1], outcome) for two, outcome in rows])
    weight = {model: 10 ** (1000 / 400) for vote in cast for model in (vote.a, vote.b)}  # 10 to the rating / 400
    for vote in cast:
        share = weight[vote.a] / (weight[vote.a] + weight[vote.b])
        got = {"a": 1.0, "b": 0.0}.get(vote.outcome, 0.5)
        weight[vote.a] *= 10 ** (4 * (got - share) / 400)
        weight[vote.b] *= 10 ** (4 * (share - got) / 400)
    wanted = {model: 400 * math.log10(value) for model, value in weight.items()}
    assert elo(cast) == pytest.approx(wanted, abs=1e-6)
    assert sum(elo(cast).values()) == pytest.approx(1000 * len(wanted))


def test_the_order_of_the_votes_moves_elo_and_not_its_mean_over_orders() -> None:
    cast = many(1, 300, {"x": 1100, "y": 1000, "z": 900})
    backwards = cast[::-1]
    assert elo(cast) != elo(backwards)
    assert elo_ratings(cast, orders=20) == elo_ratings(backwards, orders=20)
    assert all(one.interval and one.interval[0] <= one.value <= one.interval[1] for one in elo_ratings(cast, orders=20))


def test_nobody_is_rated_without_votes() -> None:
    assert elo_ratings([]) == [] and elo([]) == {}


# -- Bradley-Terry ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 10), st.integers(0, 10))
def test_two_models_are_apart_by_the_logarithm_of_their_odds(won: int, lost: int, ties: int, bad: int) -> None:
    cast = votes(*[("x", "y", "a")] * won, *[("y", "x", "a")] * lost, *[("x", "y", "tie")] * ties)
    cast += [Vote("bob", f"q{n}", "x", "y", "both bad") for n in range(bad)]
    half = (ties + bad) / 2
    if not (won + half and lost + half):
        if cast:
            with pytest.raises(UserError, match="there are no finite ratings"):
                bradley_terry(cast, resamples=0)
        return
    of = {rating.model: rating.value for rating in bradley_terry(cast, resamples=0)}
    assert of["x"] - of["y"] == pytest.approx(400 * math.log10((won + half) / (lost + half)), abs=1e-3)
    assert of["x"] + of["y"] == pytest.approx(2000)


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_several_models_have_the_strengths_of_another_algorithm(seed: int) -> None:
    cast = many(seed, 400, {"w": 1150, "x": 1050, "y": 950, "z": 850})
    names = "wxyz"
    points: Counter[tuple[str, str]] = Counter()
    for vote in cast:
        got = {"a": 1.0, "b": 0.0}.get(vote.outcome, 0.5)
        points[vote.a, vote.b] += got  # type: ignore[assignment]
        points[vote.b, vote.a] += 1 - got  # type: ignore[assignment]
    worth = dict.fromkeys(names, 1.0)
    for _ in range(3000):  # minorization-maximization (Hunter 2004)
        worth = {
            i: sum(points[i, j] for j in names if j != i)
            / sum((points[i, j] + points[j, i]) / (worth[i] + worth[j]) for j in names if j != i)
            for i in names
        }
        mean = math.fsum(map(math.log, worth.values())) / len(names)
        worth = {name: value / math.exp(mean) for name, value in worth.items()}
    of = {rating.model: rating.value for rating in bradley_terry(cast, resamples=0)}
    assert of == pytest.approx({name: 1000 + 400 * math.log10(value) for name, value in worth.items()}, abs=1e-2)


def test_intervals_lie_around_the_ratings_and_the_order_of_votes_does_not_matter() -> None:
    cast = many(2, 600, {"x": 1100, "y": 1000, "z": 900})
    ratings = bradley_terry(cast, resamples=100)
    assert [rating.model for rating in ratings] == ["x", "y", "z"]
    assert all(one.interval and one.interval[0] < one.value < one.interval[1] for one in ratings)
    again = bradley_terry(cast[::-1], resamples=100)
    assert [one.value for one in again] == pytest.approx([one.value for one in ratings], abs=1e-6)
    assert sum(one.votes for one in ratings) == 2 * len(cast)
    assert sum(one.wins + one.ties / 2 for one in ratings) == len(cast)


def test_votes_on_one_clip_are_resampled_together() -> None:
    one_clip = [Vote("anna", f"q{n}", "x", "y", "a" if n % 3 else "b", "clip") for n in range(60)]
    assert all(rating.interval is None for rating in bradley_terry(one_clip, resamples=50))

    def width(of: list[Vote]) -> float:
        low, high = bradley_terry(of, resamples=200)[0].interval or (0.0, 0.0)
        return high - low

    # ten questions of a clip that all say the same are no more than one
    alone = [Vote("anna", f"q{n}", "x", "y", "a" if n % 3 else "b") for n in range(30)]
    tenfold = [Vote(f"voter {k}", v.question, "x", "y", v.outcome, v.question) for v in alone for k in range(10)]
    assert width(tenfold) == pytest.approx(width(alone))


def test_few_votes_have_ratings_without_an_interval() -> None:
    ratings = bradley_terry(votes(("x", "y", "a"), ("x", "y", "b"), ("x", "y", "a")), resamples=100)
    assert [rating.model for rating in ratings] == ["x", "y"] and all(one.interval is None for one in ratings)


def test_models_that_were_never_compared_with_the_others_have_no_ratings() -> None:
    apart = votes(("w", "x", "tie"), ("y", "z", "tie"))
    with pytest.raises(UserError, match=r"no vote, not even a tie, goes to . or . against"):
        bradley_terry(apart)
    with pytest.raises(UserError, match="goes to y against x"):
        bradley_terry(votes(("x", "y", "a")))


# -- correlation ------------------------------------------------------------------------------------------------------


def scored(**scores: Sequence[float | None]) -> dict[str, list[Scored]]:
    """Rows of models: their scores by question, each on a clip of its own."""
    return {
        model: [Scored(f"q{n:04}", f"q{n:04}", "open", score) for n, score in enumerate(of)]
        for model, of in scores.items()
    }


def test_ranks_agree_or_contradict_the_scores() -> None:
    cast = many(2, 600, {"x": 1100, "y": 1000, "z": 900})
    high, middle, low = [1.0, 0.5] * 300, [0.5, 0.5] * 300, [0.5, 0.0] * 300
    found = correlation(cast, scored(x=high, y=middle, z=low, other=high), resamples=50)
    assert found is not None and (found.spearman, found.kendall, found.models) == (1.0, 1.0, 3)
    assert found.spearman_interval == (1.0, 1.0) and found.kendall_interval == (1.0, 1.0)
    reversed_ = correlation(cast, scored(x=low, y=middle, z=high), resamples=0)
    assert reversed_ is not None and (reversed_.spearman, reversed_.kendall) == (-1.0, -1.0)
    assert reversed_.spearman_interval is None
    assert correlation(cast, scored(x=high, y=low)) is None
    assert correlation(cast, scored(x=high, y=high, z=high)) is None
    assert correlation(cast, scored(x=high, y=middle, z=[None])) is None


def test_ranks_are_those_of_scipy_and_of_the_types_on_their_own_scale() -> None:
    cast = many(5, 900, {"w": 1150, "x": 1050, "y": 950, "z": 850})
    means = {"w": 0.3, "x": 0.9, "y": 0.6, "z": 0.1}
    found = correlation(cast, scored(**{model: [mean] * 900 for model, mean in means.items()}), resamples=0)
    of = {rating.model: rating.value for rating in bradley_terry(cast, resamples=0)}
    both = [of[m] for m in means], list(means.values())
    assert found is not None
    assert (found.spearman, found.kendall) == pytest.approx((spearmanr(*both).statistic, kendalltau(*both).statistic))
    # a type that even the ground truth gets little for counts as much as one that it gets much for
    rows = {m: [Scored("1", "c", "hard", h), Scored("2", "c", "easy", e)] for m, h, e in
            (("w", 2.0, 1.0), ("x", 1.0, 3.0), ("y", 0.5, 4.0), ("z", 0.1, 5.0))}  # fmt: skip
    plain = correlation(cast, rows, resamples=0)
    scaled = correlation(cast, rows, {"hard": 2.0, "easy": 100.0}, resamples=0)
    assert plain is not None and scaled is not None and plain.spearman == -1.0 and scaled.spearman == 1.0


def test_models_without_finite_ratings_are_ranked_by_their_points() -> None:
    cast = votes(("x", "y", "a"), ("y", "z", "a"), ("x", "z", "a"))
    found = correlation(cast, scored(x=[0.9], y=[0.5], z=[0.1]))
    assert found is not None and found.spearman == 1.0 and found.spearman_interval is None


# -- who beat whom ----------------------------------------------------------------------------------------------------


@given(st.lists(OUTCOME, max_size=40))
def test_a_win_of_the_one_is_a_loss_of_the_other(rows: list[tuple[list[str], str]]) -> None:
    cast = votes(*[(two[0], two[1], outcome) for two, outcome in rows])
    of = matrix(cast)
    for one, others in of.items():
        for other, record in others.items():
            back = of[other][one]
            assert (record.wins, record.losses) == (back.losses, back.wins)
            assert (record.ties, record.both_bad) == (back.ties, back.both_bad)
            if record.votes:
                assert record.share is not None and back.share is not None
                assert record.share + back.share == pytest.approx(1)
    assert sum(record.votes for others in of.values() for record in others.values()) == 2 * len(cast)


# -- pairs and votes --------------------------------------------------------------------------------------------------


ANSWERS = {model: {f"q{n}": f"{model} says {n}" for n in range(60)} for model in "uvwxyz"}


def test_each_question_has_so_many_different_pairs_and_every_pair_comes_equally_often() -> None:
    made = pairs(ANSWERS, rounds=5)
    assert Counter(pair.question for pair in made) == dict.fromkeys(ANSWERS["u"], 5)
    twos = Counter(frozenset((pair.a, pair.b)) for pair in made)
    assert len(twos) == 15 and set(twos.values()) == {20}
    assert len({(pair.question, frozenset((pair.a, pair.b))) for pair in made}) == len(made)
    sides = Counter((pair.a, pair.b) for pair in made)
    assert set(sides.values()) == {10}
    assert pairs(ANSWERS, rounds=5) == made and pairs(ANSWERS, rounds=5, seed=1) != made


def test_models_without_an_answer_are_in_no_pair() -> None:
    answers = {"x": {"q": "a"}, "y": {}, "z": {"q": "b", "r": "c"}}
    (pair,) = pairs(answers, rounds=5)
    assert (pair.question, {pair.a, pair.b}) == ("q", {"x", "z"})


def test_without_a_number_of_rounds_all_pairs_meet() -> None:
    assert len(pairs(ANSWERS)) == 60 * 15


def test_votes_are_kept_and_a_second_one_is_refused_on_whatever_side(tmp_path: Path) -> None:
    of = Votes(tmp_path / "votes.jsonl")
    first = Vote("anna", "q", "x", "y", "a")
    of.cast(first)
    with pytest.raises(UserError, match="anna has voted on y and x at question q already"):
        of.cast(Vote("anna", "q", "y", "x", "tie"))
    others = [
        Vote("bob", "q", "x", "y", "b"),
        Vote("anna", "r", "x", "y", "b"),
        Vote("anna", "q", "x", "z", "both bad"),
    ]
    for vote in others:
        of.cast(vote)
    assert Votes(tmp_path / "votes.jsonl").read() == [first, *others]


def test_of_two_votes_that_were_written_at_once_the_first_counts(tmp_path: Path) -> None:
    line = {"voter": "anna", "question": "q", "a": "x", "b": "y", "outcome": "a"}
    lines = [line, line | {"a": "y", "b": "x"}]
    (tmp_path / "votes.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert Votes(tmp_path / "votes.jsonl").read() == [Vote("anna", "q", "x", "y", "a")]


def test_what_is_no_vote_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="outcome 'both'; allowed are a, b, tie, both bad"):
        Vote("anna", "q", "x", "y", "both")
    with pytest.raises(UserError, match="x against itself"):
        Vote("anna", "q", "x", "x", "a")
    (tmp_path / "votes.jsonl").write_text('{"voter": "anna", "question": 3, "a": "x", "b": "y", "outcome": "a"}\n')
    with pytest.raises(UserError, match="line 1: question cannot be 3"):
        Votes(tmp_path / "votes.jsonl").read()
