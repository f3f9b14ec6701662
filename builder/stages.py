"""The stages of a build on disk: what a language model was asked, what it replied, what was decided, and why.

    STAGES/replies.jsonl     every reply as it came, appended at once; a build that was killed goes on behind the last
    STAGES/prompts.jsonl     the text of each prompt, once, under the hash that the replies name
    STAGES/votes.jsonl       one decision a line; a file like this for every stage that decides

A reply is identified by its model, prompt, sampling and seed. A build that goes on, or starts over with other options,
asks only what has no reply yet. Every build writes its decisions anew, beside the former ones, which they replace when
the build is complete. One real line of votes.jsonl:

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


class Request(NamedTuple):
    """One prompt.

    `item` says what it is about, for people: "4901cdd8-... part 1 of 3". An engine that can force the beginning of a
    reply makes it begin with `start`, which keeps small models from talking around their JSON.
    """

    item: str
    prompt: Conversation
    max_new_tokens: int
    start: str = ""


@dataclass(frozen=True, slots=True)
class StageReply:
    """A reply from the engine or from disk."""

    key: str  # of its line in replies.jsonl
    text: str | None  # without the model's thinking; None: see error
    error: str | None


def _stage_reply(key: str, text: str | None, error: str | None) -> StageReply:
    return StageReply(key, None if text is None else without_thinking(text) or "", error)


class Stages:
    """The folder of a build's stages, and the engine that fills it. `decisions` names the stages that decide.

    Use it with `with`: when the block ends without an error, the new decision files replace the former ones.
    """

    def __init__(self, folder: Path, engine: Engine, decisions: Sequence[str]) -> None:
        self.folder, self.engine, self.decisions = folder, engine, decisions
        texts = {"reply": str, "text": str | None}
        self._replies = Lines(folder / "replies.jsonl", "reply", "text", kinds=texts)
        self._prompts = Lines(folder / "prompts.jsonl", "prompt", kinds={"prompt": str})
        try:
            self._known = {
                line["reply"]: _stage_reply(line["reply"], line["text"], None)
                for line in self._replies.read()
                if line["text"] is not None
            }
            self._written = {line["prompt"] for line in self._prompts.read()}
            for stage in self.decisions:
                self._draft(stage).unlink(missing_ok=True)
        except (OSError, ValueError) as error:  # Lines: a line that is no record
            raise BuildError(f"{folder}: cannot be used for the stages: {error}; give another --stages") from error
        self.prompts_sent = 0  # to the engine, since this object was made

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

    def ask(self, stage: str, requests: Sequence[Request], *, seed: int, temperature: float) -> list[StageReply]:
        """The replies, in the order of `requests`: from disk, or else from the engine, each put on disk at once.

        A prompt that the engine cannot reply to has an error instead; the next build asks it again. Raises BuildError
        where not a single reply comes: the engine is broken, and decisions without replies would look like real ones.
        """
        settings = {"model": self.engine.name, "settings": self.engine.settings}
        lines: dict[str, dict[str, Any]] = {}
        prompts: dict[str, Conversation] = {}
        keys = []
        for request in requests:
            how = {"prompt": prompt_hash(request.prompt)[:16], "seed": seed, "temperature": temperature}
            start = request.start if self.engine.can_force else ""
            how |= {"max_new_tokens": request.max_new_tokens, "start": start, **settings}
            key = short_hash(json.dumps(how, sort_keys=True))
            keys.append(key)
            if key not in self._known and key not in lines:
                lines[key] = {"reply": key, "stage": stage, "item": request.item, **how}
                prompts[key] = request.prompt
        errors: dict[str, StageReply] = {}
        for size, start in sorted({(line["max_new_tokens"], line["start"]) for line in lines.values()}):
            todo = [key for key, line in lines.items() if (line["max_new_tokens"], line["start"]) == (size, start)]
            conversations = [prompts[key] for key in todo]
            for k, reply in self.engine.generate(
                conversations, max_new_tokens=size, temperature=temperature, seed=seed, start=start
            ):
                self._keep(lines[todo[k]], prompts[todo[k]], reply)
                answered = _stage_reply(todo[k], reply.text, reply.error)
                (errors if reply.text is None else self._known)[answered.key] = answered
        self.prompts_sent += len(lines)
        if lines and len(errors) == len(lines):
            raise BuildError(f"{self.engine.name} gives no reply in the stage {stage}: {errors[min(errors)].error}")
        return [self._known[key] if key in self._known else errors[key] for key in keys]

    def _keep(self, line: dict[str, Any], prompt: Conversation, reply: Reply) -> None:
        if line["prompt"] not in self._written:
            self._written.add(line["prompt"])
            self._prompts.append({"prompt": line["prompt"], "messages": list(prompt)})
        outcome = {"text": reply.text, "error": reply.error, "finished": reply.finished, "new_tokens": reply.new_tokens}
        self._replies.append({**line, **outcome})

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
