"""Looks for inputs that break a reader: `python -m tests.fuzz [FORM...] [--seconds 30] [--record]`,
or `make fuzz`.

First the damaged and hostile files of damaged.py, 10,000 a form. With atheris (the extra `fuzz`)
each form runs guided by coverage, half of its time on bytes and half on shapes. Without it
hypothesis searches at random instead, with many more examples than the suite has. Exit 1 when
something was found. With `--record` a guided run over all forms is written to
docs/evidence/fuzz.json, what it found included.
"""

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench._record import record
from tests.fuzz.damaged import FORMS as DAMAGED
from tests.fuzz.damaged import MANY
from tests.fuzz.damaged import read_all as read_damaged
from tests.fuzz.properties import PROPERTIES
from tests.fuzz.starting_inputs import CORPUS

ROOT = Path(__file__).parents[2]
NO_ATHERIS = (
    "atheris is not installed (it has wheels for Linux and few versions of Python: pip install -e"
    " '.[fuzz]'). hypothesis searches at random instead, without coverage to guide it."
)


@dataclass(frozen=True, kw_only=True)
class Search:
    form: str
    executions: int
    findings: int
    """Of bytes and of shapes: 0, 1 or 2, since each ends at its first."""


def executed(said: str) -> int:
    """How many inputs libFuzzer says that it ran; at a crash, where no total is printed, its last
    count."""
    total = re.findall(r"number_of_executed_units: *(\d+)", said)
    return int((total or re.findall(r"^#(\d+)\s", said, re.M) or ["0"])[-1])


def guided(form: str, seconds: int, found: Path) -> Search:
    """Atheris on bytes and on shapes; inputs that break the reader are put into `found`."""
    executions = findings = 0
    for shaped in (False, True):
        with tempfile.TemporaryDirectory() as corpus:
            if not shaped:
                shutil.copytree(CORPUS / form, corpus, dirs_exist_ok=True)
            limits = [
                f"-max_total_time={max(1, seconds // 2)}",
                "-timeout=20",
                "-rss_limit_mb=2048",
                "-max_len=8192",
            ]
            command = [
                sys.executable,
                "-m",
                "tests.fuzz.guided_run",
                form,
                *(["--shaped"] if shaped else []),
            ]
            artifacts = [
                f"-artifact_prefix={found}/{form}-{'shaped' if shaped else 'bytes'}-",
                "-print_final_stats=1",
            ]
            ended = subprocess.run(
                [*command, *limits, *artifacts, corpus], cwd=ROOT, capture_output=True, text=True
            )
        said = ended.stderr + ended.stdout
        executions += (runs := executed(said))
        print(
            f"{form:16} {'shapes' if shaped else 'bytes':7} {runs:>9} inputs  exit"
            f" {ended.returncode}",
            flush=True,
        )
        if ended.returncode:
            print(said[-4000:])
            findings += 1
    return Search(form=form, executions=executions, findings=findings)


def recorded(searches: list[Search], seconds: int) -> None:
    figures = {
        "forms": len(searches),
        "seconds_a_form": seconds,
        "executions": sum(search.executions for search in searches),
        "findings": sum(search.findings for search in searches),
    }
    record(
        "fuzz",
        f"make fuzz SECONDS={seconds} RECORD=1",
        figures | {f"{s.form}_executions": s.executions for s in searches},
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("forms", nargs="*", metavar="FORM", help=", ".join(PROPERTIES))
    parser.add_argument("--seconds", type=int, default=30, help="a form (with atheris)")
    parser.add_argument("--found", type=Path, default=Path(tempfile.gettempdir()) / "harness-fuzz")
    parser.add_argument(
        "--record",
        action="store_true",
        help="write docs/evidence/fuzz.json (all forms, with atheris)",
    )
    options = parser.parse_args()
    if options.record and options.forms:
        parser.error("--record is of all forms; leave the names out")
    known = {**PROPERTIES, **DAMAGED}
    if unknown := set(options.forms) - set(known):
        parser.error(f"unknown form {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    for form in options.forms or DAMAGED:
        if form in DAMAGED:
            with tempfile.TemporaryDirectory() as name:
                read_damaged(form, MANY, Path(name))
            print(f"{form:16} damaged {MANY:>9} files", flush=True)
    if options.forms and not set(options.forms) & set(PROPERTIES):
        return 0
    if importlib.util.find_spec("atheris") is None:
        print(NO_ATHERIS)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "tests/fuzz",
            "--hypothesis-profile=long",
            "--timeout=3600",
        ]
        return subprocess.run(
            [*command, "-k", " or ".join(options.forms or ["forms"])], cwd=ROOT
        ).returncode
    options.found.mkdir(parents=True, exist_ok=True)
    searches = [
        guided(form, options.seconds, options.found)
        for form in options.forms or PROPERTIES
        if form in PROPERTIES
    ]
    if options.record:
        recorded(searches, options.seconds)
    return int(any(search.findings for search in searches))


if __name__ == "__main__":
    sys.exit(main())
