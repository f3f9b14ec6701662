"""Any other engine in several copies on a Ray cluster: the copies share the rows.

    ray:4*vllm:Qwen/Qwen3-8B?address=10.0.0.1:6379      4 copies, a GPU each, on whatever nodes have one
    ray:2*vllm:ID?tensor_parallel_size=4                2 copies of 4 GPUs; the GPUs of a copy are always of one node
    ray:8*build/models/smollm2?cpus=4                   8 copies on CPUs; without a cluster Ray is started here

Results come back row by row, so the run folder keeps its one writer and a stopped run goes on by the same command. What
the engine says of itself is what its copies say, so its results and its verdicts are those of one process (up to the
last digits of probabilities: rows stand in other batches).

Rows go out in blocks that share the beginnings of their prompts, or by clip where a whole way of asking is sent, frames
and all (`spread`: videos are then read by the copy, and no picture travels). A copy that dies is started again, and the
rows that it had not answered are asked again, in blocks half as large. A row that is alone when its copy dies, twice,
is the row that kills it: that is its error.
"""

from __future__ import annotations

import functools
import math
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from videoqa.engines import ChoiceLogprobs, Conversation, Reply
from videoqa.engines.chat import parts
from videoqa.engines.prefixes import plan_groups
from videoqa.engines.ray_cluster import Head, connect, reason
from videoqa.engines.ray_copy import About, Copy, Refusal, Task, choose, difference, generate, versions
from videoqa.engines.streak import FEW, Streak
from videoqa.errors import UserError

LEAST, MOST = 8, 256  # rows of a block
ROUNDS = 4  # blocks for each copy where there are rows enough, so that fast copies do more
ALONE = 2  # times that a row may be alone when its copy dies
STARTS = 3  # starts in a row, for each copy, that may fail
PATIENCE_S = 30.0  # without anything new, before it is said what is waited for
OURS = ("easg-bench", "the code of easg-bench")  # of `versions`: as they are here; the others as they are in all copies


class RayEngine:
    """`copies` of the engine that `model` names with its `options` (`local`: what else open_engine takes).

    `address`: HOST:PORT of a cluster's head; None: what RAY_ADDRESS says, or the cluster that runs on this machine, or
    a new one on it. `gpus` and `cpus` are what one copy takes of its node (None: the GPUs that its tensor_parallel_size
    and data_parallel_size ask for, where the cluster has any). Every node has easg-bench installed and sees the model's
    folder and the videos at the same paths.
    """

    def __init__(
        self,
        model: str,
        copies: int,
        options: Mapping[str, Any],
        *,
        local: Mapping[str, Any],
        address: str | None = None,
        gpus: float | None = None,
        cpus: float = 1.0,
    ) -> None:
        connect(address)
        if gpus is None:
            import ray

            needs = local.get("device") != "cpu" and ray.cluster_resources().get("GPU", 0) > 0
            parallel = math.prod(int(options.get(f"{one}_parallel_size", 1)) for one in ("tensor", "data"))
            gpus = float(parallel) if needs else 0.0
        self._pool = _Pool(model, copies, {**local, "options": dict(options)}, gpus, cpus)
        about = self._pool.about()
        self.name, self.settings = about.name, about.settings
        self.can_choose, self.can_follow, self.can_force = about.can_choose, about.can_follow, about.can_force

    def generate(
        self,
        conversations: Sequence[Conversation],
        *,
        max_new_tokens: int,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 42,
        start: str = "",
        stop: Sequence[str] = (),
    ) -> Iterator[tuple[int, Reply]]:
        """See Engine.generate."""
        how = {"max_new_tokens": max_new_tokens, "temperature": temperature, "top_p": top_p, "seed": seed}
        task = functools.partial(generate, {**how, "start": start, "stop": tuple(stop)})
        return self.spread(task, conversations, alike(conversations), lambda error: Reply(None, error))

    def choice_logprobs(
        self,
        conversations: Sequence[Conversation],
        choices: Sequence[str],
        *,
        start: str = "",
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        """See Engine.choice_logprobs."""
        how = {"choices": list(choices), "start": start, "temperature": temperature, "top_p": top_p}
        task = functools.partial(choose, how)
        return self.spread(task, conversations, alike(conversations), lambda error: ChoiceLogprobs(None, error))

    def spread(
        self, task: Task, items: Sequence[Any], groups: Sequence[Sequence[int]], failed: Callable[[str], Any]
    ) -> Iterator[tuple[int, Any]]:
        """What `task` gives for each item, as it becomes known, with its index. Items of one group stay together where
        a group fits into a block. `failed` makes the result of an item whose copy died of it."""
        size = min(MOST, max(LEAST, math.ceil(len(items) / (ROUNDS * self._pool.copies))))
        work = _Work(deque(blocks(groups, size)), items, failed)
        return self._pool.run(task, work)


def alike(conversations: Sequence[Conversation]) -> list[list[int]]:
    """The conversations that share their beginnings, told by their words."""
    known: dict[str, int] = {}

    def words(conversation: Conversation) -> list[int]:
        texts = [part["text"] for m in conversation for part in parts(m) if part["type"] == "text"]
        return [known.setdefault(word, len(known)) for text in texts for word in text.split(" ")]

    return [sorted(group.rows) for group in plan_groups([words(one) for one in conversations])]


def blocks(groups: Sequence[Sequence[int]], size: int) -> list[list[int]]:
    """The groups, in the order of their first items, put together to blocks of at most `size` items; a larger group is
    cut."""
    filled: list[list[int]] = []
    for group in sorted(map(list, groups)):
        if filled and len(filled[-1]) + len(group) <= size:
            filled[-1] += group
        else:
            filled += [group[at : at + size] for at in range(0, len(group), size)]
    return filled


@dataclass
class _Work:
    """What is to be done, and what is known of the items that copies died of."""

    waiting: deque[list[int]]
    items: Sequence[Any]
    failed: Callable[[str], Any]
    deaths: Counter[int] = field(default_factory=Counter)  # of an item: how often it was alone with a dying copy
    streak: Streak = field(default_factory=Streak)

    def again(self, left: list[int], why: str) -> Iterator[tuple[int, Any]]:
        """Ask the items that a dead copy left behind again; an item that killed its copy is over, with its result.
        Raises UserError where copies die of one item after the other."""
        if len(left) > 1:
            half = len(left) // 2
            self.waiting.extendleft([left[half:], left[:half]])
            return
        for index in left:
            self.deaths[index] += 1
            if self.deaths[index] < ALONE:
                self.waiting.appendleft([index])
                continue
            error = f"the copy of the model that was asked this row died, {ALONE} times: {why}"
            if self.streak.count(error) >= FEW:
                raise UserError(self.streak.told)
            yield index, self.failed(error)


# -- the copies -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Member:
    """A copy as the pool knows it."""

    actor: Any
    ready: Any  # what its `open` will give
    about: About | None = None  # None: it is starting


class _Pool:
    """So many copies of an engine; those that die are replaced."""

    def __init__(self, engine: str, copies: int, local: dict[str, Any], gpus: float, cpus: float) -> None:
        import ray

        self.copies = copies
        self._opening = (engine, local, str(Path.cwd()))
        self._told = f"{engine} ({gpus:g} GPUs, {cpus:g} CPUs)"
        needs = {"GPU": gpus, "CPU": cpus}
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if not any(all(node.get(name, 0) >= amount for name, amount in needs.items()) for node in nodes):
            has = "; ".join(f"{n.get('GPU', 0):g} GPUs, {n.get('CPU', 0):g} CPUs" for n in nodes)
            raise UserError(f"no node of the Ray cluster can hold a copy of {self._told}; the nodes have {has}")
        # the same queue for all: Ray puts an actor, and so all GPUs of a copy, on one node
        self._class: Any = ray.remote(num_gpus=gpus, num_cpus=cpus, max_restarts=0, max_task_retries=0)(Copy)
        self._head = Head(ray.get_runtime_context().gcs_address)
        self._members: list[_Member] = []
        self._first: About | None = None
        self._failed_starts = 0

    def about(self) -> About:
        """What the copies say of themselves: starts them and waits for the first."""
        self._fill()
        while self._first is None:
            self._wait([])
        return self._first

    def run(self, task: Task, work: _Work) -> Iterator[tuple[int, Any]]:
        """See RayEngine.spread."""
        import ray

        if not work.waiting:
            return
        sent = ray.put(task)
        running: dict[Any, tuple[_Member, dict[int, int]]] = {}  # stream of results: its copy, the items not yet done
        try:
            while work.waiting or running:
                self._fill()
                busy = {id(member) for member, _ in running.values()}
                for member in self._members:
                    if work.waiting and member.about is not None and id(member) not in busy:
                        block = work.waiting.popleft()
                        options = member.actor.work.options(num_returns="streaming")
                        stream = options.remote(sent, [work.items[index] for index in block])
                        running[stream] = member, dict(enumerate(block))
                for stream in self._wait(list(running)):
                    member, left = running[stream]
                    try:
                        place, result = ray.get(next(stream))
                    except StopIteration:
                        del running[stream]
                        if left:  # nobody may take them for rows that were asked
                            raise RuntimeError(f"{len(left)} rows came back without a result") from None
                    except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
                        del running[stream]
                        self._members.remove(member)
                        why = reason(error)
                        _tell(f"a copy on {_place(member)} died ({why}); {len(left)} rows are asked again")
                        yield from work.again(sorted(left.values()), why)
                    else:
                        if isinstance(result, Refusal):
                            raise UserError(result.text)
                        if place not in left:
                            raise RuntimeError(f"a copy gave a result of its row {place} twice, or of a row of others")
                        work.streak.count(None)
                        yield left.pop(place), result
        finally:  # a copy that is still at work would keep the next call waiting
            for member, _ in running.values():
                if member in self._members:
                    self._members.remove(member)
                    if not self._head.gone:  # or Ray would wait for it
                        ray.kill(member.actor)

    def _fill(self) -> None:
        """Start what is missing of the copies."""
        while len(self._members) < self.copies:
            actor = self._class.remote()
            self._members.append(_Member(actor, actor.open.remote(*self._opening)))

    def _wait(self, streams: list[Any]) -> list[Any]:
        """The streams that have a result; waits until there is one or until a copy has started or failed to."""
        import ray

        starting = {member.ready: member for member in self._members if member.about is None}
        done: list[Any] = []
        began = time.monotonic()
        said = False
        while not done:
            done, _ = ray.wait([*streams, *starting], num_returns=1, timeout=1.0)
            self._head.look()
            if not done and not said and not streams and time.monotonic() - began > PATIENCE_S:
                said = True
                _tell(f"{len(starting)} copies of {self._told} are loading or wait for a node with room")
        for ref in done:
            if ref in starting:
                self._started(starting[ref])
        return [ref for ref in done if ref not in starting]

    def _started(self, member: _Member) -> None:
        import ray

        try:
            about = ray.get(member.ready)
        except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
            self._members.remove(member)
            self._failed_starts += 1
            why = reason(error)
            if "No module named 'videoqa'" in str(error):
                raise UserError("easg-bench is not installed on every node of the Ray cluster") from error
            if self._failed_starts >= STARTS * self.copies:
                raise UserError(f"no copy of {self._told} can be started: {why}") from error
            _tell(f"a copy died while it was starting ({why}); it is started again")
            return
        if isinstance(about, Refusal):
            raise UserError(about.text)
        self._failed_starts = 0
        for package, mine in versions().items():
            if package in OURS and mine != (theirs := about.versions[package]):
                raise UserError(
                    f"{package} is {mine} here and {theirs} on node {about.node}: install the same on all nodes"
                )
        if self._first is None:
            self._first = about
        elif (unlike := difference(self._first, about)) is not None:
            raise UserError(f"the copies of {self._told} are not the same: {unlike}")
        member.about = about
        ready = [one.about for one in self._members if one.about is not None]
        if len(ready) == self.copies or about is self._first:
            nodes = len({one.node for one in ready})
            _tell(f"{len(ready)} of {self.copies} copies of {self._told} ready on {nodes} node{'s' * (nodes > 1)}")


def _place(member: _Member) -> str:
    return member.about.node if member.about is not None else "a node"


def _tell(text: str) -> None:
    tqdm.write(f"ray: {text}", file=sys.stderr)
