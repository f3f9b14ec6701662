"""space/ballots.py: which votes count, and where they are kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gradio", reason="the extra `space` is not installed")

from ballots import LEAST_SECONDS, MOST_AN_HOUR, Ballots, hub

from tests.hub_server import HubServer
from videoqa.arena.folder import Arena, Match
from videoqa.errors import UserError
from videoqa.files import write_json


class Clock:
    """A clock that goes on when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def an_arena(folder: Path, questions: int = 3, players: tuple[str, str] = ("x", "y")) -> Arena:
    lines = [
        Match(
            f"id{n}",
            f"q{n}",
            f"v{n}",
            f"v{n}",
            f"Why {n}?",
            "He runs.",
            "",
            players[0],
            players[1],
            f"{players[0]} says {n}",
            f"{players[1]} says {n}",
        )
        for n in range(questions)
    ]
    folder.mkdir(parents=True)
    names = Match.__dataclass_fields__
    (folder / "pairs.jsonl").write_text("".join(json.dumps({k: getattr(m, k) for k in names}) + "\n" for m in lines))
    config = {"format": 1, "track": "worldqa-open", "data": {}, "players": [{"name": name} for name in players]}
    write_json(folder / "config.json", config)
    return Arena(folder)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ballots(tmp_path: Path, clock: Clock) -> Ballots:
    return Ballots(an_arena(tmp_path / "arena"), clock=clock)


def cast(of: Ballots, clock: Clock, session: str, outcome: str = "a", address: str = "") -> Any:
    of.next(session, address or session)
    clock.now += LEAST_SECONDS
    return of.vote(session, address or session, outcome)


def test_a_vote_is_for_the_answer_that_stood_there(ballots: Ballots, clock: Clock) -> None:
    seen = [cast(ballots, clock, f"visitor {n}", ("a", "b", "tie", "both bad")[n % 4]) for n in range(12)]
    votes = ballots.arena.votes.read()
    assert len(votes) == 12 and len({vote.voter for vote in votes}) == 12
    for shown, vote in zip(seen, votes, strict=True):
        assert shown.names == (("y", "x") if shown.swap else ("x", "y"))
        assert shown.answers[0].startswith(shown.names[0]) and shown.answers[1].startswith(shown.names[1])
        if vote.outcome in ("a", "b"):
            winner = vote.a if vote.outcome == "a" else vote.b
            assert winner == shown.names[0 if seen.index(shown) % 4 == 0 else 1]
    assert {shown.swap for shown in seen} == {True, False}
    assert Counter(vote.question for vote in votes) == dict.fromkeys(("q0", "q1", "q2"), 4), "few votes come first"
    assert not any("visitor" in line for line in (ballots.arena.folder / "votes.jsonl").read_text().splitlines())


def test_a_pair_stays_until_it_is_voted_on_and_comes_once(ballots: Ballots, clock: Clock) -> None:
    first = ballots.next("s", "here")
    assert first is not None and ballots.next("s", "here") is first
    seen = {cast(ballots, clock, "s").match.id for _ in range(3)}
    assert seen == {"id0", "id1", "id2"} and ballots.next("s", "here") is None
    with pytest.raises(UserError, match="no pair is open"):
        ballots.vote("s", "here", "a")


def test_a_new_session_from_one_address_gets_no_second_vote_on_a_pair(ballots: Ballots, clock: Clock) -> None:
    seen = [cast(ballots, clock, f"reload {n}", address="home").match.id for n in range(3)]
    assert sorted(seen) == ["id0", "id1", "id2"] and ballots.next("reload 4", "home") is None
    # two sessions of one address that see the same pair at once: the first vote counts
    other = Ballots(an_arena(ballots.arena.folder.parent / "other", questions=1), clock=clock)
    for session in ("one", "two"):
        assert other.next(session, "home") is not None
    clock.now += LEAST_SECONDS
    other.vote("one", "home", "a")
    with pytest.raises(UserError, match="voted on already"):
        other.vote("two", "home", "a")
    assert len(other.arena.votes.read()) == 1


def test_bots_are_slowed(tmp_path: Path, clock: Clock) -> None:
    ballots = Ballots(an_arena(tmp_path / "arena", questions=MOST_AN_HOUR + 5), clock=clock)
    ballots.next("s", "bot")
    with pytest.raises(UserError, match="too fast"):
        ballots.vote("s", "bot", "a")
    with pytest.raises(UserError, match="a vote is one of a, b, tie, both bad"):
        ballots.vote("s", "bot", "A")
    with pytest.raises(UserError, match="no pair is open"):
        ballots.vote("another session", "bot", "a")
    for n in range(MOST_AN_HOUR):
        cast(ballots, clock, f"s{n % 7}", address="bot")
    with pytest.raises(UserError, match="60 votes an hour"):
        cast(ballots, clock, "s", address="bot")
    clock.now += 3600
    cast(ballots, clock, "s", address="bot")
    assert len(ballots.arena.votes.read()) == MOST_AN_HOUR + 1


def test_one_process_takes_the_votes_of_an_arena(ballots: Ballots) -> None:
    with pytest.raises(UserError, match="another process takes votes"):
        Ballots(ballots.arena)
    ballots.close()
    Ballots(ballots.arena).close()


def test_votes_survive_a_process_that_is_killed_at_once(tmp_path: Path) -> None:
    arena = an_arena(tmp_path / "arena")
    script = (
        "import os, sys; sys.path[:0] = ['space', '.']\n"
        "from ballots import Ballots; from videoqa.arena.folder import Arena\n"
        f"b = Ballots(Arena({str(arena.folder)!r}), clock=iter(range(0, 1000, 10)).__next__)\n"
        "b.next('s', 'x'); b.vote('s', 'x', 'a'); b.next('s', 'x'); os.kill(os.getpid(), 9)"
    )
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    with (arena.folder / "votes.jsonl").open("a") as file:
        file.write('{"voter": "half a li')
    again = Ballots(arena)
    assert len(arena.votes.read()) == 1 and sum(again._counts.values()) == 1
    shown = again.next("other", "y")
    assert shown is not None and shown.match.row != arena.votes.read()[0].question


def test_pairs_with_nothing_to_compare_are_not_shown(tmp_path: Path) -> None:
    arena = an_arena(tmp_path / "arena")
    path = arena.folder / "pairs.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["answer_a"] = ""
    lines[1]["answer_a"] = lines[1]["answer_b"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [match.row for match in Ballots(Arena(arena.folder)).matches] == ["q2"]


def test_votes_go_to_a_dataset_repo_and_come_back_from_it(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import HfApi

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    with HubServer({"org/votes": {}}) as server:
        api = HfApi(endpoint=server.url, token="t")

        def opened(name: str) -> tuple[Ballots, Callable[[], None]]:
            arena = an_arena(tmp_path / name)
            send, scheduler = hub("org/votes", arena, api)
            return Ballots(arena, send, clock=clock), lambda: scheduler.trigger().result()

        first, push = opened("one")
        cast(first, clock, "s", "a")
        cast(first, clock, "s", "tie")
        push()
        (path,) = [path for path in server.files["org/votes"]["main"] if path.startswith("votes/")]
        assert server.files["org/votes"]["main"][path].count(b"\n") == 2
        second, push = opened("two")  # a Space that lost its disk
        assert second.arena.votes.read() == first.arena.votes.read()
        cast(second, clock, "t", "b")
        push()
        assert len([path for path in server.files["org/votes"]["main"] if path.startswith("votes/")]) == 2
