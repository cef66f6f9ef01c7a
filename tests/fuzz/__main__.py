"""Looks for inputs that break a reader: `python -m tests.fuzz [FORM...] [--seconds 30]`, or `make fuzz`.

With atheris (the extra `fuzz`) each form runs guided by coverage, half of its time on bytes and half on shapes. Without
it hypothesis searches at random instead, with many more examples than the suite has. Exit 1 when something was found.
"""

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.properties import PROPERTIES
from tests.fuzz.seeds import CORPUS

ROOT = Path(__file__).parents[2]
NO_ATHERIS = (
    "atheris is not installed (it has wheels for Linux and few versions of Python: pip install -e '.[fuzz]'). "
    "hypothesis searches at random instead, without coverage to guide it."
)


def guided(form: str, seconds: int, found: Path) -> bool:
    """Whether atheris found nothing; what it found is put into `found`."""
    fine = True
    for shaped in (False, True):
        with tempfile.TemporaryDirectory() as corpus:
            if not shaped:
                shutil.copytree(CORPUS / form, corpus, dirs_exist_ok=True)
            limits = [f"-max_total_time={max(1, seconds // 2)}", "-timeout=20", "-rss_limit_mb=2048", "-max_len=8192"]
            command = [sys.executable, "-m", "tests.fuzz.one", form, *(["--shaped"] if shaped else [])]
            artifacts = [f"-artifact_prefix={found}/{form}-{'shaped' if shaped else 'bytes'}-", "-print_final_stats=1"]
            ended = subprocess.run([*command, *limits, *artifacts, corpus], cwd=ROOT, capture_output=True, text=True)
        said = ended.stderr + ended.stdout
        runs = next((line.split()[-1] for line in said.splitlines() if "number_of_executed_units" in line), "?")
        print(f"{form:16} {'shapes' if shaped else 'bytes':7} {runs:>9} inputs  exit {ended.returncode}", flush=True)
        if ended.returncode:
            print(said[-4000:])
            fine = False
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("forms", nargs="*", metavar="FORM", help=", ".join(PROPERTIES))
    parser.add_argument("--seconds", type=int, default=30, help="a form (with atheris)")
    parser.add_argument("--found", type=Path, default=Path(tempfile.gettempdir()) / "harness-fuzz")
    options = parser.parse_args()
    if unknown := set(options.forms) - set(PROPERTIES):
        parser.error(f"unknown form {', '.join(sorted(unknown))}; known: {', '.join(PROPERTIES)}")
    if importlib.util.find_spec("atheris") is None:
        print(NO_ATHERIS)
        command = [sys.executable, "-m", "pytest", "tests/fuzz", "--hypothesis-profile=long", "--timeout=3600"]
        return subprocess.run([*command, "-k", " or ".join(options.forms or ["forms"])], cwd=ROOT).returncode
    fine = True
    options.found.mkdir(parents=True, exist_ok=True)
    for form in options.forms or PROPERTIES:
        fine = guided(form, options.seconds, options.found) and fine
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
