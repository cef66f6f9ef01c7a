"""Counts with their nouns, for messages."""


def some(count: int, noun: str) -> str:
    """E.g. "1 row", "12 rows"; `noun` in the singular, its plural takes an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
