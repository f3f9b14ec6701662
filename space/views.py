"""What the page's events show: the functions around the results and the questions, and the checks of an upload."""

from __future__ import annotations

import html
import urllib.parse
from pathlib import Path
from typing import Any

import charts
import columns
import gradio as gr
from leaderboard import Board, Entry, Group, Results, lines
from questions import MOST, Questions
from upload import read_upload

from videoqa.benchmark import Track, track, track_of, tracks
from videoqa.submit import Plan, content_hash, moment, plan, submit

DEMO = str(Path(__file__).parent / "demo")
PUBLISHED = "published rows"  # followed by the set of questions, where there are several
SEND = "Open the pull request"


class App:
    """The pages' functions around the results and the questions. `name` is always that of a track."""

    def __init__(self, results: Results, data: str = "", videos: str = "", submit_to: str = "") -> None:
        self.results, self.submit_to = results, submit_to
        self.questions: dict[str, Questions] = {}
        self.data_notes: list[str] = []
        for place in filter(None, (place.strip() for place in data.split(","))):
            first = track_of(place)
            for one in (first, *(other for other in tracks().values() if other.repo == first.repo and other != first)):
                try:
                    self.questions[one.name] = Questions.load(place, videos, one)
                except Exception as error:  # the other tabs work without; another track's questions need not be there
                    if one is first:
                        self.data_notes.append(f"The questions of {Path(place).name} could not be read: {error}")

    @property
    def sizes(self) -> dict[str, int]:
        """The number of questions of the data that are here, by revision."""
        return {questions.revision: questions.size for questions in self.questions.values()}

    def names(self) -> list[str]:
        """The tracks that have results or data; the first one where none has."""
        some = {entry.result.track for entry in self.results.board.entries} | set(self.questions)
        return [name for name in tracks() if name in some] or [track().name]

    def track(self, name: str | None) -> Track:
        """The track of this name; the first of those that are here for any other."""
        names = self.names()
        return track(name if name in names else names[0])

    def groups(self, name: str | None) -> dict[str, Group]:
        """The groups of results of a track."""
        return self.results.board.groups(self.track(name).name, self.sizes)

    def group(self, name: str | None, group: str | None) -> Group | None:
        """A group of a track; its largest one if there is no such group (any more)."""
        groups = self.groups(name)
        return groups.get(group or "") or next(iter(groups.values()), None)

    def choices(self, name: str | None) -> list[tuple[str, str]]:
        """(text, group) of every group, the largest first."""
        return [
            (f"{group.name} ({_count(len(group.entries), 'result')})", key) for key, group in self.groups(name).items()
        ]

    def asked_of(self, name: str | None) -> Questions:
        """The questions of a track."""
        of_track = self.track(name)
        return self.questions.get(of_track.name) or Questions(of_track)

    # -- leaderboard and types --

    def start(self, name: str | None) -> tuple[Any, ...]:
        """Everything that depends on which track is chosen and which results there are."""
        of_track, groups, names = self.track(name), self.choices(name), self.names()
        first = groups[0][1] if groups else None
        entries = [entry for group in self.groups(name).values() for entry in group.entries]
        kinds = [kind for kind in of_track.kinds if kind in {entry.result.kind for entry in entries}]
        prompts = sorted({entry.result.prompt for entry in entries})
        printed = _printed(of_track)
        shown = [*groups, *printed]
        questions = self.asked_of(name)
        types = [("all types", ""), *of_track.types]
        return (
            gr.update(choices=[(track(n).title, n) for n in names], value=of_track.name, visible=len(names) > 1),
            gr.update(choices=groups, value=first),
            gr.update(choices=kinds, value=[], visible=len(kinds) > 1),
            gr.update(choices=prompts, value=[], visible=len(prompts) > 1),
            self.rank(of_track.name, first, "", [], []),
            self.note(),
            gr.update(value=published(of_track), visible=bool(of_track.published)),
            gr.update(choices=shown, value=first or next(iter(printed), None)),
            gr.update(choices=types, value="", visible=len(of_track.types) > 1),
            gr.update(choices=questions.clips(), value=None),
        )

    def note(self) -> str:
        """What the results are, and what was left out."""
        board = self.results.board
        found = [self.results.note]
        if self.results.source == DEMO:
            found = [found[0].replace(DEMO, "the demo")]
        if board.replaced:
            found.append(f"{_count(board.replaced, 'older or partial result')} of the same model not shown.")
        if board.refused:
            found.append(f"{_count(len(board.refused), 'file')} refused, among them:")
            found += board.refused[:20]
        return "\n".join(found)

    def rank(self, name: str | None, group: str | None, search: str, kinds: list[str], prompts: list[str]) -> str:
        """The leaderboard of one group."""
        found = self.group(name, group)
        return columns.board(found, lines(found, search or "", kinds, prompts) if found else ())

    def types(self, name: str | None, group: str | None, by: str = "") -> tuple[Any, ...]:
        """The charts of one group or of the published rows; the first one by question type, or by what else is known of
        the questions (`by`)."""
        of_track = self.track(name)
        printed = _printed(of_track)
        found = None if group in printed else self.group(name, group)
        if found is None and not printed:
            nothing = gr.update(value=None, visible=False)
            hidden = gr.update(visible=False)
            return nothing, "No results yet.", nothing, hidden, nothing, hidden, hidden
        config = printed.get(group or "", next(iter(printed.values()), ""))
        series = charts.group_series(found) if found else charts.published_series(of_track, config)
        first = series if found else [one for one in series if not one.way]
        more = len(first) - charts.MOST_MODELS
        known = list(of_track.breakdowns) if found and any(e.result.breakdowns for e in found.entries) else []
        by = by if by in known else ""
        by_type = charts.by_type(*charts.breakdown(found, by)) if found and by else charts.by_type(first, of_track)
        note = f"The first {charts.MOST_MODELS}; {_count(more, 'more result')} not drawn." if more > 0 else ""
        best, pairs = charts.best_of_kinds(first, of_track), charts.two_ways(series, of_track)
        return (
            gr.update(value=by_type, visible=True),
            f"{of_track.measure.title.replace(' x ', ' × ')}, with 95% intervals where they are known. {note}",
            gr.update(value=best, visible=best is not None),
            gr.update(visible=best is not None),
            gr.update(value=pairs, visible=pairs is not None),
            gr.update(value=f"### {of_track.beside_title}", visible=pairs is not None),
            gr.update(choices=[("question type", ""), *known], value=by, visible=bool(known)),
        )

    # -- browse --

    def find(self, name: str | None, kind: str | None, clip: str | None, words: str, keep: str | None = None) -> Any:
        """The questions that pass the filters."""
        questions = self.asked_of(name)
        found = questions.find(kind, clip, words or "")
        listed = found[:MOST]
        value = keep if keep in {identifier for _, identifier in listed} else (listed[0][1] if listed else None)
        if not questions.rows:
            notes = self.data_notes or ["This Space has no questions to browse (EASG_BENCH_DATA)."]
            return gr.update(choices=[], value=None), " ".join(notes)
        note = f"{_count(len(found), 'question')} found" + (f", the first {MOST} listed" if len(found) > MOST else "")
        return gr.update(choices=listed, value=value), f"{_count(questions.size, 'question')}; {note}."

    def opened(self, request: gr.Request) -> tuple[Any, ...]:
        """The page as a link asks for it: ?question=ID opens the tab Browse, of the track that has the question."""
        wanted = str(request.query_params.get("question", ""))
        holder = next((name for name, questions in self.questions.items() if wanted in questions.rows), None)
        started = list(self.start(holder))
        if wanted and holder is None:
            return (
                *started,
                gr.update(selected="browse"),
                gr.update(choices=[], value=None),
                "There is no such question.",
            )
        if holder is None:
            return (*started, gr.update(), *self.find(None, None, None, ""))
        clip = self.questions[holder].rows[wanted]["clip"]
        started[-1] = gr.update(choices=self.questions[holder].clips(), value=clip)
        return (*started, gr.update(selected="browse"), *self.find(holder, None, clip, "", wanted))

    def question(self, name: str | None, identifier: str | None) -> tuple[Any, ...]:
        """One question: what was asked, when, where in the picture, and what the models answered."""
        questions = self.asked_of(name)
        row = questions.rows.get(identifier or "")
        nothing = gr.update(value=None, visible=False)
        if row is None:
            return "", nothing, gr.update(visible=False), gr.update(choices=[], visible=False), nothing, nothing, ""
        actions = questions.actions(row)
        named = "".join(
            f"<p>{title}: {html.escape(', '.join(a.text for a in actions if a.role == role))}</p>"
            for role, title in (("before", "Before"), ("asked", "Asked about"), ("after", "After"))
            if any(a.role == role for a in actions)
        )
        frames: dict[int, list[str]] = {}
        for one in row["evidence"] or ():
            frames.setdefault(one["frame"], []).append(one["object"].replace("_", " "))
        seconds = {one["frame"]: one["seconds"] - (row["clip_start_s"] or 0.0) for one in row["evidence"] or ()}
        choices = [(f"{seconds[frame]:.1f} s: {', '.join(objects)}", frame) for frame, objects in frames.items()]
        first = choices[0][1] if choices else None
        figure, note = self.picture(name, identifier, first)
        timeline = charts.timeline(actions, row["clip_start_s"]) if actions else None
        answers = questions.answers(row, self.results.board.entries)
        title = "What the models answered; scores of different judges cannot be compared"
        return (
            _question(row, questions.track, named),
            gr.update(value=timeline, visible=bool(actions)),
            gr.update(visible=bool(actions)),
            gr.update(choices=choices, value=first, visible=len(choices) > 1),
            figure,
            gr.update(value=note, visible=bool(note)),
            columns.table(columns.ANSWERS, answers, title, "No answers to this question are here."),
        )

    def picture(self, name: str | None, identifier: str | None, frame: int | None) -> tuple[Any, str]:
        """One frame of a question with its boxes."""
        questions = self.asked_of(name)
        row = questions.rows.get(identifier or "")
        if row is None or frame is None or frame not in {one["frame"] for one in row["evidence"] or ()}:
            nothing = "Nothing of this question is marked in a frame." if row and row["evidence"] else ""
            return gr.update(value="", visible=False), nothing
        image, note = questions.picture(row, frame)
        boxes = [one for one in row["evidence"] if one["frame"] == frame]
        drawn = f"<h4>The objects in the frame</h4>{charts.picture(image, boxes)}"
        return gr.update(value=drawn, visible=True), note

    # -- submit --

    def check(self, files: list[str] | None) -> tuple[Any, ...]:
        """Check an upload: (what was found, how it would appear, what would be done, may it be sent, the files)."""
        blank = gr.update(value="", visible=False)
        if not files:
            return "", blank, "", _button("Upload a result first"), None
        try:
            result, text, answers, note = read_upload(files, self.questions)
            made = moment(result)
        except (ValueError, OSError, RecursionError) as error:
            return f"Refused. {error}", blank, "", _button("Nothing to send: the upload was refused"), None
        mine = Entry(result, content_hash(text), None, made)
        others = [entry for entry in self.results.board.entries if entry.key != mine.key]
        group = Board((*others, mine)).groups(result.track, self.sizes)[mine.group]
        preview = gr.update(value=columns.board(group, lines(group)), visible=True)
        if mine in group.partial:
            note += " It is a partial run: it would stand below the whole ones, without a rank."
        if not self.submit_to:
            todo = (
                "This Space takes no submissions. `easg-bench submit RUN --to ORG/REPO` sends the run from your side."
            )
            return note, preview, todo, _button("This Space takes no submissions"), None
        try:
            planned = self._plan(text, answers)
        except Exception as error:
            todo = f"The results repo cannot be asked now: {error}"
            return note, preview, todo, _button("The results repo cannot be asked now"), None
        button = _button(SEND, True) if planned.files else _button("Nothing to do: it is already there")
        return note, preview, str(planned), button, (text, answers)

    def send(self, checked: tuple[bytes, bytes | None] | None) -> tuple[str, Any]:
        """Open the pull request of what was checked."""
        if checked is None:
            return "Upload a result first.", _button("Upload a result first")
        try:
            planned = self._plan(*checked)
            address = submit(_api(), planned)
        except Exception as error:
            return f"Not sent: {error}", _button(SEND, True)
        return (f"Opened {address}" if address else str(planned)), _button("Sent" if address else "It is already there")

    def _plan(self, text: bytes, answers: bytes | None) -> Plan:
        return plan(_api(), self.submit_to, [(text, answers)])


def _api() -> Any:
    from huggingface_hub import HfApi

    return HfApi()


def _button(text: str, ready: bool = False) -> Any:
    """The button that sends: its own text says why it cannot be pressed."""
    return gr.update(value=text, interactive=ready)


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def published(of_track: Track) -> str:
    if not of_track.published:
        return ""
    several = " Sets of questions differ in difficulty, so each has a table." if len(of_track.sets) > 1 else ""
    return (
        f"<h3>Published rows</h3><p>Numbers as printed. <b>Not comparable</b> with those above.{several}</p>"
        + columns.published(of_track)
    )


def _printed(of_track: Track) -> dict[str, str]:
    """{choice: config} of the sets of questions that there are published rows of."""
    return {f"{PUBLISHED}, config {config}" if config else PUBLISHED: config for config in of_track.sets}


def _question(row: dict[str, Any], of_track: Track, named: str) -> str:
    """A question with its choices and the right answer, as HTML; `named` are the actions that it is about."""
    link = f"?question={urllib.parse.quote(row['id'])}"
    kind = f"{row['type']}, " if len(of_track.types) > 1 else ""
    options = "".join(
        f'<li dir="auto"{" class=gold" if at == row["gold"] else ""}>{html.escape(str(option))}'
        f"{' (right)' if at == row['gold'] else ''}</li>"
        for at, option in enumerate(row["choices"] or ())
    )
    truth = f'<p>Ground truth: <b dir="auto">{html.escape(row["answer"])}</b></p>' if row["answer"] else ""
    if options:
        truth = "" if row["gold"] is not None else '<p class="quiet">Which is right is not published.</p>'
    return (
        f'<div class="question"><p class="quiet">{html.escape(kind)}clip {html.escape(row["clip"])}</p>'
        f'<h2 dir="auto">{html.escape(row["question"])}</h2>{f"<ol>{options}</ol>" if options else ""}{truth}{named}'
        f'<p><a href="{html.escape(link)}">Link to this question</a></p></div>'
    )
