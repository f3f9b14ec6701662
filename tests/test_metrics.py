"""The `evaluate` modules, loaded as evaluate loads them: by path, offline, from anywhere, several at once."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import evaluate
import pytest
from scripted import Scripted

from videoqa.benchmarks.easg import EASG
from videoqa.benchmarks.easg.published import PAPER_KEY, PAPER_SCALE, TYPES
from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.judge import QUOTE
from videoqa.scores import Calibration, Scored
from videoqa.store import default_store

ROOT = Path(__file__).resolve().parents[1]
METRICS = ROOT / "metrics"


def reader(layout: str) -> re.Pattern[str]:
    """Finds the fields in a prompt of this layout."""
    seen: set[str] = set()

    def group(mark: re.Match[str]) -> str:
        name = mark[1]
        again = name in seen
        seen.add(name)
        return f"(?P={name})" if again else f"(?P<{name}>.*?)"

    return re.compile(re.sub(r"\\\{(\w+)\\\}", group, re.escape(layout)), re.S)


FIELDS = reader(OURS.layout)


def strict(can_choose: bool = True, says: Mapping[str, str | None] = MappingProxyType({})) -> Scripted:
    """A judge that gives the reference 8 and anything else 2, or what `says` says of an answer."""

    def score(text: str) -> str | None:
        found = FIELDS.fullmatch(text)
        assert found is not None
        answer = found["prediction"].removeprefix(QUOTE)  # our rubric quotes it
        return says.get(answer, "8" if answer == found["answer"] else "2")

    def reply(text: str, seed: int) -> str | None:
        given = score(text)
        return given and f"Score: {given}"

    return Scripted(reply, chances=(lambda text: {str(score(text)): 1.0}) if can_choose else None, name="strict")


def rows(n: int = 10) -> dict[str, list[Any]]:
    """n rows over two types and clips of two rows; every third answer is right and the second is missing."""
    references = [f"thing {i}" for i in range(n)]
    predictions: list[str | None] = [truth if i % 3 == 0 else f"other {i}" for i, truth in enumerate(references)]
    predictions[1] = None
    return {
        "predictions": predictions,
        "references": references,
        "questions": [f"What did the camera wearer hold, {i}?" for i in range(n)],
        "contexts": [f"(1.00s) #C C holds things, clip {i // 2}." for i in range(n)],
        "types": ["direct" if i % 2 else "after" for i in range(n)],
    }


@pytest.fixture
def judge() -> Any:
    return evaluate.load(str(METRICS / "easg_judge"))


@pytest.fixture
def match() -> Any:
    return evaluate.load(str(METRICS / "easg_match"))


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the usual verdict store of this machine out of the tests."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path / "hf"))


# -- how they are loaded ----------------------------------------------------------------------------------------------

CHILD = """
import socket

class NoSocket(socket.socket):
    def __init__(self, *a, **k):
        raise OSError("a socket was opened")

socket.socket = NoSocket
socket.create_connection = socket.getaddrinfo = NoSocket

import json, sys
sys.path.insert(0, {tests!r})
import evaluate
from test_metrics import strict, rows

judge, match = (evaluate.load(path) for path in sys.argv[1:])
columns = rows()
words = {{k: columns[k] for k in ("predictions", "references", "types")}}
first, second = ([judge.compute(**columns, engine=strict()), match.compute(**words)] for _ in range(2))
assert first == second
print(json.dumps(first))
"""


def start(folder: Path, cache: Path) -> subprocess.Popen[str]:
    """A process that loads both metrics by absolute path, offline and with sockets blocked, and computes twice."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "XDG_"))}
    environment |= {"HF_HOME": str(cache), "HF_EVALUATE_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    environment |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD.format(tests=str(ROOT / "tests"))]
    return subprocess.Popen(
        [*command, str(METRICS / "easg_judge"), str(METRICS / "easg_match")],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = process.communicate(timeout=250)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def test_h02_h03_they_work_offline_from_a_folder_of_their_name_with_an_empty_cache_in_two_processes(
    judge: Any, match: Any, tmp_path: Path
) -> None:
    for name in ("easg_judge", "easg_match"):
        (tmp_path / name).mkdir()  # empty, and beside where Python runs
    processes = [start(tmp_path, tmp_path / "cache") for _ in range(2)]
    columns = rows()
    words = {k: columns[k] for k in ("predictions", "references", "types")}
    here = [judge.compute(**columns, engine=strict(), store=False), match.compute(**words)]
    assert [outcome(process) for process in processes] == [here, here]


def test_a_missing_package_is_named_by_its_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "videoqa.columns", None)
    monkeypatch.setitem(sys.modules, "videoqa", None)
    with pytest.raises(ImportError, match="pip install easg-bench"):
        evaluate.load(str(METRICS / "easg_match"))


@pytest.mark.parametrize("name", ["easg_match", "easg_judge"])
def test_the_module_tells_how_it_is_used(name: str) -> None:
    metric = evaluate.load(str(METRICS / name))
    assert metric.name == name and "judge" in metric.description and "2506.05787" in metric.citation
    assert "Returns:" in metric.inputs_description


# -- compute, add_batch, add ------------------------------------------------------------------------------------------


def in_three_ways(metric: Any, columns: dict[str, list[Any]], **how: Any) -> list[dict[str, Any]]:
    n = len(columns["types"])
    found = [metric.compute(**columns, **how)]
    for part in (slice(0, n // 2), slice(n // 2, n)):
        metric.add_batch(**{k: column[part] for k, column in columns.items()})
    found.append(metric.compute(**how))
    singular = {"predictions": "prediction", "references": "reference"}
    for i in range(n):
        metric.add(**{singular.get(k, k): column[i] for k, column in columns.items()})
    return [*found, metric.compute(**how)]


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_h04_the_three_ways_agree_wherever_the_missing_prediction_stands(judge: Any, match: Any, missing: int) -> None:
    columns = rows(3)
    columns["predictions"] = ["thing 0", "thing 1", "other"]
    columns["predictions"][missing] = None
    first, *others = in_three_ways(judge, columns, engine=strict(), store=False)
    assert first["empty"] == 1 and first["n_scored"] == 3
    assert others == [first, first]
    first, *others = in_three_ways(match, {k: columns[k] for k in ("predictions", "references", "types")})
    assert first["empty"] == 1
    assert others == [first, first]


def test_h05_the_shards_of_four_ranks_give_what_one_process_gives(judge: Any) -> None:
    columns = rows(10)
    alone = judge.compute(**columns, engine=strict(), store=False)
    for begin, end in ((0, 3), (3, 6), (6, 8), (8, 10)):
        judge.add_batch(**{k: column[begin:end] for k, column in columns.items()})
    assert judge.compute(engine=strict(), store=False) == alone
    assert alone["n"] == 10


GATHER = """
import json, sys
import evaluate
from accelerate import Accelerator
from accelerate.utils import gather_object
sys.path.insert(0, {tests!r})
from test_metrics import rows

accelerator = Accelerator(cpu=True)
metric = evaluate.load({path!r})
columns = [rows()[k] for k in ("predictions", "references", "types")]
begin, end = ((0, 3), (3, 6), (6, 8), (8, 10))[accelerator.process_index]
predictions, references, types = (column[begin:end] for column in columns)
{code}
if accelerator.is_main_process:
    print(json.dumps(found))
"""


@pytest.mark.slow
def test_h05_gathering_as_the_readme_shows_pads_nothing(match: Any, tmp_path: Path) -> None:
    script = tmp_path / "gather.py"
    code = block("gather_object")
    script.write_text(GATHER.format(tests=str(ROOT / "tests"), path=str(METRICS / "easg_match"), code=code))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=4"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_HOME": str(tmp_path / "hf"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*launch, str(script)], env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("{")]
    columns = rows()
    assert json.loads(line) == match.compute(**{k: columns[k] for k in ("predictions", "references", "types")})


# -- easg_judge -------------------------------------------------------------------------------------------------------


def test_scores_are_relative_to_what_the_judge_gives_the_ground_truth(judge: Any) -> None:
    columns = rows()  # right: rows 0, 3, 6, 9; empty: row 1
    found = judge.compute(**columns, engine=strict())
    assert found["after_mean"] == pytest.approx((8 + 2 + 2 + 8 + 2) / 5)
    assert found["direct_mean"] == pytest.approx((1 + 8 + 2 + 2 + 8) / 5)
    assert found["direct_truth"] == found["after_truth"] == 8
    assert found["after"] == pytest.approx(100 * found["after_mean"] / 8)
    assert found["avg"] == pytest.approx((found["after"] + found["direct"]) / 2)
    assert found["direct_low"] < found["direct"] < found["direct_high"]
    assert (found["n"], found["direct_n"], found["empty"], found["clips"]) == (10, 5, 1, 5)
    assert found["mass"] == pytest.approx(1) and found["mode"] == "dist"
    assert found["judge"] == f"strict (engine scripted), dist greedy mass 0.5, easg-bench-{OURS.fingerprint}"


def test_the_result_is_plain_numbers_and_two_texts(judge: Any) -> None:
    found = judge.compute(**rows(), engine=strict())
    assert {type(value) for value in found.values()} <= {int, float, str}
    assert [key for key, value in found.items() if isinstance(value, str)] == ["judge", "mode"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert {key.partition("_")[0] for key in found} & set(TYPES) == {"direct", "after"}


def test_rows_of_one_context_are_one_clip_unless_clips_are_given(judge: Any) -> None:
    columns = rows()
    how = {"engine": strict(), "store": False}
    by_context = judge.compute(**columns, **how)
    assert by_context == judge.compute(**columns, clips=[f"clip {i // 2}" for i in range(10)], **how)
    by_row = judge.compute(**columns, clips=list(map(str, range(10))), **how)
    assert (by_context["clips"], by_row["clips"]) == (5, 10) and by_context["avg"] == by_row["avg"]
    one = judge.compute(**columns, clips=["the same"] * 10, **how)
    assert one["avg_low"] is one["direct_high"] is None
    with pytest.raises(ValueError, match="10 predictions, 2 clips"):
        judge.compute(**columns, clips=["a", "b"], **how)


def test_the_ground_truth_is_judged_once_and_for_all(judge: Any, tmp_path: Path) -> None:
    columns = rows()
    first = strict()
    judge.compute(**columns, engine=first)
    assert len(first.asked) == 10 + 9 - 4  # truths and answers, less the empty answer and four that are the truth
    assert default_store().is_relative_to(tmp_path) and list(default_store().glob("*.jsonl"))
    again = strict()
    columns["predictions"] = [f"new {i}" for i in range(10)]
    judge.compute(**columns, engine=again)
    assert len(again.asked) == 10
    elsewhere = strict()
    judge.compute(**columns, engine=elsewhere, store=tmp_path / "mine")
    assert len(elsewhere.asked) == 20 and list((tmp_path / "mine").glob("*.jsonl"))
    never = strict()
    judge.compute(**columns, engine=never, store=False)
    assert len(never.asked) == 20


def test_a_calibration_saves_rating_the_references(judge: Any) -> None:
    columns = rows()
    first = judge.compute(**columns, engine=strict(), store=False)
    means = {name: first[f"{name}_truth"] for name in ("direct", "after")}
    engine = strict()
    found = judge.compute(**columns, engine=engine, store=False, calibration={"judge": first["judge"], "means": means})
    assert len(engine.asked) == 9 and found["avg"] == first["avg"]
    truths = [Scored(str(i), str(i), name, 8) for i, name in enumerate(columns["types"])]
    for key in (first["judge"], f"{first['judge']}, data 0123456789ab"):
        mine = Calibration.of(key, truths, types=TYPES)
        assert judge.compute(**columns, engine=engine, store=False, calibration=mine)["avg"] == first["avg"]


@pytest.mark.parametrize(
    ("calibration", "told"),
    [
        (EASG.constants[PAPER_KEY], "of another judge"),
        ({"judge": "another", "means": PAPER_SCALE}, "of another judge:\n  calibration: another\n"),
        (PAPER_SCALE, "allowed are None, a videoqa.scores.Calibration and"),
        ({"judge": "JUDGE", "means": {"direct": 8.0}}, "no mean above 0 for after"),
        ({"judge": "JUDGE", "means": {"direct": 8.0, "after": 0}}, "no mean above 0 for after"),
    ],
)
def test_a_calibration_that_does_not_fit_is_an_error(judge: Any, calibration: Any, told: str) -> None:
    if isinstance(calibration, dict) and calibration.get("judge") == "JUDGE":
        calibration = calibration | {"judge": judge.compute(**rows(), engine=strict())["judge"]}
    with pytest.raises(ValueError, match=told):
        judge.compute(**rows(), engine=strict(), calibration=calibration)


def test_two_modes_are_two_judges(judge: Any) -> None:
    found = judge.compute(**rows(), engine=strict(), mode="score")
    assert found["mode"] == "score" and found["mass"] is None
    with pytest.raises(ValueError, match="of another judge"):
        means = {name: found[f"{name}_truth"] for name in ("direct", "after")}
        judge.compute(**rows(), engine=strict(), calibration={"judge": found["judge"], "means": means})


def test_an_engine_without_probabilities_is_read_by_its_score_line(judge: Any) -> None:
    found = judge.compute(**rows(), engine=strict(can_choose=False))
    assert found["mode"] == "score" and found["avg"] == judge.compute(**rows(), engine=strict())["avg"]


def test_replies_without_a_score_are_counted_and_in_no_mean(judge: Any) -> None:
    columns = rows()
    engine = strict(can_choose=False, says={"other 2": "high", "other 4": None, "thing 5": "none"})
    with pytest.warns(UserWarning, match="1 of 20 calls of the judge failed; the first: the prompt does not fit"):
        found = judge.compute(**columns, engine=engine)
    assert (found["after_unreadable"], found["after_errors"], found["after_n_scored"]) == (2, 1, 3)
    assert found["after_mean"] == pytest.approx((8 + 8 + 2) / 3)
    assert found["truth_unreadable"] == 1 and found["direct_truth"] == 8


def test_a_judge_that_never_answers_gives_none_and_no_zero(judge: Any) -> None:
    columns = rows()
    columns["predictions"][1] = "other 1"
    texts = [*columns["predictions"], *columns["references"]]
    with pytest.warns(UserWarning, match="20 of 20"):
        found = judge.compute(**columns, engine=strict(can_choose=False, says=dict.fromkeys(texts)))
    assert found["avg"] is found["direct"] is found["direct_mean"] is found["direct_truth"] is None
    assert found["errors"] == 10


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"types": ["direct"] * 9 + ["during"]}, "types, row 9: 'during'; allowed are purpose"),
        ({"types": ["direct"] * 9}, "10 contexts, 9 types"),
        ({"contexts": None}, "missing: contexts"),
        ({"contexts": ["notes"] * 9 + [None]}, "contexts, row 9: None"),
        ({"references": ["x"] * 9 + [""]}, "references, row 9: the ground truth is empty"),
        ({"engine": None}, "needs a judge"),
        ({"mode": "fast"}, "mode 'fast': allowed are paper, score, dist"),
        ({"rubric": "nowhere.json"}, "no rubric file nowhere.json"),
    ],
)
def test_bad_input_is_named(judge: Any, change: dict[str, Any], told: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=told):
        judge.compute(**{"engine": strict(), **rows(), **change})


def test_a_left_out_column_is_named_in_each_way_of_adding(judge: Any) -> None:
    columns = rows(2)
    del columns["contexts"]
    with pytest.raises(ValueError, match="contexts"):
        judge.compute(**columns, engine=strict())
    with pytest.raises(ValueError, match="missing: contexts"):
        judge.add_batch(**columns)
    with pytest.raises(ValueError, match="missing: contexts"):
        judge.add(prediction="a", reference="b", questions="q", types="direct")


def test_after_bad_rows_the_metric_goes_on_without_them(judge: Any) -> None:
    with pytest.raises(ValueError, match="during"):
        judge.add_batch(**(rows(2) | {"types": ["during", "direct"]}))
    assert judge.compute(**rows(2), engine=strict())["n"] == 2


def test_no_rows_is_an_error(judge: Any, match: Any) -> None:
    with pytest.raises(ValueError, match="no rows to judge"):
        judge.compute(**{key: [] for key in rows()}, engine=strict())
    with pytest.raises(ValueError, match="no rows to compare"):
        match.compute(predictions=[], references=[], types=[])


@pytest.mark.slow
def test_a_judge_named_by_a_spec_is_loaded_once(judge: Any, smollm2: Path) -> None:
    columns = rows(4)
    spec = f"{smollm2}?batch_size=2"
    found = judge.compute(**columns, engine=spec)
    opened = sys.modules[type(judge).__module__]._opened  # type: ignore[attr-defined]
    columns["predictions"] = ["a spoon", "a cup", "nothing", "the table"]
    again = judge.compute(**columns, engine=spec)
    assert opened.cache_info().misses == 1 and opened.cache_info().hits >= 1
    assert again["judge"] == found["judge"] and again["n_scored"] == 4 and 0 < again["mass"] <= 1


# -- cards and Spaces -------------------------------------------------------------------------------------------------


def block(holding: str, card: Path = METRICS / "README.md") -> str:
    """The Python block of a card that holds this text."""
    blocks = re.findall(r"^```python\n(.*?)^```", card.read_text(encoding="utf-8"), re.S | re.M)
    (found,) = [code for code in blocks if holding in code]
    return found


def test_the_card_of_easg_match_shows_code_that_runs() -> None:
    code = block("compute", METRICS / "easg_match" / "README.md").replace("/path/to/easg-bench", str(ROOT))
    exec(compile(code, "README.md", "exec"), {})


def test_the_card_of_easg_judge_shows_code_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = block("compute", METRICS / "easg_judge" / "README.md").replace("/path/to/easg-bench", str(ROOT))
    code = code.replace('engine="Qwen/Qwen2.5-7B-Instruct"', "engine=engine")
    exec(compile(code, "README.md", "exec"), {"engine": strict()})
    assert capsys.readouterr().out.startswith("25.0 2.0 strict")


@pytest.mark.parametrize("name", ["easg_match", "easg_judge"])
def test_a_card_has_what_a_metric_space_needs_and_says_all_keys(name: str) -> None:
    from huggingface_hub import RepoCard

    card = RepoCard.load(METRICS / name / "README.md")
    data = card.data.to_dict()
    assert data["sdk"] == "gradio" and (METRICS / name / data["app_file"]).is_file()
    assert {"evaluate", "metric"} <= set(data["tags"]) and data["title"]
    assert len(data["short_description" if "short_description" in data else "description"]) < 120
    columns = rows()
    if name == "easg_judge":
        found = evaluate.load(str(METRICS / name)).compute(**columns, engine=strict())
    else:
        found = evaluate.load(str(METRICS / name)).compute(
            **{k: columns[k] for k in ("predictions", "references", "types")}
        )
    parts = {key.partition("_")[2] or key if key.partition("_")[0] in TYPES else key for key in found}
    assert not [part for part in parts if f"_{part}`" not in card.text and f"`{part}`" not in card.text]


def app(name: str) -> Any:
    """The app.py of a metric, as a module."""
    spec = importlib.util.spec_from_file_location(f"{name}_app", METRICS / name / "app.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_spaces_compute_their_examples() -> None:
    found = app("easg_match")
    assert found.score([*found.EXAMPLES, ["", "", ""]])["n"] == len(found.EXAMPLES)
    found = app("easg_judge")
    assert found.score([*found.EXAMPLES, [""] * 5], strict())["n"] == len(found.EXAMPLES)


@pytest.mark.parametrize("name", ["easg_match", "easg_judge"])
def test_a_space_has_its_table_and_its_card(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    pytest.importorskip("gradio")
    config = app(name).page().get_config_file()
    kinds = [component["type"] for component in config["components"]]
    assert {"dataframe", "json", "button", "markdown"} <= set(kinds)
    assert "# Metric card for" in json.dumps(config) and "sdk: gradio" not in json.dumps(config)


# -- the worked example -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_training_example_of_the_readme_runs(
    tiny_vision: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from builder.easg.commands import build

    tokenizer = AutoTokenizer.from_pretrained(tiny_vision)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    data = tmp_path / "demo"
    build(out=data, source=ROOT / "demo" / "data")
    code = block("Trainer(")
    for name, value in (("MODEL", tmp_path / "tiny"), ("DATA", data), ("METRIC", METRICS / "easg_match")):
        code, replaced = re.subn(rf'^{name} = ".*"$', f"{name} = {str(value)!r}", code, flags=re.M)
        assert replaced == 1
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with torch.enable_grad():  # lighteval, which other tests import, turns gradients off for the whole process
        exec(compile(code, "README.md", "exec"), names)
    evaluated = [entry for entry in names["trainer"].state.log_history if "eval_f1" in entry]
    assert [entry["epoch"] for entry in evaluated] == [1, 2]
    assert all(entry["eval_n"] == len(names["test"]) > 0 and 0 <= entry["eval_f1"] <= 1 for entry in evaluated)
    assert names["trainer"].state.best_metric == max(entry["eval_f1"] for entry in evaluated)
    names["metric"].compute = lambda **columns: columns  # what the model said, as the metric got it
    said = names["compute_metrics"](None)["predictions"]
    assert len(said) == len(names["test"]) and not any("<|im_start|>" in text for text in said)
    assert not set(names["train"]["clip"]) & set(names["test"]["clip"])
