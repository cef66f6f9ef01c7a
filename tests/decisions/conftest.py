"""Fixtures of this room, from tests/fixtures.py."""

from tests.fixtures import environment, project, root, world

__all__ = ["environment", "project", "root", "world"]
