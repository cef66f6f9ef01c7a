"""Run attacks and controls in both worlds; the result is one document for each sandbox."""

import compileall
import os
import platform
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import harness
from harness.cheats.agent_acts import sandbox_of
from harness.cheats.attack import Attack, Channel, Control
from harness.cheats.catalogue import ATTACKS, CONTROLS
from harness.cheats.outcome_rows import (
    SEED,
    Bases,
    attack_rows,
    call_rows,
    control_row,
    make_bases,
    make_naive,
)

Tell = Callable[[str], None]


def run_bench(
    ids: Sequence[str],
    sandboxes: Sequence[str],
    jobs: int,
    *,
    tell: Tell,
    base: Path | None = None,
    seconds: Mapping[str, float] | None = None,
) -> list[dict[str, Any]]:
    """All attacks and controls, or those named; `sandboxes` as in `--sandbox`, `jobs` at a time.
    What knows no sandbox happens once for all of them. `seconds`: how long each took before.

    Raises KeyError for an id that nothing has.
    """
    _compile()
    chosen = [_by_id(name) for name in ids] or [*ATTACKS, *CONTROLS]
    folder = Path(tempfile.mkdtemp(prefix="cheats-", dir=base))
    try:
        with ProcessPoolExecutor(max_workers=jobs, mp_context=get_context("spawn")) as pool:
            judged = any(_needs_candidate(one) for one in chosen)
            make = partial(make_bases, folder, make_naive(folder), judged=judged)
            every = list(pool.map(make, sandboxes))
            rows = dict(_rows(pool, every, _tasks(chosen, seconds or {}), tell))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [
        {
            "sandbox": str(sandbox_of(sandbox).kind),
            "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
            "seed": SEED,
            "attacks": [rows[one.id][place] for one in chosen if isinstance(one, Attack)],
            "controls": [rows[one.id][place] for one in chosen if isinstance(one, Control)],
        }
        for place, sandbox in enumerate(sandboxes)
    ]


def _compile() -> None:
    # The lab's programs keep no byte code: each of hundreds of commands would compile the same.
    compileall.compile_dir(Path(harness.__file__).parent, quiet=2)


def _tasks(chosen: Sequence[Attack | Control], seconds: Mapping[str, float]) -> list[list[str]]:
    """Ids that are tried together; the longest first, so that no process is alone at the end."""
    together = [one.id for one in chosen if _has_calls(one.id) and not _is_apart(one)]
    tasks = [[one.id] for one in chosen if one.id not in together]
    tasks = ([together] if together else []) + tasks
    return sorted(tasks, key=lambda names: -sum(seconds.get(name, 0.0) for name in names))


def _rows(
    pool: ProcessPoolExecutor, every: Sequence[Bases], tasks: Sequence[Sequence[str]], tell: Tell
) -> Iterable[tuple[str, list[dict[str, Any]]]]:
    waiting = [pool.submit(rows_of, every, names) for names in tasks]
    for future in as_completed(waiting):
        for name, rows in future.result().items():
            for bases, row in zip(every, rows, strict=True):
                tell(f"{bases.sandbox}: {_line(row)}" if len(every) > 1 else _line(row))
            yield name, rows


def rows_of(every: Sequence[Bases], names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Id -> a row for each sandbox, of one attack or control or of all by tool calls, in whatever
    process this is.

    `seconds` is how long they took, shared evenly by all rows that were made together. A fault of
    the lab is a row that says so, with its trace.
    """
    began = time.monotonic()
    rows = _rows_of(every, names)
    seconds = round((time.monotonic() - began) / len(names) / len(every), 1)
    return {name: [{**row, "seconds": seconds} for row in some] for name, some in rows.items()}


def _rows_of(every: Sequence[Bases], names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    try:
        if len(names) == 1 and not _has_calls(names[0]):
            one = _by_id(names[0])
            if isinstance(one, Attack):
                return {one.id: attack_rows(every, one)}
            return {one.id: [control_row(bases, one) for bases in every]}
        return call_rows(every, [attack for attack in ATTACKS if attack.id in names])
    # A fault of the lab in one row must not hide the other rows.
    except Exception as error:  # noqa: BLE001
        fault = f"{error!r}\n{traceback.format_exc()}"
        return {name: [{"id": name, "fault": fault, **FAULT}] * len(every) for name in names}


def _needs_candidate(work: Attack | Control) -> bool:
    return isinstance(work, Attack) and work.channel is Channel.RECORD


def _has_calls(name: str) -> bool:
    work = _by_id(name)
    return isinstance(work, Attack) and bool(work.calls)


def _is_apart(work: Attack | Control) -> bool:
    return isinstance(work, Attack) and work.apart


FAULT = {
    "succeeded_undefended": False,
    "caught": False,
    "caught_by": [],
    "graded": "",
    "refused": True,
    "said": [],
    "reason": "",
}


def _line(row: dict[str, Any]) -> str:
    if "fault" in row:
        return f"{row['id']}: the lab failed: {row['fault']}"
    if "refused" in row:
        return (
            f"{row['id']}:"
            f" {'REFUSED ' + ', '.join(row['said']) if row['refused'] else 'not refused'}"
        )
    first = "" if row["succeeded_undefended"] else "  NOT REAL: did not succeed undefended"
    then = f"GETS THROUGH: {row['reason'] or '?'}"
    if row["caught"]:
        then = f"caught by {', '.join(row['caught_by'])}"
    elif row["graded"]:
        then = f"not stopped, graded `{row['graded']}`"
    return f"{row['id']}: {then}{first}"


def known_ids() -> list[str]:
    return [*(one.id for one in ATTACKS), *(one.id for one in CONTROLS)]


def _by_id(name: str) -> Attack | Control:
    every: list[Attack | Control] = [*ATTACKS, *CONTROLS]
    return {one.id: one for one in every}[name]
