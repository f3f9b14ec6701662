"""Tiny models with random weights that stand for architectures, and the reference: one row, no batch, no cache."""

from __future__ import annotations

import functools
import itertools
import math
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest

from videoqa.engines import Conversation
from videoqa.engines.choices import ANOTHER, FOLLOWED, SEEN
from videoqa.engines.prefixes import shared_length

torch = pytest.importorskip("torch")

SCORES = [str(n) for n in range(1, 11)]
WORDS = ["the", "camera", "wearer", "lifts", "cup", "from", "table", "jug", "10", "knife", "é", "做饭"]
USUAL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "initializer_range": 0.5,  # far from uniform, so that no two tokens are nearly alike
}
GPT: dict[str, Any] = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512, "initializer_range": 0.5}
LINEAR = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
STATE: dict[str, Any] = {"hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, "initializer_range": 0.5}
MAMBA2 = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_state": 8, "mamba_chunk_size": 16}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
# the settings of a tiny model by its architecture
KINDS: dict[str, dict[str, Any]] = {
    "llama": USUAL,
    "qwen2": USUAL,
    "gemma2": USUAL | {"sliding_window": 16},  # one layer in two sees 16 tokens back
    "mistral": USUAL | {"sliding_window": 16},  # every layer
    "qwen3_5_text": USUAL | LINEAR,
    "qwen3_next": USUAL
    | LINEAR
    | {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32},
    "gpt2": GPT,
    "openai-gpt": GPT,
    "gpt_neo": {
        "hidden_size": 32,
        "num_layers": 2,
        "num_heads": 4,
        "attention_types": [[["global", "local"], 1]],
        "window_size": 64,  # wide enough for a short batch, counted in slots
        "max_position_embeddings": 512,
        "initializer_range": 0.5,
    },
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 512, "initializer_range": 0.5},
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.5},
    "opt": {
        "hidden_size": 32,
        "ffn_dim": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 512,
        "word_embed_proj_dim": 32,
        "init_std": 0.5,
    },
    "gpt_oss": USUAL | EXPERTS | {"sliding_window": 16},
    "llama4_text": USUAL | {"num_local_experts": 2, "intermediate_size_mlp": 64, "attention_chunk_size": 16},
    "mamba": STATE,
    "falcon_mamba": STATE,
    "mamba2": STATE | {"num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 16},
    "minimax": USUAL | EXPERTS | {"layer_types": ["linear_attention", "full_attention"], "block_size": 16},
    "bamba": USUAL | MAMBA2 | {"attn_layer_indices": [1]},
    "falcon_h1": USUAL | MAMBA2 | {"mamba_d_ssm": 64},
    "zamba2": USUAL
    | {"layers_block_type": ["mamba", "mamba", "hybrid"], "num_hidden_layers": 3, "hybrid_layer_ids": [2]}
    | {"mamba_d_state": 8, "mamba_headdim": 8, "n_mamba_heads": 8, "mamba_ngroups": 1, "num_mem_blocks": 1},
    "lfm2": USUAL | {"layer_types": ["conv", "full_attention"]},
    "recurrent_gemma": USUAL | {"lru_width": 32, "attention_window_size": 16, "num_hidden_layers": 3},
    "rwkv": {"hidden_size": 32, "attention_hidden_size": 32, "num_hidden_layers": 2, "context_length": 512},
    "xlstm": {"hidden_size": 32, "num_hidden_layers": 2, "num_heads": 2, "chunk_size": 16, "qk_dim_factor": 0.5},
}
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny_tokenizer(digits_apart: bool) -> Any:
    """Byte-level BPE; "10" is two tokens with `digits_apart`, else " 10" is one."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    pieces = Tokenizer(models.BPE())
    split = [pre_tokenizers.Digits(individual_digits=True)] if digits_apart else []
    pieces.pre_tokenizer = pre_tokenizers.Sequence([*split, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    pieces.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<|end|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pieces.train_from_iterator(["Score: 10 Score: 1 Score: 9 assistant user system " + " ".join(WORDS)] * 9, trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=pieces, eos_token="<|im_end|>", pad_token="<|end|>")
    made.chat_template = CHATML
    return made


_FOLDER = tempfile.TemporaryDirectory(prefix="tiny-models-")  # gone with the process


@functools.cache
def tiny(kind: str = "llama", digits_apart: bool = True) -> Path:
    """Folder of a model of this kind with random weights, made once a session."""
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = tiny_tokenizer(digits_apart)
    config = AutoConfig.for_model(
        kind,
        vocab_size=len(tokenizer),
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        **KINDS[kind],
    )
    folder = Path(_FOLDER.name) / f"{kind}-{digits_apart}"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def chats(clips: int = 3, rows: int = 4) -> list[Conversation]:
    """Rows of a clip begin alike, clips differ in length; in no order."""
    found: list[Conversation] = []
    for clip in range(clips):
        context = " ".join(random.Random(clip).choices(WORDS, k=15 + 8 * clip))
        for row in range(rows):
            question = " ".join(random.Random(f"{clip} {row}").choices(WORDS, k=1 + 5 * row))
            found.append([{"role": "user", "content": f"{context}\n{question}"}])
    random.Random(0).shuffle(found)
    return found


# -- the reference: one row, no cache ---------------------------------------------------------------------------------


class Plain:
    """The model as anyone would call it."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def ids(self, chat: Conversation, more: str) -> list[int]:
        text = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) + more
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def logits(self, ids: list[int]) -> Any:
        with torch.inference_mode():
            return self.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double()

    def distribution(self, logits: Any, temperature: float, top_p: float) -> list[float]:
        """What is drawn from: the fewest tokens that reach top_p."""
        probabilities = torch.softmax(logits / temperature, -1).tolist()
        kept, reached = [0.0] * len(probabilities), 0.0
        for token in sorted(range(len(probabilities)), key=lambda t: -probabilities[t]):
            if reached >= top_p:
                break
            kept[token] = probabilities[token]
            reached += probabilities[token]
        return [p / reached for p in kept]

    def reply(
        self, chat: Conversation, new: int, temperature: float = 0, top_p: float = 1, start: str = ""
    ) -> tuple[str, float]:
        """The text, and how near its nearest decision was: the least change of a logit (greedy) or of a probability
        (sampling) by which another token could have come."""
        ids, generator = self.ids(chat, start), torch.Generator().manual_seed(42)
        fresh: list[int] = []
        margin = math.inf
        while len(fresh) < new:
            last = self.logits(ids + fresh)[-1]
            if temperature:
                token, near = self.drawn(last, temperature, top_p, float(torch.rand(1, generator=generator)))
            else:
                first, second = last.topk(2).values.tolist()
                token, near = int(last.argmax()), first - second
            margin = min(margin, near)
            if token == self.tokenizer.eos_token_id:
                break
            fresh.append(token)
        return start + self.tokenizer.decode(fresh, skip_special_tokens=True), margin

    def drawn(self, logits: Any, temperature: float, top_p: float, draw: float) -> tuple[int, float]:
        """The token, and the distance of the draw from the next border, or of the sum from top_p, or of the token's
        probability from its neighbours' in the order."""
        chances = self.distribution(logits, temperature, top_p)
        order = sorted(range(len(chances)), key=lambda t: -chances[t])
        plain = torch.softmax(logits / temperature, -1).tolist()
        sums = itertools.accumulate(plain[t] for t in order)
        cut = min(abs(reached - top_p) for reached in sums) if top_p < 1 else 1.0
        reached = 0.0
        for place, token in enumerate(order):
            before, reached = reached, reached + chances[token]
            if draw < reached or place == len(order) - 1:
                break
        beside = [order[n] for n in (place - 1, place + 1) if 0 <= n < len(order)]
        gaps = [abs(plain[token] - plain[other]) for other in beside]
        return token, min(draw - before, abs(reached - draw), cut, *gaps)

    def choices(self, chat: Conversation, start: str, temperature: float, top_p: float) -> dict[str, float]:
        """Probability of each score, each spelt out in a pass of its own, without what goes on to another number: "10"
        behind "1", "8.5" behind "8", and tokens that do it by themselves ("80")."""
        numbers = [*SCORES, *(f"{c}.{tenth}" for c in SCORES for tenth in range(1, 10))]
        full = {c: tuple(self.ids(chat, start + c)) for c in numbers}
        kept = min(shared_length(self.ids(chat, start), ids) for ids in full.values())
        known: dict[tuple[int, ...], list[float]] = {}

        def behind(ids: tuple[int, ...]) -> list[float]:
            if ids not in known:
                known[ids] = self.distribution(self.logits(list(ids))[-1], temperature, top_p)
            return known[ids]

        def chance(ids: tuple[int, ...]) -> float:
            share = 1.0
            for at in range(kept, len(ids)):
                if at > kept and share < FOLLOWED:  # as little as this is not followed
                    return 0.0
                share *= behind(ids[:at])[ids[at]]
            return share

        chances = {}
        for choice in SCORES:
            mine = full[choice]
            longer = [ids for ids in full.values() if len(ids) > len(mine) and ids[: len(mine)] == mine]
            nearest = [a for a in longer if not any(a != b and a[: len(b)] == b for b in longer)]
            following = {ids[len(mine)] for ids in longer}
            likely = sorted(range(len(behind(mine))), key=lambda t: -behind(mine)[t])[:SEEN]
            texts = {t: self.tokenizer.decode([mine[-1], t])[len(self.tokenizer.decode([mine[-1]])) :] for t in likely}
            larger = sum(behind(mine)[t] for t, text in texts.items() if t not in following and ANOTHER.match(text))
            larger = larger if chance(mine) >= FOLLOWED else 0.0
            chances[choice] = chance(mine) * (1 - larger) - sum(map(chance, nearest))
        return chances
