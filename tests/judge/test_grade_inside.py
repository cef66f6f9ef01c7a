"""What a session of `harness claude` trains and evaluates is not lowered by it; a plain session
beside it lowers what comes after."""

import json
import re

import pytest

from tests.cli.journey import Journey
from tests.judge.inside import SANDBOXES, Inside

WAY = (
    "harness experiment new --hypothesis centroids && harness train exp-0001 &&"
    " harness evaluate exp-0001"
)


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_scores_of_a_session_say_what_its_sandbox_leaves_open(
    fresh: Journey, sandbox: str
) -> None:
    expected = "recomputed"
    if sandbox == "landlock":
        expected += ", local sockets not isolated"
    answer = Inside(fresh, sandbox).run(WAY)
    assert answer.exit_code == 0, answer.stdout + answer.stderr
    assert re.search(rf"3 seeds, spread [\d.]+, {expected}\nnext: ", answer.stdout)
    shown = fresh.harness("experiment", "show", "exp-0001", "--json").document
    assert shown["evidence"] == expected
    made = [*shown["runs"], *shown["evaluations"]]
    assert {row["caller"] for row in made} == {f"isolated:{sandbox}"}


def test_a_plain_session_beside_it_lowers_what_comes_after(fresh: Journey) -> None:
    inside = Inside(fresh, SANDBOXES[0])
    opened = inside.run("harness experiment new --hypothesis centroids")
    assert opened.exit_code == 0, opened.stderr
    receipts = fresh.root / ".harness/receipts"
    receipts.mkdir(exist_ok=True)
    plain = {"session": "a1b2", "event": "SessionStart", "time": "2999-01-01T00:00:00.000Z"}
    (receipts / "a1b2.jsonl").write_text(json.dumps(plain) + "\n", "utf-8")
    assert inside.run("harness train exp-0001").exit_code == 0
    shown = fresh.harness("experiment", "show", "exp-0001", "--json").document
    assert {run["caller"] for run in shown["runs"]} == {"open"}
