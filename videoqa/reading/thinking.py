"""What a model thinks before it answers, and where its answer begins. One pass over the text, exact, linear."""

from __future__ import annotations

import re

# Marks of thinking, by who writes them. A mark is a fixed string or a bounded one, so that the search is linear.
_TAG = r"(?:think|thinking|thought|thoughts|reasoning|reflection|seed:think)"
_OPEN = (
    rf"<{_TAG}>"  # DeepSeek-R1, Qwen3 and many others: <think>
    r"|\[THINK\]"  # Magistral
    r"|◁think▷"  # Kimi
    r"|<\|START_THINKING\|>|<\|begin_of_thought\|>|<\|inner_prefix\|>"  # Command A, OpenThinker, Apertus
    r"|<\|channel>thought"  # Gemma 4
    r"|<\|channel\|>\s{0,9}(?:analysis|commentary)[^<]{0,80}(?:<\|constrain\|>[^<]{0,20})?<\|message\|>"  # gpt-oss
    r"|\Aanalysis(?=[A-Z])"  # gpt-oss, its special tokens lost: "analysisWe need ...assistantfinalScore: 4"
)
_CLOSE = (
    rf"</{_TAG}>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|end_of_thought\|>|<\|inner_suffix\|>|<channel\|>"
    r"|<\|channel\|>\s{0,9}final[^<]{0,20}(?:<\|constrain\|>[^<]{0,20})?<\|message\|>"
    r"|assistantfinal"
)
_MARK = re.compile(rf"(?P<open>{_OPEN})|{_CLOSE}", re.I)
_LOST = re.compile(r"analysis(?=[A-Z])|assistantfinal")  # these two are words but for their case
_FRAME = re.compile(  # what stands around the answer where thinking was marked so: "...<|return|>"
    r"<\|(?:return|end|call|START_RESPONSE|END_RESPONSE|begin_of_solution|end_of_solution)\|>|<\|start\|>assistant"
)


def without_thinking(text: str) -> str | None:
    """The text behind the model's thinking; None where a thinking block was never closed (the reply was cut)."""
    text, cut = behind_thinking(text)
    return None if cut else text


def behind_thinking(text: str) -> tuple[str, bool]:
    """The text without thinking blocks, up to one that was never closed, and whether there is such a one. What stands
    before a closing mark that nothing opened was thinking too: the opening mark may have stood in the prompt."""
    kept: list[str] = []
    at = 0
    thinking = marked = False
    for mark in _MARK.finditer(text):
        if mark[0][0] in "aA" and not _LOST.match(text, mark.start()):
            continue
        marked = True
        if mark["open"]:
            if not thinking:
                kept.append(text[at : mark.start()])
            thinking = True
        else:
            if not thinking or "final" in mark[0].lower():  # gpt-oss closes its thinking by opening the answer
                kept.clear()
            thinking = False
        at = mark.end()
    if not thinking:
        kept.append(text[at:])
    answer = "".join(kept)
    return (_FRAME.sub("", answer) if marked else answer), thinking
