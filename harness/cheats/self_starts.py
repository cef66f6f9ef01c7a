"""Attacks on a program that a person lets start itself in the project."""

import os
import subprocess
import sys
import time

from harness.cheats.attack import Attack, AttackOutcome
from harness.cheats.lab import LabProject
from harness.cheats.truth import EffectScene, effect
from harness.errors import HarnessError

_WITHIN_S = 8.0


def by_others(place: LabProject, attack: Attack) -> AttackOutcome:
    """Any tool that starts itself with `python -m` where it stands."""
    place.write(attack.files, {"ROOT": str(place.root)})
    place.run([sys.executable, "-m", "json.tool", "plan.md"])
    return _outcome(place, attack)


def by_harness(place: LabProject, attack: Attack) -> AttackOutcome:
    """`harness watch --split` of a person in tmux, which opens a pane of its own."""
    place.write(attack.files, {"ROOT": str(place.root)})
    socket = str(place.home / "tmux")
    tmux = ["tmux", "-f", "/dev/null", "-S", socket]
    _said([*tmux, "new-session", "-d", "-x", "200", "-y", "50", "sleep", "60"], place)
    try:
        pane = _said([*tmux, "display-message", "-p", "#{pane_id}"], place)
        server = _said([*tmux, "display-message", "-p", "#{pid}"], place)
        person = place.environment(TMUX=f"{socket},{server},0", TMUX_PANE=pane)
        opened = place.run(
            [sys.executable, "-P", "-m", "harness", "watch", "--split", "--json"],
            environment=person,
        )
        if opened.returncode:
            raise HarnessError(
                f"The lab's pane did not open: {opened.stdout}{opened.stderr}.",
                hint="Fix the lab.",
            )
        return _outcome(place, attack)
    finally:
        subprocess.run(
            [*tmux, "kill-server"],
            capture_output=True,
            timeout=10,
            check=False,
        )


def _said(argv: list[str], place: LabProject) -> str:
    ended = subprocess.run(
        argv,
        cwd=place.root,
        env=place.environment(TERM="xterm", PATH=os.environ["PATH"]),
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return ended.stdout.strip()


def _outcome(place: LabProject, attack: Attack) -> AttackOutcome:
    """Waits for the effect, which a process of its own may have a moment later."""
    scene = EffectScene(place=place, values={}, log="")
    end = time.monotonic() + _WITHIN_S
    while not (happened := effect(attack, scene)) and time.monotonic() < end:
        time.sleep(0.2)
    return AttackOutcome(evidence={"done": happened})
