"""Results that travel: a run's result file and answers to a results dataset on the Hub, or to a model card.

    results/Qwen3-8B/5f2c9a1e0b7d4c36/scores.json      the result (videoqa.results), without the folders of this machine
    results/Qwen3-8B/5f2c9a1e0b7d4c36/answers.parquet  one row a question: id, clip, type, prediction, score, ...

The folder's name is the hash of the result file, so the same result is recognized wherever it already is: on the main
branch or in an open pull request. `plan` looks and changes nothing; `submit` carries the plan out in one pull request.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from videoqa.answers_file import check_answers, read_answers
from videoqa.benchmark import AVERAGE, track
from videoqa.errors import UserError
from videoqa.folders import command_without_folders, without_folders
from videoqa.results import FORMAT, Result, Summary, parse
from videoqa.rows import HUB_NAME

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry, HfApi

METRIC_TYPES = {"relative": "relative_score"}  # as model cards call a measure, where it is not its own name
CLOCKS = timedelta(minutes=10)  # by which two machines' clocks may differ


def published(result: dict[str, Any]) -> bytes:
    """The bytes of the result file as others get them: folders of this machine are cut from every text, as in
    /home/me/models/mine -> mine."""

    def clean(value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            return (command_without_folders if key == "command" else without_folders)(" ".join(value.split()))
        if isinstance(value, Mapping):
            return {k: clean(v, k) for k, v in value.items()}
        return [clean(v) for v in value] if isinstance(value, list | tuple) else value

    return (json.dumps(clean(result), indent=2, ensure_ascii=True) + "\n").encode()


def content_hash(text: bytes) -> str:
    """Sixteen hex digits that stand for a result file."""
    return hashlib.sha256(text).hexdigest()[:16]


def folder_of(text: bytes, result: Result) -> str:
    """Where a result stands in the results repo."""
    model = re.sub(r"[^A-Za-z0-9._-]+", "-", result.name.split("/")[-1])[:60].strip("-.") or "model"
    return f"results/{model}/{content_hash(text)}"


def moment(result: Result, now: datetime | None = None) -> datetime:
    """When a result was made, in UTC; a date without a zone is in UTC. Raises UserError for a date that is none and for
    one of the future (clocks may differ by `CLOCKS`)."""
    try:
        date = datetime.fromisoformat(result.date)
        date = (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UserError(f"date is {result.date!r}, which is no date ({error})") from error
    if date > (now or datetime.now(UTC)) + CLOCKS:
        raise UserError(f"date is {result.date!r}, which is in the future")
    return date


# -- the Hub ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What `submit` would do."""

    repo: str
    files: dict[str, bytes]  # path in the repo -> content: what is not there yet
    known: dict[str, str]  # path in the repo -> where it already is: "main", or the pull request's address
    title: str

    def __str__(self) -> str:
        lines = [f"{path}: already there ({where})" for path, where in self.known.items()]
        lines += [f"{path}: {len(content):,} bytes" for path, content in self.files.items()]
        if not self.files:
            return "\n".join([*lines, f"Nothing to do: {self.repo} has it all."])
        if Path(self.repo).is_dir():
            return "\n".join([f"New files in the folder {self.repo}:", *lines])
        return "\n".join([f'One pull request on the dataset {self.repo}: "{self.title}"', *lines])


def plan(api: HfApi, repo: str, results: Sequence[tuple[bytes, bytes | None]]) -> Plan:
    """What it takes to bring results to a dataset repo or a local folder: `results` are result files as `published`,
    each with its answers file or None. Looks for them in the repo and in its open pull requests; changes nothing."""
    wanted: dict[str, dict[str, bytes]] = {}
    titles = []
    for text, answers in results:
        result = parse(text, "this run's result")
        moment(result)
        folder = folder_of(text, result)
        wanted[folder] = {}
        if answers is not None:
            check_answers(read_answers(io.BytesIO(answers), "this run's answers"), result, "this run's answers")
            wanted[folder][f"{folder}/answers.parquet"] = answers
        wanted[folder][f"{folder}/scores.json"] = text
        titles.append(f"{result.name} ({result.asking}), {content_hash(text)}")
    if not repo.strip():
        raise UserError("--to is empty: give a dataset repo as ORG/REPO, or a folder")
    if repo.startswith((".", "/", "~")) and not Path(repo).is_dir():
        raise FileNotFoundError(f"no folder {repo}: give one that is there, or a dataset repo as ORG/REPO")
    if Path(repo).is_dir():
        known = {f"{f}/scores.json": "the folder" for f in wanted if (Path(repo) / f / "scores.json").exists()}
    else:
        known = _on_the_hub(api, repo, [f"{folder}/scores.json" for folder in wanted])
    new = {p: c for folder, files in wanted.items() if f"{folder}/scores.json" not in known for p, c in files.items()}
    return Plan(repo, new, known, "Results: " + "; ".join(titles))


def _on_the_hub(api: HfApi, repo: str, paths: Sequence[str]) -> dict[str, str]:
    """Which of the paths the repo has, and where: "main" or the address of an open pull request."""
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        discussions = list(api.get_repo_discussions(repo, repo_type="dataset", discussion_status="open"))
    except RepositoryNotFoundError as error:
        raise UserError(f"{repo}: the Hub has no such dataset repo, or this account may not read it") from error
    places = {"main": "main"} | {f"refs/pr/{d.num}": d.url for d in discussions if d.is_pull_request}
    known = {}
    for path in paths:
        for revision, where in places.items():
            if api.file_exists(repo, path, repo_type="dataset", revision=revision):
                known[path] = where
                break
    return known


def submit(api: HfApi, planned: Plan) -> str | None:
    """Open the pull request, or write into the folder; the address, or None when there is nothing to do."""
    from huggingface_hub import CommitOperationAdd

    if not planned.files:
        return None
    if Path(planned.repo).is_dir():
        for name, content in planned.files.items():  # the result comes last, so that it never lacks its answers
            path = Path(planned.repo) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f".{path.name}")
            beside.write_bytes(content)
            beside.replace(path)
        return planned.repo
    info = api.create_commit(
        planned.repo,
        [CommitOperationAdd(path, content) for path, content in planned.files.items()],
        commit_message=planned.title,
        commit_description=f"Checked by `easg-bench submit` (result format {FORMAT}).",
        repo_type="dataset",
        create_pr=True,
    )
    return info.pr_url


# -- the model card ---------------------------------------------------------------------------------------------------


def eval_results(results: Sequence[Result], dataset: str | None) -> dict[str, str]:
    """Files for the folder `.eval_results` of a model's repo, by name: a file a result, since each is one way of asking
    and judging. `dataset` is where the questions are on the Hub; its eval.yaml names the tasks by their configs."""
    from huggingface_hub import eval_result_entries_to_yaml

    files: dict[str, str] = {}
    for result in results:
        place = dataset or result.data.data
        if not HUB_NAME.fullmatch(place) or Path(place).is_dir():
            raise UserError(
                f"{place} is no dataset on the Hub: give --dataset ORG/NAME, where these questions are there"
            )
        if result.gaps:
            raise UserError(f"{result.label} is partial ({'; '.join(result.gaps)}): a leaderboard would not show that")
        entries = eval_result_entries_to_yaml(_entries(result, place))
        own = content_hash(f"{result.label} {result.scorer}".encode())[:8]
        name = f"{result.track}-{result.data.config}-{own}.yaml"
        files[name] = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=110)
    return files


def _entries(result: Result, place: str) -> list[EvalResultEntry]:
    """A result's scores: of its config, and of the question types, which are configs too. An average over fewer types
    than the config has is none of the config."""
    from huggingface_hub import EvalResultEntry

    of_track, judge = track(result.track), result.judge
    scores = {} if result.types_missing else {result.data.config: result.avg}
    if result.data.config == of_track.configs[0] and len(of_track.types) > 1:
        scores |= result.types
    asked = result.label.partition(" (")[2].removesuffix(")")
    by = f"; judge {judge.model.split('/')[-1]}, {judge.mode}, {judge.rubric}" if judge else ""

    def notes(one: Summary) -> str:
        between = f"; 95% {one.interval[0]:.1f} to {one.interval[1]:.1f}" if one.interval else ""
        return f"{of_track.measure.title}: {asked}{by}{between}; {one.n_scored:,} rows"

    return [
        EvalResultEntry(dataset_id=place, task_id=task, value=one.value, date=result.date, notes=notes(one))
        for task, one in scores.items()
        if one.value is not None
    ]


def card(results: Sequence[Result]) -> str:
    """The older `model-index` entry of one model's card, as YAML."""
    from huggingface_hub import EvalResult, ModelCardData

    names = {result.name for result in results}
    if len(names) != 1:
        raise UserError(f"a model card is of one model; these results are of {', '.join(sorted(names))}")
    entries = []
    for result in results:
        of_track, judge = track(result.track), result.judge
        by = f"; judge {judge.model.split('/')[-1]}, {judge.mode}, {judge.rubric}" if judge else ""
        for name in (*result.types, AVERAGE):
            summary = result.column(name)
            if summary is not None and summary.value is not None:
                entries.append(
                    EvalResult(
                        task_type="video-text-to-text",
                        dataset_type=result.data.data.split("/")[-1]
                        if result.data.data[:1] == "/"
                        else result.data.data,
                        dataset_name=f"{of_track.title} ({'all types' if name == AVERAGE else name})",
                        dataset_config="default" if name == AVERAGE else name,
                        dataset_split="test",
                        dataset_revision=result.data.revision,
                        metric_type=METRIC_TYPES.get(result.measure, result.measure),
                        metric_name=f"{of_track.measure.title} ({result.asking}{by})",
                        metric_value=summary.value,
                        metric_args={
                            "n": summary.n,
                            "unreadable": summary.unreadable,
                            "interval": summary.interval and list(summary.interval),
                        },
                    )
                )
    return ModelCardData(model_name=names.pop(), eval_results=entries).to_yaml()
