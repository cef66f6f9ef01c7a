"""Fixtures of this room, from tests/fixtures.py."""

from tests.fixtures import world

__all__ = ["world"]
