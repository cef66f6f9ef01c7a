"""Exit codes hold where stdout and stderr are closed, full, or no longer read."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.output import emit
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


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_loses_nothing_in_another_encoding(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    emit({"idea": "größer – 日本"}, as_json=True)
    assert json.loads(raw.getvalue().decode(encoding)) == {"idea": "größer – 日本"}
    emit({}, "größer – 日本", as_json=False)
    assert raw.getvalue().decode(encoding).splitlines()[-1].startswith("gr")


def test_the_plain_locale_gets_all_of_it(opened: Journey) -> None:
    done = shell(opened, "{h} experiment list --json", LANG="C", LC_ALL="C")
    assert json.loads(done.stdout)["experiments"][0]["hypothesis"] == "größer"
