"""A rubric: what a judge is told, and which scores it may give."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from videoqa.errors import UserError

FIELDS = ("context", "question", "answer", "prediction", "rule")


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a judge's reply is drawn. The paper's figures: eval/eval_llama_review.py of fpv-iplab/EASG-bench."""

    temperature: float = 0.6
    top_p: float = 0.9
    seed: int = 42
    max_new_tokens: int = 2048

    def __post_init__(self) -> None:
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in asdict(self).values())
        whole = isinstance(self.seed, int) and isinstance(self.max_new_tokens, int)
        if (
            not numbers
            or not whole
            or not (0 < self.temperature <= 100 and 0 < self.top_p <= 1 and 1 <= self.max_new_tokens <= 1_000_000)
            or abs(self.seed) >= 2**63
        ):
            raise UserError(
                "sampling needs a temperature above 0 and up to 100, a top_p above 0 and up to 1, a whole seed below "
                f"2^63 and 1 to 1,000,000 new tokens; it is {str(asdict(self))[:200]}"
            )


@dataclass(frozen=True, slots=True)
class Rubric:
    """What the judge is told, and which scores it may give.

    `layout` is the user turn with the marks {context}, {question}, {answer} (the ground truth), {prediction} and
    {rule}. `values` are the allowed scores in rising order; with `between`, numbers between the first and the last are
    allowed as well ("8.5"). `start` is what the reply is made to begin with: in every mode, or, with
    `start_in_dist_only`, where a distribution is read and the next token must be the score.
    `one_line` puts each field on one line and QUOTE before each line of the answer, so that no text of a model under
    test can look like a section of the prompt.
    """

    name: str
    system: str
    layout: str
    rule: str
    values: tuple[float, ...]
    between: bool = True
    start: str = "Score: "
    start_in_dist_only: bool = False
    one_line: bool = True
    sampling: Sampling = Sampling()

    @property
    def fingerprint(self) -> str:
        """Eight hex digits that change with any word of the rubric."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]


def read_rubric(path: str | Path, values: Sequence[float]) -> Rubric:
    """A rubric from a file of the form of the public `eval/` folder: a JSON object with the texts `system`, `rule` and
    `layout` (with literal \\n for line ends) and the object `sampling`. The rubric is named after its file and allows
    the scores `values`.
    """
    path = Path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no rubric file {path}; `easg-bench fetch` gets the paper's") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not a JSON file ({error})") from error
    if not isinstance(data, dict):
        raise UserError(f"{path}: a JSON object is expected, not a {type(data).__name__}")
    missing = [k for k in ("system", "rule", "layout") if not isinstance(data.get(k), str) or not data[k].strip()]
    if missing:
        raise UserError(f"{path}: a rubric needs the texts system, rule and layout; missing: {', '.join(missing)}")
    layout = data["layout"].replace("\\n", "\n")
    absent = [f for f in FIELDS if f"{{{f}}}" not in layout]
    if absent:
        raise UserError(f"{path}: the layout lacks {', '.join('{' + f + '}' for f in absent)}")
    names = set(Sampling.__dataclass_fields__)
    sampling = data.get("sampling", {})
    if not isinstance(sampling, dict) or not set(sampling) <= names:
        raise UserError(f"{path}: sampling may hold {', '.join(sorted(names))}; it is {sampling!r}")
    try:
        drawn = Sampling(**sampling)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from error
    return Rubric(
        name=path.stem,
        system=data["system"],
        layout=layout,
        rule=data["rule"],
        values=tuple(values),
        start_in_dist_only=True,
        one_line=False,
        sampling=drawn,
    )
