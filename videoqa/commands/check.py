"""`judge-check`: is this judge fit?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from videoqa import engines
from videoqa import judge_check as check
from videoqa.asked import Unloaded
from videoqa.checked import keep_check
from videoqa.commands import options as o
from videoqa.commands.results import console
from videoqa.errors import UserError
from videoqa.files import write_json
from videoqa.judge import Judge
from videoqa.probes import probes
from videoqa.progress import bar as tqdm
from videoqa.rows import sample
from videoqa.runs import load_rows, opened_data
from videoqa.store import line_of

app = typer.Typer()


@app.command("judge-check", epilog=o.SPEC_HELP)
def judge_check(
    judge: o.JudgeSpec,
    benchmark: o.Benchmark = None,
    data: o.Data = None,
    config: o.Config = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows, evenly over the types.")] = 30,
    rubric: o.RubricName = "ours",
    mode: o.ModeOption = None,
    sampling: o.Sampling = "greedy",
    dtype: o.DtypeOption = "auto",
    device: o.Device = "auto",
    batch_size: o.BatchSize = 8,
    store: o.Store = None,
    out: Annotated[Path | None, typer.Option(help="Write the figures and every rating to this JSON file.")] = None,
) -> None:
    """Check whether a judge is fit: has it rate right, wrong and empty answers and attacks, about 10 for each row. For
    a rubric with scores in between, a track has answers of its own, whose scores are known, and no data are needed.
    What is found is kept in the verdict store: results of this judge say it from then on, `submit` refuses those of one
    that is not fit."""
    track, place = opened_data(benchmark, data)
    if track.rubric is None:
        raise UserError(f"{track.title} has no judge to be checked")
    read, ours = track.rubric(rubric), track.rubric("ours")
    if track.probes is not None:
        asked = track.probes(read, ours)
    elif track.paraphrase is not None:
        pool = load_rows(track, place, config)
        asked = probes(sample(pool, limit), pool, read, ours, track.paraphrase)
    else:
        raise UserError(f"{track.title} has no answers to check a judge with")
    Judge(Unloaded(judge), read, mode, sampling)  # these go together
    engines.check_engine(judge)
    engine = engines.open_engine(judge, dtype=dtype, device=device, batch_size=batch_size)
    rater = Judge(engine, read, mode, sampling)
    other = check.second_seed(rater)
    verdicts, second = (
        [v for _, v in sorted(tqdm(check.rate(r, asked), total=len(asked), desc="ratings", unit="row"))] if r else []
        for r in (rater, other)
    )
    summary = check.report(rater, asked, verdicts, second)
    console().print(check.table(summary))
    print(check.summary(summary))
    if out is not None:
        ratings = [
            {"id": p.id, "kind": p.kind, "prediction": p.item.prediction, **line_of(v)}
            for p, v in zip(asked, verdicts, strict=True)
        ]
        write_json(out, {**summary.as_dict(), "ratings": ratings})
    if not summary.errors:
        keep_check(summary, store)
    if summary.errors:
        first = next(v.raw for v in verdicts if v.status == "judge_error")
        print(f"{summary.errors} of {summary.calls} calls failed, the first: {first}", file=sys.stderr)
    if summary.errors or summary.reasons:
        raise typer.Exit(3)
