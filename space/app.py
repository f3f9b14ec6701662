"""The leaderboard as a Gradio Space: Leaderboard, Types, Browse, Arena, Submit, About.

    python space/app.py          on http://127.0.0.1:7860 with the demo's results; `make space` does the same

    EASG_BENCH_RESULTS    folder or Hub dataset repo of results (default: demo/ beside this file)
    EASG_BENCH_DATA       folder or Hub dataset repo of the questions, several with commas (one of a track); without it
                          there is nothing to browse
    EASG_BENCH_VIDEOS     folder of videos, for pictures behind the boxes
    EASG_BENCH_SUBMIT_TO  dataset repo that gets submissions as pull requests, with a token in HF_TOKEN
    EASG_BENCH_ARENA      arena folder (`easg-bench arena pairs`) whose pairs people vote on; without it there is no tab
    EASG_BENCH_VOTES_TO   dataset repo that keeps the votes as well, with a token in HF_TOKEN

What models, judges and uploads say is shown as text: escaped, or in text boxes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

try:
    import arena_tab
    import columns
    import gradio as gr
    from views import DEMO, App, published
except ImportError as error:
    from videoqa.extras import advice

    raise SystemExit(advice(error) or f"{error}") from error
from leaderboard import Results
from upload import MAX_FILES

from videoqa.benchmark import Track, track

HERE = Path(__file__).parent
UPLOAD_LIMIT = "20mb"
WHY_GROUPS = (
    "A score means something only beside scores of the **same scorer and the same questions**: another judge gives "
    "other numbers to the same answers. So results are ranked within one such group at a time; choose it here."
)
HOW_COMPARED = (
    "*n of N*: questions that were answered and scored, of those that the data have. A **partial** run (fewer "
    "questions, no answer to some, a type missing, a sample) has an average of other questions, so it stands below and "
    "has no rank; in the charts its mark is hollow. In an accuracy what cannot be read is wrong. "
    "*Against the best*: where the answers of both are here, their averages are compared question by question (paired, "
    "clips swapped, p < 0.05 counts as lower; p is corrected for all pairs of the group); otherwise by whether the 95% "
    "intervals of the two averages meet, which misses small differences. **judge?**: the judge gave the allowed scores "
    "little probability, wrote much that could not be read, or failed `judge-check`; such numbers say little."
)
DEMO_WARNING = (
    "**Demo:** SmolLM2, a model of 135M parameters, judged by itself. A judge of this size gives every answer what it "
    "gives the truth, so all scores are near 100: this proves the path and nothing else."
)
CSS = (
    """
.gradio-container { max-width: 1400px !important }
.html-container { padding: 0 !important } .question a { margin: 0; padding: 0 }
.question h2 { margin: .4rem 0 } .question p { margin: .2rem 0 } .quiet { opacity: .75; font-size: .9em }
.question ol { margin: .3rem 0 .3rem 1.4rem; list-style: upper-alpha } .question li.gold { font-weight: 700 }
#notes textarea, #picture-note textarea { font-size: 13px }
@media (max-width: 640px) {
    .gradio-container .main.fillable.app { padding: 8px !important }
    .tab-container button { padding: 0 7px !important; font-size: 13px !important } }
.secondary-wrap input { padding-right: 24px !important; text-overflow: ellipsis }
"""
    + columns.TABLE_CSS
)


def build(app: App, arena: arena_tab.Page | None = None) -> gr.Blocks:
    """The page."""
    first = app.track(None)
    groups = app.choices(first.name)  # what the first view shows; what is newer comes when the page has loaded
    chosen = groups[0][1] if groups else None
    several = len(app.names()) > 1
    heading = "Video question answering" if several else first.title
    with gr.Blocks(title=f"{heading} leaderboard", analytics_enabled=False, delete_cache=(3600, 7200)) as page:
        gr.Markdown(f"# {heading}\nHow well do models understand what happens in video?")
        chooser = gr.Radio(
            [(track(n).title, n) for n in app.names()],
            value=first.name,
            label="Benchmark",
            visible=several,
            elem_id="track",
        )
        with gr.Tabs() as tabs:
            with gr.Tab("Leaderboard", id="leaderboard"):
                gr.Markdown(WHY_GROUPS)
                gr.Markdown(DEMO_WARNING, visible=app.results.source == DEMO, elem_id="warning")
                group = gr.Dropdown(groups, value=chosen, label="Scorer and questions", elem_id="group")
                with gr.Row():
                    search = gr.Textbox(
                        label="Search models", placeholder="part of a name", elem_id="search", max_length=200, scale=2
                    )
                    kinds = gr.CheckboxGroup(list(first.kinds), label="Kind (none: all)", elem_id="kinds", scale=2)
                    prompts = gr.Dropdown(label="Prompt (none: all)", multiselect=True, elem_id="prompts", scale=1)
                board = gr.HTML(app.rank(first.name, chosen, "", [], []), elem_id="board")
                gr.Markdown(HOW_COMPARED)
                note = gr.Textbox(app.note(), label="Results", interactive=False, lines=2, max_lines=8, elem_id="note")
                paper = gr.HTML(published(first), visible=bool(first.published), elem_id="paper")
            with gr.Tab("Types", id="types") as types_tab:
                types_group = gr.Dropdown(label="Scorer and questions", elem_id="types-group")
                types_note = gr.Markdown()
                by = gr.Radio([("question type", "")], value="", label="Scores by", visible=False, elem_id="by")
                by_type = gr.Plot(show_label=False, elem_id="by-type")
                best_title = gr.Markdown("### The best run of each kind")
                best = gr.Plot(show_label=False, elem_id="best-of-kinds")
                pairs_title = gr.Markdown()
                pairs = gr.Plot(show_label=False, elem_id="two-ways")
            with gr.Tab("Browse", id="browse"):
                kind, clip, words, question, listed, *details = _browse_tab(first)
            if arena is not None:
                arena_tab.tab(arena)
            with gr.Tab("Submit", id="submit"):
                files, verdict, preview, todo, send, checked = _submit_tab()
            with gr.Tab("About", id="about"):
                gr.Markdown((HERE / "about.md").read_text(encoding="utf-8"))

        started = [chooser, group, kinds, prompts, board, note, paper, types_group, kind, clip]
        drawn = [by_type, types_note, best, best_title, pairs, pairs_title, by]
        frame, picture, picture_note = details[3:6]
        quiet: dict[str, Any] = {"show_progress": "hidden"}
        page.load(app.opened, None, [*started, tabs, question, listed], **quiet)
        changed = chooser.input(app.start, chooser, started, **quiet)
        changed.then(app.find, [chooser, kind, clip, words], [question, listed], **quiet)
        changed.then(app.types, [chooser, types_group, by], drawn, **quiet)
        gr.on(
            [group.input, search.change, kinds.change, prompts.change],
            app.rank,
            [chooser, group, search, kinds, prompts],
            board,
            trigger_mode="always_last",
            api_name="rank",
            **quiet,
        )
        redrawn = gr.on(
            [types_tab.select, types_group.input, by.input], app.types, [chooser, types_group, by], drawn, **quiet
        )
        # a chart that was drawn while its tab was hidden has another width than the page
        redrawn.then(None, js="() => { setTimeout(() => dispatchEvent(new Event('resize')), 100) }")
        gr.on(
            [kind.input, clip.input, words.change],
            app.find,
            [chooser, kind, clip, words, question],
            [question, listed],
            trigger_mode="always_last",
            api_name="find",
            concurrency_limit=2,
            **quiet,
        )
        question.change(app.question, [chooser, question], details, api_name="question", **quiet)
        frame.input(app.picture, [chooser, question, frame], [picture, picture_note], concurrency_limit=2, **quiet)
        # an upload costs seconds: one at a time, so that the other events have the machine
        files.change(app.check, files, [verdict, preview, todo, send, checked], api_name="check", concurrency_limit=1)
        send.click(app.send, checked, [todo, send], concurrency_limit=1)
    return page.queue(default_concurrency_limit=8, max_size=1_000)


def _browse_tab(first: Track) -> tuple[Any, ...]:
    """The filters, the list of questions and the place for one question."""
    with gr.Row():
        kind = gr.Dropdown([("all types", ""), *first.types], value="", label="Type", elem_id="kind", scale=1)
        clip = gr.Dropdown(label="Clip", elem_id="clip", scale=2)
        words = gr.Textbox(label="Words in question, answer or options", elem_id="words", max_length=200, scale=2)
    question = gr.Dropdown(label="Question", elem_id="question")
    listed = gr.Markdown(elem_classes="quiet")
    text = gr.HTML(elem_id="question-text")
    with gr.Row():
        with gr.Column(scale=3, min_width=320):
            timeline_title = gr.Markdown("#### The clip's actions")
            timeline = gr.Plot(show_label=False, elem_id="timeline")
        with gr.Column(scale=2, min_width=320):
            frame = gr.Radio(label="Frame", elem_id="frame", visible=False)
            picture = gr.HTML(elem_id="picture")
            picture_note = gr.Textbox(show_label=False, interactive=False, container=False, elem_id="picture-note")
    answers = gr.HTML(elem_id="answers")
    return kind, clip, words, question, listed, text, timeline, timeline_title, frame, picture, picture_note, answers


def _submit_tab() -> tuple[Any, ...]:
    """The upload, what its check says, and the button that sends it."""
    gr.Markdown((HERE / "submit.md").read_text(encoding="utf-8"))
    files = gr.File(
        label=f"scores.json, and if you like answers.jsonl and verdicts.jsonl ({MAX_FILES} files, "
        f"{UPLOAD_LIMIT} at most)",
        file_count="multiple",
        height=170,
        elem_id="upload",
    )
    verdict = gr.Textbox(label="Check", interactive=False, lines=2, max_lines=8, elem_id="verdict")
    preview = gr.HTML(visible=False, elem_id="preview")
    todo = gr.Textbox(label="What will be done", interactive=False, lines=2, max_lines=8, elem_id="todo")
    send = gr.Button("Upload a result first", interactive=False, variant="primary", elem_id="send")
    checked = gr.State()
    return files, verdict, preview, todo, send, checked


def main() -> None:
    """Read the environment and serve."""
    data = os.environ.get("EASG_BENCH_DATA", "")
    results = Results(os.environ.get("EASG_BENCH_RESULTS") or DEMO)
    videos, arena = os.environ.get("EASG_BENCH_VIDEOS", ""), os.environ.get("EASG_BENCH_ARENA", "")
    app = App(results, data, videos, os.environ.get("EASG_BENCH_SUBMIT_TO", ""))
    duel = arena_tab.opened(arena, os.environ.get("EASG_BENCH_VOTES_TO", ""), videos) if arena else None
    build(app, duel).launch(
        max_file_size=UPLOAD_LIMIT,
        css=CSS + (arena_tab.CSS if duel is not None else ""),
        head=columns.TABLE_SCRIPT,
        theme=gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
        footer_links=["api"],
        ssr_mode=False,
        show_error=True,
    )


if __name__ == "__main__":
    main()
