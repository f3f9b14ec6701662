"""`videos check`, `videos list`, `show`, `import-answers`: the questions, their videos, answers from elsewhere."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from videoqa import regions
from videoqa import videos as files
from videoqa.benchmark import tracks
from videoqa.commands import options as o
from videoqa.errors import UserError
from videoqa.files import write_text
from videoqa.frames import Policy
from videoqa.imported import form_of, import_run, readers
from videoqa.reproduced import prompt_of
from videoqa.runs import Run, load_rows, opened_data, whole_clips
from videoqa.usage import prices_of, said, usage_of

app = typer.Typer()
_FORMS = dict.fromkeys(form for track in tracks().values() for form in readers(track))


@app.command()
def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="The question's id.")],
    benchmark: o.Benchmark = None,
    data: o.Data = None,
    config: o.Config = None,
    videos: o.VideoFolder = None,
    out: Annotated[Path, typer.Option(help="Folder for the frames with the question's boxes (--videos).")] = Path(),
) -> None:
    """Print a question with its evidence; with --videos, draw its boxes onto the frames."""
    track, place = opened_data(benchmark, data)
    rows = load_rows(track, place, config)
    row = next((row for row in rows if row["id"] == id), None)
    if row is None:
        near = difflib.get_close_matches(id, [row["id"] for row in rows], n=1, cutoff=0)
        raise UserError(
            f"{place}, config {config or track.configs[0]}: no question {id!r}; "
            f"the nearest is {near[0] if near else 'none'}"
        )
    print(regions.describe(row))
    if videos is None:
        return
    for path in regions.save_frames(row, videos, out, files.clip_ends(rows).get(row["clip"])):
        print(f"{'wrote':<10}{path}")


@app.command()
def prompt(
    run_folder: o.RunFolder,
    id: Annotated[str, typer.Argument(metavar="ID", help="The question's id.")],
    videos: o.VideoFolder = None,
) -> None:
    """Print what the model was asked for one question of a run, message by message."""
    run = Run(run_folder)
    policy, seen = run.config.get("frames"), None
    if policy is not None:
        if videos is None:
            raise UserError("this run showed frames: give --videos, the folder of the videos")
        rows = whole_clips(run.track, run.config["data"], run.config["config"])
        seen = files.Videos.of(videos, Policy.parse(policy), rows)
    for message in prompt_of(run, id, seen):
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        print(f"[{message['role']}]")
        print("".join(part["text"] if part["type"] == "text" else f"<{part['image']}>" for part in parts) + "\n")


@app.command()
def usage(
    run_folder: o.RunFolder,
    price: o.Price = None,
) -> None:
    """Print what the answers of a run cost: tokens, seconds and, by your prices, money."""
    run = Run(run_folder)
    summed = usage_of(line for line in run.answers().values() if line["error"] is None)
    if summed is None:
        raise UserError(f"{run_folder}: its answers tell neither tokens nor time (imported, or an older version's)")
    print(said(summed, None if price is None else prices_of(price)))


@app.command("import-answers")
def import_answers(
    file: Annotated[
        Path, typer.Argument(help="Answers: CSV or JSON Lines with id and prediction, or what another program wrote.")
    ],
    benchmark: o.Benchmark = None,
    data: o.Data = None,
    config: o.Config = None,
    out: o.Out = Path("runs/run"),
    form: Annotated[
        str | None,
        typer.Option(
            "--from",
            help=f"What wrote the file: {', '.join(_FORMS)} (default: plain for .csv, .tsv, .jsonl, else script).",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="What results call the model (default: the file's name).")] = None,
    prompt: Annotated[str | None, typer.Option(help="How it was asked, as --prompt of run (default: unknown).")] = None,
) -> None:
    """Make a run of answers that something else wrote; its scores come along if it has them."""
    track, place = opened_data(benchmark, data)
    form = form or form_of(file)
    if form not in readers(track):
        raise UserError(f"--from {form}: allowed are {', '.join(readers(track))}")
    rows = load_rows(track, place, config)
    answered = import_run(file, form, rows, out, place, config or track.configs[0], track, model, prompt)
    judged = sum(one.verdict is not None for one in answered)
    print(f"{out}: {len(answered)} of {len(rows)} questions answered, {judged} judged")
    if empty := [one for one in answered if not one.prediction.strip()]:
        row = f", row {empty[0].more['row']}" if "row" in empty[0].more else ""
        print(f"{file}{row}: no words in the answer to {empty[0].id}; {len(empty)} in all, counted as empty answers")


_videos = typer.Typer(no_args_is_help=True, help="The videos that the questions are about.")
app.add_typer(_videos, name="videos")


@_videos.command("check")
def videos_check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of clips or full videos, by uid.")],
    benchmark: o.Benchmark = None,
    data: o.Data = None,
    config: o.Config = None,
) -> None:
    """Say which clips have no video that can be read, and the questions lost with them; exit code 3 if any."""
    check = files.check_videos(folder, load_rows(*opened_data(benchmark, data), config))
    print(check)
    if check.partial:
        raise typer.Exit(3)


@_videos.command("list")
def videos_list(
    benchmark: o.Benchmark = None,
    data: o.Data = None,
    config: o.Config = None,
    out: Annotated[Path | None, typer.Option(help="The file to write (default: print).")] = None,
) -> None:
    """Write the uids of the full videos, one a line, as the Ego4D downloader's --video_uid_file takes them."""
    text = "".join(f"{uid}\n" for uid in files.uid_list(load_rows(*opened_data(benchmark, data), config)))
    if out is None:
        print(text, end="")
    else:
        write_text(out, text)
        print(f"{out}: {text.count(chr(10))} videos")
