"""Step 2, the uniqueness vote by a language model: which of a clip's actions happens only once.

The model sees the clip's candidates and labels each of them (paper section 3; formats.md section 2 of the public
notebook's details): `unique`; `check`, same verb and object as another but another relation; `repeat`, same verb and
object and the same relation or none. Several runs differ in their seed. One real action and what becomes of it:

    4: {"verb": "put", "object": "jug", "relation": "into cabinet"}  ->  unique, unique, check  ->  score 1/6: kept

An action that a reply forgets has no vote in that reply, and its score is over the votes that it got.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any, Literal

from builder.easg.questions import THRESHOLD, candidates
from builder.easg.records import Action, BuildError, Clip
from builder.stages import Ask, Said, Stages, read
from videoqa.engines import Conversation, Message

LABELS = {"unique": 0, "check": 1, "repeat": 2}  # with their weight in the score
UNKNOWN = "unknown"  # a label was given, but none of these: it excludes its action
START = '{"'  # of a reply
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
LONGEST = 120  # characters of a verb, object or relation


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


def shorten(text: str) -> str:
    """Cut to what a prompt can carry; no real name is that long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


# -- the reader of its reply ------------------------------------------------------------------------------------------

_LABEL_KEYS = (
    *("label", "vote", "class", "classification", "category", "status", "uniqueness"),
    *("verdict", "answer", "tag", "result", "value", "type"),
)
_NUMBER_KEYS = ("index", "id", "number", "no", "action", "action_number", "action_id", "item", "pair", "key")
_ECHOED = ("verb", "object", "relation", "relations", "indirect", "question")  # of the prompt, given back
_NO_LABEL = ("label", "null", "none", "nan", "n/a", "true", "false")
_NUMBER = re.compile(r"(?:(?:action|index|item|number|pair|no)[\W_]{0,2}|#)?\s*(\d{1,9})", re.I)
_DEEPEST = 20  # levels of brackets; no reply has more, and the repair of 50,000 open ones takes 14 s
_MARKS = " \t\r\n\"'`*_.,;:!()[]{}<>|#"


def read_labels(text: str, numbers: Collection[int], labels: Collection[str]) -> dict[int, str]:
    """{number: label} as far as a reply gives labels; {} where it cannot be read.

    Taken from the JSON in the reply, however broken, then from what looks like a list in prose. Of several labels for
    a number the later counts. UNKNOWN is a label that was really given and is none of `labels`; a number, a null, the
    beginning of a label where the reply was cut, or the prompt's own text given back is no label at all.
    """
    text = unicodedata.normalize("NFKC", text)
    found: dict[int, str] = {}
    rest = []
    end = 0
    for start, stop, data in json_in(text):
        if "{" in text[start:stop]:  # "repeat: [4]" is left for the lines
            rest.append(text[end:start])
            end = stop
        try:
            found.update(_walk(data, numbers, labels))
        except RecursionError:
            continue
    plain = " ".join([*rest, text[end:]])
    return {**_from_lines(plain, numbers, labels), **_from_pairs(text, numbers, labels), **found}


def json_in(text: str) -> Iterator[tuple[int, int, Any]]:
    """(start, end, value) of the JSON objects and lists in a text, repaired where they need it."""
    import json_repair

    at = 0
    while opening := re.compile(r"[{\[]").search(text, at):
        start = opening.start()
        at, depth = _closing(text, start)
        try:
            data = json.loads(text[start:at])
        except (ValueError, RecursionError):
            data = json_repair.loads(text[start:at]) if depth <= _DEEPEST else None
        yield start, at, data


def _closing(text: str, start: int) -> tuple[int, int]:
    """Where the bracket that opens at `start` closes, or the end of the text; and how deep the brackets go in between.
    Quotes are no help: models break them."""
    depth = deepest = 0
    for match in re.compile(r"[{}\[\]]").finditer(text, start):
        depth += 1 if match[0] in "{[" else -1
        deepest = max(deepest, depth)
        if depth == 0:
            return match.end(), deepest
    return len(text), deepest


def _walk(data: Any, numbers: Collection[int], labels: Collection[str]) -> dict[int, str]:
    found: dict[int, str] = {}
    if isinstance(data, list):
        words = [_word(item, labels) for item in data if isinstance(item, str)]
        if len(words) == len(data) == len(numbers) and None not in words and {*words} & {*labels}:
            data = [dict(zip(map(str, numbers), data, strict=True))]  # labels alone, in the order of the actions
        for item in data:
            found.update(_walk(item, numbers, labels))
    if not isinstance(data, dict):
        return found
    named = {str(key).strip().casefold(): value for key, value in data.items()}
    number = next((named[key] for key in _NUMBER_KEYS if _numbers(named.get(key), numbers)), None)
    if number is not None and (label := _label(data, labels)) is not None:  # {"index": 3, "label": "unique"}
        return dict.fromkeys(_numbers(number, numbers), label)
    for key, value in data.items():
        if of := _numbers(key, numbers):
            if (label := _label(value, labels)) is not None:
                found.update(dict.fromkeys(of, label))
        elif (label := _word(str(key), labels)) in labels and label is not None:  # {"unique": [1, 4], "repeat": 2}
            listed = value if isinstance(value, list) else [value]
            found.update({n: label for item in listed for n in _numbers(item, numbers)})
        elif isinstance(value, dict | list):
            found.update(_walk(value, numbers, labels))
    return found


def _numbers(value: Any, numbers: Collection[int]) -> list[int]:
    """The numbers that a key or a value names: 3, "3", "Action 3", "#3", "3.", "3, 5 and 8"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return []
    named = [_NUMBER.fullmatch(part.strip(_MARKS)) for part in re.split(r"\s*(?:,|&|\band\b)\s*", str(value)[:200])]
    return [] if None in named else [n for m in named if m for n in [int(m[1])] if n in numbers]


def _label(value: Any, labels: Collection[str]) -> str | None:
    if isinstance(value, str):
        return _word(value, labels)
    if isinstance(value, list):
        return next((label for item in value if (label := _label(item, labels)) is not None), None)
    if isinstance(value, dict):
        named = {str(key).strip().casefold(): v for key, v in value.items() if isinstance(v, str)}
        for key in _LABEL_KEYS:
            if key in named and (label := _word(named[key], labels)) is not None:
                return label
        given = {_word(v, labels) for key, v in named.items() if key not in _ECHOED} & {*labels}
        return given.pop() if len(given) == 1 else None
    return None


def _word(text: str, labels: Collection[str]) -> str | None:
    """The label that a value is or begins with; UNKNOWN for another word; None for what is no label."""
    words = " ".join(text.casefold().strip(_MARKS).split())
    if begun := re.match(rf"{_form(labels)}\b(?!\s*(?:[|/,]|or\b))", words):
        return _canonical(begun["label"], labels)
    offered = sum(re.search(rf"\b{label}\b", words) is not None for label in labels) > 1  # "unique|check|repeat"
    cut = any(label.startswith(words) for label in labels)
    if not words or offered or cut or words in _NO_LABEL or not re.search(r"[^\W\d]", words) or len(words.split()) > 3:
        return None
    return UNKNOWN


def _form(labels: Collection[str]) -> str:
    return rf"(?P<label>{'|'.join(labels)})(?:ed|s|d|ing|ly)?"


def _behind(labels: Collection[str]) -> str:
    """What may follow a label in prose: the end, a mark, a reason; neither a further choice nor the rest of a name."""
    choice = rf"\s*(?:[|/,]|or\b)\s*(?:{'|'.join(labels)})"
    return rf"(?!{choice})(?=[\"'`*_]*(?:\s*(?:$|[^\w\s])|\s*\n|\s+(?:because|since|as|action|of|to|for|with)\b))"


def _canonical(word: str, labels: Collection[str]) -> str:
    return next(label for label in labels if label == word.casefold())


def _from_pairs(text: str, numbers: Collection[int], labels: Collection[str]) -> dict[int, str]:
    """Labels that stand right behind their number: `1: unique`, `"1": "unique"`, `| 1 | unique |`, `1 -> unique`."""
    pair = re.compile(
        rf"(?<![\w.])(\d{{1,9}})[\"'`*_\])]*\s*(?::|=>?|->|→|\|)\s*[\"'`*_\[]*{_form(labels)}{_behind(labels)}", re.I
    )
    return {int(m[1]): _canonical(m["label"], labels) for m in pair.finditer(text) if int(m[1]) in numbers}


def _from_lines(text: str, numbers: Collection[int], labels: Collection[str]) -> dict[int, str]:
    """Labels in lines that begin with their number: `3. pick cup from table - unique`, `Action 3 (pick cup): repeat`;
    or with the label: `unique: 1, 4`."""
    found: dict[int, str] = {}
    unknown: dict[int, str] = {}
    word = re.compile(rf"(?<!not )(?<!\w){_form(labels)}\b", re.I)
    for line in text.splitlines():
        line = line.strip(_MARKS + "-–—•+")
        listed = re.fullmatch(rf"{_form(labels)}\W*[:=]\s*(.+)", line, re.I)
        if listed and (of := _numbers(listed[2], numbers)):
            found.update(dict.fromkeys(of, _canonical(listed["label"], labels)))
            continue
        begun = _NUMBER.match(line)
        if not begun or int(begun[1]) not in numbers or line[begun.end() :][:1].isalnum():
            continue
        number, rest = int(begun[1]), line[begun.end() :]
        said = list(word.finditer(rest))
        distinct = {m["label"].casefold() for m in said}
        ends = said and not rest[said[-1].end() :].strip(_MARKS)
        if ends and (len(distinct) == 1 or rest[: said[-1].start()].rstrip().endswith(("-", "–", "—", ":", "=", ">"))):
            found[number] = _canonical(said[-1]["label"], labels)
        elif (
            said
            and re.fullmatch(r"[\W_]*", rest[: said[0].start()])
            and re.match(_behind(labels), rest[said[0].end() :])
        ):
            found[number] = _canonical(said[0]["label"], labels)
        elif re.fullmatch(r"\s*[:=]\s*[^\W\d_]+", rest) and _word(rest, labels) == UNKNOWN:
            unknown[number] = UNKNOWN
    return {**unknown, **found} if found else {}


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
    lines = [v for v in read(folder, "votes") if str(v["index"]) in recorded.get(v["clip"], {})]
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
