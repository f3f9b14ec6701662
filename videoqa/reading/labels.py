"""Scores behind a name: "Score: 7", "a score of 7", "Punktzahl: 7,5", "评分：6"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from videoqa.reading.number import CRITERION, NEAR, SENTENCE_END, SUPPOSING, Claim, Rank, number_at, own, words

_FILL = (
    r"(?:(?:an?|the|only|just|still|therefore|thus|hence|clearly|now|strong|solid|weak|low|generous|high|mere"
    r"|fair|decent"
    r"|ein|eine|einer?|une?|un|una|um|uma|good|straight|clear|firm|modest|moderate) ){0,3}"
)
# English and foreign names of the score. The weak ones name other things as well ("Note: 3 cups", "Total: 3 cups").
STRONG = (
    r"scores?|ratings?|grades?|marks?|points?|[Pp]unkt(?:e|zahl|estand)?|[Gg]esamt(?:punktzahl|bewertung|note"
    r"|wertung)|[Bb]ewertung"
    r"|[Ww]ertung|[Ee]ndnote|puntuaci[oó]n|puntaje|calificaci[oó]n|valoraci[oó]n|punteggio|voto|valutazione"
    r"|pontua[cç][aã]o"
    r"|classifica[cç][aã]o|avalia[cç][aã]o|оценка|балл(?:ы|ов)?|рейтинг|cijfer|beoordeling|eindcijfer|ocena"
    r"|wynik|punktacja|puan(?:[ıi]m?)?|คะแนน|βαθμός|skor|betyg|poäng"
    r"|karakter|hodnocení|nilai|điểm(?: số)?|الدرجة|التقييم|النتيجة|अंक|स्कोर|رتبه|امتیاز|βαθμολογία|pisteet"
    r"|arvosana|ציון"
)
LOOSE = (
    r"final answer|rate|ergebnis|évaluation|evaluación|résultat|resultado|risultato|note|nota|overall|total"
    r"|totale|final|verdict|results?|judge?ments?|assessment|evaluation|conclusion|итог|fazit|urteil"
)
_AROUND = (  # what may stand between the label and its sign: "(1-10)", "out of 10", "for the student's answer"
    r"(?: ?\([^()\n]{0,60}\))?(?: (?:for|of|to) (?P<whom>(?:the|this|that|its)(?: [\w'’-]{1,20}){1,3}?))?"
    r"(?: (?:out of|on an? scale (?:of|from)) \d+(?: ?(?:to|-|–) ?\d+)?| ?/ ?\d+(?= ?[:=]))?"
    r"(?: \d+\s?(?:-|–|to)\s?\d+(?= ?[:=]))?(?: \([^()\n]{0,60}\))?(?: (?:I|we) (?:would )?(?:give|assign|award))?"
)
_SIGN = (  # "Score: 7", "Score – 7", "score is 7", "score of 7", "Punktzahl ist 7"
    r" ?(?:[:=：]|[-–—](?=\s)|→|[-=]>) ?(?:is )?"
    r"| (?:is|of|will be|stays|remains|becomes|comes to|stands at|ist|lautet|beträgt|von|est(?: de)?|de|es|è|é"
    r"|das|dari)(?!\w) ?:? ?"
)
_LABEL = re.compile(
    rf"(?<![\w-])(?:(?P<strong>{STRONG})|(?P<loose>{LOOSE}))(?![\w-])(?P<last> (?:finale?|globale?|totale?"
    rf"|general|complessivo|końcowa))?{_AROUND}"
    rf"(?P<sign>{_SIGN}| (?:would|should|must) be | (?=⟦|\d))(?P<fill>{_FILL})"
    r"(?:[\d.\s+()*/×-]{1,60}= ?)?"  # "Score: 10 - 3 = 7"
    r"(?:N,? (?:where|with) N ?(?:=|is) ?)?",  # "Score: N, where N = 6"
    re.I,
)
# 评分：7, 最终得分是9分, 点数は7点, 점수는 7점: no blanks between words
_LABEL_CJK = re.compile(
    r"(?P<before>[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{0,6}?)(?:评分|評分|得分|得点|分数|分數|评价|打分|总分|總分|評価|点数|スコア|採点"
    r"|評点|점수|평점|총점|평가|评级)"
    r"\s?(?:\([^()\n]{0,30}\))?\s?(?:应该是|應該是|应该为|應該為|应为|應為|应是|應是|是|为|為|は|는|은|가)?\s?[:=]?\s?"
)
# words before a Chinese, Japanese or Korean label: 最终得分 is the last word, 我的评分 the answer's, 准确性得分
# a part's
_CJK_FINAL = re.compile(r"最终|最終|总体?$|總|综合|綜合|整体|总体|総合|最后|최종|종합|총|전체")
_CJK_OWN = re.compile(r"$|.*(?:我的|的|此|该|因此|所以|故|给出|給出|私の|따라서|이)$")
# words that may stand between the last article, or the line's beginning, and the label; others name a part
# what may stand before a colon and a label: "Correction: Score: 5", not "The student added: Score: 10"
_OWN_LEAD = re.compile(
    r"(?<!\w)(?:evaluation|assessment|rating|scor\w+|grad\w+|judge?ment|verdict|my|review|feedback|analysis"
    r"|final|overall"
    r"|correction|update|revision|edit|result|conclusion|summary|sure|okay)(?!\w)",
    re.I,
)
# "As it stands: Score: 6", "As only one number is allowed: Score: 8"
_SO = re.compile(r"\W*(?:as (?:it|is|only|such|one)|so|thus|therefore|hence|finally|in the end)(?!\w)", re.I)
_MODIFIERS = {
    "final": words(
        "final overall total definitive finale finaler finales finalen globale global gesamt total totale geral "
        "complessivo complessiva general endgültige итоговая общая общий итоговый concluding ultimate combined "
        "aggregate eindelijke końcowa ogólna genel cuối akhir"
    ),
    "revised": words(
        "revised corrected updated new adjusted amended reconsidered korrigierte neue révisée corregida true real "
        "actual correct"
    ),
    "plain": words(
        "my the a an this its their our so thus hence therefore i give assign award is assigned given resulting "
        "suggested recommended single numeric numerical answer answer's response response's student's assistant's "
        "model's candidate's student assistant candidate model evaluation judge judge's and with for of meine die "
        "der eine ma la le une mi el mon il mia minha a o моя holistic quality here here's sure okay ok your "
        "earns gets receives deserves merits warrants receive proposed deserved appropriate fair in conclusion "
        "solid strong low high that to now that's "
        # so, therefore, of other languages
        "ist lautet das por isso portanto assim logo por eso entonces así deshalb daher darum somit also donc ainsi "
        "c'est pourquoi perciò quindi pertanto dunque daarom dus dlatego więc zatem поэтому следовательно таким "
        "образом bu yüzden dolayısıyla därför derfor karena itu"
    ),
}
_BULLET = re.compile(r"\W{0,6}(?:\d{1,2}[.)] )?\W{0,6}")  # "- Score", "1. Score", "⭐ Rating"


def modifiers(before: str) -> tuple[bool, bool, bool]:
    """Of what stands before a label in its sentence: whether the label is the answer's score (all words since the last
    turn are known), whether it is the last word, whether it revises."""
    head, colon, _ = before.rpartition(":")
    if colon and not (_OWN_LEAD.search(head[-80:]) or _SO.match(head)) and head.strip(" -•"):
        return False, False, False  # "The student added: Score: 10"
    before_it = re.findall(r"[\w'’]+", NEAR.split(before)[-1].lower().replace("’", "'"))
    final = any(w in _MODIFIERS["final"] for w in before_it)
    revised = any(w in _MODIFIERS["revised"] for w in before_it)
    known = _MODIFIERS["final"] | _MODIFIERS["revised"] | _MODIFIERS["plain"]
    return len(before_it) <= 6 and all(w in known for w in before_it), final, revised


def labelled(line: str, number: int, above: str) -> Iterator[Claim]:
    """ "Score: 7", "My final rating is a solid 8", "a score of 7", "Punktzahl: 7,5", "评分：6"."""
    bullet = _BULLET.match(line)
    starts = bullet.end() if bullet else 0
    for m in _LABEL.finditer(line):
        before = SENTENCE_END.split(line[max(0, m.start() - 240) : m.start()])[-1]
        known, final, revised = modifiers(before)
        final = final or bool(m["last"])
        at_start = not re.search(r"[,:;.!?]\s", line[starts : m.start()]) and m.start() - starts <= 40
        sign = m["sign"].strip()
        if not known or (
            m["whom"]
            and not re.search(
                r"answer|response|reply|prediction|student|candidate|assist|submis|output|model|one", m["whom"], re.I
            )
        ):
            continue
        if "be" in sign and not re.search(r"(?<!\w)(?:my|fair|appropriate|reasonable)(?!\w)", before[-30:], re.I):
            continue  # "the score would be 9 if"
        inverted = re.search(r"(?<!\w)ist (?:die|der|das|meine|seine)? ?$", before, re.I)  # "daher ist die Bewertung 2"
        if not sign and not at_start and not inverted and not m[0].lower().startswith(("rating", "score", "grade")):
            continue
        loose = bool(m["loose"])
        if not sign and (re.match("point|mark", m[0], re.I) or re.match(r"\d+ ?:", line[m.end() :])):
            continue  # "Point 1 is right.", "Rating 1: 5"
        if (
            loose
            and sign.lower() in ("of", "de", "von", "")
            and m["loose"].lower() not in ("note", "nota", "overall", "total")
        ):
            continue
        if re.search(CRITERION, m[0], re.I) or not own(line, m.start()):
            continue
        if before.strip() and SUPPOSING.match(before):
            continue  # "With the lid named, the score is 9"
        figure = number_at(
            line,
            m.end(),
            comma=True,
            foreign=not re.match(r"(?:score|rating|grade|point|mark|overall|total)", m[0], re.I),
        )
        if figure is not None and _SCHOOL_GRADE.match(line, figure[2]):
            figure = None, None, figure[2]  # a number of another scale is no score
        lower = (m["loose"] or "").lower()
        rank: Rank = (
            "final"
            if final or lower in ("overall", "total", "totale", "final", "итог") or (loose and final)
            else "score"
        )
        whole = m.start() <= starts or (at_start and known and m.start() - starts <= 30)
        if figure is None:
            ratio = _STARS.match(line, m.end())  # "Rating: ★★★ (7/10)"
            figure = number_at(line, ratio.end()) if ratio else None
            if figure is not None and figure[1] is None:
                figure = None
            if figure is None and whole and _UNKNOWN.match(line, m.end()):
                figure = None, None, m.end()
        if figure is None or (loose and figure[0] is not None and not _closed(line, figure[2], figure[1])):
            continue
        if lower in ("total", "totale") and figure[1] is None and not re.search(r"(?<!\w)(?:points?|score)|\d", above):
            continue  # "Total: 10" of facts; parts with numbers stand above one of scores
        yield Claim(figure[0], figure[1], rank, number, m.start(), figure[2], whole, revised)
    for m in _LABEL_CJK.finditer(line):
        figure = number_at(line, m.end(), foreign=True)
        if figure and _CJK_OWN.match(_CJK_FINAL.sub("", m["before"])) and own(line, m.start()):
            rank = "final" if _CJK_FINAL.search(m["before"]) or m[0].startswith(("总分", "總分", "총점")) else "score"
            yield Claim(figure[0], figure[1], rank, number, m.start(), figure[2], m.start() <= starts)


# what may stand between a label and a ratio: "Rating: ★★★ (7/10)", "Grade: B+ (8/10)", "Rating: Good, 7/10"
_STARS = re.compile(r"[^\d\n()]{0,40}?(?:\(|,\s)(?=\d+(?:\.\d+)? ?/)")
# a score line without a score: "Score: N/A", "Final score: unknown", "Score: ½", "Score: between 6 and 7"
_UNKNOWN = re.compile(
    r"(?:n\s?/\s?a|none|unknown|null|-{1,3}$|undefined|unclear|½|between|cannot|not\s|\?|~|≈|about|around"
    r"|approx|>|<|≥|≤|at\s)",
    re.I,
)

# German school grades count down from 1: "Note: 2 (gut)"
_SCHOOL_GRADE = re.compile(r" ?\((?:sehr gut|gut|befriedigend|ausreichend|mangelhaft|ungenügend)(?!\w)", re.I)


def _closed(line: str, end: int, of: float | None) -> bool:
    """Whether nothing but a sign follows a number: "Total: 7 (one part is missing)", not "Total: 7 because"."""
    if of is None and re.match(r"[.)] \w|\)", line[end:]):
        return False  # "Evaluation: 1. The tool is right."
    return not line[end : end + 3].strip() or not line[end:].lstrip()[:1].isalnum() or of is not None
