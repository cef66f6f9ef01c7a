"""What a night's sessions send, by profile, beside the stock preset with all its tools.

    python bench/cost_profiles.py [--record]

One scenario (a training that an alarm stops, its diagnosis, a scout, a better experiment, two
verdicts) is played through the real Claude Code CLI, against the scripted endpoint on loopback:
under each profile of harness/contract/profiles.py, with each knob of `low-token` alone, and with
the system prompt and the tools that Claude Code brings by itself, to which the role's prompt and
the harness's tools are added: without them it could not do the same work. The project has a full
briefing.

Measured are bytes of requests, their number, the first request of each role and the share of bytes
that repeat the request before (what a prompt cache reads). Projected, and apart from it, are
dollars: list prices, four bytes a token, every repeated byte read from the cache.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from _record import record

from harness.contract.profiles import DEFAULT, LOW_TOKEN, PROFILES, Profile
from harness.decisions.experiments import write_hand_off
from harness.domain.prices import DEFAULT_MODEL, FAMILIES
from harness.domain.statuses import SandboxKind
from harness.driver import session
from harness.driver.loop_runner import open_gateway, run_loop
from harness.model_gateway.wire import RecordedRequest
from harness.sandbox.select import choose

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT), str(ROOT / "tests/scenarios")]
import test_alarms as alarms  # noqa: E402  they need the line above
import toy_project as toy  # noqa: E402

from tests.model_gateway.kept import keep  # noqa: E402

STOCK = "stock"
FIRST, FIRST_BRIEFED, SHARE = 18_000, 26_000, 0.35
"""The targets: bytes of a first request without and with its briefing; of the stock's bytes."""
TOKEN_BYTES = 4
NOTE = (
    "The learning rate of 5.0 made the loss NaN after three epochs; a smaller one was not tried."
    " The centres are far apart, so a nearest-centroid rule may do. "
)


def project_in(folder: Path) -> Any:
    root = toy.make_project(folder / "a project")
    (root / "papers").mkdir()
    (root / "papers" / "centroids.md").write_text("# 1 Nearest centroids\n", "utf-8")
    text = toy.PLAN.replace("loop: {", "references: [papers]\nloop: {", 1)
    (root / "plan.md").write_text(text, "utf-8")
    opened = toy.approved(root, os.environ)
    for _ in range(2):
        text = (NOTE * 40)[:3900]
        write_hand_off(opened, text=text, by="human:bench", session=None)
    return opened


def scenario_in(folder: Path) -> Path:
    return toy.write_scenario(folder / "scenario.yaml", *alarms.sessions())


def stock_options(spec: Any, tools: Any, hooks: Any, on_stderr: Any) -> Any:
    """A session as Claude Code brings it, with the harness's tools beside its own."""
    preset = {"type": "preset", "preset": "claude_code"}
    made = OWN_OPTIONS(spec, tools, hooks, on_stderr)
    prompt = {**preset, "append": spec.system_prompt}
    return replace(made, system_prompt=prompt, tools=preset, disallowed_tools=[], settings=None)


OWN_OPTIONS: Callable[..., Any] = session._options


def played(profile: Profile, *, stock: bool = False) -> list[RecordedRequest]:
    """All requests of the scenario."""
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        folder = Path(made)
        stack.enter_context(patch.dict(os.environ, {"XDG_STATE_HOME": str(folder / "state")}))
        if stock:
            stack.enter_context(patch.object(session, "_options", stock_options))
        project = stack.enter_context(project_in(folder))
        gateway = open_gateway(project, project.plan(), {}, scenario=scenario_in(folder))
        requests = keep(gateway)
        ended = run_loop(
            project, gateway, choose(SandboxKind.NONE, required=False), profile=profile
        )
        expected = "budget" if profile.experiments == 1 else "target"
        assert ended.reason == expected, ended
        return requests


def wire(request: RecordedRequest) -> str:
    """Tools, system and messages in the order in which a prompt cache reads them."""
    parts = ("tools", "system", "messages")
    return "".join(json.dumps(request.body.get(name), ensure_ascii=False) for name in parts)


def measured(requests: Sequence[RecordedRequest]) -> dict[str, Any]:
    before: dict[str, str] = {}
    repeated = 0
    for request in requests:
        text = wire(request)
        repeated += common(before.get(request.asker.session, ""), text)
        before[request.asker.session] = text
    total = sum(request.bytes for request in requests)
    return {
        "bytes": total,
        "requests": len(requests),
        "stable_prefix_share": round(repeated / total, 3),
        "repeated": repeated,
        "models": sorted({str(one.body["model"]) for one in requests}),
        "efforts": sorted({str(effort_of(one)) for one in requests}),
        "cache_1h": sum('"ttl": "1h"' in json.dumps(one.body) for one in requests),
    }


def common(before: str, after: str) -> int:
    """Characters from the start that are the same."""
    pairs = zip(before, after, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), len(before))


def effort_of(request: RecordedRequest) -> str:
    return str((request.body.get("output_config") or {}).get("effort"))


def firsts(requests: Sequence[RecordedRequest]) -> dict[str, tuple[int, int]]:
    """Role -> bytes of its largest first request, without its briefing and with it."""
    found: dict[str, tuple[int, int]] = {}
    for request in requests:
        if request.turn:
            continue
        briefing = briefing_of(request)
        sizes = (request.bytes - briefing, request.bytes)
        known = found.get(request.asker.role, (0, 0))
        found[request.asker.role] = (max(known[0], sizes[0]), max(known[1], sizes[1]))
    return found


def briefing_of(request: RecordedRequest) -> int:
    """Bytes of what is told of earlier work, as JSON has them: briefing, findings, candidates."""
    text = json.dumps(request.body["messages"], ensure_ascii=False)
    start = text.find("## Briefing")
    after = text.find("## What to do", start)
    return len(text[start:after].encode()) if start >= 0 else 0


def dollars(figures: Mapping[str, Any], model: str) -> float:
    """Projected: repeated bytes are read from the cache, the others written to it."""
    price = FAMILIES[model]
    read = figures["repeated"] / TOKEN_BYTES
    written = (figures["bytes"] - figures["repeated"]) / TOKEN_BYTES
    return (read * price.cache_read + written * price.cache_write) / 1e6


def knobs() -> dict[str, Profile]:
    """Each of low-token's, alone. A scenario of two experiments shows the limit of one."""
    low, plain = PROFILES[LOW_TOKEN], PROFILES[DEFAULT]
    return {
        "model": replace(plain, model=low.model),
        "effort": replace(plain, effort=low.effort),
        "tools": replace(plain, without_tools=low.without_tools),
        "briefing": replace(plain, briefing=low.briefing),
        "caching": replace(plain, cache_1h=True),
        "roles": replace(plain, without_roles=low.without_roles),
        "iterations": replace(plain, experiments=1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    default = played(PROFILES[DEFAULT])
    whole = {
        STOCK: measured(played(PROFILES[DEFAULT], stock=True)),
        DEFAULT: measured(default),
        LOW_TOKEN: measured(played(PROFILES[LOW_TOKEN])),
    }
    figures: dict[str, Any] = {}
    print("measured: bytes and requests of one scenario")
    for name, one in whole.items():
        share = one["bytes"] / whole[STOCK]["bytes"]
        print(
            f"  {name:<10} {one['bytes']:>9,} bytes {one['requests']:>3} requests"
            f"  {share:6.1%} of stock  stable prefix {one['stable_prefix_share']:.1%}"
            f"  {', '.join(one['models'])}  effort {', '.join(one['efforts'])}"
            f"  {one['cache_1h']} with a cache of 1 h"
        )
        key = name.replace("-", "_")
        figures |= {f"{key}_{part}": one[part] for part in ("bytes", "requests")}
        figures[f"{key}_stable_prefix_share"] = one["stable_prefix_share"]
        figures[f"{key}_of_stock"] = round(share, 3)
    print("measured: first request of each role under `default`, without and with its briefing")
    for role, (without, briefed) in firsts(default).items():
        print(f"  {role:<18} {without:>7,} {briefed:>7,}")
        figures[f"first_{role}"] = without
        figures[f"first_{role}_briefed"] = briefed
    print("measured: each knob of low-token alone, bytes against `default`")
    for name, profile in knobs().items():
        one = measured(played(profile))
        change = one["bytes"] / whole[DEFAULT]["bytes"] - 1
        print(
            f"  {name:<10} {change:+7.1%}  {one['requests']} requests  {', '.join(one['models'])}"
            f"  effort {', '.join(one['efforts'])}  {one['cache_1h']} with a cache of 1 h"
        )
        figures[f"knob_{name}"] = round(change, 3)
    print("projected: US dollars of what is sent, answers left out (docs/cost.md)")
    for name, one in whole.items():
        model = PROFILES[LOW_TOKEN].model if name == LOW_TOKEN else DEFAULT_MODEL
        usd = dollars(one, model or DEFAULT_MODEL)
        print(f"  {name:<10} {usd:.4f} on {model}")
        figures[f"projected_usd_{name.replace('-', '_')}"] = round(usd, 4)
    sizes = firsts(default).values()
    held = all(one <= FIRST and both <= FIRST_BRIEFED for one, both in sizes)
    held &= figures["default_of_stock"] <= SHARE
    print(f"targets {'held' if held else 'MISSED'}: {FIRST}, {FIRST_BRIEFED}, {SHARE:.0%}")
    if options.record:
        record("cost_profiles", "python bench/cost_profiles.py --record", figures)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
