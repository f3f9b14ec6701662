"""Text scores that need no model: cheap enough for every training step, and no substitute for the judge.

    >>> match("The camera wearer picked up the jug.", "pick jug", "before")
    Match(exact=0.0, f1=0.8, verb=1.0, relation=None, object=1.0)

Answers of EASG-Bench are terse ("jug", "from table", "pick jug"), models speak in sentences, and both inflect; so
words are compared whatever their ending, and the parts of an answer are looked for anywhere in the prediction. What
these scores cannot see is meaning: "turn off tap" and "put off tap" share no verb, and "not the jug" holds the jug.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from videoqa.benchmarks.easg.published import TYPES
from videoqa.errors import UserError
from videoqa.reply import without_thinking


@dataclass(frozen=True, slots=True)
class Match:
    """How one answer matches its reference, each 0..1; None: the reference has no such part."""

    exact: float  # the same words in the same order
    f1: float  # of the words
    verb: float | None = None  # before, after: the reference's verb occurs, and no opposite particle ("turn on", "off")
    relation: float | None = None  # indirect: the reference's relation, or one that says the same ("into", "in")
    object: float | None = None  # direct, indirect, before, after: all words of the reference's object occur


PARTS = tuple(Match.__dataclass_fields__)


def match(prediction: str | None, reference: str, type: str) -> Match:
    """Compare one answer with its reference of a question of this type. An empty answer, also one that is empty behind
    a thinking block, matches nothing.
    """
    if type not in TYPES:
        raise UserError(f"type {type!r}: allowed are {', '.join(TYPES)}")
    answer_words = words(without_thinking(prediction or "") or "")
    reference_words = words(reference)
    common = _common(answer_words, reference_words)
    exact = len(answer_words) == len(reference_words) == common > 0 and all(map(_same, answer_words, reference_words))
    verb = relation = None
    thing = reference_words
    if type in ("before", "after"):
        action, thing = split_action(reference_words)
        verb = _verb(answer_words, action)
    elif type == "indirect":
        relation = (
            float(any(_same(a, b) for a in answer_words for b in _alike(reference_words[0])))
            if reference_words
            else 0.0
        )
        thing = reference_words[1:]
    return Match(
        exact=float(exact),
        f1=2 * common / (len(answer_words) + len(reference_words)) if common else 0.0,
        verb=verb,
        relation=relation,
        object=None if type == "purpose" else float(0 < len(thing) == _common(answer_words, thing)),
    )


def match_scores(
    predictions: Sequence[str | None], references: Sequence[str], types: Sequence[str]
) -> dict[str, float | int]:
    """Means of `match`, each 0..1, as one flat dict: "direct_f1", "before_verb", ... per type that has rows; "f1",
    "exact", "verb", "relation", "object", each the plain mean over those types (as Avg. in the paper); and counts:
    "direct_n", "n", "empty".
    """
    rows: dict[str, list[Match]] = {name: [] for name in TYPES}
    for prediction, reference, name in zip(predictions, references, types, strict=True):
        scores = match(prediction, reference, name)
        rows[name].append(scores)
    figures: dict[str, float | int] = {}
    by_part: dict[str, list[float]] = {part: [] for part in PARTS}
    for name, matches in rows.items():
        for part in PARTS:
            values = [value for m in matches if (value := getattr(m, part)) is not None]
            if values:
                figures[f"{name}_{part}"] = math.fsum(values) / len(values)
                by_part[part].append(figures[f"{name}_{part}"])
        if matches:
            figures[f"{name}_n"] = len(matches)
    means: dict[str, float | int] = {part: math.fsum(of) / len(of) for part, of in by_part.items() if of}
    empty = sum(not (without_thinking(p or "") or "").strip() for p in predictions)
    return means | figures | {"n": len(predictions), "empty": empty}


# -- words ------------------------------------------------------------------------------------------------------------

_SUBJECT = re.compile(
    r"^(?:(?:#c )?c|(?:the )?(?:camera wearer|person|man|woman)|he|she|they|i) "
    r"(?:(?:is|are|was|were|has|have|had|then) )*"
)
_SMALL = {"a", "an", "the", "another", "his", "her", "their", "its"}
_PARTICLES = {"up", "down", "out", "in", "off", "on", "over", "back", "away", "sup"}  # "pick sup": a slip of the data
_OPPOSITE = {"on": "off", "up": "down", "in": "out"}
_OPPOSITE |= {b: a for a, b in _OPPOSITE.items()}
_ALIKE = (
    {"from", "off", "out"},
    {"in", "into", "inside"},
    {"on", "onto", "upon"},
    {"to", "towards"},
    {"with", "using"},
    {"around", "round"},
    {"under", "beneath", "below"},
    {"near", "beside", "by"},
)


def words(text: str) -> list[str]:
    """The words that count: lower case, without punctuation, articles and the like, number marks ("bowl:1") and a
    leading "The camera wearer"."""
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").split())
    text = re.sub(r"(?<=\w)(?::\d+|'s?)(?!\w)", "", text)
    if match := _SUBJECT.match(text):
        text = text[match.end() :] or text
    return [word for word in re.findall(r"\w+", text) if word not in _SMALL]


def split_action(answer: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a before or after answer as verb and object: "pick up jug" -> ["pick", "up"], ["jug"]."""
    end = 2 if len(answer) > 2 and answer[1] in _PARTICLES else 1
    return list(answer[:end]), list(answer[end:])


def _verb(words: Sequence[str], action: Sequence[str]) -> float:
    if not action or not any(_same(word, action[0]) for word in words):
        return 0.0
    opposite = _OPPOSITE.get(action[1]) if len(action) > 1 else None
    return float(opposite not in words or action[1] in words)


def _alike(relation: str) -> set[str]:
    return next((group for group in _ALIKE if relation in group), {relation})


def _common(words: Sequence[str], meant: Sequence[str]) -> int:
    """How many words of the one are also in the other, each used once."""
    left = list(words)
    for word in meant:
        if (at := next((i for i, other in enumerate(left) if _same(word, other)), None)) is not None:
            del left[at]
    return len(words) - len(left)


def _same(a: str, b: str) -> bool:
    """Whether two words may be forms of one: each stands for its possible base forms, of which one must agree."""
    return a == b or not bases(a).isdisjoint(bases(b))


# -- base forms -------------------------------------------------------------------------------------------------------

# base form, then its irregular forms; the last line: slips of the annotations, as their right word
_FORMS = """
be is are was were been|beat beaten|bend bent|bind bound|bite bit bitten|blow blew blown|break broke broken
bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|come came|creep crept|dig dug
do does did done|draw drew drawn|drink drank|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt
find found|get got gotten|give gave given|go goes went gone|grind ground|hang hung|have has had|hold held|keep kept
lay laid|lead led|lean leant|leave left|lie lay|light lit|make made|pay paid|ride rode|ring rang rung|rise rose|run ran
say said|see saw seen|sew sewn|shake shook shaken|shave shaven|sing sang|sit sat|slide slid|speak spoke|spill spilt
spin spun|stand stood|stick stuck|strike struck|string strung|sweep swept|swing swung|take took taken|tear tore torn
tell told|think thought|throw threw thrown|unwind unwound|wear wore worn|weave wove woven|wind wound
withdraw withdrew withdrawn|write wrote written|man men|woman women|foot feet|tooth teeth|child children
loosen loose losse|tighten tight|separate seperate|stretch streche|scrape scrap|scraper scrapper
"""


@functools.cache
def _irregular() -> dict[str, set[str]]:
    base_forms: dict[str, set[str]] = {}
    for base, *forms in (entry.split() for entry in _FORMS.replace("\n", "|").split("|") if entry.strip()):
        for form in forms:
            base_forms.setdefault(form, set()).add(base)
    return base_forms


@functools.lru_cache(maxsize=50_000)
def bases(word: str) -> frozenset[str]:
    """What a lower-case English word may be a form of, itself among it: "taped" -> tape, "tapped" -> tap, "dishes" ->
    dish. Candidates need not be words ("cleaned" -> also "cleane"): they only have to meet those of the other form.
    """
    candidates = {word} | _irregular().get(word, set())
    if word.endswith("ies"):
        candidates |= {word[:-3] + "y", word[:-1]}
    elif word.endswith("ves"):
        candidates |= {word[:-1], word[:-3] + "f", word[:-3] + "fe"}
    elif re.search(r"(?:[sxzo]|ch|sh)es$", word):
        candidates |= {word[:-1], word[:-2]}
    elif re.search(r"[^su]s$", word):
        candidates.add(word[:-1])
    elif word.endswith("ied"):
        candidates |= {word[:-3] + "y", word[:-1]}
    elif ending := re.search(r"(?<!e)ed$|ing$", word):
        candidates |= _unended(word[: ending.start()])
    return frozenset(candidates)


def _unended(stem: str) -> set[str]:
    """Base forms of what is left when -ed or -ing went."""
    if not re.search(r"[aeiouy]", stem):
        return set()  # "red", "string"
    if re.fullmatch(r"[^aeiou]*[aeiouy][^aeiouwxy]", stem):
        return {stem + "e"} if re.fullmatch(r"[^aeiou]+[aeiouy].", stem) else {stem, stem + "e"}  # "taped" is not "tap"
    candidates = {stem, stem + "e"}
    if stem[-1] == stem[-2:-1]:
        candidates.add(stem[:-1])
    if stem.endswith("y"):
        candidates.add(stem[:-1] + "ie")  # "tying"
    return candidates
