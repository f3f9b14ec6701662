"""Scores that a sentence gives: "I would rate it a 6", "the answer deserves a 3", "so 4/10", "[[7]]"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from videoqa.reading.number import CRITERION, SENTENCE_END, SUPPOSING, WORD, Claim, number_at, own

# the answer, as a sentence names it: "this", "the student's answer"; not "the reference", "a perfect answer"
_NOUN = (
    r"(?:answers?(?: of the student)?|response|reply|prediction|submission|output|attempt|student|candidate"
    r"|assistant|model|one|AI|participant)"
)
_THIS = (
    rf"(?:(?:this|the|that|its) (?:given |above )?{_NOUN}(?:['’]s? {_NOUN})?|its {_NOUN}"
    r"|this|it|that|them|him|her)"
)
# what may stand between the verb and its number: "I rate it [as a solid] 8"; any other word makes it a count
_AS = (
    r"(?:an?|the|only|just|score|rating|grade|marks?|of|as|at|with|to|be|overall|final|solid|strong|weak|low"
    r"|high|generous|fair|clear|good|total|numerical|no|more|higher|lowest|highest|maximum|minimum|possible|top"
    r"|full|than|is|deserves|somewhat|worth|getting|for"
    r"|down|up|my|about|revised)"
)
# "I would rate this answer a 6", "I'd give it a 3", "I settle on a 7", "I lower it to 5",
# "I would not give more than 4"
_FIRST_PERSON = re.compile(
    r"(?<!\w)(?:I|we)(?:['’](?:d|ll|m|ve))?(?: (?:would|will|shall|must|can|do|am|have|therefore|thus|hence|now"
    r"|then|still|only"
    r"|simply|just|ultimately|finally|decided|to|not|personally|also|so|going)){0,4} "
    r"(?P<verb>rat(?:e|ed|ing)|scor(?:e|ed|ing)|grad(?:e|ed|ing)|giv(?:e|en|ing)|gave|award(?:ed|ing)?"
    r"|assign(?:ed|ing)?|mark(?:ed)?|put|say|settl(?:e|ed|ing)|land(?:ed|ing)?|go|judge|evaluate"
    r"|assess|consider|call|rank|lower|raise|reduce|increase|change|revise|correct|adjust|arrive|deem)"
    rf"(?: (?:on|with|for|at))?(?: (?:{_THIS}|{_AS})){{0,8}}[:,]? (?=⟦|\d|[a-z])",
    re.I,
)
# "this answer deserves a 3", "the response earns 7", "it gets 4/10", "This is a 6", "it is worth a 5"
_THIRD_PERSON = re.compile(
    rf"(?<!\w)(?:{_THIS})(?: (?:therefore|thus|hence|only|clearly|still|just|fully|overall)){{0,2}} "
    r"(?P<verb>deserves?|has|earns?|gets?|receives?|merits?|warrants?|scores?|rates?|is worth|is rated"
    r"|is (?:given|awarded|assigned)|(?:should|can) (?:receive|get|earn|be (?:given|rated|scored|awarded))"
    r"|was given|is|(?:a )?makes(?: it)?)"
    rf"(?: (?:an?|only|just|the|score|rating|grade|of|as|at|overall|solid|strong|weak|low|high|fair|clear|good"
    rf"|mark)){{0,5}} (?=⟦|\d|[a-z])",
    re.I,
)
# "Rated 4/10", "earning a 6", "so 4/10", "hence a 5", "Overall, 7/10", "All in all: 7/10"
_RESULTING = re.compile(
    r"(?<!\w)(?:(?P<sure>rated|graded|scored|earning|giving (?:it|this)|deserving|resulting in|making (?:it"
    r"|this)|going with|^(?:gets|deserves|earns|receives)|call (?:it|this))"
    r"|so|thus|hence|therefore|overall|in total|all in all|in (?:conclusion|summary|short|sum))"
    r"[,:]?(?: (?:an?|only|just|this|it|is|at|as|score|rating|of|solid|the|answer|get|gets)){0,5} (?=⟦|\d|[a-z])",
    re.I,
)
# "On a scale of 1 to 10: 6", "On a 1-10 scale, a 7", "Out of 10: 6"
_ON_A_SCALE = re.compile(
    r"(?<!\w)(?:on (?:an?|the) (?:scale (?:of|from) \d+ ?(?:to|-|–) ?\d+|\d+ ?(?:to|-|–) ?\d+ scale|\d+-point scale)"
    r"|^out of \d+|auf einer Skala von \d+ bis \d+|sur une échelle de \d+ à \d+"
    r"|en una escala del? \d+ al? \d+)(?: ?\([^()\n]{0,60}\))?(?:, where\s[^.:\n]{1,80})? ?[,:] ?(?:(?:an?"
    r"|(?:this|it|the\s(?:student['’]s\s)?(?:answer|response)) (?:is|would be|gets|deserves)"
    r"|it['’]s) ){0,2}(?=\d|[a-z])",
    re.I,
)
# other languages: "Ich gebe 8 von 10 Punkten", "Le doy un 4", "Je donne 8 sur 10", "Ставлю 7", "我给这个回答6分",
# "7점을 줍니다"
_FOREIGN = re.compile(
    r"(?<!\w)(?:ich (?:gebe|vergebe|bewerte|würde sagen)|j['’]attribue|je (?:lui )?(?:donne(?:rais)?"
    r"|attribue(?:rais)?|mets|mettrais|note)|(?:le|lo|la)?\s?(?:doy|otorgo|asigno|pongo|daría|califico)"
    r"|(?:gli |le )?(?:assegno|attribuisco|do)|(?:dou|atribuo|daria)|(?:я )?(?:ставлю|оцениваю|даю|оценил бы)"
    r"|(?:я )?бы (?:поставил|дал|оценил)а?|(?:gli |le )?(?:darei|assegnerei|attribuirei)"
    r"|ik geef|daję|dał(?:a)?bym|przyznaję|oceniam|veriyorum)"
    r"(?: (?!(?:nicht|keine?|pas|no|non|не|ne|if|wenn|si)(?!\w))[^\W\d]{1,15}){0,7} (?:(?:een|eine|un|um) (?=(?:"
    + WORD
    + r")[.,;:!])|(?=⟦|\d|(?:"
    + WORD
    + r") (?:(?:балл(?:ов|а)|Punkten?|points?|puntos|punti|pontos|punten) )?(?:sur|von|sobre|de|su|из|van) ))"
    r"|(?:我|，|因此|所以|故|可|综上|^)(?:会|將|将|可以)?(?:给|給|打|评|得|给出|给予)(?:出|予|它|其|这|这个|该|此|个|了|回答|答案|学生|的|为|一个|评分|分数|打分|打"
    r"|，|到|学生的|分){0,6}\s?(?=⟦|\d)"
    r"|(?:は|に|を|에|은|는|를)\s?(?=\d+(?:\.\d)?[点점](?:です|と|を付|をつけ|입니다|을\s))"
    # "10点満点中5点とします", "10점 만점에 4점을 주겠습니다", "10 में से 5 अंक": the scale's top stands first
    r"|(?<!\d)(?P<top>\d+) ?(?:点満点中の?|点満点で|점 만점에(?:서)?|점 만점 중"
    r"|分满分[，,中]?|分中|में से|üzerinden) ?(?=\d)",
    re.I,
)
# "I think a 7 is fair"
_FAIR = re.compile(
    rf"(?<!\w)an? (?=(?:\d+(?:\.\d)?|{WORD})(?:\s?/\s?\d+)? (?:is|seems|feels) (?:fair|appropriate|right"
    rf"|justified|reasonable|warranted))",
    re.I,
)
# "The tool is right. 7/10." and "It gets full marks: 10/10": a ratio that is a sentence of its own
_SENTENCE_RATIO = re.compile(
    r"(?:^|[.!] |[:–—] )(?:an? )?(?:(?:solid|strong|weak|clear|good) )?(?=\d+(?:\.\d+)? ?(?:/|out of)|(?:"
    + WORD
    + r") out of)"
    r"|full marks[:,] \(?(?=\d)",
    re.I,
)
# "The answer is entirely wrong and deserves 2/10": no verdict where there is none, and a doubt about any other
_STRAY = re.compile(
    r"(?<!\w)(?:(?P<merit>deserves?|earns?|merits?|warrants?)|gets?|receives?|worth|is|as|at|rate|give|an?|only"
    r"|just|of)"
    r" (?:an? |only |just |score of )?(?=⟦|\d)",
    re.I,
)
# what a colon before a ratio must follow: "full marks: 10/10", not "Key facts covered: 9/10"
_RATED_BEFORE = re.compile(
    r"(?<!\w)(?:marks?|verdict|judge?ment|assessment|grade|rating|score|credit|but|\d+ ?(?:/|out of) ?\d+)(?!\w)",
    re.I,
)
_MARKED = re.compile(r"(?=⟦)")  # "[[7]]", "\boxed{7}", "[RESULT] 3"
# "It is at first a 9": not the verdict
_TIME = re.compile(r"(?<!\w)(?:at first|initially|first|originally|considered|thought|tempted)(?!\w)", re.I)


def in_sentences(line: str, number: int, top: float) -> Iterator[Claim]:
    """The scores that a line's sentences give. Some forms need more than a number: a ratio to the scale's top, or an
    article ("a 6"), for "it is 6" and "so 6" may speak of anything."""
    for form, needs_ratio in (
        (_FIRST_PERSON, ""),
        (_THIRD_PERSON, "is"),
        (_RESULTING, "all"),
        (_ON_A_SCALE, ""),
        (_FAIR, ""),
        (_FOREIGN, ""),
    ):
        for m in form.finditer(line):
            figure = number_at(line, m.end(), foreign=form is _FOREIGN)
            would = form is _FIRST_PERSON and re.search(r"(?<!\w)would(?!\w)|['’]d(?!\w)", m[0], re.I)
            if would and (
                SUPPOSING.match(SENTENCE_END.split(line[max(0, m.start() - 240) : m.start()])[-1])
                or "have" in m[0].split()
            ):
                continue  # "With the lid, I would give it a 9", "I would have given it a 9"
            if (
                figure is None
                or not own(line, m.start(), form is _THIRD_PERSON)
                or (form is _THIRD_PERSON and _TIME.search(m[0]))
            ):
                continue
            value, of, end = figure
            if form is _FOREIGN and m["top"]:
                of = float(m["top"])
            if of is not None and of != top:
                continue  # "it gets 2 of 3 facts"
            if form is _FIRST_PERSON and re.search(r"(?<!\w)not(?!\w)", m[0]) and "than" not in m[0].split():
                continue
            if form is _FIRST_PERSON and "than" in m[0].split() and not re.search(r"(?<!\w)not?(?!\w)", m[0]):
                continue
            article = re.search(
                r"(?<!\w)(?:an?|at|of|as|only) (?:solid\s|strong\s|weak\s|low\s|high\s|fair\s|clear\s|good\s)? ?$",
                m[0],
                re.I,
            )
            word = line[m.end()].isalpha()
            article = article or re.search(r"(?<!\w)(?:een|eine|un|um) $", m[0], re.I) if form is _FOREIGN else article
            if word and not article and of is None:
                continue  # "I give one point", "it gets one"
            if (
                needs_ratio == "is"
                and of is None
                and (m["verb"].lower() == "is" or "makes" in m["verb"].lower())
                and not (
                    article
                    and re.search(
                        r"(?<!\w)(?:scale|overall|so|therefore|thus|say)(?!\w)", line[: m.start()][-80:], re.I
                    )
                )
            ):
                continue  # "The answer is 7.", "This is a 10."
            if (
                form is _THIRD_PERSON
                and m["verb"].lower() == "has"
                and not re.search(r"score|rating|grade", m[0], re.I)
            ):
                continue  # "The student has a 7."
            alone = ":" in m[0] and not line[end:].strip(" .!")  # "Therefore: 7"
            if needs_ratio == "all" and of is None and not (m["sure"] or article or alone):
                continue
            revised = form is _FIRST_PERSON and m["verb"].lower() in (
                "lower",
                "raise",
                "reduce",
                "increase",
                "change",
                "revise",
                "correct",
                "adjust",
                *("settle", "settled", "settling"),
                *("land", "landed", "landing"),
            )
            yield Claim(value, of, "score", number, m.start(), end, False, revised)
    for m in _STRAY.finditer(line):
        figure = number_at(line, m.end())
        if (
            figure
            and figure[0] is not None
            and (figure[1] == top or (m["merit"] and figure[1] is None))
            and own(line, m.start())
        ):
            yield Claim(figure[0], figure[1], "stray", number, m.start(), figure[2], False)
    for m in _MARKED.finditer(line):
        figure = number_at(line, m.start())
        if figure is not None and own(line, m.start()):
            yield Claim(figure[0], figure[1], "score", number, m.start(), figure[2], m.start() <= 1)
    for m in _SENTENCE_RATIO.finditer(line):
        before = line[max(0, m.start() - 120) : m.start()]
        if m[0][:1] in (":", "–", "—") and (not _RATED_BEFORE.search(before) or re.search(CRITERION, before, re.I)):
            continue
        figure = number_at(line, m.end())
        if not m.end() and figure is not None and not re.search(r"[^\W_]", line[figure[2] :]):
            continue  # a line of its own, see _whole_lines
        if figure is not None and figure[1] == top and own(line, m.end()):
            yield Claim(figure[0], figure[1], "weak", number, m.end(), figure[2], False)
