"""Step 2, the uniqueness vote by a language model: which of a clip's actions happens only once.

The model sees the clip's candidates and labels each of them (paper section 3; formats.md section 2 of the public
notebook's details): `unique`; `check`, same verb and object as another but another relation; `repeat`, same verb and
object and the same relation or none. Several runs differ in their seed. One real action and what becomes of it:

    4: {"verb": "put", "object": "jug", "relation": "into cabinet"}  ->  unique, unique, check  ->  score 1/6: kept

An action that a reply forgets has no vote in that reply, and its score is over the votes that it got.
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
from builder.stages import Ask, Said, Stages, read
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
    """The actions as they go into prompts: in one if they fit, else blocks, each pair of blocks in one prompt, so that
    every two actions of the clip stand in at least one prompt together. No real clip (at most 50) is split."""
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

    `received` divides by the votes that the action got; `notebook`, as the public notebook does, by all `readable`
    replies, so that each reply that forgets an action counts as a vote for it. None: excluded, by an unknown label or
    for want of votes.
    """
    given = [label for label in labels if label is not None]
    voters = len(given) if count == "received" else readable
    if UNKNOWN in given or voters == 0:
        return None
    return sum(LABELS[label] for label in given) / (2 * voters)


def vote(clips: Sequence[Clip], stages: Stages, *, runs: int, count: VoteCount, funnel: Counter[str]) -> list[Clip]:
    """The clips with the model's votes in place of recorded ones. Every reply and decision is in the stage `votes`;
    `funnel` learns how many candidates there were and what became of them."""
    asks: list[Ask] = []
    of_clip: dict[str, list[tuple[int, list[int]]]] = {}  # clip -> (which ask, its indexes)
    for clip in clips:
        actions = candidates(clip)
        split = parts(actions) if len(actions) > 1 else []  # a single one has nothing to be compared with
        for number, part in enumerate(split, 1):
            of_clip.setdefault(clip.uid, []).append((len(asks), [index for index, _ in part]))
            room = 256 * -(-(64 + 24 * len(part)) // 256)  # new tokens; in few sizes, for the engine batches by size
            asks.append(Ask(f"{clip.uid} part {number} of {len(split)}", prompt(part), room, START))
    replies = [stages.ask("votes", asks, seed=run, temperature=TEMPERATURE) for run in range(1, runs + 1)]
    return [
        replace(clip, votes=_decide(clip, of_clip.get(clip.uid, []), replies, stages, count, funnel)) for clip in clips
    ]


def _decide(
    clip: Clip,
    asked: Sequence[tuple[int, list[int]]],
    replies: Sequence[Sequence[Said]],
    stages: Stages,
    count: VoteCount,
    funnel: Counter[str],
) -> dict[int, float]:
    labels: dict[int, list[str | None]] = {}
    readable: Counter[int] = Counter()  # replies that could be read and had this action in their prompt, once a run
    for said in replies:
        of_run: dict[int, str] = {}
        seen: set[int] = set()
        for which, indexes in asked:
            given = read_labels(said[which].text or "", indexes, LABELS)
            funnel["vote replies"] += 1
            funnel["vote replies that cannot be read"] += not given
            seen.update(indexes if given else ())
            for index, label in given.items():  # of a clip's parts the one that found the most alike is right
                of_run[index] = max(label, of_run.get(index, label), key=[*LABELS, UNKNOWN].index)
        readable.update(seen)
        for index, _ in candidates(clip):
            labels.setdefault(index, []).append(of_run.get(index))
    scores: dict[int, float] = {}
    for index, action in candidates(clip):
        of_action = labels[index] if asked else []
        score = score_of(of_action, readable[index], count) if asked else 0.0
        votes = sum(label is not None for label in of_action)
        if not asked:
            decision, reason = "kept", "the only action of its clip"
        elif UNKNOWN in of_action:
            decision, reason = "voted out", f"a label that is none of {', '.join(LABELS)}"
        elif score is None:
            decision, reason = "unreadable", f"no vote in {len(of_action)} runs"
        else:
            decision = "kept" if score < THRESHOLD else "voted out"
            over = votes if count == "received" else readable[index]
            reason = f"score {score:.3g} of {over} {'vote' if over == 1 else 'votes'}, kept below {THRESHOLD}"
        if score is not None:
            scores[index] = score
        funnel["candidates"] += 1
        for one in ("voted out", "unreadable", "kept"):
            funnel[f"candidates: {one}"] += one == decision
        stages.decide(
            "votes",
            clip=clip.uid,
            index=index,
            action=", ".join(filter(None, [f"{action.verb} {action.object}", action.indirect])),
            labels=of_action,
            score=score,
            decision=decision,
            reason=reason,
            replies=[said[which].key for said in replies for which, indexes in asked if index in indexes],
        )
    return scores


# -- agreement with recorded votes ------------------------------------------------------------------------------------


def agreement(folder: Path, recorded: Mapping[str, Mapping[str, float]]) -> str:
    """How far the votes of a stages folder keep the same actions as recorded scores {clip: {graph index: score}}.

    Of the actions that both know: the four ways to decide, the share of equal decisions, Cohen's kappa (what is left of
    it when chance is taken off) and the rank correlation of the scores.
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
