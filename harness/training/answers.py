"""When a generated answer is right: compared without what does not matter."""

import re

_EDGE = " \t\r\n.,;:!?\"'`*"


def normal(text: str) -> str:
    """Case, runs of white space, and punctuation at both ends do not count."""
    return " ".join(text.casefold().split()).strip(_EDGE)


def is_answer(said: str, answer: str) -> bool:
    return normal(said) == normal(answer)


def contains_answer(said: str, answer: str) -> bool:
    """Whether the answer stands in what was said, as whole words."""
    return (
        bool(normal(answer))
        and re.search(rf"(?<!\w){re.escape(normal(answer))}(?!\w)", normal(said)) is not None
    )
