"""The questions that the Space shows: found by type, clip or words, with their clip's actions, picture and answers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.compute as pc
from leaderboard import Entry, table

import easg_bench
from videoqa.frames import Policy, VideoError, read_frames
from videoqa.rows import revision
from videoqa.videos import clip_ends, find_video, video_files

MOST = 200  # questions in one list


@dataclass(frozen=True)
class Action:
    """One annotated action of a clip, for the timeline."""

    text: str  # "put jug on table"
    start_s: float
    end_s: float
    role: str  # "before", "asked", "after" or "other"


@dataclass
class Questions:
    """A data set of questions and, where there is one, the folder of its videos."""

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    graphs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by clip, in order
    videos: dict[str, Path] = field(default_factory=dict)
    _revisions: dict[frozenset[str], str] = field(default_factory=dict)

    @classmethod
    def load(cls, data: str, videos: str = "") -> Questions:
        """Read a folder or Hub dataset repo."""
        rows = {row["id"]: row for row in easg_bench.load(data)}
        graphs: dict[str, list[dict[str, Any]]] = {}
        with contextlib.suppress(ValueError):  # a dataset of the authors' file has no graphs
            for graph in easg_bench.load(data, "graphs"):
                graphs.setdefault(graph["clip"], []).append(graph)
        return cls(rows, graphs, video_files(videos) if videos else {})

    def clips(self) -> list[str]:
        """The clips that have questions."""
        return sorted({row["clip"] for row in self.rows.values()})

    def find(self, kind: str | None, clip: str | None, words: str) -> list[tuple[str, str]]:
        """(text, id) of the questions of this type and clip whose question or answer holds all words."""
        wanted = words.casefold().split()
        return [
            (f"{row['question']} [{row['type']}]", row["id"])
            for row in self.rows.values()
            if (not kind or row["type"] == kind) and (not clip or row["clip"] == clip)
            if all(word in f"{row['question']} {row['answer']}".casefold() for word in wanted)
        ]

    def actions(self, row: dict[str, Any]) -> list[Action]:
        """The clip's actions in order; those that the question asks about, and their neighbours, have a role. A purpose
        question asks about every action with its object and has no neighbours."""
        graphs = self.graphs.get(row["clip"], [])
        shown = {e["graph"] for e in row["evidence"]}
        if row["frame"] is None:
            asked = {i for i, graph in enumerate(graphs) if graph["graph"] in shown}
            roles = dict.fromkeys(asked, "asked")
        else:
            # two actions of a clip can have one frame; the id then has the action's number in the clip
            number = row["id"].removeprefix(f"{row['clip']}:").split(":")[0]
            here = [i for i, g in enumerate(graphs) if g["pnr"] == row["frame"]]
            at = next((i for i in here if str(graphs[i]["index"]) == number), here[0] if here else -9)
            roles = {at - 1: "before", at: "asked", at + 1: "after"}
        return [
            Action(_told(graph), graph["start_s"], graph["end_s"], roles.get(i, "other"))
            for i, graph in enumerate(graphs)
        ]

    def picture(self, row: dict[str, Any], frame: int) -> tuple[Any, str]:
        """The RGB picture of one frame of the evidence (or None), and what there is to say about it."""
        seconds = next(e["seconds"] for e in row["evidence"] if e["frame"] == frame)
        if not self.videos:
            return None, "The video is not here: boxes on an empty frame, drawn as 16:9."
        try:
            ends = clip_ends(self.rows.values())
            source = find_video(self.videos, row["clip"], row["video"], row["clip_start_s"], ends.get(row["clip"]))
            if source.offset_s is None:
                return None, f"No picture: it is not known where {source.path.name} lies in the full video."
            at = seconds - source.offset_s - source.start_s
            frames = read_frames(source.path, Policy(seconds=(max(0.0, at),)), source.start_s)
        except (VideoError, ImportError) as error:
            return None, f"No picture: {error}"
        return frames.images[0], f"{source.path.name} at {seconds:.2f} s of the full video"

    def answers(self, row: dict[str, Any], entries: Sequence[Entry]) -> pd.DataFrame:
        """All models' answers to one question, by model. Entries of other questions are left out, by id and by the hash
        of what they were asked."""
        lines = []
        for entry in entries:
            if entry.answers is None or not self._answered(entry):
                continue
            answers = table(entry.answers)
            for line in answers.filter(pc.equal(answers["id"], row["id"])).to_pylist():
                lines.append(
                    {
                        "Model": entry.result.label,
                        "Answer": line["prediction"] or "(no answer)",
                        "Score": line["score"],
                        "Judge's reason": line["explanation"] or (line["status"] or "").replace("ok", ""),
                        "Judge": entry.result.scorer,
                    }
                )
        columns = ["Model", "Answer", "Score", "Judge's reason", "Judge"]
        return pd.DataFrame(sorted(lines, key=lambda one: (one["Model"], one["Judge"])), columns=columns)

    def _answered(self, entry: Entry) -> bool:
        """Whether this entry's run was on these very questions: ids may be the same where the wording is not. A run in
        two stages has the revision of all questions, and answers to those that look before or after."""
        assert entry.answers is not None
        ids = frozenset(table(entry.answers)["id"].to_pylist())
        if entry.result.kind == "two-stage" and len(self.rows) == entry.result.data.rows:
            ids = frozenset(self.rows)
        if ids not in self._revisions:
            self._revisions[ids] = revision([row for identifier, row in self.rows.items() if identifier in ids])
        return self._revisions[ids] == entry.result.data.revision


def _told(graph: dict[str, Any]) -> str:
    relations = (f"{r['relation']} {r['tail']}" for r in graph["relations"])
    words = [graph["verb"] or "(no action)", graph["object"] or "", *relations]
    return " ".join(word for word in words if word).replace("_", " ")
