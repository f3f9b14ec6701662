"""The commands that make EgoSchema's dataset and such questions: `python -m builder egoschema --help`.

`general` has those that serve the data of any benchmark.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

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
def build(
    source: Source,
    out: Out = OUT,
    made: Annotated[
        bool, typer.Option("--made", help="these are questions of your own in EgoSchema's form: config `made` alone")
    ] = False,
) -> None:
    """Build the dataset repo from the official files; the configs are those that there are files for."""
    from builder import repo
    from builder.egoschema import card, dataset
    from videoqa.benchmarks.egoschema import data

    repo.check_place(out)  # before the work, not after it
    configs = data.read(source)
    names = (data.QUESTIONS, data.SUBSET, data.ANSWERS, data.SPANS)
    how = card.MADE.replace("$how", "written by hand, in the form of its files.") if made else card.OFFICIAL
    if made:
        configs = {"made": configs.get("full") or configs["subset"]}
    dataset.write(out, configs, [source / name for name in names if (source / name).exists()], how)
    for config, rows in configs.items():
        gold = Counter(data.LETTERS[row["gold"]] for row in rows if row["gold"] is not None)
        shares = ", ".join(f"{letter} {100 * gold[letter] / gold.total():.1f}%" for letter in data.LETTERS)
        typer.echo(
            f"{config}: {len(rows):,} questions on {len({row['clip'] for row in rows}):,} clips, "
            f"{gold.total():,} with a public answer ({shares})"
        )
    if not made and "full" not in configs:
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


Data = Annotated[Path, typer.Argument(metavar="DIR", help="dataset repo with the config `made`")]


@app.command()
def make(
    narrations: Annotated[
        Path,
        typer.Argument(help="Ego4D's narration.json, {clip: '(1.06s) ...'}, or a dataset repo with config narrations"),
    ],
    engine: Annotated[str, typer.Option(help="the model that writes: a folder, a Hub id, vllm:NAME or server:...")],
    out: Annotated[Path, typer.Option(help="folder for the dataset repo; a former build there is replaced")],
    blind_engine: Annotated[str | None, typer.Option(help="the model that must not answer blind (--engine)")] = None,
    scheme: Annotated[
        str, typer.Option(help="q-aw: questions, then answers with wrong ones; q-a-w: three calls; one: a single call")
    ] = "q-aw",
    questions: Annotated[int, typer.Option(min=1, help="questions of a clip")] = 3,
    limit: Annotated[int | None, typer.Option(min=1, help="only the first N clips, for a trial")] = None,
    least: Annotated[int, typer.Option(min=1, help="narrations that a clip has at least")] = 30,
    stages: Annotated[Path | None, typer.Option(help="folder for what the model said (OUT.stages)")] = None,
) -> None:
    """Make questions in the manner of EgoSchema. What was stopped goes on where it was; look at what comes out, and
    have people sort it out (`sheet`, `curate`)."""
    from builder import repo
    from builder.egoschema import card, dataset, narrated
    from builder.egoschema import make as making
    from builder.stages import Stages
    from videoqa.engines import open_engine

    repo.check_place(out)  # before the work, not after it
    if scheme not in making.SCHEMES:
        raise BuildError(f"--scheme {scheme}: allowed are {', '.join(making.SCHEMES)}")
    clips = narrated.clips(narrated.read(narrations), least)[:limit]
    if not clips:
        raise BuildError(f"{narrations}: no part of {narrated.CLIP_S:g} s has {least} narrations")
    try:
        writer = open_engine(engine)
        answerer = writer if blind_engine is None else open_engine(blind_engine)
    except (ValueError, OSError, ImportError) as error:
        raise BuildError(f"--engine: {error}") from error
    folder = stages or out.with_name(f"{out.name}.stages")
    with Stages(folder, writer, making.DECISIONS) as writing, Stages(folder / "blind", answerer, ()) as answering:
        outcome = making.make(clips, writing, answering, scheme=scheme, questions=questions)
    typer.echo(making.funnel_text(outcome))
    typer.echo(f"stages: {folder}, {writing.prompts_sent + answering.prompts_sent:,} prompts of this run")
    how = f"written by {writer.name} from narrations, sifted by rules and by {answerer.name} without the video."
    if outcome.made:
        made = card.MADE.replace("$how", how)
        dataset.write(
            out, {"made": [one.row for one in outcome.made]}, [narrations] if narrations.is_file() else [], made
        )
        typer.echo(f"dataset: {out}")


@app.command()
def sheet(data: Data, out: Annotated[Path, typer.Option(help="the CSV file to write")]) -> None:
    """Write the sheet on which people sort made questions out: five conditions, each yes, no or maybe."""
    from builder.egoschema import curation
    from videoqa.files import write_text

    write_text(out, curation.sheet(_made(data)))
    typer.echo(f"wrote {out}")
    for name, what in curation.CONDITIONS.items():
        typer.echo(f"{name:<17} {what}")


@app.command()
def curate(
    data: Data,
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEET...", help="filled sheets of one round")],
    out: Annotated[Path, typer.Option(help="folder for the dataset repo of what is kept")],
) -> None:
    """Read the filled sheets of a round and keep what everybody said yes to. For a second round, write its sheet from
    what this one kept."""
    from builder import repo
    from builder.egoschema import card, curation, dataset

    repo.check_place(out)
    rows = _made(data)
    found = curation.read(sheets, [row["id"] for row in rows])
    typer.echo(found.text())
    kept = set(found.kept)
    how = f"sorted out by people, {len(kept)} of {len(rows)} kept."
    dataset.write(out, {"made": [row for row in rows if row["id"] in kept]}, sheets, card.MADE.replace("$how", how))
    typer.echo(f"dataset: {out}")


def _made(data: Path) -> list[dict[str, Any]]:
    from videoqa.benchmarks.egoschema import load

    return [dict(row) for row in load(str(data), "made")]
