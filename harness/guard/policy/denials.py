"""Denials that are about what a step means, not about a path: with the command that does it
right."""

from __future__ import annotations

import os

from .path_rules import Denial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def experiment_open(snapshot: dict[str, Any]) -> Denial:
    """Why no further experiment may be opened now, with the next command."""
    current = snapshot["open_experiment"]
    experiment, gate = current["id"], snapshot["open_gate"]
    if gate:
        return Denial(
            "gate_open",
            f"{experiment}'s {gate.replace('_', '-')} gate awaits a decision;"
            " the next experiment can only be opened after it.",
            f"See `harness gate check {experiment}`; a person or the loop decides it.",
        )
    return Denial(
        "experiment_open",
        f"{experiment} is {current['status']} and has no decision; only one experiment can"
        " be open.",
        f"Go on with {experiment}: start_run trains it (by hand: `harness train {experiment} --"
        f" CMD`), then `harness gate check {experiment}`.",
    )


def training_outside(snapshot: dict[str, Any], words: list[str]) -> Denial:
    """`words` would start training by itself."""
    current = snapshot["open_experiment"]
    experiment = current["id"] if current else "EXP"
    by_hand = f"`harness train {experiment} -- {' '.join(words)}`"
    driver = snapshot["mode"] == "driver"
    return Denial(
        "training_outside_harness",
        f"`{' '.join(words)}` starts training outside the harness: no run is registered, so no gate"
        " can pass it.",
        f"Call the tool start_run instead (by hand: {by_hand})." if driver else f"Use {by_hand}.",
    )


def persons_verb(snapshot: dict[str, Any], verb: str, line: str = "") -> Denial:
    """`line`: the whole command, where it is known."""
    asked = verb in [" ".join(each) for each in snapshot.get("asked_verbs", ())]
    how = "Say in your answer what a person should decide, and why."
    if snapshot["mode"] != "driver":
        how += (
            f" They type `cd {quoted(snapshot['root'])} && {line or f'harness {verb}'}` in a"
            " terminal of their own; `!` here does not do: it has none, and is below an agent."
        )
        how += " In `harness claude` you may run it, and they are asked." if asked else ""
    return Denial(
        "human_verb",
        f"`harness {verb}` must be run by a person: no agent approves, overrides or rewrites what"
        " is recorded.",
        how,
    )


def quoted(word: str) -> str:
    """`word` as a shell reads it; shlex would be one import more in every call."""
    plain = word.replace("-", "").replace("_", "").replace("/", "").replace(".", "")
    return word if plain.isalnum() else "'" + word.replace("'", "'\"'\"'") + "'"


def unclear_start(snapshot: dict[str, Any], why: str, named: str, *, training: bool) -> Denial:
    """What runs cannot be told, and the text names a person's verb or the training."""
    current = snapshot["open_experiment"]
    experiment = current["id"] if current else "EXP"
    hint = (
        f"train with `harness train {experiment} -- CMD`"
        if training
        else "leave that command to a person"
    )
    return Denial(
        "unclear_start",
        f"It is unclear what the command runs ({why}), and it names {named}.",
        f"Write programs and verbs as literal words, each in a command of its own; {hint}.",
    )


def settings_command(called: str) -> Denial:
    """`called` changes which hooks, servers or plugins Claude Code loads."""
    return Denial(
        "protected_path",
        f"`{called}` changes Claude Code's own settings, which decide what is enforced.",
        "Say in your answer which setting a person should change, and why.",
    )


def unreadable(why: str, named: str) -> Denial:
    """A command that was not read to its end, and names something protected."""
    return Denial(
        "unreadable_command",
        f"The command cannot be fully parsed ({why}), and it names {named}, which is protected.",
        "Split it into plain commands with literal paths, or read the file with the Read tool.",
        named,
    )


def verb_named(text: str, snapshot: dict[str, Any]) -> str | None:
    """The person's verb of which `text` names every word, and the harness beside it; None when
    there is none."""
    if not any(name in text for name in snapshot["harness"]):
        return None
    tokens = words_of(text)
    if not any(os.path.basename(token) in snapshot["harness"] for token in tokens):
        return None
    return next(
        (" ".join(verb) for verb in snapshot["human_verbs"] if tokens.issuperset(verb)), None
    )


def words_of(text: str) -> set[str]:
    """What stands between the marks of a text in whatever language, with and without dashes."""
    import re

    return {token.lstrip("-") or token for token in re.findall(r"[\w./*?-]+", text)} | set(
        text.split()
    )
