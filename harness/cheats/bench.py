"""Runs attacks and controls in both worlds and says what came out, as one document."""

import functools
import os
import platform
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from harness.cheats import calls, record
from harness.cheats import defended as with_defences
from harness.cheats import undefended as without
from harness.cheats.agent_acts import sandbox_of
from harness.cheats.attack import LEAST_GAIN, Attack, Channel, Control, Outcome, Truth
from harness.cheats.catalogue import ATTACKS, CONTROLS
from harness.cheats.defences import caught, counts, defence_of, fired, ordered
from harness.cheats.digest import digest
from harness.cheats.place import Place, make_project
from harness.cheats.starting_points import make_candidate, make_parent, settle

SEED = 11
Tell = Callable[[str], None]
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Bases:
    """Projects with an honest parent, copied for each attack."""

    naive: Place
    naive_true: float
    real: Place
    parent: with_defences.Parent
    judged: Place
    """`real` with a candidate that passed and awaits a person."""
    cage: str


def make_bases(folder: Path, cage: str, *, judged: bool = True) -> Bases:
    """Build both worlds' honest starting points below `folder`; a judged candidate only when it is wanted."""
    naive, real = make_project(folder / "naive", SEED), make_project(folder / "real", SEED)
    true = without.make_parent(naive)
    parent = make_parent(real, cage)
    waiting = real
    if judged:
        waiting = real.copy_to(folder / "judged")
        settle(waiting)
        make_candidate(waiting, cage)
    return Bases(naive=naive, naive_true=true, real=real, parent=parent, judged=waiting, cage=cage)


def attack_row(bases: Bases, attack: Attack) -> dict[str, Any]:
    """Let `attack` happen in both worlds."""
    if attack.channel is Channel.RECORD:
        return _record_row(bases, attack)
    first, truth = _in_copy(bases.naive, lambda place: without.undefended(place, attack, bases.naive_true))
    then, known = _in_real(bases, attack)
    by = fired(attack, then, known) if caught(attack, then, known) else []
    return _row(bases, attack, (first, truth), (then, known), by)


def _record_row(bases: Bases, attack: Attack) -> dict[str, Any]:
    first = _in_copy(bases.judged, lambda place: record.unwatched(place, attack, bases.parent))
    bare = _in_copy(bases.judged, lambda place: record.on_record(place, attack, "none", bases.parent))
    then = bare
    by = fired(attack, *bare) if caught(attack, *bare) else []
    if record.holds_by_itself(bases.cage):
        then = _in_copy(bases.judged, lambda place: record.on_record(place, attack, bases.cage, bases.parent))
        by = ordered([*by, *(fired(attack, *then, structure="cage") if caught(attack, *then) else [])])
    return _row(bases, attack, first, then, by)


def call_rows(bases: Bases, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The rows of all attacks by tool calls: a session without hooks, one with them, and each once more in the cage."""
    attacks = [item for item in ATTACKS if item.id in names]
    first = _in_copy(bases.judged, lambda place: calls.outcomes(place, attacks, bases.parent, guarded=False))
    then = _in_copy(bases.judged, lambda place: calls.outcomes(place, attacks, bases.parent, guarded=True))
    rows = {}
    for attack in attacks:
        names_by = [*_by_findings(attack, *first[attack.id]), *_by_findings(attack, *then[attack.id])]
        held = record.holds_by_itself(bases.cage) and _in_copy(
            bases.judged, functools.partial(calls.held_by_cage, attack=attack, cage=bases.cage)
        )
        by = ordered([*names_by, *(["cage"] if held else [])])
        bare = Outcome(evidence=first[attack.id][0].evidence), first[attack.id][1]
        rows[attack.id] = _row(bases, attack, bare, then[attack.id], by)
    return rows


def _by_findings(attack: Attack, outcome: Outcome, truth: Truth) -> list[str]:
    return [name for code in counts(attack, outcome) if (name := defence_of(code)) is not None]


def _row(
    bases: Bases, attack: Attack, first: tuple[Outcome, Truth], then: tuple[Outcome, Truth], by: list[str]
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
        "said": counts(attack, then[0])[:12],
        "reason": "" if stopped else reason_of(attack, bases.cage),
        "undefended": _plain(*first),
        "defended": _plain(*then),
    }


def reason_of(attack: Attack, cage: str) -> str:
    """Why it is known to get through; nothing when nobody knows."""
    return attack.miss or (attack.uncaged if cage == "none" else "")


def control_row(bases: Bases, control: Control) -> dict[str, Any]:
    """Let honest work happen where everything is on; refused when a code is said that it does not expect. `improved` is
    told by the truth."""
    outcome, truth = _in_real(bases, control)
    said = [code for code in (*outcome.codes, *outcome.named) if code not in control.expects]
    return {
        "id": control.id,
        "digest": digest(control),
        "what": control.what,
        "refused": bool(said),
        "said": said,
        "improved": truth.score > truth.parent + LEAST_GAIN,
        **_plain(outcome, truth),
    }


def run_bench(ids: Sequence[str], cage: str, jobs: int, *, tell: Tell, base: Path | None = None) -> dict[str, Any]:
    """All attacks and controls, or those named; `cage` as in `--cage`, `jobs` at a time.

    Raises KeyError for an id that nothing has.
    """
    chosen = [_by_id(name) for name in ids] or [*ATTACKS, *CONTROLS]
    folder = Path(tempfile.mkdtemp(prefix="cheats-", dir=base))
    try:
        bases = make_bases(folder, cage, judged=any(_needs_candidate(item) for item in chosen))
        rows = dict(_rows(bases, chosen, jobs, tell))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    attacks = [rows[item.id] for item in chosen if isinstance(item, Attack)]
    controls = [rows[item.id] for item in chosen if isinstance(item, Control)]
    return {
        "cage": str(sandbox_of(cage).kind),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "seed": SEED,
        "attacks": attacks,
        "controls": controls,
    }


def _rows(
    bases: Bases, chosen: Sequence[Attack | Control], jobs: int, tell: Tell
) -> Iterable[tuple[str, dict[str, Any]]]:
    with ProcessPoolExecutor(max_workers=jobs, mp_context=get_context("spawn")) as pool:
        together = [item.id for item in chosen if _has_calls(item.id) and not _is_apart(item)]
        tasks = [[item.id] for item in chosen if item.id not in together]
        waiting = [pool.submit(rows_of, bases, names) for names in ([together] if together else []) + tasks]
        for future in as_completed(waiting):
            for name, row in future.result().items():
                tell(_line(row))
                yield name, row


def one_row(bases: Bases, name: str) -> dict[str, Any]:
    item = _by_id(name)
    return attack_row(bases, item) if isinstance(item, Attack) else control_row(bases, item)


def rows_of(bases: Bases, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Id -> row, of one attack or control or of all by tool calls, in whatever process this is.

    A fault of the lab is a row that says so, with its trace.
    """
    try:
        if len(names) == 1 and not _has_calls(names[0]):
            return {names[0]: one_row(bases, names[0])}
        return call_rows(bases, names)
    except Exception as error:  # noqa: BLE001 - the boundary of a worker: a broken row must not hide the others
        fault = f"{error!r}\n{traceback.format_exc()}"
        return {name: {"id": name, "fault": fault, **_FAULT} for name in names}


def _needs_candidate(item: Attack | Control) -> bool:
    return isinstance(item, Attack) and item.channel is Channel.RECORD


def _has_calls(name: str) -> bool:
    item = _by_id(name)
    return isinstance(item, Attack) and bool(item.calls)


def _is_apart(item: Attack | Control) -> bool:
    return isinstance(item, Attack) and item.apart


_FAULT = {
    "succeeded_undefended": False,
    "caught": False,
    "caught_by": [],
    "refused": True,
    "said": [],
    "reason": "",
}


def _line(row: dict[str, Any]) -> str:
    if "fault" in row:
        return f"{row['id']}: the lab failed: {row['fault']}"
    if "refused" in row:
        return f"{row['id']}: {'REFUSED ' + ', '.join(row['said']) if row['refused'] else 'not refused'}"
    first = "" if row["succeeded_undefended"] else "  NOT REAL: did not succeed undefended"
    then = f"caught by {', '.join(row['caught_by'])}" if row["caught"] else f"GETS THROUGH: {row['reason'] or '?'}"
    return f"{row['id']}: {then}{first}"


def known_ids() -> list[str]:
    return [*(item.id for item in ATTACKS), *(item.id for item in CONTROLS)]


def _by_id(name: str) -> Attack | Control:
    every: list[Attack | Control] = [*ATTACKS, *CONTROLS]
    return {item.id: item for item in every}[name]


def _in_real(bases: Bases, item: Attack | Control) -> tuple[Outcome, Truth]:
    return _in_copy(bases.real, lambda place: with_defences.defended(place, item, bases.cage, bases.parent))


def _in_copy(source: Place, happen: Callable[[Place], Result]) -> Result:
    folder = Path(tempfile.mkdtemp(prefix="at-", dir=source.base.parent))
    place = source.copy_to(folder)
    settle(place)
    try:
        return happen(place)
    finally:
        for process in place.left_behind():
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _plain(outcome: Outcome, truth: Truth) -> dict[str, Any]:
    said = asdict(outcome)
    return {
        "believed": _rounded(said["believed"]),
        "kept": said["kept"],
        "recomputed": {split: _rounded(value) for split, value in said["recomputed"].items()},
        "done": bool(said["evidence"].get("done")),
        "true": _rounded(truth.score),
        "true_parent": _rounded(truth.parent),
        "codes": list(outcome.codes),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
