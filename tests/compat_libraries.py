"""`make compat`: training with the pinned TRL, transformers and PEFT, and with the newest.

The newest are asked of pip. They go into an environment that is this one in hard links, torch as it
is; where the pinned ones are the newest, they run once. Words such as `trl==1.15.0` take these
instead of the newest, `--record` writes docs/evidence/compat_libraries.json, and words that begin
with a dash go to pytest.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from bench._record import record

ROOT = Path(__file__).parents[1]
LIBRARIES = ("trl", "transformers", "peft")
PROOFS = (  # without those of whole commands, which have limits of time
    "tests/training/test_trainers.py",
    "tests/training/test_composed.py",
    "tests/training/test_rollout_tools.py",
    "tests/training/test_chat.py",
    "tests/training/test_divergences.py",
    "tests/training/test_trace_alignment.py",
    "tests/training/test_evaluators.py",
    "tests/training/test_hf_callback.py",
    "tests/posttrain/test_adapter.py",
    "tests/posttrain/test_local_model.py",
    "tests/teachers/test_teachers.py",
)


def in_links(folder: Path) -> Path:
    """This environment again, its files as hard links; its interpreter."""
    shutil.copytree(sys.prefix, folder, symlinks=True, copy_function=os.link)
    here, there = (os.fsencode(one) for one in (sys.prefix, folder))
    for script in (folder / "bin").iterdir():
        first, end, rest = script.read_bytes().partition(b"\n")
        if not script.is_symlink() and first.startswith(b"#!") and here in first:
            mode = script.stat().st_mode
            script.unlink()  # the other environment has the same file
            script.write_bytes(first.replace(here, there) + end + rest)
            script.chmod(mode)
    return folder / "bin/python"


def pip(python: Path, *words: str) -> str:
    command = [str(python), "-m", "pip", "install", "--quiet", "--upgrade", *words]
    torch = f"torch=={version('torch')}"
    done = subprocess.run([*command, torch], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def replaced(python: Path, wanted: list[str]) -> dict[str, str]:
    """Of the libraries, those that pip would replace, with the versions that it would take."""
    told = json.loads(pip(python, "--dry-run", "--report", "-", *wanted))
    found = {one["metadata"]["name"].lower(): one["metadata"] for one in told["install"]}
    return {name: found[name]["version"] for name in LIBRARIES if name in found}


def prove(python: Path, versions: dict[str, str], words: list[str]) -> bool:
    print(f"== {in_words(versions)}", flush=True)
    command = [str(python), "-m", "pytest", *PROOFS, "-m", "slow or not slow", *words]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def in_words(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {one}" for name, one in versions.items())


def main() -> int:
    reader = argparse.ArgumentParser(
        description="Training with the pinned libraries and the newest."
    )
    reader.add_argument(
        "--record", action="store_true", help="write docs/evidence/compat_libraries.json"
    )
    reader.add_argument("libraries", nargs="*", help="these instead of the newest")
    given, words = reader.parse_known_args()
    pinned = {name: version(name) for name in LIBRARIES}
    results = [(pinned, prove(Path(sys.executable), pinned, words))]
    wanted = given.libraries or list(LIBRARIES)
    found = replaced(Path(sys.executable), wanted)
    if found:
        beside = Path(sys.prefix).parent / "build"  # links lead to files of one disk
        beside.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=beside) as folder:
            python = in_links(Path(folder) / "newest")
            pip(python, *wanted)
            results.append((pinned | found, prove(python, pinned | found, words)))
    else:
        print("The pinned libraries are the newest: they ran once.")
    for versions, passed in results:
        print(f"{in_words(versions)}: {'pass' if passed else 'FAIL'}")
    passed = all(one for _, one in results)
    if given.record and not (words or given.libraries):
        figures = {f"pinned {name}": one for name, one in pinned.items()}
        figures |= {f"newest {name}": one for name, one in (pinned | found).items()}
        figures |= {"torch": version("torch"), "result": "pass" if passed else "FAIL"}
        record("compat_libraries", "make compat LIBRARIES=1 RECORD=1", figures)
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
