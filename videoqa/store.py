"""The verdict store: what one judge said of which prompt, for all runs. A prompt is rated once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from videoqa.engines import Conversation
from videoqa.errors import UserError
from videoqa.files import Lines, short_hash
from videoqa.judge import Judge
from videoqa.reply import Verdict
from videoqa.scorer import Item

VERDICT_KINDS = {
    **{"id": str, "of": str, "judge": str, "status": str, "explanation": str, "raw": str, "matched": str},
    **dict.fromkeys(("score", "most_likely", "mass"), float | int | None),
    "probabilities": list | None,
    "choice": int | None,
}
STORE_FORMAT = 1


def line_of(verdict: Verdict) -> dict[str, Any]:
    """The verdict as a record for a line."""
    return {k: v for k, v in asdict(verdict).items() if v is not None or k == "score"}


def verdict_of(line: dict[str, Any], where: str) -> Verdict:
    """The verdict in a line, which stands at `where`. Raises UserError for probabilities that are none."""
    fields = {k: line[k] for k in Verdict.__dataclass_fields__ if k in line}
    if (shares := fields.get("probabilities")) is not None:
        if not all(isinstance(p, int | float) and not isinstance(p, bool) and 0 <= p <= 1 for p in shares):
            raise UserError(f"{where}: probabilities cannot be {str(shares)[:100]}")
        fields["probabilities"] = tuple(shares)
    return Verdict(**fields)


def check_scale(verdict: Verdict, values: Sequence[float], where: str) -> None:
    """Raise UserError for a verdict from a file that a judge who gives these scores, in rising order, cannot have
    given: the file was changed, or is another judge's."""
    for score in (verdict.score, verdict.most_likely):
        if score is not None and not values[0] <= score <= values[-1]:
            raise UserError(f"{where}: {score:g} is no score of this judge, whose are {values[0]:g} to {values[-1]:g}")
    if verdict.probabilities is not None and len(verdict.probabilities) != len(values):
        raise UserError(f"{where}: {len(verdict.probabilities)} probabilities, but this judge has {len(values)} scores")


def default_store() -> Path:
    """Beside what else is kept in the Hugging Face cache folder."""
    from huggingface_hub.constants import HF_HOME

    return Path(HF_HOME) / "easg-bench" / "verdicts"


class VerdictStore:
    """What one judge said of which prompt, for all runs. Only what could be read is kept: an error or an unreadable
    reply may have been a passing fault of a server, and is asked again by the next run. `folder`: None or "" is the
    usual one, default_store."""

    def __init__(self, folder: str | Path | None, judge: str) -> None:
        self.path = Path(folder or default_store()) / f"{short_hash(judge)}.jsonl"
        self._lines = Lines(self.path, kinds=VERDICT_KINDS | {"prompt": str})
        self._known: dict[str, Verdict] = {}
        for number, line in enumerate(self._lines.read(), 1):
            if line.get("format", STORE_FORMAT) != STORE_FORMAT:
                raise UserError(
                    f"{self.path} was written by a newer easg-bench (format {line['format']}, this one reads "
                    f"{STORE_FORMAT}): update, or give another --store"
                )
            if "prompt" not in line and line.get("judge", judge) != judge:
                raise UserError(f"{self.path} holds verdicts of another judge: {line['judge']}")
            if "prompt" in line and (
                not {"score", "status"} <= set(line) or (line["status"] == "ok" and line["score"] is None)
            ):
                raise UserError(f"{self.path}, record {number}: a verdict needs score and status")
            if "prompt" in line and line.get("status") == "ok":  # older versions kept unreadable replies as well
                self._known[line["prompt"]] = verdict_of(line, f"{self.path}, record {number}")
        if not self.path.exists():
            self._lines.append({"format": STORE_FORMAT, "judge": judge})

    def get(self, prompt: str) -> Verdict | None:
        """The verdict on the prompt with this hash, if there is one."""
        return self._known.get(prompt)

    def put(self, prompt: str, verdict: Verdict) -> None:
        """Keep a verdict that could be read."""
        if verdict.status == "ok" and verdict.score is not None and prompt not in self._known:
            self._known[prompt] = verdict
            self._lines.append({"prompt": prompt, **line_of(verdict)})


def prompt_hash(conversation: Conversation) -> str:
    """Identifies a prompt by its whole text."""
    text = json.dumps(list(conversation), ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def rate_once(judge: Judge, items: Sequence[Item], store: VerdictStore | None) -> Iterator[tuple[int, Verdict]]:
    """Judge.rate, but each different prompt is asked once, and not at all if the store knows it."""
    conversations: dict[str, Conversation] = {}
    waiting: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        conversation = judge.prompt(item)
        if conversation is None:
            yield index, judge.empty
            continue
        key = prompt_hash(conversation)
        if store is not None and (verdict := store.get(key)) is not None:
            check_scale(verdict, judge.rubric.values, str(store.path))
            yield index, verdict
        else:
            conversations[key] = conversation
            waiting.setdefault(key, []).append(index)
    keys = list(waiting)
    for k, verdict in judge.rate_prompts([conversations[key] for key in keys]):
        if store is not None:
            store.put(keys[k], verdict)
        yield from ((index, verdict) for index in waiting[keys[k]])
