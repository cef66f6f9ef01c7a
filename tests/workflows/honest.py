"""Honest uses about code, data and places: what a person sets up, and the training that goes with
it."""

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.centroids import TRAIN
from tests.cli.journey import Journey

LIBRARIES = ("numpy", "numpy.libs")
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
BASE = Path(sys.base_prefix)
LOAD = 'np.load("data/train.npz")'


@dataclass
class Workflow:
    """One use; `prepare` runs before `harness init`, `later` between approval and training."""

    name: str
    prepare: Callable[["Place"], None]
    later: Callable[["Place"], None] = lambda place: None
    words: tuple[str, ...] = ()
    """The training command, where it is not the plan's."""
    cwd: str = "."
    """Where the person types, relative to the project."""
    by_nohup: bool = False
    needs: str = ""
    """A module that must be installed."""
    where: tuple[str, ...] = ("bwrap", "landlock", "none")
    """Sandboxes in which it works."""


@dataclass
class Place:
    """A project, its folder's surroundings, and what its configuration gets."""

    journey: Journey
    readable: list[Path] = field(default_factory=list)
    interpreter: str | None = None
    given_up: list[Path] = field(default_factory=list)
    """Folders elsewhere, to remove at the end."""

    @property
    def root(self) -> Path:
        return self.journey.root

    @property
    def outside(self) -> Path:
        """A folder beside the project."""
        folder = self.root.parent / "outside"
        folder.mkdir(exist_ok=True)
        return folder

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")
        return path

    def train(self, text: str) -> None:
        self.write("train.py", text)

    def ignore(self, *patterns: str) -> None:
        with (self.root / ".gitignore").open("a", encoding="utf-8") as stream:
            stream.write("".join(f"{pattern}\n" for pattern in patterns))

    def configure(self) -> None:
        """Write what `harness init` left to the person."""
        lines = []
        if self.readable:
            lines.append(f"readable = {json.dumps([str(path) for path in self.readable])}")
        if self.interpreter is not None:
            lines.append(f'interpreter = "{self.interpreter}"')
        config = self.root / ".harness/config.toml"
        text = config.read_text("utf-8")
        more = [line for line in lines if line not in text]  # it finds an environment by itself
        config.write_text(text + "".join(f"{line}\n" for line in more), "utf-8")


def changed(**replaced: str) -> str:
    """The usual training program, other in the lines that `replaced` has by name."""
    text = TRAIN
    for mark, line in {"load": LOAD, "end": "    log.checkpoint_saved("}.items():
        if mark in replaced:
            assert mark == "load" or text.count(line) == 1
            text = text.replace(line, replaced[mark] + (line if mark == "end" else ""))
    return replaced.get("top", "") + text


def move_data(place: Place, folder: Path) -> None:
    """Training data lie in `folder`, and links lead there; what is held out stays."""
    for name in ("train", "validation"):
        target = folder / f"{name}.npz"
        shutil.move(place.root / "data" / target.name, target)
        (place.root / "data" / target.name).symlink_to(target)
    place.readable.append(folder)


def data_by_symlink(place: Place) -> None:
    move_data(place, place.outside)


def data_by_absolute_path(place: Place) -> None:
    place.train(changed(load=f'np.load("{place.root}/data/train.npz")'))


def data_on_another_disk(place: Place) -> None:
    folder = Path(tempfile.mkdtemp(prefix="harness-data-", dir="/dev/shm"))
    place.given_up.append(folder)
    shutil.copy(place.root / "data/train.npz", folder / "more.npz")
    place.readable.append(folder)
    place.train(changed(load=f'np.load("{folder}/more.npz")'))


def folder_of_ten_thousand_files(place: Place) -> None:
    table = np.load(place.root / "data/train.npz")
    folder = place.root / "rows"
    folder.mkdir()
    for number in range(10_000):
        row = number % len(table["y"])
        (folder / f"{number:05d}.txt").write_text(f"{table['y'][row]}\n", "ascii")
    place.ignore("rows/")
    place.readable.append(folder)
    place.train(
        changed(
            top="""\
import pathlib

labels = [int(path.read_text()) for path in sorted(pathlib.Path("rows").iterdir())]
assert len(labels) == 10_000
"""
        )
    )


def rewrites_a_tracked_file(place: Place) -> None:
    place.write("results/latest.json", "{}\n")
    place.train(
        changed(
            end="""\
    with open("results/latest.json", "r+") as latest:
        latest.truncate()
        latest.write('{"seed": %d}' % log.seed)
"""
        )
    )


def link_in_a_checkpoint(place: Place) -> None:
    """The newest of several files by a link, as many trainers leave it."""
    text = TRAIN.replace(
        '    path = log.checkpoint_dir / "centroids.npy"\n    np.save(path, centroids)\n',
        """\
    path = log.checkpoint_dir / "final"
    path.mkdir()
    np.save(path / "step-1.npy", centroids)
    (path / "latest.npy").symlink_to("step-1.npy")
""",
    )
    assert text != TRAIN
    place.train(text)
    predict = (place.root / "predict.py").read_text("utf-8")
    place.write(
        "predict.py",
        predict.replace(
            'os.environ["HARNESS_CHECKPOINT"]', 'os.environ["HARNESS_CHECKPOINT"] + "/latest.npy"'
        ),
    )


def data_that_come_later(place: Place) -> None:
    place.ignore("features/")
    place.readable.append(place.root / "features")
    place.train(changed(load='np.load("features/train.npz")'))


def features(place: Place) -> None:
    (place.root / "features").mkdir()
    shutil.copy(place.root / "data/train.npz", place.root / "features/train.npz")


def own_venv(place: Place) -> None:
    command = [str(BASE / "bin" / VERSION), "-I", "-m", "venv", "--without-pip", ".venv"]
    subprocess.run(command, cwd=place.root, env={"PATH": "/usr/bin:/bin"}, check=True)
    install(place.root / ".venv")
    place.ignore(".venv/")
    place.interpreter = ".venv/bin/python"


def uv_project(place: Place) -> None:
    """As `uv sync` leaves it."""
    environment = place.root / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "lib" / VERSION / "site-packages").mkdir(parents=True)
    (environment / "bin/python").symlink_to(BASE / "bin" / VERSION)
    for name in ("python3", VERSION):
        (environment / "bin" / name).symlink_to("python")
    number = ".".join(map(str, sys.version_info[:3]))
    (environment / "pyvenv.cfg").write_text(
        f"home = {BASE / 'bin'}\nimplementation = CPython\nuv = 0.9.5\nversion_info = {number}\n"
        "include-system-site-packages = false\nprompt = toy\n",
        "ascii",
    )
    (environment / ".gitignore").write_text("*\n", "ascii")
    install(environment)
    place.write("uv.lock", "version = 1\nrequires-python = '>=3.11'\n")
    place.write("pyproject.toml", "[project]\nname = 'toy'\nversion = '0.1.0'\n")
    place.interpreter = ".venv/bin/python"


def conda_prefix(place: Place) -> None:
    """An environment with an interpreter and a library of its own, outside of the project."""
    prefix = place.journey.home / "miniconda3/envs/toy"
    library = prefix / "lib" / VERSION
    (prefix / "bin").mkdir(parents=True)
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta/history").write_text("==> 2026-01-01 00:00:00 <==\n", "ascii")
    shutil.copy(BASE / "bin" / VERSION, prefix / "bin/python")
    # Linked, file by file: it is a copy in all but its size.
    shutil.copytree(
        BASE / "lib" / VERSION,
        library,
        copy_function=_linked,
        ignore=shutil.ignore_patterns("site-packages", "test", "__pycache__"),
    )
    for shared in (BASE / "lib").glob("libpython*"):
        shutil.copy(shared, prefix / "lib")
    (library / "site-packages").mkdir()
    install(prefix)
    place.interpreter = str(prefix / "bin/python")


def torchrun(place: Place) -> None:
    lines = TRAIN.partition("with RunLogger")
    body = textwrap.indent("with RunLogger" + lines[2], "    ")
    place.train(
        f"""{lines[0]}
import torch
import torch.distributed

torch.distributed.init_process_group("gloo")
total = torch.ones(1)
torch.distributed.all_reduce(total)
assert total.item() == torch.distributed.get_world_size() == 2
if torch.distributed.get_rank() == 0:
{body}
torch.distributed.destroy_process_group()
"""
    )


def notebook(place: Place) -> None:
    """Its cells, as a script that runs them one after the other."""
    head, middle, tail = TRAIN.partition("with RunLogger")
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Centroids\n"]},
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": head.splitlines(True)},
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": 2,
            "source": (middle + tail).splitlines(True),
        },
    ]
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    place.write("notebooks/train.ipynb", json.dumps(document, indent=1))
    place.write(
        "run_notebook.py",
        """\
        import json
        import sys

        scope = {"__name__": "__main__"}
        for cell in json.load(open(sys.argv[1]))["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), sys.argv[1], "exec"), scope)
        """,
    )


def exported_notebook(place: Place) -> None:
    """As `jupyter nbconvert --to script` writes it."""
    place.train("#!/usr/bin/env python\n# coding: utf-8\n\n# In[1]:\n\n\n" + TRAIN)


def outputs_beside_the_code(place: Place) -> None:
    """Training reads again what it wrote beside the code."""
    place.train(
        changed(
            end="""\
    import pathlib

    pathlib.Path("outputs/figures").mkdir(parents=True, exist_ok=True)
    pathlib.Path("outputs/log.txt").write_text(f"seed {log.seed}")
    np.save("model.npy", centroids)
    np.save(path, np.load("model.npy"))
"""
        )
    )


def editable_install(place: Place) -> None:
    """A package beside the project and one in it, both installed as `pip install -e` does."""
    own_venv(place)
    sibling = place.outside / "clouds" / "src"
    for folder, package, line in (
        (sibling, "clouds", "def load(path):\n    return np.load(path)\n"),
        (place.root / "src", "toy", "SHARE = 3\n"),
    ):
        (folder / package).mkdir(parents=True)
        text = "import numpy as np\n\n\n" + line
        (folder / package / "__init__.py").write_text(text, "utf-8")
        pth = place.root / ".venv/lib" / VERSION / "site-packages" / f"__editable__.{package}.pth"
        pth.write_text(f"{folder}\n", "utf-8")
    place.readable.append(sibling)
    place.train(
        "import clouds\nimport toy\n\nassert toy.SHARE == 3\n"
        + TRAIN.replace(LOAD, 'clouds.load("data/train.npz")')
    )


def from_a_subfolder(place: Place) -> None:
    place.write("experiments/notes.md", "Where the person stands.\n")


def nothing(place: Place) -> None:
    """The project as it is."""


WORKFLOWS: Sequence[Workflow] = (
    Workflow("data-by-symlink", data_by_symlink),
    Workflow("data-by-absolute-path", data_by_absolute_path),
    Workflow("data-on-another-disk", data_on_another_disk),
    Workflow("ten-thousand-files", folder_of_ten_thousand_files),
    Workflow("nohup", nothing, by_nohup=True),
    Workflow("rewrites-a-tracked-file", rewrites_a_tracked_file),
    Workflow("link-in-a-checkpoint", link_in_a_checkpoint),
    Workflow("data-that-come-later", data_that_come_later, later=features),
    Workflow("own-venv", own_venv),
    Workflow("uv-project", uv_project),
    Workflow("conda-prefix", conda_prefix),
    Workflow(
        "torchrun",
        torchrun,
        words=(
            *("python", "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", "train.py"),
        ),
        needs="torch",
        # Its processes meet by TCP, which Landlock takes away.
        where=("bwrap", "none"),
    ),
    Workflow("notebook", notebook, words=("python", "run_notebook.py", "notebooks/train.ipynb")),
    Workflow("exported-notebook", exported_notebook),
    Workflow("outputs-beside-the-code", outputs_beside_the_code),
    Workflow("editable-install", editable_install),
    Workflow("from-a-subfolder", from_a_subfolder, cwd="experiments"),
)


def install(prefix: Path) -> None:
    """Put the libraries of the programs into an environment, as an installer links them from its
    cache."""
    target = prefix / "lib" / VERSION / "site-packages"
    for library in LIBRARIES:
        if (source := packages() / library).is_dir():
            shutil.copytree(source, target / library, copy_function=_linked)


@functools.cache
def packages() -> Path:
    """An installer's cache."""
    source, cache = Path(np.__file__).parents[1], Path(tempfile.mkdtemp(prefix="harness-cache-"))
    atexit.register(shutil.rmtree, cache, ignore_errors=True)
    for library in LIBRARIES:
        if (source / library).is_dir():
            ignored = shutil.ignore_patterns("tests", "__pycache__")
            shutil.copytree(source / library, cache / library, ignore=ignored)
    return cache


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
