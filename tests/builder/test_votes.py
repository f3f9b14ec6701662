"""builder/easg/votes.py: the prompt, the reader of what models really reply, the score, the vote on real clips."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted

from builder.easg.annotations import read_clips
from builder.easg.questions import candidates, kept
from builder.easg.records import Action, Clip, Graph
from builder.easg.votes import LABELS, UNKNOWN, agreement, parts, prompt, read_labels, score_of, vote
from builder.errors import BuildError
from builder.stages import Stages, read

ACTIONS = [
    (1, Action("pick", "cup", ())),
    (2, Action("check", "phone", (("on", "table"),))),
    (4, Action("put", "cup", (("on", "table"),))),
]
NUMBERS = [1, 2, 4]
ALL = {1: "unique", 2: "check", 4: "repeat"}
ECHO = prompt(ACTIONS)[-1]["content"]

REPLIES: dict[str, tuple[str, dict[int, str]]] = {
    "plain JSON": ('{"1": "unique", "2": "check", "4": "repeat"}', ALL),
    "prose around": ('Sure! Here you are:\n{"1": "unique", "2": "check", "4": "repeat"}\nAction 1 is new.', ALL),
    "fenced": ('```json\n{"1": "unique",\n "2": "check",\n "4": "repeat"}\n```', ALL),
    "fence that never ends": ('```json\n{"1": "unique",\n "2": "check",\n "4": "repeat"}', ALL),
    "single quotes": ("{'1': 'unique', '2': 'check', '4': 'repeat'}", ALL),
    "unquoted keys": ('{1: "unique", 2: "check", 4: "repeat"}', ALL),
    "nothing quoted": ("{1: unique, 2: check, 4: repeat}", ALL),
    "an object for each": ('{"1": "unique"}\n{"2": "check"}\n{"4": "repeat"}', ALL),
    "a draft, then the final one": ('{"1": "repeat"} No, wait: {"1": "unique", "2": "check", "4": "repeat"}', ALL),
    "a missing action": ('{"1": "unique", "4": "repeat"}', {1: "unique", 4: "repeat"}),
    "actions that are not there": ('{"1": "unique", "2": "check", "3": "unique", "4": "repeat", "99": "check"}', ALL),
    "cut behind a value": ('{"1": "unique", "2": "check", "4": "repeat"', ALL),
    "cut in a value": ('{"1": "unique", "2": "check", "4": "rep', {1: "unique", 2: "check"}),
    "cut in a key": ('{"1": "unique", "2": "check", "4', {1: "unique", 2: "check"}),
    "cut behind a colon": ('{"1": "unique", "2": "check", "4":', {1: "unique", 2: "check"}),
    "capitals and blanks": ('{"1": " UNIQUE ", "2": "Check", "4": "rePeat\\n"}', ALL),
    "labels with a full stop": ('{"1": "unique.", "2": "check.", "4": "repeat!"}', ALL),
    "labels with a reason": ('{"1": "unique (no other)", "2": "check - table differs", "4": "repeat: same as 1"}', ALL),
    "inflected": ('{"1": "Unique", "2": "checked", "4": "repeated"}', ALL),
    "list of objects": (
        '[{"index": 1, "label": "unique"}, {"index": 2, "label": "check"}, {"index": 4, "label": "repeat"}]',
        ALL,
    ),
    "list of objects, other names": (
        '[{"action": "1", "status": "unique"}, {"id": "#2", "vote": "check"}, {"no": 4, "class": "repeat"}]',
        ALL,
    ),
    "list of small objects": ('[{"1": "unique"}, {"2": "check"}, {"4": "repeat"}]', ALL),
    "list of labels": ('["unique", "check", "repeat"]', ALL),
    "list of labels of another length": ('["unique", "check"]', {}),
    "under a name": ('{"labels": {"1": "unique", "2": "check", "4": "repeat"}}', ALL),
    "nested": ('{"1": {"label": "unique"}, "2": {"label": "check"}, "4": {"label": "repeat", "reason": "as 1"}}', ALL),
    "the action repeated": (
        '{"1": {"verb": "pick", "object": "cup", "label": "unique"}, '
        '"2": {"verb": "check", "object": "phone", "x": "check"}, '
        '"4": {"verb": "put", "object": "cup", "result": "repeat"}}',
        ALL,
    ),
    "label in a list": ('{"1": ["unique"], "2": ["check", "other table"], "4": ["repeat"]}', ALL),
    "by label": ('{"unique": [1], "check": ["2"], "repeat": [4]}', ALL),
    "by label, bare": ('{"unique": 1, "check": "2", "repeat": "Action 4"}', ALL),
    "named keys": ('{"Action 1": "unique", "action_2": "check", "#4": "repeat"}', ALL),
    "two in a key": ('{"1, 2": "unique", "4": "repeat"}', {1: "unique", 2: "unique", 4: "repeat"}),
    "lines": ("1: unique\n2: check\n4: repeat", ALL),
    "numbered lines": ("1. unique\n2) check\n4 - repeat", ALL),
    "bullets": ("- 1: unique\n* 2: check\n• 4: repeat", ALL),
    "Markdown": ("**1**: unique\n**2:** check\n`4`: **repeat**", ALL),
    "a table": ("| no | label |\n|---|---|\n| 1 | unique |\n| 2 | check |\n| 4 | repeat |", ALL),
    "CSV": ("1,unique\n2,check\n4,repeat", ALL),
    "arrows": ("1 -> unique\n2 => check\n4 → repeat", ALL),
    "lines that tell the action": ("1. pick cup - unique\nAction 2 (check phone): check\n4: put cup, repeat.", ALL),
    "lines with a reason": ("1: unique because none is picked\n2: check, the table differs\n4: repeat of 1", ALL),
    "lines by label": ("unique: 1\nCheck: 2\n**repeat**: [4]", ALL),
    "in one line": ("1: unique, 2: check, 4: repeat", ALL),
    "trailing commas": ('{"1": "unique", "2": "check", "4": "repeat",}', ALL),
    "comments": ('{"1": "unique", // new\n "2": "check", # table\n "4": "repeat" /* as 1 */}', ALL),
    "no commas": ('{"1": "unique"\n"2": "check"\n"4": "repeat"}', ALL),
    "NaN, null and true": ('{"1": "unique", "2": NaN, "4": null, "5": true}', {1: "unique"}),
    "numbers as labels": ('{"1": 0, "2": 1, "4": "2"}', {}),
    "whole fullwidth": ("１：ｕｎｉｑｕｅ\n２：check\n４：repeat", ALL),
    "typographic quotes": ("{“1”: “unique”, “2”: “check”, “4”: “repeat”}", ALL),
    "a key twice": ('{"1": "repeat", "1": "unique", "2": "check", "4": "repeat"}', ALL),
    "Python": ("labels = dict()\nlabels[1] = 'unique'\nlabels[2] = 'check'\nlabels[4] = 'repeat'", ALL),
    "an open brace in prose": ('I start with {. {"1": "unique", "2": "check", "4": "repeat"}', ALL),
    "thinking first": ('<think>1 looks like 4 {maybe}</think>{"1": "unique", "2": "check", "4": "repeat"}', ALL),
    "unknown label": ('{"1": "unique", "2": "maybe", "4": "repeat"}', {**ALL, 2: UNKNOWN}),
    "negated label": ('{"1": "not unique", "2": "check", "4": "repeat"}', {**ALL, 1: UNKNOWN}),
    "unknown label in a line": ("1: unique\n2: perhaps\n4: repeat", {**ALL, 2: UNKNOWN}),
    "labels of another language": ('{"1": "einmalig", "2": "check", "4": "repeat"}', {**ALL, 1: UNKNOWN}),
    "the choice given back": ('{"1": "unique|check|repeat", "2": "unique or check", "4": "<label>"}', {}),
    "no label in an object": ('{"1": {"verb": "pick"}, "2": {"verb": "check", "object": "phone"}}', {}),
    "the prompt": (ECHO, {}),
    "the prompt, then the reply": (ECHO + '\n\n{"1": "unique", "2": "check", "4": "repeat"}', ALL),
    "another language": ("Die Person nimmt 1 Tasse und prüft 2 Telefone.", {}),
    "prose with numbers": ("There are 2 unique actions and 1 check; I counted 4 repeats.", {}),
    "the actions in prose": ("1: pick cup\n2: check phone on table\n4: put cup on table", {}),
    "JSON of another shape": ('{"verb": "check", "object": ["1", {"2": {"a": [4]}}]}', {}),
    "a number": ("4", {}),
    "a string": ('"unique"', {}),
    "brackets only": ("[[[[[{{{{{", {}),
    "nothing": ("", {}),
    "blanks": (" \n\t ", {}),
    "surrogates and zeros": ("\x00\ud800 1: unique \ud83d", {1: "unique"}),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLIES)
def test_what_models_reply_is_read(name: str) -> None:
    text, labels = REPLIES[name]
    assert read_labels(text, NUMBERS, LABELS) == labels


def test_there_are_more_than_forty_shapes() -> None:
    assert len(REPLIES) > 60


@pytest.mark.parametrize(
    "text",
    [
        "word " * 10_000,
        "{" * 50_000,
        '{"1": ' * 9_000,
        "1: unique " * 5_000,
        '"' * 50_000,
        "[1, " * 13_000,
        "1" * 50_000,
    ],
)
@pytest.mark.timeout(10)
def test_fifty_kilobytes_of_anything_are_read_quickly(text: str) -> None:
    assert set(read_labels(text, NUMBERS, LABELS).values()) <= {"unique"}
    assert read_labels(text + '\n\n{"1": "check"}', NUMBERS, LABELS).get(1) in ("check", "unique", None)


@settings(deadline=None)
@given(st.text(alphabet="{}[]\":,1245 \nuniqecrpat\\'`|-") | st.text())
def test_no_text_makes_the_reader_raise(text: str) -> None:
    labels = read_labels(text, NUMBERS, LABELS)
    assert set(labels) <= {*NUMBERS} and set(labels.values()) <= {*LABELS, UNKNOWN}


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(1, 500), st.sampled_from([*LABELS])), st.sampled_from(["", "Here:\n", "1 of 2 {x} "])
)
def test_labels_that_were_written_come_back(labels: dict[int, str], prose: str) -> None:
    numbers = sorted(labels)
    assert read_labels(prose + json.dumps(labels), numbers, LABELS) == labels
    assert read_labels(prose + "\n".join(f"{n}: {label}" for n, label in labels.items()), numbers, LABELS) == labels


# -- the prompt and its parts


def test_the_prompt_shows_each_action_as_json_whatever_it_is_called() -> None:
    odd = [(3, Action('pick "up', "{cup} 🍵\n4: x", (("on", "טבלה"),))), (5, Action("x" * 5000, "y", ()))]
    text = prompt(odd)[-1]["content"]
    line = next(line for line in text.splitlines() if line.startswith("3: "))
    assert json.loads(line[3:]) == {"verb": 'pick "up', "object": "{cup} 🍵\n4: x", "relation": "on טבלה"}
    assert len(text) < 2000


@pytest.mark.parametrize("count", [1, 2, 30, 31, 60, 61, 500])
def test_every_two_actions_meet_in_a_prompt_that_is_not_too_long(count: int) -> None:
    actions = [(i, Action("pick", f"thing {i}", ())) for i in range(1, count + 1)]
    split = parts(actions)
    assert {pair for part in split for pair in combinations([i for i, _ in part], 2)} == {
        *combinations(range(1, count + 1), 2)
    }
    assert max(map(len, split)) <= 60 and max(len(prompt(part)[-1]["content"]) for part in split) < 8000
    assert len(split) == 1 or count > 60


def test_long_names_split_too() -> None:
    actions = [(i, Action("v" * 400, "o" * 400, (("on", "t" * 400),))) for i in range(1, 21)]
    assert len(parts(actions)) > 1
    assert max(len(prompt(part)[-1]["content"]) for part in parts(actions)) < 8000


# -- the score


@pytest.mark.parametrize(
    ("labels", "received", "notebook"),
    [
        (["unique"] * 5, 0.0, 0.0),
        (["repeat"] * 5, 1.0, 1.0),
        (["unique", "check", "repeat", "check", "unique"], 0.4, 0.4),
        (["repeat", None, None, None, None], 1.0, 0.2),  # forgotten four times: the notebook keeps it
        (["unique", UNKNOWN, "unique", "unique", "unique"], None, None),
        ([None] * 5, None, 0.0),
    ],
)
def test_the_score_is_over_the_votes_that_came(labels: list[str], received: float, notebook: float) -> None:
    assert score_of(labels, 5) == received
    assert score_of(labels, 5, "notebook") == notebook


def test_without_a_readable_reply_there_is_no_score() -> None:
    assert score_of([None], 0, "notebook") is None


# -- the vote


def clip_of(*actions: Action | None, uid: str = "c") -> Clip:
    frames = {"pre": 0, "pnr": 1, "post": 2}
    graphs = tuple(Graph(i, f"g{i}", frames, (), {s: {} for s in frames}, a) for i, a in enumerate(actions, 1))
    return Clip(uid, "v", "val", 10, 10, graphs)


def by_rule(text: str) -> dict[int, str]:
    """The labels that the prompt's actions deserve, `pick` and `pick up` being the same."""
    actions = {int(n): json.loads(line) for n, line in re.findall(r"^(\d+): (\{.*\})$", text, re.M)}
    labels = {}
    for n, a in actions.items():
        same = [
            b for m, b in actions.items()
            if m != n and (b["verb"].split()[0], b["object"]) == (a["verb"].split()[0], a["object"])
        ]  # fmt: skip
        labels[n] = "unique" if not same else "repeat"
        if same and "relation" in a and all(x.get("relation", a["relation"]) != a["relation"] for x in same):
            labels[n] = "check"
    return labels


def test_a_vote_is_decided_and_every_reply_stays_on_disk(tmp_path: Path) -> None:
    table = (("on", "table"),)
    clip = clip_of(Action("pick", "cup", ()), Action("pick up", "cup", table), None, Action("wipe", "table", table))
    engine = Scripted(lambda text, seed: f"Run {seed}: {json.dumps(by_rule(text))}")
    funnel: Counter[str] = Counter()
    with Stages(tmp_path, engine, ("votes",)) as stages:
        (voted,) = vote([clip], stages, runs=3, count="received", funnel=funnel)
    assert voted == replace(clip, votes={1: 1.0, 2: 1.0, 4: 0.0})
    assert [(v["index"], v["decision"], v["labels"]) for v in read(tmp_path, "votes")] == [
        (1, "voted out", ["repeat"] * 3),
        (2, "voted out", ["repeat"] * 3),
        (4, "kept", ["unique"] * 3),
    ]
    replies = {line["reply"]: line for line in read(tmp_path, "replies")}
    assert {replies[key]["seed"] for v in read(tmp_path, "votes") for key in v["replies"]} == {1, 2, 3}
    assert all(line["text"].startswith(f"Run {line['seed']}: ") for line in replies.values())
    assert {call["temperature"] for call in engine.calls} == {0.7}
    (shown,) = read(tmp_path, "prompts")
    assert shown["messages"] == prompt(candidates(clip))
    assert funnel == {
        "vote replies": 3, "vote replies that cannot be read": 0,
        "candidates": 3, "candidates: kept": 1, "candidates: voted out": 2, "candidates: unreadable": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "reply",
    ["", ECHO, "Lo siento, no puedo.", "word " * 10_000, '{"clips": [{"name": "x"}]}', '["unique"', "null"],
)  # fmt: skip
def test_an_engine_that_says_nothing_of_use_keeps_nothing_and_breaks_nothing(reply: str, tmp_path: Path) -> None:
    clips = [
        clip_of(*(action for _, action in ACTIONS)),
        clip_of(uid="empty"),
        clip_of(Action("x", "y", ()), uid="one"),
    ]
    funnel: Counter[str] = Counter()
    with Stages(tmp_path, Scripted(lambda text, seed: reply), ("votes",)) as stages:
        voted = vote(clips, stages, runs=2, count="received", funnel=funnel)
    assert [dict(clip.votes) for clip in voted] == [{}, {}, {1: 0.0}], "the only action of a clip needs no vote"
    assert funnel["candidates: unreadable"] == 3 and funnel["vote replies that cannot be read"] == 2


def test_a_clip_of_500_actions_is_compared_across_its_parts(tmp_path: Path) -> None:
    actions = [Action("pick", f"thing {i}", ()) for i in range(499)] + [Action("pick up", "thing 0", ())]
    with Stages(tmp_path, Scripted(lambda text, seed: json.dumps(by_rule(text))), ("votes",)) as stages:
        (voted,) = vote([clip_of(*actions)], stages, runs=1, count="received", funnel=Counter())
    assert {index for index, score in voted.votes.items() if score > 0} == {1, 500}


@pytest.fixture(scope="session")
def real_clips(upstream: Path) -> list[Clip]:
    names = ("EASG_unict_master_final", "clip_narrations", "recorded_votes", "recorded_purpose_counts", "clip_spans")
    return read_clips(*(upstream / f"{name}.json" for name in names))[0]


@pytest.mark.real
def test_no_real_clip_is_split(real_clips: list[Clip]) -> None:
    assert {len(parts(candidates(clip))) for clip in real_clips} == {1}
    assert max(len(candidates(clip)) for clip in real_clips) == 50


@pytest.mark.real
def test_a_model_that_votes_as_the_recorded_one_keeps_the_same_actions(real_clips: list[Clip], tmp_path: Path) -> None:
    """Ten runs whose labels sum up to the recorded score, in replies of ten shapes."""
    full = [clip for clip in real_clips if len(candidates(clip)) > 7 and len(clip.votes) == len(candidates(clip))]
    clips = [clip for clip in full if all(round(s * 20, 6) == round(s * 20) for s in clip.votes.values())][:60]
    texts = {prompt(part)[-1]["content"]: clip for clip in clips for part in parts(candidates(clip))}

    def reply(text: str, seed: int) -> str:
        votes = texts[text].votes
        labels = {}
        for index in map(int, re.findall(r"^(\d+): ", text, re.M)):
            weight = round(votes[index] * 20)  # over ten runs
            share = weight // 10 + (seed <= weight % 10)
            labels[index] = [*LABELS][share]
        return SHAPES[seed - 1](labels)

    funnel: Counter[str] = Counter()
    with Stages(tmp_path, Scripted(reply), ("votes",)) as stages:
        voted = vote(clips, stages, runs=10, count="received", funnel=funnel)
    for before, after in zip(clips, voted, strict=True):
        assert after.votes == pytest.approx(before.votes)
        assert kept(after, after.votes) == kept(before, before.votes)
    assert len(clips) == 60 and funnel["vote replies that cannot be read"] == 0
    recorded = {clip.uid: {str(i): s for i, s in clip.votes.items()} for clip in clips}
    assert "100%  equal decisions; kappa 1.00; rank correlation" in agreement(tmp_path, recorded)


SHAPES: list[Callable[[dict[int, str]], str]] = [
    json.dumps,
    lambda labels: f"Here is the result:\n```json\n{json.dumps(labels, indent=2)}\n```\nDone.",
    lambda labels: str({str(k): v for k, v in labels.items()}),
    lambda labels: "\n".join(f"{k}: {v}" for k, v in labels.items()),
    lambda labels: json.dumps([{"index": k, "label": v.upper()} for k, v in labels.items()]),
    lambda labels: "\n".join(f"{k}. **{v.title()}**" for k, v in labels.items()),
    lambda labels: json.dumps({k: {"label": v, "reason": "?"} for k, v in labels.items()}),
    lambda labels: json.dumps(labels)[:-1],
    lambda labels: "{" + ", ".join(f"{k}: '{v}'" for k, v in labels.items()) + ",}",
    lambda labels: "\n".join(json.dumps({k: v}) for k, v in labels.items()),
]


def test_agreement_counts_the_four_ways(tmp_path: Path) -> None:
    labels = {1: "unique", 2: "repeat", 4: "unique"}
    with Stages(tmp_path, Scripted(lambda text, seed: json.dumps(labels)), ("votes",)) as stages:
        vote(
            [clip_of(*(Action("pick", f"o{i}", ()) for i in range(4)))],
            stages,
            runs=1,
            count="received",
            funnel=Counter(),
        )
    text = agreement(tmp_path, {"c": {"1": 0.1, "2": 0.9, "3": 0.2, "4": 100}})
    assert "4 actions of 1 clips" in text and " 50%  equal decisions; kappa 0.00" in text
    assert [int(n) for n in re.findall(r"^ +(\d+)  kept", text, re.M)] == [1, 1, 1, 1]
    with pytest.raises(BuildError, match="no votes that the recorded ones know of"):
        agreement(tmp_path, {})
