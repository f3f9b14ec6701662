"""The command that makes WorldQA's dataset: `python -m builder worldqa --help`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from builder.errors import BuildError

app = typer.Typer(help="WorldQA: questions on videos that need knowledge of the world.")


@app.callback()
def worldqa() -> None:
    """WorldQA: questions on videos that need knowledge of the world."""


@app.command()
def build(
    source: Annotated[
        str, typer.Option(help="folder with the configs Generation, MC and MC_PPL of the public copy, or ORG/NAME")
    ],
    out: Annotated[Path, typer.Option(help="folder for the dataset repo; a former build there is replaced")] = Path(
        "build/worldqa-open"
    ),
    notes: Annotated[
        Path | None, typer.Option(help="JSON file with knowledge types, reasoning steps and descriptions of events")
    ] = None,
) -> None:
    """Build the dataset repo from the public copy, or a folder in its form, whose rotations have to be complete."""
    from builder import repo
    from builder.worldqa import card
    from builder.worldqa.files import GENERATION, MC, MC_PPL, files_of, folder_of
    from builder.worldqa.questions import read
    from videoqa.benchmarks.worldqa.data import CHOICE, OPEN, features, rotated_features
    from videoqa.choices import CIRCULAR, rearranged

    repo.check_place(out)  # before the work, not after it
    folder = folder_of(source)
    questions = read(folder, notes)
    if not questions.open:
        raise BuildError(f"{source}: has no rows of {GENERATION}, the open-ended questions")
    paths = [path for config in (GENERATION, MC, MC_PPL) for path in files_of(folder, config)]
    with repo.replaced(out) as fresh:
        files, sizes = {}, {}
        rotated = rearranged(questions.choice, CIRCULAR)
        for config, rows, columns in ((OPEN, questions.open, features()), (CHOICE, rotated, rotated_features())):
            if rows:
                table = repo.Table(fresh, config, columns)
                table.add(rows)
                sizes[config] = table.close()
                files[config] = table.path.relative_to(fresh).as_posix()
        sources = [*paths, *([notes] if notes else [])]
        tasks = card.CARD.tasks_file(["default", *(config for config in files if config != OPEN)])
        (fresh / repo.TASKS).write_text(tasks, encoding="utf-8")
        (fresh / "README.md").write_text(card.text(files, sizes, sources, folder, fresh), encoding="utf-8")
    videos = {row["video"] for row in questions.open}
    typer.echo(f"{OPEN}: {len(questions.open):,} questions on {len(videos):,} videos")
    options = Counter(len(row["choices"]) for row in questions.choice)
    counts = ", ".join(f"{n:,} with {count} options" for count, n in sorted(options.items(), reverse=True))
    typer.echo(
        f"{CHOICE}: {len(questions.choice):,} questions{f' ({counts})' if counts else ''}, {len(rotated):,} rotations"
    )
    if questions.alone:
        typer.echo(f"{len(questions.alone)} of them are not in {GENERATION}, {questions.alone[0]} the first")
    typer.echo(f"dataset: {out}\nsha256: {repo.folder_sha256(out)}")


Source = Annotated[Path, typer.Argument(metavar="SOURCE", help="folder in the form of the public copy")]
Notes = Annotated[Path | None, typer.Option(help="JSON file with what is known already (events help the engine)")]
EngineSpec = Annotated[str, typer.Option(help="the model: a folder, a Hub id, vllm:NAME or server:...")]
Limit = Annotated[int | None, typer.Option(min=1, help="only the first N questions, for a trial")]
StagesFolder = Annotated[Path | None, typer.Option(help="folder for what the model said (OUT.stages)")]


@app.command()
def annotate(
    source: Source,
    engine: EngineSpec,
    out: Annotated[Path, typer.Option(help="JSON file for `build --notes`; it may be that of --notes")],
    notes: Notes = None,
    samples: Annotated[int, typer.Option(min=1, help="votes on each question")] = 3,
    limit: Limit = None,
    stages: StagesFolder = None,
) -> None:
    """Have an engine say which knowledge and how many steps of thought each question needs. What was stopped goes on
    where it was; what cannot be decided is left out and named (exit code 3)."""
    from builder.stages import Stages
    from builder.worldqa import annotate as annotating
    from builder.worldqa.notes import read_notes
    from videoqa.files import write_json

    rows = _open_rows(source, notes, limit)
    opened = _opened(engine, "--engine")
    with Stages(stages or out.with_name(f"{out.name}.stages"), opened, annotating.DECISIONS) as asking:
        made = annotating.annotate(rows, asking, samples)
    write_json(out, annotating.notes_with(read_notes(notes) if notes else {}, made))
    typer.echo(annotating.summary(made))
    typer.echo(f"notes: {out}; stages: {asking.folder}, {asking.prompts_sent:,} prompts of this run")
    failed = sum(one.failed for one in made)
    if failed:
        typer.echo(f"{failed} calls failed; the same command asks only for them again", err=True)
    if failed or any(one.steps is None or one.knowledge is None for one in made):
        raise typer.Exit(3)


@app.command("make-choices")
def make_choices(
    source: Source,
    engine: EngineSpec,
    out: Annotated[Path, typer.Option(help="folder for the questions in the form of the public copy")],
    blind_engine: Annotated[
        list[str] | None, typer.Option(help="a model that must not find the answer; may come more than once (--engine)")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="a model that must not find a wrong option right in other words (--engine)")
    ] = None,
    notes: Notes = None,
    options: Annotated[int, typer.Option(min=3, max=5, help="options of a question")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="how often options are changed at most")] = 5,
    limit: Limit = None,
    stages: StagesFolder = None,
) -> None:
    """Make multiple-choice questions of open ones: wrong options by an engine, changed until blind models fail. What
    was stopped goes on where it was; questions that never pass are listed and left out (exit code 3)."""
    import json

    from builder.stages import Stages
    from builder.worldqa import choices
    from builder.worldqa.files import GENERATION, MC, MC_PPL, rows_of
    from videoqa.benchmarks.worldqa.rubrics import KEY_POINTS
    from videoqa.files import write_json, write_text
    from videoqa.judge import Judge
    from videoqa.store import VerdictStore

    ours = {"choices.json", *(f"{config}.jsonl" for config in (GENERATION, MC, MC_PPL))}
    if out.exists() and (not out.is_dir() or {path.name for path in out.iterdir()} - ours):
        raise BuildError(f"{out}: holds something else; choose a new folder")
    rows = _open_rows(source, notes, limit)
    writer = _opened(engine, "--engine")
    answerers = [_opened(one, "--blind-engine") for one in blind_engine or ()] or [writer]
    rater = writer if judge is None else _opened(judge, "--judge")
    folder = stages or out.with_name(f"{out.name}.stages")
    grader = Judge(rater, KEY_POINTS)
    graded = VerdictStore(folder / "verdicts", grader.key)
    answering = [Stages(folder / f"blind-{n}", one, ()) for n, one in enumerate(answerers, 1)]
    with Stages(folder, writer, choices.DECISIONS) as writing:
        drafts = choices.make(rows, writing, answering, grader, graded, options=options, rounds=rounds)
    made = [list(choices.rotations(draft)) for draft in drafts if draft.passed]
    files = {
        GENERATION: [dict(row) for _, row in rows_of(source, GENERATION)],
        MC: [row for of in made for row in of],
        MC_PPL: [of[0] for of in made],
    }
    for config, of in files.items():
        write_text(out / f"{config}.jsonl", "".join(json.dumps(row) + "\n" for row in of))
    write_json(out / "choices.json", choices.report(drafts, [one.name for one in answerers], rater.name))
    typer.echo(choices.summary(drafts))
    sent = writing.prompts_sent + sum(one.prompts_sent for one in answering)
    typer.echo(f"questions: {out}; stages: {folder}, {sent:,} prompts of this run")
    if len(made) < len(drafts):
        raise typer.Exit(3)


def _open_rows(source: Path, notes: Path | None, limit: int | None) -> list[Any]:
    """The open questions of a folder; BuildError where it has none."""
    from builder.worldqa.files import GENERATION
    from builder.worldqa.questions import read

    rows = list(read(source, notes).open)[:limit]
    if not rows:
        raise BuildError(f"{source}: has no rows of {GENERATION}, the open-ended questions")
    return rows


def _opened(spec: str, option: str) -> Any:
    """The engine that an option names."""
    from videoqa import engines

    try:
        return engines.open_engine(spec)
    except (ValueError, OSError, ImportError) as error:
        raise BuildError(f"{option} {spec}: {error}") from error
