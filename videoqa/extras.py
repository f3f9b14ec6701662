"""Which of our extras brings which package, and what of the command line needs it.

the package av is missing, which --videos needs: pip install 'easg-bench[video]'
"""

from __future__ import annotations

import re

_LOCAL = ("local", "a model on this machine (a folder or Hub id in --model, --judge or --engine)")
_BUILDER = ("builder", "`easg-bench build`")
_SPACE = ("space", "the leaderboard (space/app.py)")
_VIDEO = ("video", "reading frames (--videos)")
_AUDIO = ("audio", "this expert (--expert)")
# package: its extra, what needs it
NEEDED = {
    **dict.fromkeys(("torch", "transformers", "accelerate", "safetensors"), _LOCAL),
    **dict.fromkeys(("json_repair", "lemminflect", "matplotlib"), _BUILDER),
    **dict.fromkeys(("gradio", "plotly", "pandas"), _SPACE),
    **dict.fromkeys(("av", "PIL"), _VIDEO),
    **dict.fromkeys(("onnxruntime", "faster_whisper"), _AUDIO),
    "evaluate": ("evaluate", "metrics/, the modules of `evaluate`,"),
    "lighteval": ("lighteval", "`easg-bench lighteval`"),
    "vllm": ("vllm", "vllm:ID in --model, --judge or --engine"),
    "litellm": ("litellm", "litellm:ID in --model, --judge or --engine"),
    "ray": ("ray", "ray:COPIES*MODEL in --model, --judge or --engine"),
}


def advice(error: ImportError) -> str | None:
    """One line that says which extra to install; None where the missing module is none of theirs. The error, or one
    that it was raised from, has the module's name, or only its text has it (transformers)."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, ImportError):
            top = (at.name or "").partition(".")[0]
            named = re.search(rf"\b({'|'.join(NEEDED)})\b", str(at).lower()) if not top else None
            package = named[1] if named else top
            if package in NEEDED:
                return said(package)
        at = at.__cause__
    return None


def said(package: str) -> str:
    """That this package is missing, who needs it, and what to install."""
    extra, option = NEEDED[package]
    return f"the package {package} is missing, which {option} needs: pip install 'easg-bench[{extra}]'"
