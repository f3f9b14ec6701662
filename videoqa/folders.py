r"""Folders of this machine in texts that others will read: cut down to what they end in.

    "/home/john smith/private dir/run1"        -> "run1"
    "file:///home/me/my%20models/mine"         -> "mine"
    "C:\Users\me\models\mine float32, dist"   -> "mine float32, dist"
    "Qwen/Qwen3-8B", "http://host:80/v1/x"     -> as they are

A path with one slash is taken for a name on the Hub. Where a path with blanks begins or ends cannot always be known;
then rather too much is cut.
"""

from __future__ import annotations

import re
import shlex

_WORD = r"(?:[^\s/\\:\"'=,;]|(?<=\w)'(?=\w))+"
_PART = rf"{_WORD}(?: (?!-){_WORD})*"  # of a path; with blanks, but an option ends it
_FREE = r"(?<![\w.:/\\~-])"  # what stands before a path that begins here
_NAME = r"(?=[\w.])"
_FILE = re.compile(rf"(?i:\bfile):(?://[\w.-]*)?/(?:(?:{_PART})?/)*{_NAME}")
_WINDOWS = re.compile(rf"(?<![\w])(?:[A-Za-z]:|\\)[\\/]+(?:{_PART}[\\/]+)*{_NAME}")
_ROOTED = re.compile(rf"{_FREE}(?:/|~\w*/|\.\.?/)(?:(?:{_PART})?/)+{_NAME}")
_HOME = re.compile(rf"{_FREE}~\w+/{_NAME}")
_RELATIVE = re.compile(rf"{_FREE}(?:(?:{_PART})?/){{2,}}{_NAME}")
_PLAIN = re.compile(rf"{_FREE}(?:(?:{_WORD})?/){{2,}}{_NAME}")  # without blanks


def without_folders(text: str) -> str:
    """The text with each path cut down to its last part."""
    return _cut(text, _RELATIVE)


def command_without_folders(command: str) -> str:
    """The same for a command line, where blanks part one thing from the next unless they are quoted."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that does not end: cut off, or no shell's line
        words = []
    if any(" " in word for word in words):
        return shlex.join(_cut(word, _RELATIVE) for word in words)
    return _cut(command, _PLAIN)


def _cut(text: str, relative: re.Pattern[str]) -> str:
    text = re.sub(r"(?<=[\w.])[\\/]+(?=$|[\s'\",;])", "", text)  # "/home/me/" ends in "me"
    for pattern in (_FILE, _WINDOWS, _ROOTED, _HOME, relative):
        text = pattern.sub("", text)
    return text
