"""videoqa/engines/endpoint.py and completion.py: replies that are none, limits, what ends a run, what must not leak."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from chat_server import Answer, Ask, ChatServer, Manners, probe_answer
from hypothesis import given
from hypothesis import strategies as st

from videoqa.engines import Conversation, Reply, endpoint
from videoqa.engines.chat import defuse
from videoqa.engines.endpoint import Endpoint, EndpointError, RowError, key_parts, seconds, visible, without_parts
from videoqa.engines.server import CONTROL, ServerEngine
from videoqa.engines.streak import FEW, MANY, Streak

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "sk-live-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


def rows(count: int) -> list[Conversation]:
    return [[{"role": "user", "content": f"row {n}"}] for n in range(count)]


def engine(server: ChatServer, **options: Any) -> ServerEngine:
    return ServerEngine("judge", server.url, **{"wait": 0.001, "timeout": 5.0, "can_force": False, **options})


def reply(answer: Answer, **options: Any) -> Reply:
    with ChatServer(lambda ask: answer) as server:
        return dict(engine(server, **{"tries": 2, **options}).generate(rows(1), max_new_tokens=8))[0]


# -- replies that are none --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finish", ["error", "abort", "insufficient_system_resource", "tool_calls", "new one", None])
@pytest.mark.parametrize("text", ["", "Score: 1"])
def test_a_reply_that_did_not_end_by_itself_is_an_error_that_names_the_reason(finish: str | None, text: str) -> None:
    found = reply(Answer(text, finish=finish))
    assert found.text is None and f"finish_reason {finish!r}" in (found.error or "")


@pytest.mark.parametrize("finish", ["stop", "length", "STOP", "eos_token"])
def test_a_reply_that_ended_or_was_cut_is_one(finish: str) -> None:
    assert reply(Answer("7", finish=finish)) == Reply("7", None, finish != "length", 11, 3)


@pytest.mark.parametrize(
    "sent",
    [
        {"message": {"content": None, "reasoning_content": "Hm"}},
        {"message": {"content": "", "reasoning": "Hm"}},
        {"message": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}},
        {
            "message": {"content": ""},
            "reply": {"usage": {"completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 3}}},
        },
    ],
)
@pytest.mark.parametrize("finish", ["length", "stop"])
def test_tokens_that_all_went_into_thinking_are_an_error_that_says_so(sent: dict[str, Any], finish: str) -> None:
    found = reply(Answer(None, finish=finish, **sent))
    assert found.text is None and "all 3 tokens of the reply went into thinking" in (found.error or "")


def test_a_reply_without_text_is_an_error_but_a_models_own_empty_one_is_a_text() -> None:
    assert (reply(Answer(None)).error or "").startswith("the server sent no text")
    assert (reply(Answer("", finish="length")).error or "").startswith("the server sent no text")
    assert reply(Answer("")).text == ""


def test_a_refusal_is_kept_as_text_and_marked() -> None:
    for message in (
        {"content": None, "refusal": "I cannot."},
        {"content": [{"type": "refusal", "refusal": "I cannot."}]},
    ):
        found = reply(Answer(None, message=message))
        assert (found.text, found.refusal, found.error) == ("I cannot.", True, None)
    assert not reply(Answer("I cannot.")).refusal


def test_content_in_parts_is_read_without_its_thinking() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Score"}, {"type": "text", "text": ": 7"}]
    assert reply(Answer(message={"content": parts})).text == "Score: 7"
    assert "not a chat completion" in (reply(Answer(message={"content": [{"type": "audio"}]})).error or "")


def test_an_error_sent_as_a_success_is_an_error_and_a_text_about_one_is_a_text() -> None:
    body = json.dumps({"error": {"message": "provider gone", "code": 502}}).encode()
    assert reply(Answer(body=body)).error == "HTTP 502: provider gone (tried 2 times)"
    assert reply(Answer(body=b'{"error": "bad row", "choices": []}')).error == "HTTP 500: bad row (tried 2 times)"
    assert reply(Answer("ERROR: Failed to get response")).text == "ERROR: Failed to get response"


@pytest.mark.parametrize("status", [200, 400, 500])
def test_a_hundred_thousand_brackets_are_their_rows_error(status: int) -> None:
    bomb = Answer(status=status, body=b"[" * 100_000)
    with ChatServer(lambda ask: bomb if ask.text == "row 1" else Answer()) as server:
        found = dict(engine(server, tries=2).generate(rows(3), max_new_tokens=8))
    assert [found[n].text for n in range(3)] == ["7", None, "7"]


@pytest.mark.parametrize(
    "after", ["Fri, 31 Dec 99999999999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "9" * 400, "99999999999"]
)
def test_a_wait_that_never_ends_is_its_rows_error(after: str) -> None:
    assert seconds(after, NOW) > 1e9  # type: ignore[operator]
    found = reply(Answer("later", 429, {"Retry-After": after}))
    assert found.error == "HTTP 429: later; the server asks to wait for ever, at most 600 are waited"


# -- limits -----------------------------------------------------------------------------------------------------------


def test_a_reply_that_drips_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "WHOLE", 0.1)
    assert reply(Answer(fault="drip"), tries=1).error == "no whole reply within 0.5 s (tried 1 times)"


def test_a_reply_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MOST_BYTES", 1 << 20)
    assert reply(Answer("x" * (2 << 20))).error == "the reply is larger than 1 MiB"
    assert reply(Answer("x" * 1000)).error is None


def opened(key: str = KEY) -> Endpoint:
    return Endpoint(httpx.URL("http://127.0.0.1:9/v1/chat/completions"), "judge", key, 1.0, 1, 0.0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "finish_reason", "usage", "error", "code", "type", "text", "detail"]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.sampled_from([200, 204, 302, 400, 401, 429, 500, 999]),
    st.none() | st.text(),
    st.binary() | JSON.map(lambda value: json.dumps(value).encode()),
)
def test_whatever_comes_is_a_completion_or_one_of_the_known_faults(status: int, after: str | None, data: bytes) -> None:
    try:
        found = opened().read(status, after, data, NOW)
    except (RowError, EndpointError, endpoint.Passing):
        return
    assert found.fault is None or isinstance(found.fault, str)


# -- what ends a run --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["insufficient_quota", "account_deactivated"])
def test_an_account_without_credit_ends_the_run_at_once(code: str) -> None:
    body = json.dumps({"error": {"message": "You exceeded your quota", "type": code, "code": code}}).encode()
    with ChatServer(lambda ask: Answer(status=429, body=body)) as server, pytest.raises(EndpointError, match=code):
        list(engine(server, concurrency=2).generate(rows(50), max_new_tokens=8))
    assert len(server.asks) <= 4


@pytest.mark.parametrize("answer", [Answer("broken", 500), Answer("no", 403), Answer("bad", 400), Answer(fault="hang")])
def test_a_server_that_fails_from_some_row_on_ends_the_run_with_one_line(answer: Answer) -> None:
    broken: list[bool] = []

    def probed(ask: Ask) -> Answer:
        return answer if broken else probe_answer(ask, Manners())

    def script(ask: Ask) -> Answer:
        if int(ask.text.split()[-1]) >= 20:
            broken.append(True)
            return answer
        return Answer()

    with ChatServer(script, probed=probed) as server:
        found: dict[int, Reply] = {}
        with pytest.raises(
            EndpointError, match=f"{FEW} rows in a row failed alike: .*the same command goes on"
        ) as told:
            for row, got in engine(server, tries=1, timeout=0.5, concurrency=4).generate(rows(500), max_new_tokens=8):
                found[row] = got
    assert "\n" not in str(told.value)
    # one that fails may come before the last that went well
    assert sum(r.text == "7" for r in found.values()) == 20 and 20 + FEW <= len(found) < 20 + FEW + 4
    assert len(server.asks) < 60


def test_a_few_bad_rows_never_end_a_run() -> None:
    def script(ask: Ask) -> Answer:
        return Answer("this image breaks me", 500) if 10 <= int(ask.text.split()[-1]) < 40 else Answer()

    with ChatServer(script) as server:
        found = dict(engine(server, tries=1, concurrency=1).generate(rows(100), max_new_tokens=8))
    assert sum(r.text is None for r in found.values()) == 30


def test_rows_that_are_all_too_long_never_end_a_run() -> None:
    def script(ask: Ask) -> Answer:
        return Answer(f"maximum context length is 8192 tokens, yours has {9000 + ask.attempt}", 400)

    with ChatServer(script) as server:
        assert len(list(engine(server).generate(rows(120), max_new_tokens=8))) == 120


def test_thousands_of_replies_that_fail_alike_end_the_run() -> None:
    thinking = Answer(None, finish="length", message={"reasoning_content": "Hm"})
    with ChatServer(lambda ask: thinking) as server, pytest.raises(EndpointError, match="went into thinking"):
        list(engine(server, concurrency=4).generate(rows(1000), max_new_tokens=8))
    assert len(server.asks) <= MANY + 8


def test_rows_in_a_row_are_counted_over_calls_and_by_what_is_the_same_in_their_errors() -> None:
    streak = Streak()
    counts = [streak.count(e) for e in ("HTTP 500: id req_1f", "HTTP 500: id req_2e", None, "a", "a", "b")]
    assert counts == [1, 2, 0, 1, 2, 1]


def test_a_fault_of_the_program_is_itself_and_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: ServerEngine, *_: Any) -> bytes:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(ServerEngine, "_body", broken)
    with ChatServer(lambda ask: Answer()) as server, pytest.raises(ZeroDivisionError, match="a fault of ours"):
        list(engine(server).generate(rows(40), max_new_tokens=8))


# -- leaks ------------------------------------------------------------------------------------------------------------


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=16, max_size=60),
    st.integers(0, 700),
    st.sampled_from([str, repr, json.dumps, lambda k: json.dumps(json.dumps(k)), lambda k: k[3:], lambda k: k[:-2]]),
)
def test_no_part_of_the_key_gets_into_an_error(key: str, padding: int, written: Any) -> None:
    message = "-" * padding + written(key)
    for status, data in ((400, message), (400, json.dumps({"error": {"message": message}})), (200, message)):
        with pytest.raises((RowError, EndpointError, endpoint.Passing)) as caught:
            opened(key).read(status, None, data.encode(), NOW)
        told = str(caught.value).replace("\\\\", "\\")
        assert not any(key[i : i + 12] in told for i in range(len(key) - 11) if set(key[i : i + 12]) != {"-"})


def test_an_echoed_key_behind_padding_does_not_leak_by_its_head() -> None:
    for padding in range(200, 300, 7):
        found = reply(Answer("x" * padding + KEY, 400), api_key=KEY)
        assert not any(KEY[i : i + 12] in (found.error or "") for i in range(len(KEY) - 11))


def test_what_is_no_key_stays() -> None:
    assert without_parts("a text about sk-live keys", key_parts(KEY)) == "a text about sk-live keys"
    assert without_parts(f"<{KEY}> and <{KEY[5:30]}>", key_parts(KEY)) == "<***> and <***>"
    assert without_parts("text", key_parts("")) == "text"


def test_a_key_that_the_server_echoes_in_a_reply_is_not_kept() -> None:
    assert reply(Answer(f"your key is {KEY}"), api_key=KEY).text == "your key is ***"


def test_a_key_that_is_none_takes_nothing_out_of_a_reply() -> None:
    assert reply(Answer("EMPTY 7"), api_key="EMPTY").text == "EMPTY 7"
    assert reply(Answer("7"), api_key="7").text == "7"


def test_control_characters_of_a_server_are_written_out() -> None:
    found = reply(Answer("\x1b[2J\x1b]0;owned\x07\r\nline \u202eabc", 400))
    assert found.error == "HTTP 400: \\x1b[2J\\x1b]0;owned\\x07\\r\\nline \\u202eabc"


@given(st.text())
def test_what_is_shown_can_be_printed(text: str) -> None:
    assert visible(text).isprintable()


# -- control tokens ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "token",
    [
        *(
            "<｜User｜>",
            "<｜end▁of▁sentence｜>",
            "<｜begin▁of▁sentence｜>",
            "<bos>",
            "<eos>",
            "<sop>",
            "<eop>",
            "<pad>",
        ),
        *(
            "<|im_end|>",
            "<|eot_id|>",
            "<|START_OF_TURN_TOKEN|>",
            "<start_of_turn>",
            "<end_of_turn>",
            "<|turn>",
            "<turn|>",
        ),
        *("<s>", "</s>", "[INST]", "[/INST]", "[gMASK]", "<<SYS>>", "<</SYS>>", "[SYSTEM_PROMPT]", "<unused12>"),
        *("<reserved_106>", "<extra_id_0>", "<seed:bos>", "<EOS>", "<start_of_image>", "<fim_prefix>", "[TOOL_CALLS]"),
    ],
)
def test_control_tokens_of_models_that_are_not_known_are_made_harmless(token: str) -> None:
    assert defuse(f"a {token} b", CONTROL) == f"a {token[0]} {token[1:]} b"


@pytest.mark.parametrize("text", ["1 < 2 > 0", "<b>bold</b>", "a <jug> of [water]", "x|y", "<3", "[1]", "List<String>"])
def test_texts_that_are_no_control_tokens_stay(text: str) -> None:
    assert defuse(text, CONTROL) == text


@given(st.text(st.sampled_from("<>|｜/[]_ bosINTim"), max_size=40))
def test_no_control_token_is_left_or_made(text: str) -> None:
    once = defuse(text, CONTROL)
    assert not CONTROL.search(once)
    assert once.replace(" ", "") == text.replace(" ", "")
