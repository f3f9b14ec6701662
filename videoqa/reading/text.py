"""A judge's reply as plain lines: JSON, tags and tables become score lines, what is only quoted is masked.

Every step is one pass over at most 2 * READ characters; every repetition in a regular expression is bounded or cannot
be entered twice from one place, so that the time is linear in the text.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from typing import Any

READ = 8_192  # characters that are read of a reply's head, and as many of its tail; 2,048 tokens are about 9,000
MASK = "…"  # stands for what was quoted
KEYS_SCORE = ("score", "rating", "grade", "points", "point", "mark", "marks")
KEYS_FINAL = (
    "overall",
    "final",
    "total",
    "overallscore",
    "overallrating",
    "finalscore",
    "finalrating",
    "finalgrade",
    "totalscore",
)
# as members of an object whose value is a number, and in tables ("note": "..." is a remark)
_KEYS_FOREIGN = (
    *("note", "nota", "bewertung", "punktzahl", "puntuación", "puntuacion", "calificación", "calificacion"),
    *("punteggio", "voto", "pontuação", "оценка", "балл", "cijfer", "ocena", "puan"),
    *("评分", "評分", "得分", "分数", "分數", "評価", "点数", "得点", "スコア", "점수", "평점"),
)
_KEYS_TOP = ("max", "maxscore", "maximum", "maximumscore", "outof", "scalemax")
_KEYS_REASON = ("reason", "reasoning", "explanation", "rationale", "justification", "comment", "feedback")
_WRAPPERS = {"evaluation", "result", "results", "output", "response", "assessment", "judgment", "judgement", "verdict"}
_WRAPPERS |= {"review", "feedback", "data", "json", "grading", "answerevaluation", *KEYS_SCORE, *KEYS_FINAL}

# "Score:\u200b 9" and the two marks behind the digit of a keycap emoji
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufe0f\ufeff\u20e3]")
_FOREIGN = re.compile(r"[^\x00-\x7f]")  # "８" and "٧" are digits, "：" and "／" are signs
# "得分：六分", "打七分", "評価は九点です"
_HAN = re.compile(r"(?<=[:是为は打给給])[一二三四五六七八九十](?=[分点點](?:$|\W|です|だ|と))", re.M)
_STRUCK = re.compile(r"~~[^~\n]{0,200}~~")  # "Score: ~~8~~ 6" says 6
_OBJECT = re.compile(r"""(?:(?<=[\s:`>])|^)(?:\{(?=\s*["'“]?\w)|\[(?=\s*\{))""")  # '{"score": 7}', '[{"score": 7}]'
# what makes the object behind it no verdict: 'For example: {"score": 10}', 'The student wrote {"score": 10}'
_SHOWN = re.compile(
    r"\b(?:example|e\.g\.|template|instance|wrote|writes|written|says|said|claims?|contains?|format\s+is)\b",
    re.I,
)
# a member of an object that is no JSON: "{'score': 4, 'reason': 'the lid'}", '{"score": 7, "reason": "cut off'
_MEMBER = re.compile(
    r"""(?:^|[{,\n])\s{0,40}["'“]?(\w{1,20}(?:[ _]\w{1,20})?)["'”]?\s{0,9}:\s{0,9}["']?"""
    r"""([^\s"',}][^"',}\n]{0,30})(?=["'\s]{0,9}[,}\n])"""
)
_TAG = re.compile(r"<(/?)([a-zA-Z_][\w-]{0,30})\s?/?>")  # "<score>7</score>"
_INLINE_TAGS = {"b", "i", "em", "strong", "u", "span", "code", "mark", "sup", "sub"}
_BLOCK_TAGS = {"br", "p", "div", "hr", "ul", "ol", "li", "body", "html", "answer", "h1", "h2", "h3", "h4", "output"}
_ECHO_TAGS = {"student", "studentanswer", "prediction", "question", "reference", "context", "quote", "blockquote"}
_DOUBLED = re.compile(r"\[\[\s{0,9}([^\[\]\n]{1,20}?)\s{0,9}\]\]")  # "Rating: [[7]]", the form of MT-Bench
_LATEX_TEXT = re.compile(r"\\text(?:bf|rm|it)?\s?\{([A-Za-z ]{1,30})\}")  # "$$\text{Score} = 5$$"
# "Score: 9 (1 = worst, 10 = best)": what the scale's ends mean
_ENDS = re.compile(
    r" ?\((?:from )?1 ?(?:=|is|being|:) ?[a-z ]{3,20}[,;]? (?:and )?10 ?(?:=|is|being|:) ?[a-z ]{3,20}\)", re.I
)
_IN_PARENTHESES = re.compile(r"\\[()\[\]]")  # LaTeX's "\(\boxed{7}\)"
_BOXED = re.compile(r"\${0,2}\\boxed\s?\{(?:\\text\{)?\s?([^{}\n]{1,20}?)\}{1,2}\${0,2}")  # "\boxed{7}"
_RESULT = re.compile(r"\[RESULT\]\s?:?\s?[(\[]?([^\s()\[\]]{1,12})[)\]]?", re.I)  # "[RESULT] 3", the form of Prometheus
_CLOSED = re.compile(r"\[(SCORE|RATING|GRADE)\]\s?([^\[\]\n]{1,12}?)\s?\[/\w{1,9}\]", re.I)  # "[SCORE]7[/SCORE]"
_IN_DOLLARS = re.compile(r"\$(\d{1,3}(?:\s?/\s?\d{1,3})?)\$")  # "$7/10$"
_RULE = re.compile(r"[\s|:+-]+")  # a table's line between head and body
_LONE = re.compile(r"[-+]?\d+(?:\.\d+)?(?:\s?/\s?\d+)?|[A-Za-z]{3,5}")  # what may stand in quotes: 'Score: "7"'
# Quoted spans: "Score: 10", “Score: 10”, «Score: 10», 「Score: 10」, 'Score: 10', `Score: 10`
_QUOTED = re.compile(
    r"\"[^\"\n]{1,300}\"|“[^“”]{1,600}”|„[^„“”]{1,600}[“”]|«[^«»]{1,600}»|「[^「」]{1,600}」|『[^『』]{1,600}』"
    r"|`[^`\n]{1,300}`|(?<!\w)'[^'\n]{1,200}'(?!\w)|(?<!\w)‘[^‘’\n]{1,300}’(?!\w)"
)
# a line that says that what follows is not the judge's: "The student wrote:", "Student's answer:", "Example output:"
_ECHO_HEAD = re.compile(
    r"\b(?:wrote|writes|written|says|said|claims|claimed|states|stated|answered|answers|replied|example|template"
    r"|tried|quote|quoted|instructions?|prompt)\b|^\W*format|\b(?:output|response|expected|required"
    r"|answer)\s(?:format|output)\b|^\W*(?:the\s+)?(?:student|assistant|model|candidate|reference)\b",
    re.I,
)
_OWN_HEAD = re.compile(r"\b(?:evaluation|assessment|rating|scor\w+|grad\w+|judge?ment|verdict|my|review)\b", re.I)
_MARKS = re.compile(r"^\s{0,9}#{1,6}|[*`\[\]\"“”„«»]+")  # Markdown's marks and the quotes that hold a lone number


def lines_of(text: str) -> tuple[list[str], str]:
    """The reply's own lines without Markdown, and the reason that a JSON object gave."""
    text = html.unescape(_bounded(text)).replace("🔟", "10")  # "Score:&nbsp;6"
    text = _UNSEEN.sub("", unicodedata.normalize("NFC", text))
    text = _FOREIGN.sub(lambda m: _ascii(m[0]), text).replace("\r\n", "\n").replace("\r", "\n")
    text = _HAN.sub(lambda m: str("零一二三四五六七八九十".index(m[0])), text)
    if "\n" not in text.strip():
        text = text.replace("\\n", "\n")  # a reply that was quoted once too often: "Score: 7\\nThe place is missing."
    text = _STRUCK.sub("", text)
    text, reason = _objects_as_lines(text)
    text = _TAG.sub(_tag_as_line, text)
    text = _IN_DOLLARS.sub(r"\1", _CLOSED.sub(r" \1: \2 ", text))
    text = _IN_PARENTHESES.sub(" ", text)
    text = _ENDS.sub("", _LATEX_TEXT.sub(r"\1", text))
    for form in (_DOUBLED, _BOXED, _RESULT):
        text = form.sub(r" ⟦\1⟧", text)
    text = text.replace("$$", " ")
    lines = _tables_as_lines(text.split("\n"))
    lines = _without_echoes([line for line in lines if not line.lstrip().startswith("```")])
    plain = _masked("\n".join(lines)).split("\n")
    return [" ".join(_MARKS.sub("", line).replace("_", " ").split()) for line in plain], reason


def _bounded(text: str) -> str:
    """The first and the last READ characters, cut at white space so that no number is cut in two."""
    if len(text) <= 2 * READ:
        return text
    head, tail = text[:READ], text[-READ:]
    head = head[: max(head.rfind(" "), head.rfind("\n"), 0)]
    begins = [at for c in " \n" if (at := tail.find(c)) >= 0]
    return f"{head}\n\n{MASK}\n\n{tail[min(begins, default=len(tail)) :]}"


_SIGNS = {
    **{"⁄": "/", "∕": "/", "〜": "~", "−": "-", "‑": "-"},
    **{"\u2028": "\n", "\u2029": "\n", "\xa0": " ", "　": " "},
}


def _ascii(sign: str) -> str:
    """A digit of any script, or a sign of full width, as ASCII has it. "½" and "²" stay what they are."""
    if sign.isdecimal():
        return str(unicodedata.decimal(sign))
    if "！" <= sign <= "～":
        return chr(ord(sign) - 0xFEE0)
    return _SIGNS.get(sign, sign)


# -- JSON -------------------------------------------------------------------------------------------------------------


class _Twice(ValueError):
    """An object that has a key twice says two things."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Twice
    return members


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)


def _objects_as_lines(text: str) -> tuple[str, str]:
    """The text with score lines in place of JSON objects, and the first reason that one of them gives."""
    kept: list[str] = []
    reason, at, tries = "", 0, 0
    while tries < 20 and (start := _OBJECT.search(text, at)):
        tries += 1
        before = re.sub(r"```\w{0,20}\s*$", "", text[max(0, start.start() - 200) : start.start()]).rstrip(" `")
        same_line = before.rsplit("\n", 1)[-1] or (
            before.rstrip().rsplit("\n", 1)[-1] if before.rstrip().endswith(":") else ""
        )
        example = bool(_SHOWN.search(same_line))
        try:
            data, end = _DECODER.raw_decode(text, start.end() - 1)
            lines, why = _object_lines(data), _reason(data)
        except _Twice:
            lines, why, end = ["score: n/a"], "", len(text)
        except (ValueError, RecursionError):
            end = start.end() + 2000
            close = text.rfind("}", start.end(), end)
            end = close + 1 if close >= 0 else min(end, len(text))
            members = [(_name(k), v) for k, v in _MEMBER.findall(text[start.start() : end])]
            lines, why = _member_lines(members), ""
            if not lines:
                end = start.end()
        kept += [text[at : start.start()], *([] if example else [f"\n{line}\n" for line in lines])]
        reason, at = reason or ("" if example else why), end
    return "".join(kept) + text[at:], reason


def _name(key: Any) -> str:
    return re.sub(r"[\W_]+", "", re.sub(r"\(.{0,40}?\)", "", str(key)[:80])).lower()


def _object_lines(data: Any) -> list[str]:
    """A score line for each score in an object; a list of one object is that object."""
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if not isinstance(data, dict):
        return []
    members = [(_name(k), v) for k, v in data.items()]
    lines = _member_lines([(k, v) for k, v in members if not isinstance(v, dict)])
    for key, value in members:
        if isinstance(value, dict) and key in _WRAPPERS:
            inner = dict(value)
            if key in KEYS_SCORE + KEYS_FINAL and "value" in inner:
                inner = {"score": inner.pop("value"), **inner}
            label = "overall: " if key in KEYS_FINAL else ""
            lines += [label + line.removeprefix("score: ") if label else line for line in _object_lines(inner)]
    return lines


def _member_lines(members: list[tuple[str, Any]]) -> list[str]:
    tops = [v for k, v in members if k in _KEYS_TOP]
    lines = []
    for key, value in members:
        if re.fullmatch(
            r"(?:answer|student|response|judge|evaluation|assigned|numeric|numerical|studentanswer)(?:score|rating)",
            key,
        ):
            key = "score"
        if (
            key in ("evaluation", "verdict", "assessment", "result", *_KEYS_FOREIGN)
            and _LONE.fullmatch(str(value).strip())
            and str(value)[:1].isdigit()
        ):
            key = "score"
        if key in KEYS_SCORE or key in KEYS_FINAL:
            given = str(value).strip() if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
            given = given if given and len(given) <= 40 and "\n" not in given else "n/a"
            if tops and re.fullmatch(r"[\d.]+", given):
                given = f"{given}/{tops[0]}"
            lines.append(f"{'overall' if key in KEYS_FINAL else 'score'}: {given}")
    return lines


def _reason(data: Any) -> str:
    if isinstance(data, dict):
        named = {_name(k): v for k, v in data.items()}
        return next((str(named[k]) for k in _KEYS_REASON if isinstance(named.get(k), str) and named[k]), "")
    return ""


# -- tags and tables --------------------------------------------------------------------------------------------------


def _tag_as_line(tag: re.Match[str]) -> str:
    name = _name(tag[2])
    if name in _INLINE_TAGS:
        return " "
    if name in _ECHO_TAGS:
        return "\n\n" if tag[1] else "\nThe student wrote:\n"
    if tag[1] or name in _BLOCK_TAGS:
        return "\n"
    return "\n" + tag[2].replace("_", " ") + ": "


def _tables_as_lines(lines: list[str]) -> list[str]:
    """The lines with score lines in place of Markdown tables."""
    kept: list[str] = []
    table: list[str] = []
    for line in [*lines, ""]:
        if line.lstrip().startswith("|"):
            table.append(line)
            continue
        if table:
            kept += ["", *_table_lines(table), ""]
            table = []
        kept.append(line)
    return kept[:-1]


def _label(cell: str) -> str:
    """What a table's cell says its row or column is: "overall", "score" or ""."""
    words = re.sub(r"\(.{0,60}?\)|[^\w\s]", " ", cell).lower().split()
    if words and words[0] in ("overall", "final", "total"):
        return "overall" if len(words) == 1 or words[1] in KEYS_SCORE else ""
    return "score" if len(words) == 1 and words[0] in KEYS_SCORE + _KEYS_FOREIGN else ""


def _table_lines(table: list[str]) -> list[str]:
    rows = [[_MARKS.sub("", c).strip() for c in row.strip().strip("|").split("|")] for row in table]
    rows = [cells for cells, row in zip(rows, table, strict=True) if not _RULE.fullmatch(row)]
    if not rows:
        return []
    head, body = rows[0], rows[1:]
    labels = [_label(cell) for cell in head]
    column = next((labels.index(k) for k in ("overall", "score") if labels.count(k) == 1), None)
    if column is None or any(c[:1].isdigit() for c in head) or not body:
        column, body = None, rows
    lines = []
    for row in body:
        label = _label(row[0])
        if column is not None and (label or len(body) == 1):
            lines.append(f"{label or labels[column]}: {row[column] if column < len(row) else ''}")
        elif column is None and label:
            numbers = [cell for cell in row[1:] if cell[:1].isdigit()]
            lines.append(f"{label}: {numbers[0] if len(numbers) == 1 else 'n/a'}")
    return lines


# -- what is only quoted ----------------------------------------------------------------------------------------------


def _without_echoes(lines: list[str]) -> list[str]:
    """The lines without quoted ones: "> Score: 10", and the paragraph behind "The student wrote:"."""
    full = [line for line in lines if line.strip()]
    quotes = [line for line in full if line.lstrip().startswith(">")]
    all_quotes = len(quotes) == len(full)
    kept: list[str] = []
    echo = ""  # "head": behind the head's line; "body": within its paragraph
    first = True
    for line in lines:
        quoted = line.lstrip().startswith(">")
        bare = line.strip().strip("*_#> ")
        if quoted and not all_quotes and not first:
            echo = "body" if echo else ""
            kept.append(MASK)
        elif echo and bare:
            echo = "body"
            kept.append(MASK)
        else:
            echo = "" if echo == "body" else echo
            kept.append(line.lstrip().lstrip(">") if quoted else line)
            if bare.endswith(":") and _ECHO_HEAD.search(bare[-200:]) and not _OWN_HEAD.search(bare[-200:]):
                echo = "head"
        first = first and not bare
    return kept


def _masked(text: str) -> str:
    """The text with a mask for each quoted span, but where its inside is what is said: a lone number behind a colon,
    a first line that is quoted as a whole."""
    first = len(text) - len(text.lstrip())

    def mask(span: re.Match[str]) -> str:
        inside = span[0][1:-1]
        before = text[max(0, span.start() - 200) : span.start()].rstrip(" *_")
        if before.endswith((":", "=")) and _LONE.fullmatch(inside.strip()):
            return inside
        whole = span.start() == first and text[span.end() : span.end() + 1] in ("", "\n")
        return inside if whole else MASK

    return _QUOTED.sub(mask, text)
