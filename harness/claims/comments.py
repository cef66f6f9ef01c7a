"""HTML comments of a Markdown text: what a reader does not see."""

import re

_CODE_OR_COMMENT = re.compile(r"(?m)^[ \t]*(?P<fence>```+|~~~+)|`[^`\n]*`|(?P<comment><!--)")


def without_comments(text: str) -> str:
    """`text` without its comments, on the same lines. What stands in code is none, and one that
    never ends is read."""
    kept, begin, place = [], 0, 0
    while match := _CODE_OR_COMMENT.search(text, place):
        place = match.end()
        if match["fence"]:
            place = _after_fence(text, match["fence"], place)
        elif match["comment"]:
            end = text.find("-->", place)
            if end < 0:
                break
            kept += [text[begin : match.start()], "\n" * text.count("\n", match.start(), end)]
            begin = place = end + len("-->")
    return "".join([*kept, text[begin:]])


def _after_fence(text: str, fence: str, place: int) -> int:
    closing = re.compile(rf"(?m)^[ \t]*{fence}.*$").search(text, place)
    return closing.end() if closing else len(text)
