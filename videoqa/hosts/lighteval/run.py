"""`easg-bench lighteval ...`: lighteval's own command line, minus what breaks it.

    easg-bench lighteval accelerate "model_name=MODEL,batch_size=8,dtype=bfloat16" easg_bench \
        --custom-tasks tasks/easg_bench_tasks.py

Every argument goes to lighteval as it is. What is changed inside lighteval 0.13, and why:

- its own tasks are not imported: one of them downloads a file at import, which ends the program without a network;
- prompts are never cut in silence: its limit is that of the prompt with the most characters, so prompts with more
  tokens lost their beginning; and its count of cut prompts compares characters with tokens. The limit is the model's
  own here, and what is cut all the same is named at the end;
- a chat template's own beginning-of-text token is the only one: lighteval puts a second in front of it;
- the average over question types is ours, with its own interval: lighteval takes plain means of every column, also of
  error bars;
- answers of a model in a folder are not kept inside that folder, and never served for other weights of its name.

Exit codes: lighteval's own; 2 for a wrong argument or file, said in one line; 3 where prompts were cut, rows have no
answer or the judge failed on some.
"""

from __future__ import annotations

import difflib
import functools
import logging
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lighteval.logging.info_loggers import MetricsLogger
from lighteval.models.model_output import ModelResponse
from lighteval.models.transformers.transformers_model import TransformersModel
from lighteval.tasks.registry import Registry
from lighteval.tasks.requests import Doc
from lighteval.utils.cache_management import SampleCache

from videoqa.engines.chat import revision
from videoqa.errors import UserError
from videoqa.hosts.judged import metric_name
from videoqa.hosts.lighteval import families
from videoqa.hosts.lighteval.tasks import figures, rated

log = logging.getLogger(__name__)

cut: dict[str, int] = {}  # rows whose prompt was cut, and by how many tokens


def main(arguments: Sequence[str]) -> int:
    """Run lighteval's command line; the exit code."""
    if arguments:
        _check(arguments)
    _patch()
    rated.clear()
    cut.clear()
    sys.path.insert(0, str(Path.cwd()))  # a task file may be given as a module: tasks.easg_bench_tasks
    from lighteval.__main__ import app

    try:
        app(args=list(arguments), prog_name="easg-bench lighteval")
    except SystemExit as end:
        if end.code:
            return end.code if isinstance(end.code, int) else 1
    except ValueError as error:
        raise UserError(_mended(error)) from error
    return _told()


def _check(arguments: Sequence[str]) -> None:
    """Refuse what would give a number that means something else."""
    names = {a.split(":")[0].split("|")[0] for text in arguments if not text.startswith("-") for a in text.split(",")}
    seeing = sorted(name for name in names & families().keys() if _shows_frames(name))
    if seeing and arguments[0] not in ("custom", "tasks"):
        raise UserError(
            f"{', '.join(seeing)} shows frames, which `lighteval {arguments[0]}` does not: use "
            "`lighteval custom MODEL tasks/video_model.py ...`"
        )


def _shows_frames(family: str) -> bool:
    track, way = families()[family]
    return track.ways[way].frames


_tasks: list[str] = []  # the names of all tasks that were found


def _mended(error: ValueError) -> str:
    """lighteval's message, with the names that come close to one it does not know."""
    match = re.search(r"Cannot find task (\S+) in", str(error))
    if match is None:
        return str(error)
    families = {name.split(":")[0] for name in _tasks}
    near = difflib.get_close_matches(match[1], sorted({*_tasks, *families}), n=6, cutoff=0.5)
    names = f"close to it: {', '.join(near)}" if near else f"there are: {', '.join(sorted(families)) or 'none'}"
    return f"no task {match[1]!r}; {names}"


def _patch() -> None:
    """Put our parts in the place of lighteval's; a second call changes nothing."""
    if hasattr(Registry.load_all_task_configs, "of_easg_bench"):
        return
    Registry._load_from_files = staticmethod(lambda *_: {})  # type: ignore[method-assign, assignment]
    Registry._load_from_subdirs = staticmethod(lambda *_: {})  # type: ignore[method-assign, assignment]
    load = Registry.load_all_task_configs

    def load_ours(*arguments: Any, **named: Any) -> dict[str, Any]:
        configs = load(*arguments, **named)
        _tasks[:] = configs
        return configs

    load_ours.of_easg_bench = True  # type: ignore[attr-defined]
    Registry.load_all_task_configs = staticmethod(load_ours)  # type: ignore[method-assign, assignment]
    Registry.print_all_tasks = _listed  # type: ignore[method-assign, assignment]
    TransformersModel.greedy_until = _whole(TransformersModel.greedy_until)  # type: ignore[method-assign]
    MetricsLogger.aggregate = _averaged(MetricsLogger.aggregate)  # type: ignore[method-assign]
    SampleCache.__init__ = _outside(SampleCache.__init__)  # type: ignore[method-assign]


def _listed(registry: Registry, suites: str | None = None) -> None:
    """`lighteval tasks list`: ours, family by family, then those that a task file adds. (lighteval's own listing looks
    for names of the form SUITE|TASK, which 0.13 does not have any more.)"""
    print("A family runs the tasks of all its types; --custom-tasks tasks/BENCHMARK_tasks.py brings them.")
    mine = set()
    for family, (track, name) in families().items():
        way = track.ways[name]
        tasks = [f"{family}:{kind}" for kind in way.types or track.types]
        mine |= {*tasks}
        needs = ", `lighteval custom` with tasks/video_model.py" if way.frames else ""
        print(f"\n{family}  ({track.title}, prompt {name}{needs})")
        print("".join(f"  {task}\n" for task in tasks), end="")
    others = sorted(task for task in registry._task_registry if task not in mine)
    if others:
        print("\nfrom the task file\n" + "".join(f"  {task}\n" for task in others), end="")


def _outside(original: Any) -> Any:
    @functools.wraps(original)
    def init(self: Any, config: Any) -> None:
        name = f"{config.model_name.strip('/')}/{revision(config.model_name)}"  # the weights are part of the place
        original(self, config.model_copy(update={"model_name": name}))

    return init


# -- whole prompts ----------------------------------------------------------------------------------------------------


class _WholePrompts:
    """A tokenizer whose limit, where it is told to cut prompts, is that of the model."""

    def __init__(self, tokenizer: Any, limit: int) -> None:
        self._tokenizer, self._limit = tokenizer, limit

    def __call__(self, *texts: Any, **options: Any) -> Any:
        if "max_length" in options:
            options["max_length"] = self._limit
        return self._tokenizer(*texts, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)


def _whole(original: Any) -> Any:
    @functools.wraps(original)
    def greedy_until(self: Any, docs: list[Doc], *arguments: Any, **named: Any) -> list[ModelResponse]:
        plain = self._tokenizer
        if self.use_chat_template:
            self._add_special_tokens = False
        longest = max((doc.generation_size or 1 for doc in docs), default=1)
        # room for the answer: a prompt that fills the model would leave its whole batch one token to answer with
        self._tokenizer = _WholePrompts(plain, self.max_length - longest)
        try:
            responses = original(self, docs, *arguments, **named)
        finally:
            self._tokenizer = plain
        for doc, response in zip(docs, responses, strict=True):
            prompt = self.prompt_manager.prepare_prompt(doc)
            tokens = len(plain(prompt, add_special_tokens=self.add_special_tokens)["input_ids"])
            seen = len(response.input_tokens) - response.padded_tokens_count
            response.truncated_tokens_count = max(0, tokens - seen)
            if response.truncated_tokens_count:
                cut[f"{doc.task_name} {(doc.specific or {}).get('id', doc.id)}"] = response.truncated_tokens_count
        return responses

    return greedy_until


# -- averages ---------------------------------------------------------------------------------------------------------


def _averaged(original: Any) -> Any:
    @functools.wraps(original)
    def aggregate(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        for family, records in rated.items():
            track = families()[family][0]
            for name in [n for n in self.metric_aggregated if n.startswith(f"{family}:_average|")]:
                self.metric_aggregated[name] = figures(records, track)
            if len(rated) == 1:
                self.metric_aggregated["all"] = figures(records, track)

    return aggregate


# -- what is said at the end ------------------------------------------------------------------------------------------


def _told() -> int:
    """Print the averages over the types and what went wrong; 3 where something did, else 0."""
    wrong = []
    for family, records in sorted(rated.items()):
        track = families()[family][0]
        numbers = figures(records, track)
        low, high, n = (numbers[f"{track.prefix}_{name}"] for name in ("low", "high", "n"))
        interval = f" ({low:.2f} to {high:.2f})" if math.isfinite(low) else ""
        types = len({record["type"] for record in records})
        print(f"{family}: Avg. of {types} types {numbers[metric_name(track)]:.2f}{interval}, {n:.0f} rows answered")
        for what, name in (("unanswered", "error"), ("judge_error", "verdict")):
            rows = [r for r in records if r["status"] == what]
            wrong += [f"{what}: {r['id']}: {str(r[name])[:200]}" for r in rows]
    wrong += [f"prompt cut by {tokens} tokens: {row}" for row, tokens in sorted(cut.items())]
    for line in wrong:
        print(line, file=sys.stderr)
    truths = sum(r["truth_status"] == "judge_error" for records in rated.values() for r in records)
    if truths:
        print(f"judge_error: the judge failed on the ground truth of {truths} rows", file=sys.stderr)
    if cut:
        print(f"{len(cut)} prompts were cut: their answers are to less than was asked", file=sys.stderr)
    return 3 if wrong or truths else 0
