"""The leaderboard as a Gradio Space: Leaderboard, Types, Browse, Submit, About.

    python space/app.py          on http://127.0.0.1:7860 with the demo's results; `make space` does the same

    EASG_BENCH_RESULTS    folder or Hub dataset repo of results (default: demo/ beside this file)
    EASG_BENCH_DATA       folder or Hub dataset repo of the questions; without it there is nothing to browse
    EASG_BENCH_VIDEOS     folder of videos, for pictures behind the boxes
    EASG_BENCH_SUBMIT_TO  dataset repo that gets submissions as pull requests, with a token in HF_TOKEN

What models, judges and uploads say is shown as text: in tables of type `str`, in text boxes, or escaped.
"""

from __future__ import annotations

import html
import math
import os
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import charts
import gradio as gr
import pandas as pd
from leaderboard import TRACK, TYPES, Board, Entry, Results, leaderboard, paper, shown
from questions import MOST, Questions

from videoqa.files import Lines
from videoqa.results import Result, parse
from videoqa.store import verdict_of
from videoqa.submit import (
    Plan,
    answer_bytes,
    answer_table,
    check_answers,
    content_hash,
    plan,
    published,
    submit,
)

HERE = Path(__file__).parent
DEMO = str(HERE / "demo")
UPLOAD_LIMIT = "20mb"
PAPER = "The paper's judge (its Tables 2 and 3)"
WHY_GROUPS = (
    "A score means something only beside scores of the **same judge, mode, rubric and questions**: another judge gives "
    "other numbers to the same answers. So results are ranked within one such group at a time; choose it here."
)
CSS = """
.gradio-container { max-width: 1400px !important }
.virtual-table-viewport, .virtual-table-viewport * {
    font-family: var(--font) !important; font-variant-numeric: tabular-nums }
.question h2 { margin: .4rem 0 } .question p { margin: .2rem 0 } .quiet { opacity: .75; font-size: .9em }
@media (max-width: 640px) {
    .gradio-container { padding: 4px !important }
    .tab-container button { padding: 0 7px !important; font-size: 13px !important } }
.secondary-wrap input { padding-right: 24px !important; text-overflow: ellipsis }
"""


class App:
    """The pages' functions around the results and the questions."""

    def __init__(self, results: Results, data: str = "", videos: str = "", submit_to: str = "") -> None:
        self.results, self.submit_to = results, submit_to
        self.questions = Questions()
        self.data_note = "This Space has no questions to browse (EASG_BENCH_DATA)."
        if data:
            try:
                self.questions = Questions.load(data, videos)
                self.data_note = f"{len(self.questions.rows)} questions of {Path(data).name}."
            except Exception as error:  # the other tabs work without
                self.data_note = f"The questions could not be read: {error}"

    def entries(self, group: str | None) -> list[Entry]:
        """The entries of a group; of the largest one if there is no such group (any more)."""
        groups = self.results.board.groups()
        return groups.get(group or "") or next(iter(groups.values()), [])

    def groups(self) -> list[tuple[str, str]]:
        """(text, group) of every group, the largest first."""
        groups = self.results.board.groups()
        return [(f"{group} ({_count(len(found), 'result')})", group) for group, found in groups.items()]

    # -- leaderboard and types --

    def start(self) -> tuple[Any, ...]:
        """Everything that depends on which results there are."""
        names = self.groups()
        first = names[0][1] if names else None
        prompts = sorted({entry.result.prompt for entry in self.results.board.entries})
        return (
            gr.update(choices=names, value=first),
            gr.update(choices=prompts, value=[]),
            gr.update(choices=[*names, PAPER], value=first or PAPER),
            self.rank(first, "", [], []),
            self.note(),
        )

    def note(self) -> str:
        """What the results are, and what was left out."""
        board = self.results.board
        lines = [self.results.note]
        if self.results.source == DEMO:
            lines = [lines[0].replace(DEMO, "the demo")]
            lines.append(
                "Demo: SmolLM2, a model of 135M parameters, judged by itself. It proves the path and nothing else."
            )
        if board.replaced:
            lines.append(f"{_count(board.replaced, 'older result')} of the same model not shown.")
        if board.refused:
            lines.append(f"{_count(len(board.refused), 'file')} refused, among them:")
            lines += board.refused[:20]
        return "\n".join(lines)

    def rank(self, group: str | None, search: str, kinds: list[str], prompts: list[str]) -> Any:
        """The leaderboard of one group."""
        entries = self.entries(group)
        frame = leaderboard(entries, search, kinds, prompts)
        return _table(frame, shown(frame, entries))

    def types(self, group: str | None) -> tuple[Any, Any, Any, str]:
        """The charts of one group or of the paper's rows."""
        entries = None if group == PAPER else self.entries(group)
        lines = charts.series(entries)
        pairs = charts.two_stage(entries)
        note = "" if pairs else "No model of this group was asked both in one turn and in two."
        return charts.by_type(lines), charts.best_of_kinds(lines), gr.update(value=pairs, visible=bool(pairs)), note

    # -- browse --

    def find(self, kind: str | None, clip: str | None, words: str, keep: str | None = None) -> tuple[Any, str]:
        """The questions that pass the filters."""
        found = self.questions.find(kind, clip, words or "")
        shown = found[:MOST]
        value = keep if keep in {identifier for _, identifier in shown} else (shown[0][1] if shown else None)
        note = f"{_count(len(found), 'question')} found" + (f", the first {MOST} listed" if len(found) > MOST else "")
        return gr.update(choices=shown, value=value), f"{self.data_note} {note}."

    def opened(self, request: gr.Request) -> tuple[Any, ...]:
        """The Browse tab as a link asks for it: ?question=ID."""
        wanted = str(request.query_params.get("question", ""))
        clips = gr.update(choices=self.questions.clips(), value=None)
        if not wanted:
            return gr.update(), clips, *self.find(None, None, "")
        if wanted not in self.questions.rows:
            return gr.update(selected="browse"), clips, gr.update(choices=[], value=None), "There is no such question."
        row = self.questions.rows[wanted]
        clips = gr.update(choices=self.questions.clips(), value=row["clip"])
        return gr.update(selected="browse"), clips, *self.find(None, row["clip"], "", wanted)

    def question(self, identifier: str | None) -> tuple[Any, ...]:
        """One question: what was asked, when, where in the picture, and what the models answered."""
        row = self.questions.rows.get(identifier or "")
        if row is None:
            nothing = gr.update(value=None, visible=False)
            return "", nothing, gr.update(choices=[], visible=False), nothing, "", nothing
        actions = self.questions.actions(row)
        named = "".join(
            f"<p>{title}: {html.escape(', '.join(a.text for a in actions if a.role == role))}</p>"
            for role, title in (("before", "Before"), ("asked", "Asked about"), ("after", "After"))
            if any(a.role == role for a in actions)
        )
        link = f"?question={urllib.parse.quote(row['id'])}"
        text = (
            f'<div class="question"><p class="quiet">{html.escape(row["type"])}, clip {html.escape(row["clip"])}</p>'
            f'<h2 dir="auto">{html.escape(row["question"])}</h2>'
            f'<p>Ground truth: <b dir="auto">{html.escape(str(row["answer"]))}</b></p>{named}'
            f'<p><a href="{html.escape(link)}">Link to this question</a></p></div>'
        )
        frames: dict[int, list[str]] = {}
        for one in row["evidence"]:
            frames.setdefault(one["frame"], []).append(one["object"].replace("_", " "))
        seconds = {one["frame"]: one["seconds"] - (row["clip_start_s"] or 0.0) for one in row["evidence"]}
        choices = [(f"{seconds[frame]:.1f} s: {', '.join(names)}", frame) for frame, names in frames.items()]
        first = choices[0][1] if choices else None
        figure, said = self.picture(identifier, first)
        answers = self.questions.answers(row, self.results.board.entries)
        return (
            text,
            gr.update(value=charts.timeline(actions, row["clip_start_s"]), visible=True),
            gr.update(choices=choices, value=first, visible=len(choices) > 1),
            figure,
            said,
            gr.update(value=_table(answers, _plain(answers)), visible=True),
        )

    def picture(self, identifier: str | None, frame: int | None) -> tuple[Any, str]:
        """One frame of a question with its boxes."""
        row = self.questions.rows.get(identifier or "")
        if row is None or frame is None or frame not in {one["frame"] for one in row["evidence"]}:
            return gr.update(value=None, visible=False), "Nothing of this question is marked in a frame." if row else ""
        image, said = self.questions.picture(row, frame)
        boxes = [one for one in row["evidence"] if one["frame"] == frame]
        return gr.update(value=charts.picture(image, boxes), visible=True), said

    # -- submit --

    def check(self, files: list[str] | None) -> tuple[Any, ...]:
        """Check an upload: (what was found, how it would appear, what would be done, may it be sent, the files)."""
        nothing = (gr.update(value=None, visible=False), "", gr.update(interactive=False), None)
        if not files:
            return "", *nothing
        try:
            result, text, answers, said = self._read(files)
        except (ValueError, OSError, RecursionError) as error:
            return f"Refused. {error}", *nothing
        mine = Entry(result, content_hash(text), None)
        others = [entry for entry in self.results.board.entries if entry.key != mine.key]
        entries = Board((*others, mine)).groups()[result.group]
        frame = leaderboard(entries)
        preview = gr.update(value=_table(frame, shown(frame, entries)), visible=True)
        if not self.submit_to:
            todo = (
                "This Space takes no submissions. `easg-bench submit RUN --to ORG/REPO` sends the run from your side."
            )
            return said, preview, todo, gr.update(interactive=False), None
        try:
            planned = self._plan(text, answers)
        except Exception as error:
            return said, preview, f"The results repo cannot be asked now: {error}", gr.update(interactive=False), None
        return said, preview, str(planned), gr.update(interactive=bool(planned.files)), (text, answers)

    def send(self, checked: tuple[bytes, bytes | None] | None) -> tuple[str, Any]:
        """Open the pull request of what was checked."""
        if checked is None:
            return "Upload a result first.", gr.update(interactive=False)
        try:
            planned = self._plan(*checked)
            address = submit(_api(), planned)
        except Exception as error:
            return f"Not sent: {error}", gr.update(interactive=True)
        return (f"Opened {address}" if address else str(planned)), gr.update(interactive=False)

    def _plan(self, text: bytes, answers: bytes | None) -> Plan:
        return plan(_api(), self.submit_to, [(text, answers)])

    def _read(self, files: Sequence[str]) -> tuple[Result, bytes, bytes | None, str]:
        """The result, its published bytes, its answers and what to say of them."""
        paths = {Path(name).name: Path(name) for name in files}
        found = [name for name in paths if name.lower().endswith(".json")]
        if strange := [name for name in paths if not name.lower().endswith((".json", ".jsonl"))]:
            raise ValueError(
                f"{strange[0][:80]}: expected are scores.json and, if you like, answers.jsonl and verdicts.jsonl of "
                "the same run folder, not packed"
            )
        if len(found) != 1:
            raise ValueError(f"one result file (scores.json) is expected, not {len(found)}")
        original = parse(_limited(paths[found[0]]), found[0][:80])
        text = published(original.model_dump(mode="json"))
        result = parse(text, found[0][:80])
        said = f"{result.name}: a result of {_count(result.avg.n, 'row')} that holds together."
        lines = [paths.get(name) for name in ("answers.jsonl", "verdicts.jsonl")]
        if not any(lines):
            return result, text, None, f"{said} Without answers, so it will be compared by intervals only."
        if not all(lines):
            raise ValueError("answers need both answers.jsonl and verdicts.jsonl of the run folder")
        answers = self._answers(original, *(path for path in lines if path))
        return result, text, answers, f"{said} Its answers give the same numbers."

    def _answers(self, result: Result, answers: Path, verdicts: Path) -> bytes:
        if not self.questions.rows:
            raise ValueError("this Space has no questions, so it cannot check answers: upload scores.json alone")
        try:
            said = {str(line["id"]): {"prediction": line.get("prediction")} for line in Lines(answers).read()}
            given: dict[str, dict[str, Any]] = {"answer": {}, "truth": {}}
            for line in Lines(verdicts).read():
                if line["judge"] == result.scorer:
                    verdict = verdict_of(line)
                    if verdict.score is not None and not math.isfinite(verdict.score):
                        raise ValueError(f"verdicts.jsonl: the score of {line['id']!r} is {verdict.score}")
                    given[line["of"]][str(line["id"])] = verdict
            asked = set(given["answer"]) | set(given["truth"])
            rows = [row for row in self.questions.rows.values() if row["id"] in asked]
            if strange := sorted(asked - set(self.questions.rows)):
                raise ValueError(f"verdicts.jsonl: {strange[0][:80]!r} is no question of this Space's data set")
            table = answer_table(rows, said, given["answer"], given["truth"])
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"answers.jsonl or verdicts.jsonl is not as a run writes it: {error!r}") from error
        check_answers(table, result, "verdicts.jsonl")
        return answer_bytes(table)


def _api() -> Any:
    from huggingface_hub import HfApi

    return HfApi()


def _limited(path: Path) -> bytes:
    from videoqa.results import MAX_BYTES

    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def _plain(frame: pd.DataFrame) -> list[list[str]]:
    return [
        [
            "–" if value is None or value != value else f"{value:.2f}" if isinstance(value, float) else str(value)
            for value in line
        ]
        for line in frame.itertuples(index=False)
    ]


def _table(frame: pd.DataFrame, cells: list[list[str]]) -> dict[str, Any]:
    """What a gradio Dataframe shows: numbers, by which it sorts, under the texts of the cells."""
    data = frame.astype(object).where(frame.notna(), None).values.tolist()
    return {"headers": list(frame.columns), "data": data, "metadata": {"display_value": cells, "styling": None}}


def build(app: App) -> gr.Blocks:
    """The page."""
    numbers = ["number", "str", "str", "number", "str", *["number"] * 5, "str", "number", "number", "str"]
    widths: list[str | int] = ["40px", "170px", "100px", "125px", "150px", *["125px"] * 5]
    widths += ["110px", "65px", "100px", "100px"]
    names = app.groups()  # what the first view shows; what is newer comes when the page has loaded
    first = names[0][1] if names else None
    with gr.Blocks(title="EASG-Bench leaderboard", analytics_enabled=False, delete_cache=(3600, 7200)) as page:
        gr.Markdown("# EASG-Bench\nHow well do models understand what happens when in first-person video?")
        with gr.Tabs() as tabs:
            with gr.Tab("Leaderboard", id="leaderboard"):
                gr.Markdown(WHY_GROUPS)
                group = gr.Dropdown(names, value=first, label="Judge, mode, rubric and questions", elem_id="group")
                with gr.Row():
                    search = gr.Textbox(label="Search models", placeholder="part of a name", elem_id="search", scale=2)
                    kinds = gr.CheckboxGroup(list(TRACK.kinds), label="Kind (none: all)", elem_id="kinds", scale=2)
                    prompts = gr.Dropdown(label="Prompt (none: all)", multiselect=True, elem_id="prompts", scale=1)
                board = gr.Dataframe(
                    app.rank(first, "", [], []),
                    datatype=numbers,  # type: ignore[arg-type]
                    interactive=False,
                    label="Relative score × 100 with 95% interval",
                    column_widths=widths,
                    max_height=640,
                    elem_id="board",
                    wrap=True,
                )
                gr.Markdown(
                    "*Against the best*: where the answers of both are here, their averages are compared question by "
                    "question (paired, clips swapped, p < 0.05 counts as lower); otherwise by whether the 95% "
                    "intervals of the two averages meet, which misses small differences."
                )
                note = gr.Textbox(app.note(), label="Results", interactive=False, lines=2, max_lines=8, elem_id="note")
                gr.Markdown(
                    "### The paper's rows\nTables 2 and 3, by the paper's judge. **Not comparable** with others."
                )
                table2 = paper()
                gr.Dataframe(
                    _table(table2, _plain(table2)),
                    datatype=["str"] * 3 + ["number"] * 6,  # type: ignore[arg-type]
                    interactive=False,
                    column_widths=["200px", "130px", "110px", *["90px"] * 6],
                    elem_id="paper",
                )
            with gr.Tab("Types", id="types") as types_tab:
                types_group = gr.Dropdown(label="Judge, mode, rubric and questions", elem_id="types-group")
                gr.Markdown("### Each model in each type, with 95% intervals")
                by_type = gr.Plot(show_label=False, elem_id="by-type")
                gr.Markdown("### The best language-only and the best video model")
                kinds_chart = gr.Plot(show_label=False, elem_id="best-of-kinds")
                gr.Markdown("### Two turns (locate the action, then ask) against one")
                stages_note = gr.Markdown()
                stages = gr.Plot(show_label=False, elem_id="two-stage")
            with gr.Tab("Browse", id="browse"):
                with gr.Row():
                    kind = gr.Dropdown([("all types", ""), *TYPES], value="", label="Type", elem_id="kind", scale=1)
                    clip = gr.Dropdown(label="Clip", elem_id="clip", scale=2)
                    words = gr.Textbox(label="Words in question or answer", elem_id="words", scale=2)
                question = gr.Dropdown(label="Question", elem_id="question")
                found = gr.Markdown(elem_classes="quiet")
                text = gr.HTML(elem_id="question-text")
                with gr.Row():
                    with gr.Column(scale=3, min_width=320):
                        gr.Markdown("#### The clip's actions")
                        timeline = gr.Plot(show_label=False, elem_id="timeline")
                    with gr.Column(scale=2, min_width=320):
                        gr.Markdown("#### The objects in the frame")
                        frame = gr.Radio(label="Frame", elem_id="frame", visible=False)
                        picture = gr.Plot(show_label=False, elem_id="picture")
                        said = gr.Textbox(show_label=False, interactive=False, container=False, elem_id="picture-note")
                answers = gr.Dataframe(
                    datatype=["str", "str", "number", "str", "str"],
                    interactive=False,
                    label="What the models answered; scores of different judges cannot be compared",
                    wrap=True,
                    column_widths=["200px", "320px", "80px", "320px", "240px"],
                    elem_id="answers",
                )
            with gr.Tab("Submit", id="submit"):
                gr.Markdown((HERE / "submit.md").read_text(encoding="utf-8"))
                upload = gr.File(
                    label=f"scores.json, and if you like answers.jsonl and verdicts.jsonl ({UPLOAD_LIMIT} at most)",
                    file_count="multiple",
                    height=170,
                    elem_id="upload",
                )
                verdict = gr.Textbox(label="Check", interactive=False, lines=2, max_lines=8, elem_id="verdict")
                preview = gr.Dataframe(
                    datatype=numbers,  # type: ignore[arg-type]
                    interactive=False,
                    visible=False,
                    label="How it would appear",
                    column_widths=widths,
                    wrap=True,
                    elem_id="preview",
                )
                todo = gr.Textbox(label="What will be done", interactive=False, lines=2, max_lines=8, elem_id="todo")
                send = gr.Button("Open the pull request", interactive=False, variant="primary", elem_id="send")
                checked = gr.State()
            with gr.Tab("About", id="about"):
                gr.Markdown((HERE / "about.md").read_text(encoding="utf-8"))

        filters = [group, search, kinds, prompts]
        page.load(app.start, None, [group, prompts, types_group, board, note], show_progress="hidden")
        page.load(app.opened, None, [tabs, clip, question, found], show_progress="hidden")
        gr.on(
            [group.input, search.change, kinds.change, prompts.change],
            app.rank,
            filters,
            board,
            show_progress="hidden",
            trigger_mode="always_last",
            api_name="rank",
        )
        gr.on(
            [types_tab.select, types_group.input], app.types, types_group, [by_type, kinds_chart, stages, stages_note]
        )
        gr.on(
            [kind.input, clip.input, words.change],
            app.find,
            [kind, clip, words, question],
            [question, found],
            show_progress="hidden",
            trigger_mode="always_last",
        )
        details = [text, timeline, frame, picture, said, answers]
        question.change(app.question, question, details, show_progress="hidden", api_name="question")
        frame.input(app.picture, [question, frame], [picture, said], show_progress="hidden")
        upload.change(app.check, upload, [verdict, preview, todo, send, checked])
        send.click(app.send, checked, [todo, send], concurrency_limit=1)
    return page.queue(default_concurrency_limit=8, max_size=200)


def main() -> None:
    """Read the environment and serve."""
    data = os.environ.get("EASG_BENCH_DATA", "")
    results = Results(os.environ.get("EASG_BENCH_RESULTS") or DEMO)
    app = App(results, data, os.environ.get("EASG_BENCH_VIDEOS", ""), os.environ.get("EASG_BENCH_SUBMIT_TO", ""))
    build(app).launch(
        max_file_size=UPLOAD_LIMIT,
        css=CSS,
        theme=gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
        footer_links=["api"],
        ssr_mode=False,
        show_error=True,
    )


if __name__ == "__main__":
    main()
