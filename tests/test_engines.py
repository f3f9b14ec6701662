"""videoqa/engines/__init__.py: engines by their names, wrong options, secrets in options."""

from __future__ import annotations

import sys

import pytest

from videoqa.engines import _parsed, check_engine, open_engine
from videoqa.errors import UserError

SERVER = "server:m@http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    "spec",
    [
        "server:m@http://user:hunter2@127.0.0.1:9/v1",
        "server:m@http://127.0.0.1:9/v1?api_key=hunter2",
        "server:m@http://127.0.0.1:9/v1?API_KEY=hunter2",
        'server:m@http://127.0.0.1:9/v1?extra={"api_key":"hunter2"}',
        "server:m@http://[::1/v1",
        "server:m@http://127.0.0.1:99999/v1",
        "server:m@http://127.0.0.1:9/v1?timeout=abc",
        "server:m@http://127.0.0.1:9/v1?concurrency=1.5",
        "server:m@http://127.0.0.1:9/v1?can_force=maybe",
        'server:m@http://127.0.0.1:9/v1?extra="abc"',
    ],
)
def test_secrets_and_what_cannot_be_an_endpoint_are_refused(spec: str) -> None:
    with pytest.raises(ValueError) as caught:
        open_engine(spec)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "option",
    [
        'extra={"headers":{"Authorization":"hunter2"}}',
        'extra={"auth":{"user":"hunter2"}}',
        'extra={"credentials":["hunter2"]}',
        'extra={"accessToken":"hunter2"}',
        'extra={"a":[{"b":{"x-api-key":"hunter2"}}]}',
        'extra={"metadata":"Bearer hunter2hunter2"}',
        'extra={"user":"sk-hunter2hunter2"}',
        'extra={"user":"hf_hunter2hunter2"}',
        'extra={"user":"hunter2hunter2hunter2hunter2"}',
        'extra={"user":"12345678-abcd-abcd-abcd-0123456789ab"}',
        "api_key_variable=sk-hunter2hunter2",
        "auth=hunter2",
    ],
)
def test_a_secret_at_any_level_of_the_options_is_refused(option: str) -> None:
    with pytest.raises(UserError, match="an API key is no option") as caught:
        open_engine(f"{SERVER}?{option}")
    assert "hunter2" not in str(caught.value)


def test_a_token_in_the_address_is_refused() -> None:
    with pytest.raises(UserError, match="an API key is no option"):
        open_engine("server:m@https://127.0.0.1:9/hf_abcdefghijkl/v1")


@pytest.mark.parametrize(
    "option",
    [
        'extra={"chat_template_kwargs":{"enable_thinking":false}}',
        'extra={"stop_token_ids":[2],"max_tokens":null,"thinking_token_budget":100}',
        'extra={"provider":{"order":["meta-llama/Llama-3.1-8B-Instruct"]}}',
        'extra={"revision":"0123456789abcdef0123456789abcdef01234567"}',
        "api_key_variable=MY_KEY",
    ],
)
def test_options_that_are_no_secrets_are_taken(option: str) -> None:
    assert open_engine(f"{SERVER}?{option}").name == "m"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (f"{SERVER}?tires=3", "the server engine has no option 'tires'; allowed are api_key_variable, can_force"),
        (f"{SERVER}?tries=many", "the option tries of the server engine must be int, not 'many'"),
        (f"{SERVER}?tries=true", "the option tries of the server engine must be int, not True"),
        (f'{SERVER}?extra={{"temperature":NaN}}', "the option extra holds a number that is none"),
        (f'{SERVER}?extra={{"a":[{{"b":1e400}}]}}', "the option extra holds a number that is none"),
        (f"{SERVER}?timeout={'9' * 400}", "the option timeout holds a number that is none"),
        (f"{SERVER}?model=x", "has no option 'model'"),
        (f"{SERVER}?self=x", "has no option 'self'"),
        (f"{SERVER}?tries", "must be written as NAME=VALUE"),
        ("some/model?dtyp=float32", "the transformers engine has no option 'dtyp'; allowed are dtype, device"),
        ("some/model?batch_size=x", "the option batch_size of the transformers engine must be int, not 'x'"),
        ("vllm:some/model?tp=2", "the vllm engine has no option 'tp'"),
        ("some/mo\u200bdel", "holds characters that cannot be seen"),
        ("some/mo\u3164del", "holds characters that cannot be seen"),
    ],
)
def test_a_wrong_option_is_told_with_what_is_allowed(spec: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        open_engine(spec)
    assert told in str(caught.value)


def test_a_type_error_inside_an_engine_is_no_wrong_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, *_: object, **__: object) -> None:
        raise TypeError("a fault of ours")

    from videoqa.engines import server

    monkeypatch.setattr(server, "Endpoint", broken)
    with pytest.raises(TypeError, match="a fault of ours"):
        open_engine(SERVER)


@pytest.mark.parametrize(("spec", "extra"), [("some/model", "local"), ("vllm:some/model", "vllm")])
def test_a_missing_package_is_told_with_the_extra_that_brings_it(
    spec: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("torch", "vllm"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=r"pip install 'easg-bench\[" + extra):
        open_engine(spec)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("ray:model", "engines on Ray are given as ray:COPIES*MODEL"),
        ("ray:0*model", "engines on Ray are given as ray:COPIES*MODEL"),
        ("ray:two*model", "engines on Ray are given as ray:COPIES*MODEL"),
        ("ray:2*", "engines on Ray are given as ray:COPIES*MODEL"),
        ("ray:2*server:m@http://127.0.0.1:9/v1", "copies on Ray are of a folder, a Hub id or vllm:ID"),
        ("ray:2*openai:m", "copies on Ray are of a folder, a Hub id or vllm:ID"),
        ("ray:2*ray:2*m", "copies on Ray are of a folder, a Hub id or vllm:ID"),
        ("ray:2*vllm:m?tires=3", "the vllm engine has no option 'tires'"),
        ("ray:2*some/model?tries=3", "the transformers engine has no option 'tries'"),
        ("ray:2*some/model?cpus=many", "the option cpus of the ray engine must be float"),
        ("ray:2*some/model?copies=2", "the transformers engine has no option 'copies'"),
        ("ray:2*some/model?dtype=float32&token=hunter2", "an API key is no option"),
    ],
)
def test_a_wrong_engine_on_ray_is_told_before_anything_starts(
    spec: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError) as caught:
        open_engine(spec)
    assert told in str(caught.value)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'easg-bench\[ray\]'"):
        open_engine("ray:2*some/model")


def test_options_from_a_file_are_shared_between_ray_and_its_copies() -> None:
    kind, places, options = _parsed("ray:2*vllm:m?cpus=4", {"max_images": 8, "gpus": 1.0})
    assert (kind, places, options) == ("ray", ["vllm:m", 2, {"max_images": 8}], {"cpus": 4, "gpus": 1.0})
    with pytest.raises(UserError, match="the vllm engine has no option 'tires'"):
        check_engine("ray:2*vllm:m", {"tires": 3})
