"""What stands in base64 or in hexadecimal digits inside a file, decoded within bounds."""

import binascii
import re
from collections.abc import Iterator
from dataclasses import replace

from harness.plans.row_sources import TIME_OVER, TOO_LARGE, Looking, Source, is_text
from harness.plans.row_unpack import packing, unpacked

LEAST = 20
"""Characters of the first line of a run. Digits of a number are fewer."""
_MOST = 32 << 20
"""Bytes that are decoded of one file."""
_DEEPEST = 3
_ALONE = 200
"""Bytes of a text that is looked at by itself; shorter ones are lines of one text."""
_ASKED = 1_000
_SIGNS = rb"A-Za-z0-9+/_-"
_BREAK = rb"=*[\"', \t\\]*(?:\r?\n|\\n)[ \t#>]*(?:b?[\"'])?"
_RUN = re.compile(rb"(?<![%b])[%b]{%d,}(?:%b[%b]+)*" % (_SIGNS, _SIGNS, LEAST, _BREAK, _SIGNS))
_LINES = re.compile(_BREAK)
_HEX = re.compile(rb"(?:0[xX])?[0-9a-fA-F]+")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_TABLES = (b"\x93NUMPY", b"PAR1", b"SQLite format 3\0")


def decoded(source: Source, looking: Looking, depth: int = 0) -> Iterator[Source]:
    """What is encoded in a source, unpacked, and what is encoded in that."""
    for part in _parts(source, looking):
        for inner in unpacked(part, looking, depth + 1):
            yield inner
            if depth + 1 < _DEEPEST:
                yield from decoded(inner, looking, depth + 1)


def _parts(source: Source, looking: Looking) -> Iterator[Source]:
    """Each table, archive and long text by itself; short texts and other bytes together."""
    name, size = f"{source.name} (decoded)", 0
    texts, rest = [], []
    for count, run in enumerate(_RUN.finditer(source.data)):
        if size > _MOST or (count % _ASKED == 0 and looking.over()):
            looking.missed.add(TOO_LARGE if size > _MOST else TIME_OVER, name)
            break
        for data in _bytes_of(run.group()):
            size += len(data)
            if _stands_alone(data):
                yield replace(source, name=name, data=data, made=True)
            elif not _readable(data):
                rest.append(data)
            elif len(data) >= _ALONE:
                yield replace(source, name=name, data=data, made=True)
            else:
                texts.append(data)
    for data in (b"\n".join(texts), b"".join(rest)):
        if data:
            yield replace(source, name=name, data=data, made=True)
    looking.bytes += size


def _bytes_of(run: bytes) -> Iterator[bytes]:
    lines = [line for line in _LINES.split(run) if line]
    decode = _from_hex if all(map(_HEX.fullmatch, lines)) else _from_base64
    lengths = {len(line) for line in lines[:-1]}
    if len(lines) > 1 and len(lengths) == 1 and lengths.pop() % 4 == 0:
        whole = decode(b"".join(lines))
        if _stands_alone(whole) or (_readable(whole) and b"\n" in whole):
            yield whole
            return
    # Each line by itself; a short one after them is what follows in the file.
    yield from (decode(line) for line in lines if len(line) >= LEAST)


def _stands_alone(data: bytes) -> bool:
    return packing(data) is not None or data.startswith(_TABLES)


def _from_hex(digits: bytes) -> bytes:
    digits = digits[2:] if digits[:2] in (b"0x", b"0X") else digits
    return binascii.unhexlify(digits if len(digits) % 2 == 0 else b"0" + digits)


def _from_base64(signs: bytes) -> bytes:
    signs = signs.translate(_STANDARD)
    left = len(signs) % 4
    signs = signs[:-1] if left == 1 else signs + b"=" * (-left % 4)
    return binascii.a2b_base64(signs)


def _readable(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return is_text(data)
