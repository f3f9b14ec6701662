"""The questions of one track that the Space shows: found by type, clip or words, with their clip's actions, picture and
answers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from columns import Said
from leaderboard import Entry, table

import easg_bench
from videoqa.benchmark import Track, track, track_of
from videoqa.frames import Policy, VideoError, read_frames
from videoqa.rows import questions as count
from videoqa.rows import revision
from videoqa.videos import clip_ends, find_video, video_files

MOST = 200  # questions in one list
LONGEST_SEARCH, MOST_WORDS = 200, 10  # characters and words of a search that count


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

    track: Track = field(default_factory=track)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    graphs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by clip, in order; where there are any
    videos: dict[str, Path] = field(default_factory=dict)
    revision: str = ""
    _revisions: dict[frozenset[str], str] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)  # what a search looks at

    @property
    def size(self) -> int:
        """How many questions there are, however often each is asked."""
        return count(self.rows.values())

    @classmethod
    def load(cls, data: str, videos: str = "", of_track: Track | None = None) -> Questions:
        """Read a folder or Hub dataset repo, of this track (None: the one that it says it is of)."""
        of_track = of_track or track_of(data)
        rows = {row["id"]: dict(row) for row in of_track.load(data, of_track.configs[0])}
        graphs: dict[str, list[dict[str, Any]]] = {}
        if of_track.first:
            with contextlib.suppress(ValueError):  # a dataset of the authors' file has no graphs
                for graph in easg_bench.load(data, "graphs"):
                    graphs.setdefault(graph["clip"], []).append(graph)
        found = video_files(videos) if videos else {}
        return cls(of_track, rows, graphs, found, revision(list(rows.values())))

    def clips(self) -> list[str]:
        """The clips that have questions."""
        return sorted({row["clip"] for row in self.rows.values()})

    def find(self, kind: str | None, clip: str | None, words: str) -> list[tuple[str, str]]:
        """(text, id) of the questions of this type and clip whose question, answer or options hold all words."""
        if not self._texts:
            self._texts = {
                i: " ".join([row["question"], row["answer"] or "", *(row["choices"] or ())]).casefold()
                for i, row in self.rows.items()
            }
        wanted = words[:LONGEST_SEARCH].casefold().split()[:MOST_WORDS]
        return [
            (f"{row['question']} [{row['type']}]" if len(self.track.types) > 1 else row["question"], row["id"])
            for row in self.rows.values()
            if not row.get("group") or row["order"][0] == 0  # of a question's arrangements the first
            if (not kind or row["type"] == kind) and (not clip or row["clip"] == clip)
            if all(word in self._texts[row["id"]] for word in wanted)
        ]

    def actions(self, row: dict[str, Any]) -> list[Action]:
        """The clip's actions in order; those that the question asks about, and their neighbours, have a role. A purpose
        question asks about every action with its object and has no neighbours."""
        graphs = self.graphs.get(row["clip"], [])
        marked = {e["graph"] for e in row["evidence"] or ()}
        if row["frame"] is None:
            asked = {i for i, graph in enumerate(graphs) if graph["graph"] in marked}
            roles = dict.fromkeys(asked, "asked")
        else:
            # two actions of a clip can have one frame; the id then has the action's number in the clip
            number = row["id"].removeprefix(f"{row['clip']}:").split(":")[0]
            here = [i for i, g in enumerate(graphs) if g["pnr"] == row["frame"]]
            at = next((i for i in here if str(graphs[i]["index"]) == number), here[0] if here else -9)
            roles = {at - 1: "before", at: "asked", at + 1: "after"}
        return [
            Action(_named(graph), graph["start_s"], graph["end_s"], roles.get(i, "other"))
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

    def answers(self, row: dict[str, Any], entries: Sequence[Entry]) -> list[Said]:
        """All models' answers to one question, by model. Entries of other questions are left out, by id and by the hash
        of what they were asked."""
        found = []
        for entry in entries:
            if entry.result.track != self.track.name or entry.answers is None or not self._answered(entry):
                continue
            answers = table(entry.answers)
            for line in answers.filter(pc.equal(answers["id"], row.get("group") or row["id"])).to_pylist():
                reason = line["explanation"] or (line["status"] or "").replace("ok", "")
                answer = line["prediction"] or "(no answer)"
                steps = line.get("steps") or ""
                found.append(Said(entry.result.label, answer, line["score"], reason, entry.result.scorer, steps))
        return sorted(found, key=lambda said: (said.model, said.scorer))

    def _answered(self, entry: Entry) -> bool:
        """Whether this entry's run was on these very questions: ids may be the same where the wording is not. A run of
        a way that asks some types only has the revision of all questions, and answers to those that it asked."""
        assert entry.answers is not None
        way = self.track.ways.get(entry.result.prompt)
        if way and way.types and self.size == entry.result.data.rows:
            return entry.result.data.revision == self.revision
        ids = frozenset(table(entry.answers)["id"].to_pylist())
        if ids not in self._revisions:
            self._revisions[ids] = revision(
                [row for identifier, row in self.rows.items() if (row.get("group") or identifier) in ids]
            )
        return self._revisions[ids] == entry.result.data.revision


def _named(graph: dict[str, Any]) -> str:
    relations = (f"{r['relation']} {r['tail']}" for r in graph["relations"])
    words = [graph["verb"] or "(no action)", graph["object"] or "", *relations]
    return " ".join(word for word in words if word).replace("_", " ")
