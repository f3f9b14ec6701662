"""The command that makes WorldQA's dataset: `python -m builder worldqa --help`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

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
