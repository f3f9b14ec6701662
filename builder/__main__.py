"""The command line of the builder.

    python -m builder build --source ../shared/upstream --out build/easg-bench

reads the annotations, words the 1,807 questions of the paper's selection and writes the dataset repo. Of the files
that it needs, `easg-bench fetch` gets the public ones; `read-notebook` and `spans` make the others out of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from tqdm import tqdm

from builder.questions import SameFrame
from builder.records import BuildError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

USUAL_NAMES = {
    "annotations": "EASG_unict_master_final.json",
    "narrations": "clip_narrations.json",
    "votes": "recorded_votes.json",
    "purpose_counts": "recorded_purpose_counts.json",
    "spans": "clip_spans.json",
}


@app.callback()
def main() -> None:
    """Scene-graph annotations -> questions -> dataset repo."""


@app.command()
def build(
    out: Annotated[Path, typer.Option(help="folder for the dataset repo; a former build there is replaced")],
    source: Annotated[Path | None, typer.Option(help="folder with the files below under their usual names")] = None,
    annotations: Annotated[Path | None, typer.Option(help=f"action graphs ({USUAL_NAMES['annotations']})")] = None,
    narrations: Annotated[Path | None, typer.Option(help=f"text of each clip ({USUAL_NAMES['narrations']})")] = None,
    votes: Annotated[Path | None, typer.Option(help=f"uniqueness scores ({USUAL_NAMES['votes']})")] = None,
    purpose_counts: Annotated[
        Path | None, typer.Option(help=f"purpose questions of each clip ({USUAL_NAMES['purpose_counts']})")
    ] = None,
    spans: Annotated[
        Path | None, typer.Option(help=f"optional: where clips start in their video ({USUAL_NAMES['spans']})")
    ] = None,
    same_frame: Annotated[
        SameFrame, typer.Option(help="two asked actions in one frame: keep the later, as the paper does, or all")
    ] = "last",
) -> None:
    """Build the dataset repo from annotations, narrations and recorded votes."""
    given = {
        "annotations": annotations,
        "narrations": narrations,
        "votes": votes,
        "purpose_counts": purpose_counts,
        "spans": spans,
    }
    try:
        _build(_files(source, given), out, same_frame)
    except BuildError as error:
        _fail(error)


@app.command()
def read_notebook(
    file: Annotated[Path, typer.Argument(help="generate_QA.ipynb of fpv-iplab/EASG-bench, with its outputs")],
    annotations: Annotated[
        Path | None, typer.Option(help=f"action graphs (beside the notebook: {USUAL_NAMES['annotations']})")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="folder for the two files; without it that of the notebook")] = None,
) -> None:
    """Write the recorded votes and purpose counts out of what the public notebook printed."""
    from builder import notebook
    from builder.annotations import read_clips

    try:
        clips, _ = read_clips(annotations or file.with_name(USUAL_NAMES["annotations"]))
        votes, counts, warnings = notebook.read_notebook(file, clips)
    except BuildError as error:
        _fail(error)
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
    from builder.annotations import read_clips
    from builder.spans import clip_spans
    from videoqa.fetch import sources_folder

    source = source or sources_folder()
    try:
        clips, _ = read_clips(source / USUAL_NAMES["annotations"])
        found, warnings = clip_spans(clips, [source / f"easg_{split}.pkl" for split in ("train", "val")])
    except BuildError as error:
        _fail(error)
    _warn(warnings)
    _write(out or source, {"spans": found})
    typer.echo(f"starts of {len(found):,} of {len(clips):,} clips")


def _write(folder: Path, contents: dict[str, Any]) -> None:
    """{role: content} as JSON files under their usual names."""
    from videoqa.runs import write_json

    for role, content in contents.items():
        write_json(folder / USUAL_NAMES[role], content)
        typer.echo(f"wrote {folder / USUAL_NAMES[role]}")


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)


def _fail(error: BuildError) -> NoReturn:
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(2) from None


def _files(source: Path | None, given: dict[str, Path | None]) -> dict[str, Path]:
    """The input files: those given, the others from `source`. Without a span file the clips' starts stay unknown."""
    files = {}
    for role, path in given.items():
        if path is None and source is not None and (role != "spans" or (source / USUAL_NAMES[role]).exists()):
            path = source / USUAL_NAMES[role]
        if path is not None:
            files[role] = path
        elif role != "spans":
            raise BuildError(f"--{role.replace('_', '-')} is missing; give it, or --source for a folder that has it")
    return files


def _build(files: dict[str, Path], out: Path, same_frame: SameFrame) -> None:
    from builder import repo
    from builder.annotations import read_clips
    from easg_bench import TYPES

    repo.check_place(out)  # before the work, not after it
    clips, warnings = read_clips(**files)
    counts: Counter[str] = Counter()
    rows: defaultdict[str, list[Any]] = defaultdict(list)
    for clip in tqdm(clips, desc="clips", unit="clip"):
        for config, of_clip in repo.clip_rows(clip, same_frame, counts).items():
            rows[config] += of_clip
    repo.write(out, rows, list(files.values()), repo.recorded(same_frame))

    questions = [row for kind in TYPES for row in rows[kind]]
    typer.echo(
        "questions: " + ", ".join(f"{kind} {len(rows[kind]):,}" for kind in TYPES) + f", total {len(questions):,}"
    )
    typer.echo(
        f"clips: {len(clips):,} annotated, {len({row['clip'] for row in questions}):,} with questions, "
        f"{len({row['clip'] for row in questions if row['type'] != 'purpose'}):,} with action questions"
    )
    for title, counter in (("made", counts), ("skipped or missing in the input", warnings)):
        lines = [f"{n:7,}  {kind}" for kind, n in sorted((+counter).items())]
        typer.echo("\n".join([f"{title}:", *(lines or ["      0"])]))
    typer.echo(f"dataset: {out}\nsha256: {repo.folder_sha256(out)}")


if __name__ == "__main__":
    app(prog_name="python -m builder")
