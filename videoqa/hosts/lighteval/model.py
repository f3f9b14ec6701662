"""The engines of videoqa as a lighteval model: frames of the videos, one turn or two, batches, GPUs.

    EASG_BENCH_VIDEOS=videos EASG_BENCH_JUDGE=MODEL \\
    easg-bench lighteval custom MODEL tasks/video_model.py easg_bench_frames --custom-tasks tasks/easg_bench_tasks.py

MODEL is what `easg-bench run --model` takes: a folder or Hub id, vllm:ID, server:NAME@http://HOST/v1,
ray:COPIES*MODEL; options stand behind a question mark. A row that fails (no video, a prompt that is too long) has an
empty answer and its error in the details' `input`, beside the whole conversation with every frame's
file and second; it is not judged.

Nothing is kept in lighteval's own cache: it knows neither the frames nor that a row failed.
"""

from __future__ import annotations

import json
import logging
import types
from collections.abc import Sequence
from typing import Any

from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc
from tqdm import tqdm

from videoqa import benchmark
from videoqa.asking import Answer
from videoqa.engines import Engine, open_engine
from videoqa.errors import UserError
from videoqa.frames import VideoError
from videoqa.hosts.lighteval.tasks import policy, setting
from videoqa.videos import Videos, video_files

log = logging.getLogger(__name__)


class VideoModel(LightevalModel):
    """`config.model_name` is the engine's text."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self._engine: Engine | None = open_engine(config.model_name)
        self._cache = types.SimpleNamespace(_init_registry=lambda registry: None)  # lighteval calls it on every model

    @property
    def tokenizer(self) -> Any:
        return None

    @property
    def add_special_tokens(self) -> bool:
        return False

    @property
    def max_length(self) -> int:
        raise NotImplementedError("the engine knows its own limit; a prompt that is too long is its row's error")

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Answer the rows of all tasks, prompt by prompt and clip by clip."""
        if self._engine is None:
            raise RuntimeError("the model was given back after its answers")
        answers: dict[int, Answer] = {}
        rows = [doc.specific or {} for doc in docs]
        with tqdm(total=len(docs), desc="answers", unit="row") as bar:
            for track, prompt in dict.fromkeys((row["track"], row["prompt"]) for row in rows):
                mine = [i for i, row in enumerate(rows) if (row["track"], row["prompt"]) == (track, prompt)]
                longest = max(docs[i].generation_size or 1 for i in mine)
                way = benchmark.track(track).ways[prompt]
                videos = _videos(rows) if way.frames else None
                for k, answer in way.ask(self._engine, [rows[i] for i in mine], longest, videos):
                    answers[mine[k]] = answer
                    bar.update()
        for i, answer in answers.items():
            if answer.error:
                log.warning("no answer: %s: %s", rows[i]["id"], answer.error)
        return [_response(answers[i]) for i in range(len(docs))]

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        raise NotImplementedError("tasks/video_model.py answers questions; it gives no log-likelihoods of choices")

    def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
        raise NotImplementedError("tasks/video_model.py answers questions; it gives no perplexities")

    def cleanup(self) -> None:
        """Give the memory back before the judge is loaded."""
        import gc
        import sys

        self._engine = None
        gc.collect()
        if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()


def _videos(rows: Sequence[dict[str, Any]]) -> Videos:
    ends = {row["clip"]: row["clip_end_s"] for row in rows if row.get("clip_end_s") is not None}
    try:
        return Videos(video_files(setting("VIDEOS")), policy(), ends)
    except VideoError as error:
        raise UserError(f"EASG_BENCH_VIDEOS: {error}") from error


def _response(answer: Answer) -> ModelResponse:
    notes: dict[str, Any] = {"conversation": answer.conversation, "located": answer.located, "error": answer.error}
    notes |= {"finished": answer.finished, "warning": answer.warning}
    return ModelResponse(input=json.dumps(notes), text=[answer.text or ""], input_tokens=[], output_tokens=[[]])
