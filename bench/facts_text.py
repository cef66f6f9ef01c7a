"""The text of the facts that one experiment leaves: as it is written, and as a closed part holds
it, where it stays.

An example's experiment (three seeds, trained, evaluated, judged) is tried several times; the first
one, which says what all have in common, and the plan do not count.

    python bench/facts_text.py [--record]     # with --record: docs/evidence/facts_text.json
"""

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _record import record, wants_record

EXAMPLE = "sklearn"
EXPERIMENTS = 3
AIM = 6_000


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
    print(f"aim: at most {AIM:,} where it stays: {'met' if closed <= AIM else 'MISSED'}")
    if wants_record():
        figures = {"plain_bytes": round(plain), "closed_bytes": round(closed), "aim_bytes": AIM}
        record("facts_text", "python bench/facts_text.py --record", figures)


if __name__ == "__main__":
    main()
