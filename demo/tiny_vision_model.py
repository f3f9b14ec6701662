"""A vision-language model small enough for any test: LLaVA's architecture with 0.2 million random weights.

    python demo/tiny_vision_model.py --out build/models/tiny-vision

It loads with AutoProcessor and AutoModelForImageTextToText, takes several images in a conversation and answers with
nonsense, the same nonsense every time: it proves the path from video frames to judged answers, not a skill. Nothing is
fetched; the tokenizer is trained on the demo's narrations. (LLaVA, because its processor takes images without
torchvision; that of Qwen2.5-VL cannot be loaded without it.)
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[1] / "build" / "models" / "tiny-vision"
NARRATIONS = Path(__file__).resolve().parent / "data" / "clip_narrations.json"
VOCABULARY = 1024
CONTEXT = 8192  # tokens
SIDE, PATCH = 56, 14  # an image becomes SIDE x SIDE pixels and (SIDE / PATCH)^2 = 16 tokens

PAD, START, END, IMAGE = "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>"

CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{ '<|im_start|>' + message['role'] + '\n' }}
{%- if message['content'] is string -%}
{{ message['content'] }}
{%- else -%}
{%- for part in message['content'] -%}
{{ '<image>\n' if part['type'] == 'image' else part['text'] }}
{%- endfor -%}
{%- endif -%}
{{ '<|im_end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\n' }}
{%- endif -%}
"""


def make(out: Path = OUT) -> Path:
    """Make the model folder unless it is there; gives it back."""
    if (out / "config.json").is_file():  # the folder appears whole or not at all
        return out
    if out.exists():
        raise SystemExit(f"{out} is there and holds no model (no config.json): name another folder")
    import torch
    from transformers import CLIPImageProcessorPil, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor

    tokenizer = _tokenizer()
    ends = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    config = LlavaConfig(
        text_config={
            "model_type": "llama",
            "vocab_size": len(tokenizer),
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": CONTEXT,
            **ends,
        },
        vision_config={
            "model_type": "clip_vision_model",
            "image_size": SIDE,
            "patch_size": PATCH,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
        },
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=(SIDE // PATCH) ** 2,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        **ends,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LlavaForConditionalGeneration(config)
    model.generation_config.update(**ends)
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size={"height": SIDE, "width": SIDE}, do_center_crop=False),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,  # CLIP's class token, which "default" leaves out again
        image_token=IMAGE,
        chat_template=CHAT_TEMPLATE,
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        whole = Path(scratch) / "model"
        model.save_pretrained(whole)
        processor.save_pretrained(whole)
        try:
            whole.rename(out)
        except OSError:
            if not (out / "config.json").is_file():  # else another process was quicker
                raise
    return out


def _tokenizer() -> Any:
    """Byte-level BPE, so that it reads any text, with the marks of a chat."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, START, END, IMAGE],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pieces.train_from_iterator(json.loads(NARRATIONS.read_text(encoding="utf-8")).values(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        bos_token=START,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[IMAGE],
        model_max_length=CONTEXT,
        padding_side="left",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make a tiny random vision model.")
    parser.add_argument("--out", type=Path, default=OUT, help="model folder (%(default)s)")
    print(make(parser.parse_args().out))
