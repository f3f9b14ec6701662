"""The dataset's card, README.md of its repo: the head that declares the configs, and the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from builder.card import Card
from builder.easg.questions import SameFrame
from builder.repo import PICTURE
from easg_bench import TYPES


def recorded(same_frame: SameFrame, purposes: str) -> str:
    """The card's paragraph on how the questions were made, for a build from recorded votes without a model."""
    return RECORDED.format(same_frame=SAME_FRAME_NOTES[same_frame], purposes=PURPOSE_NOTES[purposes])


def text(files: Mapping[str, str], sizes: Mapping[str, int], sources: Sequence[Path], made: str, folder: Path) -> str:
    """The whole card, from the path of each config's data file in the repo and its number of rows.

    `sources` are the files that the rows were made from, `made` is the paragraph about how, `folder` is the repo's.
    """
    return CARD.text(
        {
            "default": [files[kind] for kind in TYPES if kind in files],
            **{config: [path] for config, path in files.items()},
        },
        {**sizes, "default": sum(sizes[kind] for kind in TYPES)},
        {path.name: path for path in sources},
        f"{made}\n\n{CHOSEN}",
        folder=folder,
        example="direct" if "direct" in files else "",
    )


CONFIG_NOTES = {
    "default": "all questions",
    "purpose": "what an object was for; by template, also what was done with it",
    "direct": "the object of an action",
    "indirect": "where, with what, into what",
    "before": "the action before the one named",
    "after": "the action after the one named",
    "unambiguous": "the questions that no second action of the clip answers differently, by exact strings",
    "reviewed": "the questions that every reader calls clear, and the purposes called supported or plausible",
    "language_neutral": "`<region n>` in place of each object that has a box: the n-th of `evidence`",
    "narrations": "one row per clip: the timestamped narrations",
    "graphs": "one row per annotated action: triplets, boxes, uniqueness vote",
}
COLUMN_NOTES = {
    "id": "`<clip>:<graph index>:<type>` (imported: `f` and the frame for the index), behind `indirect` the relation's "
    "number; `<clip>:purpose:<object>`",
    "clip": "uid of the Ego4D clip",
    "video": "uid of the full Ego4D video that the clip is from",
    "type": "purpose, direct, indirect, before or after",
    "question": "one question; the actor is the camera wearer",
    "answer": 'the annotation\'s own words: an object, a relation ("from table") or an action ("pick jug"); '
    "of a purpose question what the object was for",
    "choices": "multiple choice only; null here",
    "gold": "index into `choices`; null here",
    "context": "the clip's narrations with their seconds in the full video, for the judge; may be empty",
    "frame": "point of no return of the asked action, a frame of the full video (30 fps); null for purpose",
    "start_s": "precondition of the asked action, seconds of the full video; null for purpose",
    "end_s": "postcondition of the asked action, seconds of the full video; null for purpose",
    "clip_start_s": "where a file of the clip alone starts in the full video; null where unknown",
    "evidence": "what the pair names: graph (uid), frame, seconds, object, box (left, top, right, bottom; 0..1), "
    "attribute (an adjective from the narrations; null where none was asked for or found)",
    "review": "what readers of the clip's graphs and narrations say: clear, second_answer, repeats, implausible, "
    "unclear, or two of them where two readers differ (clear/second_answer); of a purpose: supported or plausible; "
    "null: nobody read the question as it stands",
}
RECORDED = """\
An action is asked if it occurs once in its clip and the recorded uniqueness vote is below 0.5. {same_frame}
The selection of actions and the answers of the action questions follow the EASG-Bench paper; **the wording is not the
paper's**, which a language model wrote: action questions are worded by template, some of them put right by hand.
{purposes}
Attributes of objects are not included, and the paper's filter of generic questions has no public code and is not
applied."""
PURPOSE_NOTES = {
    "written": (
        "The purpose questions were **written by a language-model reader from text alone**, the clips' graphs and\n"
        "narrations; no video was seen. Those of the public clips were judged by another such reader; what was\n"
        "neither supported nor plausible was rewritten and judged again. For clips that no reader wrote for they are\n"
        "by template: what the annotated actions say of the object, not why somebody might have done it."
    ),
    "template": (
        "A purpose question by template is not the paper's: it says what the annotated actions say of the object, not\n"
        "why somebody might have done it."
    ),
    "llm": (
        "The model wrote the purpose pairs; those that speak of things which are not in the clip's graphs were dropped."
    ),
}
IMPORTED = """\
The questions are the authors' own, with their wording and groundings as they are in the file above. It does not say
from which video a clip is, nor where clip and action begin, so `video` is empty and these seconds are null; and it has
no action graphs, so there are no configs `graphs` and `unambiguous`; nobody read them, so there is no `reviewed`."""
SAME_FRAME_NOTES = {
    "last": "Of two asked actions of a clip with the same point of no return only the later is kept, as in the paper.",
    "all": "Two asked actions of a clip with the same point of no return are both kept; the paper keeps the later.",
}
CHOSEN = f"""\
Some questions have more than one right answer: "What did the camera wearer pick up from the plate?", where two things
were. The config `unambiguous`, where there is one, leaves them out: one text asked twice in a clip with different
answers; a direct question whose verb and relations, or an indirect one whose verb and object, are those of a second
action of the clip too; and a before or after question whose answer is the asked action itself. Scores on it compare
with those of others on it only.

The config `reviewed` goes by reading: the action questions that every reader of the clip's graphs and narrations calls
clear (one right answer, not in the question, an annotation that can be meant), and the purposes called supported or
plausible. The column `review` says what the readers called a question; the readers were language models and saw no
video.

The config `language_neutral` has the questions whose text names an object that has a box, with `<region 1>` for its
name; `evidence` holds its box (the largest, where a purpose has several), `question_coordinates` says it in words, and
the answer stays as it is.

![Questions by type, lengths, and what is annotated]({PICTURE})"""
CARD = Card(
    name="EASG-Bench questions",
    tasks=("video-text-to-text", "question-answering"),
    tags=("egocentric-video", "scene-graphs", "ego4d"),
    notes=CONFIG_NOTES,
    heading="EASG-Bench questions",
    intro="""\
Open questions about egocentric clips, made from action scene graphs: what an object was for, what was acted on,
where or with what, what was done right before and right after. A model's answers are rated by an LLM judge that
reads the clip's narrations; the ratings are reported relative to what the same judge gives the true answers.""",
    columns="## Columns of the questions\n\n| column | what |\n|---|---|\n"
    + "\n".join(f"| `{name}` | {note} |" for name, note in COLUMN_NOTES.items())
    + "\n\n`frame / 30` is a second of the full video; subtract `clip_start_s` for a second of the clip's own file.",
    rights="""\
Where the annotations above are those of EASG (fpv-iplab/EASG), they describe
Ego4D videos: for these, get and keep to the Ego4D licence. The terms of the annotations and narrations are those of
the files they came from.""",
    citing="""\
Cite the EASG-Bench paper (arXiv 2506.05787), and EASG and Ego4D, whose annotations and videos it stands on.""",
    bibtex="""\
@article{rodin2025easgbench,
  title = {{EASG-Bench}: Video {Q\\&A} Benchmark with Egocentric Action Scene Graphs},
  author = {Rodin, Ivan and Wu, Tz-Ying and Min, Kyle and Sridhar, Sharath Nittur and Furnari, Antonino and
            Tripathi, Subarna and Farinella, Giovanni Maria},
  journal = {arXiv preprint arXiv:2506.05787},
  year = {2025}
}
@article{rodin2023easg,
  title = {Action Scene Graphs for Long-Form Understanding of Egocentric Videos},
  author = {Rodin, Ivan and Furnari, Antonino and Min, Kyle and Tripathi, Subarna and Farinella, Giovanni Maria},
  journal = {arXiv preprint arXiv:2312.03391},
  year = {2023}
}""",
    licence=("ego4d-license", "https://ego4ddataset.com/ego4d-license/"),
    aside=("narrations", "graphs"),
)
