"""The forms in which a reply states, denies or lists an option: the patterns of choices.py."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Forms:
    """The patterns in which the labels of a prompt occur."""

    label: re.Pattern[str]  # at a place: marks, the label, marks
    more: re.Pattern[str]  # behind a label: "or B", "/B"
    right: re.Pattern[str]  # "B is correct"
    mention: re.Pattern[str]  # "option B", "(B)"
    item: re.Pattern[str]  # "B: ..." within a line


# What may follow a bare label that is no word of a sentence.
_END = (
    r"""\s?$|\ ?\n|\s?[)\]}>](?!\w)|["'](?!\w|\s(?:is|was|has|does|\w{1,15}ing)\b)|\.(?![\w])|[,;:!](?!\d)"""
    r"""|\ ?[-–—]{1,2}(?:\s|$)|\ \(|</|\s(?:and\snot|rather\sthan|over|instead\sof)\b"""
    r"""|\s(?:or|and)\s(?:the\sanswer|it's|it\sis)\b"""
)
WHY = r"\s(?:because|since|due|given|based)\b"
BARE_END = re.compile(rf"(?:{_END}|{WHY})", re.X | re.I)
# Of a reply that begins with a label: "C, while cooking, ..." is the camera wearer, "I, for one" the writer.
LEAD_END = re.compile(rf"""(?:\s?$|\ ?\n|["']?[.!):\]}}>](?!\w)|["'](?!\w)|\ ?[-–—]{{1,2}}\s|,?{WHY})""", re.X | re.I)
# Behind a bare C: what says that it is the wearer.
WEARER = re.compile(
    r""",\s(?!because|since|as\b|due\b|given|based|which|not\b|it\b|this\b|so\b|option|rather)"""
    r"""|[\s(–—-]{1,3}(?:who\b|whose\b|the\s(?:camera|wearer|(?:person|man|woman|one)\s(?:who|wearing|with|behind)))""",
    re.I,
)
# Behind "option C": what goes on about an option, for "the best option C has is to ..." is about the wearer.
OF_OPTION = re.compile(
    r"\s(?:which|that|best|most|is\s\w{0,9}\s?(?:correct|right|plausible|likely|supported)|shows|fits|matches|mentions|states|says"
    r"|describes|captures|reflects|summari[sz]es|seems|appears)\b",
    re.I,
)
PERSON = re.compile(
    r"\b(?:camera|wearer|person|man|woman|individual|character|operator|actor|user|he|she|lady)\s?$", re.I
)
_LIST = (
    r"""["')\]}]{0,3}\s?(?:(?P<comma>[,;]\s?)(?!or\b|and\b)|[/&+]\s?|(?=\s?[(\[])|,?\s?\b(?:or|and)\s)"""
    r"""(?:(?:maybe|possibly|perhaps|even|option|choice|it's|it\sis|the\sanswer\sis)\s){0,2}"""
)
_RIGHT = (
    r"(?:is|would\sbe|must\sbe|has\sto\sbe)\s(?:(?:clearly|definitely|likely|therefore|indeed)\s)?"
    r"(?:correct|(?:the\s)?(?:(?:most|best|only)\s)?(?:(?:correct|right|best|accurate|likely|appropriate|plausible|suitable)\s)?"
    r"(?:answer|option|choice)|the\s(?:correct|right)\sone|the\smost\s(?:accurate|likely|appropriate|plausible|suitable))"
)


@lru_cache(maxsize=32)
def forms(labels: str) -> Forms:
    upper = f"[{labels}]"
    either = f"[{labels}{labels.lower()}]"
    alone = r"(?<!\w')(?<![\w#.,-])" if labels[0] == "0" else r"(?<!\w')(?<![\w#-])"
    past = r"(?![\w%])(?!\.\d|,\d)"
    return Forms(
        label=re.compile(
            rf"""\s?(?P<named>(?i:options?|choices?|letters?|answers?|numbers?|no\.)\s?)?(?P<open>["'(\[{{<]{{0,4}})\s?"""
            rf"""{alone}(?P<l>{either}){past}\.?\s?(?P<close>[)\]}}]?)""",
        ),
        more=re.compile(rf"(?i:{_LIST})\s?[\"'(\[{{]{{0,3}}(?P<l>{either}){past}"),
        right=re.compile(
            rf"""(?i:(?P<named>\b(?:option|choice|answer|letter)\s))?["'(\[{{]{{0,2}}{alone}(?P<l>{either}){past}["')\]}}]{{0,2}}"""
            rf"""\s(?:(?:{_RIGHT})|(?:best|most\saccurately|correctly|accurately)\s"""
            r"(?P<best>describes|summari[sz]es|captures|represents|reflects|explains|matches|fits|answers))",
        ),
        item=re.compile(rf"(?<=[.;,\w] )(?P<l>{upper})[.:)]\s"),
        mention=re.compile(
            rf"""(?i:\b(?:options?|choices?|answers?|letters?)\s)["'(\[]{{0,2}}{alone}(?P<l>{upper}){past}"""
            rf"""|(?<!\w)[(\[]\s?(?P<in>{either})\s?[)\]]""",
        ),
    )


# What a label or a text follows that is stated to be the answer.
STATED = re.compile(
    r"""(?:
    \b(?P<noun>answer|ans|choice|option|selection|prediction|response|verdict|conclusion|solution)\b["'\]]?
      (?:\s(?:to|for|that|which|here|in|based|given|from|choice|option|letter)\b[^.,;:!?\n]{0,80}?)?
      \s?(?::|=|[-=]>|→|[-–—](?=\s)|\b(?:is|was|(?:would|should|must|will|has\sto|seems\sto|appears\sto)\sbe)\b)(?:\s?:)?
    |\b(?:correct|guess|final)\s?:
    |\\?boxed
    |<answer>
    |\[(?=\[)
    |\b(?:choose|chose|select|selected|pick|picked|go\swith|going\swith|opt\sfor|vote\sfor|settle\son)\b:?
    |\b(?:i|we|i'd|i\swould)\s(?:think|believe|guess|say|would\ssay|conclude)\b(?:\sthat)?(?:\s(?:it\sis|it's)\b)?
    |(?:^|[.;!\n]\s?|\bbut\s|\bso\s|\btherefore,?\s|\bthus,?\s|\bhence,?\s)(?:it\sis|it's|that\sis|that's|it\smust\sbe)\b
    )(?:\s(?:clearly|definitely|probably|likely|most\slikely|therefore|thus|indeed|obviously|still|actually)\b)?(?:\sto\sbe\b)?""",
    re.X | re.I,
)
SENTENCE_END = re.compile(r"[.!?](?=\s)|[;\n]")
# In the clause before a label or text: what says that it is not the answer.
CLAUSE_END = re.compile(r"[.!?](?=\s)|[;\n,:]|\bbut\b", re.I)
DENIED_BEFORE = re.compile(
    r"(?:n't|\b(?:not|cannot|never|neither|nor|no|if|unless|whether|wrong|incorrect|false|unlike|unlikely|less|instead\sof"
    r"|rather\sthan|while|although|though|despite|except|eliminate|reject|exclude|discard|rule\sout|ruling\sout))\b"
    r"(?!\sdoubt\b)",
    re.I,
)
DENIED_BEHIND = re.compile(
    r"""["')\]]{0,3}(?::\s(?:no|nope|not|wrong|incorrect)\b|\s?(?:(?:is|are|was|seems|looks|would\sbe|can|could|does)\s?)?"""
    r"(?:n't\b|not\b|never\b|cannot\b|can't\b|incorrect|wrong|inaccurate|false\b|unlikely|ruled\sout|eliminated|tempting|implausible))",
    re.I,
)
DENIED_FAR = re.compile(
    r"[^.;\n]{0,60}?(?:n't|\b(?:not|never|cannot|incorrect|wrong|inaccurate|false|unlikely|eliminated|ruled|implausible|irrelevant))\b",
    re.I,
)
REFUSES = re.compile(
    r"\b(?:can(?:not|'t|\snot)|could(?:n't|\snot)|unable\sto|not\sable\sto|(?:im|not\s)possible\sto|difficult\sto|hard\sto)"
    r"\s[\w\s]{0,30}?\b(?:determined?|decide|tell|answer(?:ed)?|say|know|identify|choose|assist|help|provide|view|see|watch"
    r"|access|analy[sz]e|process|infer)\b"
    r"|\b(?:do(?:n't|\snot)\sknow|not\ssure|unsure|uncertain|no\sidea|none\sof\s(?:the|these|those|them)|undetermined"
    r"|no\s(?:correct\s|right\s)?(?:answer|option|choice)|(?:not\senough|insufficient)\s\w+|(?:i'm|i\sam)\ssorry|as\san\sai)\b"
    r"|^\W{0,3}(?:n/a|none|unknown|sorry)\b",
    re.I,
)
# One word that a sentence has anyway is an option's text only where it stands for itself.
COMMON = frozenset("all and both false her his none not one that the there this true two yes".split())  # noqa: SIM905
SENTENCE = re.compile(r"\s[A-Z](?:\w|'|\s[a-z])")
SEPARATOR = re.compile(r"[.:)\s]{0,3}")
NAMED = re.compile(r"\s?(?:option|choice|answer)\b:?", re.I)
# Between two statements: what says that the second stands in the place of the first.
TAKEN_BACK = re.compile(
    r"\b(?:wait|no,|but|however|actually|instead|correction|corrected|sorry|oops|mistake\w*|revis\w{1,4}|change|changed"
    r"|re-?(?:consider|evaluat|examin|think|check|read)\w{0,4}|on\ssecond\sthought|final|finally|therefore|thus|hence"
    r"|in\sconclusion|overall|so)\b",
    re.I,
)
WAIT = re.compile(
    r"(?:\bbut\s|\bno,?\s|[.!?\n–—-]\s?)wait\b[,.!\s]|\bon\ssecond\sthought|\blet\sme\s(?:re-?|double-?\s?)[ectv]", re.I
)
ALTERNATIVE = re.compile(r"\b(?:or|and)\b|/")
ON = re.compile(r"\s(?:to|for|here|in|as)\b")
# "(A) shows a pan", "B because ..." behind the label that a reply begins with
VERB = re.compile(
    r"\s(?:is|was|are|seems|looks|shows|describes|mentions|says|can|could|may|might|would|does|has|and|or)\b", re.I
)
REASON = re.compile(rf"\s?\(|,?{WHY}", re.I)
STOP = re.compile(r"[.,;:!]\s")
# 'The transcript contains "Answer: D".', "The man calls out: 'Option A!'": what somebody else says, in quotes
OTHERS_SAY = re.compile(
    r"""(?P<verb>\b(?:sa(?:ys?|id|ying)|ask(?:s|ed|ing)|call(?:s|ed|ing)?\sout|shout(?:s|ed|ing)?|yell(?:s|ed|ing)?
    |contain(?:s|ed|ing)?|read(?:s|ing)?|writ(?:es?|ing|ten)|wrote|claim(?:s|ed|ing)?|stat(?:es?|ed|ing)
    |announc(?:es?|ed|ing)|whisper(?:s|ed|ing)?|mention(?:s|ed|ing)?|display(?:s|ed|ing)?|hear[sd]?|show(?:s|n|ing)?
    |sing(?:s|ing)?|print(?:s|ed)?|tell(?:s|ing)?|told|repl(?:ies|ied)|answer(?:s|ed))\b)(?P<between>[^.!?\n"“'‘]{0,60})
    (?:"(?P<double>[^"\n]{1,300})"|“(?P<curly>[^“”\n]{1,300})”|(?<!\w)'(?P<single>[^'\n]{1,300})'(?!\w))""",
    re.X | re.I,
)
# before the verb: the reply speaks of itself, or of an option
OWN_WORDS = re.compile(
    r"\b(?:i|we|i'd|i'll|my(?:\sown)?|(?:correct|right|final|best|my)\s(?:answer|response|choice|option)|options?\s[a-j0-9])"
    r"(?:\s\w{1,12}){0,3}\s?$",
    re.I,
)
