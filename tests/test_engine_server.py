"""videoqa/engines/server.py against a real HTTP server on loopback, with the faults that real ones show."""

from __future__ import annotations

import base64
import io
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, Ask, ChatServer, Manners, with_faults
from hypothesis import given
from hypothesis import strategies as st

from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.engines import Conversation, Reply, open_engine
from videoqa.engines.choices import ANOTHER, share
from videoqa.engines.endpoint import EndpointError, seconds
from videoqa.engines.server import ServerEngine
from videoqa.errors import UserError
from videoqa.judge import Judge
from videoqa.scorer import Item

DIGITS = [str(n) for n in range(1, 11)]
KEY = "sk-secret-0123456789"


def rows(count: int) -> list[Conversation]:
    return [[{"role": "user", "content": f"row {n}"}] for n in range(count)]


def engine(server: ChatServer, **options: Any) -> ServerEngine:
    return ServerEngine("judge", server.url, **{"wait": 0.001, "timeout": 5.0, "can_force": False, **options})


def replies(server: ChatServer, count: int, **options: Any) -> dict[int, Reply]:
    found = list(engine(server, **options).generate(rows(count), max_new_tokens=8))
    assert len(found) == len(dict(found)), "a row came twice"
    return dict(found)


def echo(ask: Ask) -> Answer:
    return Answer(f"answer to {ask.text}")


def logs(**probabilities: float) -> Mapping[str, float]:
    return {token.removeprefix("_"): math.log(p) for token, p in probabilities.items()}


def test_two_hundred_rows_with_a_fifth_of_faults_are_all_answered() -> None:
    with ChatServer(with_faults(echo)) as server:
        found = replies(server, 200, timeout=0.5)
    assert {n: r.text for n, r in found.items()} == {n: f"answer to row {n}" for n in range(200)}
    assert len(server.asks) == 240


def test_a_dead_row_costs_that_row_alone_and_no_more_than_its_tries() -> None:
    def script(ask: Ask) -> Answer:
        return Answer("broken", 500) if ask.text == "row 7" else with_faults(echo)(ask)

    with ChatServer(script) as server:
        found = replies(server, 200, timeout=0.5)
    assert len(found) == 200
    assert [n for n, r in found.items() if r.text is None] == [7]
    assert found[7].error == "HTTP 500: broken (tried 6 times)"
    assert sum(ask.text == "row 7" for ask in server.asks) == 6


def test_no_more_rows_are_on_their_way_than_allowed() -> None:
    def slow(ask: Ask) -> Answer:
        time.sleep(0.02)
        return Answer()

    with ChatServer(slow) as server:
        replies(server, 24, concurrency=4)
    assert server.most_at_once == 4


def test_results_come_as_they_are_known() -> None:
    with ChatServer(lambda ask: Answer(fault="hang") if ask.text == "row 0" else Answer()) as server:
        stream = engine(server, timeout=30).generate(rows(9), max_new_tokens=8)
        assert sorted(next(stream)[0] for _ in range(8)) == list(range(1, 9))
        began = time.monotonic()
        stream.close()  # type: ignore[attr-defined]
    assert time.monotonic() - began < 20, "leaving early waited for the row that hangs"


def test_retry_after_in_seconds_is_followed() -> None:
    def script(ask: Ask) -> Answer:
        return Answer("later", 429, {"Retry-After": "1"}) if ask.attempt == 0 else Answer()

    with ChatServer(script) as server:
        assert replies(server, 1)[0].text == "7"
    assert 1.0 <= server.asks[1].time - server.asks[0].time < 1.5


def test_a_server_that_asks_for_an_hour_is_not_waited_for() -> None:
    with ChatServer(lambda ask: Answer("quota", 429, {"Retry-After": "3600"})) as server:
        error = replies(server, 1)[0].error
    assert error == "HTTP 429: quota; the server asks to wait 3600 s, at most 600 are waited"


def test_retry_after_as_a_date_is_read() -> None:
    now = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
    assert seconds(format_datetime(now + timedelta(seconds=90), usegmt=True), now) == 90
    assert seconds(format_datetime(now - timedelta(seconds=90), usegmt=True), now) == 0
    assert seconds("12", now) == 12
    assert seconds(None, now) is None
    assert seconds("soon", now) is None


@given(st.text())
def test_any_retry_after_is_none_or_a_wait(text: str) -> None:
    found = seconds(text, datetime(2025, 3, 1, tzinfo=UTC))
    assert found is None or found >= 0


@pytest.mark.parametrize(("dead", "scored"), [(False, 5), (True, 4)])
def test_j17_rate_limits_do_not_end_the_run(dead: bool, scored: int) -> None:
    """Row 3 of 5 is refused four times, or for ever (case J17 of the public reports)."""

    def script(ask: Ask) -> Answer:
        refused = ask.text == "row 3" and (dead or ask.attempt < 4)
        return Answer("rate limit", 429, {"Retry-After": "0"}) if refused else Answer("7\n\nok")

    with ChatServer(script) as server:
        found = replies(server, 5)
    assert sum(r.text == "7\n\nok" for r in found.values()) == scored
    assert (found[3].error is not None) is dead


@pytest.mark.parametrize(("status", "hint"), [(401, "is the api key right?"), (404, "is 'judge' served there?")])
def test_a_wrong_key_or_model_ends_the_run_at_once_and_the_key_stays_secret(status: int, hint: str) -> None:
    script = Answer(f"no entry with {KEY}", status)
    with ChatServer(lambda ask: script) as server, pytest.raises(EndpointError) as caught:
        replies(server, 50, api_key=KEY, concurrency=2)
    assert hint in str(caught.value) and "no entry with ***" in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server.asks) <= 4


def test_a_context_that_is_too_long_is_the_error_of_its_row_and_is_asked_once() -> None:
    def script(ask: Ask) -> Answer:
        return Answer(f"maximum context length is 8192 tokens ({KEY})", 400) if ask.text == "row 1" else Answer()

    with ChatServer(script) as server:
        found = replies(server, 3, api_key=KEY)
    assert found[1] == Reply(None, "HTTP 400: maximum context length is 8192 tokens (***)")
    assert [r.text for n, r in found.items() if n != 1] == ["7", "7"]
    assert len(server.asks) == 3


def test_a_server_that_is_not_there_ends_the_run_with_one_line() -> None:
    with ChatServer(echo) as server:
        pass
    with pytest.raises(EndpointError, match=r"cannot be used: the connection failed: .* \(tried 2 times\)"):
        replies(server, 2, tries=2)


def test_the_key_comes_from_the_environment_and_a_broken_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY + "\n")
    with ChatServer(echo) as server:
        replies(server, 1, api_key_variable="MY_KEY")
        replies(server, 1, api_key_variable="NO_KEY")
        with pytest.raises(ValueError, match="the api key holds") as caught:
            engine(server, api_key="sk-sec\nret")
    assert [a.headers.get("Authorization") for a in server.asks] == [f"Bearer {KEY}", None]
    assert "ret" not in str(caught.value).replace("characters", "")


def test_a_base_url_without_http_is_refused() -> None:
    with pytest.raises(ValueError, match="base_url must begin with http"):
        open_engine("server:judge@localhost:8000/v1")


def test_a_server_is_opened_by_its_name_with_options() -> None:
    with ChatServer(echo) as server:
        opened = open_engine(f"server:org/judge@{server.url}?can_force=true&concurrency=2")
        assert (opened.name, server.probes) == ("org/judge", []), "nothing is asked before it is used"
        assert opened.can_force and opened.can_choose
    assert opened.settings == {
        "engine": "server",
        "served": f"org/judge, at {server.url}",
        "start": "forced",
        "probabilities": "of the 20 likeliest tokens",
    }


def test_what_is_asked_is_what_is_sent() -> None:
    with ChatServer(lambda ask: Answer("8\nGood. STOP more", finish="length")) as server:
        judge = engine(server, can_force=True, extra={"chat_template_kwargs": {"enable_thinking": False}})
        sampled = {"temperature": 0.6, "top_p": 0.9, "seed": 3, "start": "Score: ", "stop": ["\n", "STOP"]}
        found = dict(judge.generate(rows(1), max_new_tokens=9, **sampled))  # type: ignore[arg-type]
    assert found[0] == Reply("Score: 8", None, True, 11, 3)
    body = server.asks[0].body
    assert body.pop("messages") == [*rows(1)[0], {"role": "assistant", "content": "Score: "}]
    assert body == {
        "model": "judge",
        "max_tokens": 9,
        "temperature": 0.6,
        "top_p": 0.9,
        "seed": 3,
        "repetition_penalty": 1.0,
        "top_k": -1,
        "continue_final_message": True,
        "add_generation_prompt": False,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_a_reply_that_begins_with_a_line_end_is_cut_behind_its_first_line() -> None:
    with ChatServer(lambda ask: Answer("\n\nScore: 8\nGood.", finish="length")) as server:
        found = dict(engine(server).generate(rows(1), max_new_tokens=9, stop=["\n"]))
    assert (found[0].text, found[0].finished) == ("\n\nScore: 8", True)


def test_without_forcing_the_start_is_not_sent_and_a_reply_is_what_came() -> None:
    with ChatServer(lambda ask: Answer("I", finish="length")) as server:
        found = dict(engine(server).generate(rows(1), max_new_tokens=9, start="Score: "))
    assert found[0] == Reply("I", None, False, 11, 3)
    assert server.asks[0].body["messages"] == rows(1)[0]


def test_a_lone_surrogate_and_a_control_token_reach_the_server_readable() -> None:
    conversation = [{"role": "user", "content": "caf\u00e9 \ud800 <|im_end|> 做饭"}]
    with ChatServer(lambda ask: Answer()) as server:
        assert dict(engine(server).generate([conversation], max_new_tokens=1))[0].text == "7"
    assert server.asks[0].text == "caf\u00e9 \ud800 < |im_end|> 做饭"


def test_a_filtered_reply_is_an_error() -> None:
    with ChatServer(lambda ask: Answer("half", finish="content_filter")) as server:
        assert "content filter" in (replies(server, 1)[0].error or "")


def test_images_go_as_data_urls_and_a_missing_one_is_its_rows_error(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    red = image.new("RGB", (6, 4), "red")
    red.save(tmp_path / "red.png")
    contents = [
        [
            {"type": "image", "image": red},
            {"type": "image", "image": tmp_path / "red.png"},
            {"type": "text", "text": "?"},
        ],
        [{"type": "image", "image": tmp_path / "gone.bmp"}, {"type": "text", "text": "row 1"}],
        [{"type": "video", "video": "a.mp4"}],
    ]
    with ChatServer(lambda ask: Answer("red")) as server:
        found = dict(engine(server).generate([[{"role": "user", "content": c}] for c in contents], max_new_tokens=8))
    assert found[0].text == "red"
    assert "gone.bmp" in (found[1].error or "")
    assert found[2].error == "a message holds a part of type 'video'; allowed are text, image"
    sent = server.asks[0].body["messages"][0]["content"]
    assert [p["type"] for p in sent] == ["image_url", "image_url", "text"]
    for part, kind in zip(sent[:2], ("jpeg", "png"), strict=True):
        head, data = part["image_url"]["url"].split(",")
        assert head == f"data:image/{kind};base64"
        opened = image.open(io.BytesIO(base64.b64decode(data)))
        assert opened.size == (6, 4) and opened.getpixel((3, 2))[0] > 240


def test_ctrl_c_ends_the_run_at_once() -> None:
    code = """
import sys
from videoqa.engines.server import ServerEngine
engine = ServerEngine("judge", sys.argv[1], timeout=60)
for row, _ in engine.generate([[{"role": "user", "content": f"row {n}"}] for n in range(9)], max_new_tokens=8):
    print(row, flush=True)
"""
    with ChatServer(lambda ask: Answer() if ask.text == "row 0" else Answer(fault="hang")) as server:
        root = Path(__file__).resolve().parents[1]
        run = subprocess.Popen(
            [sys.executable, "-c", code, server.url],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job ignores it
        )
        assert run.stdout is not None and run.stdout.readline() == "0\n"
        run.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, errors = run.communicate(timeout=20)
    assert time.monotonic() - began < 20
    assert errors.strip().endswith("KeyboardInterrupt")


# -- choices ----------------------------------------------------------------------------------------------------------


def ask_choices(server: ChatServer, start: str = "Score: ", sampling: Mapping[str, float] = {}, **options: Any) -> Any:
    return dict(engine(server, **options).choice_logprobs(rows(1), DIGITS, start=start, **sampling))[0]


def probabilities(found: Any) -> dict[str, float]:
    assert found.error is None
    return {c: math.exp(p) for c, p in found.logprobs.items() if p > -math.inf}


END = ("\n", {"\n": 0.0})


def alone(first: Answer) -> Callable[[Ask], Answer]:
    """A server's script: this answer, and behind every number that is forced a line end."""

    def script(ask: Ask) -> Answer:
        behind = re.search(r"\d$", str(ask.body["messages"][-1]["content"]))
        return Answer("\n", positions=[END]) if behind and ask.body["messages"][-1]["role"] == "assistant" else first

    return script


def forced(server: ChatServer) -> list[str]:
    """The starts that were asked for, in order."""
    return [ask.body["messages"][-1]["content"] for ask in server.asks]


def test_choices_are_read_from_the_top_logprobs() -> None:
    top = logs(_8=0.6, _7=0.3, _I=0.05)
    with ChatServer(alone(Answer("8", positions=[("8", top), END]))) as server:
        found = ask_choices(server, can_force=True)
    assert probabilities(found) == pytest.approx({"8": 0.6, "7": 0.3})
    assert found.logprobs["10"] == -math.inf and found.prompt_tokens == 11
    body = server.asks[0].body
    assert (body["logprobs"], body["top_logprobs"], body["temperature"]) == (True, 20, 0.0)
    assert forced(server) == ["Score: ", "Score: 7"]  # behind the 8 of the reply is known what comes


def test_a_number_that_grows_is_another_one() -> None:
    behind = {
        "Score: 8": Answer("5", positions=[("5", {"5": math.log(0.5), ".": math.log(0.3), "\n": math.log(0.2)})]),
        "Score: 8.": Answer("5", positions=[("5", {"5": math.log(0.6), " The": math.log(0.4)})]),
        "Score: 7": Answer("%", positions=[("%", {"%": math.log(0.1), ", because": math.log(0.9)})]),
        "Score: 1": Answer("0", positions=[("0", {"0": math.log(0.9), "5": math.log(0.1)})]),
        "Score: 10": Answer("\n", positions=[("\n", {"\n": math.log(0.75), "0": math.log(0.25)})]),
    }
    first = Answer("8", positions=[("8", logs(_8=0.5, _7=0.3, _1=0.2))])
    with ChatServer(lambda ask: behind.get(ask.body["messages"][-1]["content"], first)) as server:
        found = ask_choices(server, can_force=True)
        wanted = {"8": 0.5 * (0.2 + 0.3 * 0.4), "7": 0.3 * 0.9, "10": 0.2 * 0.9 * 0.75}
        assert probabilities(found) == pytest.approx(wanted)
        assert sorted(forced(server)) == sorted(["Score: ", *behind])


def test_a_ten_of_two_tokens_on_the_greedy_path_is_split_for_free() -> None:
    positions = [("1", logs(_1=0.8, _9=0.2)), ("0", {"0": math.log(0.75), "\n": math.log(0.25)}), END]
    with ChatServer(alone(Answer("10\n", positions=positions))) as server:
        found = ask_choices(server, can_force=True)
    assert probabilities(found) == pytest.approx({"10": 0.6, "1": 0.2, "9": 0.2})
    assert forced(server) == ["Score: ", "Score: 9"]


def test_a_ten_of_two_tokens_off_the_greedy_path_costs_one_more_request() -> None:
    def script(ask: Ask) -> Answer:
        if ask.body["messages"][-1]["content"] == "Score: 1":
            return Answer("0", positions=[("0", {"0": math.log(0.9), "\n": math.log(0.1)})])
        return alone(Answer("8", positions=[("8", logs(_8=0.7, _1=0.3))]))(ask)

    with ChatServer(script) as server:
        found = ask_choices(server, can_force=True)
    assert probabilities(found) == pytest.approx({"8": 0.7, "10": 0.27, "1": 0.03})
    assert forced(server) == ["Score: ", "Score: 8", "Score: 1", "Score: 10"]


def test_a_ten_of_one_token_needs_no_further_request() -> None:
    with ChatServer(lambda ask: Answer("8", positions=[("8", logs(_8=0.7, _1=0.1, _10=0.2))])) as server:
        found = ask_choices(server)
    assert probabilities(found) == pytest.approx({"8": 0.7, "1": 0.1, "10": 0.2})
    assert len(server.asks) == 1


def test_a_beginning_that_cannot_be_split_lowers_the_mass() -> None:
    with ChatServer(lambda ask: Answer("8", positions=[("8", logs(_8=0.7, _1=0.3))])) as server:
        found = ask_choices(server)
    assert probabilities(found) == pytest.approx({"8": 0.7})


def test_a_template_that_strips_the_starts_blank_changes_nothing() -> None:
    positions = [(" ", {" ": math.log(0.9), " 7": math.log(0.1)}), ("8", logs(_8=0.5, _7=0.5))]
    with ChatServer(alone(Answer(" 8", positions=positions))) as server:
        found = ask_choices(server, can_force=True)
    assert probabilities(found) == pytest.approx({"8": 0.45, "7": 0.55})


def test_without_forcing_the_score_is_read_behind_the_start_that_the_server_wrote() -> None:
    head = [("Score", logs(Score=1.0)), (":", {":": 0.0})]
    positions = [*head, (" ", {" ": 0.0}), ("9", logs(_9=0.8, _3=0.2))]
    with ChatServer(lambda ask: Answer("Score: 9", positions=positions)) as server:
        assert probabilities(ask_choices(server)) == pytest.approx({"9": 0.8, "3": 0.2})
    with ChatServer(lambda ask: Answer("9", positions=positions[3:])) as server:
        assert probabilities(ask_choices(server)) == pytest.approx({"9": 0.8, "3": 0.2})


@pytest.mark.parametrize("positions", [None, []])
def test_a_reply_whose_log_probabilities_are_missing_is_its_rows_error(positions: Any) -> None:
    with ChatServer(lambda ask: Answer("Score: 10", positions=positions)) as server:
        found = ask_choices(server)
    assert (found.logprobs, found.error) == (None, "no log-probabilities came with this reply")


def test_a_reply_that_offers_no_choice_has_no_mass() -> None:
    with ChatServer(lambda ask: Answer("I cannot rate this.", positions=[("I", logs(I=0.9, So=0.1))])) as server:
        found = ask_choices(server)
    assert found.error is None and set(found.logprobs.values()) == {-math.inf}


def test_a_server_without_log_probabilities_gives_no_choices_from_the_start() -> None:
    with ChatServer(lambda ask: Answer("Score: 7"), Manners(top=0)) as server:
        judge = engine(server)
        assert not judge.can_choose and judge.settings["probabilities"] == "none"
        assert Judge(judge, OURS).mode == "score"
        with pytest.raises(UserError, match="gives no probabilities"):
            judge.choice_logprobs(rows(1), DIGITS)
    assert [a.body.get("top_logprobs") for a in server.probes[:3]] == [20, 5, None]


def test_a_server_that_refuses_twenty_logprobs_is_asked_for_five_and_says_so() -> None:
    answer = Answer("8", positions=[("8", logs(_8=0.9, _7=0.1))])
    with ChatServer(lambda ask: answer, Manners(top=5)) as server:
        judge = engine(server)
        assert judge.settings["probabilities"] == "of the 5 likeliest tokens"
        assert dict(judge.choice_logprobs(rows(1), DIGITS))[0].error is None
    assert [a.body["top_logprobs"] for a in server.asks] == [5]


@pytest.mark.parametrize(
    "bad", ["NaN", "Infinity", "-Infinity", "1" + "0" * 400, "-1e999", "true", '"x"', "null", "3.0"]
)
def test_a_number_that_is_no_log_probability_is_its_rows_error(bad: str) -> None:
    entry = f'{{"token": "7", "logprob": {bad}}}'
    logprobs = f'{{"content": [{{"token": "7", "logprob": {bad}, "top_logprobs": [{entry}]}}]}}'
    body = f'{{"choices": [{{"message": {{"content": "7"}}, "finish_reason": "stop", "logprobs": {logprobs}}}]}}'
    good = Answer("7", positions=[("7", logs(_7=0.9))])
    with ChatServer(lambda ask: Answer(body=body.encode()) if ask.text == "row 1" else good) as server:
        found = dict(engine(server).choice_logprobs(rows(3), DIGITS))
    assert found[1].logprobs is None and "log-probabilit" in (found[1].error or "")
    assert found[0].error is None and found[2].error is None


def test_a_token_that_is_reported_twice_counts_with_its_sum() -> None:
    top = [("8", 0.4), ("7", 0.35), ("6", 0.2), ("7", 0.0001)]
    entries = [{"token": t, "logprob": math.log(p)} for t, p in top]
    logprobs = {"content": [{"token": "8", "logprob": math.log(0.4), "top_logprobs": entries}]}
    with ChatServer(alone(Answer("8", choice={"logprobs": logprobs}))) as server:
        found = probabilities(ask_choices(server, can_force=True))
    assert found == pytest.approx({"8": 0.4, "7": 0.3501, "6": 0.2})


@pytest.mark.parametrize("can_force", [True, False])
@pytest.mark.parametrize("token", ["80", "8.5", "8.", "8/5"])
def test_a_first_token_that_is_larger_than_a_choice_counts_for_none(token: str, can_force: bool) -> None:
    with ChatServer(lambda ask: Answer(token, positions=[(token, {token: -0.1, "7": -3.0})])) as server:
        found = probabilities(ask_choices(server, can_force=can_force))
    assert set(found) <= {"7"}


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Score: 8.5", False),
        ("Score: 8/5", False),
        ("Score: 8%", False),
        ("Score: 80", False),
        ("8. The reference says", False),  # the first of a list
        ("Score: 8. The reference says", True),
        ("Score: 8/10", True),
        ("Score: 8\n", True),
        ("8", True),
    ],
)
def test_a_score_that_the_server_wrote_by_itself_is_a_whole_one(text: str, counts: bool) -> None:
    tokens = re.findall(r"\d|Score|.| \w+|\n", text)
    eight = {"8": math.log(0.75), "7": math.log(0.2)}
    positions = [(token, eight if token == "8" else {token: 0.0}) for token in tokens]
    with ChatServer(lambda ask: Answer(text, positions=positions)) as server:
        found = probabilities(ask_choices(server))
    assert found == (pytest.approx({"8": 0.75, "7": 0.2}) if counts else {})


def test_choices_can_be_drawn_at_the_papers_temperature() -> None:
    with ChatServer(alone(Answer("8", positions=[("8", logs(_8=0.6, _7=0.3, _3=0.1))]))) as server:
        found = ask_choices(server, sampling={"temperature": 0.6, "top_p": 0.9})
    powered = {c: p ** (1 / 0.6) for c, p in (("8", 0.6), ("7", 0.3))}  # the third is outside the top 0.9
    assert probabilities(found) == pytest.approx({c: p / sum(powered.values()) for c, p in powered.items()})


def test_a_failed_call_for_choices_is_its_rows_error() -> None:
    with ChatServer(lambda ask: Answer("broken", 500)) as server:
        found = ask_choices(server, tries=2)
    assert found.logprobs is None and found.error == "HTTP 500: broken (tried 2 times)"


@given(
    st.sampled_from(["", " ", "1", "Score"]),
    st.floats(0.0, 1.0),
    st.dictionaries(st.sampled_from(["", " ", "1", "0", "10", "7", "8.", "100", " 1", "x"]), st.floats(0.0, 0.1)),
)
def test_no_probability_is_made_or_counted_twice(text: str, probability: float, following: dict[str, float]) -> None:
    settled: dict[str, float] = dict.fromkeys(DIGITS, 0.0)
    growing: dict[str, float] = {}
    share(text, probability, following, DIGITS, settled, growing)
    total = sum(settled.values()) + sum(growing.values())
    assert total <= probability + 1e-12
    if text == "1":  # nothing else is lost: what neither leads to 10 nor to another number stays with 1
        another = sum(p for token, p in following.items() if ANOTHER.match(token) and token != "0")
        assert total == pytest.approx(probability * (1 - another))


def test_a_judge_behind_a_server_that_obeys_our_rubric_is_read() -> None:
    written = ("Score", ":", " ", "7")
    positions = [(token, {token: -0.01}) for token in written[:-1]] + [
        ("7", {"7": math.log(0.75), "6": math.log(0.25)})
    ]
    for top, score in ((20, 6.75), (0, 7)):
        answer = Answer("Score: 7\nGood.", positions=positions, finish="length")
        with ChatServer(lambda ask, answer=answer: answer, Manners(top=top)) as server:
            ((_, verdict),) = Judge(engine(server), OURS).rate([Item("Where?", "cup", "mug")])
        assert (verdict.status, verdict.score) == ("ok", pytest.approx(score))
