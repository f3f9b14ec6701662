"""People's votes on the pairs of an arena: who sees which pair next, what counts as a vote, where votes are kept.

A vote is put on disk in the arena's votes.jsonl at once (append only, one writing process), and, where a dataset repo
is named and a token is there, in a file of this process that is committed to the repo every few minutes.

Against double votes and bots: a pair is voted on once by a session, and once from an address; only the pair that the
session was shown can be voted on, not sooner than a person could have read it; an address has so many votes an hour.
Which answer stands first is drawn for each session and pair. Addresses are never kept, only their salted hashes, in
memory. The players' names leave the server with the answer to the vote, not before it.
"""

from __future__ import annotations

import contextlib
import fcntl
import secrets
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from videoqa.arena.folder import Arena, Match, vote_of
from videoqa.arena.votes import OUTCOMES, SEED, Vote, Votes
from videoqa.errors import UserError
from videoqa.files import Lines, short_hash

LEAST_SECONDS = 2.0  # from seeing a pair to the vote on it
MOST_AN_HOUR = 60  # votes from one address
MOST_OPEN = 5_000  # sessions that are remembered; the oldest goes first
HOUR_S = 3600.0
COMMIT_MINUTES = 5.0
IN_REPO = "votes"  # folder of the dataset repo


@dataclass(frozen=True, slots=True)
class Shown:
    """A pair as one session sees it."""

    match: Match
    swap: bool  # whether b's answer stands as A
    since: float  # of the clock

    @property
    def answers(self) -> tuple[str, str]:
        """What stands as A and as B."""
        sides = self.match.answer_a, self.match.answer_b
        return sides[::-1] if self.swap else sides

    @property
    def names(self) -> tuple[str, str]:
        """The players behind A and B; for after the vote."""
        sides = self.match.a, self.match.b
        return sides[::-1] if self.swap else sides


class Ballots:
    """The votes on one arena. Raises UserError where another process takes its votes already."""

    def __init__(
        self,
        arena: Arena,
        send: Callable[[Vote], None] = lambda vote: None,
        clock: Callable[[], float] = time.monotonic,
        seed: int = SEED,
    ) -> None:
        self.arena, self._send, self._clock, self._seed = arena, send, clock, seed
        self._writer = (arena.folder / ".votes.lock").open("w")
        try:
            fcntl.flock(self._writer, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._writer.close()
            raise UserError(f"{arena.folder}: another process takes votes on this arena") from error
        self._salt = secrets.token_hex(16)
        self._lock = threading.Lock()
        self.matches = [match for match in arena.matches if match.whole]
        by_pair = {_about(m.row, m.a, m.b): m.id for m in self.matches}
        self._counts: Counter[str] = Counter()  # votes, by match id
        for vote in arena.votes.read():
            if (id := by_pair.get(_about(vote.question, vote.a, vote.b))) is not None:
                self._counts[id] += 1
        self._open: OrderedDict[str, Shown] = OrderedDict()
        self._voted: dict[str, set[str]] = {}  # match ids, by voter and by address
        self._times: dict[str, deque[float]] = {}  # of the votes of the last hour, by address

    def close(self) -> None:
        """Let another process take the votes."""
        self._writer.close()

    def voter(self, session: str) -> str:
        """What a session is called in the file: nothing that leads back to it."""
        return short_hash(f"{self._salt}\n{session}")

    def next(self, session: str, address: str) -> Shown | None:
        """The pair that this session sees next: one that has few votes; None when it has voted on all. A pair that is
        open stays until it is voted on."""
        with self._lock:
            if (open_ := self._open.get(session)) is not None:
                return open_
            gone = self._voted.get(self.voter(session), set()) | self._voted.get(self._hashed(address), set())
            waiting = [match for match in self.matches if match.id not in gone]
            if not waiting:
                return None
            match = min(waiting, key=lambda m: (self._counts[m.id], self._drawn(session, m, "turn")))
            shown = Shown(match, self._drawn(session, match, "side") < "8", self._clock())
            self._open[session] = shown
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
            return shown

    def vote(self, session: str, address: str, outcome: str) -> Shown:
        """Count a vote on the pair that the session sees, `outcome` as on the page. Raises UserError for what is no
        vote."""
        with self._lock:
            shown, now, place = self._open.get(session), self._clock(), self._hashed(address)
            if outcome not in OUTCOMES:
                raise UserError(f"a vote is one of {', '.join(OUTCOMES)}")
            if shown is None:
                raise UserError("no pair is open: ask for the next one")
            if now - shown.since < LEAST_SECONDS:
                raise UserError("that was too fast to have read both answers")
            times = self._times.setdefault(place, deque())
            while times and now - times[0] >= HOUR_S:
                times.popleft()
            if len(times) >= MOST_AN_HOUR:
                raise UserError(f"from one address {MOST_AN_HOUR} votes an hour are counted: come back later")
            who = self.voter(session)
            if shown.match.id in self._voted.get(place, set()) | self._voted.get(who, set()):
                self._open.pop(session)
                raise UserError("this pair was voted on already: one vote counts; ask for the next one")
            vote = vote_of(shown.match, who, outcome, shown.swap)
            self.arena.votes.cast(vote)
            for name in (who, place):
                self._voted.setdefault(name, set()).add(shown.match.id)
            times.append(now)
            self._counts[shown.match.id] += 1
            self._open.pop(session)
        self._send(vote)
        return shown

    def _hashed(self, address: str) -> str:
        return short_hash(f"{self._salt}\naddress\n{address}")

    def _drawn(self, session: str, match: Match, what: str) -> str:
        return short_hash(f"{self._seed}\n{session}\n{match.id}\n{what}")


def _about(row: str, a: str, b: str) -> tuple[str, frozenset[str]]:
    return row, frozenset((a, b))


def hub(repo: str, arena: Arena, api: Any, every: float = COMMIT_MINUTES) -> tuple[Callable[[Vote], None], Any]:
    """A function that keeps votes in a dataset repo as well, and the scheduler that commits them. Votes that are in the
    repo come into the arena's own file first, so that a Space that lost its disk has all of them."""
    from huggingface_hub import CommitScheduler, snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError

    with contextlib.suppress(RepositoryNotFoundError):
        folder = snapshot_download(
            repo, repo_type="dataset", allow_patterns=f"{IN_REPO}/*.jsonl", endpoint=api.endpoint, token=api.token
        )
        for path in sorted(Path(folder).glob(f"{IN_REPO}/*.jsonl")):
            for vote in Votes(path).read():
                with contextlib.suppress(UserError):  # it is there already
                    arena.votes.cast(vote)
    place = arena.folder / IN_REPO
    place.mkdir(exist_ok=True)
    scheduler = CommitScheduler(
        repo_id=repo,
        repo_type="dataset",
        folder_path=place,
        path_in_repo=IN_REPO,
        every=every,
        private=True,
        hf_api=api,
    )
    # a file of this process alone: what another one sent is never overwritten
    lines = Lines(place / f"{datetime.now(UTC):%Y-%m-%d}-{secrets.token_hex(4)}.jsonl")

    def send(vote: Vote) -> None:
        with scheduler.lock:
            lines.append(asdict(vote))

    return send, scheduler
