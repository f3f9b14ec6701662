"""Step 2, the uniqueness vote by a language model: which of a clip's actions happen only once.

The model sees the clip's candidates and labels each of them (paper section 3; formats.md section 2 of the public
notebook's details): `unique`; `check`, same verb and object as another but another relation; `repeat`, same verb and
object and the same relation or none. Several runs differ in their seed. One real action and what becomes of it:

    4: {"verb": "put", "object": "jug", "relation": "into cabinet"}  ->  unique, unique, check  ->  score 1/6: kept

An action that a reply forgets gets no vote from it; its score is over the votes that it did get.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Literal

from builder.easg.questions import THRESHOLD, candidates
from builder.easg.records import Action, Clip
from builder.errors import BuildError
from builder.replies import START, UNKNOWN, read_labels, shorten
from builder.stages import Request, StageReply, Stages, read
from videoqa.engines import Conversation, Message

LABELS = {"unique": 0, "check": 1, "repeat": 2}  # with their weight in the score
TEMPERATURE = 0.7  # the paper's
VoteCount = Literal["received", "notebook"]

# -- the prompt -------------------------------------------------------------------------------------------------------

PROMPT = Template("""\
A person wears a camera on the head. Below is a numbered list of things that this person does in one video. Every line
is one action: its verb, its object and, for some, the relation to further things.

$actions

Give every action one label. Compare it with all other actions of the list; words of the same meaning count as the same.
"unique": no other action has this verb with this object.
"check": another action has this verb with this object, but a different relation.
"repeat": another action has this verb with this object, with the same relation or without any.

Reply with nothing but one JSON object, its keys the numbers and its values the labels, for all $count actions:
{"$first": "...", ...}""")

EXAMPLE = (
    (2, Action("open", "tent", ()), "repeat"),
    (5, Action("hang", "towel", (("on", "hook"),)), "check"),
    (6, Action("strike", "match", ()), "unique"),
    (8, Action("hang up", "towel", (("on", "rope"),)), "check"),
    (9, Action("unzip", "tent", ()), "repeat"),
)
BLOCK = 30  # actions, and characters of their lines; a prompt holds two blocks: about 2,500 tokens at most
BLOCK_CHARS = 3000


def prompt(actions: Sequence[tuple[int, Action]]) -> Conversation:
    """The question about these (graph index, action), behind an example with its answer."""
    example = json.dumps({str(index): label for index, _, label in EXAMPLE})
    return [
        _turn([(index, action) for index, action, _ in EXAMPLE]),
        {"role": "assistant", "content": example},
        _turn(actions),
    ]


def _turn(actions: Sequence[tuple[int, Action]]) -> Message:
    lines = "\n".join(f"{index}: {_line(action)}" for index, action in actions)
    text = PROMPT.substitute(actions=lines, count=len(actions), first=actions[0][0])
    return {"role": "user", "content": text}


def parts(actions: Sequence[tuple[int, Action]]) -> list[list[tuple[int, Action]]]:
    """The actions of each prompt: all of them if they fit, else two blocks for every pair of blocks.

    So every two actions of the clip are together in at least one prompt. No real clip (at most 50 actions) is split.
    """
    blocks: list[list[tuple[int, Action]]] = [[]]
    chars = 0
    for index, action in actions:
        size = len(_line(action)) + len(f"{index}: ")
        if len(blocks[-1]) == BLOCK or (blocks[-1] and chars + size > BLOCK_CHARS):
            blocks.append([])
            chars = 0
        blocks[-1].append((index, action))
        chars += size
    if len(blocks) == 1:
        return blocks
    return [one + two for i, one in enumerate(blocks) for two in blocks[i + 1 :]]


def _line(action: Action) -> str:
    words = {"verb": action.verb, "object": action.object, "relation": action.indirect}
    return json.dumps({k: shorten(v) for k, v in words.items() if v}, ensure_ascii=False)


# -- the vote ---------------------------------------------------------------------------------------------------------


def score_of(labels: Sequence[str | None], readable: int, count: VoteCount = "received") -> float | None:
    """Uniqueness score in 0..1 of an action from its label in each run (None: it got none), 0 for sure unique.

    `received` divides by the votes that the action got; `notebook` by all `readable` replies, as the public notebook
    does, so that a reply that forgets the action counts as a vote for it. None: excluded, because a label is unknown or
    there are no votes.
    """
    received = [label for label in labels if label is not None]
    voters = len(received) if count == "received" else readable
    if UNKNOWN in received or voters == 0:
        return None
    return sum(LABELS[label] for label in received) / (2 * voters)


def vote(clips: Sequence[Clip], stages: Stages, *, runs: int, count: VoteCount, funnel: Counter[str]) -> list[Clip]:
    """The clips with the model's votes instead of recorded ones.

    Every reply and decision is in the stage `votes`. How many candidates there were, and what became of them, is added
    to `funnel`.
    """
    requests: list[Request] = []
    of_clip: dict[str, list[tuple[int, list[int]]]] = {}  # clip -> (which ask, its indexes)
    for clip in clips:
        actions = candidates(clip)
        split = parts(actions) if len(actions) > 1 else []  # a single one has nothing to be compared with
        for number, part in enumerate(split, 1):
            of_clip.setdefault(clip.uid, []).append((len(requests), [index for index, _ in part]))
            room = 256 * -(-(64 + 24 * len(part)) // 256)  # new tokens; in few sizes, for the engine batches by size
            requests.append(Request(f"{clip.uid} part {number} of {len(split)}", prompt(part), room, START))
    replies = [stages.ask("votes", requests, seed=run, temperature=TEMPERATURE) for run in range(1, runs + 1)]
    return [
        replace(clip, votes=_decide(clip, of_clip.get(clip.uid, []), replies, stages, count, funnel)) for clip in clips
    ]


def _decide(
    clip: Clip,
    prompts: Sequence[tuple[int, list[int]]],
    replies: Sequence[Sequence[StageReply]],
    stages: Stages,
    count: VoteCount,
    funnel: Counter[str],
) -> dict[int, float]:
    """{graph index: score} of the clip. `prompts` are its prompts, as (place in a run's replies, graph indexes)."""
    labels: dict[int, list[str | None]] = {index: [] for index, _ in candidates(clip)}
    readable: Counter[int] = Counter()  # runs in which a reply about this action could be read
    for run in replies:
        for index, label in _labels_of_run(prompts, run, readable, funnel).items():
            labels[index].append(label)
    scores: dict[int, float] = {}
    for index, action in candidates(clip):
        score = score_of(labels[index], readable[index], count) if prompts else 0.0
        if score is not None:
            scores[index] = score
        voters = sum(label is not None for label in labels[index]) if count == "received" else readable[index]
        decision, reason = (
            _decision(labels[index], score, voters) if prompts else ("kept", "the only action of its clip")
        )
        funnel["candidates"] += 1
        for one in ("voted out", "unreadable", "kept"):
            funnel[f"candidates: {one}"] += one == decision
        stages.decide(
            "votes",
            clip=clip.uid,
            index=index,
            action=", ".join(filter(None, [f"{action.verb} {action.object}", action.indirect])),
            labels=labels[index],
            score=score,
            decision=decision,
            reason=reason,
            replies=[run[place].key for run in replies for place, indexes in prompts if index in indexes],
        )
    return scores


def _labels_of_run(
    prompts: Sequence[tuple[int, list[int]]], run: Sequence[StageReply], readable: Counter[int], funnel: Counter[str]
) -> dict[int, str | None]:
    """{graph index: label, None where it got none} of one run; `readable` counts the actions of readable replies."""
    labels: dict[int, str | None] = {index: None for _, indexes in prompts for index in indexes}
    answered: set[int] = set()
    strength = [*LABELS, UNKNOWN].index
    for place, indexes in prompts:
        given = read_labels(run[place].text or "", indexes, LABELS)
        funnel["vote replies"] += 1
        funnel["vote replies that cannot be read"] += not given
        answered.update(indexes if given else ())
        for index, label in given.items():  # of several parts, the one that saw the most similar action is right
            labels[index] = max(label, labels[index] or label, key=strength)
    readable.update(answered)
    return labels


def _decision(labels: Sequence[str | None], score: float | None, voters: int) -> tuple[str, str]:
    """What becomes of an action, and why."""
    if UNKNOWN in labels:
        return "voted out", f"a label that is none of {', '.join(LABELS)}"
    if score is None:
        return "unreadable", f"no vote in {len(labels)} runs"
    reason = f"score {score:.3g} of {voters} {'vote' if voters == 1 else 'votes'}, kept below {THRESHOLD}"
    return ("kept" if score < THRESHOLD else "voted out"), reason


# -- agreement with recorded votes ------------------------------------------------------------------------------------


def agreement(folder: Path, recorded: Mapping[str, Mapping[str, float]]) -> str:
    """How well the votes of a stages folder agree with recorded scores {clip: {graph index: score}}, as text.

    For the actions that both have: how many each keeps, the share of equal decisions, Cohen's kappa (the same,
    corrected for chance) and the rank correlation of the scores.
    """
    from scipy.stats import spearmanr

    if not folder.is_dir():
        raise BuildError(f"{folder}: no such folder; --stages of a build names it, or OUT.stages")
    lines = [
        v
        for v in read(folder, "votes", "clip", "index", "decision", "score")
        if str(v["index"]) in recorded.get(v["clip"], {})
    ]
    if not lines:
        raise BuildError(f"{folder}: no votes that the recorded ones know of")
    theirs = [recorded[v["clip"]][str(v["index"])] for v in lines]
    pairs = Counter((v["decision"] == "kept", score < THRESHOLD) for v, score in zip(lines, theirs, strict=True))
    n = len(lines)
    equal = (pairs[True, True] + pairs[False, False]) / n
    ours_kept, theirs_kept = ((pairs[True, True] + pairs[key]) / n for key in ((True, False), (False, True)))
    chance = ours_kept * theirs_kept + (1 - ours_kept) * (1 - theirs_kept)
    kappa = "undefined" if chance == 1 else f"{(equal - chance) / (1 - chance):.2f}"
    scored = [
        (v["score"], score) for v, score in zip(lines, theirs, strict=True) if v["score"] is not None and score <= 1
    ]
    varied = all(len(set(side)) > 1 for side in zip(*scored, strict=True)) if scored else False
    rank = f"{spearmanr(*zip(*scored, strict=True)).statistic:.2f}" if varied else "undefined"
    return (
        f"votes against the recorded ones, {n:,} actions of {len({v['clip'] for v in lines}):,} clips:\n"
        f"{pairs[True, True]:7,}  kept by both\n{pairs[False, False]:7,}  kept by neither\n"
        f"{pairs[True, False]:7,}  kept here only\n{pairs[False, True]:7,}  kept there only\n"
        f"{equal:7.0%}  equal decisions; kappa {kappa}; rank correlation of {len(scored):,} scores {rank}"
    )
