"""`easg-bench fetch`: the public files that the dataset and the paper's judge are made from, onto this machine.

They go into the Hugging Face cache folder, and what the build and the judge need is made of them there:

    EASG.zip (only the annotations in it)    -> EASG_unict_master_final.json    graphs of the 221 clips
    easg_train.pkl, easg_val.pkl             clip frames: `python -m builder spans`; text is searched, nothing unpickled
    generate_QA.ipynb                        votes: `python -m builder read-notebook`
    rule.txt, eval_llama_review.py           -> judge_prompt.json, the paper's rubric; text is read, nothing is run
    clip_narrations.json, scale.json         the judge's context, the paper's calibration

Files of git repositories are pinned by commit, and the small ones by sha256 as well. Of the others no checksum is
published: the first one that arrives is kept in checksums.json (with a notice), and a later one must be the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from videoqa.benchmarks.easg.rubrics import rubric_file
from videoqa.download import Source, bring
from videoqa.errors import UserError
from videoqa.files import write_json

ANNOTATIONS = "EASG_unict_master_final.json"
NOTEBOOK = "generate_QA.ipynb"
RUBRIC = "judge_prompt.json"
VOTES = ("recorded_votes.json", "recorded_purpose_counts.json")
SPANS = "clip_spans.json"
_EVAL = "https://raw.githubusercontent.com/fpv-iplab/EASG-bench/caf7d0fff667e954ff4716dc5eaad9eaa5126f97/eval/"
_SPLITS = (
    "https://raw.githubusercontent.com/fpv-iplab/EASG/032c94726d58fe177859924ce05970279501da73/"
    "easg-generation/annts_in_new_format/"
)
SOURCES = (
    Source(
        "rule.txt", f"{_EVAL}rule.txt", "a5810e73c448751ee865a3b51a5ca4dc959ec09b48e6f3b6b2df457837a099b6", (RUBRIC,)
    ),
    Source(
        "eval_llama_review.py",
        f"{_EVAL}eval_llama_review.py",
        "567c2942fb9d9a3993100f4f51811889fbf2b4d8e80e4cdb0415c54675953065",
        (RUBRIC,),
    ),
    Source("scale.json", f"{_EVAL}scale.json", "b1d389c26655079c5dbf512c2f6f3973c8bd903ba54dc04cb462137d148f508e"),
    Source(
        "clip_narrations.json",
        f"{_EVAL}clip_narrations.json",
        "11f842b149ee1cc9ef245996835af466b45cae7ead6c3b859de08ce68b58dba6",
    ),
    Source(
        NOTEBOOK,
        "https://raw.githubusercontent.com/fpv-iplab/EASG-bench/c4b7e9d09d950e171f94ff80d403ccc746298a75/"
        "generate_QA.ipynb",
        instead=VOTES,
    ),
    Source("easg_train.pkl", f"{_SPLITS}easg_train.pkl", instead=(SPANS,)),
    Source("easg_val.pkl", f"{_SPLITS}easg_val.pkl", instead=(SPANS,)),
    # the address that the README of fpv-iplab/EASG names
    Source(ANNOTATIONS, "https://iplab.dmi.unict.it/sharing/EASG/EASG.zip"),
)
LICENCES = (
    "Licences, which you accept by using these files: EASG-bench is MIT; the repository of EASG has no licence file; "
    "both are made from Ego4D, whose licence agreement covers its videos and annotations."
)


def sources_folder() -> Path:
    """Where `fetch` puts the files: in the Hugging Face cache folder."""
    from huggingface_hub.constants import HF_HOME

    return Path(HF_HOME) / "easg-bench" / "sources"


def paper_rubric() -> Path:
    """The file of the paper's rubric, which is there after `easg-bench fetch`."""
    return sources_folder() / RUBRIC


def fetch(
    folder: Path | None = None,
    local: Path | None = None,
    sources: Sequence[Source] = SOURCES,
    say: Callable[[str], None] = print,
) -> None:
    """Get every source into `folder` (default: `sources_folder()`), from the folder `local` instead of the network if
    one is given, make the rubric, and say what lies where and what to do next.

    A file that is there and right is not fetched again. Raises ValueError for a wrong checksum, ConnectionError where
    the network fails and FileNotFoundError where `local` lacks a file; what was already right stays.
    """
    folder = sources_folder() if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    bring(sources, folder, local, say)
    if all((folder / name).exists() for name in ("rule.txt", "eval_llama_review.py")):
        rule, script = ((folder / name).read_text(encoding="utf-8") for name in ("rule.txt", "eval_llama_review.py"))
        write_json(folder / RUBRIC, rubric_of(rule, script))
        say(f"made      {folder / RUBRIC}")
    rubric_file(folder / RUBRIC)
    say(LICENCES)
    say("\n".join(["Next:", *_next(folder)]))


def rubric_of(rule: str, script: str) -> dict[str, Any]:
    """The paper's rubric in the form that `read_rubric` reads, out of the texts of rule.txt and eval_llama_review.py.

    The script is read as a syntax tree and never run: the system message, the f-string of the user turn (its
    variables become the marks of the layout) and the figures of the sampling stand in it as constants.
    """
    marks = {"cap_str": "context", "ques": "question", "ans1": "answer", "ans2": "prediction", "prompt": "rule"}
    try:
        nodes = list(ast.walk(ast.parse(script)))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        system = next(
            turn["content"]
            for node in nodes
            if isinstance(node, ast.Dict) and (turn := _constants(zip(node.keys, node.values, strict=True)))
            if turn.get("role") == "system"
        )
        content = next(
            node.value
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.JoinedStr)
            if isinstance(node.targets[0], ast.Name) and node.targets[0].id == "content"
        )
        layout = "".join(
            f"{{{marks[ast.unparse(part.value)]}}}" if isinstance(part, ast.FormattedValue) else ast.literal_eval(part)
            for part in content.values
        )
        drawn = next(given for call in calls if "top_p" in (given := _keywords(call)))
        seed = next(ast.literal_eval(call.args[0]) for call in calls if ast.unparse(call.func) == "setup_seed")
        longest = next(
            _keywords(call)["default"] for call in calls if call.args and ast.unparse(call.args[0]) == "'--max-tokens'"
        )
        sampling = {key: drawn[key] for key in ("temperature", "top_p")} | {"seed": seed, "max_new_tokens": longest}
    except (StopIteration, SyntaxError, LookupError, ValueError) as error:
        raise UserError(f"eval_llama_review.py is not the public judge script: {error!r}") from None
    return {
        "source": "fpv-iplab/EASG-bench eval/ (MIT)",
        "system": system,
        "rule": rule,
        "layout": layout.replace("\n", "\\n"),
        "sampling": sampling,
    }


def _constants(pairs: Any) -> dict[Any, Any]:
    return {k.value: v.value for k, v in pairs if isinstance(k, ast.Constant) and isinstance(v, ast.Constant)}


def _keywords(call: ast.Call) -> dict[str, Any]:
    return {k.arg: k.value.value for k in call.keywords if k.arg and isinstance(k.value, ast.Constant)}


def _next(folder: Path) -> list[str]:
    """The commands that are still to be run to build the dataset."""
    commands = []
    if not all((folder / name).exists() for name in VOTES):
        commands.append(f"  easg-bench builder read-notebook {folder / NOTEBOOK}")
    if not (folder / SPANS).exists():
        commands.append(f"  easg-bench builder spans --source {folder}")
    return [
        *commands,
        f"  easg-bench build --source {folder} --out build/easg-bench",
        "  easg-bench run --data build/easg-bench --rubric paper --model MODEL --judge JUDGE",
    ]
