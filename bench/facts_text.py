"""The text of the facts that one experiment leaves: as it is written, and as a closed part holds
it, where it stays.

An example's experiment (three seeds, trained, evaluated, judged) is tried several times; the first
one, which says what all have in common, and the plan do not count. Of MANY experiments all but the
last part are closed: what one takes then is at most a closed one and its share of a full open part.

    python bench/facts_text.py [--record]     # with --record: docs/evidence/facts_text.json
"""

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _record import record, wants_record

from harness.ledger.text_parts import LIMIT

EXAMPLE = "sklearn"
EXPERIMENTS = 3
MANY = 100
AIM = 6_000
"""Bytes an experiment, of MANY."""


def harness(root: Path, *words: str) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root.parent / "home"),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "harness", *words, "--project", str(root)]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")


def text(root: Path) -> bytes:
    (file,) = (root / ".harness/memory/facts").glob("*.jsonl")
    return file.read_bytes()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "project"
        root.mkdir()
        (root.parent / "home").mkdir()
        init = [sys.executable, "-m", "harness", "init", "--example", EXAMPLE, str(root)]
        home = {**os.environ, "HOME": str(root.parent / "home")}
        subprocess.run(init, check=True, env=home, capture_output=True, stdin=subprocess.DEVNULL)
        harness(root, "try", "the first one")
        before = len(text(root))
        for number in range(EXPERIMENTS):
            harness(root, "try", f"idea {number}")
        more = text(root)[before:]
    plain = len(more) / EXPERIMENTS
    closed = len(gzip.compress(more, mtime=0)) / EXPERIMENTS
    print(f"bytes of text an experiment: {plain:,.0f} as written, {closed:,.0f} in a closed part")
    of_many = closed + min(LIMIT, plain * MANY) / MANY
    met = "met" if of_many <= AIM else "MISSED"
    print(f"of {MANY}, the open part full: {of_many:,.0f}; aim: at most {AIM:,}: {met}")
    if wants_record():
        figures = {
            "plain_bytes": round(plain),
            "closed_bytes": round(closed),
            "of_100_bytes": round(of_many),
            "aim_bytes": AIM,
        }
        record("facts_text", "python bench/facts_text.py --record", figures)


if __name__ == "__main__":
    main()
