"""Attacks on records: the agent acts on a project whose candidate has passed and awaits a person.

Undefended, nobody looks. Defended, the audit and `ledger verify` look and the gate is asked again;
once without the sandbox, so that every defence that stops it alone is known, and once in it.
"""

from collections.abc import Mapping

from harness.cheats.agent_acts import act, in_terminal, sandbox_of
from harness.cheats.attack import Attack, AttackOutcome, Moment, TrueScores
from harness.cheats.defended import Parent, gate, values_of
from harness.cheats.lab import LabProject, filled
from harness.cheats.recorded import CANDIDATE, Trail, audited
from harness.cheats.truth import EffectScene, effect
from harness.domain.statuses import GateName, SandboxKind


def on_record(
    place: LabProject, attack: Attack, sandbox: str, parent: Parent
) -> tuple[AttackOutcome, TrueScores]:
    """Let `attack` act at `place`, sandboxed as `sandbox` says, and ask everybody."""
    values, seen = values_of(place), Trail()
    program = filled(attack.acts[Moment.CLOSED], values)
    seen.log = act(place, program, sandbox)
    named = tuple(audited(place, seen))  # first: a gate writes anew what is derived
    done = _effect(place, attack, values, seen)
    gate(place, CANDIDATE, GateName.HELD_OUT, seen)
    outcome = AttackOutcome(
        codes=tuple(dict.fromkeys(seen.codes)),
        named=named,
        evidence={"done": done, "log": seen.log},
    )
    return outcome, TrueScores(score=parent.true, parent=parent.true)


def unwatched(
    place: LabProject, attack: Attack, parent: Parent
) -> tuple[AttackOutcome, TrueScores]:
    """Let `attack` act at `place`, where nothing holds it and nobody looks."""
    values, seen = values_of(place), Trail()
    seen.log = in_terminal(place, filled(attack.acts[Moment.CLOSED], values))
    outcome = AttackOutcome(
        evidence={"done": _effect(place, attack, values, seen), "log": seen.log}
    )
    return outcome, TrueScores(score=parent.true, parent=parent.true)


def holds_by_itself(sandbox: str) -> bool:
    """Whether `sandbox` is one at all."""
    return sandbox_of(sandbox).kind is not SandboxKind.NONE


def _effect(place: LabProject, attack: Attack, values: Mapping[str, str], seen: Trail) -> bool:
    return effect(attack, EffectScene(place=place, values=values, log=seen.log))
