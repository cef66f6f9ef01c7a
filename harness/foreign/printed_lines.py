"""What stands around the values of a printed line: colours, times, levels, places in a source."""

import re

from harness.domain.plain_text import plain

_LEVELS = ("INFO", "DEBUG", "WARN", "ERROR", "CRITICAL", "SUCCESS")
_LEVEL = re.compile(r"\b(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|SUCCESS)\b")
_LATEST = 160
"""Characters before which a level stands."""
_VALUE = re.compile(r"=|\b(?:step|iter\w*|epoch|loss)\b[\s:]*\d", re.IGNORECASE)
# After a level: "] train.py:123 ", " | pkg.mod:run:12 - ", " - __main__ - ", " [logging.py:96] ".
_WRITER = re.compile(
    r"(?:(?:\|[\w=.-]+)+\]:)?(?::[\w.]+:)?"
    r"[\s\])>:|,-]*(?!\d+epoch:)"
    r"(?:[\[(]?[\w/.<>-]*(?:\.\w+|:[\w<>]+):\d+(?::\w+)?[\])]?[\s|:,>-]+)?"
    r"(?:\[?(?:__main__|\w+(?:\.\w+)+)(?::\w+)*\]?\s*[|:-]+\s+)?"
)
# "I0101 10:00:00.12 123 solver.cpp:228] "
_GLOG = re.compile(r"\s*[IWEF]\d{4,8}\s[\d:.]+\s+\d+\s+[\w./-]+:\d+\]\s*")
# "[2025-01-01 10:00:00,123] ", "10:00:00 - ", "[01/31 10:00:00 d2.utils.events]: "
_TIME = re.compile(
    r"\s*[\[(]?(?:\d{2,4}[-/.]\d\d(?:[-/.]\d{2,4})?[ T,]+)?\d\d:\d\d:\d\d(?:[.,]\d+)?Z?"
    r"(?:[+-]\d\d:?\d\d)?(?: [\w.]+(?=\]))?[\])]?[:,]?(?:\s+-)?\s*"
)
# A program prints its own source, or the settings that it was called with: no values.
_SOURCE = re.compile(
    r"\s*(?:(?:def|class|if|elif|for|while|with|try|except|else|return|assert)\b.*[:\\(,]"
    r"|(?:import|from)\s+\w+(?:\.\w+)*(?:\s+import\b.*|\s+as\b.*)?"
    r"|[@#]\s*\w.*|raise\b.*|return\b.*|print\w*\(.*)\s*\Z"
    r"|.*\b(?:[Nn]um examples|[Bb]atch size per device|[Gg]radient accumulation steps)\b"
    r"|.*(?:(?<!tensor)\((?:\w+, )*\w+=\w|\w\(\)|\bf['\"].*\{|[+*/]=|\w ?==|\blambda\b|--\w+[ =]\S)"
)
SEGMENTS = re.compile("\r|\x08+")


def cleaned(text: str) -> str:
    """The line without colours, its time, its level, and the place in the source that wrote it."""
    text = plain(text)
    level = None
    if any(word in text for word in _LEVELS):
        level = _LEVEL.search(text, 0, _LATEST)
    if level is not None and not _VALUE.search(text, 0, level.start()):
        start = level.end()
    else:
        stamp = _GLOG.match(text) or _TIME.match(text)
        if stamp is None:
            return text
        start = stamp.end()
    writer = _WRITER.match(text, start)
    return text[writer.end() if writer else start :]


def is_source(text: str) -> bool:
    """Whether it is a line of a program or of its settings, not of its output."""
    return _SOURCE.match(text) is not None
