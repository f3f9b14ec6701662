"""The commands that make and look after the dataset of EASG-Bench: `python -m builder --help`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from tqdm import tqdm

from builder.easg.annotations import USUAL_NAMES, read_clips, recorded_scores
from builder.easg.questions import SameFrame
from builder.errors import BuildError

if TYPE_CHECKING:
    from builder.easg.pipeline import Method
    from builder.stages import Stages
    from videoqa.engines import Engine

app = typer.Typer()


@app.command()
def build(
    out: Annotated[Path, typer.Option(help="folder for the dataset repo; a former build there is replaced")],
    source: Annotated[Path | None, typer.Option(help="folder with the files below under their usual names")] = None,
    annotations: Annotated[Path | None, typer.Option(help=f"action graphs ({USUAL_NAMES['annotations']})")] = None,
    narrations: Annotated[Path | None, typer.Option(help=f"text of each clip ({USUAL_NAMES['narrations']})")] = None,
    votes: Annotated[
        str | None,
        typer.Option(metavar="llm|FILE", help=f"uniqueness scores ({USUAL_NAMES['votes']}), or by the model"),
    ] = None,
    purpose_counts: Annotated[
        Path | None,
        typer.Option(help=f"purpose questions of each clip ({USUAL_NAMES['purpose_counts']}); optional with votes llm"),
    ] = None,
    spans: Annotated[
        Path | None, typer.Option(help=f"optional: where clips start in their video ({USUAL_NAMES['spans']})")
    ] = None,
    same_frame: Annotated[
        SameFrame, typer.Option(help="two asked actions in one frame: keep the later, as the paper does, or all")
    ] = "last",
    wording: Annotated[Literal["template", "llm"], typer.Option(help="who words the questions")] = "template",
    purposes: Annotated[
        Literal["written", "template", "llm"] | None,
        typer.Option(
            help="purpose pairs: those that readers wrote (of other clips by template), all by template, or the "
            "model's; without it llm with --wording llm, else written"
        ),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="the model: a folder, a Hub id, vllm:NAME or server:NAME@URL")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="votes of the model on each action, and on each pair")] = 5,
    vote_count: Annotated[
        Literal["received", "notebook"],
        typer.Option(help="score over the votes that an action got, or over all readable replies as the notebook"),
    ] = "received",
    generic: Annotated[
        Literal["auto", "on", "off"], typer.Option(help="leave generic pairs out; auto: with --votes llm")
    ] = "auto",
    attributes: Annotated[
        Literal["off", "column", "wording"],
        typer.Option(help='adjectives of grounded objects as a column, or in the questions too ("the wooden table")'),
    ] = "off",
    stages: Annotated[
        Path | None, typer.Option(help="folder for what the model said and what was decided (OUT.stages)")
    ] = None,
    clip: Annotated[list[str] | None, typer.Option(help="only this clip; can be given again, for a trial")] = None,
) -> None:
    """Build the dataset repo from annotations and narrations, with recorded votes or with a language model.

    A build with a model that was stopped goes on where it was: what the model said is in the stages folder.
    """
    inputs = {
        "annotations": annotations,
        "narrations": narrations,
        "votes": None if votes is None or votes == "llm" else Path(votes),
        "purpose_counts": purpose_counts,
        "spans": spans,
    }
    from builder.easg.pipeline import Method

    optional = {"spans", "votes", "purpose_counts"} if votes == "llm" else {"spans"}
    files = _files(source, inputs, optional)
    if votes == "llm":
        files.pop("votes", None)
    method = Method(
        same_frame=same_frame,
        votes="llm" if votes == "llm" else "recorded",
        vote_count=vote_count,
        runs=runs,
        wording=wording,
        purposes=purposes or ("llm" if wording == "llm" else "written"),
        generic=generic == "on" or (generic == "auto" and votes == "llm"),
        attributes=attributes,
        counted="purpose_counts" in files,
    )
    _build(files, out, method, engine, stages or out.with_name(f"{out.name}.stages"), clip or [])


@app.command()
def agreement(
    stages: Annotated[Path, typer.Argument(help="stages folder of a build with --votes llm")],
    recorded: Annotated[Path, typer.Argument(help=f"recorded votes ({USUAL_NAMES['votes']})")],
) -> None:
    """Print how far a model's votes keep the same actions as the recorded ones."""
    from builder.easg import votes

    typer.echo(votes.agreement(stages, recorded_scores(recorded)))


@app.command()
def explain(
    id: Annotated[str, typer.Argument(help="of a question, also of one that was not made: CLIP:4:before")],
    data: Annotated[Path, typer.Option(help="the dataset repo")] = Path("build/easg-bench"),
    stages: Annotated[Path | None, typer.Option(help="stages folder of its build (DATA.stages)")] = None,
) -> None:
    """Print one question's history, from the graph to the row."""
    from builder.easg.explain import explain as history

    typer.echo(history(id, data, stages or data.with_name(f"{data.name}.stages")))


@app.command()
def read_notebook(
    file: Annotated[Path, typer.Argument(help="generate_QA.ipynb of fpv-iplab/EASG-bench, with its outputs")],
    annotations: Annotated[
        Path | None, typer.Option(help=f"action graphs (beside the notebook: {USUAL_NAMES['annotations']})")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="folder for the two files; without it that of the notebook")] = None,
) -> None:
    """Write the recorded votes and purpose counts out of what the public notebook printed."""
    from builder.easg import notebook

    clips, _ = read_clips(annotations or file.with_name(USUAL_NAMES["annotations"]))
    votes, counts, warnings = notebook.read_notebook(file, clips)
    _warn(warnings)
    _write(out or file.parent, {"votes": votes, "purpose_counts": counts})
    typer.echo(
        f"votes of {len(votes['scores']):,} clips, {len(votes['inferred_clips']):,} of them inferred; "
        f"{sum(counts.values()):,} purpose questions in {len(counts):,} clips"
    )


@app.command()
def spans(
    source: Annotated[
        Path | None,
        typer.Option(help=f"folder with {USUAL_NAMES['annotations']} and easg_*.pkl; without it that of fetch"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="folder for the file; without it --source")] = None,
) -> None:
    """Write where each clip starts in its video, out of the two frame numberings of the EASG release."""
    from builder.easg.spans import clip_spans
    from videoqa.benchmarks.easg.sources import sources_folder

    source = source or sources_folder()
    clips, _ = read_clips(source / USUAL_NAMES["annotations"])
    by_clip, warnings = clip_spans(clips, [source / f"easg_{split}.pkl" for split in ("train", "val")])
    _warn(warnings)
    _write(out or source, {"spans": by_clip})
    typer.echo(f"starts of {len(by_clip):,} of {len(clips):,} clips")


@app.command("import-grounded")
def import_grounded(
    file: Annotated[Path, typer.Argument(help="the authors' file of grounded questions, by clip and frame")],
    out: Annotated[Path, typer.Option(help="folder for the dataset repo; a former build there is replaced")],
    narrations: Annotated[Path | None, typer.Option(help=f"text of each clip ({USUAL_NAMES['narrations']})")] = None,
) -> None:
    """Make the dataset repo of the authors' own questions, with their wording and groundings as they are."""
    from builder import repo
    from builder.easg import card, dataset, grounded_file
    from builder.easg.rows import derived_rows
    from easg_bench import TYPES

    counts: Counter[str] = Counter()
    repo.check_place(out)  # before the work, not after it
    questions, narration_rows = grounded_file.read_rows(file, narrations, counts)
    rows = {
        **{kind: [row for row in questions if row["type"] == kind] for kind in TYPES},
        **derived_rows(questions, [], counts),
        "narrations": narration_rows,
    }
    dataset.write(out, [rows], [file, *([narrations] if narrations else [])], card.IMPORTED)
    typer.echo(f"questions: {', '.join(f'{kind} {len(rows[kind]):,}' for kind in TYPES)}, total {len(questions):,}")
    for kind, n in sorted((+counts).items()):
        typer.echo(f"{n:7,}  {kind}")
    typer.echo(f"dataset: {out}\nsha256: {repo.folder_sha256(out)}")


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the dataset repo")],
    every: Annotated[bool, typer.Option("--all", help="print every problem, not the first of each kind")] = False,
) -> None:
    """Look for problems: errors, which publish refuses (exit code 1), and warnings."""
    from builder.easg.check import check as look

    report = look(folder)
    typer.echo(report.text(None if every else 3))
    if report.errors:
        raise typer.Exit(1)


@app.command()
def publish(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the dataset repo")],
    repo: Annotated[str, typer.Option(help="name on the Hub: ORG/NAME")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what would be done")] = False,
) -> None:
    """Publish the dataset repo on the Hub in one commit; what is the same there stays."""
    from huggingface_hub import HfApi

    from builder import publish as hub
    from builder.easg.check import check as look

    report = look(folder)
    if report.errors:
        typer.echo(report.text(3))
        raise BuildError(f"{folder}: not published, for it has {len(report.errors):,} errors")
    planned = hub.plan(folder, repo, report.rows, HfApi())
    typer.echo(str(planned))
    if not dry_run and (address := hub.publish(folder, planned, HfApi())):
        typer.echo(f"published: {address}")


@app.command()
def stats(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the dataset repo")],
    out: Annotated[Path | None, typer.Option(help="folder for the picture, statistics.png")] = None,
) -> None:
    """Print the dataset's statistics, and draw them."""
    from builder.easg import readings, reviews
    from builder.easg import stats as numbers
    from builder.easg.check import rows_of
    from builder.repo import PICTURE

    rows = rows_of(folder)
    counted = numbers.count(rows["default"], rows.get("graphs", []))
    typer.echo(numbers.text(counted))
    of_rows = [review for review in readings.read().reviews.values() if review.id in {r["id"] for r in rows["default"]}]
    if read := reviews.text(rows["default"], {row["id"] for row in rows.get("unambiguous", [])}, of_rows):
        typer.echo(f"\n{read}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        numbers.draw(counted, out / PICTURE)
        typer.echo(f"wrote {out / PICTURE}")


@app.command("blind-check")
def blind_check(
    data: Annotated[Path, typer.Option(help="the dataset repo")],
    engine: Annotated[
        str, typer.Option(help="the model that answers: a folder, a Hub id, vllm:NAME or server:NAME@URL")
    ],
    judge: Annotated[str | None, typer.Option(help="the judge; without it the same model")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="questions of each kind, spread evenly")] = None,
    stages: Annotated[Path | None, typer.Option(help="folder for what was said (DATA.blind)")] = None,
) -> None:
    """Ask the purpose questions, and as many by template, without the clip, and have the answers judged.

    Says which share can be guessed. A check that was killed goes on where it was; exit code 3: some have no score.
    """
    from builder.easg import blind
    from builder.easg.check import rows_of
    from builder.stages import Stages
    from videoqa.benchmark import ScorerOptions
    from videoqa.benchmarks.easg import judge as judge_of

    rows = rows_of(data)
    asked = blind.questions(rows["default"], rows.get("graphs", []), limit)
    model = _engine(engine)
    of_judge = model if judge in (None, engine) else _engine(str(judge), "--judge")
    folder = stages or data.with_name(f"{data.name}.blind")
    with Stages(folder, model, ("blind",)) as kept:
        guesses = blind.check(asked, kept, judge_of(of_judge, ScorerOptions()))
        typer.echo(f"model {model.name}, {kept.prompts_sent:,} prompts sent; {folder / 'blind.jsonl'}")
    typer.echo(blind.text(guesses))
    if blind.missing_of(guesses):
        raise typer.Exit(3)


def _write(folder: Path, contents: dict[str, Any]) -> None:
    """{role: content} as JSON files under their usual names."""
    from videoqa.files import write_json

    for role, content in contents.items():
        write_json(folder / USUAL_NAMES[role], content)
        typer.echo(f"wrote {folder / USUAL_NAMES[role]}")


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)


def _files(source: Path | None, inputs: dict[str, Path | None], optional: set[str]) -> dict[str, Path]:
    """The input files: those given, the others from `source`; the optional ones where they are there."""
    files = {}
    for role, path in inputs.items():
        if path is None and source is not None and (role not in optional or (source / USUAL_NAMES[role]).exists()):
            path = source / USUAL_NAMES[role]
        if path is not None:
            files[role] = path
        elif role not in optional:
            raise BuildError(f"--{role.replace('_', '-')} is missing; give it, or --source for a folder that has it")
    return files


def _build(
    files: dict[str, Path],
    out: Path,
    method: Method,
    engine: str | None,
    stages_folder: Path,
    only: list[str],
) -> None:
    from builder import repo
    from builder.easg import card, dataset, pipeline, readings, reviews
    from builder.easg.rows import clip_rows

    repo.check_place(out)  # before the work, not after it
    if method.uses_model and engine is None:
        raise BuildError("--engine is missing; it names the language model for what shall not be by record or template")
    if engine is not None and not method.uses_model:
        raise BuildError(
            f"--engine {engine}: nothing here is for a model; say what with --votes llm, --wording llm, ..."
        )
    clips, warnings = read_clips(**files)
    if unknown := sorted({*only} - {clip.uid for clip in clips}):
        raise BuildError(f"{files['annotations']}: has no clip {unknown[0]}")
    clips = [clip for clip in clips if not only or clip.uid in only]
    read = readings.read(files["annotations"].parent)
    counts: Counter[str] = Counter()
    funnel: Counter[str] = Counter()
    per_clip: dict[str, Counter[str]] = {}  # clip -> questions by type

    def batches(stages: Stages | None) -> Iterator[dict[str, list[Any]]]:
        pairs = pipeline.rows(clips, method, read, stages, counts, funnel)
        for clip, questions in tqdm(pairs, desc="clips", unit="clip", total=len(clips)):
            per_clip[clip.uid] = Counter(row["type"] for row in questions)
            yield clip_rows(clip, questions, counts)

    sources = [*files.values(), *read.paths]
    agreement = reviews.card_text(reviews.of_clips(read, {clip.uid for clip in clips}))
    if method.uses_model and engine is not None:
        from builder.stages import Stages

        with Stages(stages_folder, _engine(engine), pipeline.DECISIONS) as stages:
            try:
                made = f"{pipeline.card_text(method, stages.engine.name)}{agreement}"
                dataset.write(out, batches(stages), sources, made)
            finally:
                prompts = f"stages: {stages_folder}, {stages.prompts_sent:,} prompts of this build"
                typer.echo(f"{pipeline.funnel_text(funnel)}\n{prompts}")
    else:
        made = f"{card.recorded(method.same_frame, method.purposes)}{agreement}"
        dataset.write(out, batches(None), sources, made)
    typer.echo(_summary(per_clip, counts, warnings))
    typer.echo(f"dataset: {out}\nsha256: {repo.folder_sha256(out)}")


def _summary(per_clip: dict[str, Counter[str]], counts: Counter[str], warnings: Counter[str]) -> str:
    """What a build made, and what it met in its input. `per_clip` has the questions of every clip by type."""
    from easg_bench import TYPES

    made = sum(per_clip.values(), Counter[str]())
    with_actions = sum(any(n for kind, n in of_clip.items() if kind != "purpose") for of_clip in per_clip.values())
    lines = [
        f"questions: {', '.join(f'{kind} {made[kind]:,}' for kind in TYPES)}, total {made.total():,}",
        f"clips: {len(per_clip):,} annotated, {sum(map(bool, per_clip.values())):,} with questions, "
        f"{with_actions:,} with action questions",
    ]
    for title, counter in (("made", counts), ("skipped or missing in the input", warnings)):
        lines += [f"{title}:", *([f"{n:7,}  {kind}" for kind, n in sorted((+counter).items())] or ["  nothing"])]
    return "\n".join(lines)


def _engine(spec: str, option: str = "--engine") -> Engine:
    from videoqa.engines import open_engine

    try:
        return open_engine(spec)
    except (ValueError, OSError, ImportError) as error:
        raise BuildError(f"{option} {spec}: {error}") from error
