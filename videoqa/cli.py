"""`easg-bench`: run | answer | merge | judge | report | submit | card | compare | judge-check | fetch | videos | show |
import-answers | export-answers | lighteval | rejudge.

    easg-bench run --data build/easg-bench --model MODEL --judge JUDGE --prompt narrations --out runs/mine

Exit codes: 0 done; 2 a wrong argument or file, said in one line; 3 done, but some rows failed: run it again and only
those are asked.
"""

from __future__ import annotations

import difflib
import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from tqdm import tqdm

from videoqa import frames as framing
from videoqa import judge_check as check
from videoqa import logs, regions, results
from videoqa import report as reports
from videoqa import scores as scoring
from videoqa import submit as submission
from videoqa.answers_file import READERS, export_lines, import_run
from videoqa.asking import VIDEO_ERROR, Videos
from videoqa.engines import Engine, open_engine
from videoqa.fetch import fetch as fetch_sources
from videoqa.fetch import named_rubric
from videoqa.judge import Item, Judge, Mode
from videoqa.prompts import MAX_NEW_TOKENS, TWO_STAGE_TYPES, VIDEO_PROMPTS
from videoqa.runs import (
    Row,
    Run,
    RunMismatch,
    VerdictStore,
    answer_rows,
    calibration,
    data_revision,
    default_store,
    describe,
    even_sample,
    judge_rows,
    line_of,
    merge_runs,
    result,
    scored,
    shard_of,
    short_hash,
    write_json,
    write_text,
)

REPO = "easg-bench"  # as in easg_bench, whose import takes a second

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Run a model on EASG-Bench, have its answers judged, and read the scores.",
)

SPEC = "a folder or Hub id; vllm:ID; server:NAME@http://HOST/v1; options behind a question mark"
Data = Annotated[str, typer.Option(help="The dataset: a folder that the builder wrote, or a Hub repo.")]
Config = Annotated[str, typer.Option(help="Config of the dataset: default, or one question type.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only N rows, evenly over the types.")]
Out = Annotated[Path, typer.Option(help="The run folder; a run that was stopped goes on there.")]
Model = Annotated[str, typer.Option(help=f"The model under test: {SPEC}.")]
Prompt = Annotated[
    Literal["blind", "narrations", "frames", "two-stage"], typer.Option(help="What the model sees beside the question.")
]
VideoFolder = Annotated[Path | None, typer.Option("--videos", help="Folder of clips or full videos, by uid.")]
FramePolicy = Annotated[str, typer.Option("--frames", help=f"Which frames: {framing.GRAMMAR}.")]
Shard = Annotated[str | None, typer.Option(help="Only this part of the clips, such as 2/4; `merge` joins the parts.")]
MaxTokens = Annotated[int, typer.Option("--max-new-tokens", min=1, help="Longest answer.")]
JudgeSpec = Annotated[str, typer.Option("--judge", help=f"The judge: {SPEC}.")]
RubricName = Annotated[str, typer.Option("--rubric", help="`ours`, `paper` (after `easg-bench fetch`), or a file.")]
ModeOption = Annotated[
    Mode | None,
    typer.Option(help="dist: one pass, the score's distribution (default where the engine has it); score; paper."),
]
Sampling = Annotated[Literal["greedy", "paper"], typer.Option(help="paper: the paper's temperature and top_p.")]
Reading = Annotated[
    Literal["ours", "script"], typer.Option(help="script: unreadable is 0, as in the public script (mode paper).")
]
Explain = Annotated[int, typer.Option(min=0, help="Have the judge explain its N lowest scores.")]
Store = Annotated[Path | None, typer.Option(help="Folder of the verdict store (default: in the HF cache folder).")]
DtypeOption = Annotated[
    Literal["auto", "float32", "bfloat16", "float16"],
    typer.Option("--dtype", help="auto: float32 on CPU, bfloat16 on GPU."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, ...")]
BatchSize = Annotated[int, typer.Option(min=1, help="Rows that go through a local model together.")]


@app.command()
def run(
    model: Model,
    judge: JudgeSpec,
    data: Data = REPO,
    config: Config = "default",
    limit: Limit = None,
    out: Out = Path("runs/run"),
    prompt: Prompt = "narrations",
    max_new_tokens: MaxTokens = MAX_NEW_TOKENS,
    videos: VideoFolder = None,
    frames: FramePolicy = str(framing.DEFAULT),
    shard: Shard = None,
    rubric: RubricName = "ours",
    mode: ModeOption = None,
    sampling: Sampling = "greedy",
    reading: Reading = "ours",
    explain: Explain = 0,
    store: Store = None,
    dtype: DtypeOption = "auto",
    device: Device = "auto",
    batch_size: BatchSize = 8,
) -> None:
    """Answer, judge and report in one go. A run that was stopped goes on where it stopped."""
    read = named_rubric(rubric)  # before hours of answering
    local: dict[str, Any] = {"dtype": dtype, "device": device, "batch_size": batch_size}
    engine = open_engine(model, **local)
    policy = _policy(prompt, frames, videos)
    rows, opened = _begin(engine, data, config, limit, out, prompt, max_new_tokens, policy, shard)
    seen = None if policy is None or videos is None else _videos(opened, videos, policy)
    with opened.alone():
        failed = _answer(engine, rows, opened, seen)
        if judge != model:
            del engine  # a GPU may not hold both models
            engine = open_engine(judge, **local)
        rater = Judge(engine, read, mode, sampling, reading)
        failed += _rate(rater, rows, opened, store, explain)
    report([out])
    _finish(failed, out)


@app.command()
def answer(
    model: Model,
    data: Data = REPO,
    config: Config = "default",
    limit: Limit = None,
    out: Out = Path("runs/run"),
    prompt: Prompt = "narrations",
    max_new_tokens: MaxTokens = MAX_NEW_TOKENS,
    videos: VideoFolder = None,
    frames: FramePolicy = str(framing.DEFAULT),
    shard: Shard = None,
    dtype: DtypeOption = "auto",
    device: Device = "auto",
    batch_size: BatchSize = 8,
) -> None:
    """Let a model answer the questions."""
    engine = open_engine(model, dtype=dtype, device=device, batch_size=batch_size)
    policy = _policy(prompt, frames, videos)
    rows, opened = _begin(engine, data, config, limit, out, prompt, max_new_tokens, policy, shard)
    seen = None if policy is None or videos is None else _videos(opened, videos, policy)
    with opened.alone():
        _finish(_answer(engine, rows, opened, seen), out)


@app.command()
def judge(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder with answers.")],
    judge: JudgeSpec,
    rubric: RubricName = "ours",
    mode: ModeOption = None,
    sampling: Sampling = "greedy",
    reading: Reading = "ours",
    explain: Explain = 0,
    store: Store = None,
    dtype: DtypeOption = "auto",
    device: Device = "auto",
    batch_size: BatchSize = 8,
) -> None:
    """Rate the answers of a run, and the ground truth for the calibration. Several judges' results stand side by
    side."""
    opened = Run(run_folder)
    engine = open_engine(judge, dtype=dtype, device=device, batch_size=batch_size)
    _judge_run(opened, Judge(engine, named_rubric(rubric), mode, sampling, reading), store, explain)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders with scores.")],
    html: Annotated[Path | None, typer.Option(help="Write one HTML file with tables, charts and answers.")] = None,
    form: Annotated[
        Literal["table", "markdown", "latex", "csv"], typer.Option("--format", help="latex: the paper's Table 2.")
    ] = "table",
) -> None:
    """Print the scores of runs beside the paper's, or write a report of them."""
    found = [(path, one) for folder in runs for path in results.files(folder) for one in results.read_each(path)]
    if html is not None:
        opened = {path: Run(path.parent) for path, _ in found}
        views = [reports.View.of(opened[path], one) for path, one in found]
        rows = {row["id"]: row for run in opened.values() for row in _rows_of(run)}
        write_text(html, reports.html(views, list(rows.values())))
        print(html)
    elif form != "table":
        formats = {"markdown": reports.markdown, "latex": reports.latex, "csv": reports.to_csv}
        print(formats[form]([one for _, one in found]), end="")
    else:
        _console().print(reports.table([one for _, one in found]))
        if any(one.kind == "two-stage" for _, one in found):
            _console().print(reports.table3([one for _, one in found]))
        for path, one in found:
            print(f"{path.parent}: judge {one.group}")
            if one.judge.mass is not None:
                print(f"  mass on the allowed scores: {one.judge.mass:.3f} (below 0.9 the scores mean little)")


@app.command()
def submit(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="A judged run, or its result file alone.")],
    to: Annotated[str, typer.Option("--to", metavar="ORG/REPO", help="The results dataset on the Hub, or a folder.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
) -> None:
    """Bring a run's results and answers to a results dataset, as one pull request."""
    from huggingface_hub import HfApi

    found: list[tuple[bytes, bytes | None]] = []
    for one in (one for path in results.files(run_folder) for one in results.read_each(path)):
        answers = None
        if run_folder.is_dir():
            run, key = Run(run_folder), one.judge.key
            of_answer, of_truth = run.verdicts(key, "answer"), run.verdicts(key, "truth")
            table = submission.answer_table(_rows_of(run), run.answers(), of_answer, of_truth)
            answers = submission.answer_bytes(table)
        found.append((submission.published(one.model_dump(mode="json")), answers))
    api = HfApi()
    planned = submission.plan(api, to, found)
    print(planned)
    if not dry_run and (address := submission.submit(api, planned)):
        print(f"Done: {address}")


@app.command()
def card(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="A judged run, or its result file.")],
) -> None:
    """Print the run's `model-index` entry, for the head of the model's card."""
    print(submission.card([one for path in results.files(run_folder) for one in results.read_each(path)]))


@app.command()
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A judged run.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another, of the same questions and judge.")],
) -> None:
    """Print how much run A is better than run B, row by row: differences with 95% interval and p-value."""
    a, b = Run(run_a), Run(run_b)
    if a.config["revision"] != b.config["revision"]:
        told = (
            f"{r.folder} has {r.config['rows']} of {r.config['data']}, config {r.config['config']}, revision "
            f"{r.config['revision']}"
            for r in (a, b)
        )
        raise RunMismatch("only runs on the same questions can be compared: " + "; ".join(told))
    rows = _rows_of(a)
    keys_a, keys_b = ([results.read(path).judge.key for path in results.files(folder)] for folder in (run_a, run_b))
    common = [key for key in keys_a if key in keys_b]
    if not common:
        raise RunMismatch(
            f"no judge has rated both runs; {run_a}: {'; '.join(keys_a)}; {run_b}: {'; '.join(keys_b)}. "
            "Have one of them rated by the other's judge: easg-bench judge"
        )
    for key in common:
        # one calibration for both: the ground truth was the same, and so was its judge
        scale = calibration(key, rows, a.verdicts(key, "truth"))
        mine, theirs = (scored(rows, r.verdicts(key, "answer")) for r in (a, b))
        found = scoring.compare(mine, theirs, scale, scale)
        _console().print(_differences(found, run_a, run_b))
        print(f"judge {key}")
        if left_out := found.only_a + found.only_b + found.unscored:
            print(f"  {left_out} rows without a score in both runs are left out")


@app.command()
def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="All shards of one run.")],
    out: Annotated[Path, typer.Option(help="The folder of the whole run.")],
) -> None:
    """Put the shards of a run together; `judge` then makes its scores, of the verdicts that are there already."""
    merged = merge_runs([Run(folder) for folder in runs], out)
    print(f"{out}: {len(merged.answers())} answers of {len(runs)} shards; next: easg-bench judge {out} --judge JUDGE")


videos_app = typer.Typer(no_args_is_help=True, help="The videos that the questions are about.")
app.add_typer(videos_app, name="videos")


@videos_app.command("check")
def videos_check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of clips or full videos, by uid.")],
    data: Data = REPO,
    config: Config = "default",
) -> None:
    """Say which clips have no video that can be read, and the questions lost with them; exit code 3 if any."""
    try:
        found = framing.check_videos(folder, _load(data, config))
    except framing.VideoError as error:
        raise ValueError(str(error)) from error
    print(found)
    if found.partial:
        raise typer.Exit(3)


@videos_app.command("list")
def videos_list(
    data: Data = REPO,
    config: Config = "default",
    out: Annotated[Path | None, typer.Option(help="The file to write (default: print).")] = None,
) -> None:
    """Write the uids of the full videos, one a line, as the Ego4D downloader's --video_uid_file takes them."""
    text = "".join(f"{uid}\n" for uid in framing.uid_list(_load(data, config)))
    if out is None:
        print(text, end="")
    else:
        write_text(out, text)
        print(f"{out}: {text.count(chr(10))} videos")


@app.command("judge-check")
def judge_check(
    judge: JudgeSpec,
    data: Data = REPO,
    config: Config = "default",
    limit: Limit = 30,
    rubric: RubricName = "ours",
    mode: ModeOption = None,
    sampling: Sampling = "greedy",
    dtype: DtypeOption = "auto",
    device: Device = "auto",
    batch_size: BatchSize = 8,
    out: Annotated[Path | None, typer.Option(help="Write figures and every rating to this JSON file.")] = None,
) -> None:
    """Check whether a judge is fit: has it rate right, wrong and empty answers and attacks, about 10 for each row."""
    pool = _load(data, config)
    engine = open_engine(judge, dtype=dtype, device=device, batch_size=batch_size)
    rater = Judge(engine, named_rubric(rubric), mode, sampling, "ours")
    asked = check.probes(even_sample(pool, limit), pool, rater.rubric)
    other = check.second_seed(rater)
    verdicts, second = (
        [v for _, v in sorted(tqdm(check.rate(r, asked), total=len(asked), desc="ratings", unit="row"))] if r else []
        for r in (rater, other)
    )
    found = check.report(rater, asked, verdicts, second)
    _console().print(check.table(found))
    print(check.summary(found))
    if out is not None:
        ratings = [
            {"id": p.id, "kind": p.kind, "prediction": p.item.prediction, **line_of(v)}
            for p, v in zip(asked, verdicts, strict=True)
        ]
        write_json(out, {**found.as_dict(), "ratings": ratings})
    if found.errors:
        first = next(v.raw for v in verdicts if v.status == "judge_error")
        print(f"{found.errors} of {found.calls} calls failed, the first: {first}", file=sys.stderr)
        raise typer.Exit(3)


@app.command()
def rejudge(
    details: Annotated[
        list[Path], typer.Argument(metavar="DETAILS.parquet...", help="The details that lighteval saved of a run.")
    ],
    judge: JudgeSpec,
    out: Annotated[Path, typer.Option(help="The run folder that keeps both judges' verdicts.")],
    rubric: RubricName = "ours",
    mode: ModeOption = None,
    sampling: Sampling = "greedy",
    reading: Reading = "ours",
    explain: Explain = 0,
    store: Store = None,
    dtype: DtypeOption = "auto",
    device: Device = "auto",
    batch_size: BatchSize = 8,
) -> None:
    """Judge a finished lighteval run again with another judge; the model under test is not loaded. The first judge's
    result is kept beside the new one."""
    opened = logs.import_details(details, out)
    engine = open_engine(judge, dtype=dtype, device=device, batch_size=batch_size)
    _judge_run(opened, Judge(engine, named_rubric(rubric), mode, sampling, reading), store, explain)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
def lighteval(context: typer.Context) -> None:
    """Run lighteval with the tasks of tasks/; all arguments go to it as they are."""
    try:
        from videoqa.lighteval_run import main as run_lighteval
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "lighteval":
            raise
        raise ImportError("lighteval is not installed: pip install 'easg-bench[lighteval]'") from error
    raise typer.Exit(run_lighteval(context.args))


@app.command()
def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="The question's id.")],
    data: Data = REPO,
    config: Config = "default",
    videos: VideoFolder = None,
    out: Annotated[Path, typer.Option(help="Folder for the frames with the question's boxes (--videos).")] = Path(),
) -> None:
    """Print a question with its evidence; with --videos, draw its boxes onto the frames."""
    rows = _load(data, config)
    row = next((row for row in rows if row["id"] == id), None)
    if row is None:
        near = difflib.get_close_matches(id, [row["id"] for row in rows], n=1, cutoff=0)
        raise ValueError(f"{data}, config {config}: no question {id!r}; the nearest is {near[0] if near else 'none'}")
    print(regions.describe(row))
    if videos is None:
        return
    for path in regions.save_frames(row, videos, out, framing.clip_ends(rows).get(row["clip"])):
        print(f"{'wrote':<10}{path}")


@app.command("import-answers")
def import_answers(
    file: Annotated[Path, typer.Argument(help="A file with answers, for instance of the public judge script.")],
    data: Data = REPO,
    config: Config = "default",
    out: Out = Path("runs/run"),
    form: Annotated[str, typer.Option("--from", help=f"What wrote the file: {', '.join(READERS)}.")] = "script",
) -> None:
    """Make a run of answers that something else wrote; its scores come along if it has them."""
    if form not in READERS:
        raise ValueError(f"--from {form}: allowed are {', '.join(READERS)}")
    rows = _load(data, config)
    answered = import_run(file, form, rows, out, _where(data), config)
    judged = sum(one.verdict is not None for one in answered)
    print(f"{out}: {len(answered)} of {len(rows)} questions answered, {judged} judged")


@app.command("export-answers")
def export_answers(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder with answers.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
) -> None:
    """Write the answers of a run as the public judge script reads and writes them."""
    opened = Run(run_folder)
    lines, left_out = export_lines(opened, _rows_of(opened))
    write_json(out, lines)
    print(f"{out}: {len(lines)} answers" + (f" ({left_out})" if left_out else ""))


@app.command()
def fetch(
    source: Annotated[Path | None, typer.Option("--from", help="Take every file from this folder instead.")] = None,
) -> None:
    """Get the public files that the dataset and the paper's judge are made from."""
    fetch_sources(local=source)


# -- the steps --------------------------------------------------------------------------------------------------------


def _begin(
    engine: Engine,
    data: str,
    config: str,
    limit: int | None,
    out: Path,
    prompt: str,
    max_new_tokens: int,
    policy: framing.Policy | None,
    shard: str | None,
) -> tuple[list[Row], Run]:
    """The rows to ask and the run folder, which is made or found to be of the same run."""
    rows = even_sample(_load(data, config), limit)
    settings = {
        "format": 1,
        "data": _where(data),
        "config": config,
        "limit": limit,
        "revision": data_revision(rows),
        "rows": len(rows),
        "model": engine.name,
        "model_settings": engine.settings,
        "prompt": str(prompt),
        "max_new_tokens": max_new_tokens,
        "frames": None if policy is None else str(policy),
        "shard": shard,
    }
    asked = _asked(rows, settings)
    return asked, Run(out, settings)


def _asked(rows: list[Row], settings: dict[str, Any]) -> list[Row]:
    """The rows that a run asks: in two stages only those that look before or after; of a shard only its clips."""
    if settings["prompt"] == "two-stage":
        rows = [row for row in rows if row["type"] in TWO_STAGE_TYPES]
        if not rows:
            raise ValueError("two-stage prompting asks before and after questions, and these rows have none")
    return shard_of(rows, settings.get("shard"))


def _policy(prompt: str, frames: str, videos: Path | None) -> framing.Policy | None:
    """Which frames a prompt shows that shows any; checked before a model is loaded."""
    if prompt not in VIDEO_PROMPTS:
        if videos is not None or frames != str(framing.DEFAULT):
            raise ValueError(f"--videos and --frames are for the prompts {', '.join(VIDEO_PROMPTS)}, not for {prompt}")
        return None
    if videos is None:
        raise ValueError(f"the prompt {prompt} shows frames: give --videos, the folder of the videos")
    return framing.Policy.parse(frames)


def _videos(run: Run, folder: Path, policy: framing.Policy) -> Videos:
    """The videos of a run whose prompt shows frames."""
    try:
        return Videos.of(folder, policy, _load(run.config["data"], "default"))
    except framing.VideoError as error:
        raise ValueError(str(error)) from error


def _load(data: str, config: str) -> list[Row]:
    import easg_bench

    if "question" not in easg_bench.CONFIGS.get(config, {"question"}):
        raise ValueError(f"config {config}: holds no questions")
    rows = list(easg_bench.load(_where(data), config))
    try:  # now, and not when hours of answers are to be scored
        scoring.each_once((scoring.Scored(row["id"], row["clip"], row["type"], None) for row in rows), scoring.TYPES)
    except ValueError as error:
        raise ValueError(f"{data}, config {config}: {error}") from error
    return rows


def _where(data: str) -> str:
    """A folder by its full path, so that a run can be gone on with from another folder; a Hub repo as it is."""
    return str(Path(data).resolve()) if Path(data).is_dir() else data


def _rows_of(run: Run) -> list[Row]:
    """The questions of a run, checked to be those that were answered."""
    kept: list[Row] = list(run.questions_file.read())
    rows = kept or even_sample(_load(run.config["data"], run.config["config"]), run.config["limit"])
    if data_revision(rows) != run.config["revision"]:
        raise RunMismatch(
            f"{run.folder} was answered on revision {run.config['revision']} of {run.config['data']}, which is now "
            f"{data_revision(rows)}: run it again with another --out"
        )
    return _asked(rows, run.config)


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


def _judge_run(run: Run, judge: Judge, store: Path | None, explain: int) -> None:
    rows = _rows_of(run)
    with run.alone():
        failed = _rate(judge, rows, run, store, explain)
    report([run.folder])
    _finish(failed, run.folder)
    answers = run.answers()
    if any(answers.get(row["id"], {"error": "not asked"})["error"] is not None for row in rows):
        raise typer.Exit(3)


def _rate(judge: Judge, rows: list[Row], run: Run, store: Path | None, explain: int) -> int:
    """Rate what has no verdict yet and write the result; the number of rows that failed."""
    if explain and judge.mode != "paper":
        list(judge.explain([], []))  # an engine that cannot is said now, not after the rating
    predictions = {k: line["prediction"] for k, line in run.answers().items() if line["error"] is None}
    if missing := sum(row["id"] not in predictions for row in rows):
        print(f"{missing} of {len(rows)} rows have no answer and are not rated ({run.folder})", file=sys.stderr)
    kept = VerdictStore(store or default_store(), judge.key)
    known = sum(v.status != "judge_error" for of in ("answer", "truth") for v in run.verdicts(judge.key, of).values())
    failed = []
    with tqdm(total=len(predictions) + len(rows), initial=known, desc="verdicts", unit="row") as bar:
        for identifier, verdict in judge_rows(judge, rows, predictions, run, kept):
            bar.update()
            if verdict.status == "judge_error":
                failed.append((identifier, verdict.raw))
    for identifier, why in failed[:10]:
        print(f"no verdict: {identifier}: {why}", file=sys.stderr)
    write_json(run.scores_path(judge.key), result(run, rows, describe(judge)))
    if explain and judge.engine.can_force:  # else the replies of mode paper hold what the judge says
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
    items = [Item(r["question"], r["answer"], answers[r["id"]]["prediction"], r["context"]) for r in wanted]
    given = [verdicts[r["id"]] for r in wanted]
    for index, text in tqdm(judge.explain(items, given), total=len(items), desc="explanations", unit="row"):
        digest = short_hash(items[index].prediction or "")
        line = {"id": wanted[index]["id"], "of": "answer", "judge": judge.key, "rated": digest}
        run.verdicts_file.append(line | line_of(replace(given[index], explanation=text)))


def _finish(failed: int, out: Path) -> None:
    if failed:
        print(f"{failed} rows failed; the same command asks only for them again ({out})", file=sys.stderr)
        raise typer.Exit(3)


# -- what is shown ----------------------------------------------------------------------------------------------------


def _console() -> Any:
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=140)


def _differences(found: scoring.Comparison, a: Path, b: Path) -> Any:
    """Relative scores of two runs side by side with their difference."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{escape(str(a))} minus {escape(str(b))}, relative score x 100")
    table.add_column("")
    for name in ("rows", "clips", "A", "B", "A - B", "95% interval", "p"):
        table.add_column(name, justify="right")
    for name, d in {**found.by_type, "Avg.": found.avg}.items():
        interval = f"{d.interval[0]:+.2f} to {d.interval[1]:+.2f}" if d.interval else "-"
        figures = f"{d.a:.2f}", f"{d.b:.2f}", f"{d.difference:+.2f}", interval, f"{d.p_value:.4f}"
        table.add_row(name, str(d.n), str(d.clusters), *figures, style="bold" if name == "Avg." else None)
    return table


def main() -> None:
    """The command line: errors that a user can mend are one line, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale that lacks a letter of a name is no error
    try:
        app()
    except (ValueError, OSError, ImportError, framing.VideoError) as error:
        print(f"easg-bench: {error}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        import httpx

        if not isinstance(error, httpx.HTTPError):
            raise
        print(f"easg-bench: the Hugging Face Hub cannot be reached: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":  # python -m videoqa.cli, for launchers that want a module
    main()
