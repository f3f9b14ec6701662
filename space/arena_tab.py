"""The tab Arena: two hidden answers to one question, four outcomes, and who wrote them once the vote is cast."""

from __future__ import annotations

import html
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr
from ballots import Ballots, Shown

from videoqa.arena import ratings
from videoqa.arena.votes import Vote
from videoqa.errors import UserError
from videoqa.frames import VideoError
from videoqa.videos import find_video, video_files

INTRO = (
    "Two models answered the same question; which answer is better? Judge by what happens in the video, not by style "
    "or length. The names come with your vote. A vote is kept with the question, the two models and a code for your "
    "visit, nothing else."
)
ALL_DONE = "There is no pair left that you have not voted on. Thank you!"
CHOICES = (("A is better", "a"), ("B is better", "b"), ("Both good", "tie"), ("Both bad", "both bad"))
ORDERS = 20  # of the votes for Elo: a viewer waits
# at 640 px and below six tabs have to stand side by side
CSS = """
.duel { border: 1px solid rgba(133,141,149,.5); border-radius: 8px; padding: .6rem .9rem; min-height: 5rem }
.duel h3 { margin: 0 0 .3rem; font-size: 1rem; opacity: .75 } .duel p { margin: 0; overflow-wrap: anywhere }
.events { white-space: pre-wrap; margin: .3rem 0; max-height: 16rem; overflow-y: auto }
@media (max-width: 640px) {
    .tab-container button { padding: 0 3px !important; font-size: 12.5px !important } }
.wide { overflow-x: auto }
.rated { border-collapse: collapse } .rated th, .rated td { padding: .25rem .7rem; text-align: left }
"""


def address_of(request: gr.Request) -> str:
    """Where a request comes from. Only on a Hub Space is the header believed that its proxy writes: the last address
    in it is the one that the proxy saw."""
    if os.environ.get("SPACE_ID"):
        forwarded = str(request.headers.get("x-forwarded-for", "")).split(",")[-1].strip()
        if forwarded:
            return forwarded
    return str(request.client.host) if request.client else ""


class Page:
    """What the tab's events show."""

    def __init__(self, ballots: Ballots, videos: str = "") -> None:
        self.ballots = ballots
        self.videos = video_files(videos) if videos else {}

    def show(self, request: gr.Request) -> tuple[Any, ...]:
        """The pair that this visitor sees."""
        shown = self.ballots.next(str(request.session_hash), address_of(request))
        if shown is None:
            nothing = gr.update(visible=False)
            return f"<h2>{ALL_DONE}</h2>", nothing, "", "", "", *[gr.update(interactive=False)] * len(CHOICES), nothing
        video = self._video(shown)
        return (
            _question(shown, video is not None),
            gr.update(value=video, visible=video is not None),
            _answer("A", shown.answers[0]),
            _answer("B", shown.answers[1]),
            "",
            *[gr.update(interactive=True)] * len(CHOICES),
            gr.update(visible=False),
        )

    def voting(self, outcome: str) -> Callable[[gr.Request], tuple[Any, ...]]:
        """The function behind a button."""

        def vote(request: gr.Request) -> tuple[Any, ...]:
            try:
                shown = self.ballots.vote(str(request.session_hash), address_of(request), outcome)
            except UserError as error:
                said = f'<p class="refused">Not counted: {html.escape(str(error))}.</p>'
                return said, *[gr.update()] * len(CHOICES), gr.update(visible=True)
            return _names(shown, outcome), *[gr.update(interactive=False)] * len(CHOICES), gr.update(visible=True)

        return vote

    def rated(self) -> str:
        """The ratings by the votes so far."""
        return _ratings(self.ballots.arena.votes.read())

    def _video(self, shown: Shown) -> str | None:
        """The file of the clip by itself; of a full video nobody is asked to find the place."""
        try:
            source = find_video(self.videos, shown.match.clip, shown.match.video)
        except VideoError:
            return None
        return str(source.path)


def _question(shown: Shown, video: bool) -> str:
    match = shown.match
    told = f'<pre class="events" dir="auto">{html.escape(match.context)}</pre>' if match.context and not video else ""
    missing = "" if video or told else '<p class="quiet">Neither the video nor a description of it is here.</p>'
    return f'<div class="question"><h2 dir="auto">{html.escape(match.question)}</h2>{told}{missing}</div>'


def _answer(letter: str, text: str) -> str:
    return f'<div class="duel"><h3>Answer {letter}</h3><p dir="auto">{html.escape(text)}</p></div>'


def _names(shown: Shown, outcome: str) -> str:
    voted = next(text for text, value in CHOICES if value == outcome)
    a, b = (html.escape(name) for name in shown.names)
    return f"<p>Counted: {voted}. A was <b>{a}</b>, B was <b>{b}</b>.</p>"


def _ratings(votes: list[Vote]) -> str:
    if not votes:
        return "<p>No votes yet.</p>"
    try:
        strength = {one.model: f"{one.value:.0f}" for one in ratings.bradley_terry(votes, resamples=0)}
    except UserError:  # somebody never lost
        strength = {}
    lines = "".join(
        f'<tr><th scope="row" dir="auto">{html.escape(one.model)}</th><td>{one.votes}</td><td>{one.wins}</td>'
        f"<td>{one.ties}</td><td>{strength.get(one.model, '–')}</td><td>{one.value:.1f}</td></tr>"
        for one in ratings.elo_ratings(votes, orders=ORDERS)
    )
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("", "votes", "wins", "ties", "Bradley-Terry", "Elo"))
    return f'<div class="wide"><table class="rated"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'


def tab(page: Page) -> None:
    """The tab's elements and events, inside of the page's tabs."""
    hidden: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    with gr.Tab("Arena", id="arena") as opened:
        gr.Markdown(INTRO)
        question = gr.HTML(elem_id="duel-question")
        video = gr.Video(show_label=False, interactive=False, visible=False, height=360, elem_id="duel-video")
        with gr.Row():
            with gr.Column(min_width=280):
                answer_a = gr.HTML(elem_id="answer-a")
            with gr.Column(min_width=280):
                answer_b = gr.HTML(elem_id="answer-b")
        with gr.Row():
            buttons = [
                gr.Button(text, interactive=False, min_width=140, elem_id=f"vote-{value.replace(' ', '-')}")
                for text, value in CHOICES
            ]
        said = gr.HTML(elem_id="revealed")
        following = gr.Button("Next pair", visible=False, variant="primary", elem_id="next-pair")
        so_far = gr.Button("Ratings so far", size="sm", elem_id="show-ratings")
        table = gr.HTML(elem_id="people-ratings")
    outputs = [question, video, answer_a, answer_b, said, *buttons, following]
    gr.on([opened.select, following.click], page.show, None, outputs, **hidden)
    for button, (_, value) in zip(buttons, CHOICES, strict=True):
        button.click(page.voting(value), None, [said, *buttons, following], concurrency_id="votes", **hidden)
    so_far.click(page.rated, None, table, concurrency_limit=1, **hidden)


def opened(folder: str, votes_to: str, videos: str) -> Page:
    """The tab of an arena folder. With a dataset repo and a token, votes go there as well; where the repo cannot be
    reached when the Space starts, it does not start: votes would be lost with the Space's disk."""
    from ballots import hub

    from videoqa.arena.folder import Arena

    arena = Arena(Path(folder))
    if not votes_to:
        return Page(Ballots(arena), videos)
    token = os.environ.get("HF_TOKEN")
    if not token:
        raise UserError(f"votes are to be kept in {votes_to}, but there is no token in HF_TOKEN")
    from huggingface_hub import HfApi

    send, _ = hub(votes_to, arena, HfApi(token=token))
    return Page(Ballots(arena, send), videos)
