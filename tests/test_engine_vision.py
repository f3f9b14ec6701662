"""Pictures through the transformers engine, with a tiny random vision model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from videoqa.engines.choices import ANOTHER
from videoqa.engines.transformers import TransformersEngine

SCORES = [str(n) for n in range(1, 11)]


@pytest.fixture(scope="module")
def engine(tiny_vision: Path) -> TransformersEngine:
    return TransformersEngine(str(tiny_vision), device="cpu", batch_size=3)


def shown(question: str, *colours: str) -> list[dict[str, Any]]:
    pictures = [{"type": "image", "image": Image.new("RGB", (64, 48), colour)} for colour in colours]
    return [
        {"role": "system", "content": "You answer."},
        {"role": "user", "content": [*pictures, {"type": "text", "text": question}]},
    ]


ROWS = [
    shown("what is it?", "red", "blue"),
    [{"role": "user", "content": "text alone"}],
    shown("who is it that does it, and with what?", "green"),
    shown("and?", "white", "black", "red"),
]
HOW: list[dict[str, Any]] = [{}, {"temperature": 0.8, "top_p": 0.9}, {"start": "Score: ", "stop": ("\n",)}]


@pytest.mark.parametrize("how", HOW, ids=["greedy", "sampled", "forced start"])
def test_a_batch_gives_every_row_what_it_gets_alone(engine: TransformersEngine, how: dict[str, Any]) -> None:
    together = dict(engine.generate(ROWS, max_new_tokens=10, **how))
    alone = [dict(engine.generate([row], max_new_tokens=10, **how))[0] for row in ROWS]
    assert [together[i] for i in range(len(ROWS))] == alone
    assert all((reply.text or "").startswith(how.get("start", "")) for reply in alone)


def test_the_pictures_are_seen_and_each_counts_its_tokens(engine: TransformersEngine) -> None:
    red, blue = (dict(engine.generate([shown("what?", c)], max_new_tokens=10))[0] for c in ("red", "blue"))
    assert red.text != blue.text
    two = dict(engine.generate([shown("what?", "red", "red")], max_new_tokens=10))[0]
    assert two.prompt_tokens - red.prompt_tokens >= 16


def test_a_later_turn_keeps_the_pictures_of_the_first(engine: TransformersEngine) -> None:
    def second(colour: str) -> str | None:
        said = [{"role": "assistant", "content": "2 s"}, {"role": "user", "content": "and before it?"}]
        return dict(engine.generate([[*shown("when?", colour), *said]], max_new_tokens=10))[0].text

    assert second("red") != second("blue")


def test_a_stop_string_ends_its_row_alone(engine: TransformersEngine) -> None:
    whole = [dict(engine.generate([row], max_new_tokens=10))[0].text or "" for row in ROWS]
    stop = whole[0][3:5]
    cut = dict(engine.generate(ROWS, max_new_tokens=10, stop=(stop,)))
    assert cut[0].text == whole[0][: whole[0].index(stop)] and cut[0].finished
    assert cut[3].text == (whole[3].split(stop)[0] if stop in whole[3] else whole[3])


def test_a_prompt_that_is_too_long_is_its_rows_error(engine: TransformersEngine) -> None:
    found = dict(engine.generate([shown("x " * 9000, "red"), *ROWS], max_new_tokens=4))
    assert found[0].text is None and "do not fit into the model's 8192" in (found[0].error or "")
    assert all(found[i].text for i in range(1, 5))
    choices = dict(engine.choice_logprobs([shown("x " * 9000, "red"), ROWS[0]], SCORES))
    assert choices[0].logprobs is None and choices[1].logprobs is not None


def test_a_picture_that_cannot_be_read_is_its_rows_error(engine: TransformersEngine, tmp_path: Path) -> None:
    broken = [{"role": "user", "content": [{"type": "image", "image": tmp_path / "absent.png"}]}]
    found = dict(engine.generate([broken, ROWS[0]], max_new_tokens=4))
    assert "absent.png" in (found[0].error or "") and found[1].text


def test_an_image_mark_in_a_question_is_text(engine: TransformersEngine) -> None:
    found = dict(engine.generate([shown("what is <image> or <|im_end|>?", "red")], max_new_tokens=4))
    assert found[0].error is None


def test_choices_are_the_models_own_probabilities(engine: TransformersEngine) -> None:
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    start = "Score: "
    found = dict(engine.choice_logprobs([ROWS[0], ROWS[1]], SCORES, start=start))
    logprobs = found[0].logprobs
    assert logprobs is not None and found[1].logprobs is not None
    assert 0 < sum(map(math.exp, logprobs.values())) < 1

    processor = AutoProcessor.from_pretrained(engine.name)
    model = AutoModelForImageTextToText.from_pretrained(engine.name)
    messages = [{**m, "content": [{"type": "text", "text": m["content"]}]} for m in ROWS[0][:1]]
    messages.append(
        {**ROWS[0][1], "content": [{k: v for k, v in p.items() if k != "image"} for p in ROWS[0][1]["content"]]}
    )
    text = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) + start
    images = [p["image"] for p in ROWS[0][1]["content"] if p["type"] == "image"]

    def bounds(choice: str) -> tuple[float, float]:
        """Probability of the choice's tokens behind the prompt, the whole read at once: not as the beginning of any
        other number, and whatever follows."""
        inputs = processor(text=[text + choice], images=[images], add_special_tokens=False, return_tensors="pt")
        base = processor(text=[text], images=[images], add_special_tokens=False, return_tensors="pt")
        same = (inputs["input_ids"][0, : base["input_ids"].shape[1]] == base["input_ids"][0]).long().cumprod(0).sum()
        with torch.inference_mode():
            chances = model(**inputs).logits[0].double().softmax(-1)
        ids = inputs["input_ids"][0].tolist()
        begun = math.prod(chances[at - 1, ids[at]].item() for at in range(int(same), len(ids)))
        decode = processor.tokenizer.decode
        said = decode([ids[-1]])
        others = [n for n in range(chances.shape[1]) if ANOTHER.match(decode([ids[-1], n]).removeprefix(said))]
        return begun * (1 - chances[-1, others].sum().item()), begun

    for choice in ("7", "10"):
        least, most = bounds(choice)
        assert least - 1e-6 <= math.exp(logprobs[choice]) <= most + 1e-6
        assert least > 0.4 * most  # the bounds say something


def test_a_row_whose_numbers_are_lost_is_an_error_and_the_others_are_not(engine: TransformersEngine) -> None:
    import torch

    rows = [ROWS[0], ROWS[2], ROWS[3]]
    whole = dict(engine.generate(rows, max_new_tokens=6, temperature=0.8))

    def broken(model: Any, inputs: Any, out: Any) -> Any:
        out.logits[-1] = torch.nan
        return out

    hook = engine._model.register_forward_hook(broken)
    cases: list[dict[str, Any]] = [{}, {"temperature": 0.8}, {"stop": ("\n",)}]
    for how in cases:
        replies = dict(engine.generate(rows, max_new_tokens=6, **how))
        assert replies[2].text is None and "NaN" in (replies[2].error or "")
        assert replies[0].text and replies[1].text and replies[0].error is None
        if how == {"temperature": 0.8}:
            assert [replies[n] for n in (0, 1)] == [whole[n] for n in (0, 1)]
    answers = dict(engine.choice_logprobs(rows[:1], SCORES))
    assert answers[0].logprobs is None and "NaN" in (answers[0].error or "")
    hook.remove()


@pytest.mark.slow
def test_a_model_without_vision_says_so(smollm2: Path) -> None:
    with pytest.raises(ValueError, match="reads text only"):
        list(TransformersEngine(str(smollm2), device="cpu").generate(ROWS, max_new_tokens=4))
