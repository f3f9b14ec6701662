"""videoqa/engines/services.py: services known by name, over real HTTP on loopback."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest
from chat_server import Answer, Ask, ChatServer, Manners, probe_answer

from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.engines import Conversation, check_engine, open_engine
from videoqa.engines.endpoint import EndpointError
from videoqa.engines.services import SERVICES
from videoqa.errors import UserError
from videoqa.judge import Judge
from videoqa.scorer import Item

KEY = "sk-live-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz01234567"
QUICK = "wait=0.001&timeout=5&tries=2&can_force=false"


def rows(count: int) -> list[Conversation]:
    return [[{"role": "user", "content": f"row {n}"}] for n in range(count)]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def at(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both services are this server."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setattr(huggingface_hub.constants, "INFERENCE_PROXY_TEMPLATE", server.url.replace("v1", "{provider}"))


def test_the_addresses_are_those_of_the_services() -> None:
    assert SERVICES["openai"].address() == "https://api.openai.com/v1"
    assert SERVICES["hf"].address() == "https://router.huggingface.co/v1"


@pytest.mark.parametrize(("kind", "key"), [("openai", KEY), ("hf", TOKEN)])
def test_a_service_is_a_server_with_an_address_and_a_key(kind: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer(lambda ask: Answer("7")) as server:
        at(server, monkeypatch)
        named = open_engine(f"{kind}:org/judge?{QUICK}")
        assert [r.text for _, r in named.generate(rows(2), max_new_tokens=8)] == ["7", "7"]
        plain = open_engine(f"server:org/judge@{server.url}?{QUICK}")
        assert named.name == plain.name == "org/judge" and named.settings == plain.settings
        assert Judge(named, OURS).key == Judge(plain, OURS).key
    assert {ask.headers["Authorization"] for ask in server.asks} == {f"Bearer {key}"}


@pytest.mark.parametrize("kind", SERVICES)
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(f"wrong {KEY} or {TOKEN}", 401), "is the api key right?"),
        (Answer(f"no model for {KEY} {TOKEN}", 404), "is 'org/judge' served there?"),
        (Answer("pay first", 402), "has the account credit?"),
    ],
)
def test_what_no_row_can_succeed_with_is_one_line_without_the_key(
    kind: str, answer: Answer, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(lambda ask: answer, probed=lambda ask: answer) as server:
        at(server, monkeypatch)
        with pytest.raises(EndpointError) as error:
            list(open_engine(f"{kind}:org/judge?{QUICK}").generate(rows(3), max_new_tokens=8))
    assert told in str(error.value) and "\n" not in str(error.value)
    assert (KEY if kind == "openai" else TOKEN) not in str(error.value)


@pytest.mark.parametrize(("kind", "told"), [("openai", "put it into OPENAI_API_KEY"), ("hf", "hf auth login")])
def test_without_a_key_nothing_is_asked_and_it_is_said_how_to_get_one(
    kind: str, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for act in (open_engine, check_engine):
        with pytest.raises(UserError, match=told):
            act(f"{kind}:org/judge")
    monkeypatch.setenv("MY_OTHER", KEY)
    check_engine(f"{kind}:org/judge?api_key_variable=MY_OTHER")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("openai:", "openai: names no model"),
        ("hf:?tries=2", "hf: names no model"),
        ("litellm:", "litellm: names no model"),
        ("openai:m?tires=2", "the openai engine has no option 'tires'; allowed are api_key_variable, can_force"),
        ("hf:m?base_url=http://127.0.0.1/v1", "the hf engine has no option 'base_url'"),
        (f'hf:m?extra={{"a":"{TOKEN}"}}', "put it into HF_TOKEN"),
        (f"openai:m?api_key={KEY}", "put it into OPENAI_API_KEY"),
    ],
)
def test_a_wrong_spec_is_told_with_what_is_allowed(spec: str, told: str) -> None:
    with pytest.raises(UserError) as error:
        check_engine(spec)
    assert told in str(error.value) and KEY not in str(error.value) and TOKEN not in str(error.value)


def test_an_address_with_a_key_in_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://127.0.0.1/{KEY}/v1")
    with pytest.raises(UserError, match="an API key is no option") as error:
        check_engine("openai:m")
    assert KEY not in str(error.value)


# -- the Hub's router, behind which others answer ---------------------------------------------------------------------


def routed(ask: Ask, providers: list[str], answer: Answer) -> Answer:
    """As the router does: a provider that is named answers, else the next one."""
    named = ask.body["model"].partition(":")[2]
    who = named or (providers.pop(0) if len(providers) > 1 else providers[0])
    return Answer(answer.text, headers={"x-inference-provider": who}, positions=answer.positions, reply=answer.reply)


def test_the_provider_that_answers_first_answers_the_whole_run_and_is_part_of_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    providers = ["together", "novita", "groq"]

    def probed(ask: Ask) -> Answer:
        return routed(ask, providers, probe_answer(ask, Manners()))

    with ChatServer(lambda ask: routed(ask, providers, Answer("7")), probed=probed) as server:
        at(server, monkeypatch)
        engine = open_engine(f"hf:org/judge?{QUICK}")
        assert [r.text for _, r in engine.generate(rows(3), max_new_tokens=8)] == ["7"] * 3
        assert engine.name == "org/judge"
        assert engine.settings["served"] == f"org/judge:together, at {server.url} by together"
        assert {ask.body["model"] for ask in server.asks} == {"org/judge:together"}
        other = open_engine(f"hf:org/judge:novita?{QUICK}")
        assert Judge(other, OURS).key != Judge(engine, OURS).key
        assert other.settings["served"] == f"org/judge:novita, at {server.url} by novita"


def test_a_server_that_only_says_who_answers_is_not_told_who_is_to() -> None:
    head = {"x-inference-provider": "rack-7"}

    def probed(ask: Ask) -> Answer:
        if ":" in ask.body["model"]:
            return Answer("no such model", 404, head)
        return replace(probe_answer(ask, Manners()), headers=head)

    with ChatServer(lambda ask: Answer("7", headers=head), probed=probed) as server:
        engine = open_engine(f"server:judge@{server.url}?{QUICK}")
        assert [r.text for _, r in engine.generate(rows(2), max_new_tokens=8)] == ["7", "7"]
        assert engine.settings["served"] == f"judge, at {server.url} by rack-7"
    assert {ask.body["model"] for ask in server.asks} == {"judge"}


def test_another_provider_is_asked_again_and_is_its_rows_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(ask: Ask) -> Answer:
        flips = ask.text == "row 1" or (ask.text == "row 2" and ask.attempt == 0)
        return Answer("7", headers={"x-inference-provider": "novita" if flips else "together"})

    def probed(ask: Ask) -> Answer:
        return routed(ask, ["together"], probe_answer(ask, Manners()))

    with ChatServer(script, probed=probed) as server:
        at(server, monkeypatch)
        found = dict(open_engine(f"hf:org/judge?{QUICK}").generate(rows(3), max_new_tokens=8))
    assert [found[n].text for n in range(3)] == ["7", None, "7"]
    assert "provider 'novita', not 'together'" in (found[1].error or "")


def test_a_judge_behind_the_router_reads_probabilities_where_the_provider_gives_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = Answer("Score: 8", positions=[("Score", {"Score": 0.0}), (": ", {": ": 0.0}), ("8", {"8": -0.1})])
    for top, mode in ((20, "dist"), (0, "score")):
        with ChatServer(lambda ask: answer, Manners(top=top)) as server:
            at(server, monkeypatch)
            judge = Judge(open_engine(f"hf:org/judge?{QUICK}"), OURS)
            ((_, verdict),) = judge.rate([Item("Where?", "cup", "mug")])
            assert (judge.mode, verdict.status, round(verdict.score or 0)) == (mode, "ok", 8)
