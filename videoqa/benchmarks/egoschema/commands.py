"""The command that only EgoSchema has: `submission`, the file that its validation server takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from videoqa.benchmarks.egoschema import submission as files
from videoqa.benchmarks.egoschema.data import LETTERS, read_json
from videoqa.choices import CIRCULAR
from videoqa.commands import options as o
from videoqa.errors import UserError
from videoqa.files import write_json
from videoqa.letters import Letters
from videoqa.rating import item_of
from videoqa.runs import Run, load_rows, rows_of

app = typer.Typer()
SERVER = "https://validation-server.onrender.com/api/upload/"  # named by the README of egoschema/EgoSchema
_SHOWN = 10  # rows that a message lists


@app.command("submission")
def submission(
    run_folder: o.RunFolder,
    out: Annotated[Path | None, typer.Option(help="The file to write (default: RUN/submission.FORMAT).")] = None,
    form: Annotated[Literal["csv", "json"], typer.Option("--format", help="What the server or Kaggle takes.")] = "csv",
    missing: Annotated[
        int | None,
        typer.Option(
            min=0, max=len(LETTERS) - 1, help="What to put where there is no readable answer (default: stop)."
        ),
    ] = None,
    uids: Annotated[
        Path | None,
        typer.Option(help="JSON with the expected uids, such as uid_to_ego4d.json (default: config full of the data)."),
    ] = None,
    post: Annotated[
        bool, typer.Option("--post", help="Send it to the validation server; keeps what it answers.")
    ] = False,
    server: Annotated[str, typer.Option(help="Where --post sends it.", show_default="the official one")] = SERVER,
) -> None:
    """Write the answers of an EgoSchema run as its validation server takes them: whole, or not at all."""
    run = Run(run_folder)
    choices = _choices(run)
    expected, of = _expected(run, uids)
    unread = [uid for uid, choice in choices.items() if choice is None]
    if unread:
        more = f", and {len(unread) - _SHOWN:,} more" if len(unread) > _SHOWN else ""
        print(f"{len(unread):,} answers could not be read: {', '.join(unread[:_SHOWN])}{more}")
    path = out or run_folder / f"submission.{form}"
    path.parent.mkdir(parents=True, exist_ok=True)
    checked = files.write(path, choices, expected, form, missing)
    filled = f", {len(checked.open):,} of them filled with {missing}" if checked.open else ""
    print(f"{path}: {len(expected):,} answers, checked against {of}{filled}")
    if post:
        _post(run_folder, path, server, {uid: checked.answers.get(uid, missing) for uid in expected})


def _choices(run: Run) -> dict[str, int | None]:
    """The option that each answer chooses, in the order of the release; None where it cannot be read. A row without an
    answer is not there."""
    if run.track.name != "egoschema":
        raise UserError(f"{run.folder} is a run of {run.track.title}: only EgoSchema has a validation server")
    if run.config.get("order") == CIRCULAR:
        raise UserError(f"{run.folder} has five answers to each question (--circular): submit a run with one")
    answers = {name: line for name, line in run.answers().items() if line["error"] is None}
    rows = [row for row in rows_of(run) if row["id"] in answers]
    verdicts = dict(Letters().rate([item_of(row, answers[row["id"]]["prediction"]) for row in rows]))
    return {row["id"]: verdicts[index].choice for index, row in enumerate(rows)}


def _expected(run: Run, file: Path | None) -> tuple[list[str], str]:
    """The uids that a submission has, and what says so."""
    if file is None:
        try:
            return [row["id"] for row in load_rows(run.track, run.config["data"], "full")], "the config full"
        except (UserError, FileNotFoundError) as error:
            raise UserError(
                f"{run.config['data']} has no config full, so it is not known which questions a submission has: give "
                "--uids, such as EgoSchema's uid_to_ego4d.json"
            ) from error
    found = read_json(file)
    uids = list(found) if isinstance(found, dict) else found
    if not isinstance(uids, list) or not uids or not all(isinstance(uid, str) for uid in uids):
        raise UserError(f"{file}: a list of uids is expected, or an object by uid")
    return uids, str(file)


def _post(folder: Path, written: Path, server: str, answers: dict[str, Any]) -> None:
    """Send the answers once, and put what the server says beside the run, whatever it is. `written` is their file."""
    import httpx

    try:
        reply = httpx.post(server, json=answers, timeout=120)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        sent = "nothing was sent"
        raise UserError(f"{server} cannot be reached: {error}; {sent}, the answers are in {written}") from error
    except httpx.HTTPError as error:
        sent = "whether it has the answers is not known"
        raise UserError(f"{server} did not answer: {error}; {sent}, they are in {written}") from error
    when = datetime.now(UTC)
    path = folder / f"server-{when:%Y%m%dT%H%M%SZ}.json"
    told = {
        "server": server,
        "date": when.isoformat(timespec="seconds"),
        "status": reply.status_code,
        "text": reply.text,
    }
    write_json(path, told)
    print(f"{server} answers {reply.status_code}: {json.dumps(reply.text[:500])}\nkept in {path}")
    if not reply.is_success:
        raise UserError(f"{server} did not take it (status {reply.status_code}); the answers are in {written}")
