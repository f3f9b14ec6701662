"""videoqa/engines/probe.py: what a server takes, gives and is, found out before its first row."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from chat_server import Answer, Ask, ChatServer, Manners, probe_answer

from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.engines import Conversation
from videoqa.engines.endpoint import EndpointError
from videoqa.engines.probe import BEGUN, identity, joined
from videoqa.engines.server import ServerEngine
from videoqa.errors import UserError
from videoqa.files import short_hash
from videoqa.judge import Judge
from videoqa.scorer import Item

ROW: list[Conversation] = [[{"role": "system", "content": "Rate."}, {"role": "user", "content": "row 0"}]]
META = short_hash(json.dumps({"n_params": 8}))


def engine(server: ChatServer, **options: Any) -> ServerEngine:
    return ServerEngine("judge", server.url, **{"wait": 0.001, "timeout": 5.0, "tries": 2, **options})


def asked(manners: Manners, **options: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """One row asked of such a server: the settings, the request's body, and the engine's flags."""
    with ChatServer(lambda ask: Answer(), manners) as server:
        opened = engine(server, **options)
        sampled = {"temperature": 0.6, "top_p": 0.9, "start": "Score: "}
        assert [r.text for _, r in opened.generate(ROW, max_new_tokens=8, **sampled)]  # type: ignore[arg-type]
        flags = {"can_force": opened.can_force, "can_choose": opened.can_choose}
        return opened.settings, server.asks[0].body, flags


# -- what it takes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["temperature", "seed", "top_p", "repetition_penalty", "top_k"])
@pytest.mark.parametrize("form", ["Unsupported parameter: '{}'", "{}: Extra inputs are not permitted"])
def test_a_field_that_the_server_refuses_is_left_out_and_said(field: str, form: str) -> None:
    settings, body, _ = asked(Manners(refuses={field: form.format(field)}))
    assert field not in body and settings["left_out"] == f"without {field}"
    others = {"temperature", "seed", "top_p", "repetition_penalty", "top_k", "max_tokens"} - {field}
    assert others <= set(body)


def test_a_refusal_in_pydantics_form_is_read() -> None:
    detail = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs", "input": {"temperature": 0}}]

    def probed(ask: Ask) -> Answer:
        body = json.dumps({"detail": detail}).encode()
        return Answer(status=422, body=body) if "seed" in ask.body else probe_answer(ask, Manners())

    with ChatServer(lambda ask: Answer(), probed=probed) as server:
        assert engine(server).settings["left_out"] == "without seed"


def test_an_o_series_model_is_asked_in_its_own_way() -> None:
    refuses = {
        "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
        "top_p": "Unsupported parameter: 'top_p'",
        "logprobs": "You are not allowed to request logprobs from this model",
        "repetition_penalty": "Unrecognized request arguments supplied: repetition_penalty, top_k",
        "top_k": "Unrecognized request argument supplied: top_k",
    }
    settings, body, flags = asked(Manners(refuses=refuses, continues=False))
    assert body["max_completion_tokens"] == 8 and not set(refuses) & set(body)
    assert settings["left_out"] == "without max_tokens, repetition_penalty, temperature, top_k, top_p"
    assert settings["probabilities"] == "none" and not flags["can_choose"]


def test_fields_that_are_refused_without_a_name_are_those_that_few_servers_know() -> None:
    settings, body, _ = asked(Manners(refuses={"top_k": None}))
    assert settings["left_out"] == "without repetition_penalty, top_k" and "temperature" in body


def test_extra_takes_a_field_out_with_null() -> None:
    settings, body, _ = asked(Manners(refuses={"seed": "no seed"}), extra={"seed": None, "top_k": None, "min_p": 0.1})
    assert not {"seed", "top_k"} & set(body) and body["min_p"] == 0.1
    assert "left_out" not in settings and settings["extra"] == {"seed": None, "top_k": None, "min_p": 0.1}


def test_a_prompt_that_is_too_long_is_no_refusal_of_max_tokens() -> None:
    told = "'max_tokens' is too large: 8. This model's maximum context length is 8192 tokens"
    with ChatServer(lambda ask: Answer(told, 400)) as server:
        opened = engine(server)
        found = [dict(opened.generate(ROW, max_new_tokens=8))[0] for _ in range(2)]
    assert [r.error for r in found] == [f"HTTP 400: {told}"] * 2
    assert all("max_tokens" in ask.body for ask in server.asks) and len(server.asks) == 2


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer("no such key", 401), "is the api key right"),
        (Answer("no such model", 404), "is 'judge' served there"),
        (Answer("pay", 402), "has the account credit"),
        (Answer("go away", 403), "refuses a small request: HTTP 403: go away"),
        (Answer("broken", 500), "refuses a small request: HTTP 500: broken"),
        (Answer("never", 400), "refuses a small request: HTTP 400: never"),
        (Answer("slow down", 429, {"Retry-After": "0"}), "cannot be used: HTTP 429: slow down"),
        (Answer("half", finish="error"), "cannot be used: the server ended the reply with finish_reason 'error'"),
        (Answer(body=b"<html>"), "cannot be used: not a chat completion"),
    ],
)
def test_a_server_that_cannot_be_used_is_told_in_one_line_before_the_first_row(answer: Answer, told: str) -> None:
    with ChatServer(lambda ask: Answer(), probed=lambda ask: answer) as server:
        with pytest.raises(EndpointError) as caught:
            list(engine(server).generate(ROW, max_new_tokens=8))
        assert told in str(caught.value) and "\n" not in str(caught.value)
        assert not server.asks and len(server.probes) <= 12


# -- what it does -----------------------------------------------------------------------------------------------------


def test_a_forced_start_is_used_where_it_is_continued() -> None:
    settings, body, flags = asked(Manners())
    assert flags["can_force"] and settings["start"] == "forced"
    assert body["messages"][-1] == {"role": "assistant", "content": "Score: "}


@pytest.mark.parametrize("can_force", [None, False])
def test_a_forced_start_that_is_ignored_is_not_used(can_force: bool | None) -> None:
    settings, body, flags = asked(Manners(continues=False), can_force=can_force)
    assert not flags["can_force"] and settings["start"] == "free" and len(body["messages"]) == 2


def test_a_forced_start_that_is_wished_and_ignored_or_refused_is_an_error_before_the_first_row() -> None:
    for manners in (Manners(continues=False), Manners(refuses={"continue_final_message": "unknown field"})):
        with ChatServer(lambda ask: Answer(), manners) as server:
            with pytest.raises(UserError, match="does not continue a forced start") as caught:
                list(engine(server, can_force=True).generate(ROW, max_new_tokens=8))
            assert not server.asks and BEGUN[0][0] in str(caught.value)


def test_a_system_text_that_is_lost_or_refused_goes_into_the_users_turn() -> None:
    lost = Manners(sees_system=False)

    def refusing(ask: Ask) -> Answer:
        if ask.body["messages"][0]["role"] == "system":
            return Answer("System role not supported", 400)
        return probe_answer(ask, Manners())

    for probed in (None, refusing):
        with ChatServer(lambda ask: Answer(), lost, probed) as server:
            opened = engine(server, can_force=False)
            dict(opened.generate(ROW, max_new_tokens=8))
        assert opened.settings["system"] == "system text in the user's turn"
        assert server.asks[0].body["messages"] == [{"role": "user", "content": "Rate.\n\nrow 0"}]


def test_a_server_that_counts_no_tokens_leaves_open_whether_the_system_text_is_seen() -> None:
    def probed(ask: Ask) -> Answer:
        return replace(probe_answer(ask, Manners()), reply={"usage": None})

    with ChatServer(lambda ask: Answer(), probed=probed) as server:
        assert engine(server).settings["system"] == "system text perhaps unseen"


def test_system_text_joins_content_in_parts_too() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:"}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Rate."},
        {"role": "user", "content": [picture]},
    ]
    assert joined(messages) == [{"role": "user", "content": [{"type": "text", "text": "Rate."}, picture]}]
    assert joined(messages[1:]) == messages[1:]


@pytest.mark.parametrize(
    ("top", "told"),
    [
        ({f"t{n}": -3.0 for n in range(20)}, "of the 20 likeliest tokens"),
        ({f"t{n}": -3.0 for n in range(9)}, "of the 9 likeliest tokens"),
        ({"One": -0.1}, "none"),
        ({f"t{n}": -0.1 for n in range(20)}, "none"),  # more than 1
        ({f"t{n}": -9999.0 for n in range(20)}, "none"),
        ({**{f"t{n}": -3.0 for n in range(19)}, "x": math.nan}, "none"),
    ],
)
def test_log_probabilities_are_believed_where_they_add_up(top: Mapping[str, float], told: str) -> None:
    def probed(ask: Ask) -> Answer:
        return replace(probe_answer(ask, Manners()), positions=[(next(iter(top)), top)])

    with ChatServer(lambda ask: Answer(), probed=probed) as server:
        opened = engine(server)
        assert opened.settings["probabilities"] == told and opened.can_choose is (told != "none")


def test_how_probabilities_were_read_is_in_the_judges_key() -> None:
    answer = Answer("8", positions=[("8", {"8": -0.1})])
    keys = set()
    for top in (20, 5, 0):
        with ChatServer(lambda ask: answer, Manners(top=top)) as server:
            judge = Judge(engine(server), OURS)
            list(judge.rate([Item("Where?", "cup", "mug")]))
            keys.add(judge.key.replace(server.url, ""))
    assert len(keys) == 3


# -- who it is --------------------------------------------------------------------------------------------------------


def test_two_servers_of_the_same_name_are_told_apart() -> None:
    with ChatServer(lambda ask: Answer()) as one, ChatServer(lambda ask: Answer()) as two:
        assert engine(one).settings["served"] == f"judge, at {one.url}"
        assert engine(one).settings == engine(one).settings != engine(two).settings


def test_a_server_that_names_its_model_is_known_by_it_wherever_it_runs() -> None:
    models = [{"id": "judge", "root": "org/Judge-8B", "max_model_len": 8192, "created": 1}]
    served = []
    for created in (1, 2):
        manners = Manners(models=[{**models[0], "created": created}], reply={"system_fingerprint": "fp_1"})
        with ChatServer(lambda ask: Answer(), manners) as server:
            served.append(engine(server).settings["served"])
    assert served == ["judge, root org/Judge-8B, 8192 tokens, fp_1"] * 2


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({}, "judge, at A"),
        ({"root": "judge"}, "judge, at A"),
        ({"root": "/home/me/private/judge/"}, "judge, root judge, at A"),
        ({"root": "../judge"}, "judge, root judge, at A"),
        ({"root": 7, "max_model_len": "x"}, "judge, at A"),
        ({"meta": {"n_params": 8}}, f"judge, meta {META}, at A"),
    ],
)
def test_what_could_be_any_server_is_told_with_its_address(entry: dict[str, Any], told: str) -> None:
    found = identity("judge", "A", [{"id": "judge", **entry}, {"id": "other", "root": "a/b"}], "judge", "")
    assert found == told


def test_another_model_in_the_middle_of_a_run_ends_it() -> None:
    def script(ask: Ask) -> Answer:
        return Answer(reply={"model": "A" if int(ask.text.split()[-1]) < 3 else "B"})

    rows: list[Conversation] = [[{"role": "user", "content": f"row {n}"}] for n in range(9)]
    kept = []
    told = pytest.raises(EndpointError, match="now answers as model 'B', not 'A'")
    with ChatServer(script, Manners(reply={"model": "A"})) as server, told:
        for row, _ in engine(server, concurrency=1).generate(rows, max_new_tokens=8):
            kept.append(row)
    assert kept == [0, 1, 2] and len(server.asks) == 4


def test_another_configuration_is_asked_again_and_is_its_rows_error() -> None:
    def script(ask: Ask) -> Answer:
        other = ask.text == "row 1" or (ask.text == "row 2" and ask.attempt == 0)
        return Answer(reply={"system_fingerprint": "fp_2" if other else "fp_1"})

    rows: list[Conversation] = [[{"role": "user", "content": f"row {n}"}] for n in range(3)]
    with ChatServer(script, Manners(reply={"system_fingerprint": "fp_1"})) as server:
        found = dict(engine(server, tries=3).generate(rows, max_new_tokens=8))
    assert [found[n].text for n in range(3)] == ["7", None, "7"]
    assert "system_fingerprint 'fp_2', not 'fp_1'" in (found[1].error or "")


def test_a_server_that_answers_as_several_models_is_refused() -> None:
    def probed(ask: Ask) -> Answer:
        answer = probe_answer(ask, Manners())
        return replace(answer, reply={**answer.reply, "model": f"m{ask.attempt}"})

    with (
        ChatServer(lambda ask: Answer(), probed=probed) as server,
        pytest.raises(EndpointError, match="several models"),
    ):
        list(engine(server).generate(ROW, max_new_tokens=8))


def test_a_fingerprint_that_changes_with_every_reply_identifies_nothing() -> None:
    def probed(ask: Ask) -> Answer:
        answer = probe_answer(ask, Manners())
        return replace(answer, reply={**answer.reply, "system_fingerprint": f"fp_{ask.attempt}"})

    with ChatServer(lambda ask: Answer(reply={"system_fingerprint": "fp_9"}), probed=probed) as server:
        opened = engine(server)
        assert dict(opened.generate(ROW, max_new_tokens=8))[0].error is None
        assert "fp_" not in opened.settings["served"]


def test_a_server_is_tried_once() -> None:
    with ChatServer(lambda ask: Answer()) as server:
        opened = engine(server)
        for _ in range(3):
            list(opened.generate(ROW, max_new_tokens=8))
        assert opened.settings and opened.can_choose
        assert len(server.probes) == 3
