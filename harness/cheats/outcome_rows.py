"""A row for each attack, in both worlds, and for each control, in the defended one, of the document
of each sandbox; with a digest of what it was made from."""

import ast
import functools
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from harness.cheats import (
    calls,
    decision_world,
    gateway_attacks,
    hidden_world,
    program_world,
    record_attacks,
    self_starts,
)
from harness.cheats import defended as with_defences
from harness.cheats import undefended as without
from harness.cheats.attack import LEAST_GAIN, Attack, AttackOutcome, Channel, Control, TrueScores
from harness.cheats.defences import caught, counts, defence_of, fired, graded, ordered
from harness.cheats.lab import LabProject, make_project
from harness.cheats.starting_points import make_candidate, make_parent, settle

_WORDS = 16


def digest(work: Attack | Control) -> str:
    """Hex digits over every field of `work`."""
    # Of a function: over its text, its closure and the constants it names, but not over what it
    # calls, so that a change of a helper does not make every row of the evidence old.
    plain = {field.name: _digestible(getattr(work, field.name)) for field in fields(work)}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:_WORDS]


def _digestible(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _digestible(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_digestible(inner) for inner in value]
    if is_dataclass(value):
        return {field.name: _digestible(getattr(value, field.name)) for field in fields(value)}
    return _text(value) if callable(value) else value


def _text(function: Callable[..., Any]) -> list[str]:
    code = function.__code__
    closed = [repr(cell.cell_contents) for cell in function.__closure__ or ()]
    named = [function.__globals__.get(name) for name in code.co_names]
    source = [text for line, text in _functions(code.co_filename) if line == code.co_firstlineno]
    return [
        *source,
        *closed,
        *(repr(value) for value in named if isinstance(value, str | int | float)),
    ]


@lru_cache(maxsize=64)
def _functions(path: str) -> list[tuple[int, str]]:
    """First line and text, as it would be written anew, of each function of a file."""
    tree = ast.parse(Path(path).read_text("utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    return [(node.lineno, ast.unparse(node)) for node in functions]


SEED = 11
_COPY = "at-"
Returned = TypeVar("Returned")


@dataclass(frozen=True, kw_only=True)
class Bases:
    """Projects with an honest parent, copied for each attack: the one without defences, which is
    the same for all sandboxes, and those of one sandbox."""

    naive: LabProject
    naive_true: float
    real: LabProject
    parent: with_defences.Parent
    judged: LabProject
    """`real` with a candidate that passed and awaits a person."""
    sandbox: str


def make_naive(folder: Path) -> tuple[LabProject, float]:
    """The starting point without defences, below `folder`, and its true score."""
    naive = make_project(folder / "naive", SEED)
    return naive, without.make_parent(naive)


def make_bases(
    folder: Path, naive: tuple[LabProject, float], sandbox: str, *, judged: bool = True
) -> Bases:
    """Build the starting points with all defences below `folder`."""
    real = make_project(folder / f"real-{sandbox}", SEED)
    parent = make_parent(real, sandbox)
    waiting = real
    if judged:
        waiting = real.copy_to(folder / f"judged-{sandbox}")
        settle(waiting)
        make_candidate(waiting, sandbox)
    place, true = naive
    return Bases(
        naive=place, naive_true=true, real=real, parent=parent, judged=waiting, sandbox=sandbox
    )


Side = tuple[AttackOutcome, TrueScores]


def attack_rows(every: Sequence[Bases], attack: Attack) -> list[dict[str, Any]]:
    """Let `attack` happen without defences, which knows no sandbox and so happens once, and with
    all of them in each sandbox; a row for each."""
    if attack.channel in _BESIDE_TRAINING:
        # These train without a sandbox, whichever it is: one row says it for all.
        bases = next((one for one in every if one.sandbox == "none"), every[0])
        return [_beside_row(bases, attack)] * len(every)
    first = _undefended(every[0], attack)
    return [_row(bases, attack, first, *_defended(bases, attack)) for bases in every]


def _undefended(bases: Bases, attack: Attack) -> Side:
    if attack.channel is Channel.RECORD:
        return _in_copy(
            bases.judged, lambda place: record_attacks.unwatched(place, attack, bases.parent)
        )
    return _in_copy(bases.naive, lambda place: without.undefended(place, attack, bases.naive_true))


def _defended(bases: Bases, attack: Attack) -> tuple[Side, list[str]]:
    """Also which defences stopped it, each by itself."""
    if attack.channel is not Channel.RECORD:
        then = _in_real(bases, attack)
        return then, fired(attack, *then) if caught(attack, *then) else []
    bare = _in_copy(
        bases.judged,
        lambda place: record_attacks.on_record(
            place,
            attack,
            "none",
            bases.parent,
        ),
    )
    then = bare
    by = fired(attack, *bare) if caught(attack, *bare) else []
    if record_attacks.holds_by_itself(bases.sandbox):
        then = _in_copy(
            bases.judged,
            lambda place: record_attacks.on_record(place, attack, bases.sandbox, bases.parent),
        )
        by = ordered(
            [*by, *(fired(attack, *then, structure="sandbox") if caught(attack, *then) else [])]
        )
    return then, by


_BESIDE_TRAINING = {
    Channel.SELF_START: (self_starts.by_others, self_starts.by_harness),
    Channel.PROGRAM: (program_world.by_others, program_world.by_harness),
    Channel.HIDDEN: (hidden_world.by_others, hidden_world.by_harness),
    Channel.APPROVAL: (decision_world.approved_blindly, decision_world.approved_by_difference),
    Channel.LINE: (decision_world.beside_its_parent, decision_world.beside_its_line),
    Channel.GATEWAY: (gateway_attacks.open_to_all, gateway_attacks.of_one_session),
}
"""What happens in each world where no experiment is trained, or without a sandbox."""


def _beside_row(bases: Bases, attack: Attack) -> dict[str, Any]:
    sides = zip((bases.naive, bases.real), _BESIDE_TRAINING[attack.channel], strict=True)
    truth = TrueScores(score=bases.parent.true, parent=bases.parent.true)
    first, then = (
        (_in_copy(place, functools.partial(happen, attack=attack)), truth)
        for place, happen in sides
    )
    by = fired(attack, *then) if caught(attack, *then) else []
    return _row(bases, attack, first, then, by)


def call_rows(
    every: Sequence[Bases], attacks: Sequence[Attack]
) -> dict[str, list[dict[str, Any]]]:
    """The rows of all attacks by tool calls, of each a row for each sandbox."""
    first = _called(every[0], attacks, guarded=False)
    rows: dict[str, list[dict[str, Any]]] = {attack.id: [] for attack in attacks}
    for bases in every:
        then = _called(bases, attacks, guarded=True)
        for attack in attacks:
            names_by = [
                *_by_findings(attack, *first[attack.id]),
                *_by_findings(attack, *then[attack.id]),
            ]
            held = record_attacks.holds_by_itself(bases.sandbox) and _in_copy(
                bases.judged,
                functools.partial(calls.held_by_sandbox, attack=attack, sandbox=bases.sandbox),
            )
            by = ordered([*names_by, *(["sandbox"] if held else [])])
            bare = AttackOutcome(evidence=first[attack.id][0].evidence), first[attack.id][1]
            rows[attack.id].append(_row(bases, attack, bare, then[attack.id], by))
    return rows


def _called(bases: Bases, attacks: Sequence[Attack], *, guarded: bool) -> dict[str, Side]:
    return _in_copy(
        bases.judged,
        lambda place: calls.outcomes(
            place,
            attacks,
            bases.parent,
            guarded=guarded,
        ),
    )


def _by_findings(attack: Attack, outcome: AttackOutcome, truth: TrueScores) -> list[str]:
    return [name for code in counts(attack, outcome) if (name := defence_of(code)) is not None]


def _row(
    bases: Bases,
    attack: Attack,
    first: Side,
    then: Side,
    by: list[str],
) -> dict[str, Any]:
    succeeded, stopped = attack.success(*first), caught(attack, *then)
    return {
        "id": attack.id,
        "digest": digest(attack),
        "area": attack.area,
        "mechanism": attack.mechanism,
        "source": attack.source,
        "kind": str(attack.kind),
        "succeeded_undefended": succeeded,
        "caught": stopped,
        "caught_by": by,
        "graded": "" if stopped else graded(attack, then[0]),
        "said": [_bare(code) for code in counts(attack, then[0])[:12]],
        "reason": "" if stopped else reason_of(attack, bases.sandbox),
        "undefended": _side(*first),
        "defended": _side(*then),
    }


def reason_of(attack: Attack, sandbox: str) -> str:
    """Why it is known to get through, if it is."""
    return attack.miss or (attack.unsandboxed if sandbox == "none" else "")


def control_row(bases: Bases, control: Control) -> dict[str, Any]:
    """Let honest work happen where everything is on; any code that it does not expect is a
    refusal."""
    outcome, truth = _in_real(bases, control)
    codes = [code for code in (*outcome.codes, *outcome.named) if code not in control.expects]
    return {
        "id": control.id,
        "digest": digest(control),
        "what": control.what,
        "refused": bool(codes),
        "said": codes,
        "improved": truth.score > truth.parent + LEAST_GAIN,
        **_side(outcome, truth),
    }


def _in_real(bases: Bases, work: Attack | Control) -> Side:
    return _in_copy(
        bases.real, lambda place: with_defences.defended(place, work, bases.sandbox, bases.parent)
    )


def _in_copy(source: LabProject, happen: Callable[[LabProject], Returned]) -> Returned:
    folder = Path(tempfile.mkdtemp(prefix=_COPY, dir=source.base.parent))
    place = source.copy_to(folder)
    settle(place)
    # What an attack left running would live on into the next rows.
    try:
        return happen(place)
    finally:
        for process in place.left_behind():
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _side(outcome: AttackOutcome, truth: TrueScores) -> dict[str, Any]:
    fields = asdict(outcome)
    return {
        "believed": _rounded(fields["believed"]),
        "kept": fields["kept"],
        "recomputed": {split: _rounded(value) for split, value in fields["recomputed"].items()},
        "done": bool(fields["evidence"].get("done")),
        "true": _rounded(truth.score),
        "true_parent": _rounded(truth.parent),
        "codes": [_bare(code) for code in outcome.codes],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _bare(code: str) -> str:
    """Without the temporary folder that the attack happened in."""
    return re.sub(rf"/\S*?/{_COPY}[^/\s]+/", "", code)
