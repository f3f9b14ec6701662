"""How a model under test is asked: sampling, system text, chat template, thinking, repeats; and where options come
from."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Scripted
from typer.testing import CliRunner

from videoqa import commands, evaluate
from videoqa.engines.function import FunctionEngine
from videoqa.engines.settings import Settings, seeded, set_to
from videoqa.errors import UserError
from videoqa.repeats import pass_at, repeated
from videoqa.results import read

EGO = Path(__file__).resolve().parents[1] / "demo" / "egoschema"


class Bench:
    """The command line with scripted engines; `opened` keeps the options that engines were opened with."""

    def __init__(self, data: Path, folder: Path, monkeypatch: Any, capsys: Any) -> None:
        self.data, self.folder, self._monkeypatch, self._capsys = data, folder, monkeypatch, capsys
        self.opened: dict[str, Any] = {}
        self.model = Scripted(lambda asked, seed: f"a cup {seed}", name="model")
        self.judge = Scripted(
            lambda asked, seed: "7",
            chances=lambda asked: {"8": 0.9} if "a cup 43" in asked else {"6": 0.9},
            can_force=True,
            name="judge",
        )
        monkeypatch.setattr("videoqa.engines.open_engine", self._open)

    def _open(self, spec: str, **how: Any) -> Scripted:
        self.opened[spec] = how
        return {"model": self.model, "judge": self.judge}[spec]

    def __call__(self, *options: str, out: str = "run", given: bool = True) -> tuple[int, str, str]:
        whole = ["run", "--model", "model", "--judge", "judge", "--data", str(self.data), "--prompt", "blind"]
        whole += ["--limit", "5", "--out", str(self.folder / out), "--store", str(self.folder / "store")]
        self._monkeypatch.setattr(sys, "argv", ["easg-bench", *(whole if given else ["run"]), *options])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            commands.main()
        said = self._capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err


@pytest.fixture
def bench(demo_data: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> Bench:
    return Bench(demo_data, tmp_path, monkeypatch, capsys)


def test_sampling_reaches_the_model_and_is_part_of_the_run(bench: Bench) -> None:
    code, out, err = bench("--temperature", "0.7", "--top-p", "0.8", "--seed", "7", "--stop", "END", "--stop", "\n")
    assert code == 0, err
    call = bench.model.calls[0]
    assert (call["temperature"], call["top_p"], call["seed"], call["stop"]) == (0.7, 0.8, 7, ("END", "\n"))
    kept = json.loads((bench.folder / "run" / "config.json").read_text())["model_settings"]
    assert kept == {"engine": "scripted", "temperature": 0.7, "top_p": 0.8, "seed": 7, "stop": ["END", "\n"]}
    result = read(bench.folder / "run" / "scores.json")
    assert result.settings == kept and "temperature 0.7, top_p 0.8, seed 7" in result.label
    assert "model (blind," in out
    judged = bench.judge.calls[0]
    assert judged["temperature"] == 1.0, "the judge is asked as ever"
    code, _, err = bench("--temperature", "0.5")
    assert code == 2 and "another run" in err and "temperature" in err


def test_nothing_set_is_the_run_as_it_was(bench: Bench) -> None:
    assert bench()[0] == 0
    kept = json.loads((bench.folder / "run" / "config.json").read_text())
    assert kept["model_settings"] == {"engine": "scripted"} and "repeats" not in kept
    assert read(bench.folder / "run" / "scores.json").label == "model (blind)"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--temperature", "-1"], "temperature -1"),
        (["--temperature", "nan"], "temperature nan"),
        (["--temperature", "0.7", "--top-p", "0"], "top_p 0"),
        (["--top-p", "0.9"], "give a temperature"),
        (["--stop", ""], "empty stop string"),
        (["--repeats", "3"], "greedy answers are all alike"),
        (["--repeats", "1000", "--temperature", "1"], "2 to 100"),
        (["--system", "@/nowhere"], "/nowhere"),
        (["--chat-template", "/nowhere"], "/nowhere is no chat template"),
        (["--model-args", "/nowhere.yaml"], "nowhere.yaml cannot be read"),
        (["--config-file", "/nowhere.yaml"], "nowhere.yaml cannot be read"),
    ],
)
def test_settings_that_cannot_be_are_said_before_anything_is_loaded(
    options: list[str], said: str, bench: Bench
) -> None:
    code, _, err = bench(*options)
    assert code == 2 and said in err and err.count("\n") == 1, err
    assert not bench.opened


def test_a_system_text_stands_before_every_conversation() -> None:
    seen: list[Any] = []

    def mine(conversations: list[Any]) -> list[str]:
        seen.extend(conversations)
        return ["x"] * len(conversations)

    engine = set_to(FunctionEngine(mine), Settings(system="Be brief."))
    list(engine.generate([[{"role": "user", "content": "a"}]], max_new_tokens=5))
    assert seen == [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]]
    assert engine.settings == {"engine": "function", "system": "Be brief."}
    plain = FunctionEngine(mine)
    assert set_to(plain, Settings()) is plain


def test_a_system_text_may_stand_in_a_file(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "system.txt").write_text("Be brief.\n")
    assert bench("--system", f"@{tmp_path / 'system.txt'}")[0] == 0
    result = read(bench.folder / "run" / "scores.json")
    assert result.settings["system"] == "Be brief." and re.search(r"system \w{6}", result.label)


# -- where options come from ------------------------------------------------------------------------------------------


def test_a_file_gives_every_option_and_the_command_line_goes_before_it(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    options = {"model": "model", "judge": "judge", "data": str(bench.data), "prompt": "blind", "limit": 10}
    options |= {"out": str(tmp_path / "from-file"), "store": str(tmp_path / "store"), "max_new_tokens": 9}
    file.write_text(json.dumps({**options, "temperature": 0.5, "stop": ["A", "B"]}))  # JSON is YAML
    code, _, err = bench("--config-file", str(file), "--limit", "5", given=False)
    assert code == 0, err
    config = json.loads((tmp_path / "from-file" / "config.json").read_text())
    assert (config["limit"], config["max_new_tokens"]) == (5, 9)
    assert bench.model.calls[0]["stop"] == ("A", "B") and bench.model.calls[0]["temperature"] == 0.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing: 1", "no option 'nothing'; there are again, batch-size"),
        ("- a", "names with values are needed, not a list"),
        ("limit: [", "cannot be read"),
        ("help: true", "no option 'help'"),
    ],
)
def test_a_file_of_options_that_is_none_is_named(text: str, said: str, bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(text)
    code, _, err = bench("--config-file", str(tmp_path / "run.yaml"))
    assert code == 2 and said in err and err.count("\n") == 1, err


def test_options_of_the_model_come_from_a_file_and_are_checked(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text("prefix_reuse: false\n")
    assert bench("--model-args", str(tmp_path / "model.yaml"), "--thinking", "on")[0] == 0
    assert bench.opened["model"]["options"] == {"prefix_reuse": False, "thinking": True}
    assert not bench.opened["judge"].get("options")
    (tmp_path / "model.yaml").write_text("nothing: false\n")
    code, _, err = bench("--model-args", str(tmp_path / "model.yaml"), out="b")
    assert code == 2 and "has no option 'nothing'; allowed are dtype" in err


def test_version_quiet_and_completion(bench: Bench, monkeypatch: Any, capsys: Any) -> None:
    done = CliRunner().invoke(commands.command_line(), ["--version"])
    assert done.exit_code == 0 and re.fullmatch(r"easg-bench \d+\.\d+\.\d+\S*\n", done.output)
    assert "--install-completion" in CliRunner().invoke(commands.command_line(), ["--help"]).output
    for quiet in (True, False):
        place = bench.folder / str(quiet)
        command = ["run", "--model", "model", "--judge", "judge", "--data", str(bench.data), "--limit", "5"]
        command += ["--prompt", "blind", "--out", str(place), "--store", str(place / "store")]
        monkeypatch.setattr(sys, "argv", ["easg-bench", *(["--quiet"] if quiet else []), *command])
        with pytest.raises(SystemExit):
            commands.main()
        assert ("answers:" in capsys.readouterr().err) != quiet


# -- repeats ----------------------------------------------------------------------------------------------------------


def test_repeats_are_answered_with_a_seed_of_their_own_and_told_with_their_error(bench: Bench) -> None:
    code, out, err = bench("--repeats", "3", "--temperature", "1")
    assert code == 0, err
    assert [call["seed"] for call in bench.model.calls] == [42, 43, 44]
    result = read(bench.folder / "run" / "scores.json")
    assert result.avg.n == 15 and result.data.rows == 15 and "repeats 3" in result.label
    passes = [100.0, 100 * 8 / 6, 100.0]  # the judge gives a truth 6
    mean = math.fsum(passes) / 3
    error = math.sqrt(sum((p - mean) ** 2 for p in passes) / 2 / 3)
    assert result.avg.value == pytest.approx(mean)
    assert result.extras["repeat_mean"]["all"] == {"n": 3, "mean": pytest.approx(mean)}
    assert result.extras["repeat_se"]["all"]["mean"] == pytest.approx(error)
    assert f"score of a pass is {mean:.2f} on average, with a standard error of {error:.2f}" in " ".join(out.split())
    asked = len(bench.model.asked)
    assert bench("--repeats", "3", "--temperature", "1")[0] == 0 and len(bench.model.asked) == asked
    code, _, err = bench("--repeats", "4", "--temperature", "1")
    assert code == 2 and "repeats is 3, not 4" in err


def test_repeats_of_multiple_choice_give_pass_at_k(tmp_path: Path) -> None:
    from builder.__main__ import app as builder

    data = tmp_path / "ego"
    done = CliRunner().invoke(builder, ["egoschema", "build", "--source", str(EGO), "--out", str(data), "--made"])
    assert done.exit_code == 0, done.output
    model = Scripted(lambda asked, seed: "ABCDE"[seed % 5], chances=lambda asked: {"A": 1.0}, name="model")
    found = evaluate(model, data=data, config="made", temperature=1.0, repeats=5, progress=False)
    extras = {name: one["all"]["mean"] for name, one in found.result.extras.items() if name.startswith("pass@")}
    assert set(extras) == {"pass@1", "pass@2", "pass@4", "pass@5"} and extras["pass@5"] == 1
    assert extras["pass@1"] == pytest.approx(0.2) and found.score == pytest.approx(20)
    assert found.result.protocol == "generation", "a likelihood is the same at every repeat"
    with pytest.raises(UserError, match="the same at every repeat"):
        evaluate(model, data=data, config="made", temperature=1.0, repeats=5, protocol="likelihood")
    with pytest.raises(UserError, match="circular"):
        evaluate(model, data=data, config="made", temperature=1.0, repeats=5, circular=True)


@given(st.integers(1, 30), st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_right_one(n: int, data: st.DataObject) -> None:
    right, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert 0 <= pass_at(k, n, right) <= 1
    assert pass_at(1, n, right) == pytest.approx(right / n)
    assert pass_at(n, n, right) == (1 if right else 0)
    if k < n:
        assert pass_at(k, n, right) <= pass_at(k + 1, n, right) + 1e-12


def test_rows_that_are_repeated_are_of_their_question() -> None:
    rows = repeated([{"id": "a"}, {"id": "b"}], 2)
    assert [(row["id"], row["repeat"], row["of"]) for row in rows] == [
        ("a@1", 0, "a"),
        ("a@2", 1, "a"),
        ("b@1", 0, "b"),
        ("b@2", 1, "b"),
    ]
    plain = Scripted(lambda asked, seed: "x")
    assert seeded(plain, 3) is plain and seeded(set_to(plain, Settings(seed=5)), 2).settings["seed"] == 7


# -- templates and thinking -------------------------------------------------------------------------------------------

THINKS = (
    "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}"
    "{% if enable_thinking %}T:{% else %}N:{% endif %}"
)


def test_another_template_and_thinking_make_another_prompt_and_another_identity(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from tiny_models import tiny

    from videoqa.engines import check_engine, open_engine

    folder, file = str(tiny("llama")), tmp_path / "chat.jinja"
    file.write_text(THINKS)
    asked = [{"role": "user", "content": "cup"}]
    plain = open_engine(folder)
    other = open_engine(folder, options={"chat_template": str(file)})
    thinking = open_engine(f"{folder}?thinking=true", options={"chat_template": str(file)})
    texts = [engine._text(asked, "") for engine in (other, thinking)]  # type: ignore[attr-defined]
    assert [text[-2:] for text in texts] == ["N:", "T:"]
    assert plain.settings.keys() | {"chat_template"} == other.settings.keys() and thinking.settings["thinking"] is True
    assert (plain.can_choose, thinking.can_choose, thinking.can_force) == (True, False, False)
    for text, said in (("{% if", "is no chat template"), ("nothing here", "writes no messages")):
        file.write_text(text)
        with pytest.raises(UserError, match=said):
            check_engine(folder, {"chat_template": str(file)})


def test_thinking_goes_to_a_server_as_vllm_takes_it(tmp_path: Path) -> None:
    from videoqa.engines.server import ServerEngine

    (tmp_path / "chat.jinja").write_text(THINKS)
    told = {"chat_template_kwargs": {"a": 1}}
    engine = ServerEngine(
        "m", "http://127.0.0.1:9/v1", thinking=True, chat_template=str(tmp_path / "chat.jinja"), extra=told
    )
    assert engine._extra["chat_template_kwargs"] == {"a": 1, "enable_thinking": True}
    assert engine._extra["chat_template"] == THINKS and told == {"chat_template_kwargs": {"a": 1}}
    assert engine.can_choose is False and engine.can_force is False
