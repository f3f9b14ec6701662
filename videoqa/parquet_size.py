"""How large a parquet file becomes, read from the headers of its pages, before anything of it is unpacked.

The file's own footer says so as well, but whoever made the file wrote that. The reader of Arrow goes by the pages:
each has a header in Thrift's compact protocol (parquet-format's parquet.thrift, PageHeader) with the size that it
unpacks to. Only what a flat table of short texts and numbers needs is allowed: an encoding in which a value repeats the
beginning of the one before it, for example, makes gigabytes of a page of a few bytes, and no page header says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# parquet.thrift, Encoding: PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY
ENCODINGS = {0, 2, 3, 8}
_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)  # PageType
_HEADER = {_DATA: (5, 1, 2), _DICTIONARY: (7, 1, 2), _DATA_V2: (8, 1, 4)}  # fields: header, its values, its encoding
_DEEPEST = 4  # structs within structs; a page header has two


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of one column in one row group."""

    unpacked: int  # bytes, before dictionary indices are replaced by their values
    values: int  # of the data pages, nulls included
    dictionary: int  # values of the dictionary


def pages(data: bytes, column: pq.ColumnChunkMetaData) -> Pages:
    """What the page headers of a column say. Raises ValueError for a header that is damaged or of a kind that no
    answers file has."""
    start = column.data_page_offset
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < start:
        start = column.dictionary_page_offset
    end = start + column.total_compressed_size
    if not 0 < start <= end <= len(data):
        raise ValueError(f"a column of {column.path_in_schema} lies outside the file")
    unpacked = values = dictionary = 0
    at = start
    while at < end:
        try:
            header, at = _struct(data, at, 0)
            kind, size, packed = header[1], header[2], header[3]
            part, counted, encoding = _HEADER[kind]
            count, code = header[part][counted], header[part][encoding]
            if not all(type(number) is int for number in (kind, size, packed, count, code)):
                raise TypeError("a number is expected")  # damage turns a number into a struct or a truth value
        except (LookupError, TypeError) as error:
            raise ValueError(f"a page of {column.path_in_schema} has no readable header") from error
        if code not in ENCODINGS:
            raise ValueError(f"a page of {column.path_in_schema} has encoding {code}, which no answers file has")
        if min(size, packed, count) < 0:
            raise ValueError(f"a page of {column.path_in_schema} has a negative size")
        unpacked += size
        if kind == _DICTIONARY:
            dictionary += count
        else:
            values += count
        at += packed
    return Pages(unpacked, values, dictionary)


# -- Thrift's compact protocol, as far as a page header goes -----------------------------------------------------------


def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """The fields of a struct by number, and where it ends."""
    if depth > _DEEPEST:
        raise LookupError("too deep")
    fields: dict[int, Any] = {}
    number = 0
    while kind := data[at] & 0x0F:
        step = data[at] >> 4
        at += 1
        if step:
            number += step
        else:
            number, at = _integer(data, at)
        fields[number], at = _value(data, at, kind, depth)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """A value of a field. Lists, maps and floating-point numbers do not occur in page headers."""
    if kind in (1, 2):  # the type of a truth value is the value
        return kind == 1, at
    if kind == 3:  # a byte
        return data[at], at + 1
    if kind in (4, 5, 6):
        return _integer(data, at)
    if kind == 8:  # text: its length, then its bytes
        length, at = _varint(data, at)
        return None, at + length
    if kind == 12:
        return _struct(data, at, depth + 1)
    raise LookupError(f"type {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; the high bit says that there are more."""
    number = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise LookupError("a number of more than ten bytes")


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """A number with its sign in the lowest bit."""
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at
