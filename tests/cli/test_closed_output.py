"""Exit codes hold where stdout and stderr are closed, full, or no longer read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.journey import Again, Journey

CHECK = "gate check exp-0001"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    steps = (
        ("init", "--hooks", "none"),
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "größer"),
    )
    return Again(tmp_path_factory.mktemp("closed"), *steps).journey()


def shell(journey: Journey, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    here = {"PYTHONPATH": str(Path(__file__).parents[2]), **more}
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line.format(h=f'{sys.executable} -m harness')}"],
        cwd=journey.root,
        env=journey.environment(**here),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (f"{{h}} {CHECK} > /dev/full", 1, "could not be written: No space left on device."),
        (f"{{h}} {CHECK} --json >&- ", 1, ""),
        (f"{{h}} {CHECK} | true", 1, ""),
        ("{h} frobnicate > /dev/full 2> /dev/full", 2, ""),
        ("{h} frobnicate 2>&-", 2, ""),
    ],
)
def test_the_exit_code_is_the_answers(opened: Journey, line: str, code: int, said: str) -> None:
    done = shell(opened, line)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_locale_that_is_not_utf_8_gets_json_and_words(opened: Journey) -> None:
    latin = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = shell(opened, "{h} experiment list --json | iconv -f latin1 -t utf8", **latin)
    assert json.loads(done.stdout)["experiments"][0]["hypothesis"] == "größer"
    ascii_only = {**latin, "PYTHONIOENCODING": "ascii"}
    assert "gr??er" in shell(opened, "{h} experiment list", **ascii_only).stdout
