"""A score's number, and what before or behind it says that it is none: a count, a part's score, a condition, an echo.

Every form ends where its number must begin; what follows is judged here by one set of rules, so that "3 tools", "7-8",
"80%", "½" and "4/5" mean the same behind every form. Lines are single-spaced; all repetitions are bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Rank = Literal["stray", "weak", "score", "final"]
# stray: never holds, but contradicts ("is wrong and deserves 2/10"); weak: counts where nothing else is said ("The tool
# is right. 7/10."); final: the last word ("Overall: 7")


@dataclass(frozen=True, slots=True)
class Claim:
    """A number that the reply gives as its score, and where. `value` None: a score was named and cannot be told."""

    value: float | None
    of: float | None  # 10 in "7/10"
    rank: Rank
    line: int
    begins: int  # of the form, within the line
    ends: int
    whole_line: bool  # the form begins its line: what is left of the line is explanation
    revised: bool = False  # "Revised score: 6"


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# -- numbers ----------------------------------------------------------------------------------------------------------

_WORDS = {  # each list ends with ten
    word: value
    for words in (
        "zero one two three four five six seven eight nine ten",
        "eins zwei drei vier fünf sechs sieben acht neun zehn",
        "zéro un deux trois quatre cinq six sept huit neuf dix",
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez",
        "zero uno due tre quattro cinque sei sette otto nove dieci",
        "zero um dois três quatro cinco seis sete oito nove dez",
        "ноль один два три четыре пять шесть семь восемь девять десять",
        "twee drie vier vijf zes zeven acht negen tien",  # of Dutch, whose one is also its "a"
        "десяти",  # "из десяти"
    )
    for value, word in enumerate(words.split(), 10 - len(words.split()) + 1)
}
WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_UNIT = (
    r"(?:points?|pts?|marks?|stars?|Punkten?|punkt(?:ów|y|i)|Sternen?|puntos?|punti|pontos?|балл(?:ов|а)?"
    r"|分|点|點|점|[★⭐])"
)
_OF_WORD = r"(?:out of|of|von|auf|sur|sobre|de|su|em|из|van(?: de)?|na|över|av|من|üzerinden)"
_NUMBER = re.compile(
    rf"⟦?(?P<n>[-+–]?\d+(?:\.\d+)?|(?P<word>{WORD})(?!\w))"  # "7", "7.5", "-1", "seven"
    rf"(?P<half> and a half)?(?P<comma>,\d\d?(?!\d))?"  # "7,5" of a German reply
    rf"(?: ?{_UNIT}(?![a-zа-я]))?"  # "9 points out of 10", "7점"
    # "/10", "\10", "out of 10", "von 10 Punkten", "out of a possible 10"
    rf"(?: ?(?:[/\\]|(?<!\w){_OF_WORD}(?!\w)|(?<=\s){_OF_WORD}(?!\w)) ?"
    rf"(?:an? |the )?(?:possible |total (?:of )?|maximum (?:of )?)?"
    rf"(?P<of>\d+(?:\.\d+)?|(?:{WORD})(?!\w))(?: ?(?:possible )?{_UNIT}(?![a-zа-я]))?)?⟧?",
    re.I,
)
# "7-8", "7 to 8", "7 or ⟦8⟧", "80 %", "7 -> 6", "10 = best", "7 × 2", "7.5.1", "7½", "7th", "7-ish",
# "7 1/2", "7+": the number is not what was meant
_UNCLEAR = re.compile(
    r"\w|[.,:]\d|[-–+](?=\s|$)| ?(?:\.{2,}|…) ?\d| ?[%‰°€$£+±×=<>→≈~^\\½⅓⅔¼¾*]| ?/(?!\s[A-Z])| ?[-–—~]? ?>"
    r"| ?[-–—] ?⟦?\d|[-–—]\w"
    r"|,? (?:to|or|bis|oder|and|or maybe|и|или|至|到|或|à|ou|o|a|e|y|und|et) (?:a )?⟦?(?:\d|half)"
    r"| ?[,;] ?\d| \d| (?:and|point|comma|Komma|und|et|y|e|or|to) "
    rf"(?:an? half|half|media|demi|halb|{WORD})(?!\w)"
    r"| ?(?:percent|per cent|prozent|por cien\w*|pour cent|процент\w*)",
    re.I,
)
# "7, maybe 8", "7 (or 8)", "7 (with the lid), 5 (without)", "7/10 for the first half, 4/10 for the second"
_ALTERNATIVE = re.compile(
    r" ?[,(] ?(?:or|maybe|perhaps|possibly|otherwise|else|at|i mean|no|sorry|minus|less|make|rather"
    r"|edit)(?!\w)[^.;\d]{0,40}\d"
    r"| ?, ?give or take| ?\([^()]{0,40}\) ?(?:to|-|–) ?\d"
    r"|[^.;\d]{0,60}(?:,|\)|(?<!\w)or|(?<!\w)and) ?(?:or )?\d+(?: ?/ ?\d+)? ?(?:\(|for(?!\w)|if(?!\w)|without"
    r"|with(?!\w)|otherwise|$)",
    re.I,
)
_AFTER_POINTS = re.compile(
    r"[分点點점](?=です|だ|を|と|入り|입니다|을|이다|으로|이라|。|，|、|是|吧|了|给|$)"
)  # not 分钟, 分之一, 10分制
# of the unclear ones, those that were meant as a score, so that no other number may take their place: "Score: 6-7"
_RANGE_OR_SHARE = re.compile(r" ?(?:[%½¼¾⅓⅔+~]|(?:-|–|—|to|or) ?⟦?\d|percent|per cent)", re.I)
# words that may follow a score: all others make it a count ("3 tools")
_FOLLOWERS = words(
    "as because since for due given but with which that this it is the on in based and while though although "
    "however so overall total at where here thus reflects seems feels fits by not a an i my we after weil da "
    "denn wegen für und aber porque ya pues car parce puisque pour mais perché perchè poiché ma para por pero "
    "pois mas так потому поскольку за и но omdat want voor bo ponieważ çünkü porqué です だ を と とします で "
    "입니다 을 이다 à al alla veriyorum verdim veririm puan "
    "으로 을 줍니다 입니다."
)
_STARTERS = words(
    "student assistant answer response reply prediction both reason explanation justification rationale "
    "feedback only das der dieser diese el los las les l il lo los o os ответ student's names mentions misses "
    "identifies matches differs describes agrees says reasoning comment"
)
# "a score of 8 to this answer", "a 6/10 answer", "0.3 of the truth"
_TO_WHOM = re.compile(
    r"(?:to (?:this|that|it|him|her|the (?:student|answer|response|reply|assistant|candidate|prediction))"
    r"|answer|response|reply|match|of the truth|from me)(?!\w)",
    re.I,
)
# "Score: 9 (relevance)", "7 for accuracy": a part's score, not the answer's
CRITERION = (
    r"(?:accura\w+|relevan\w+|complete\w*|correctness|details?|detail\w+|fluency|clarity|coheren\w+|concis\w+"
    r"|specific\w+"
    r"|consisten\w+|faithful\w+|ground\w+|helpful\w+|grammar|style|precision|coverage|depth|objects?|actions?|places?"
    r"|locations?|verbs?|content|language|recall|factual\w*|logic|tone|Genauigkeit|Vollständigkeit|Relevanz"
    r"|précision|exhaustivité|pertinence|precisión|exactitud|准确性|完整性|相关性)"
)
_OF_A_PART = re.compile(
    rf" ?\(\s?(?:for )?{CRITERION}\s?\)| (?:for|on|in|regarding|für|pour|en) "
    rf"(?:its |the )?{CRITERION}(?!\w)",
    re.I,
)
# what stands behind a score that is not this answer's: "10 would need the lid", "a 9 if ...", "10 being perfect"
_NOT_MEANT_BEHIND = re.compile(
    r" ?\(?,? ?(?:if|unless|when|were|had|means?|meaning|would|could|might|being|indicates?|represents?|denotes?"
    r"|signif\w+|stands? for|requires?|needs?|only|at (?:first|best|most|least|the (?:most|start))|initially"
    r"|originally|previously"
    r"|before|earlier|provided|wenn|falls|si|se|если|is (?:for|reserved|perfect|best|worst|impossible|too|not"
    r"|(?:given|awarded) (?:to|if|when|for|only)|(?:the|a) (?:best|worst|max\w*|minim\w*|highest|lowest|top|perfect))"
    r"|(?:as|which|what) the student (?:demands?|asks?|claims?|wants?|says?|said|requests?|writes?|wrote"
    r"|suggests|hopes?)"
    r"|claimed|demanded|requested|quoted|said(?=\s)|says(?=\s)|student['’]s own|the student (?:writes|says"
    r"|claims|said|wrote)"
    r"|for (?:an? )?(?:exact|perfect|ideal|full|correct|complete|exact)|is (?:what|how)"
    r"|(?:but|although|though) (?:that|this|it) (?:is|would|seems) (?:too|be too))(?!\w)"
    r"| (?:is|was|are)(?! (?:(?:therefore|thus|most|quite|also|still) )?(?:fair|appropriate|justified"
    r"|reasonable|warranted|right|suitable|fitting"
    r"|deserved|assigned|given\s?[.,]|awarded\s?[.,]|due|in order|my)|\w)",
    re.I,
)


def _value(text: str) -> float:
    text = text.lower()
    return float(_WORDS[text]) if text in _WORDS else float(text.replace("–", "-"))


def number_at(
    line: str, at: int, foreign: bool = False, comma: bool = False
) -> tuple[float | None, float | None, int] | None:
    """The score that begins at `at`, its scale's top where named, and its end; (None, None, end) for one that was
    named and is unclear ("7-8", "80%"); None for what is no score: a count, a condition, a part's score, a question."""
    match = _NUMBER.match(line, at)
    if match is None:
        return None
    end, number = match.end(), match["n"]
    if match["comma"]:
        if not (foreign or comma or match["of"]) or match["word"]:
            return None, None, end
        number += match["comma"].replace(",", ".")
    rest = line[end : end + 120]
    if _AFTER_POINTS.match(line, end - 1):  # "6점입니다", "6分，"
        return _value(number), None if match["of"] is None else _value(match["of"]), end
    half = 0.5 if match["half"] else 0.0
    if _UNCLEAR.match(rest):
        return (None, None, end) if _RANGE_OR_SHARE.match(rest) else None
    if _ALTERNATIVE.match(rest):
        return None, None, end
    if not _may_follow(rest, foreign) or _NOT_MEANT_BEHIND.match(rest) or _OF_A_PART.match(rest):
        return None
    sentence = re.search(r"[.!?](?=\s|$)", rest)
    if sentence and sentence[0] == "?":
        return None
    return _value(number) + half, None if match["of"] is None else _value(match["of"]), end


def _may_follow(rest: str, foreign: bool) -> bool:
    behind = rest.lstrip()
    if not behind:
        return True
    if not behind[0].isalnum():
        return behind[0] not in "?\"'’”»"
    word = re.match(r"[^\W\d]+", behind)
    if word is None:
        return False
    if word[0][0].isupper():  # "Score: 6 The student", not "Score: 3 Tools"
        return word[0].lower() in _FOLLOWERS | _STARTERS or not (foreign or word[0].endswith("s"))
    return not word[0][0].islower() or word[0].lower() in _FOLLOWERS or bool(_TO_WHOM.match(behind))


# -- what stands before -----------------------------------------------------------------------------------------------

# "... is missing. I rate it", "得分：9分。理由", "(a part is missing) So the score"
SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)|[;；。！？]|\)\s?(?=[A-Z])")
# where a sentence turns, so that what stands before says nothing of the number
NEAR = re.compile(
    r"[,:()…⟦⟧|/–—•]|\s-\s|(?<!\w)(?:so|but|hence|thus|therefore|because|since|yet|and|while|which|whereas"
    r"|is that)(?!\w)",
    re.I,
)
# ", so I rate it": what was only claimed, supposed or denied before it ends here
_TURN = re.compile(r"[,–—-]\s?(?:so|but|and|while|which|whereas|hence|thus|therefore|giving|earning|I)(?!\w)", re.I)
_SOFT_TURN = re.compile(
    r"[,:]|(?<!\w)(?:so|but|hence|thus|therefore|because|since|yet|and|weil|aber|mais|pero)(?!\w)", re.I
)
# told of another: "the student claims it deserves a 10", "for example a score of 7", "another judge gave it 9"
_ECHO = re.compile(
    r"(?<!\w)(?:claim\w*|says?|said|states?|stated|stating|writes?|wrote|written|writing|asks?|asked|asking|demand\w*"
    r"|requests?|requesting|insist\w*|assert\w*|tells?|told|telling|instructs?|instructing|pretend\w*|argues?"
    r"|wants?|ignor\w*"
    r"|disregard\w*|quot\w*|begs?|tries|trying|self|example|e\.g\.|instance|such as|format|suggests|believes|thinks"
    r"|another|others?|previous|previously|earlier|prior|hoping|hopes?|expects?|self-?\w+|behauptet|prétend"
    r"|afirma|утверждает"
    r"|wishes|according to the (?:student|answer|response)|reads?)(?!\w)|声称|要求|主張|说|說|写道|라고|書い",
    re.I,
)
# supposed: "if the lid were named it deserves a 9", "maybe a score of 7", "initially a score of 8"
_SUPPOSED = re.compile(
    r"(?<!\w)(?:would|could|should|might|may|maybe|perhaps|possibly|probably|somewhere|if|unless|whether"
    r"|initial\w*|tempted"
    r"|at first|first (?:glance|sight|impression)|start(?:ed|ing)? (?:at|from|with)|originally|almost|nearly"
    r"|nor|either"
    r"|between|from|range\w*|preliminary|tentative\w*|wäre|würde|hätte|wenn|falls|eigentlich|sería|fuera|serait"
    r"|sarebbe|бы|если"
    r"|vielleicht|peut-être|quizás|forse)(?!\w)|如果|若|假如|应该|もし|만약|本来",
    re.I,
)
# "if": reaches over the whole sentence, up to a "but": "If the lid were named it gets a 9, but it gets a 5"
_CONDITION = re.compile(r"(?<!\w)(?:if|unless|wenn|falls|si|если)(?!\w)|如果|假如|もし|만약", re.I)
# denied, or the scale's own ends: "does not deserve a 9", "the maximum score is 10", "a perfect 10 would"
_DENIED = re.compile(
    r"(?<!\w)(?:not?|cannot|never|without|neither|rather|instead|short|above|below|under|over|least|most|more"
    r"|less|fewer|than"
    r"|maximum|max|minimum|min|highest|lowest|perfect|possible|full|nicht|keine?\w*|pas|nunca|non|не|нет|far|far from"
    r"|mean|best|worst)(?!\w)|n['’]t(?!\w)|不|没|無|满分|滿分|満点|最高|ない|만점|아니",
    re.I,
)


# what a sentence may say before "it deserves a 7" or "the score is 7" in the same breath: "I think", "so"
_BREATH = words(
    "i think believe feel find would i'd say that so thus hence therefore overall and as such all in my "
    "opinion view consequently accordingly ultimately finally on balance altogether given this for these "
    "reason reasons which means clearly it the a an to sum up conclusion summary still yet but only now then "
    "because since however again me by a scale of from or considering everything at 1 10 end"
)
# what a sentence begins with that supposes something: "With the lid, it gets a 9", "To the student, this is a 10/10"
SUPPOSING = re.compile(
    r"\W*(?:with|without|had|were|otherwise|then|suppos\w+|assum\w+|let(?!\s+me)|normally|usually|typically"
    r"|generally|often|sometimes"
    r"|at (?:best|most|least)|in that case|(?:in|for|to) the (?:student|author"
    r"|candidate)(?:['’]s)?(?! (?:answer|response|reply))"
    r"|such|similar)(?!\w)",
    re.I,
)


def own(line: str, begins: int, breath: bool = False) -> bool:
    """Whether what stands before a form in its sentence leaves it the judge's own verdict on this answer."""
    start = max(0, begins - 240)
    before = SENTENCE_END.split(line[start:begins])[-1]
    if '"' in before:
        return False  # a quotation that was not closed on its line
    turn = _TURN.split(before)[-1]
    near = _SOFT_TURN.split(before)[-1]
    if _CONDITION.search(before) and not re.search(r"(?<!\w)but(?!\w)", before):
        return False
    if breath and (
        SUPPOSING.match(before) or not set(re.findall(r"[\w'’]+", NEAR.split(before)[-1].lower())) <= _BREATH
    ):
        return False  # "The student reckons it deserves a 10"
    return not (_ECHO.search(turn) or _SUPPOSED.search(near) or _DENIED.search(near))
