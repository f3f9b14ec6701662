"""Problems of a dataset repo: what must not be published, and what is questionable, row by row.

    4901cdd8-...:4:direct   "What did the camera wearer put into the cabinet?" -> "jug"

is an error if its id occurs twice, a field is empty, a box leaves the frame, or a mark of the annotation is left in the
text. It is questionable (a warning) if a second action of the clip fits it with another answer. By exact strings the
paper's own selection has 20 direct and 153 indirect questions of this kind, and 113 before/after answers that repeat
the asked action. The config `unambiguous` has the questions without them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from huggingface_hub import DatasetCard

from builder.easg import wording
from builder.easg.grounding import occurs, plain
from builder.easg.readings import Purpose, Readings
from builder.easg.readings import read as readings_of
from builder.easg.records import Action
from builder.easg.vocabulary import lemmas_of, tokens, words_of
from builder.errors import BuildError
from easg_bench import CONFIGS, JUDGMENTS, REVIEWS, load

Row = Mapping[str, Any]

KINDS: dict[str, Literal["error", "warning"]] = {
    "duplicate id": "error",
    "empty field": "error",
    "box outside the frame": "error",
    "markup left": "error",
    "question contains its answer": "warning",
    "answer not grounded": "warning",
    "same question, different answers": "warning",
    "answer is the asked action": "warning",
    "a second object fits": "warning",  # direct
    "a second relation fits": "warning",  # indirect
    "unknown review": "error",
    "purpose without its graphs": "error",  # of written pairs, as the next three
    "purpose too long": "error",
    "purpose says its own answer": "error",
    "same purpose twice": "error",
    "written purpose left out": "warning",
    "question not reviewed": "warning",  # of a clip that readers read
}
WITH_GRAPHS = (
    "answer is the asked action",
    "a second object fits",
    "a second relation fits",
    "purpose without its graphs",
)
LONGEST_PURPOSE = 25  # words of a written answer
FORM = words_of(  # words of nearly any purpose question, which give nothing away
    "the a an and or but so if as of to in on at by for from with without into onto out off up down over under inside "
    "near around through again while when then that which who what why where it its them their this these those there "
    "another other is was were be been being are do did does not no can could would will should one both all any each "
    "some two more than before after until once use need purpose have has had camera wearer video"
)
NEEDED = ("id", "clip", "type", "question")  # and an answer, or choices with a gold
# <tag>, **bold**, ```, {field}, &amp;, weighing_scale, bowl:1
MARKUP = re.compile(r"<[^<>]*>|\*\*|```|\{\w+\}|&#?\w+;|(?<=\w)_+(?=\w)|(?<=[^\W\d]):\d+\b")


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of one row."""

    kind: str  # one of KINDS
    id: str
    detail: str

    @property
    def severity(self) -> Literal["error", "warning"]:
        return KINDS[self.kind]


@dataclass(frozen=True)
class Report:
    """The problems of a repo."""

    rows: dict[str, int]  # config -> rows
    problems: list[Problem]
    unchecked: str | None = None  # which kinds could not be checked, and why

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity == "error"]

    def text(self, most: int | None = None) -> str:
        """The problems, errors first, at most `most` of a kind, and their counts."""
        lines = []
        for kind, severity in KINDS.items():
            of_kind = [problem for problem in self.problems if problem.kind == kind]
            lines += [f"{severity}: {kind}: {problem.id}: {problem.detail}" for problem in of_kind[:most]]
            if len(of_kind) > len(of_kind[:most]):
                lines.append(f"{severity}: {kind}: ... {len(of_kind) - len(of_kind[:most]):,} more")
        lines += ["", ", ".join(f"{config} {n:,}" for config, n in self.rows.items())]
        for kind, severity in KINDS.items():
            of_kind = [problem for problem in self.problems if problem.kind == kind]
            texts = len({problem.detail for problem in of_kind})
            rows = f" ({texts:,} questions)" if kind == "same question, different answers" and texts else ""
            lines.append(f"{len(of_kind):7,}  {severity}: {kind}{rows}")
        if self.unchecked:
            lines.append(f"not checked: {self.unchecked}")
        return "\n".join(lines)


def check(folder: Path) -> Report:
    """Load every config of the repo as users do and look for problems, in the order of the rows. Raises as rows_of."""
    loaded = rows_of(folder)
    rows, graphs = loaded["default"], loaded.get("graphs", [])
    problems = [*of_rows(rows), *same_question(rows), *second_fits(rows, graphs)]
    problems += of_rows(loaded.get("language_neutral", []), regions=True)
    problems += of_readings(rows, graphs, readings_of())
    problems += [
        Problem("box outside the frame", f"{graph['clip']}, graph {graph['index']}", f"{box['object']}: {box['box']}")
        for graph in graphs
        for box in graph["boxes"]
        if not _inside(box["box"])
    ]
    unchecked = None if graphs else f"{'; '.join(WITH_GRAPHS)} (there is no config graphs to look in)"
    return Report({config: len(of_config) for config, of_config in loaded.items()}, problems, unchecked)


def rows_of(folder: Path) -> dict[str, list[Row]]:
    """The rows of every config that the card declares, in the order of easg_bench.CONFIGS.

    Raises BuildError where the folder is no dataset repo or a config does not load with the columns it should have.
    """
    loaded: dict[str, list[Row]] = {}
    for config in _configs_of(folder):
        loaded[config] = rows_of_config(folder, config)
    if "default" not in loaded:
        raise BuildError(f"{folder}: has no config default")
    return loaded


def rows_of_config(folder: Path, config: str) -> list[Row]:
    """The rows of one config. Raises BuildError where it does not load with the columns it should have."""
    try:
        return list(load(folder, config))
    except Exception as error:  # for a damaged file `datasets` raises anything, even AttributeError
        raise BuildError(f"{folder}, config {config}: does not load: {error}") from error


def _configs_of(folder: Path) -> list[str]:
    card = folder / "README.md"
    if not card.is_file():
        raise BuildError(f"{folder}: is no dataset repo, it has no README.md")
    try:
        configs = DatasetCard.load(card).data.get("configs") or []
    except (yaml.YAMLError, ValueError, TypeError) as error:  # TypeError: keys that are no strings
        raise BuildError(f"{card}: its head cannot be read: {error}") from error
    if not isinstance(configs, list) or not all(isinstance(config, dict) for config in configs):
        raise BuildError(f"{card}: its head cannot be read: configs must be a list of objects")
    declared = [config.get("config_name") for config in configs]
    if unknown := [name for name in declared if name not in CONFIGS]:
        raise BuildError(f"{card}: config {unknown[0]!r} is none of {', '.join(CONFIGS)}")
    return [name for name in CONFIGS if name in declared]


def of_rows(rows: Sequence[Row], regions: bool = False) -> Iterator[Problem]:
    """Problems of single rows, and ids that occur twice. `regions`: texts have `<region 1>` for an object."""
    seen = Counter(row["id"] for row in rows)
    for row in rows:
        name = row["id"]
        if seen[name] > 1:
            yield Problem("duplicate id", name, f"{seen[name]} rows have this id")
            seen[name] = 0  # one problem for all of them
        answered = row["choices"] if row["gold"] is not None else (row["answer"] or "").strip()
        empty = [field for field in NEEDED if not (row[field] or "").strip()] + ([] if answered else ["answer"])
        if empty:
            yield Problem("empty field", name, ", ".join(empty))
        for item in row["evidence"]:
            if not _inside(item["box"]):
                yield Problem("box outside the frame", name, f"{item['object']}: {item['box']}")
        if marks := _markup(row, regions):
            yield Problem("markup left", name, f"{' '.join(marks)} in {row['question']!r} - {row['answer']!r}")
        if regions:  # the text is that of the row in `default`
            continue
        answer = (row["answer"] or "").strip().lower().rstrip(".")
        if occurs(answer, (row["question"] or "").lower().replace(wording.WEARER, "")):
            yield Problem("question contains its answer", name, f"{row['question']} - {row['answer']}")
        if not grounded(row):
            yield Problem("answer not grounded", name, f"no box of {row['answer']!r}")


def same_question(rows: Iterable[Row]) -> Iterator[Problem]:
    """One text asked twice in a clip, with different answers: a problem of each of its rows."""
    by_text: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_text[row["clip"], row["question"]].append(row)
    for (_, question), of_text in by_text.items():
        if len({row["answer"] for row in of_text}) > 1:
            detail = f"{question} - {', '.join(dict.fromkeys(row['answer'] for row in of_text))}"
            yield from (Problem("same question, different answers", row["id"], detail) for row in of_text)


def second_fits(rows: Iterable[Row], graphs: Iterable[Row]) -> Iterator[Problem]:
    """Questions that the clip's other actions (rows of the config `graphs`) answer differently, by exact strings.

    direct: an action of the same verb and relations with another object; indirect: one of the same verb and object
    with other relations, or none; before and after: the answer is the asked verb and object.
    """
    actions: dict[tuple[str, int], Action] = {}
    objects: defaultdict[tuple[Any, ...], list[str]] = defaultdict(list)
    relations: defaultdict[tuple[Any, ...], list[str]] = defaultdict(list)
    for graph in graphs:
        if graph["verb"]:
            pairs = tuple((pair["relation"], pair["tail"]) for pair in graph["relations"])
            action = Action(graph["verb"], graph["object"], pairs)
            actions[graph["clip"], graph["index"]] = action
            objects[graph["clip"], action.verb, action.indirect].append(action.object)
            relations[graph["clip"], action.verb, action.object].append(action.indirect)
    for row in rows:
        clip, kind = row["clip"], row["type"]
        index = row["id"].removeprefix(f"{clip}:").split(":")[0]
        of_row = actions.get((clip, int(index))) if index.isdecimal() else None
        if of_row is None:
            continue
        if kind in ("before", "after") and row["answer"] == wording.answer_action(of_row):
            yield Problem("answer is the asked action", row["id"], f"{row['question']} - {row['answer']}")
        others = []
        if kind == "direct":
            others = [name for name in objects[clip, of_row.verb, of_row.indirect] if name != of_row.object]
        elif kind == "indirect":
            of_both = relations[clip, of_row.verb, of_row.object]
            others = [text or "no relation" for text in of_both if text != of_row.indirect]
        if others:
            detail = f"{row['question']} - {row['answer']}, or {', '.join(dict.fromkeys(others))}"
            yield Problem("a second object fits" if kind == "direct" else "a second relation fits", row["id"], detail)


def of_readings(rows: Sequence[Row], graphs: Sequence[Row], readings: Readings) -> Iterator[Problem]:
    """Problems of what readers wrote: purposes that do not hold, and questions that nobody read as they stand.

    The graphs of a written pair must be there and one of them name its object; the pair must be short, not hold its
    answer in the question, and be the only one of its clip with this answer. Clips that are not in the readers' files
    have no such problem.
    """
    named = {
        (graph["clip"], graph["index"]): {
            plain(name) for name in (graph["object"], *(pair["tail"] for pair in graph["relations"])) if name
        }
        for graph in graphs
    }
    written = {(one.clip, one.question, one.answer): one for of_clip in readings.purposes.values() for one in of_clip}
    asked = {(row["clip"], row["question"], row["answer"]) for row in rows}
    answers = Counter((row["clip"], row["answer"].lower()) for row in rows if row["review"] in JUDGMENTS)
    read_clips = {review.clip for review in readings.reviews.values()}
    for row in rows:
        if row["review"] is not None and row["review"] not in REVIEWS:
            yield Problem("unknown review", row["id"], f"{row['review']!r} is none of {', '.join(REVIEWS)}")
        if row["review"] is None and row["type"] != "purpose" and row["clip"] in read_clips:
            yield Problem("question not reviewed", row["id"], f"{row['question']} - {row['answer']}")
        if answers[row["clip"], row["answer"].lower()] > 1 and row["type"] == "purpose":
            yield Problem("same purpose twice", row["id"], row["answer"])
        one = written.get((row["clip"], row["question"], row["answer"]))
        if one is None:
            continue
        if graphs and not all((one.clip, index) in named for index in one.graphs):
            yield Problem("purpose without its graphs", row["id"], f"not all of {[*one.graphs]} are there")
        elif graphs and not any(plain(one.object) in named[one.clip, index] for index in one.graphs):
            yield Problem("purpose without its graphs", row["id"], f"none of {[*one.graphs]} names the {one.object}")
        if len(one.answer.split()) > LONGEST_PURPOSE:
            yield Problem("purpose too long", row["id"], one.answer)
        if given := given_away(one):
            yield Problem(
                "purpose says its own answer", row["id"], f"{', '.join(given)}: {one.question} - {one.answer}"
            )
    written_clips = {row["clip"] for row in rows if row["review"] in JUDGMENTS}
    for key, one in written.items():
        if one.clip in written_clips and key not in asked:
            yield Problem("written purpose left out", one.clip, f"{one.question} - {one.answer}")


def given_away(purpose: Purpose) -> list[str]:
    """The words of the answer that the question has too, in any inflection; the object's own name may be in both."""
    own = {lemma for name in wording.names(purpose.object) for word in tokens(name) for lemma in lemmas_of(word)}

    def content(text: str) -> list[str]:
        return [word for word in tokens(text) if word not in FORM and not lemmas_of(word) & own]

    asked = {lemma for word in content(purpose.question) for lemma in lemmas_of(word)}
    return [word for word in content(purpose.answer) if lemmas_of(word) & asked]


def unambiguous(rows: Sequence[Row], graphs: Iterable[Row]) -> list[Row]:
    """The rows without a problem of same_question or second_fits; `rows` and `graphs` are whole clips."""
    left_out = {problem.id for problem in (*same_question(rows), *second_fits(rows, graphs))}
    return [row for row in rows if row["id"] not in left_out]


def _inside(box: Sequence[float]) -> bool:
    left, top, right, bottom = box
    return 0 <= left < right <= 1 and 0 <= top < bottom <= 1


def _markup(row: Row, regions: bool) -> list[str]:
    """The marks left in question and answer; `<jug>` is allowed where the row has a box of the jug."""
    allowed = {f"<{plain(item['object'])}>" for item in row["evidence"]} | {f"<{i['object']}>" for i in row["evidence"]}
    if regions:
        allowed = {f"<region {number}>" for number in range(1, len(row["evidence"]) + 1)}
    marks = MARKUP.findall(f"{row['question']}\n{row['answer']}")
    return [mark for mark in marks if mark.lower() not in allowed]


def grounded(row: Row) -> bool:
    """Whether a box shows what the answer names; a purpose names no thing, it needs a box of the object in question."""
    if row["type"] == "purpose":
        return bool(row["evidence"])
    answer = (row["answer"] or "").lower()
    return any(occurs(name, answer) for item in row["evidence"] for name in wording.names(item["object"]))
