"""Temporal certificates: how much of a clip one has to see to be sure of an answer (EgoSchema paper, section 3).

A certificate is the least set of sub-clips that convinces a verifier. The annotations are one CSV file, a line for each
sub-clip, in seconds of the clip; the column `dataset` may be missing:

    question,annotator,start,end,clip_length,dataset
    q1,ann,12.5,40,180,ours
    q1,ann,43.0,61,180,ours

Two parts whose closest ends are less than 5 s apart are one, and the gap counts; a part is at least 0.1 s long; the
length of the certificate is the sum. Here: 48.5 s. A question's length is the median of its annotators', a dataset's
the median of its questions'.
"""

from __future__ import annotations

import csv
import math
import statistics
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.errors import BuildError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOOR_S, MERGE_S = 0.1, 5.0  # of the paper, as the next two
CURATED_S = 30.0  # a question is kept from this length on; the paper prints both "at least" and "more than"
CLASSES_S = ((1.0, "short"), (10.0, "long-form"), (100.0, "very long-form"))
COLUMNS = ("question", "annotator", "start", "end", "clip_length")
# The paper's Figure 3: EgoSchema about 100 s in clips of 180 s; the second, LVU, is 5.7 times shorter.
PAPER_S, PAPER_CLIP_S, PAPER_SECOND = 100.0, 180.0, 5.7

Span = tuple[float, float]


class CertificateError(BuildError):
    """Sub-clips that cannot be."""


@dataclass(frozen=True, slots=True)
class SubClip:
    """One line of the file; seconds of the clip."""

    dataset: str
    question: str
    annotator: str
    start: float
    end: float
    clip_length: float


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the certificate of each annotator."""

    id: str
    clip_length: float
    certificates: Mapping[str, tuple[Span, ...]]

    @property
    def length(self) -> float:
        """Seconds; the median of the annotators."""
        return statistics.median(length(spans) for spans in self.certificates.values())

    @property
    def agreement(self) -> float | None:
        """IoU of two annotators, the mean of all pairs; None where there is but one."""
        pairs = [iou(a, b) for a, b in combinations(self.certificates.values(), 2)]
        return statistics.fmean(pairs) if pairs else None


@dataclass(frozen=True, slots=True)
class Summary:
    """A dataset's certificates, in seconds."""

    questions: int
    quartiles: tuple[float, float, float]  # the one in the middle is the dataset's value
    curated: int  # questions of at least the threshold
    agreement: float | None  # mean IoU of the questions with several annotators
    agreed: int  # how many these are
    clip_length: float  # median


# -- from sub-clips to lengths ----------------------------------------------------------------------------------------


def certificate(
    spans: Sequence[Span], clip_length: float, *, floor: float = FLOOR_S, merge: float = MERGE_S
) -> tuple[Span, ...]:
    """The parts of the certificate, in order: close sub-clips merged, then none shorter than the floor (a longer part
    reaches further on, or further back at the clip's end). Raises CertificateError for spans that cannot be."""
    if not spans:
        raise CertificateError("no sub-clip; a certificate has at least one")
    for start, end in spans:
        if fault := _fault(start, end, clip_length):
            raise CertificateError(fault)
    parts: list[Span] = []
    for start, end in sorted(spans):
        # 15.1 - 10.1 is a little below 5: microseconds decide, not the last bits
        if parts and round(start - parts[-1][1], 6) < merge:
            parts[-1] = parts[-1][0], max(end, parts[-1][1])
        else:
            parts.append((start, end))
    return tuple(_at_least(floor, part, clip_length) for part in parts)


def length(spans: Sequence[Span]) -> float:
    """Seconds of a certificate, without the noise of the last bits."""
    return round(math.fsum(end - start for start, end in spans), 6)


def iou(some: Sequence[Span], others: Sequence[Span]) -> float:
    """Seconds that both certificates have over seconds that either has; each one's parts are apart."""
    both = math.fsum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in some for b in others)
    return both / (length(some) + length(others) - both)


def curated(seconds: float, threshold: float = CURATED_S) -> bool:
    """Whether a certificate is long enough for a question to be kept; 30.0 is."""
    return round(seconds, 6) >= threshold


def _at_least(floor: float, part: Span, clip_length: float) -> Span:
    if part[1] - part[0] >= floor:
        return part
    end = min(part[0] + floor, max(clip_length, floor))
    return end - floor, end


def _fault(start: float, end: float, clip_length: float) -> str:
    if not all(map(math.isfinite, (start, end, clip_length))):
        return f"{start} to {end} s of a clip of {clip_length} s: these are no times"
    if clip_length <= 0:
        return f"a clip of {clip_length} s"
    if start < 0:
        return f"{start} to {end} s begins before the clip"
    if end < start:
        return f"{start} to {end} s is reversed"
    return f"{start} to {end} s reaches beyond the clip, {clip_length} s" if end > clip_length else ""


# -- the file ---------------------------------------------------------------------------------------------------------


def read(path: Path) -> list[SubClip]:
    """The lines of a CSV file. A file without the column `dataset` is one dataset, named after the file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise CertificateError(f"{path}: no column {', '.join(missing)}; the columns are {', '.join(COLUMNS)}")
            sub_clips = [_sub_clip(row, path, reader.line_num) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CertificateError(f"{path}: cannot be read: {error}") from None
    if not sub_clips:
        raise CertificateError(f"{path}: no sub-clips")
    return sub_clips


def _sub_clip(row: Mapping[str | None, Any], path: Path, line: int) -> SubClip:
    where = f"{path}, line {line}"
    if None in row or None in row.values():
        raise CertificateError(f"{where}: has another number of values than there are columns")
    texts = {str(name): str(value).strip() for name, value in row.items()}
    numbers = {}
    for name in ("start", "end", "clip_length"):
        try:
            numbers[name] = float(texts[name])
        except ValueError:
            raise CertificateError(f"{where}: {name} is {texts[name]!r}; it is a number of seconds") from None
    for name in ("question", "annotator", "dataset"):
        if texts.get(name) == "":
            raise CertificateError(f"{where}: {name} is empty")
    if fault := _fault(numbers["start"], numbers["end"], numbers["clip_length"]):
        raise CertificateError(f"{where}: {fault}")
    return SubClip(texts.get("dataset", path.stem), texts["question"], texts["annotator"], **numbers)


def questions(
    sub_clips: Sequence[SubClip], *, floor: float = FLOOR_S, merge: float = MERGE_S
) -> dict[str, list[Question]]:
    """The questions of each dataset, in the order of the file."""
    if not (math.isfinite(floor) and floor > 0 and math.isfinite(merge) and merge >= 0):
        raise CertificateError(f"floor {floor} and merge {merge}: the floor is above 0 s, the gap to merge 0 s or more")
    spans: defaultdict[tuple[str, str], defaultdict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
    clips: dict[tuple[str, str], float] = {}
    for sub_clip in sub_clips:
        key = sub_clip.dataset, sub_clip.question
        spans[key][sub_clip.annotator].append((sub_clip.start, sub_clip.end))
        if clips.setdefault(key, sub_clip.clip_length) != sub_clip.clip_length:
            lengths = f"{clips[key]} and {sub_clip.clip_length} s"
            raise CertificateError(f"question {sub_clip.question} of {sub_clip.dataset}: its clip is {lengths} long")
    found: defaultdict[str, list[Question]] = defaultdict(list)
    for (dataset, id), of_annotators in spans.items():
        clip = clips[dataset, id]
        parts = {who: certificate(some, clip, floor=floor, merge=merge) for who, some in of_annotators.items()}
        found[dataset].append(Question(id, clip, parts))
    return dict(found)


def summary(of_dataset: Sequence[Question], threshold: float = CURATED_S) -> Summary:
    """A dataset in numbers; quartiles by linear interpolation between the questions."""
    lengths = sorted(question.length for question in of_dataset)
    quartiles = statistics.quantiles(lengths, n=4, method="inclusive") if len(lengths) > 1 else lengths * 3
    agreements = [question.agreement for question in of_dataset if question.agreement is not None]
    return Summary(
        questions=len(lengths),
        quartiles=(quartiles[0], quartiles[1], quartiles[2]),
        curated=sum(curated(seconds, threshold) for seconds in lengths),
        agreement=statistics.fmean(agreements) if agreements else None,
        agreed=len(agreements),
        clip_length=statistics.median(question.clip_length for question in of_dataset),
    )


def text(datasets: Mapping[str, Sequence[Question]], threshold: float = CURATED_S) -> str:
    """The summaries for a terminal."""
    width = max(len("dataset"), *(len(name) for name in datasets))
    lines = [f"{'dataset':<{width}}  questions  25%     median  75%     from {threshold:g} s  IoU of two annotators"]
    for name, of_dataset in datasets.items():
        one = summary(of_dataset, threshold)
        quartiles = "  ".join(f"{seconds:<6.1f}" for seconds in one.quartiles)
        share = f"{one.curated} ({one.curated / one.questions:.0%})"
        agreed = "one annotator" if one.agreement is None else f"{one.agreement:.1%} on {one.agreed}"
        lines.append(
            f"{name:<{width}}  {one.questions:>9}  {quartiles}  {share:<{len(f'from {threshold:g} s')}}  {agreed}"
        )
    return "\n".join(lines)


# -- the picture ------------------------------------------------------------------------------------------------------

GREY, INK, SOFT, ORANGE = "#9aa0a6", "#202124", "#5f6368", "#e0803a"
COLOURS = ("#2f6db3", "#3c8d5a", "#8c5aa8", "#b3453a", "#5f6368")
APART = 1.12  # factor between datasets of one clip length


def draw(datasets: Mapping[str, Sequence[Question]], path: Path) -> None:
    """Write a PNG of certificate length against clip length, after the paper's Figure 3: a dot for each question, the
    median with its quartiles for each dataset, and what the paper found. The same questions give the same bytes."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style: Any = {
        **matplotlib.rcParamsDefault,
        "font.family": "DejaVu Sans",  # comes with matplotlib
        "font.size": 11,
        "text.parse_math": False,  # a name may hold dollars
        "axes.edgecolor": GREY,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
    }
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a name may hold any script
        figure = Figure(figsize=(9.6, 7.2), dpi=125)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0.085, 0.1, 0.785, 0.81))
        figure.text(0.085, 0.945, "How much of a clip a question asks for", size=14, weight="bold", color=INK)
        _frame(axes, datasets)
        _paper(axes)
        places: Counter[float] = Counter([PAPER_CLIP_S])
        for number, (name, of_dataset) in enumerate(datasets.items()):
            one = summary(of_dataset)
            _dataset(axes, name, of_dataset, one, COLOURS[number % len(COLOURS)], APART ** places[one.clip_length])
            places[one.clip_length] += 1
        axes.legend(loc="upper left", frameon=False, fontsize=10, labelcolor=INK, handletextpad=0.6)
        figure.savefig(path, format="png", metadata={"Software": None})


def _frame(axes: Axes, datasets: Mapping[str, Sequence[Question]]) -> None:
    """Logarithmic axes, the classes of the paper, and the part where no certificate can be."""
    from matplotlib.ticker import LogLocator

    every = [question for of_dataset in datasets.values() for question in of_dataset]
    clips = [PAPER_CLIP_S, *(question.clip_length for question in every)]
    lengths = [PAPER_S, *(question.length for question in every)]
    left, right = min(min(clips) / 2, 4.0), max(clips) * 2.2
    bottom, top = min(0.5, min(lengths) / 1.6), right * 1.5
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    axes.fill_between([left, right], [left, right], [top, top], color="#f1f3f4", linewidth=0, zorder=0)
    axes.plot([left, right], [left, right], color=GREY, linewidth=1, zorder=1)
    at_the_right: Any = {"textcoords": "offset points", "size": 9, "color": SOFT}
    for seconds, name in CLASSES_S:
        axes.axhline(seconds, color="#dadce0", linewidth=0.9, zorder=0.5)
        note = f"{name},\nabout {seconds:g} s"
        axes.annotate(note, (right, seconds), xytext=(6, 0), va="center", annotation_clip=False, **at_the_right)
    axes.annotate("longer than the clip", (left, 3 * left), xytext=(8, 0), **at_the_right)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xlabel("length of the clip, seconds (datasets of one length are drawn beside each other)")
    axes.set_ylabel("length of the certificate, seconds")


def _paper(axes: Axes) -> None:
    """EgoSchema, and the second dataset of the paper, of which only the certificate's length is known here."""
    second = PAPER_S / PAPER_SECOND
    axes.axhline(second, color=ORANGE, linewidth=1.2, linestyle=(0, (5, 3)), zorder=1)
    note = f"LVU, second in the paper:\n{second:.1f} s, {PAPER_SECOND:g} times shorter"
    where = axes.get_xlim()[1], second
    axes.annotate(
        note, where, xytext=(-4, -5), textcoords="offset points", ha="right", va="top", size=9, color="#b35c1e"
    )
    label = f"EgoSchema in the paper: about {PAPER_S:g} s of {PAPER_CLIP_S:g}"
    axes.plot(PAPER_CLIP_S, PAPER_S, "D", markersize=9, color=ORANGE, markeredgecolor="white", label=label, zorder=5)


def _dataset(axes: Axes, name: str, of_dataset: Sequence[Question], one: Summary, colour: str, aside: float) -> None:
    low, median, high = one.quartiles
    # dots of one clip length are spread a little, always in the same way
    spread = [
        question.clip_length * aside * 1.045 ** (2 * (k * 0.618 % 1) - 1) for k, question in enumerate(of_dataset)
    ]
    lengths = [question.length for question in of_dataset]
    axes.plot(spread, lengths, "o", markersize=4.5, color=colour, alpha=0.3, markeredgewidth=0, zorder=2)
    shown = name if len(name) <= 30 else f"{name[:29]}…"
    number = "1 question" if one.questions == 1 else f"{one.questions:,} questions"
    place = one.clip_length * aside
    axes.plot([place, place], [low, high], color=colour, linewidth=2, solid_capstyle="butt", zorder=3)
    axes.plot(
        place,
        median,
        "o",
        markersize=9,
        color=colour,
        markeredgecolor="white",
        zorder=4,
        label=f"{shown}: median {median:.1f} s, quartiles {low:.1f} to {high:.1f} ({number})",
    )
