"""A stand-in for the package vllm, which needs a GPU: the calls that videoqa/engines/vllm.py makes, and what vLLM does
with them, on a model of one character a token.

It answers "<number of images> <GPUs> <last line of the prompt>", and its next-token probabilities are `NEXT`; behind
what does not stand there a line ends. A prompt that ends with "kill -9" or "kill -9 unless FILE" kills the process, the
latter makes the file first.
`calls` holds every batch, `arguments` those of each LLM.
"""

from __future__ import annotations

import math
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2

NEXT = {"Score: ": {"8": 0.6, "1": 0.3, "x": 0.1}, "Score: 1": {"0": 0.9, ".": 0.1}}
SPECIAL = ["<|im_start|>", "<|im_end|>"]

arguments: list[dict[str, Any]] = []
calls: list[list[tuple[dict[str, Any], SamplingParams]]] = []


START_FAULT: list[Exception] = []  # what the next LLM raises instead of starting
FINISH: list[str] = []  # the finish reason of the next replies, instead of the right one


@dataclass(kw_only=True)
class SamplingParams:
    """The fields of vLLM's own that may matter here, with its defaults."""

    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: list[str] = field(default_factory=list)
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16
    min_tokens: int = 0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    detokenize: bool = True
    skip_special_tokens: bool = True


class Tokenizer:
    all_special_tokens = SPECIAL

    def __init__(self, system: bool) -> None:
        self._system = system

    def apply_chat_template(self, messages: list[dict[str, Any]], **options: Any) -> str:
        assert options == {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        if messages[0]["role"] == "system" and not self._system:
            raise jinja2.TemplateError("System role not supported")
        turns = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
        return turns + "<|im_start|>assistant\n"

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        assert not add_special_tokens, "the template has written them already"
        return [ord(c) for c in text]

    def decode(self, ids: list[int]) -> str:
        return "".join(map(chr, ids))


class LLM:
    def __init__(
        self,
        model: str,
        *,
        tokenizer: str | None = None,
        trust_remote_code: bool = False,
        tensor_parallel_size: int = 1,
        dtype: str = "auto",
        seed: int = 0,
        gpu_memory_utilization: float = 0.9,
        enforce_eager: bool = False,
        **options: Any,  # of EngineArgs: max_model_len, enable_prefix_caching, max_logprobs, limit_mm_per_prompt
    ) -> None:
        if START_FAULT:
            raise START_FAULT.pop()
        assert set(options) <= {"max_model_len", "enable_prefix_caching", "max_logprobs", "limit_mm_per_prompt"}
        options |= {"tensor_parallel_size": tensor_parallel_size, "dtype": dtype, "enforce_eager": enforce_eager}
        arguments.append({"model": model, **options})
        self._images = options.get("limit_mm_per_prompt", {}).get("image", 1)
        config = SimpleNamespace(max_model_len=options["max_model_len"] or 1000, dtype="torch.bfloat16")
        self.llm_engine = SimpleNamespace(model_config=config)
        self._tokenizer = Tokenizer(system="gemma" not in model)

    def get_tokenizer(self) -> Tokenizer:
        return self._tokenizer

    def generate(
        self,
        prompts: list[dict[str, Any]],
        sampling_params: list[SamplingParams] | None = None,
        *,
        use_tqdm: bool = True,
        lora_request: Any = None,
        priority: list[int] | None = None,
    ) -> list[Any]:
        params = sampling_params or [SamplingParams() for _ in prompts]
        calls.append(list(zip(prompts, params, strict=True)))
        for prompt in prompts:
            assert set(prompt) <= {"prompt_token_ids", "multi_modal_data"}
            images = len(prompt.get("multi_modal_data", {}).get("image", []))
            if images > self._images:
                raise ValueError(f"At most {self._images} image(s) may be provided in one prompt.")
            if len(prompt["prompt_token_ids"]) + 100 * images > self.llm_engine.model_config.max_model_len:
                raise ValueError("The decoder prompt is longer than the maximum model length")
        return [_output(p, s) for p, s in zip(prompts, params, strict=True)]


def _output(prompt: dict[str, Any], params: SamplingParams) -> Any:
    text = "".join(map(chr, prompt["prompt_token_ids"]))
    images = len(prompt.get("multi_modal_data", {}).get("image", []))
    asked = text.split("<|im_end|>")[-2].splitlines()[-1]
    if asked.startswith("kill -9") and not ((once := asked.partition(" unless ")[2]) and Path(once).exists()):
        if once:
            Path(once).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    reply = f"{images} {os.environ.get('CUDA_VISIBLE_DEVICES')} {asked}"
    logprobs = None
    if params.logprobs:
        following = NEXT.get(text[text.rindex("Score: ") :], {"\n": 1.0})
        top = sorted(following, key=lambda t: -following[t])[: params.logprobs]
        logprobs = [{ord(t): SimpleNamespace(logprob=math.log(following[t]), decoded_token=t) for t in top}]
        reply = top[0]
    cuts = [at for s in params.stop if (at := reply.find(s)) >= 0]
    whole = reply[: min(cuts)] if cuts else reply
    new = SimpleNamespace(
        text=whole[: params.max_tokens],
        token_ids=[ord(c) for c in whole[: params.max_tokens]],
        finish_reason=FINISH.pop() if FINISH else "stop" if len(whole) <= (params.max_tokens or 10**6) else "length",
        stop_reason=None,
        logprobs=logprobs,
    )
    return SimpleNamespace(prompt_token_ids=prompt["prompt_token_ids"], outputs=[new])
