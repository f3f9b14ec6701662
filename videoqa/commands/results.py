"""`report`, `submit`, `card`, `compare`: what is made of results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from huggingface_hub.constants import EVAL_RESULTS_FOLDER

from videoqa import answers_file, comparison, figures, panel, results, tables
from videoqa import report as reports
from videoqa import submit as submission
from videoqa.commands import options as o
from videoqa.errors import UserError
from videoqa.files import write_text
from videoqa.hosts.lighteval.results import read_each
from videoqa.hosts.trackers import check_tracker, log_results
from videoqa.rating import calibration, scored
from videoqa.runs import Run, RunMismatch, rows_of
from videoqa.steps import read_steps
from videoqa.usage import prices_of

app = typer.Typer()


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders with scores.")],
    html: Annotated[Path | None, typer.Option(help="Write one HTML file with tables, charts and answers.")] = None,
    form: Annotated[
        Literal["table", "markdown", "latex", "csv"],
        typer.Option("--format", help="latex: as papers print it (booktabs)."),
    ] = "table",
    price: o.Price = None,
    log: o.Log = None,
) -> None:
    """Print the scores of runs beside the paper's, or write a report of them."""
    check_tracker(log)
    prices = None if price is None else prices_of(price)
    if prices is not None and html is None:
        raise UserError("--price is for --html; `easg-bench usage RUN --price ...` prints the costs")
    read = [(path, one) for folder in runs for path in results.files(folder) for one in read_each(path)]
    if html is not None:
        opened = {path: Run(path.parent) for path, _ in read}
        views = [reports.View.of(opened[path], one) for path, one in read]
        rows = {row["id"]: row for run in opened.values() for row in rows_of(run)}
        write_text(html, reports.html(views, list(rows.values()), prices))
        print(f"{html}: {len(rows):,} rows, {html.stat().st_size / 1e6:.1f} MB")
    elif form != "table":
        formats = {"markdown": tables.markdown, "latex": tables.latex, "csv": tables.to_csv}
        print(formats[form]([one for _, one in read]), end="")
        for one in _panels(read) if form == "markdown" else ():
            print(f"\n{panel.markdown(one)}", end="")
    else:
        _print_tables(read)
    if log is not None:
        log_results(log, [one for _, one in read])


def _panels(read: list[tuple[Path, results.Result]]) -> list[panel.Panel]:
    """The panels of runs that several judges have rated; their answers are read only then."""
    judged = [(path, one) for path, one in read if one.judge is not None and (path.parent / "config.json").is_file()]
    folders = [path.parent for path, _ in judged]
    made = []
    for folder in dict.fromkeys(folder for folder in folders if folders.count(folder) > 1):
        run = Run(folder)
        views = [reports.View.of(run, one) for path, one in judged if path.parent == folder]
        try:
            made += reports.panels(views, rows_of(run))
        except (UserError, OSError) as error:
            print(f"no panel of {folder}: {error}", file=sys.stderr)
    return made


def _print_tables(read: list[tuple[Path, results.Result]]) -> None:
    every = [one for _, one in read]
    second = tables.track_of(every).beside
    for of_group in tables.grouped(every).values():
        for path, one in read:
            if one in of_group:
                frames = f", frames {one.frames}" if one.frames else ""
                print(f"{path.parent}: prompt {one.prompt}{frames}, {one.coverage} rows have a score")
        for line in tables.about(of_group):
            print(f"  {line}")
        for one in of_group:
            for line in tables.remarks(one):
                print(f"  {line}")
        console().print(tables.table(of_group, console().width))
        for line in tables.notes(of_group):
            print(line)
        if any(one.prompt == second[-1] for one in of_group if second):
            console().print(tables.beside(of_group))
    for of_values in tables.breakdown_tables(every):
        console().print(of_values)
    if (extras := figures.extras_table(every)) is not None:
        console().print(extras)
    if len(tables.grouped(every)) > 1:
        print("These are several judges or data sets: their scores cannot be compared.")
    for of_run in _panels(read):
        console().print(panel.table(of_run, console().width))
        print("\n".join(f"  {line}" for line in of_run.lines))


@app.command()
def submit(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="A judged run, or its result file alone.")],
    to: Annotated[str, typer.Option("--to", metavar="ORG/REPO", help="The results dataset on the Hub, or a folder.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    partial: Annotated[bool, typer.Option("--partial", help="Also a run that lacks some of its rows.")] = False,
) -> None:
    """Bring a run's results and answers to a results dataset, as one pull request."""
    from huggingface_hub import HfApi

    bundles: list[tuple[bytes, bytes | None]] = []
    every = []
    for path in results.files(run_folder):
        for one in read_each(path):
            if why := tables.distrusted(one):
                raise UserError(
                    f"{path}: {why}; such numbers are not submitted (without this file, the run's others are)"
                )
            every.append(one)
    if (lacking := tables.notes(every)) and not partial:
        raise UserError(f"{run_folder}: " + "; ".join(lacking) + ". Finish the run, or submit it with --partial")
    for one in every:
        answers = None
        if run_folder.is_dir():
            run, key = Run(run_folder), one.scorer
            of_answer, of_truth = run.verdicts(key, "answer"), run.verdicts(key, "truth")
            table = answers_file.answer_table(rows_of(run), run.answers(), of_answer, of_truth, read_steps(run.folder))
            answers = answers_file.answer_bytes(table)
        bundles.append((submission.published(one.model_dump(mode="json")), answers))
    api = HfApi()
    planned = submission.plan(api, to, bundles)
    print(planned)
    if not dry_run and (address := submission.submit(api, planned)):
        print(f"Done: {address}")


@app.command()
def card(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="A judged run, or its result file.")],
    dataset: Annotated[
        str | None, typer.Option(metavar="ORG/NAME", help="The questions on the Hub (default: the run's data).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A copy of the model's repo: the files are written into it, not printed.")
    ] = None,
    form: Annotated[
        Literal["eval-results", "model-index"],
        typer.Option("--format", help="model-index: the older form, an entry for the head of the model's card."),
    ] = "eval-results",
) -> None:
    """Print the run's scores as files of the model's repo (.eval_results/*.yaml), from which the Hub shows them on the
    model's page and ranks them on the dataset's."""
    found = [one for path in results.files(run_folder) for one in read_each(path)]
    if form == "model-index":
        print(submission.card(found))
        return
    for name, text in submission.eval_results(found, dataset).items():
        if out is None:
            print(f"# .eval_results/{name}\n{text}", end="")
        else:
            path = out / EVAL_RESULTS_FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
            print(path)


@app.command()
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A judged run.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another, of the same questions and judge.")],
) -> None:
    """Print how much run A is better than run B, row by row: differences with 95% interval and p-value."""
    a, b = Run(run_a), Run(run_b)
    if a.config["revision"] != b.config["revision"] or a.track.name != b.track.name:
        each = "; ".join(
            f"{r.folder} has {r.config['rows']} of {r.config['data']}, config {r.config['config']}, revision "
            f"{r.config['revision']}"
            for r in (a, b)
        )
        raise RunMismatch(f"only runs on the same questions can be compared: {each}")
    rows = rows_of(a)
    keys_a, keys_b = ([results.read(path).scorer for path in results.files(folder)] for folder in (run_a, run_b))
    common = [key for key in keys_a if key in keys_b]
    if not common:
        raise RunMismatch(
            f"no judge has rated both runs; {run_a}: {'; '.join(keys_a)}; {run_b}: {'; '.join(keys_b)}. "
            "Have one of them rated by the other's judge: easg-bench judge"
        )
    for key in common:
        # one calibration for both: the ground truth was the same, and so was its judge
        scale = calibration(a.track, key, rows, a.verdicts(key, "truth"))
        mine, theirs = (scored(rows, r.verdicts(key, "answer")) for r in (a, b))
        both = comparison.compare(mine, theirs, scale, key=key, types=a.track.types)
        console().print(_differences(both, run_a, run_b, a.track.measure.title))
        print(f"judge {key}")
        if left_out := both.only_a + both.only_b + both.unscored:
            print(f"  {left_out} rows without a score in both runs are left out")


def _differences(both: comparison.Comparison, a: Path, b: Path, measure: str) -> Any:
    """The scores of two runs side by side with their difference, as a rich table."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{escape(str(a))} minus {escape(str(b))}, {measure[:1].lower()}{measure[1:]}")
    table.add_column("", overflow="fold")
    for name in ("rows", "clips", "A", "B", "A - B", "95% interval", "p"):
        table.add_column(name, justify="right", overflow="fold")
    for name, d in {**both.by_type, "Avg.": both.avg}.items():
        interval = f"{d.interval[0]:+.2f} to {d.interval[1]:+.2f}" if d.interval else "-"
        figures = f"{d.a:.2f}", f"{d.b:.2f}", f"{d.difference:+.2f}", interval, f"{d.p_value:.4f}"
        table.add_row(name, str(d.n), str(d.clusters), *figures, style="bold" if name == "Avg." else None)
    return table


def console() -> Any:
    """A terminal as it is, a file 140 columns wide."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=140)
