"""Running the agent's predict command: sandboxed, in a fresh directory, on rows without labels
under fresh ids.

The directory holds `code` (the run's snapshot; the working directory), `inputs`, and `output` (the
only writable folder; also HOME and TMPDIR).
"""

import os
import re
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from harness.artifacts.code_snapshot import Snapshot, materialise
from harness.artifacts.content import linked
from harness.artifacts.objects import ObjectDamagedError
from harness.domain import variables
from harness.domain.commands import passed_on, with_interpreter
from harness.domain.sandbox import Completed, Confinement, Sandbox, machine_share
from harness.domain.statuses import SandboxKind
from harness.errors import UsageError
from harness.evaluation import problems
from harness.evaluation.checkpoint_copy import marks_of, require_unchanged
from harness.evaluation.predictions import NAME, RawColumns, read_predictions
from harness.evaluation.problems import Unscorable, last_lines, quoted
from harness.evaluation.split_rows import SplitRows, fresh_ids, hand_out
from harness.files import make_folder

CODE = "code"


@dataclass(frozen=True, kw_only=True)
class PredictLimits:
    predict_seconds: float = 600.0
    score_seconds: float = 300.0
    memory_bytes: int | None = field(default_factory=machine_share)
    """Of each process of predict; beyond it a MemoryError ends as predict_crashed."""
    predictions_bytes: int = 256 << 20
    """Of the predictions file, and of what it unpacks to."""


@dataclass(frozen=True, kw_only=True)
class PredictCommand:
    """All that predict needs but for the rows."""

    argv: tuple[str, ...]
    interpreter: str
    """Takes the place of `python` or `python3` as the command's first word."""
    snapshot: Snapshot
    objects: Path
    left_out: tuple[str, ...]
    """The plan's data files, relative to the snapshot's root: labels are no code."""
    checkpoint: Path
    """The verified copy."""
    checkpoint_hash: str
    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    """Absent whatever else is readable: where labels and facts lie."""
    environment: Mapping[str, str]
    """The harness's own; only `domain.commands.PASSED_ON` reaches the command."""
    limits: PredictLimits
    work: Path
    before: Callable[[], None]
    """Called when all is laid out, before the command sees the rows."""
    root: Path
    """The project's; `readable` below it is seen at the same place in the code."""
    byte_code: Path | None = None
    """Where Python looks for byte code in place of the environment's own."""


@dataclass(frozen=True, kw_only=True)
class RawPredictions:
    ids: tuple[str, ...]
    """The fresh ids, in the order of the indices asked for."""
    columns: RawColumns
    seconds: float
    """That the command took."""


def predict(
    command: PredictCommand, sandbox: Sandbox, rows: SplitRows, order: Sequence[int], seed: str
) -> RawPredictions:
    """Predict `rows` at the indices `order`, handed out in that order under ids made from `seed`.
    Raises Unscorable."""
    make_folder(command.work)
    with tempfile.TemporaryDirectory(
        dir=command.work, prefix="predict-", ignore_cleanup_errors=True
    ) as name:
        fresh = Path(name).resolve()
        code, inputs, output = (fresh / part for part in (CODE, "inputs", "output"))
        for folder in (inputs, output, output / "home", output / "tmp"):
            folder.mkdir()
        _lay_out_code(command, code)
        ids = tuple(fresh_ids(order, seed))
        table = _hand_out(rows, inputs, order, ids)
        words = with_interpreter(command.argv, command.interpreter)
        confinement = Confinement(
            writable=(output,),
            read_only=(code, inputs, command.checkpoint.parent, *_extra(command)),
            hidden=command.hidden,
        )
        environment = _environment(command, table, output)
        # What cannot be confined is told here: a look is counted for rows that predict gets.
        sandbox.command(words, confinement, environment=environment)
        command.before()
        before = marks_of(command.checkpoint)
        completed = sandbox.run(
            words,
            confinement=confinement,
            cwd=code,
            environment=environment,
            timeout_s=command.limits.predict_seconds,
            memory_bytes=command.limits.memory_bytes,
        )
        # A sandbox shows it read-only; hashed again where something changed all the same.
        if sandbox.kind is SandboxKind.NONE or marks_of(command.checkpoint) != before:
            require_unchanged(command.checkpoint, command.checkpoint_hash)
        _require_done(completed, command, fresh)
        columns = read_predictions(output, rows=len(order), limit=command.limits.predictions_bytes)
    return RawPredictions(ids=ids, columns=columns, seconds=completed.seconds)


def _extra(command: PredictCommand) -> tuple[Path, ...]:
    compiled = command.byte_code
    return command.readable if compiled is None else (*command.readable, compiled)


def _lay_out_code(command: PredictCommand, target: Path) -> None:
    out = {PurePosixPath(path) for path in command.left_out}
    files = {
        name: digest
        for name, digest in command.snapshot.files.items()
        if out.isdisjoint((PurePosixPath(name), *PurePosixPath(name).parents))
    }
    try:
        materialise(replace(command.snapshot, files=files), command.objects, target)
        for path in command.readable:
            if command.root in path.parents:
                _link(target, path.relative_to(command.root), path)
    except (UsageError, ObjectDamagedError, OSError) as error:
        raise Unscorable(problems.code_unavailable(str(error))) from error


def _link(code: Path, name: Path, target: Path) -> None:
    link = code / name
    if linked(code, link) is None and not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)


def _hand_out(rows: SplitRows, target: Path, order: Sequence[int], ids: Sequence[str]) -> Path:
    try:
        return hand_out(rows, target, order, ids)
    except UsageError as error:
        raise Unscorable(problems.table_unusable("input", error.message)) from error


def _environment(command: PredictCommand, inputs: Path, output: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        **passed_on(command.environment),
        "LC_ALL": "C.UTF-8",
        "HOME": str(output / "home"),
        "TMPDIR": str(output / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        **({} if command.byte_code is None else {"PYTHONPYCACHEPREFIX": str(command.byte_code)}),
        variables.CHECKPOINT: str(command.checkpoint),
        variables.INPUTS: str(inputs),
        variables.PREDICTIONS: str(output / NAME),
    }


def _require_done(completed: Completed, command: PredictCommand, fresh: Path) -> None:
    if completed.timed_out:
        raise Unscorable(problems.timed_out(command.limits.predict_seconds))
    if completed.exit_code != 0:
        hint = hint_of(
            completed.stderr,
            code=fresh / CODE,
            held=command.snapshot.files,
            left_out=command.left_out,
            interpreter=command.interpreter,
        )
        # Without the fresh folder's name a fault of the code reads the same for each seed.
        stderr = completed.stderr.replace(f"{fresh}/".encode(), b"")
        raise Unscorable(problems.crashed(completed.exit_code, stderr, hint))


_NO_FILE = re.compile(r"(?:FileNotFoundError: .*?|can't open file )'([^'\n]+)'")
"""Python's own words, for a file that the program opens and for the program itself."""
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^'\n]+)'")
PACKAGE = "harness"


def hint_of(
    stderr: bytes, *, code: Path, held: Collection[str], left_out: Sequence[str], interpreter: str
) -> str:
    """The next step.

    Args:
        code: the folder in which the command ran; it holds the snapshot's files.
        held: the snapshot's files, relative.
        left_out: the plan's data files, which it does not hold on purpose.
        interpreter: the Python that ran it.
    """
    end = last_lines(stderr)
    if (absent := _absent_file(end, code, held, left_out)) is not None:
        return (
            "predict runs the code snapshot taken when the run was registered, and"
            f" {quoted(absent)} was not in it: git ignores it, or it was made later. Commit it or"
            " stop ignoring it, then train again."
        )
    if modules := _NO_MODULE.findall(end):
        top = modules[-1].partition(".")[0]
        if top == PACKAGE:
            return (
                f"predict runs with {interpreter}, which has no run logger, and needs none: where"
                " it imports the training program, import the run logger there inside the function"
                " that trains. Then `harness train EXP --from EXP` takes the same weights with the"
                " mended code."
            )
        return (
            f"predict runs with {interpreter}, which has no {quoted(top)}: install the package"
            f" there (`{interpreter} -m pip install {top}`, if the package has that name) and"
            f" evaluate again. If {quoted(top)} is a file of the project, git ignores it: stop"
            " ignoring it, then train again."
        )
    return (
        "Run it by hand with HARNESS_CHECKPOINT, HARNESS_INPUTS and HARNESS_PREDICTIONS set; it"
        " sees the code snapshot of the run, not the project's data, and may write only beside"
        " HARNESS_PREDICTIONS."
    )


def _absent_file(
    stderr: str, code: Path, held: Collection[str], left_out: Sequence[str]
) -> str | None:
    """The missing file, relative to the code folder, that Python named last. None for one of the
    snapshot, for the plan's data, left out on purpose, and for a path outside the project."""
    names = _NO_FILE.findall(stderr)
    if not names:
        return None
    path = PurePosixPath(os.path.relpath(code / names[-1], code))
    elsewhere = path.parts[:1] in ((), (os.pardir,))
    kept_out = not {path, *path.parents}.isdisjoint(map(PurePosixPath, left_out))
    return None if elsewhere or kept_out or str(path) in held else str(path)
