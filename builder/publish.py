"""A dataset repo -> the Hub: a plan first, then one commit, the card last in it.

    publish easg-bench to ORG/NAME
      default             1,807 rows
      ...
      new      data/direct-1ef279b571f5.parquet      70.9 kB
      gone     data/direct-0d6c7c8a3f52.parquet
      same     statistics.png                       169.3 kB

The commit is based on the revision that the plan was made for. It succeeds as a whole or not at all, and fails if
somebody changed the repo in the meantime. Where nothing differs there is no commit.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    HFValidationError,
    RepositoryNotFoundError,
)
from huggingface_hub.hf_api import RepoFile

from builder.card import PLACE
from builder.errors import BuildError
from builder.repo import MARK, OWN

CARD = "README.md"
State = Literal["new", "changed", "same", "gone"]


@dataclass(frozen=True)
class Plan:
    """What publishing would change. `base` is the revision on the Hub; None: the repo does not exist yet."""

    repo: str
    rows: Mapping[str, int]  # config -> rows
    files: dict[str, State]  # by path, data first, the card last
    sizes: dict[str, int]
    base: str | None

    @property
    def changes(self) -> dict[str, State]:
        return {path: state for path, state in self.files.items() if state != "same"}

    def __str__(self) -> str:
        lines = [f"publish to {self.repo}" + ("" if self.base else " (not there yet: will be made, private)")]
        lines += [f"  {config:<20}{rows:>9,} rows" for config, rows in self.rows.items()]
        for path, state in self.files.items():
            size = f"{self.sizes[path] / 1000:>12,.1f} kB" if path in self.sizes else ""
            lines.append(f"  {state:<8} {path:<50}{size}")
        total = sum(self.sizes[path] for path in self.changes if path in self.sizes)
        lines.append(f"  to upload: {total / 1000:,.1f} kB" if self.changes else "  nothing differs: nothing to do")
        return "\n".join(lines)


def plan(folder: Path, repo: str, rows: Mapping[str, int], api: HfApi) -> Plan:
    """The differences between the builder's files in `folder` and those on the Hub.

    Raises BuildError where the repo cannot be read, or holds data that this builder did not make.
    """
    if MARK not in (folder / CARD).read_text("utf-8", "replace"):
        raise BuildError(f"{folder}: holds a dataset that this builder did not make")
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    local = {name: path for name, path in paths.items() if OWN.fullmatch(name)}
    with _refusals_as_lines(repo):
        base, remote = _remote(repo, api)
        theirs = {name for name in remote if OWN.fullmatch(name)}
        if theirs - {CARD} and not _ours(repo, base, remote, api):
            raise BuildError(f"{repo}: holds a dataset that this builder did not make; choose another name")
    states: dict[str, State] = {}
    for name in sorted(local.keys() | theirs, key=lambda name: (name == CARD, name)):
        if name not in local:
            states[name] = "gone"
        elif name not in remote:
            states[name] = "new"
        else:
            states[name] = "same" if _same(content(local[name], repo), remote[name]) else "changed"
    return Plan(repo, rows, states, {name: len(content(path, repo)) for name, path in local.items()}, base)


def publish(folder: Path, planned: Plan, api: HfApi) -> str | None:
    """Carry the plan out in one commit. Returns its address; None where nothing differs."""
    if not planned.changes:
        return None
    with _refusals_as_lines(planned.repo):
        base = planned.base
        if base is None:
            api.create_repo(planned.repo, repo_type="dataset", private=True, exist_ok=True)
            base = api.repo_info(planned.repo, repo_type="dataset").sha
        operations: list[CommitOperationAdd | CommitOperationDelete] = [
            CommitOperationDelete(path)
            if state == "gone"
            else CommitOperationAdd(path, content(folder / path, planned.repo))
            for path, state in planned.changes.items()
        ]
        message = f"{planned.rows.get('default', 0):,} questions"
        done = api.create_commit(
            planned.repo, operations, commit_message=message, repo_type="dataset", parent_commit=base
        )
    return done.commit_url


def _remote(repo: str, api: HfApi) -> tuple[str | None, dict[str, RepoFile]]:
    """The newest revision and its files."""
    try:
        base = api.repo_info(repo, repo_type="dataset").sha
    except RepositoryNotFoundError:
        return None, {}
    tree = api.list_repo_tree(repo, recursive=True, revision=base, repo_type="dataset")
    return base, {item.path: item for item in tree if isinstance(item, RepoFile)}


def _ours(repo: str, base: str | None, remote: Mapping[str, RepoFile], api: HfApi) -> bool:
    if CARD not in remote:
        return False
    with tempfile.TemporaryDirectory() as folder:
        card = api.hf_hub_download(repo, CARD, repo_type="dataset", revision=base, local_dir=folder)
        return MARK in Path(card).read_text("utf-8", "replace")


def content(path: Path, repo: str) -> bytes:
    """What is published of a file: the card with the repo's name in the example of how it is loaded."""
    bytes_ = path.read_bytes()
    return bytes_.replace(PLACE.encode(), repo.encode()) if path.name == CARD else bytes_


def _same(bytes_: bytes, remote: RepoFile) -> bool:
    if remote.lfs:
        return remote.lfs.sha256 == hashlib.sha256(bytes_).hexdigest()
    return remote.blob_id == hashlib.sha1(b"blob %d\0" % len(bytes_) + bytes_).hexdigest()


@contextmanager
def _refusals_as_lines(repo: str) -> Iterator[None]:
    """Turns the Hub's errors into a BuildError."""
    try:
        yield
    except EntryNotFoundError as error:
        raise BuildError(f"{repo}: changed while it was read; try again ({error})") from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        hint = {
            401: "; log in with `hf auth login`, or set HF_TOKEN",
            403: "; the token may not write there",
            404: "; there is no such name, or the token may not see it",
            412: "; somebody changed it meanwhile, plan again",
        }.get(status, "")
        reason = error.server_message or str(error).splitlines()[0]
        raise BuildError(f"{repo}: the Hub refuses ({status}): {reason}{hint}") from error
    except (httpx.HTTPError, OSError) as error:
        raise BuildError(f"{repo}: the Hub cannot be reached: {error}") from error
    except HFValidationError as error:  # a name that the Hub does not allow
        raise BuildError(f"{repo}: {error}") from error
