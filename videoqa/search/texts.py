"""Texts to be searched: the files of a folder, or the articles of a Wikipedia dump, piece by piece.

A dump is the file of all current articles as Wikipedia offers it, pages-articles.xml, packed with bzip2 or not
(https://meta.wikimedia.org/wiki/Data_dumps). It is read as a stream: an article at a time is in memory.
"""

from __future__ import annotations

import bz2
import contextlib
import html
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from videoqa.errors import UserError
from videoqa.search.passages import MOST_CHARACTERS, Passage

SUFFIXES = (".txt", ".md", ".rst")
MOST_BYTES = 32 << 20  # of a file of text or an article; what is longer is no text to be read
_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_REST = re.compile(r"<[^<>]{0,2000}>|'{2,}|__[A-Z]{2,20}__")
_LINK = re.compile(r"\[\[([^\[\]]{0,2000})\]\]")
_OUTSIDE = re.compile(r"\[(?:https?:)?//\S{1,2000}(?: ([^\[\]]{0,500}))?\]")
_HEADING = re.compile(r"^=+\s*(.{1,300}?)\s*=+\s*$", re.M)
_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(ref|math|gallery|timeline|score)\b[^<>]{0,2000}?(?:/>|>.*?(?:</\1\s*>|\Z))", re.S | re.I
)
_MARK = re.compile(r"\{\{|\}\}|\{\||\|\}")
_FILES = re.compile(r"^(?:file|image|category|datei|bild|kategorie|fichier|catégorie|archivo|categoría):", re.I)


def passages_in(source: Path) -> Iterator[Passage]:
    """All passages of a folder of text files or of a dump, in a fixed order. Raises UserError."""
    if source.is_dir():
        texts = _of_folder(source)
    elif source.name.lower().endswith((".xml", ".xml.bz2")):
        texts = _of_dump(source)
    else:
        raise UserError(f"{source}: neither a folder of texts nor a dump (.xml or .xml.bz2)")
    for title, text, place in texts:
        for piece in pieces(text):
            yield Passage(title, piece, place)


def pieces(text: str, most: int = MOST_CHARACTERS) -> Iterator[str]:
    """The text in pieces of at most so many characters: whole paragraphs, else whole sentences, else words, else
    parts of a word."""
    held = ""
    for paragraph in _PARAGRAPH.split(text):
        for unit in _units(" ".join(paragraph.split()), most):
            if held and len(held) + 1 + len(unit) > most:
                yield held
                held = ""
            held = f"{held} {unit}".strip()
    if held:
        yield held


def _units(text: str, most: int) -> Iterator[str]:
    if len(text) <= most:
        if text:
            yield text
        return
    for sentence in _SENTENCE.split(text):
        if len(sentence) <= most:
            yield sentence
            continue
        for word in sentence.split():
            yield from (word[at : at + most] for at in range(0, len(word), most))


def _of_folder(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Title, text and name of each file; a Markdown file's title is its first heading."""
    names = [p for p in sorted(folder.rglob("*")) if p.suffix.lower() in SUFFIXES and p.is_file()]
    files = [p for p in names if not any(part.startswith(".") for part in p.relative_to(folder).parts)]
    if not files:
        raise UserError(f"{folder}: no texts in it ({', '.join(SUFFIXES)})")
    for path in files:
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"{path}: {path.stat().st_size:,} bytes; a text has at most {MOST_BYTES:,}")
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: is not UTF-8: {error}") from None
        heading = re.match(r"\s*#\s+(.{1,300})\n", text)
        title = heading[1].strip() if heading else path.stem.replace("_", " ").replace("-", " ")
        yield title, text[heading.end() :] if heading else text, path.relative_to(folder).as_posix()


def _of_dump(path: Path) -> Iterator[tuple[str, str, str]]:
    """Title, plain text and title of each article. Redirects and pages that are no articles are left out."""
    packed = path.suffix.lower() == ".bz2"
    with path.open("rb") as raw, bz2.open(raw) if packed else contextlib.nullcontext(raw) as file:
        try:
            parents: list[ElementTree.Element] = []
            for event, element in ElementTree.iterparse(file, ("start", "end")):
                if event == "start":
                    parents.append(element)
                    continue
                parents.pop()
                if _name(element) == "page":
                    page = {_name(one): one.text or "" for one in element.iter()}
                    redirect = any(_name(one) == "redirect" for one in element)
                    if page.get("ns") == "0" and not redirect and len(page.get("text", "")) <= MOST_BYTES:
                        title = " ".join(page.get("title", "").split())
                        yield title, plain(page.get("text", "")), title
                    element.clear()
                    if parents:
                        parents[-1].clear()
        except (ElementTree.ParseError, EOFError, OSError) as error:
            raise UserError(f"{path}: cannot be read as a dump, perhaps cut off: {error}") from None


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def plain(wikitext: str) -> str:
    """The words of an article: without templates, tables, references and files; of a link what is shown.

    >>> plain("'''Torque''' {{IPA|x}} is [[moment (physics)|moment]] of force.<ref>Book</ref>")
    'Torque  is moment of force.'
    """
    text = _without_templates(_HIDDEN.sub(" ", wikitext))
    for _ in range(5):  # links stand in the captions of files
        if (inner := _LINK.sub(_shown, text)) == text:
            break
        text = inner
    text = _OUTSIDE.sub(lambda match: match[1] or "", text)
    text = _HEADING.sub(r"\n\n\1.\n\n", text)
    text = html.unescape(_REST.sub("", text))
    return "\n".join(re.sub(r"^[*#:;]+\s*", "", line) for line in text.splitlines()).strip()


def _shown(link: re.Match[str]) -> str:
    return "" if _FILES.match(link[1].strip()) else link[1].rpartition("|")[2]


def _without_templates(text: str) -> str:
    """The text outside of {{...}} and {|...|}, in one pass; what stands behind a mark that nothing closes is kept."""
    kept: list[str] = []
    opened: list[int] = []  # how many pieces were kept before each open mark
    at = 0
    for mark in _MARK.finditer(text):
        kept.append(text[at : mark.start()])
        at = mark.end()
        if mark[0] in ("{{", "{|"):
            opened.append(len(kept))
            kept.append(" ")
        elif opened:
            del kept[opened.pop() :]
    kept.append(text[at:])
    return "".join(kept)
