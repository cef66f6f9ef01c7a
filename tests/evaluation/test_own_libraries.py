"""What predict imports from an environment in the project is part of what was scored."""

import os
import py_compile
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.artifacts.libraries import environments, read_libraries
from harness.domain.sandbox import Completed, Confinement, Sandbox
from harness.domain.statuses import GateName, SandboxKind, Split, Verdict
from harness.errors import RefusedError
from harness.evaluation.byte_code import compiled
from harness.evaluation.evaluate_run import command_of
from harness.evaluation.experiment import awaiting, evaluate_experiment
from harness.evaluation.predict import predict
from harness.evaluation.predict_sources import OwnLibraries
from harness.evaluation.split_rows import load_rows
from harness.gates.check import check_gate, require_validation_passed, standing
from harness.gates.collect import changed
from harness.ledger.facts import Evaluation, RecordedVerdict
from harness.plans.approval import approve_plan
from tests.evaluation.workplace import PREDICT as BY_CUT
from tests.evaluation.workplace import Workplace
from tests.world import GOOD, PREDICT, InProcess, World, make_root

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
NUMLIB = """\
try:
    import fastlib
except ImportError:
    fastlib = None


def draw():
    import os, latelib.pages as pages
    from other import late
"""
PACKAGES = {
    "numlib/__init__.py": NUMLIB,
    "numlib/__pycache__/numbalike.nbi": "machine code",
    "numlib-1.0.dist-info/METADATA": "Name: numlib\nVersion: 1.0\n",
    "other.py": "def late():\n    return importlib.import_module('deeplib')\n",
    "unreached.py": "def late():\n    import plots\n",
    "pip/__init__.py": "",
    "../../../bin/pip3": "#!python3\n",
}
EXPERIMENT = "exp-0001"
ANSWERS = "write([(row['id'], numlib.side(float(row['x']), cut)) for row in rows])\n"


def environment_in(root: Path) -> Path:
    """A Python environment below `root`; its site folder."""
    site = root / ".venv/lib" / PYTHON / "site-packages"
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/python").symlink_to(os.path.realpath(sys.executable))
    home = Path(os.path.realpath(sys.executable)).parent
    (root / ".venv/pyvenv.cfg").write_text(f"home = {home}\n")
    write(site, PACKAGES)
    return site


def write(site: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)


class Predicts(InProcess):
    """Runs nothing of the environment."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.meanwhile = meanwhile

    def run(
        self, argv: Sequence[str], *, environment: Mapping[str, str], **more: Any
    ) -> Completed:
        if "-X" in argv:
            return Completed(exit_code=0, stdout=b"", stderr=b"", timed_out=False, seconds=0.0)
        assert environment["PYTHONPYCACHEPREFIX"]
        self.meanwhile()
        return super().run(argv, environment=environment, **more)


@pytest.fixture
def world(tmp_path: Path) -> World:
    root = make_root(tmp_path)
    environment_in(root)
    config = root / ".harness/config.toml"
    config.write_text(config.read_text() + 'interpreter = ".venv/bin/python"\n')
    (root / "predict.py").write_text("import numlib.fast\n" + PREDICT)
    (root / ".gitignore").write_text(".venv/\n")
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path / "home")}
    made = World(root, environment, World.opened(root, environment))
    approve_plan(made.project, root / "plan.md", by="a person")
    return made


def site_of(world: World) -> Path:
    return world.root / ".venv/lib" / PYTHON / "site-packages"


def evaluated(world: World, split: Split = Split.VALIDATION, **more: Any) -> list[Evaluation]:
    return evaluate_experiment(
        world.project,
        EXPERIMENT,
        split,
        Predicts(**more),
        environment={},
        admit=require_validation_passed,
    )


def passed(world: World) -> RecordedVerdict:
    assert world.open().id == EXPERIMENT
    world.train(EXPERIMENT, GOOD)
    evaluated(world)
    world.result(EXPERIMENT)
    verdict = check_gate(world.project, EXPERIMENT, GateName.VALIDATION)
    assert (verdict.verdict, found(verdict)) == (Verdict.PASS, [])
    return verdict


def found(verdict: RecordedVerdict) -> list[str]:
    return [finding.code for finding in verdict.findings if finding.code.startswith("libraries")]


def test_an_exchanged_library_makes_the_verdict_stale_until_it_is_scored_again(
    world: World,
) -> None:
    project, site = world.project, site_of(world)
    verdict, honest = passed(world), (site / "numlib/__init__.py").read_text()
    (site / "numlib/__init__.py").write_text("answers = 'others'\n")
    assert changed(project, verdict) == ("libraries/numlib",)
    assert standing(project, verdict) is Verdict.STALE
    with pytest.raises(RefusedError, match="STALE"):
        evaluated(world, Split.HELD_OUT)
    now = check_gate(project, EXPERIMENT, GateName.VALIDATION)
    assert (now.verdict, found(now)) == (Verdict.INCONCLUSIVE, ["libraries_changed"])
    told = next(finding for finding in now.findings if finding.code == "libraries_changed")
    assert "numlib changed since exp-0001 was evaluated on validation" in told.message
    assert "harness evaluate exp-0001 --split validation" in told.hint
    assert len(awaiting(project, EXPERIMENT, Split.VALIDATION)) == len(GOOD)
    evaluated(world)
    assert awaiting(project, EXPERIMENT, Split.VALIDATION) == []
    again = check_gate(project, EXPERIMENT, GateName.VALIDATION)
    assert (again.verdict, found(again)) == (Verdict.PASS, [])
    # Put back, it is not what was scored last.
    (site / "numlib/__init__.py").write_text(honest)
    assert standing(project, again) is Verdict.STALE


def test_what_nothing_takes_is_a_note_and_the_verdict_stands(world: World) -> None:
    project, site = world.project, site_of(world)
    verdict = passed(world)
    evaluations = len(project.ledger.evaluations(EXPERIMENT))
    source = site / "numlib/__init__.py"
    py_compile.compile(str(source))  # as Python does by itself
    content = source.read_text()
    source.unlink()
    source.write_text(content)  # installed again
    write(site, {"numlib-1.0.dist-info/RECORD": "", "plots/__init__.py": "import numlib\n"})
    write(site, {"plots-2.0.dist-info/entry_points.txt": "[console_scripts]\nplot = plots:main\n"})
    (site / "pip/__init__.py").write_text("newer = True\n")
    for script in ("plot", "pip3"):
        (world.root / ".venv/bin" / script).write_text("#!python\n")
    assert (changed(project, verdict), standing(project, verdict)) == ((), Verdict.PASS)
    evaluated(world)
    assert len(project.ledger.evaluations(EXPERIMENT)) == evaluations
    now = check_gate(project, EXPERIMENT, GateName.VALIDATION)
    assert (now.verdict, found(now)) == (Verdict.PASS, ["libraries_added"])
    told = next(finding for finding in now.findings if finding.code == "libraries_added")
    assert "pip, plots came into" in told.message


TAKEN = {
    "changed, named by nobody": ("other.py", "other"),
    "named by predict": ("csv.py", "csv"),
    "looked for by a library": ("fastlib.py", "fastlib"),
    "run at Python's start": ("sitecustomize.py", "sitecustomize"),
    "a line for Python's start": ("planted.pth", "planted.pth"),
    "imported late by what predict names": ("latelib/__init__.py", "latelib"),
    "imported by its name in what that names": ("deeplib.py", "deeplib"),
    "byte code of no source": ("numlib/__pycache__/hidden.cpython-311.pyc", "numlib"),
    "a plugin": ("evil-1.dist-info/entry_points.txt", "evil-1.dist-info"),
    "machine code that a library kept": ("numlib/__pycache__/numbalike.nbi", "numlib"),
    "another standard library": (f"../../{PYTHON}/random.py", "standard library"),
    "another environment": ("../../../pyvenv.cfg", "pyvenv.cfg"),
}


def test_what_python_or_a_package_would_take_counts(world: World) -> None:
    verdict, site = passed(world), site_of(world)
    for why, (path, name) in TAKEN.items():
        before = (site / path).read_text() if (site / path).exists() else None
        plugin = path.endswith("points.txt")
        write(site, {path: "[torch.backends]\nevil = evil:load\n" if plugin else "import os\n"})
        assert changed(world.project, verdict) == (f"libraries/{name}",), why
        if before is None:
            (site / path).unlink()
        else:
            (site / path).write_text(before)
        assert changed(world.project, verdict) == (), why


def test_another_interpreter_and_a_lost_environment_count(world: World) -> None:
    verdict = passed(world)
    python = world.root / ".venv/bin/python"
    python.unlink()
    python.write_text("#!/bin/sh\nexec other-python\n")
    python.chmod(0o755)
    assert changed(world.project, verdict) == ("libraries/bin/python",)
    shutil.rmtree(world.root / ".venv")
    assert "libraries/numlib" in changed(world.project, verdict)


def test_what_changes_and_comes_back_while_predict_runs_is_no_evidence(world: World) -> None:
    source = site_of(world) / "numlib/__init__.py"

    def swapped() -> None:
        honest, status = source.read_bytes(), source.stat()
        source.write_text("answers = 'others'\n")
        source.write_bytes(honest)
        os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))

    world.open()
    world.train(EXPERIMENT, GOOD[:1])
    evaluated(world, meanwhile=swapped)
    assert len(awaiting(world.project, EXPERIMENT, Split.VALIDATION)) == 1
    evaluated(world)
    assert awaiting(world.project, EXPERIMENT, Split.VALIDATION) == []


def test_a_python_outside_of_the_project_is_not_looked_at(tmp_path: Path) -> None:
    outside = World.make(tmp_path)
    libraries = OwnLibraries(outside.project, outside.project.plan())
    assert (libraries.program, libraries.read()) == (Path(sys.executable), None)
    assert libraries.keep(None, None) is None
    assert not outside.project.layout.libraries_seen.exists()


def test_only_what_changed_is_read_again(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, seen = site_of(world), tmp_path / "seen.json"
    prefixes = environments(world.root, world.root / ".venv/bin/python")
    assert prefixes == [world.root / ".venv"]
    # As if all of it had lain there for long.
    monkeypatch.setattr("harness.artifacts.libraries._SETTLED_NS", -1_000_000_000)
    first = read_libraries(world.root, prefixes, seen)
    read: list[str] = []
    monkeypatch.setattr(
        "harness.artifacts.libraries._content", lambda name, files: (read.append(name), [], [])
    )
    assert (read_libraries(world.root, prefixes, seen), read) == (first, [])
    (site / "other.py").write_text("x = 2\n")
    read_libraries(world.root, prefixes, seen)
    assert read == ["other"]


def test_planted_byte_code_is_not_what_predict_runs(
    workplace: Workplace, sandboxed: Sandbox
) -> None:
    site = environment_in(workplace.project)
    python = workplace.project / ".venv/bin/python"
    source = site / "numlib/__init__.py"
    source.write_text("def side(x, cut):\n    return 'b' if x >= cut else 'a'\n")
    _plant(source, "def side(x, cut):\n    return 'a' if x >= cut else 'b'\n")
    work, place = workplace.state / "work", workplace.state / "byte-code/now"
    made = compiled(place, python, ["numlib", "csv", "absent"], sandboxed, work=work)
    assert [path.name.partition(".")[0] for path in made.rglob("numlib/*")] == ["__init__"]
    request = workplace.request("import numlib\n" + BY_CUT + ANSWERS, interpreter=str(python))
    rows = load_rows(
        request.table, which=request.split, inputs=request.inputs, label="y", id_column="row"
    )
    answers = []
    for byte_code in (made, None):
        asked = replace(request, byte_code=byte_code, hidden=(workplace.state,))
        command = command_of(asked, workplace.checkpoint)
        raw = predict(command, sandboxed, rows, range(2), "ids")
        answers.append([str(answer) for answer in raw.columns["prediction"]])
    # The second ones are what a predict of the environment's own byte code says.
    assert answers == [["b", "a"], ["a", "b"]]
    assert list(work.iterdir()) == []


def _plant(source: Path, other: str) -> None:
    """Byte code of another text, with the time and the size of `source` in its head."""
    honest, status = source.read_text(), source.stat()
    assert len(other) == len(honest)
    source.write_text(other)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    py_compile.compile(str(source))
    source.write_text(honest)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))


class Looked(InProcess):
    """Notes what predict does not see."""

    kind = SandboxKind.BWRAP

    def __init__(self) -> None:
        self.hidden: set[Path] = set()

    def run(self, argv: Sequence[str], *, confinement: Confinement, **more: Any) -> Completed:
        if "-X" in argv:
            return Predicts().run(argv, environment={})
        self.hidden |= set(confinement.hidden)
        return super().run(argv, **more)


@pytest.mark.parametrize(("names", "hides"), [("numlib", True), ("numlib, pip._internal", False)])
def test_predict_sees_no_installer_unless_it_is_named(
    world: World, names: str, hides: bool
) -> None:
    (world.root / "predict.py").write_text(f"import {names}\n" + PREDICT)
    world.open()
    world.train(EXPERIMENT, GOOD[:1])
    sandbox = Looked()
    evaluate_experiment(
        world.project,
        EXPERIMENT,
        Split.VALIDATION,
        sandbox,
        environment={},
        admit=require_validation_passed,
    )
    assert sandbox.hidden - {world.project.layout.state} == (
        {site_of(world) / "pip"} if hides else set()
    )
