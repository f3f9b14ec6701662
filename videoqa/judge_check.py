"""Is this judge fit to rate? It rates answers whose order is known without a human, and attacks (probes.py).

    easg-bench judge-check --judge JUDGE --data build/easg-bench --limit 30

A judge is fit when it rates ground truths above wrong answers, is not moved by length, emptiness or attacks, and can be
read. The limits are the constants below; `Report.reasons` says which one was missed and by how much.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from videoqa.judge import Judge, prompt
from videoqa.probes import ATTACKS, GRADED, HARD, KINDS, WRONG, Probe
from videoqa.reply import Verdict

MIN_AUC = 0.9  # of the ground truths over the wrong answers, by expected score; and over each of HARD
MAX_ATTACK_SUCCESS = 0.1  # of the attack that succeeds most often
MAX_PARAPHRASE_LOSS = 1.0  # points (steps of the rubric) that the ground truth may lose when it is put as a sentence
MAX_UNREADABLE = 0.02
MIN_MASS = 0.9  # mean probability of the allowed scores (mode dist)
MAX_SEED_DIFFERENCE = 1.0  # points between the scores of two seeds, on average (sampled modes)
MAX_OFF = 0.5  # points between the mean score of a kind of GRADED and the score that the rubric defines for it
TITLES = dict([*list(KINDS.items())[:2], *GRADED.items(), *list(KINDS.items())[2:]])  # right ones first


def rate(judge: Judge, asked: Sequence[Probe]) -> Iterator[tuple[int, Verdict]]:
    """The judge's verdict on each probe, with its index, as they are known: all in one call, so that the engine can
    share what their prompts have in common. Empty answers are sent like any other."""
    yield from judge.rate_prompts([prompt(judge.rubric, probe.item, judge.safe) for probe in asked])


def second_seed(judge: Judge) -> Judge | None:
    """The same judge with another seed, where its scores are sampled; None where they are not."""
    if judge.mode == "dist" or judge.sampling != "paper":
        return None
    return replace(judge, seed=(judge.rubric.sampling.seed if judge.seed is None else judge.seed) + 1)


@dataclass(frozen=True, slots=True)
class KindResult:
    """How one kind of answer was rated. What cannot be computed is None."""

    n: int
    scored: int
    mean: float | None  # of the score; in mode dist the expected one
    mean_most_likely: float | None  # mode dist only, as auc_most_likely
    auc: float | None  # how often a ground truth is above such an answer, ties counting half
    auc_most_likely: float | None
    gain: float | None = None  # attacks only: mean points above the same wrong answer without the attack
    success: float | None = None  # attacks only: see `succeeds`
    expected: float | None = None  # the score that the rubric defines for such an answer, where it does


@dataclass(frozen=True, slots=True)
class Report:
    """What the check check."""

    judge: str
    rows: int
    calls: int
    kinds: dict[str, KindResult]
    auc: float | None  # ground truth over the plain wrong answers, by expected score
    auc_most_likely: float | None
    attack_success: float | None  # of the attack that succeeds most often
    unreadable: float | None  # share of the replies
    errors: int  # calls that failed; in no other figure
    mass: float | None  # mode dist
    seed_agreement: float | None  # sampled modes: share of equal scores
    seed_difference: float | None  # sampled modes: mean absolute difference
    point: float  # the step between two allowed scores of the rubric, on average

    @property
    def reasons(self) -> list[str]:
        """What keeps the judge from being fit; empty for one that is."""
        return list(_reasons(self))

    def as_dict(self) -> dict[str, Any]:
        """For a JSON file."""
        return {"fit": not self.reasons, "reasons": self.reasons, "limits": LIMITS, **asdict(self)}


LIMITS = {
    "min_auc": MIN_AUC,
    "max_attack_success": MAX_ATTACK_SUCCESS,
    "max_paraphrase_loss": MAX_PARAPHRASE_LOSS,
    "max_unreadable": MAX_UNREADABLE,
    "min_mass": MIN_MASS,
    "max_seed_difference": MAX_SEED_DIFFERENCE,
    "max_off": MAX_OFF,
}


def succeeds(attack: float, wrong: float, truth: float, point: float = 1.0) -> bool:
    """Whether an attack paid off: its answer gets more than a point above the same wrong answer without the attack, and
    is lifted at least half of the way to the ground truth. `point` is a ninth of the rubric's scale."""
    return attack - wrong > point and attack - wrong >= (truth - wrong) / 2


def report(judge: Judge, asked: Sequence[Probe], verdicts: Sequence[Verdict], second: Sequence[Verdict] = ()) -> Report:
    """Sum up: `verdicts` belong to `asked` one by one, `second` are those of another seed where there are any."""
    by_kind: dict[str, dict[str, Verdict]] = {kind: {} for kind in TITLES}
    for probe, verdict in zip(asked, verdicts, strict=True):
        by_kind[probe.kind][probe.id] = verdict
    scores = {kind: {k: v.score for k, v in got.items() if v.score is not None} for kind, got in by_kind.items()}
    likely = {
        kind: {k: v.most_likely for k, v in got.items() if v.most_likely is not None} for kind, got in by_kind.items()
    }
    values = judge.rubric.values
    point = (values[-1] - values[0]) / (len(values) - 1)
    lift = (values[-1] - values[0]) / 9  # a point of a scale from 1 to 10; scales of few scores have wider steps
    built_on = {(probe.kind, probe.id): probe.base for probe in asked if probe.base}
    expected = {probe.kind: probe.expected for probe in asked}
    kinds = {}
    for kind, got in by_kind.items():
        if not got:
            continue
        # of each attack: its own score, that of the answer it was built on, that of the ground truth
        tried = [
            (score, scores[base][k], scores["truth"][k])
            for k, score in scores[kind].items()
            if (base := built_on.get((kind, k))) and k in scores[base] and k in scores["truth"]
        ]
        kinds[kind] = KindResult(
            n=len(got),
            scored=len(scores[kind]),
            mean=_mean(scores[kind].values()),
            mean_most_likely=_mean(likely[kind].values()),
            auc=None if kind == "truth" else auc(scores["truth"].values(), scores[kind].values()),
            auc_most_likely=None if kind == "truth" else auc(likely["truth"].values(), likely[kind].values()),
            gain=_mean(attack - wrong for attack, wrong, _ in tried),
            success=_mean(float(succeeds(*three, point=lift)) for three in tried),
            expected=expected[kind],
        )
    errors = sum(v.status == "judge_error" for v in verdicts)
    silent = sum(v.score is None and v.status != "judge_error" for v in verdicts)
    pairs = [
        (a.score, b.score)
        for a, b in zip(verdicts, second, strict=bool(second))
        if a.score is not None and b.score is not None
    ]
    successes = [result.success for result in kinds.values() if result.success is not None]
    return Report(
        judge=judge.key,
        rows=len({probe.id for probe in asked}),
        calls=len(asked),
        kinds=kinds,
        auc=auc(scores["truth"].values(), [s for kind in WRONG for s in scores[kind].values()]),
        auc_most_likely=auc(likely["truth"].values(), [s for kind in WRONG for s in likely[kind].values()]),
        attack_success=max(successes, default=None),
        unreadable=silent / (len(asked) - errors) if len(asked) > errors else None,
        errors=errors,
        mass=_mean(v.mass for v in verdicts if v.mass is not None),
        seed_agreement=_mean(float(a == b) for a, b in pairs),
        seed_difference=_mean(abs(a - b) for a, b in pairs),
        point=point,
    )


def auc(right: Iterable[float], wrong: Iterable[float]) -> float | None:
    """Probability that a random score of `right` is above one of `wrong`, ties counting half: 0.5 is chance. None when
    one side is empty."""
    from scipy.stats import mannwhitneyu

    high, low = list(right), list(wrong)
    if not high or not low:
        return None
    return float(mannwhitneyu(high, low, method="asymptotic").statistic) / (len(high) * len(low))


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return math.fsum(known) / len(known) if known else None


def _reasons(check: Report) -> Iterator[str]:
    """What keeps the judge from being fit, in words."""
    if check.auc is None:
        yield "ground truths or wrong answers have no readable score at all"
    elif check.auc < MIN_AUC:
        yield f"it hardly tells right from wrong: AUC {check.auc:.2f}, at least {MIN_AUC} is needed (chance is 0.5)"
    for kind in HARD:
        if kind in check.kinds and (value := check.kinds[kind].auc) is not None and value < MIN_AUC:
            yield f"it is taken in by {KINDS[kind]}: AUC of the truth over it {value:.2f}, at least {MIN_AUC} is needed"
    truth, sentence = (check.kinds[k].mean if k in check.kinds else None for k in ("truth", "paraphrase"))
    if truth is not None and sentence is not None and truth - sentence > MAX_PARAPHRASE_LOSS * check.point:
        yield (
            f"the ground truth put as a sentence loses {truth - sentence:.2f} points, at most "
            f"{MAX_PARAPHRASE_LOSS * check.point:g} is allowed"
        )
    for kind in GRADED:
        one = check.kinds.get(kind)
        if one and None not in (one.mean, one.expected) and abs(one.mean - one.expected) > MAX_OFF * check.point:  # type: ignore[operator]
            yield f"{GRADED[kind]}: it gives {one.mean:.2f}, by the rubric it is {one.expected:g}"
    for kind in ATTACKS:
        if kind in check.kinds and (check.kinds[kind].success or 0) > MAX_ATTACK_SUCCESS:
            yield (
                f"{KINDS[kind]}: succeeds in {check.kinds[kind].success:.0%} of the rows, at most "
                f"{MAX_ATTACK_SUCCESS:.0%} is allowed"
            )
    if check.unreadable is None:
        yield f"all {check.calls} calls failed"
    elif check.unreadable > MAX_UNREADABLE:
        yield f"{check.unreadable:.1%} of its replies cannot be read, at most {MAX_UNREADABLE:.0%} is allowed"
    if check.mass is not None and check.mass < MIN_MASS:
        yield f"the allowed scores have a probability of {check.mass:.2f} together, at least {MIN_MASS} is needed"
    if check.seed_difference is not None and check.seed_difference > MAX_SEED_DIFFERENCE * check.point:
        yield (
            f"two seeds differ by {check.seed_difference:.2f} points on average, at most "
            f"{MAX_SEED_DIFFERENCE * check.point:g} is allowed"
        )


def table(check: Report) -> Any:
    """The figures by kind of answer, as a rich table."""
    from rich.table import Table

    table = Table(title=f"{check.judge}\n{check.rows} rows, {check.calls} ratings")
    table.add_column("answer", overflow="fold")
    graded = any(result.expected is not None for result in check.kinds.values())
    expected = ("by the rubric",) if graded else ()
    for name in ("n", "scored", *expected, "mean", "most likely", "AUC", "AUC most likely", "gain", "attack success"):
        table.add_column(name, justify="right", overflow="fold")
    for kind, result in check.kinds.items():
        figures = (result.mean, result.mean_most_likely, result.auc, result.auc_most_likely, result.gain)
        success = "-" if result.success is None else f"{result.success:.0%}"
        defined = (_figure(result.expected),) if graded else ()
        table.add_row(TITLES[kind], str(result.n), str(result.scored), *defined, *map(_figure, figures), success)
    return table


def summary(check: Report) -> str:
    """The overall figures, what they mean, and the verdict."""
    lines = [
        f"right over wrong: AUC {_figure(check.auc)} by score, {_figure(check.auc_most_likely)} by most likely score",
        "attack success: the answer gains a ninth of the scale on the same wrong one, and half of the way to the truth",
    ]
    if check.unreadable is not None:
        lines.append(f"unreadable: {check.unreadable:.1%}")
    if check.mass is not None:
        lines.append(f"mass on the allowed scores: {check.mass:.3f}")
    if check.seed_agreement is not None:
        apart = _figure(check.seed_difference)
        lines.append(f"two seeds: {check.seed_agreement:.0%} equal scores, {apart} points apart on average")
    if check.errors:
        lines.append(f"failed calls, left out above: {check.errors} of {check.calls}")
    lines.append("verdict: fit" if not check.reasons else "verdict: NOT fit")
    return "\n".join([*lines, *(f"  - {reason}" for reason in check.reasons)])


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
