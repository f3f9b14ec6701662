"""builder/egoschema/certificates.py: sub-clips -> lengths, agreement, and the picture."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from builder.egoschema.certificates import (
    CertificateError,
    Question,
    SubClip,
    certificate,
    curated,
    draw,
    iou,
    length,
    questions,
    read,
    summary,
    text,
)

HEAD = "question,annotator,start,end,clip_length\n"


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([(10, 20), (24.999, 30)], 20.0),  # gap 4.999: it counts
        ([(10, 20), (25, 30)], 15.0),  # gap 5.0: it does not
        ([(0, 10.1), (15.1, 20)], 15.0),  # 15.1 - 10.1 is 4.999999999999999 in floats
        ([(25, 30), (10, 20)], 15.0),  # in any order
        ([(10, 40), (15, 20)], 30.0),  # nested
        ([(10, 20), (20, 30)], 20.0),  # touching
        ([(10, 20), (15, 30)], 20.0),  # overlapping
        ([(10, 20), (10, 20)], 10.0),  # twice
        ([(10, 12), (16, 18), (22, 24)], 14.0),  # a chain
        ([(10, 40), (12, 14), (44, 50)], 40.0),  # the closest end is that of the longer part
        ([(10, 10)], 0.1),  # the floor
        ([(10, 10.05)], 0.1),
        ([(10, 10), (14, 14)], 4.0),  # merged before the floor
        ([(10, 10), (15, 15)], 0.2),
        ([(180, 180)], 0.1),  # at the end of the clip
        ([(0, 180)], 180.0),
    ],
)
def test_the_length_of_a_certificate(spans: list[tuple[float, float]], seconds: float) -> None:
    parts = certificate(spans, 180)
    assert length(parts) == seconds
    assert all(0 <= start < end <= 180 for start, end in parts)


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ((20, 10), "20 to 10 s is reversed"),
        ((170, 181), "170 to 181 s reaches beyond the clip, 180 s"),
        ((-1, 10), "-1 to 10 s begins before the clip"),
        ((float("nan"), 10), "these are no times"),
        ((0, float("inf")), "these are no times"),
    ],
)
def test_a_span_that_cannot_be_is_named(span: tuple[float, float], message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        certificate([(0, 10), span], 180)


def test_a_certificate_has_at_least_one_sub_clip() -> None:
    with pytest.raises(CertificateError, match="no sub-clip"):
        certificate([], 180)


def test_floor_and_gap_can_be_set() -> None:
    assert length(certificate([(10, 20), (25, 30)], 180, merge=6)) == 20.0
    assert length(certificate([(10, 20), (20, 30)], 180, merge=0)) == 20.0
    assert length(certificate([(10, 10)], 180, floor=2)) == 2.0
    with pytest.raises(CertificateError, match="floor -1 and merge"):
        questions([SubClip("d", "q", "a", 0, 1, 180)], floor=-1)


@pytest.mark.parametrize(("seconds", "kept"), [(29.999, False), (30.0, True), (30.001, True)])
def test_thirty_seconds_are_enough(seconds: float, kept: bool) -> None:
    assert curated(seconds) is kept


def test_agreement_is_the_seconds_in_common_over_all() -> None:
    assert iou([(0, 10)], [(0, 10)]) == 1.0
    assert iou([(0, 10)], [(5, 15)]) == pytest.approx(1 / 3)
    assert iou([(0, 10)], [(20, 30)]) == 0.0
    assert iou([(0, 10), (20, 30)], [(5, 25)]) == pytest.approx(1 / 3)
    question = Question("q", 180, {"a": ((0, 10),), "b": ((0, 10),), "c": ((20, 30),)})
    assert question.agreement == pytest.approx(1 / 3)
    assert Question("q", 180, {"a": ((0, 10),)}).agreement is None


def test_a_question_is_the_median_of_its_annotators_and_a_dataset_of_its_questions() -> None:
    sub_clips = [
        *[SubClip("d", "q1", who, 0, end, 180) for who, end in (("a", 10), ("b", 20), ("c", 90))],
        SubClip("d", "q2", "a", 0, 30, 180),
        SubClip("d", "q3", "a", 0, 40, 180),
    ]
    found = questions(sub_clips)
    assert [question.length for question in found["d"]] == [20.0, 30.0, 40.0]
    one = summary(found["d"])
    assert (one.questions, one.quartiles, one.curated, one.agreed, one.clip_length) == (
        3,
        (25.0, 30.0, 35.0),
        2,
        1,
        180,
    )
    assert one.agreement == pytest.approx((10 / 20 + 10 / 90 + 20 / 90) / 3)
    assert summary(found["d"][:1]).quartiles == (20.0, 20.0, 20.0)
    assert text(found).splitlines() == [
        "dataset  questions  25%     median  75%     from 30 s  IoU of two annotators",
        "d                3  25.0    30.0    35.0    2 (67%)    27.8% on 1",
    ]


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "ours.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_file_is_one_dataset_unless_it_says_otherwise(save: Callable[[str], Path]) -> None:
    path = save(f"\ufeff{HEAD}q1,ann,12.5,40,180\nq1,ann,43.0,61,180\n")
    assert read(path)[0] == SubClip("ours", "q1", "ann", 12.5, 40.0, 180.0)
    assert questions(read(path))["ours"][0].length == 48.5
    path = save("dataset,clip_length,end,start,annotator,question\nb,20,2,1,x,q1\na,20,3,1,x,q1\n")
    assert {name: of[0].length for name, of in questions(read(path)).items()} == {"b": 1.0, "a": 2.0}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1,ann,20,10,180", "ours.csv, line 3: 20.0 to 10.0 s is reversed"),
        ("q1,ann,20,190,180", "ours.csv, line 3: 20.0 to 190.0 s reaches beyond the clip, 180.0 s"),
        ("q1,ann,20,x,180", "ours.csv, line 3: end is 'x'; it is a number of seconds"),
        ("q1,ann,20,,180", "ours.csv, line 3: end is ''"),
        ("q1,ann,nan,30,180", "ours.csv, line 3: .* no times"),
        ("q1,ann,20,30,0", "ours.csv, line 3: a clip of 0.0 s"),
        ("q1,,20,30,180", "ours.csv, line 3: annotator is empty"),
        (",ann,20,30,180", "ours.csv, line 3: question is empty"),
        ("q1,ann,20,30", "ours.csv, line 3: has another number of values"),
        ("q1,ann,20,30,180,x", "ours.csv, line 3: has another number of values"),
    ],
)
def test_a_line_that_cannot_be_is_named(line: str, message: str, save: Callable[[str], Path]) -> None:
    with pytest.raises(CertificateError, match=message):
        read(save(f"{HEAD}q1,ann,0,10,180\n{line}\n"))


def test_a_file_that_is_none_is_named(save: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="no column start, clip_length"):
        read(save("question,annotator,end\nq,a,1\n"))
    with pytest.raises(CertificateError, match="no sub-clips"):
        read(save(HEAD))
    with pytest.raises(CertificateError, match="cannot be read"):
        read(tmp_path / "none.csv")
    with pytest.raises(CertificateError, match="question q of d: its clip is 180 and 20 s long"):
        questions([SubClip("d", "q", "a", 0, 1, 180), SubClip("d", "q", "b", 0, 1, 20)])


def some() -> dict[str, list[Question]]:
    return questions(
        [SubClip("ours", f"q{i}", who, i, 40 + 3 * i, 180) for i in range(30) for who in "ab"]
        + [SubClip("kürz $x$", f"q{i}", "a", i / 9, i / 9 + 1, 12 + i % 3) for i in range(30)]
    )


def test_the_picture_is_drawn_and_its_bytes_depend_on_nothing_else(tmp_path: Path) -> None:
    draw(some(), tmp_path / "a.png")
    draw(some(), tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (1200, 900)
        colours = {colour for _, colour in picture.convert("RGB").getcolors(2**24) or []}
    assert {(0xE0, 0x80, 0x3A), (0x2F, 0x6D, 0xB3), (0x3C, 0x8D, 0x5A)} <= colours  # the paper, and both datasets


def test_one_question_of_no_length_can_be_drawn(tmp_path: Path) -> None:
    draw(questions([SubClip("one", "q", "a", 3, 3, 5)]), tmp_path / "a.png")
    draw({}, tmp_path / "b.png")
    assert (tmp_path / "b.png").exists()


spans = st.lists(st.tuples(st.integers(0, 1800), st.integers(0, 1800)).map(sorted), min_size=1, max_size=8)


@given(spans, spans)
def test_lengths_and_agreement_stay_within_their_bounds(a: list[list[int]], b: list[list[int]]) -> None:
    one, other = (certificate([(s / 10, e / 10) for s, e in part], 180) for part in (a, b))
    for parts in (one, other):
        assert 0.1 <= length(parts) <= 180
        assert all(behind[0] - before[1] > 4.8 for before, behind in pairwise(parts))
    assert -1e-9 <= iou(one, other) <= 1 + 1e-9
    assert iou(one, other) == pytest.approx(iou(other, one))
    assert iou(one, one) == pytest.approx(1)
