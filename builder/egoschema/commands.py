"""The commands that make EgoSchema's dataset and such questions: `python -m builder egoschema --help`.

`general` has those that serve the data of any benchmark.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from builder.errors import BuildError

app = typer.Typer(help="EgoSchema: multiple choice on clips of three minutes.")
general = typer.Typer()

Source = Annotated[
    Path,
    typer.Option(help="folder with questions.json or questions_subset.json, subset_answers.json, uid_to_ego4d.json"),
]
Out = Annotated[Path, typer.Option(help="folder for the dataset repo; a former build there is replaced")]
OUT = Path("build/egoschema")


@app.callback(invoke_without_command=True)
def egoschema(
    context: typer.Context,
    source: Annotated[Path | None, typer.Option(help="as `build --source`, which is then done")] = None,
    out: Out = OUT,
) -> None:
    """EgoSchema: multiple choice on clips of three minutes. With --source alone, the same as `build`."""
    if context.invoked_subcommand is None:
        if source is None:
            raise BuildError("--source is missing; it names the folder with EgoSchema's files")
        build(source, out)
    elif source is not None:
        raise BuildError(f"--source stands behind {context.invoked_subcommand}")


@app.command()
def build(source: Source, out: Out = OUT) -> None:
    """Build the dataset repo from the official files; the configs are those that there are files for."""
    from builder import repo
    from builder.egoschema import card, dataset
    from videoqa.benchmarks.egoschema import data
    from videoqa.errors import UserError

    repo.check_place(out)  # before the work, not after it
    try:
        configs = data.read(source)
    except UserError as error:
        raise BuildError(str(error)) from error
    names = (data.QUESTIONS, data.SUBSET, data.ANSWERS, data.SPANS)
    dataset.write(out, configs, [source / name for name in names if (source / name).exists()], card.OFFICIAL)
    for config, rows in configs.items():
        gold = Counter(data.LETTERS[row["gold"]] for row in rows if row["gold"] is not None)
        shares = ", ".join(f"{letter} {100 * gold[letter] / gold.total():.1f}%" for letter in data.LETTERS)
        typer.echo(
            f"{config}: {len(rows):,} questions on {len({row['clip'] for row in rows}):,} clips, "
            f"{gold.total():,} with a public answer ({shares})"
        )
    if "full" not in configs:
        typer.echo(f"full: not written, for {source} has no {data.QUESTIONS}")
    typer.echo(f"dataset: {out}\nsha256: {repo.folder_sha256(out)}")


@general.command()
def certificates(
    file: Annotated[Path, typer.Argument(help="CSV: question, annotator, start, end, clip_length and perhaps dataset")],
    floor: Annotated[float, typer.Option(help="seconds that a part of a certificate has at least")] = 0.1,
    merge: Annotated[float, typer.Option(help="parts that are less than so many seconds apart are one")] = 5.0,
    threshold: Annotated[float, typer.Option(help="seconds from which on a question is kept")] = 30.0,
    plot: Annotated[Path | None, typer.Option(help="PNG of certificate length against clip length")] = None,
) -> None:
    """Print how much of a clip one has to see to be sure of an answer (temporal certificates), per dataset."""
    from builder.egoschema import certificates as lengths

    found = lengths.questions(lengths.read(file), floor=floor, merge=merge)
    typer.echo(lengths.text(found, threshold))
    if plot is not None:
        plot.parent.mkdir(parents=True, exist_ok=True)
        lengths.draw(found, plot)
        typer.echo(f"wrote {plot}")


app.command("certificates")(certificates)
