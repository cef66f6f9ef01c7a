"""The Jinja templates: in a checkout `templates/` at its top, in an installed package the same
files inside it."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).with_name("templates")
"""A link to `templates/` in a checkout; a folder in an installed package."""


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def fill(name: str, **values: Any) -> str:
    """The template `name` (relative to templates/) with `values`; a name that it uses and that is
    not given raises jinja2.UndefinedError."""
    return _environment().get_template(name).render(**values)


def has_template(name: str) -> bool:
    return (TEMPLATES / name).is_file()
