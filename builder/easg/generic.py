"""Step 4, the generic filter: pairs that would fit any video are left out (paper, Figure 2; no public code has it).

    "What did the camera wearer do with the object?" - "Picked it up."   generic, generic, specific  ->  2/3: left out

The model labels the pairs of a clip, in as many runs as the vote has. A pair is left out if more than half of its
labels are `generic`. A pair without a readable label stays.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from builder.easg.votes import TEMPERATURE
from builder.replies import START, UNKNOWN, read_labels
from builder.stages import Request, StageReply, Stages
from easg_bench import QA
from videoqa.engines import Conversation

LABELS = ("specific", "generic")
THRESHOLD = 0.5  # share of generic labels above which a pair is left out
PAIRS = 20  # in a prompt

PROMPT = Template("""\
Below are numbered questions about one first-person video, with their answers.

$pairs

Label every pair.
"specific": it names what was handled or where, so that it belongs to this video and its answer can be checked.
"generic": it would fit nearly any video, or its answer says hardly more than the question does.

Reply with nothing but one JSON object, its keys the numbers and its values the labels, for all $count pairs:
{"$first": "...", ...}""")


def prompt(rows: Sequence[Mapping[str, Any]], first: int) -> Conversation:
    """The request for the labels of these rows, numbered from `first`."""
    lines = [
        f"{number}: {json.dumps({'question': row['question'], 'answer': row['answer']}, ensure_ascii=False)}"
        for number, row in enumerate(rows, first)
    ]
    text = PROMPT.substitute(pairs="\n".join(lines), count=len(rows), first=first)
    return [{"role": "user", "content": text}]


def filter_rows(rows: Sequence[QA], stages: Stages, *, runs: int, funnel: Counter[str]) -> list[QA]:
    """The rows of whole clips without the generic ones."""
    parts: list[list[QA]] = []
    for row in rows:
        if not parts or parts[-1][0]["clip"] != row["clip"] or len(parts[-1]) == PAIRS:
            parts.append([])
        parts[-1].append(row)
    requests = [Request(f"{part[0]['clip']} from {part[0]['id']}", prompt(part, 1), 512, START) for part in parts]
    replies = [stages.ask("generic", requests, seed=run, temperature=TEMPERATURE) for run in range(1, runs + 1)]
    kept: list[QA] = []
    for which, part in enumerate(parts):
        of_part = [of_run[which] for of_run in replies]
        read = [read_labels(one.text or "", range(1, len(part) + 1), LABELS) for one in of_part]
        funnel["generic replies that cannot be read"] += sum(not labels for labels in read)
        for number, row in enumerate(part, 1):
            if _keeps(row, [labels.get(number) for labels in read], of_part, stages, funnel):
                kept.append(row)
    return kept


def _keeps(
    row: QA, labels: Sequence[str | None], replies: Sequence[StageReply], stages: Stages, funnel: Counter[str]
) -> bool:
    counted = [label for label in labels if label not in (None, UNKNOWN)]
    share = counted.count("generic") / len(counted) if counted else None
    generic = share is not None and share > THRESHOLD
    funnel["questions left out as generic"] += generic
    funnel["questions without a specific/generic vote (kept)"] += share is None
    reason = (
        f"no vote in {len(labels)} runs"
        if share is None
        else f"{counted.count('generic')} of {len(counted)} say generic"
    )
    stages.decide(
        "generic",
        id=row["id"],
        labels=labels,
        decision="left out" if generic else "kept",
        reason=f"{reason}; left out above {THRESHOLD:.0%}",
        replies=[one.key for one in replies],
    )
    return not generic
