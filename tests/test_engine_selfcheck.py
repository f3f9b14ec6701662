"""videoqa/engines/selfcheck.py: whatever an architecture does with padding, positions and caches, no wrong number."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_models import SCORES, Plain, chats, tiny
from videoqa.engines import prefixes
from videoqa.engines.selfcheck import TEXT, check_rows, difference
from videoqa.engines.transformers import TransformersEngine
from videoqa.errors import UserError

torch = pytest.importorskip("torch")

PACKING = {
    "llama": "shared prefixes",
    "mistral": "shared prefixes",
    "gemma2": "shared prefixes",
    "gpt2": "shared prefixes",
    "opt": "shared prefixes",  # counts positions by its mask
    "bloom": "shared prefixes",  # ALiBi by its mask
    "gpt_oss": "shared prefixes",
    "gpt_neo": "shared prefixes",  # where its window, counted in slots, is wide enough
    "mpt": "batches",  # ALiBi by slots: a gap between prefix and rest is distance
    "llama4_text": "batches",
    "qwen3_5_text": "batches",  # a state cannot be cut where prefixes part
    "qwen3_next": "batches",
    "mamba": "batches",
    "falcon_mamba": "batches",
    "mamba2": "batches",
    "bamba": "batches",
    "falcon_h1": "batches",
    "zamba2": "batches",
    "lfm2": "batches",
    "minimax": "single rows",
}


def generated(plain: Plain, ids: list[int], new: int) -> str:
    """The text of the model's own `generate`."""
    end = plain.tokenizer.eos_token_id
    with torch.inference_mode():
        out = plain.model.generate(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=new,
            do_sample=False,
            eos_token_id=end,
            pad_token_id=0,
        )[0, len(ids) :].tolist()
    return plain.tokenizer.decode(out[: out.index(end)] if end in out else out, skip_special_tokens=True)


@pytest.mark.parametrize("kind", PACKING)
def test_every_architecture_replies_like_its_own_generate(kind: str) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        engine = TransformersEngine(str(tiny(kind)), batch_size=5)
    assert engine.packing == PACKING[kind]
    told = [str(w.message) for w in warned if "is run in" in str(w.message)]
    assert len(told) == (kind in ("mpt", "minimax")), "told where more was tried than held"
    plain, rows = Plain(tiny(kind)), chats(2, 3)
    replies = dict(engine.generate(rows, max_new_tokens=6))
    for number, row in enumerate(rows):
        text, margin = generated(plain, plain.ids(row, ""), 6), plain.reply(row, 6)[1]
        assert replies[number].text == text or margin < 5e-3
    for number, answer in engine.choice_logprobs(rows, SCORES, start="Score: "):
        assert answer.logprobs is not None
        chances = {choice: math.exp(logprob) for choice, logprob in answer.logprobs.items()}
        assert chances == pytest.approx(plain.choices(rows[number], "Score: ", 1, 1), abs=1e-4)


@pytest.mark.parametrize("kind", ["openai-gpt", "rwkv", "xlstm", "recurrent_gemma"])
def test_an_architecture_that_cannot_be_run_is_one_line(kind: str) -> None:
    with pytest.raises(UserError, match=rf"the model '.*' \({kind}\) cannot be run") as caught:
        TransformersEngine(str(tiny(kind)))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_a_fault_in_sharing_prefixes_turns_sharing_off(monkeypatch: pytest.MonkeyPatch) -> None:
    right = prefixes.Network._forward

    def shifted(
        self: prefixes.Network, ids: object, mask: object, positions: object, cache: object, *exact: bool, **how: bool
    ) -> object:
        """Positions behind a shared prefix are off by one."""
        filled = cache is not None and self.packing == "shared prefixes" and cache.get_seq_length()  # type: ignore
        return right(self, ids, mask, positions + 1 if filled else positions, cache, *exact, **how)  # type: ignore

    monkeypatch.setattr(prefixes.Network, "_forward", shifted)
    with pytest.warns(UserWarning, match=r"is run in batches: its numbers change with shared prefixes \(log-prob"):
        engine = TransformersEngine(str(tiny()))
    assert engine.packing == "batches"


def test_a_model_that_is_right_in_no_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = prefixes.Network._forward
    monkeypatch.setattr(
        prefixes.Network,
        "_forward",
        lambda self, ids, mask, positions, cache, *exact, **how: right(
            self, (ids + 1) % 300, mask, positions, cache, *exact, **how
        ),
    )
    with pytest.raises(UserError, match=r"cannot be run in this engine: log-probabilities differ by .*; serve it"):
        TransformersEngine(str(tiny()))


def test_the_rows_of_the_check_share_beginnings_and_differ_in_length() -> None:
    for tokens in ([5], list(range(29)), list(range(200))):
        first, second, third = check_rows(tokens)
        assert first[:13] == second[:13] and len({len(first), len(second), len(third)}) == 3
    assert check_rows(list(range(200)))[2][:6] != check_rows(list(range(200)))[0][:6]
    assert len(TEXT.split()) > 20


def test_a_place_without_numbers_is_not_compared_but_one_that_lost_them_differs() -> None:
    nan, fine = torch.full((4,), math.nan), torch.zeros(4).log_softmax(-1)
    impossible = torch.tensor([0.0, -math.inf, -math.inf, -math.inf])
    assert difference([[nan, fine, None]], [[nan, fine, fine]]) == 0
    assert difference([[nan]], [[fine]]) == difference([[fine]], [[impossible]]) == math.inf
    assert difference([[impossible]], [[impossible]]) == 0


def test_the_engine_is_loaded_where_the_weights_hold_no_numbers_and_every_row_is_an_error(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(tiny())
    with torch.no_grad():
        model.model.layers[0].mlp.down_proj.weight[0, 0] = math.inf
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny()).save_pretrained(tmp_path)
    engine, rows = TransformersEngine(str(tmp_path)), chats(1, 3)
    cases: list[dict[str, Any]] = [{}, {"temperature": 0.7, "top_p": 0.9}]
    for how in cases:
        replies = dict(engine.generate(rows, max_new_tokens=4, **how))
        assert {reply.text for reply in replies.values()} == {None}
        assert all("NaN" in (reply.error or "") for reply in replies.values()) and len(replies) == 3
        answers = dict(engine.choice_logprobs(rows, SCORES, start="Score: ", **how))
        assert {answer.logprobs for answer in answers.values()} == {None}
        assert all("NaN" in (answer.error or "") for answer in answers.values()) and len(answers) == 3
