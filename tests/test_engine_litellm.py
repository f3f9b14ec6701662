"""videoqa/engines/litellm.py: the library, and a stand-in that returns and raises as it does, before a real server on
loopback; what it gives is what `server:` gives."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest
from chat_server import Answer, Ask, ChatServer, Manners

from videoqa.engines import Conversation, Reply, check_engine, open_engine
from videoqa.engines.endpoint import EndpointError
from videoqa.engines.litellm import NAMED, refusal, with_own_endings
from videoqa.errors import UserError

KEY = "sk-live-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
OPTIONS = "wait=0.001&timeout=1&tries=2&can_force=false&api_key_variable=MY_PROVIDER_KEY"
REAL = importlib.util.find_spec("litellm") is not None


class Refused(Exception):
    """As litellm's errors are: with the status and reply of the provider, its words behind class names."""

    def __init__(self, response: httpx.Response) -> None:
        error = response.json()["error"]
        self.message = f"litellm.BadRequestError: OpenAIException - {error['message']}"
        self.status_code, self.response, self.body = response.status_code, response, error
        super().__init__(self.message)


class Timeout(Exception):
    status_code = 408


async def acompletion(
    *, api_base: str, api_key: str, timeout: float, num_retries: int, max_retries: int, **body: Any
) -> Any:
    assert num_retries == max_retries == 0, "retries are ours"
    body["model"] = body["model"].partition("/")[2]
    head = {"Authorization": f"Bearer {api_key}"}
    async with httpx.AsyncClient(timeout=timeout) as client:
        try:
            response = await client.post(f"{api_base}/chat/completions", json=body, headers=head)
        except httpx.TimeoutException as error:
            raise Timeout("litellm.Timeout: APITimeoutError - Request timed out.") from error
    if response.status_code != 200:
        raise Refused(response)
    reply = response.json()
    for choice in reply["choices"]:  # as litellm does: unknown reasons become "stop", and stand beside it
        own = choice["finish_reason"]
        if own not in ("stop", "length", "content_filter"):
            choice |= {"finish_reason": "stop", "provider_specific_fields": {"native_finish_reason": own}}
    return SimpleNamespace(model_dump=lambda warnings: reply)


@pytest.fixture(params=["stand-in", pytest.param("real", marks=pytest.mark.skipif(not REAL, reason="no litellm"))])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MY_PROVIDER_KEY", KEY)
    if request.param == "stand-in":
        made = ModuleType("litellm")
        made.__spec__ = importlib.util.spec_from_loader("litellm", None)
        made.acompletion = acompletion  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "litellm", made)
    yield


def rows(count: int) -> list[Conversation]:
    return [[{"role": "user", "content": f"row {n}"}] for n in range(count)]


def spec(server: ChatServer) -> str:
    return f"litellm:openai/judge?base_url={server.url}&{OPTIONS}"


SCRIPT = [
    Answer(f"your key is {KEY} é"),
    Answer(f"maximum context length is 8192 tokens, {KEY}", 400),
    Answer(None, finish="length", message={"reasoning_content": "Hm"}),
    Answer("half", finish="content_filter"),
    Answer("bad", finish="error"),
    Answer("bad", finish="new one"),
    Answer(None, message={"refusal": "I cannot."}),
    Answer("broken", 500),
    Answer("later", 429, {"Retry-After": "3600"}),
    Answer(None),
    Answer(""),
    Answer("cut here", finish="length"),
    Answer(fault="hang"),
]


@pytest.mark.usefixtures("library")
def test_whatever_comes_is_what_a_server_would_have_given() -> None:
    with ChatServer(lambda ask: SCRIPT[int(ask.text.split()[-1])]) as server:
        found = dict(open_engine(spec(server)).generate(rows(len(SCRIPT)), max_new_tokens=8))
        wanted = dict(open_engine(f"server:judge@{server.url}?{OPTIONS}").generate(rows(len(SCRIPT)), max_new_tokens=8))
    assert found == wanted
    assert found[0] == Reply("your key is *** é", None, True, 11, 3)
    assert KEY not in str(found)


@pytest.mark.usefixtures("library")
def test_what_passes_is_tried_again_by_us_and_by_nobody_else() -> None:
    def script(ask: Ask) -> Answer:
        return Answer("slow down", 429, {"Retry-After": "0"}) if ask.attempt == 0 else Answer("8")

    with ChatServer(script) as server:
        found = dict(open_engine(spec(server)).generate(rows(3), max_new_tokens=8))
        assert [found[n].text for n in range(3)] == ["8"] * 3 and len(server.asks) == 6
    with ChatServer(lambda ask: Answer("broken", 500)) as server:
        list(open_engine(spec(server)).generate(rows(1), max_new_tokens=8))
        assert len(server.asks) == 2


@pytest.mark.usefixtures("library")
def test_an_engine_is_used_again_and_half_characters_reach_the_provider_as_marks() -> None:
    with ChatServer(lambda ask: Answer("7")) as server:
        engine = open_engine(spec(server))
        for _ in range(2):
            asked: list[Conversation] = [[{"role": "user", "content": "caf\u00e9 \ud800 做饭 \U0001f600 1"}]]
            assert dict(engine.generate(asked, max_new_tokens=8))[0].text == "7"
    assert {ask.text for ask in server.asks} == {"caf\u00e9 \ufffd 做饭 \U0001f600 1"}
    assert {ask.headers.get("Authorization") or ask.headers.get("authorization") for ask in server.asks} == {
        f"Bearer {KEY}"
    }


@pytest.mark.usefixtures("library")
def test_the_key_of_a_result_says_who_it_was_and_how_it_was_read() -> None:
    positions = [("8", {"8": -0.2, "7": -1.8})]
    with ChatServer(lambda ask: Answer("8", positions=positions)) as server:
        engine = open_engine(spec(server))
        assert engine.name == "openai/judge" and engine.can_choose
        assert engine.settings == {
            "engine": "litellm",
            "served": f"judge, at {server.url} through litellm",
            "start": "free",
            "probabilities": "of the 20 likeliest tokens",
        }
        ((_, found),) = engine.choice_logprobs(rows(1), ["7", "8"])
        assert found.logprobs == {"7": pytest.approx(-1.8), "8": pytest.approx(-0.2)}


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("status", "told"), [(401, "is the api key right?"), (404, "is 'openai/judge' served there?")])
def test_what_no_row_can_succeed_with_is_one_line_without_any_key(
    status: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "other-0123456789-abcdefgh"
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", other)  # any variable that is called a key
    answer = Answer(f"no entry with {KEY} or {other}", status)
    with ChatServer(lambda ask: answer, probed=lambda ask: answer) as server, pytest.raises(EndpointError) as error:
        list(open_engine(spec(server)).generate(rows(3), max_new_tokens=8))
    assert told in str(error.value) and "through litellm" in str(error.value) and "\n" not in str(error.value)
    assert (
        KEY not in str(error.value) and other not in str(error.value) and "no entry with *** or ***" in str(error.value)
    )


@pytest.mark.usefixtures("library")
def test_a_provider_without_log_probabilities_gives_none_from_the_start() -> None:
    with ChatServer(lambda ask: Answer("7"), Manners(top=0)) as server:
        assert not open_engine(spec(server)).can_choose


# -- what the library makes of things ---------------------------------------------------------------------------------


def test_a_reason_that_litellm_calls_stop_is_the_providers_own_again() -> None:
    def ending(finish: str, own: str | None) -> str:
        choice = {"finish_reason": finish, "provider_specific_fields": {"native_finish_reason": own}}
        return with_own_endings({"choices": [choice]})["choices"][0]["finish_reason"]

    assert ending("stop", "MALFORMED_RESPONSE") == "MALFORMED_RESPONSE"
    assert ending("stop", "network_error") == "network_error"
    for own in ("end_turn", "STOP", "COMPLETE", "stop_sequence", None):
        assert ending("stop", own) == "stop"
    assert ending("length", "MAX_TOKENS") == "length" and ending("content_filter", "SAFETY") == "content_filter"
    assert with_own_endings({"choices": [{"finish_reason": "stop"}]}) == {"choices": [{"finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("litellm.BadRequestError: AnthropicException - too long", "too long"),
        ("litellm.RateLimitError: RateLimitError: OpenAIException - slow down", "slow down"),
        ("litellm.Timeout: APITimeoutError - Request timed out.", "Request timed out."),
        ("an answer: Error - none", "an answer: Error - none"),
    ],
)
def test_an_error_is_told_without_the_names_of_classes(text: str, left: str) -> None:
    assert NAMED.sub("", text) == left


def test_an_error_without_a_status_may_pass_and_its_traceback_is_not_told() -> None:
    status, after, body = refusal(ValueError("no such thing\nTraceback (most recent call last): ..."))
    assert (status, after, json.loads(body)) == (500, None, {"error": {"message": "no such thing"}})


# -- names and options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("tires=3", "the litellm engine has no option 'tires'; allowed are base_url, api_key_variable"),
        ("base_url=http://u:hunter2@127.0.0.1/v1", "must not hold a user or a password"),
        ("base_url=127.0.0.1", "base_url must begin with http"),
        ("api_key=hunter2", "an API key is no option"),
        ("tries=0", "tries must be a whole number"),
    ],
)
def test_a_wrong_option_is_told_before_anything_is_asked(options: str, told: str) -> None:
    with pytest.raises(UserError) as error:
        check_engine(f"litellm:openai/judge?{options}")
    assert told in str(error.value) and "hunter2" not in str(error.value)


def test_without_the_library_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(UserError, match=r"easg-bench\[litellm\]"):
        check_engine("litellm:openai/judge")
