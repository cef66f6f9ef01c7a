"""One form under atheris until its time is over: `python -m tests.fuzz.guided_run FORM [libFuzzer's
arguments]`.

Bytes go to the property as they are; with `--shaped` they choose among the shapes that nearly have
the form.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["harness", "yaml", "tomllib"]):
    from tests.fuzz.properties import PROPERTIES

from hypothesis import given, settings

from tests.fuzz.near_forms import SHAPES


def main() -> None:
    form, *rest = sys.argv[1:]
    shaped = "--shaped" in rest
    arguments = [argument for argument in rest if argument != "--shaped"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        @settings(database=None, deadline=None)
        @given(data=SHAPES[form])
        def shape(data: bytes) -> None:
            PROPERTIES[form](folder, data)

        def plain(data: bytes) -> None:
            PROPERTIES[form](folder, data)

        atheris.Setup(
            [sys.argv[0], *arguments], shape.hypothesis.fuzz_one_input if shaped else plain
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()
