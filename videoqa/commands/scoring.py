"""Having the answers of a run scored: by one scorer or by a panel of judges, one after the other, and what makes the
numbers doubtful."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from videoqa import engines
from videoqa.benchmark import ScorerOptions
from videoqa.checked import check_of
from videoqa.commands.results import report
from videoqa.engines import Engine
from videoqa.errors import UserError
from videoqa.files import short_hash, write_json
from videoqa.judge import MIN_MASS, Judge
from videoqa.progress import bar as tqdm
from videoqa.rating import item_of
from videoqa.rows import Row
from videoqa.runs import NOT_ASKED, Run, judge_rows, result, rows_of
from videoqa.scorer import Scorer
from videoqa.store import VerdictStore, line_of
from videoqa.tables import REFUSE


def score_run(
    run: Run,
    judges: Sequence[str | None],
    how: ScorerOptions,
    local: Mapping[str, Any],
    store: Path | None,
    explain: int,
    again: bool = False,
    log: str | None = None,
) -> None:
    """Have a run that is answered scored, report it, and end with exit code 3 where rows failed or have no answer."""
    rows = rows_of(run)  # the data are there, and as they were
    with run.alone():
        failed, doubtful = rate_all(judges, how, [], local, rows, run, store, explain, again)
    report([run.folder], log=log)
    finish(failed, run.folder, doubtful)
    answers = run.answers()
    if any(answers.get(row["id"], NOT_ASKED)["error"] is not None for row in rows):
        raise typer.Exit(3)


def check_engines(judges: Sequence[str | None]) -> None:
    for judge in judges:
        if judge is not None:
            engines.check_engine(judge)


def rate_all(
    judges: Sequence[str | None],
    how: ScorerOptions,
    ready: list[Engine],
    local: Mapping[str, Any],
    rows: list[Row],
    run: Run,
    store: Path | None,
    explain: int,
    again: bool,
) -> tuple[int, bool]:
    """`rate_run` by each judge, one after the other, since a GPU may not hold two: how many rows failed, and whether
    the numbers are doubtful. `ready` holds the first one's engine where that is open already."""
    failed, doubtful = 0, False
    for judge in judges:
        if len(judges) > 1:
            print(f"judge: {judge}")
        engine = ready.pop() if ready else None if judge is None else engines.open_engine(judge, **local)
        scorer = run.track.scorer(engine, how)
        failed += rate_run(scorer, rows, run, store, explain, again)
        doubtful |= warn_of_doubts(run, scorer)
        del engine, scorer
    return failed, doubtful


def rate_run(scorer: Scorer, rows: list[Row], run: Run, store: Path | None, explain: int, again: bool) -> int:
    """Rate what has no verdict yet and write the result; the number of rows that failed."""
    judge = scorer if isinstance(scorer, Judge) else None
    if explain and judge is None:
        raise UserError(f"--explain is for judges; {run.track.title} has none")
    if explain and judge is not None and judge.mode != "paper":
        list(judge.explain([], []))  # an engine that cannot is said now, not after the rating
    predictions = {k: line["prediction"] for k, line in run.answers().items() if line["error"] is None}
    if missing := sum(row["id"] not in predictions for row in rows):
        print(f"{missing} of {len(rows)} rows have no answer and are not rated ({run.folder})", file=sys.stderr)
    kept = VerdictStore(store, judge.key) if judge else None
    known = [v for of in ("answer", "truth") for v in run.verdicts(scorer.key, of).values()]
    types = {row["type"] for row in rows if row["id"] in predictions}
    total = len(predictions) + (sum(row["type"] in types for row in rows) if scorer.needs_truth else 0)
    failed = []
    with tqdm(total=total, initial=sum(v.status != "judge_error" for v in known), desc="verdicts", unit="row") as bar:
        for identifier, verdict in judge_rows(scorer, rows, predictions, run, kept, again):
            bar.update()
            if verdict.status == "judge_error":
                failed.append((identifier, verdict.raw))
    for identifier, why in failed[:10]:
        print(f"no verdict: {identifier}: {why}", file=sys.stderr)
    about = scorer.describe() | ({"check": check_of(judge.key, store)} if judge else {})
    write_json(run.scores_path(scorer.key), result(run, rows, about))
    if explain and judge is not None and judge.engine.can_force:  # else the replies of mode paper hold the reasons
        _explain(judge, rows, run, explain)
    return len(failed)


def _explain(judge: Judge, rows: list[Row], run: Run, lowest: int) -> None:
    """Add the judge's reasons for its lowest scores to the verdict lines."""
    verdicts = run.verdicts(judge.key, "answer")
    answers = run.answers()
    rated = [r for r in rows if (v := verdicts.get(r["id"])) and v.status == "ok"]
    rated = sorted(rated, key=lambda r: (verdicts[r["id"]].score, r["id"]))[:lowest]
    wanted = [r for r in rated if not verdicts[r["id"]].explanation]
    if not wanted:
        return
    items = [item_of(r, answers[r["id"]]["prediction"]) for r in wanted]
    given = [verdicts[r["id"]] for r in wanted]
    for index, text in tqdm(judge.explain(items, given), total=len(items), desc="explanations", unit="row"):
        digest = short_hash(items[index].prediction or "")
        line = {"id": wanted[index]["id"], "of": "answer", "judge": judge.key, "rated": digest}
        run.verdicts_file.append(line | line_of(replace(given[index], explanation=text)))


WARN = 0.05  # a share of the answers: with more it is said, and with more than REFUSE the exit code is 3


def warn_of_doubts(run: Run, scorer: Scorer) -> bool:
    """Say above the table what makes its numbers doubtful; whether it is so much that the run has failed."""
    verdicts = run.verdicts(scorer.key, "answer")
    answers = [line for line in run.answers().values() if line["error"] is None]
    unread = {name: v for name, v in verdicts.items() if v.status in ("unreadable", "out_of_range", "truncated")}
    low = [v for v in verdicts.values() if v.mass is not None and v.mass < MIN_MASS]
    empty = [v for v in verdicts.values() if v.status == "empty_prediction"]
    cut = [line for line in answers if line.get("finished") is False]
    doubts = (  # what, how many, of how many, whether so many can make the run fail
        (
            f"{'replies of the judge' if isinstance(scorer, Judge) else 'answers'} could not be read",
            unread,
            verdicts,
            True,
        ),
        (f"answers have a mass below {MIN_MASS:g} on the allowed scores", low, verdicts, True),
        ("answers are empty", empty, verdicts, True),
        ("answers were cut at the longest length (--max-new-tokens)", cut, answers, False),
    )
    fatal = False
    for what, part, whole, counts in doubts:
        if len(part) > WARN * len(whole):
            print(f"WARNING: {len(part)} of {len(whole)} {what}", file=sys.stderr)
            fatal |= counts and len(part) > REFUSE * len(whole)
    for name, verdict in sorted(unread.items())[: 3 if len(unread) > WARN * len(verdicts) else 0]:
        print(f"  {name}: {verdict.status}: {' '.join(verdict.raw.split())[:160]!r}", file=sys.stderr)
    return fatal


def finish(failed: int, out: Path, doubtful: bool = False) -> None:
    if failed:
        print(f"{failed} rows failed; the same command asks only for them again ({out})", file=sys.stderr)
    if doubtful:
        print(f"these numbers are not to be trusted, see the warnings above ({out})", file=sys.stderr)
    if failed or doubtful:
        raise typer.Exit(3)
