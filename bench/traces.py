"""How fast transcripts become states, against orjson alone, and how much memory a large one takes.

A synthetic transcript is made of a session's kinds of rows (prompts, answers over several rows,
results of a few kilobytes, progress), each with ids of its own. Prints the ratio of reading it to
parsing each line with orjson, both in MB/s of processor time and in turns; what redaction makes of
it on a part of the file; and the peak memory of a process that ingests all of it. Exits with 1
beyond the aims.

    python bench/traces.py [--megabytes 1000] [--record]

--record writes docs/evidence/traces.json.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random

import orjson
from _record import record, wants_record

from harness.traces.book import Book
from harness.traces.forms import claude_code
from harness.traces.redaction import Redactor
from harness.traces.tally import Tally

RATIO = 0.5
"""The smallest ratio to orjson's own speed."""
MEMORY_MB = 200
ROUNDS = 5
PART_MB = 100
"""Of the file, read in turns."""
REDACTED = 400
"""States that are redacted."""
_PEAK = """
import resource, sys
from pathlib import Path
from harness.traces.ingest import Reading, sources
reading = Reading(sources([Path(sys.argv[1])]))
states = sum(1 for _ in reading.states())
print(states, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=1000)
    megabytes = parser.parse_known_args()[0].megabytes
    with tempfile.TemporaryDirectory() as name:
        whole, part = Path(name) / "whole.jsonl", Path(name) / "part.jsonl"
        write(whole, megabytes)
        write(part, min(PART_MB, megabytes))
        pairs = [(speed(part, bare), speed(part, ours)) for _ in range(ROUNDS)]
        ratio = statistics.median(mine / theirs for theirs, mine in pairs)
        redaction = redacted(part)
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, str(whole)], capture_output=True, text=True, check=True
        )
    states, peak = done.stdout.split()
    figures = {
        "megabytes": megabytes,
        "states": int(states),
        "ratio_to_orjson": round(ratio, 2),
        "peak_memory_mb": round(float(peak), 1),
        "redaction_mb_per_s_of_rows": round(redaction, 2),
    }
    for key, value in figures.items():
        print(f"{key:28} {value}")
    if wants_record():
        record("traces", "python bench/traces.py", figures)
    return int(ratio < RATIO or float(peak) > MEMORY_MB)


def speed(path: Path, read: Callable[[Path], None]) -> float:
    """Megabytes a second of processor time."""
    before = time.process_time()
    read(path)
    return path.stat().st_size / 1e6 / (time.process_time() - before)


def bare(path: Path) -> None:
    with path.open("rb") as stream:
        for line in stream:
            orjson.loads(line)


def ours(path: Path) -> None:
    for _ in claude_code.read(path, Tally(path.name), Book(files=1)):
        pass


def redacted(path: Path) -> float:
    """Megabytes of written states a second."""
    states = claude_code.read(path, Tally(path.name), Book(files=1))
    rows = [state.row() for state in islice(states, REDACTED)]
    redactor, before = Redactor(), time.process_time()
    for row in rows:
        redactor.value(row)
    return sum(len(orjson.dumps(row)) for row in rows) / 1e6 / (time.process_time() - before)


def write(path: Path, megabytes: int) -> None:
    random, lines = Random(0), Path(__file__).read_text("utf-8").splitlines()
    made, number = 0, 0
    with path.open("wb") as stream:
        while made < megabytes * 1_000_000:
            for row in turn(random, lines, number):
                line = orjson.dumps(row) + b"\n"
                made += stream.write(line)
            number += 1


def turn(random: Random, lines: list[str], number: int) -> list[dict[str, object]]:
    """A prompt, or the answer before it goes on; an answer on two rows, progress, a result."""

    def text(length: int) -> str:
        """As the tool Read shows a file."""
        chosen = random.choices(lines, k=length)
        return "\n".join(f"{place:6}→{line}" for place, line in enumerate(chosen, 1))

    def row(kind: str, place: int, **more: object) -> dict[str, object]:
        uuid = f"{number:08x}-0000-4000-8000-{place:012x}"
        before = (number, place - 1) if place > (number % 8 > 0) else (number - 1, 4)
        return {
            "parentUuid": "{:08x}-0000-4000-8000-{:012x}".format(*before)
            if before[0] >= 0
            else None,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/work/project",
            "sessionId": "0b2c1e4a-0000-4000-8000-000000000000",
            "version": "2.1.29",
            "gitBranch": "main",
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-01-{1 + number % 28:02}T00:00:00.{place:03}Z",
            **more,
        }

    call = f"toolu_{number:024}"
    message = {
        "id": f"msg_{number:024}",
        "model": "claude-opus-5-5",
        "usage": {"input_tokens": 10, "output_tokens": 50},
    }
    thinking = {"type": "thinking", "thinking": text(8), "signature": "s" * 400}
    use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": text(2)}}
    output = text(80)
    result = {"type": "tool_result", "tool_use_id": call, "content": output}
    asked = [row("user", 0, message={"role": "user", "content": text(3)})]
    return [
        *(asked if number % 8 == 0 else ()),
        row("assistant", 1, message={**message, "content": [thinking]}),
        row("assistant", 2, message={**message, "content": [use]}),
        row("progress", 3, data={"type": "bash_progress", "output": ""}),
        row(
            "user",
            4,
            message={"role": "user", "content": [result]},
            toolUseResult={"stdout": output, "stderr": ""},
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
