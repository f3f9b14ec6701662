"""`run`, `answer`, `judge`, `merge`: let a model answer, have the answers scored."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from tqdm import tqdm

from videoqa import engines
from videoqa import frames as framing
from videoqa.asking import VIDEO_ERROR, Way
from videoqa.benchmark import ScorerOptions, Track
from videoqa.choices import CIRCULAR
from videoqa.commands import options as o
from videoqa.commands.results import report
from videoqa.engines import Engine
from videoqa.errors import UserError
from videoqa.files import short_hash, write_json
from videoqa.judge import MIN_MASS, Judge
from videoqa.rating import item_of
from videoqa.rows import Row, clips_revision, revision
from videoqa.rows import shard as part_of
from videoqa.runs import (
    NOT_ASKED,
    Run,
    answer_rows,
    asked_rows,
    judge_rows,
    load_rows,
    merge_runs,
    opened_data,
    result,
    rows_of,
)
from videoqa.scorer import Scorer
from videoqa.store import VerdictStore, default_store, line_of
from videoqa.videos import Videos

app = typer.Typer()


@app.command()
def run(
    model: o.Model,
    judge: o.JudgeOrNone = None,
    benchmark: o.Benchmark = None,
    data: o.Data = None,
    config: o.Config = None,
    limit: o.Limit = None,
    out: o.Out = Path("runs/run"),
    prompt: o.Prompt = None,
    protocol: o.Protocol = None,
    circular: o.Circular = False,
    shuffle: o.Shuffle = None,
    captions: o.Captions = None,
    max_new_tokens: o.MaxTokens = None,
    videos: o.VideoFolder = None,
    frames: o.FramePolicy = str(framing.DEFAULT),
    shard: o.Shard = None,
    rubric: o.RubricName = "ours",
    mode: o.ModeOption = None,
    sampling: o.Sampling = "greedy",
    reading: o.Reading = "ours",
    explain: o.Explain = 0,
    again: o.Again = False,
    store: o.Store = None,
    dtype: o.DtypeOption = "auto",
    device: o.Device = "auto",
    batch_size: o.BatchSize = 8,
) -> None:
    """Answer, score and report in one go. A run that was stopped goes on where it stopped."""
    track, place = opened_data(benchmark, data)
    how = ScorerOptions(rubric, mode, sampling, reading)
    _check_scorer(track, judge, how)
    about = _about(track, place, config, limit, _order(circular, shuffle), captions)
    asked = _Asked.of(track, about, prompt, protocol, max_new_tokens, videos, frames, shard)
    local: dict[str, Any] = {"dtype": dtype, "device": device, "batch_size": batch_size}
    engine: Engine | None = engines.open_engine(model, **local)
    assert engine is not None
    rows, opened = asked.begin(engine, out)
    with opened.alone():
        failed = _answer(engine, rows, opened, asked.frames_of(opened))
        if judge != model:
            engine = None  # a GPU may not hold both models
            engine = engines.open_engine(judge, **local) if judge is not None else None
        scorer = track.scorer(engine, how)
        failed += _rate(scorer, rows, opened, store, explain, again)
    doubtful = _warn_of_doubts(opened, scorer)
    report([out])
    _finish(failed, out, doubtful)


@app.command()
def answer(
    model: o.Model,
    benchmark: o.Benchmark = None,
    data: o.Data = None,
    config: o.Config = None,
    limit: o.Limit = None,
    out: o.Out = Path("runs/run"),
    prompt: o.Prompt = None,
    protocol: o.Protocol = None,
    circular: o.Circular = False,
    shuffle: o.Shuffle = None,
    captions: o.Captions = None,
    max_new_tokens: o.MaxTokens = None,
    videos: o.VideoFolder = None,
    frames: o.FramePolicy = str(framing.DEFAULT),
    shard: o.Shard = None,
    dtype: o.DtypeOption = "auto",
    device: o.Device = "auto",
    batch_size: o.BatchSize = 8,
) -> None:
    """Let a model answer the questions."""
    track, place = opened_data(benchmark, data)
    about = _about(track, place, config, limit, _order(circular, shuffle), captions)
    asked = _Asked.of(track, about, prompt, protocol, max_new_tokens, videos, frames, shard)
    engine = engines.open_engine(model, dtype=dtype, device=device, batch_size=batch_size)
    rows, opened = asked.begin(engine, out)
    with opened.alone():
        _finish(_answer(engine, rows, opened, asked.frames_of(opened)), out)


@app.command()
def judge(
    run_folder: o.RunFolder,
    judge: o.JudgeOrNone = None,
    rubric: o.RubricName = "ours",
    mode: o.ModeOption = None,
    sampling: o.Sampling = "greedy",
    reading: o.Reading = "ours",
    explain: o.Explain = 0,
    again: o.Again = False,
    store: o.Store = None,
    dtype: o.DtypeOption = "auto",
    device: o.Device = "auto",
    batch_size: o.BatchSize = 8,
) -> None:
    """Rate the answers of a run, and the ground truth for the calibration. Several judges' results stand side by
    side."""
    opened = Run(run_folder)
    how = ScorerOptions(rubric, mode, sampling, reading)
    _check_scorer(opened.track, judge, how)
    local: dict[str, Any] = {"dtype": dtype, "device": device, "batch_size": batch_size}
    engine = engines.open_engine(judge, **local) if judge is not None else None
    score_run(opened, opened.track.scorer(engine, how), store, explain, again)


@app.command()
def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="All shards of one run.")],
    out: Annotated[Path, typer.Option(help="The folder of the whole run.")],
) -> None:
    """Put the shards of a run together; `judge` then makes its scores, of the verdicts that are there already."""
    merged = merge_runs([Run(folder) for folder in runs], out)
    print(f"{out}: {len(merged.answers())} answers of {len(runs)} shards; next: easg-bench judge {out} --judge JUDGE")


# -- the steps --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked and how: all that a run's config says but for the model. Made before a model is loaded, so that
    a wrong argument is said at once."""

    track: Track
    about: Mapping[str, Any]  # which rows, as a run's config says it
    prompt: str
    protocol: str | None  # None: the best that the engine has
    way: Way
    max_new_tokens: int
    videos: Path | None
    policy: framing.Policy | None
    shard: str | None
    rows: list[Row]

    @classmethod
    def of(
        cls,
        track: Track,
        about: Mapping[str, Any],
        prompt: str | None,
        protocol: str | None,
        max_new_tokens: int | None,
        videos: Path | None,
        frames: str,
        shard: str | None,
    ) -> _Asked:
        prompt = prompt or track.way
        way = track.asked(prompt)
        policy = _policy(track, prompt, frames, videos)
        if "captions" in about and not way.captions:
            showing = ", ".join(name for name, one in track.ways.items() if one.captions) or "no prompt"
            raise UserError(f"--captions is for {showing}, not for {prompt}")
        rows = asked_rows(track, about)
        if way.captions and (silent := [row["id"] for row in rows if not row["context"].strip()]):
            raise UserError(f"the prompt {prompt} shows captions, and {silent[0]} has none: give --captions")
        longest = max_new_tokens or track.max_new_tokens
        limit = f" (limit {about['limit']:,})" if about["limit"] else ""
        print(f"data: {about['data']}, config {about['config']}, revision {revision(rows)}, {len(rows):,} rows{limit}")
        print(f"prompt: {prompt}" + (f", frames {policy}" if policy is not None else ""))
        return cls(track, about, prompt, protocol, way, longest, videos, policy, shard, rows)

    def begin(self, engine: Engine, out: Path) -> tuple[list[Row], Run]:
        """The rows to ask and the run folder, which is made or found to be of the same run."""
        settings = {
            "format": 1,
            "track": self.track.name,
            **self.about,
            "revision": revision(self.rows),
            "rows": len(self.rows),
            "model": engine.name,
            "model_settings": engine.settings,
            "prompt": self.prompt,
            "max_new_tokens": self.max_new_tokens,
            "frames": None if self.policy is None else str(self.policy),
            "shard": self.shard,
        }
        if (protocol := self.way.protocol(self.protocol, engine)) is not None:
            settings["protocol"] = protocol
        if self.policy is not None:
            settings["clips"] = clips_revision(load_rows(self.track, self.about["data"], "default"))
        rows = part_of(self.way.of_its_types(self.rows), self.shard)
        return rows, Run(out, settings)

    def frames_of(self, opened: Run) -> Videos | None:
        """The videos of the run, where its prompt shows frames."""
        if self.policy is None or self.videos is None:
            return None
        config = opened.config["config"]
        whole = config if config in self.track.configs else None
        return Videos.of(self.videos, self.policy, load_rows(self.track, opened.config["data"], whole))


def _about(
    track: Track, data: str, config: str | None, limit: int | None, order: str | None, captions: Path | None
) -> dict[str, Any]:
    """Which rows are asked, as a run's config says it."""
    about: dict[str, Any] = {"data": data, "config": config or track.configs[0], "limit": limit}
    if order is not None:
        about["order"] = order
    if captions is not None:
        about["captions"] = str(captions.resolve())
    return about


def _order(circular: bool, shuffle: int | None) -> str | None:
    """The order of the options that the command line says."""
    if circular and shuffle is not None:
        raise UserError("--circular and --shuffle are two orders of the options: give one")
    return CIRCULAR if circular else None if shuffle is None else f"shuffle:{shuffle}"


def _policy(track: Track, prompt: str, frames: str, videos: Path | None) -> framing.Policy | None:
    """Which frames a prompt shows that shows any."""
    if not track.ways[prompt].frames:
        if videos is not None or frames != str(framing.DEFAULT):
            showing = ", ".join(name for name, way in track.ways.items() if way.frames)
            raise UserError(f"--videos and --frames are for the prompts {showing}, not for {prompt}")
        return None
    if videos is None:
        raise UserError(f"the prompt {prompt} shows frames: give --videos, the folder of the videos")
    return framing.Policy.parse(frames)


def _check_scorer(track: Track, judge: str | None, how: ScorerOptions) -> None:
    """Say before hours of answering that the judge is missing or its rubric cannot be read."""
    if track.rubric is None:
        return
    if judge is None:
        raise UserError(f"the answers of {track.title} are rated by a judge: name one with --judge")
    track.rubric(how.rubric)


def _answer(engine: Engine, rows: list[Row], run: Run, videos: Videos | None) -> int:
    """Answer what is missing; the number of rows that failed."""
    have = sum(line["error"] is None for line in run.answers().values())
    failed = []
    with tqdm(total=len(rows), initial=have, desc="answers", unit="row") as bar:
        for line in answer_rows(engine, rows, run, videos):
            bar.update()
            if line["error"] is not None:
                failed.append(line)
    for line in failed[:10]:
        print(f"no answer: {line['id']}: {line['error']}", file=sys.stderr)
    if unseen := sum(line["error"].startswith(VIDEO_ERROR) for line in failed):
        print(f"{unseen} of {len(rows)} rows have no video that can be read (video_error)", file=sys.stderr)
    return len(failed)


def score_run(run: Run, scorer: Scorer, store: Path | None, explain: int, again: bool = False) -> None:
    """Score a run that is answered, report it, and end with exit code 3 where rows failed or have no answer."""
    rows = rows_of(run)
    with run.alone():
        failed = _rate(scorer, rows, run, store, explain, again)
    doubtful = _warn_of_doubts(run, scorer)
    report([run.folder])
    _finish(failed, run.folder, doubtful)
    answers = run.answers()
    if any(answers.get(row["id"], NOT_ASKED)["error"] is not None for row in rows):
        raise typer.Exit(3)


def _rate(scorer: Scorer, rows: list[Row], run: Run, store: Path | None, explain: int, again: bool) -> int:
    """Rate what has no verdict yet and write the result; the number of rows that failed."""
    judge = scorer if isinstance(scorer, Judge) else None
    if explain and judge is None:
        raise UserError(f"--explain is for judges; {run.track.title} has none")
    if explain and judge is not None and judge.mode != "paper":
        list(judge.explain([], []))  # an engine that cannot is said now, not after the rating
    predictions = {k: line["prediction"] for k, line in run.answers().items() if line["error"] is None}
    if missing := sum(row["id"] not in predictions for row in rows):
        print(f"{missing} of {len(rows)} rows have no answer and are not rated ({run.folder})", file=sys.stderr)
    kept = VerdictStore(store or default_store(), judge.key) if judge else None
    known = [v for of in ("answer", "truth") for v in run.verdicts(scorer.key, of).values()]
    total = len(predictions) + (len(rows) if scorer.needs_truth else 0)
    failed = []
    with tqdm(total=total, initial=sum(v.status != "judge_error" for v in known), desc="verdicts", unit="row") as bar:
        for identifier, verdict in judge_rows(scorer, rows, predictions, run, kept, again):
            bar.update()
            if verdict.status == "judge_error":
                failed.append((identifier, verdict.raw))
    for identifier, why in failed[:10]:
        print(f"no verdict: {identifier}: {why}", file=sys.stderr)
    write_json(run.scores_path(scorer.key), result(run, rows, scorer.describe()))
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


WARN, REFUSE = 0.05, 0.5  # shares of the answers: above the first it is said, above the second it is exit code 3


def _warn_of_doubts(run: Run, scorer: Scorer) -> bool:
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


def _finish(failed: int, out: Path, doubtful: bool = False) -> None:
    if failed:
        print(f"{failed} rows failed; the same command asks only for them again ({out})", file=sys.stderr)
    if doubtful:
        print(f"these numbers are not to be trusted, see the warnings above ({out})", file=sys.stderr)
    if failed or doubtful:
        raise typer.Exit(3)
