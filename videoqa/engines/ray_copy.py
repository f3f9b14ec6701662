"""What runs in a copy of an engine on a Ray cluster (videoqa/engines/ray.py): an actor, and what it says of itself."""

from __future__ import annotations

import functools
import hashlib
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from videoqa.engines import ChoiceLogprobs, Engine, Reply, open_engine
from videoqa.errors import UserError

PACKAGES = ("easg-bench", "transformers", "torch", "vllm")  # copies with other versions give other numbers
PACKAGE = Path(__file__).parents[1]

Task = Callable[[Engine, list[Any]], Iterator[tuple[int, Any]]]  # what a copy does with a block: index and result


@dataclass(frozen=True, slots=True)
class About:
    """What a copy says of its engine."""

    name: str
    settings: dict[str, Any]
    can_choose: bool
    can_follow: bool
    can_force: bool
    versions: dict[str, str]
    node: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A UserError in a copy, in words: it is to reach the user as one line."""

    text: str


class Copy:
    """An actor: one engine. Faults that a user can mend come back as values, others as Ray's errors."""

    def open(self, engine: str, local: dict[str, Any], folder: str) -> About | Refusal:
        """Load the model. Relative paths are those of the command's folder, where this node has it."""
        if Path(folder).is_dir():
            os.chdir(folder)
        try:
            self._engine = made = open_engine(engine, **local)
        except (UserError, OSError) as error:
            return Refusal(f"{error} (on node {socket.gethostname()})")
        about = made.name, made.settings, made.can_choose, made.can_follow, made.can_force
        return About(*about, versions(), _node())

    def work(self, task: Task, items: list[Any]) -> Iterator[tuple[int, Any]]:
        try:
            for index, result in task(self._engine, items):  # noqa: UP028 - Ray sends values in
                yield index, result
        except (UserError, OSError) as error:
            yield -1, Refusal(str(error))


def generate(how: dict[str, Any], engine: Engine, conversations: list[Any]) -> Iterator[tuple[int, Reply]]:
    return engine.generate(conversations, **how)


def choose(how: dict[str, Any], engine: Engine, conversations: list[Any]) -> Iterator[tuple[int, ChoiceLogprobs]]:
    return engine.choice_logprobs(conversations, **how)


@functools.cache
def versions() -> dict[str, str]:
    """What makes numbers, of this process: the packages, and our code, which may differ under one version."""
    made = {}
    for package in PACKAGES:
        try:
            made[package] = version(package)
        except PackageNotFoundError:
            made[package] = "none"
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(f"{path.relative_to(PACKAGE)}\n".encode() + path.read_bytes())
    return made | {"the code of easg-bench": digest.hexdigest()[:12]}


def _node() -> str:
    import ray

    return ray.util.get_node_ip_address()


def difference(one: About, other: About) -> str | None:
    """What two copies say otherwise of themselves; None where nothing."""
    mine, theirs = ({"name": a.name, **a.settings, **a.versions} for a in (one, other))
    for key in sorted(mine.keys() | theirs.keys()):
        if mine.get(key) != theirs.get(key):
            return f"{key} is {mine.get(key)} on node {one.node} and {theirs.get(key)} on node {other.node}"
    return None
