"""The demo's plan with a live model: what it did, what it cost, what the gates said.

    make live KEY=... BUDGET=5        (US dollars)

The key comes in ANTHROPIC_API_KEY and reaches the gateway alone; the budget is the plan's
`budget.usd`, which no request passes. Written are docs/evidence/live.json (tokens and dollars that
the service counted, at list prices; requests; how the loop ended; scores and verdicts) and
docs/evidence/live-transcript.yaml (every session as a scenario, redacted). Without a key, or with
a budget that pays no request, nothing is begun.

HARNESS_LIVE_URL names another endpoint, as the test does; nothing else does.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import _record

from harness.demo.report import report
from harness.demo.run import prepare
from harness.domain.grade import PERSON
from harness.driver.loop_runner import open_gateway, run_loop
from harness.errors import HarnessError
from harness.ledger.project import open_project
from harness.ledger.spending import read_spending
from harness.plans.approval import approve_plan
from harness.sandbox.select import choose
from harness.traces.redaction import Redactor

KEY, URL = "ANTHROPIC_API_KEY", "HARNESS_LIVE_URL"
BUDGET_LINE = "budget: {"
KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "OMP_NUM_THREADS")


def variables(folder: Path, key: str) -> dict[str, str]:
    """All that the loop knows of this process's environment."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")  # supervisors look there too
    own = {name: os.environ[name] for name in KEPT if name in os.environ}
    own |= {KEY: key, "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    return own | ({"ANTHROPIC_BASE_URL": os.environ[URL]} if os.environ.get(URL) else {})


def with_budget(root: Path, usd: float) -> None:
    """The plan with a budget for models; it is approved after this."""
    plan = root / "plan.md"
    text = plan.read_text("utf-8")
    assert text.count(BUDGET_LINE) == 1
    plan.write_text(text.replace(BUDGET_LINE, f"{BUDGET_LINE}usd: {usd:g}, "), "utf-8")


def played(root: Path, folder: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    start = time.monotonic()
    transcript = folder / "transcript.yaml"
    with open_project(root, environment, caller=PERSON) as project:
        plan = approve_plan(project, root / "plan.md", by="human:live")
        gateway = open_gateway(project, plan, environment, record=transcript)
        sandbox = choose(None, required=False)
        ended = run_loop(project, gateway, sandbox, lambda event: print(event["text"], flush=True))
        told = report(project, ended, seconds=time.monotonic() - start)
        paid = list(read_spending(project.layout.spending).values())
    return {**told, "paid": paid, "transcript": transcript, "sandbox": str(sandbox.kind)}


def figures(told: Mapping[str, Any]) -> dict[str, Any]:
    paid = told["paid"]
    decisions = Counter(str(row["decision"]) for row in told["experiments"])
    verdicts = Counter(
        f"{gate} {said}" for row in told["experiments"] for gate, said in row["verdicts"].items()
    )
    return {
        "reason": told["reason"],
        "detail": told["detail"],
        "sandbox": told["sandbox"],
        "models": ", ".join(sorted({one.model for one in paid})),
        "requests": len(paid),
        "tokens": sum(one.tokens for one in paid),
        "usd_at_list_prices": round(sum(one.usd for one in paid), 4),
        "unsettled_requests": sum(not one.settled for one in paid),
        "experiments": len(told["experiments"]),
        "verdicts": ", ".join(f"{name}: {count}" for name, count in sorted(verdicts.items())),
        "decisions": ", ".join(f"{name}: {count}" for name, count in sorted(decisions.items())),
        "minutes": round(told["seconds"] / 60, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, required=True, help="US dollars")
    parser.add_argument("--project", type=Path, help="a prepared project instead of the demo's")
    parser.add_argument("--out", type=Path, default=_record.FOLDER)
    options = parser.parse_args()
    key = os.environ.pop(KEY, "")
    if not key:
        print(f"no {KEY}: nothing was begun; `make live KEY=... BUDGET=5`", file=sys.stderr)
        return 2
    _record.FOLDER = options.out
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        environment = variables(folder, key)
        try:
            root = options.project or prepare(
                folder / "live",
                seed=None,
                environment=environment,
                on_progress=lambda event: print(event["text"], flush=True),
            )
            with_budget(root, options.budget)
            told = played(root, folder, environment)
        except HarnessError as error:
            print(f"{error.message} {error.hint}", file=sys.stderr)
            return 2
        print(told["text"])
        redactor = Redactor(names=[folder.name])
        text = told["transcript"].read_text("utf-8")
        redactor.learn(text)
        written = redactor.text(text).replace(key, "[key]")
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "live-transcript.yaml").write_text(written, "utf-8")
        _record.record("live", "make live KEY=... BUDGET=...", figures(told))
    return 0 if told["experiments"] else 1


if __name__ == "__main__":
    sys.exit(main())
