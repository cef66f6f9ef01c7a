"""What a run gets: its folders, interpreter, variables and part of the machine; and a description
of its machine and libraries."""

import contextlib
import functools
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from harness.artifacts.libraries import environments, read_libraries
from harness.artifacts.locate import Layout
from harness.artifacts.objects import store_bytes
from harness.domain import variables
from harness.domain.commands import found, passed_on, put_aside
from harness.domain.sandbox import Confinement, Sandbox
from harness.errors import RunError
from harness.files import canonical_json, lock
from harness.process import SYSTEM_FOLDERS, THREADS, system_program

PACKAGE = Path(__file__).resolve().parents[1]
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""For trainers and evaluators of language models: their libraries load nothing by its name."""
_ASK = r"""
import importlib.metadata, importlib.util, json, os, platform, re, sys
packages, paths = {}, set()
for one in importlib.metadata.distributions():
    head = (one.read_text("METADATA") or one.read_text("PKG-INFO") or "").partition("\n\n")[0]
    fields = dict(re.findall(r"^(Name|Version): *(.+?)\r?$", head, re.M))
    if len(fields) == 2:
        packages[fields["Name"]] = fields["Version"]
for folder in sys.path:
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".pth")]
    except OSError:
        continue
    for name in names:
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as lines:
                paths |= {line.strip() for line in lines if line.startswith("/")}
        except OSError:  # a link that leads nowhere: Python passes it over as well
            continue
for name, module in list(sys.modules.items()):
    if name.startswith("__editable__"):
        paths |= {os.path.dirname(path) for path in getattr(module, "MAPPING", {}).values()}
print(json.dumps({"python": platform.python_version(),
    "implementation": platform.python_implementation(),
    "packages": dict(sorted(packages.items())), "prefixes": sorted({sys.prefix, sys.base_prefix}),
    "has_harness": importlib.util.find_spec("harness") is not None,
    "project_paths": sorted(paths)}))
"""
# The metadata's head only: parsing all of it, as `distribution.metadata` does, takes twenty times
# as long.
VISIBLE = "CUDA_VISIBLE_DEVICES"


def child_environment(
    inherited: Mapping[str, str], private: Path, more: Mapping[str, str]
) -> dict[str, str]:
    """The whole environment of a training process, as it starts: the allowed part of `inherited`,
    `more`, and a HOME and a TMPDIR below `private`."""
    kept = passed_on(inherited)
    kept.setdefault("PATH", os.defpath)
    own = {
        "HOME": str(private / "home"),
        "TMPDIR": str(private / "tmp"),
        # Byte code beside the sources would change the code snapshot.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return put_aside({**kept, **own, "PYTHONUNBUFFERED": "1", **more})


def prepare_private(
    private: Path, *, python: Mapping[str, Any], imports: Sequence[str] = ()
) -> dict[str, str]:
    """Make the folder's parts; returns PYTHONPATH: `imports`, and the run logger for an interpreter
    that lacks it."""
    for name in ("home", "tmp"):
        (private / name).mkdir(parents=True)
    paths = list(imports)
    if not python["has_harness"]:
        library = private / "lib"
        library.mkdir()
        # A link to this one package: its own folder would bring all that is installed beside it.
        (library / PACKAGE.name).symlink_to(PACKAGE)
        paths.append(str(library))
    return {"PYTHONPATH": os.pathsep.join(paths)} if paths else {}


def ask_python(interpreter: str, sandbox: Sandbox) -> dict[str, Any]:
    """{python, implementation, packages, prefixes, has_harness, project_paths} of the interpreter;
    the last are the folders outside of it that it imports from. Raises RunError."""
    # Sandboxed: a project's own virtual environment runs the project's code at its start.
    asked = sandbox.run(
        [interpreter, "-I", "-c", _ASK],
        confinement=Confinement(read_only=(PACKAGE.parent,)),
        cwd=PACKAGE.parent,
        environment={"PATH": os.pathsep.join(SYSTEM_FOLDERS)},
        timeout_s=60,
    )
    try:
        answer: dict[str, Any] = json.loads(asked.stdout.splitlines()[-1])
    except (ValueError, IndexError) as error:
        last = asked.stderr.decode("utf-8", "replace").strip().splitlines()
        raise RunError(
            f"The interpreter {interpreter} did not answer:"
            f" {last[-1] if last else f'exit code {asked.exit_code}'}.",
            hint="Run it by hand; set `interpreter` in .harness/config.toml to one that works.",
            code="interpreter_broken",
        ) from error
    return answer


def describe(
    python: Mapping[str, Any], inherited: Mapping[str, str], libraries: str
) -> dict[str, Any]:
    """The environment of a run as plain JSON; `libraries` as `training_libraries` gives them."""
    return {
        "python": python["python"],
        "implementation": python["implementation"],
        "packages": python["packages"],
        "libraries": libraries,
        "os": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "gpus": list(gpus()),
        "threads": {name: inherited[name] for name in THREADS if name in inherited},
    }


@functools.cache
def _cpu_model() -> str:
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        for line in listed.read_text("utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Model"):
                return value.strip()
    return platform.processor() or platform.machine()


@functools.cache
def gpus() -> tuple[str, ...]:
    """Name, memory and driver of each NVIDIA GPU."""
    program = system_program("nvidia-smi")
    if program is None:
        return ()
    query = [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        asked = subprocess.run(query, capture_output=True, text=True, timeout=10, check=False)
    except (subprocess.TimeoutExpired, OSError):
        return ()
    return (
        tuple(line.strip() for line in asked.stdout.splitlines() if line.strip())
        if asked.returncode == 0
        else ()
    )


def run_variables(
    *, project: Path, experiment: str, run: str, run_dir: Path, token: str, seed: int, attempt: int
) -> dict[str, str]:
    """What the run logger reads. See harness.domain.variables."""
    return {
        variables.PROJECT: str(project),
        variables.EXPERIMENT: experiment,
        variables.RUN: run,
        variables.RUN_DIR: str(run_dir),
        variables.TOKEN: token,
        variables.SEED: str(seed),
        variables.ATTEMPT: str(attempt),
    }


def private_folder(token_sha256: str) -> Path:
    """Short: a socket's path has at most about 100 bytes."""
    return Path(tempfile.gettempdir()).resolve() / f"harness-run-{token_sha256[:16]}"


def make_private(token_sha256: str) -> Path:
    """Make it for this user alone. Raises FileExistsError when somebody was there first."""
    folder = private_folder(token_sha256)
    folder.mkdir(mode=0o700)
    return folder


def remove_private(token_sha256: str) -> None:
    """What cannot be removed stays in the system's temporary folder."""
    shutil.rmtree(private_folder(token_sha256), ignore_errors=True)


def fresh_folder(folder: Path) -> float:
    """Make a new, empty folder and return the file system's time of it; what was there before is
    moved beside it, never read. Raises RunError."""
    # The file system's time, not ours: it is compared with the times of files on that system.
    for number in range(1, 10_000):
        try:
            folder.mkdir(parents=True)
            return folder.stat().st_mtime
        except FileExistsError:
            aside = folder.with_name(f"{folder.name}.before-{number}")
            if not os.path.lexists(aside):
                folder.rename(aside)
    raise RunError(f"10,000 folders {folder}.before-* exist already.", hint="Remove them.")


def training_libraries(layout: Layout, programs: Sequence[str], python: Mapping[str, Any]) -> str:
    """Hash of {name: digest} in the vault: of the files of the Python environment below the project
    by which the first of `programs` that has one starts. Elsewhere no agent writes: there, of the
    packages' versions, as `ask_python` gave them."""
    for program in programs:
        path = Path(found(program) or program)
        if path.is_absolute() and (prefixes := environments(layout.root, path)):
            names = read_libraries(layout.root, prefixes, layout.libraries_seen).digests
            break
    else:
        names = {"python": python["python"], **python["packages"]}
    return store_bytes(canonical_json(names), layout.objects)


@contextlib.contextmanager
def machine_slot(
    layout: Layout, slots: int, inherited: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    """`inherited`, with the GPUs and threads of the first free one of `slots` parts. Where all are
    taken, by trainings of other calls, the first is shared. Nothing changes for one part."""
    if slots < 2:
        yield inherited
        return
    # Locks: the kernel takes a part back when its holder dies.
    with contextlib.ExitStack() as held:
        place = 0
        for number in range(slots):
            path = layout.state / "locks" / f"slot-{number}-of-{slots}.lock"
            if held.enter_context(lock(path, wait=False)):
                place = number
                break
        yield {
            **inherited,
            **part(place, slots, inherited, devices(inherited), os.cpu_count() or 1),
        }


def devices(inherited: Mapping[str, str]) -> list[str]:
    """The GPUs that a training may see, by what names them."""
    said = inherited.get(VISIBLE)
    if said is None:
        return [str(number) for number in range(len(gpus()))]
    return [name.strip() for name in said.split(",") if name.strip()]


def part(
    place: int, slots: int, inherited: Mapping[str, str], names: list[str], cores: int
) -> dict[str, str]:
    """The variables of part `place` of `slots`: whole GPUs, one that others use too only where
    there are fewer GPUs than parts. A number of threads that a person set stays."""
    own: list[str] = []
    if names:
        first, last = place * len(names) // slots, (place + 1) * len(names) // slots
        own = names[first:last] or [names[place % len(names)]]
    threads = str(max(1, cores // slots))
    found = {name: threads for name in THREADS if name not in inherited}
    return found | ({VISIBLE: ",".join(own)} if own else {})
