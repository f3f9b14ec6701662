"""How probable a choice is, from the next tokens that an engine sees or a server reports.

{"8": -0.2, "1": -2.1, ...} at temperature 0.6, top_p 0.9   ->   {"8": -0.05, "1": -3.2}

Where the tokens are known by their ids, every number is followed by one more step, and what makes another number of it
("80", "8.5") is not counted for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Token = TypeVar("Token", bound=Hashable)

TAIL = 32  # characters of a prompt's end that decide how what follows is split into tokens


def choice_paths(
    encode: Callable[[str], Sequence[int]], prompt: str, choices: Sequence[str]
) -> tuple[int, dict[str, tuple[int, ...]]]:
    """How many ids at the end of the prompt change when a choice follows (a blank may join it), and the ids of each
    choice from there: "Score: " + "10" may be (..., ":", " ") + ("1", "0") or (..., ":") + (" 10",)."""
    tail = prompt[-TAIL:]
    base, full = list(encode(tail)), [list(encode(tail + c)) for c in choices]
    kept = len(base)
    for ids in full:
        kept = next((i for i in range(min(kept, len(ids))) if ids[i] != base[i]), min(kept, len(ids)))
    return len(base) - kept, {c: tuple(ids[kept:]) for c, ids in zip(choices, full, strict=True)}


def drawn(top: Mapping[Token, float], temperature: float, top_p: float) -> dict[Token, float]:
    """Probability of each reported token (`top`: log-probabilities) when drawn at `temperature` from the top_p part.

    The unreported rest of the vocabulary has the mass that is missing to 1, and is taken to fall off as a power of the
    rank: exact at temperature 1, close below it, where the rest hardly counts.
    """
    order = sorted(top, key=lambda t: -top[t])
    probability = {t: math.exp(top[t]) for t in order}
    if not order or (temperature == 1 and top_p >= 1):
        return probability
    powered = {t: p ** (1 / temperature) for t, p in probability.items()}
    missing, edge = 1 - sum(probability.values()), len(order) * probability[order[-1]]
    rest = 0.0
    if missing > 0 and edge > 0:  # p(rank) = p(last) (rank / last)^-power; both sums over it are taken as integrals
        power = 1 + edge / missing
        rest = len(order) * powered[order[-1]] / max(power / temperature - 1, 1e-3)
    whole = sum(powered.values()) + rest
    kept: dict[Token, float] = {}
    reached = 0.0
    for token in order:
        if reached >= top_p:
            break
        kept[token] = powered[token] / whole
        reached += kept[token]
    return {token: p / max(reached, min(top_p, 1.0)) for token, p in kept.items()}


# -- texts of tokens --------------------------------------------------------------------------------------------------

NUMBER = re.compile(r"\d+(?:\.\d+)?")
# What makes another number of the one before it: "80", "8.5", "8,5", "8%", "8½", "7-8", "7 to 8".
ANOTHER = re.compile(r"[.,]?\d|\s*(?:[%‰½¼¾⅓⅔]|(?:[-–—~+*^]|to\b|or\b)\s*\d|percent\b)|\w")
OF = re.compile(r"\s*(?:/|out of\b|of\b)\s*(\d+(?:\.\d+)?)?")
LIST = re.compile(r"[.)][ \t]+\S")  # "1. The reference says": the first of a list
UNDECIDED = re.compile(r"[.,/:–—-]")


def is_whole(choice: str, rest: str, choices: Sequence[str], labelled: bool = True) -> bool:
    """Whether a text that begins with this choice, and goes on with `rest`, says the choice and nothing larger.

    "8" is not said by "80", "8.5", "8/5", "8%" or "8-9", but by "8", "8.", "8/10" (10 being the greatest choice) and
    "8, because"; "A" not by "And" or "A's", but by "A." and "A)". Without a label in front ("Score:"), "1. The
    reference" is the first of a list.
    """
    if not NUMBER.fullmatch(choice):
        return not re.match(r"\w|['’]\w|-\w", rest)
    if (ratio := OF.match(rest)) is not None:
        greatest = max((c for c in choices if c.isdecimal()), key=float, default=choice)
        if ratio.end() == len(rest):  # perhaps cut: "8/1" of "8/10"
            return greatest.startswith(ratio[1] or "")
        return ratio[1] is not None and float(ratio[1]) == float(greatest)
    return not ANOTHER.match(rest) and (labelled or not LIST.match(rest))


def longest(text: str, choices: Sequence[str]) -> str | None:
    """The longest choice that the text begins with."""
    return max((c for c in choices if text.startswith(c)), key=len, default=None)


# -- tokens known by their ids ----------------------------------------------------------------------------------------

Path = tuple[int, ...]  # ids behind the prompt
# A beginning less probable than this is not followed: what comes behind it counts as its end.
FOLLOWED = 1e-3
SEEN = 50  # the most probable tokens behind a number that are looked at


@dataclass(frozen=True, slots=True)
class Behind:
    """What comes behind a beginning, in one row."""

    chances: Mapping[int, float]  # probability of each next token that a choice goes on with
    larger: float = 0.0  # probability of all others that make another number: "80", "8%"


class Choices:
    """Choices as ids behind a prompt of one template, and which beginnings of them are followed.

    Behind the whole number "8" its tenths are followed as well, "8.1" to "8.9", be they choices or not: they are not 8.
    `encode` and `decode` are the tokenizer's.
    """

    def __init__(
        self,
        encode: Callable[[str], Sequence[int]],
        decode: Callable[[Sequence[int]], str],
        prompt: str,
        choices: Sequence[str],
    ) -> None:
        whole = [c for c in choices if c.isdecimal()]
        self.dropped, self._paths = choice_paths(encode, prompt, [*choices, *tenths_of(choices)])
        self._asked = tuple(choices)
        self._decode = decode
        self._known: dict[tuple[int, int], bool] = {}
        # numbers, by their path: "8.5" is looked behind as well ("8.55" is the tenth's, "8.5%" is not)
        self._numbers = {self._paths[c] for c in choices if NUMBER.fullmatch(c)}
        paths = self._paths.values()
        self.steps: dict[Path, list[int]] = {(): []}  # the next tokens of choices, by what stands before them
        for path in paths:
            for n in range(len(path)):
                after = self.steps.setdefault(path[:n], [])
                if path[n] not in after:
                    after.append(path[n])
        for path in (self._paths[c] for c in whole):
            self.steps.setdefault(path, [])
        self.longest = max(map(len, self.steps)) + 1

    def beginnings(self, length: int) -> list[Path]:
        """What may be followed, of so many ids."""
        return sorted(path for path in self.steps if len(path) == length)

    def behind(self, beginning: Path, chances: Mapping[int, float]) -> Behind:
        """What comes behind a beginning, by the probabilities of the next tokens: of those in `steps`, and of the most
        probable ones."""
        mine = set(self.steps[beginning])
        larger = 0.0
        if beginning in self._numbers:
            others = (token for token in chances if token not in mine)
            larger = math.fsum(chances[token] for token in others if self._enlarges(beginning[-1], token))
        return Behind({token: chances.get(token, 0.0) for token in mine}, larger)

    def _enlarges(self, last: int, token: int) -> bool:
        """Whether a token behind the last one of a number makes another number of it."""
        if (last, token) not in self._known:
            rest = self._decode([last, token]).removeprefix(self._decode([last]))
            self._known[last, token] = ANOTHER.match(rest) is not None
        return self._known[last, token]

    def probability(self, known: Mapping[Path, Behind], path: Path) -> float:
        """That a row goes on with these ids; `known` holds what comes behind the beginnings that were followed."""
        steps = (known[path[:n]].chances.get(path[n], 0.0) if path[:n] in known else 0.0 for n in range(len(path)))
        return math.prod(steps)

    def followed(self, known: Mapping[Path, Behind], path: Path) -> bool:
        """Whether a beginning is probable enough to be followed in a row."""
        return not path or self.probability(known, path) >= FOLLOWED

    def logprobs(self, known: Mapping[Path, Behind]) -> dict[str, float]:
        """The log-probability that a row says each choice and nothing larger."""
        total = {path: self.probability(known, path) for path in self._paths.values()}
        found = {}
        for choice in self._asked:
            path = self._paths[choice]
            longer = [p for p in total if len(p) > len(path) and p[: len(path)] == path]
            nearest = [p for p in longer if not any(p != q and p[: len(q)] == q for q in longer)]
            behind = known.get(path)
            more = math.fsum(total[p] for p in nearest) + total[path] * (behind.larger if behind else 0.0)
            left = total[path] - more
            found[choice] = math.log(left) if left > 0 else -math.inf
        return found


def tenths_of(choices: Sequence[str]) -> list[str]:
    """The tenths behind whole numbers that are no choices: "8.1" to "8.9" are not 8."""
    whole = [c for c in choices if c.isdecimal()]
    return [t for c in whole for n in range(1, 10) if (t := f"{c}.{n}") not in choices]


def tenths(values: Iterable[float]) -> dict[str, float]:
    """The scores from the first to the last value in steps of a tenth, as texts: "8", "8.0", "8.1"."""
    scores = sorted(values)
    every = range(round(10 * scores[0]), round(10 * scores[-1]) + 1)
    return {f"{s:g}": float(s) for s in scores} | {f"{n / 10:.1f}": n / 10 for n in every}


# -- tokens known by their texts only ---------------------------------------------------------------------------------


def share(
    text: str,
    probability: float,
    following: Mapping[str, float],
    choices: Sequence[str],
    settled: dict[str, float],
    growing: dict[str, float],
) -> None:
    """Share out the probability of `text` by the tokens `following` it (probability of each): to choices, which it is
    added to in `settled`, and to texts that may grow into longer choices, in `growing`.

    Blanks in front do not count. A text that is a choice keeps all that does not lead to a longer one, or to another
    number ("1" + "5" with the choices 1 to 10 is neither). A token that holds a choice and more counts only where it is
    whole whatever follows: "8\n" and "8. The", but not "80", "8.5" or "1.", which may become "1.5" or begin a list.
    """
    grown = {text + token: probability * p for token, p in following.items() if token}
    offered = {new.lstrip() for new in grown}
    mine = text.lstrip()
    kept = probability if mine in choices else 0.0
    for new, p in grown.items():
        begun = new.lstrip()
        longer = [c for c in choices if len(c) > len(begun) and c.startswith(begun)]
        choice = longest(begun, choices)
        if longer and not (begun in choices and offered.issuperset(longer)):
            growing[new] = growing.get(new, 0.0) + p
        elif choice is None:
            continue
        elif choice == mine:
            if not (NUMBER.fullmatch(mine) and ANOTHER.match(begun[len(mine) :])):
                continue  # stays with the text
        else:
            rest = begun[len(choice) :]
            if is_whole(choice, rest, choices) and not (NUMBER.fullmatch(choice) and UNDECIDED.fullmatch(rest)):
                settled[choice] += p
        kept -= p
    if kept > 0 and mine in choices:
        settled[mine] += kept
