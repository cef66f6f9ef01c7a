"""`harness claude` killed at moments drawn by a seed: no fact is lost, and no process is left."""

import random
import time

import pytest

from harness.ledger.text_parts import chain_lines
from tests.cli.journey import Journey
from tests.interactive.lab import must
from tests.judge.inside import SANDBOXES, Inside, left_over

KILLS = 20
LONGEST = 25.0
"""Seconds; a session that trains one seed takes longer on a slow machine, and less on a quick one:
then the kill finds it at its end."""
WORK = (
    "harness experiment new --hypothesis again --json >> said.txt;"
    " newest=$(ls -d .harness/experiments/exp-* | grep -v CHECK | tail -1);"
    " harness train $(basename $newest) >> said.txt 2>&1; sleep 1"
)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_at_twenty_moments(fresh: Journey) -> None:
    draw = random.Random(13)
    for number in range(KILLS):
        inside = Inside(fresh, SANDBOXES[number % 2])
        before = facts(fresh)
        running = inside.start(WORK)
        time.sleep(draw.uniform(0.2, LONGEST))
        running.kill()
        running.communicate()
        end = time.monotonic() + 60
        while left_over(fresh.home) and time.monotonic() < end:
            time.sleep(0.2)
        assert left_over(fresh.home) == [], number
        must(fresh.harness("ledger", "verify"))
        after = facts(fresh)
        assert after[: len(before)] == before, number
    # What a killed supervisor left is closed by the next training, not forgotten.
    rows = must(fresh.harness("experiment", "list", "--json")).document["experiments"]
    for row in rows:
        fresh.harness("train", row["experiment"])
        shown = must(fresh.harness("experiment", "show", row["experiment"], "--json")).document
        statuses = {run["status"] for run in shown["runs"]}
        assert not statuses & {"pending", "running"}, shown
    assert rows


def facts(journey: Journey) -> list[bytes]:
    """The ledger's facts in their order, closed parts too: what was appended stays."""
    must(journey.harness("ledger", "export"))
    folder = journey.root / ".harness/memory/facts"
    writers = sorted(path.stem for path in folder.glob("*.jsonl"))
    return [line for writer in writers for _, _, line, _ in chain_lines(folder, writer)]
