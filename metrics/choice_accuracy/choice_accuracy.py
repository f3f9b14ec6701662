"""`evaluate` module: accuracy of multiple-choice answers. All of it is videoqa/letters.py and measures.py."""

import datasets
import evaluate

from videoqa.choices import LETTERS  # From: easg-bench
from videoqa.errors import UserError  # From: easg-bench
from videoqa.letters import Letters  # From: easg-bench
from videoqa.measures import ACCURACY  # From: easg-bench
from videoqa.rating import scored_row  # From: easg-bench
from videoqa.scorer import Item  # From: easg-bench

_DESCRIPTION = """
Accuracy of multiple-choice answers in free text (EgoSchema and the like): the reply is read, never guessed. A reply
that names no option or several is wrong and counted apart. Options of the same text are right together. The interval
resamples clips.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: the replies of a model, one text a row; None and "" are no answers.
    references: index of the right option, from 0.
    choices: the options as the prompt lettered them, A for the first; a list of 2 to 10 texts a row.
    clips: what the rows of one clip share (optional, to `compute`); without it each row is a clip.
Returns:
    "accuracy" (0 to 1), "low" and "high" (95% interval; None with very few clips), "n", "unreadable", "clips".
Example:
    >>> metric = evaluate.load("metrics/choice_accuracy")
    >>> metric.compute(predictions=["(B)"], references=[1], choices=[["C cooks.", "C cleans."]])["accuracy"]
    1.0
"""

_CITATION = """
@inproceedings{mangalam2023egoschema,
  title = {{EgoSchema}: A Diagnostic Benchmark for Very Long-form Video Language Understanding},
  author = {Mangalam, Karttikeya and Akshulakov, Raiymbek and Malik, Jitendra},
  booktitle = {Advances in Neural Information Processing Systems, Datasets and Benchmarks},
  year = {2023}
}
"""


class ChoiceAccuracy(evaluate.Metric):
    """Accuracy with its interval, and what could not be read."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {
                    "predictions": datasets.Value("string"),
                    "references": datasets.Value("int32"),
                    "choices": datasets.Sequence(datasets.Value("string")),
                }
            ),
            codebase_urls=["https://github.com/egoschema/EgoSchema"],
        )

    def add_batch(self, *, predictions=None, references=None, choices=None, **unknown):
        """Add rows, checked as they come. `compute` with rows calls this."""
        super().add_batch(**_checked(predictions, references, choices), **unknown)

    def add(self, *, prediction=None, reference=None, **row):
        """Add one row."""
        self.add_batch(predictions=[prediction], references=[reference], **{k: [v] for k, v in row.items()})

    def _compute(self, predictions, references, choices, clips=None):
        if not predictions:
            raise ValueError("there are no rows to score")
        if clips is not None and len(clips) != len(predictions):
            raise ValueError(f"the columns differ in length: {len(predictions)} predictions, {len(clips)} clips")
        items = [
            Item("", None, text, choices=tuple(options), gold=gold)
            for text, options, gold in zip(predictions, choices, references, strict=True)
        ]
        clips = range(len(items)) if clips is None else clips
        verdicts = (verdict for _, verdict in Letters().rate(items))
        rows = [
            scored_row(f"{row:09d}", str(clip), "choice", verdict)
            for row, (verdict, clip) in enumerate(zip(verdicts, clips, strict=True))
        ]
        avg = ACCURACY.compute(rows, None, key="letters", types=("choice",)).avg
        low, high = (None, None) if avg.interval is None else (end / 100 for end in avg.interval)
        counts = {"n": avg.n, "unreadable": avg.unreadable, "clips": len({row.clip for row in rows})}
        return {"accuracy": avg.mean, "low": low, "high": high, **counts}


def _checked(predictions, references, choices):
    """The columns as lists; raises ValueError, with the row, for what cannot be scored."""
    columns = {"predictions": predictions, "references": references, "choices": choices}
    if missing := [name for name, column in columns.items() if column is None]:
        raise UserError(f"missing: {', '.join(missing)}; each row needs {', '.join(columns)}")
    if texts := [name for name, column in columns.items() if isinstance(column, str)]:
        raise UserError(f"{', '.join(texts)}: a list is expected, one entry a row, not a single text")
    lists = {name: list(column) for name, column in columns.items()}
    if len(set(map(len, lists.values()))) > 1:
        told = ", ".join(f"{len(column)} {name}" for name, column in lists.items())
        raise UserError(f"the columns differ in length: {told}")
    lists["predictions"] = ["" if text is None else text for text in lists["predictions"]]
    for row, (text, gold, options) in enumerate(zip(*lists.values(), strict=True)):
        if not isinstance(text, str):
            raise UserError(f"predictions, row {row}: {text!r} ({type(text).__name__}); a text is expected")
        is_list = isinstance(options, list | tuple) and all(isinstance(one, str) for one in options)
        if not is_list or not 2 <= len(options) <= len(LETTERS):
            raise UserError(f"choices, row {row}: {options!r}; a list of 2 to {len(LETTERS)} texts is expected"[:300])
        whole = hasattr(gold, "__index__") and not isinstance(gold, bool)
        if not whole or not 0 <= gold < len(options):
            raise UserError(
                f"references, row {row}: {gold!r}; an index of the options is expected, 0 to {len(options) - 1}"
            )
    return lists
