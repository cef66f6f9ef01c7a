"""What a run gets: its folders, interpreter and variables, and a description of the machine."""

import functools
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from harness.domain import variables
from harness.domain.commands import passed_on, put_aside
from harness.domain.sandbox import Confinement, Sandbox
from harness.errors import RunError
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
