"""The options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from videoqa import frames as framing
from videoqa.benchmark import tracks
from videoqa.errors import UserError
from videoqa.files import read_yaml
from videoqa.judge import Mode

SPEC = (
    "a folder or Hub id, vllm:ID, server:NAME@URL (of /v1), openai:ID, hf:ID, litellm:ID, ray:COPIES*MODEL; options "
    "behind ?, see below"
)
# what may stand behind the question mark, by kind of engine: (what a spec of the kind looks like, its options)
ENGINE_OPTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "transformers": (
        "FOLDER or ID",
        {
            "dtype, device, batch_size": "as the options of these names",
            "prefix_reuse": "false: each row by itself",
            "revision": "commit, tag or branch on the Hub",
            "chat_template": "file of another template",
            "thinking": "true: thinks first",
        },
    ),
    "vllm": (
        "vllm:ID",
        {
            "dtype": "as the option",
            "tensor_parallel_size": "GPUs that hold one copy",
            "data_parallel_size": "copies that share the rows",
            "max_model_len": "longest context, tokens",
            "max_images": "most images in a prompt",
            "gpu_memory_utilization": "share of the GPU's memory, 0.9",
            "enforce_eager": "true: starts without compiling",
            "batch_size": "rows at a time, 512",
            "revision": "commit, tag or branch on the Hub",
            "chat_template": "file of another template",
            "thinking": "true: thinks first",
        },
    ),
    "server": (
        "server:NAME@URL, openai:ID or hf:ID[:PROVIDER]",
        {
            "api_key_variable": "environment variable of the key, OPENAI_API_KEY; of hf: HF_TOKEN, or a login's",
            "can_force": "whether it goes on from a reply's forced start; without it tried",
            "concurrency": "requests at a time, 16",
            "timeout": "seconds without a byte, 120",
            "tries": "of a request, 6",
            "wait": "seconds before the second try, doubled for each further one, 1",
            "extra": "JSON object for every request",
            "chat_template": "file of another template",
            "thinking": "true or false, as vLLM takes it",
        },
    ),
    "litellm": (
        "litellm:PROVIDER/ID",
        {
            "base_url": "another address than the provider's",
            "api_key_variable": "environment variable of the key; without it the provider's",
            "can_force, concurrency, timeout, tries, wait": "as of a server",
            "extra": "JSON object of further arguments of litellm's completion",
        },
    ),
    "ray": (
        "ray:COPIES*MODEL (a folder, ID or vllm:ID, with its options)",
        {
            "address": "HOST:PORT of the cluster's head; without it RAY_ADDRESS, or this machine",
            "gpus": "of a copy, as its parallel sizes ask",
            "cpus": "of a copy, 1",
        },
    ),
}


def from_file(context: typer.Context, path: Path | None) -> None:
    """Take the options that a YAML file names as the command's defaults. Raises UserError for one that there is not."""
    if path is None:
        return
    known = {option.lstrip("-"): p.name for p in context.command.params for option in (*p.opts, *p.secondary_opts)}
    given = {str(key).replace("_", "-"): value for key, value in read_yaml(path).items()}
    if unknown := sorted(set(given) - set(known) | (set(given) & {"help", "config-file"})):
        names = ", ".join(sorted(set(known) - {"help", "config-file"}))
        raise UserError(f"{path}: no option {unknown[0]!r}; there are {names}")
    off = {option.lstrip("-") for p in context.command.params for option in p.secondary_opts}
    several = {p.name for p in context.command.params if getattr(p, "multiple", False)}
    values = {known[key]: (not value if key in off else value) for key, value in given.items()}
    values = {name: [v] if name in several and isinstance(v, str) else v for name, v in values.items()}
    context.default_map = {**(context.default_map or {}), **values}


SPEC_HELP = "\n\n".join(
    [
        "Behind a model's name further options may stand, ?NAME=VALUE&NAME=VALUE (values as JSON).",
        *(
            f"{spec} has {', '.join(f'{n} ({what})' for n, what in of.items())}."
            for spec, of in ENGINE_OPTIONS.values()
        ),
    ]
)
_WAYS = "; ".join(f"{track.title}: {', '.join(track.ways)}" for track in tracks().values())
_AGENTS = [way.agent for track in tracks().values() for way in track.ways.values() if way.agent]
_EXPERTS = "; ".join(dict.fromkeys(f"{name} ({model})" for agent in _AGENTS for name, model in agent.experts.items()))

Benchmark = Annotated[
    str | None,
    typer.Option(help=f"Which benchmark the data are of: {', '.join(tracks())} (default: what their card says)."),
]
Data = Annotated[
    str | None,
    typer.Option(help="The dataset: FOLDER, which the builder wrote, or ORG/NAME on the Hub (default: ./BENCHMARK)."),
]
Config = Annotated[
    str | None, typer.Option(help="Config of the dataset, such as one question type (default: the benchmark's).")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only N rows, evenly over the types.")]
Out = Annotated[Path, typer.Option(help="The run folder; a run that was stopped goes on there.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder with answers.")]
Model = Annotated[str, typer.Option(help=f"The model under test: {SPEC}.")]
Prompt = Annotated[str | None, typer.Option(help=f"What the model sees beside the question ({_WAYS}).")]
Protocol = Annotated[
    Literal["likelihood", "generation", "yes"] | None,
    typer.Option(
        help="Multiple choice: the probability of each letter (default where the engine has it), the reply as it is "
        "read, or the probability of yes for each option."
    ),
]
Circular = Annotated[
    bool, typer.Option("--circular", help="Multiple choice: in all shifts of the options; right only if right in all.")
]
Match = Annotated[
    str | None,
    typer.Option(help=f"Multiple choice: an engine that says which option a reply means that names none: {SPEC}."),
]
StopEarly = Annotated[
    bool,
    typer.Option("--stop-early", help="Do not ask a question again that is lost; its consistency is not known then."),
]
Shuffle = Annotated[
    int | None, typer.Option(min=0, metavar="SEED", help="Multiple choice: shuffle the options of each question.")
]
Captions = Annotated[
    Path | None,
    typer.Option(help="JSON file with what is told of a video: {ID: text or [[second, text], ...]}, by question."),
]
VideoFolder = Annotated[Path | None, typer.Option("--videos", help="Folder of clips or full videos, by uid.")]
FramePolicy = Annotated[str, typer.Option("--frames", help=f"Which frames: {framing.GRAMMAR}.")]
Experts = Annotated[
    list[str] | None,
    typer.Option("--expert", metavar="NAME=MODEL", help=f"Who works beside the model, each once: {_EXPERTS}."),
]
Without = Annotated[
    str | None, typer.Option(metavar="NAME,...", help="Experts that are left out, with commas between them.")
]
Temperature = Annotated[float | None, typer.Option(help="Sample the answers at this temperature (default: greedy).")]
TopP = Annotated[float | None, typer.Option("--top-p", help="Sample from this part of the probability.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the sampling (default: 42).")]
System = Annotated[str | None, typer.Option(metavar="TEXT|@FILE", help="System text before every question.")]
Stop = Annotated[list[str] | None, typer.Option(help="An answer ends at this string; can be given again.")]
Thinking = Annotated[
    Literal["on", "off"] | None, typer.Option(help="Whether the model thinks first, where it can (default: off).")
]
ChatTemplate = Annotated[Path | None, typer.Option(help="File with another chat template than the model's own.")]
Revision = Annotated[str | None, typer.Option(help="Commit, tag or branch of the model on the Hub.")]
Repeats = Annotated[
    int | None,
    typer.Option(min=1, help="N answers to each question, each sampled with a seed of its own: mean, error, pass@k."),
]
ModelArgs = Annotated[
    Path | None, typer.Option(help="YAML file with the options that may stand behind the model's question mark.")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config-file",
        is_eager=True,
        callback=from_file,
        expose_value=False,
        help="YAML file with options of this command (max-new-tokens: 64); those given here go before it.",
    ),
]
Shard = Annotated[str | None, typer.Option(help="Only this part of the clips, such as 2/4; `merge` joins the parts.")]
MaxTokens = Annotated[
    int | None, typer.Option("--max-new-tokens", min=1, help="Longest answer (default: the benchmark's).")
]
JudgeSpec = Annotated[str, typer.Option("--judge", help=f"The judge: {SPEC}.")]
JudgeOrNone = Annotated[str | None, typer.Option("--judge", help=f"The judge, where answers are rated by one: {SPEC}.")]
Judges = Annotated[
    list[str] | None,
    typer.Option("--judge", help=f"The judge, where answers are rated by one: {SPEC}. Again for a panel of judges."),
]
Panel = Annotated[list[str], typer.Option("--judge", help=f"The judge: {SPEC}. Again for a panel of judges.")]
Price = Annotated[
    str | None, typer.Option(metavar="READ,WRITTEN", help="Prices of a million tokens read and written: 0.15,0.6")
]
Log = Annotated[
    str | None, typer.Option(metavar="TRACKER:PROJECT", help="Log the scores as well: trackio:PROJECT, wandb:PROJECT.")
]
RubricName = Annotated[str, typer.Option("--rubric", help="`ours`, `paper` (after `easg-bench fetch`), or a file.")]
ModeOption = Annotated[
    Mode | None,
    typer.Option(help="dist: one pass, the score's distribution (default where the engine has it); score; paper."),
]
Sampling = Annotated[Literal["greedy", "paper"], typer.Option(help="paper: the paper's temperature and top_p.")]
Reading = Annotated[str, typer.Option(help="script: unreadable is 0, as in the public script (mode paper).")]
Again = Annotated[bool, typer.Option("--again", help="Ask again for replies that could not be read.")]
Explain = Annotated[int, typer.Option(min=0, help="Have the judge explain its N lowest scores.")]
Store = Annotated[Path | None, typer.Option(help="Folder of the verdict store (default: in the HF cache folder).")]
DtypeOption = Annotated[
    Literal["auto", "float32", "bfloat16", "float16"],
    typer.Option("--dtype", help="auto: float32 on CPU, bfloat16 on GPU."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, ...")]
BatchSize = Annotated[int, typer.Option(min=1, help="Rows that go through a local model together.")]
