"""Where each clip starts in its full video, from the two frame numberings of the EASG release.

The annotations number frames of the full video; the files `easg_train.pkl` and `easg_val.pkl` of fpv-iplab/EASG number
the same frames within the clip, in the name of each graph: clip and point of no return, then its annotations by uid:

    annotations        49d65bed-...: graph 258ce822...  pnr 27113
    easg_val.pkl       "49d65bed-9479-427e-bb68-0c9a18560ac6_000353": ... "258ce822..."
    clip_spans.json    "49d65bed-...": {"start_frame": 26760, "first_frame": 27105, "last_frame": 35927}

The files are pickles. They are never unpickled, which would run code in them: the names are plain text in the bytes
and are recognized by their form.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from builder.easg.records import Clip
from builder.errors import BuildError

# The name of a graph is clip and frame (`{:06d}`); the uid of an annotation is 64 hex digits.
_NAMES = re.compile(rb"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_(\d{6,})|([0-9a-f]{64})")


def clip_spans(clips: Sequence[Clip], files: Sequence[Path]) -> tuple[dict[str, dict[str, int]], list[str]]:
    """{clip: {start_frame, first_frame, last_frame}} in frames of the full video, and warnings for people.

    `start_frame` is the difference of the two numberings that most graphs of the clip agree on; `first_frame` and
    `last_frame` are the earliest and the latest `pre` frame. A clip that no file numbers is left out with a warning.
    """
    within: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for path in files:
        for clip_uid, uid, frame in _clip_frames(path):
            within[clip_uid][uid] = frame
    spans, warnings = {}, []
    for clip in clips:
        known = within.get(clip.uid, {})
        starts = Counter(graph.frames["pnr"] - known[graph.uid] for graph in clip.graphs if graph.uid in known)
        if not starts:
            warnings.append(f"clip {clip.uid}: no graph of it is in {', '.join(map(str, files))}; its start is unknown")
            continue
        start, agree = max(starts.items(), key=lambda item: (item[1], -item[0]))
        if len(starts) > 1:
            warnings.append(f"clip {clip.uid}: starts at frame {start} by {agree} of {starts.total()} graphs")
        if start < 0:
            warnings.append(f"clip {clip.uid}: it would start at frame {start}; its start is unknown")
            continue
        before = [graph.frames["pre"] for graph in clip.graphs]
        spans[clip.uid] = {"start_frame": start, "first_frame": min(before), "last_frame": max(before)}
    if not spans:
        raise BuildError(f"{', '.join(map(str, files))}: no clip of the annotations is numbered there")
    return spans, warnings


def _clip_frames(path: Path) -> list[tuple[str, str, int]]:
    """(clip, graph uid, frame of its point of no return within the clip) of every annotation in the file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BuildError(f"{path}: cannot be read: {error.strerror}") from None
    frames, clip, frame = [], "", -1
    for name in _NAMES.finditer(data):
        if name[1]:
            clip, frame = name[1].decode(), int(name[2])
        elif clip:
            frames.append((clip, name[3].decode(), frame))
    if not frames:
        raise BuildError(f"{path}: no graph names (CLIP_FRAME) in it; is this easg_train.pkl or easg_val.pkl?")
    return frames
