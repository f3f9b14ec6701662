"""A language or vision model in this process through Hugging Face transformers, CPU or GPU.

What makes it fast is that rows of one clip share most of their prompt (videoqa/engines/prefixes.py). In float32 this
differs from one row at a time by about 1e-4 in the logits; in bfloat16 by up to about 1, which can flip a token:
`settings` says which was used. The last layer, which decides between choices, is computed in float32 for them
(decoding.exact_head). Whether an architecture can be run like this is tried when it is loaded
(videoqa/engines/selfcheck.py).

Conversations that hold pictures go another way: videoqa/engines/pictures.py.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Self

from videoqa.engines import ChoiceLogprobs, Conversation, Reply, model_place
from videoqa.engines.chat import chat_template as read_template
from videoqa.engines.chat import control_tokens, cuts_in, has_pictures, render
from videoqa.engines.chat import revision as revision_of
from videoqa.engines.choices import TAIL, Choices
from videoqa.engines.decoding import (
    NOT_A_NUMBER,
    Choosing,
    Decoding,
    pick,
    rounds,
    unusable,
)
from videoqa.engines.pictures import Vision
from videoqa.engines.prefixes import Network
from videoqa.engines.selfcheck import TEXT, settle
from videoqa.engines.weighing import weigh
from videoqa.errors import UserError
from videoqa.files import short_hash

SAMPLED = 256  # values of each weight that tell two states of a model apart


def weights_hash(model: Any) -> str:
    """Tells two states of a loaded model apart, such as two steps of its training: a hash over values spread evenly
    over each of its weights."""
    import torch

    digest = hashlib.sha256()
    for name, weight in sorted(model.state_dict().items()):
        flat = weight.detach().reshape(-1)
        some = flat[
            torch.linspace(0, max(flat.numel() - 1, 0), min(SAMPLED, flat.numel()), dtype=torch.float64)
            .long()
            .to(flat.device)
        ]
        digest.update(name.encode() + some.to("cpu", torch.float32).numpy().tobytes())
    return digest.hexdigest()[:12]


@contextlib.contextmanager
def borrowed(model: Any) -> Iterator[None]:
    """Put a loaded model back as it was: its mode (training, evaluation) and its own generation settings."""
    training, generation = model.training, model.generation_config
    try:
        yield
    finally:
        model.generation_config = generation
        model.train(training)


class TransformersEngine:
    """`model` is a folder or a Hub id. `dtype`: "auto" (float32 on CPU, bfloat16 on GPU), "float32", "bfloat16" or
    "float16". `device`: "auto", "cpu", "cuda", ... `prefix_reuse=False` is for measuring what reuse brings. `packing`
    says how rows are put together in this model (videoqa/engines/selfcheck.py). `revision` is a commit, tag or branch
    of a Hub id, `chat_template` a file; with `thinking` the model thinks first, where its template knows the switch.
    """

    _model: Any
    _processor: Any = None  # of a model that was loaded elsewhere
    _template: str | None = None  # another chat template than the model's own
    _revision: str | None = None
    thinking = False
    can_choose = True
    can_follow = True
    can_force = True

    def __init__(
        self,
        model: str,
        *,
        dtype: str = "auto",
        device: str = "auto",
        batch_size: int = 8,
        prefix_reuse: bool = True,
        revision: str | None = None,
        chat_template: str | None = None,
        thinking: bool = False,
    ) -> None:
        import torch
        from safetensors import SafetensorError
        from transformers import (
            AutoConfig,
            AutoModelForCausalLM,
            AutoModelForImageTextToText,
            AutoTokenizer,
        )
        from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

        model = model_place(model)
        gpu = torch.cuda.is_available() if device == "auto" else device != "cpu"
        if dtype == "auto":
            dtype = "bfloat16" if gpu else "float32"
        if batch_size < 1:
            raise UserError(f"batch_size {batch_size}: at least 1")
        if dtype not in ("float32", "bfloat16", "float16"):
            raise UserError(f"dtype {dtype!r}: allowed are auto, float32, bfloat16, float16")
        if gpu and device == "auto" and find_spec("accelerate") is None:
            raise ModuleNotFoundError("No module named 'accelerate'", name="accelerate")  # spreads a model over GPUs
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(model, revision=revision)
            config = AutoConfig.from_pretrained(model, revision=revision)
        except (OSError, ValueError) as error:
            raise FileNotFoundError(f"the model {model!r} cannot be loaded: {error}") from error
        told: dict[str, Any] = {"dtype": dtype, "revision": revision_of(model, revision)}
        self._revision = revision
        if chat_template is not None:
            self._tokenizer.chat_template = self._template = read_template(chat_template)
            told["chat_template"] = short_hash(self._template)
        if thinking:
            told["thinking"] = True
            # what comes first is a thought, not the choice or the score
            self.thinking, self.can_choose, self.can_force = True, False, False
        if not self._tokenizer.chat_template:
            raise UserError(f"the model {model!r} has no chat template: an instruction-tuned model is needed")
        try:
            self._sees = type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
            kind = AutoModelForImageTextToText if self._sees else AutoModelForCausalLM
            self._model = kind.from_pretrained(
                model,
                revision=revision,
                dtype=getattr(torch, dtype),
                device_map="auto" if gpu and device == "auto" else None,
            )
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise FileNotFoundError(f"the model {model!r} cannot be loaded: {error}") from error
        if device != "auto":
            try:
                self._model = self._model.to(torch.device(device))
            except (RuntimeError, AssertionError) as error:
                raise UserError(f"device {device!r}: {error}") from error
        self._begin(model, told, batch_size, prefix_reuse)

    @classmethod
    def loaded(cls, model: Any, tokenizer: Any, name: str = "", batch_size: int = 8) -> Self:
        """An engine of a model that is loaded already, with its tokenizer (for frames: its processor). While it is in
        use the model is in evaluation mode and has no generation settings of its own: `borrowed` puts them back."""
        from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

        engine = cls.__new__(cls)
        engine._model = model
        engine._tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
        engine._processor = tokenizer if engine._tokenizer is not tokenizer else None
        if not engine._tokenizer.chat_template:
            raise UserError("the tokenizer has no chat template: an instruction-tuned model is needed")
        engine._sees = type(model.config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        dtype = str(model.dtype).removeprefix("torch.")
        named = name or str(model.config._name_or_path or type(model).__name__)
        engine._begin(named, {"dtype": dtype, "revision": f"loaded {weights_hash(model)}"}, batch_size, True)
        return engine

    def _begin(self, name: str, settings: dict[str, Any], batch_size: int, prefix_reuse: bool) -> None:
        """What is the same for every model once it is in memory."""
        from transformers import GenerationConfig

        self._model.eval()
        text_config = self._model.config.get_text_config()
        self._limit = getattr(text_config, "max_position_embeddings", None) or math.inf
        ends = self._model.generation_config.eos_token_id
        self._ends = {*(ends if isinstance(ends, list) else [ends]), self._tokenizer.eos_token_id} - {None}
        pad = self._tokenizer.pad_token_id if self._tokenizer.pad_token_id is not None else min(self._ends, default=0)
        # nothing of the model's own settings (top_k, a repetition penalty) gets into what is drawn here
        self._model.generation_config = GenerationConfig(eos_token_id=sorted(self._ends) or None, pad_token_id=pad)
        self._network = Network(self._model, batch_size, "shared prefixes" if prefix_reuse else "batches")
        self.packing = settle(self._network, self._encode([TEXT])[0], name)
        self._vision: Vision | None = None
        self._known_choices: dict[tuple[str, tuple[str, ...]], Choices] = {}
        self._control = control_tokens(self._tokenizer)
        self.name = name
        self.settings = {"engine": "transformers", **settings}
        if rounds(self._model):
            self.settings["choices"] = "float32 head"  # numbers of choice_logprobs differ from those without

    # -- text to ids ------------------------------------------------------------------------------------------------

    def _text(self, conversation: Conversation, start: str) -> str:
        return render(self._tokenizer, conversation, start, self._control, self.thinking)

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return self._tokenizer(texts, add_special_tokens=False)["input_ids"]

    def _too_long(self, tokens: int, more: int) -> str | None:
        if tokens + more <= self._limit:
            return None
        return f"the prompt of {tokens} tokens and {more} new ones do not fit into the model's {self._limit}"

    # -- the two ways to ask ----------------------------------------------------------------------------------------

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
        """See Engine.generate. Sampling draws one number per token from the row's own generator."""
        how = Decoding(max_new_tokens, temperature, top_p, seed, start, tuple(stop))
        seen, read = self._sorted(conversations)
        if seen:
            shown = [conversations[row] for row in seen]
            yield from ((seen[k], reply) for k, reply in self._eyes().generate(shown, how))
        if read:
            texts = [conversations[row] for row in read]
            yield from ((read[k], reply) for k, reply in self._generate(texts, how))

    def choice_logprobs(
        self,
        conversations: Sequence[Conversation],
        choices: Sequence[str],
        *,
        start: str = "",
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        """See Engine.choice_logprobs. One forward pass a row, and one step of a single token behind every number, and
        its point, that is probable enough (choices.FOLLOWED), and behind what longer choices share."""
        how = Choosing(tuple(choices), start, temperature, top_p)
        seen, read = self._sorted(conversations)
        if seen:
            shown = [conversations[row] for row in seen]
            yield from ((seen[k], answer) for k, answer in self._eyes().choose(shown, how))
        if read:
            texts = [conversations[row] for row in read]
            yield from ((read[k], answer) for k, answer in self._choose(texts, how))

    def _sorted(self, conversations: Sequence[Conversation]) -> tuple[list[int], list[int]]:
        """The rows with pictures and those without."""
        seen = [row for row, conversation in enumerate(conversations) if has_pictures(conversation)]
        if seen and not self._sees:
            raise UserError(f"the model {self.name!r} reads text only: a conversation with frames needs a vision model")
        return seen, sorted(set(range(len(conversations))) - set(seen))

    def _eyes(self) -> Vision:
        """What rows with pictures go through, made when the first one comes."""
        if self._vision is None:
            from transformers import AutoProcessor

            processor = self._processor or AutoProcessor.from_pretrained(self.name, revision=self._revision)
            processor.tokenizer.padding_side = "left"
            if self._template is not None:
                processor.chat_template = self._template
            self._vision = Vision(
                self._model,
                processor,
                self._encode,
                self._too_long,
                self._control,
                self._ends,
                self._network.batch_size,
                self.thinking,
            )
        return self._vision

    def _generate(self, conversations: Sequence[Conversation], how: Decoding) -> Iterator[tuple[int, Reply]]:
        import torch

        ids = self._encode([self._text(c, how.start) for c in conversations])
        fitting = []
        for row, tokens in enumerate(ids):
            if error := self._too_long(len(tokens), how.max_new_tokens):
                yield row, Reply(None, error, prompt_tokens=len(tokens))
            else:
                fitting.append(row)
        random = {row: torch.Generator().manual_seed(how.seed) for row in fitting}
        coming = self._network.batches(ids, fitting, how.max_new_tokens)
        for batch in coming:
            while True:
                # as rows end, others come in: a step costs little more for many rows than for few
                self._network.refill(batch, coming, how.max_new_tokens)
                broken = unusable(batch.logits).tolist()
                for row in (row for row, bad in zip(batch.rows, broken, strict=True) if bad):
                    new = len(batch.new[row])
                    yield row, Reply(None, NOT_A_NUMBER, prompt_tokens=len(ids[row]), new_tokens=new)
                if all(broken):
                    break
                with torch.inference_mode():
                    batch.keep([k for k, bad in enumerate(broken) if not bad])
                    tokens = pick(batch.logits, how.temperature, how.top_p, [random[row] for row in batch.rows])
                going = []
                for k, (row, token) in enumerate(zip(batch.rows, tokens.tolist(), strict=True)):
                    if (end := self._end(batch.new[row], token, how)) is None:
                        going.append(k)
                    else:
                        text, finished = end
                        yield row, Reply(how.start + text, None, finished, len(ids[row]), len(batch.new[row]))
                if not going:
                    break
                with torch.inference_mode():
                    going = batch.keep(going)
                    self._network.step(batch, tokens[going].to(self._model.device))

    def _end(self, new: list[int], token: int, how: Decoding) -> tuple[str, bool] | None:
        """Append a row's token; where its reply ends with it, the text and whether it came to an end of its own."""
        ended = token in self._ends
        if not ended:
            new.append(token)
        full = len(new) >= how.max_new_tokens
        if not (how.stop or ended or full):
            return None
        text = self._tokenizer.decode(new, skip_special_tokens=True)
        cuts = cuts_in(text, how.stop)
        if not (cuts or ended or full):
            return None
        return (text[: min(cuts)] if cuts else text), ended or bool(cuts)

    def _choose(self, conversations: Sequence[Conversation], how: Choosing) -> Iterator[tuple[int, ChoiceLogprobs]]:
        import torch

        texts = [self._text(c, how.start) for c in conversations]
        ids = self._encode(texts)
        # Rows whose choices are split alike go together; with one template and one start that is all of them.
        alike: dict[str, list[int]] = defaultdict(list)
        for row, text in enumerate(texts):
            choices = self._split(text[-TAIL:], how.choices)
            if error := self._too_long(len(ids[row]), choices.longest):
                yield row, ChoiceLogprobs(None, error, len(ids[row]))
            else:
                ids[row] = ids[row][: len(ids[row]) - choices.dropped]
                alike[text[-TAIL:]].append(row)
        for tail, rows in alike.items():
            choices = self._split(tail, how.choices)
            for batch in self._network.batches(ids, rows, choices.longest, exact=True):
                with torch.inference_mode():
                    weighed = weigh(self._network, batch, choices, how)
                for row, logprobs in zip(batch.rows, weighed, strict=True):
                    yield row, ChoiceLogprobs(logprobs, None if logprobs else NOT_A_NUMBER, len(ids[row]))

    def _split(self, tail: str, choices: tuple[str, ...]) -> Choices:
        """The choices as ids behind a prompt with this end: the same for all rows of one template."""
        if (tail, choices) not in self._known_choices:
            made = Choices(lambda t: self._encode([t])[0], self._tokenizer.decode, tail, choices)
            self._known_choices[tail, choices] = made
        return self._known_choices[tail, choices]
