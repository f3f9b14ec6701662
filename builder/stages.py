"""The stages of a build on disk: what a language model was asked, what it said, and what was decided on it and why.

    STAGES/replies.jsonl     every reply as it came, appended at once; a build that was killed goes on behind the last
    STAGES/prompts.jsonl     the text of each prompt, once, under the hash that the replies name
    STAGES/votes.jsonl       one decision a line; likewise wording.jsonl, purpose.jsonl, generic.jsonl, attributes.jsonl

A reply is known by its model, prompt, sampling and seed, so a build goes on or starts over with no more bookkeeping:
what was asked is not asked again, whatever else changed. Decisions follow from the replies; they are written anew by
every build, beside the former ones, and take their names when the build is whole. One real line of votes.jsonl:

    {"clip": "4901cdd8-...", "index": 4, "action": "put jug, into cabinet", "labels": ["unique", null], "score": 0.0,
     "decision": "kept", "reason": "score 0 of 1 vote is below 0.5", "replies": ["0a1b2c3d4e5f", "1b2c3d4e5f60"]}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from builder.errors import BuildError
from videoqa.engines import Conversation, Engine, Reply
from videoqa.files import Lines, short_hash
from videoqa.reply import without_thinking
from videoqa.store import prompt_hash


class Ask(NamedTuple):
    """One prompt. `item` says for people what it is about: "4901cdd8-... part 1 of 3"; `start` is what the reply is
    made to begin with, where the engine can do that: it keeps small models from talking around their JSON."""

    item: str
    prompt: Conversation
    max_new_tokens: int
    start: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """A reply from the engine or from disk."""

    key: str  # of its line in replies.jsonl
    text: str | None  # without the model's thinking; None: see error
    error: str | None


def _said(key: str, text: str | None, error: str | None) -> Said:
    return Said(key, None if text is None else without_thinking(text) or "", error)


class Stages:
    """The folder of a build's stages and the engine that fills it. Use with `with`: leaving it without an error gives
    the decision files their names."""

    def __init__(self, folder: Path, engine: Engine, decisions: Sequence[str]) -> None:
        self.folder, self.engine, self.decisions = folder, engine, decisions
        texts = {"reply": str, "text": str | None}
        self._replies = Lines(folder / "replies.jsonl", "reply", "text", kinds=texts)
        self._prompts = Lines(folder / "prompts.jsonl", "prompt", kinds={"prompt": str})
        try:
            self._known = {
                line["reply"]: _said(line["reply"], line["text"], None)
                for line in self._replies.read()
                if line["text"] is not None
            }
            self._written = {line["prompt"] for line in self._prompts.read()}
            for stage in self.decisions:
                self._draft(stage).unlink(missing_ok=True)
        except (OSError, ValueError) as error:  # Lines: a line that is no record
            raise BuildError(f"{folder}: cannot be used for the stages: {error}; give another --stages") from error
        self.asked = 0  # of the engine itself, since this object was made

    def __enter__(self) -> Stages:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            for stage in self.decisions:
                if self._draft(stage).exists():
                    self._draft(stage).replace(self.folder / f"{stage}.jsonl")
                else:
                    (self.folder / f"{stage}.jsonl").unlink(missing_ok=True)

    def ask(self, stage: str, asks: Sequence[Ask], *, seed: int, temperature: float) -> list[Said]:
        """The replies, in the order of `asks`: those on disk, the others from the engine, each put on disk at once.

        A prompt that the engine cannot reply to has its error; it is asked again by the next build. Raises BuildError
        where not one reply comes: then the engine is broken, and decisions on nothing would look like decisions.
        """
        settings = {"model": self.engine.name, "settings": self.engine.settings}
        lines: dict[str, dict[str, Any]] = {}
        prompts: dict[str, Conversation] = {}
        keys = []
        for ask in asks:
            how = {"prompt": prompt_hash(ask.prompt)[:16], "seed": seed, "temperature": temperature}
            start = ask.start if self.engine.can_force else ""
            how |= {"max_new_tokens": ask.max_new_tokens, "start": start, **settings}
            key = short_hash(json.dumps(how, sort_keys=True))
            keys.append(key)
            if key not in self._known and key not in lines:
                lines[key] = {"reply": key, "stage": stage, "item": ask.item, **how}
                prompts[key] = ask.prompt
        errors: dict[str, Said] = {}
        for size, start in sorted({(line["max_new_tokens"], line["start"]) for line in lines.values()}):
            todo = [key for key, line in lines.items() if (line["max_new_tokens"], line["start"]) == (size, start)]
            conversations = [prompts[key] for key in todo]
            for k, reply in self.engine.generate(
                conversations, max_new_tokens=size, temperature=temperature, seed=seed, start=start
            ):
                self._keep(lines[todo[k]], prompts[todo[k]], reply)
                said = _said(todo[k], reply.text, reply.error)
                (errors if reply.text is None else self._known)[said.key] = said
        self.asked += len(lines)
        if lines and len(errors) == len(lines):
            raise BuildError(f"{self.engine.name} gives no reply in the stage {stage}: {errors[min(errors)].error}")
        return [self._known[key] if key in self._known else errors[key] for key in keys]

    def _keep(self, line: dict[str, Any], prompt: Conversation, reply: Reply) -> None:
        if line["prompt"] not in self._written:
            self._written.add(line["prompt"])
            self._prompts.append({"prompt": line["prompt"], "messages": list(prompt)})
        said = {"text": reply.text, "error": reply.error, "finished": reply.finished, "new_tokens": reply.new_tokens}
        self._replies.append({**line, **said})

    def decide(self, stage: str, **decision: Any) -> None:
        """Put one decision on disk."""
        path = self._draft(stage)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="ascii") as file:
            file.write(json.dumps(decision) + "\n")

    def _draft(self, stage: str) -> Path:
        return self.folder / f".{stage}.jsonl.new"


def read(folder: Path, name: str, *keys: str) -> list[dict[str, Any]]:
    """The lines of one file of a stages folder, each with these keys; [] where there is no such file."""
    try:
        return Lines(folder / f"{name}.jsonl", *keys).read()
    except (OSError, ValueError) as error:
        raise BuildError(f"{folder}: {error}") from error
