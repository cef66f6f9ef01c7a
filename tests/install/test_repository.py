"""What `harness init` finds in a repository: programs, the Python environment, tables."""

from pathlib import Path

import pytest

from harness.install.repository import environment_of, programs, split_files, tables

PYPROJECT = """\
[project]
name = "churn"
[project.scripts]
churn-train = "churn.cli:train"
churn-serve = "churn.cli:serve"
"""


def put(root: Path, *names: str, text: str = "") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commands(root: Path, verb: str = "train") -> list[str]:
    return [one.command for one in programs(root, verb)]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["train.py", "src/net/train_utils.py"], ["python train.py"]),
        (
            ["src/net/train.py", "src/other/train.py"],
            ["python src/net/train.py", "python src/other/train.py"],
        ),
        (["scripts/train_mlp.py", "tests/test_train.py"], ["python scripts/train_mlp.py"]),
        (["a folder/train.py"], ["python 'a folder/train.py'"]),
        ([".venv/lib/x/train.py", "harness-runs/train.py", "build/train.py"], []),
        (["a/b/c/d/train.py", "a/b/c/d/e/train.py"], ["python a/b/c/d/train.py"]),
        (["constraints.py", "retrain.py"], []),
    ],
)
def test_train_programs(tmp_path: Path, files: list[str], found: list[str]) -> None:
    put(tmp_path, *files)
    assert commands(tmp_path) == found


def test_a_module_that_imports_its_neighbours_starts_as_one(tmp_path: Path) -> None:
    put(tmp_path, "src/net/train.py", text="from .model import Net\n")
    assert commands(tmp_path) == ["python -m net.train"]


def test_a_console_script_is_a_program_and_whether_it_logs_is_not_asked(tmp_path: Path) -> None:
    put(tmp_path, "pyproject.toml", text=PYPROJECT)
    (found,) = programs(tmp_path, "train")
    assert (found.command, found.logs) == ("churn-train", True)
    put(tmp_path, "pyproject.toml", text="not TOML")
    assert programs(tmp_path, "train") == []


def test_whether_a_program_logs(tmp_path: Path) -> None:
    put(tmp_path, "train.py", text="import torch\n")
    assert not programs(tmp_path, "train")[0].logs
    put(tmp_path, "train.py", text="from harness.run_logger import RunLogger\n")
    assert programs(tmp_path, "train")[0].logs


def venv(folder: Path) -> Path:
    put(folder, "pyvenv.cfg", "bin/python")
    return folder


def test_environments(tmp_path: Path) -> None:
    root, home = tmp_path / "churn", tmp_path / "home"
    root.mkdir()
    known = {"HOME": str(home)}
    assert environment_of(root, known) == (None, None)
    put(root, "poetry.lock")
    assert "run `poetry install`" in (environment_of(root, known)[1] or "")
    made = venv(home / ".cache/pypoetry/virtualenvs/churn-Ab3-py3.11")
    assert environment_of(root, known) == (str(made / "bin/python"), None)
    venv(home / ".cache/pypoetry/virtualenvs/churn-Cd4-py3.12")
    assert environment_of(root, known)[0] is None  # which of the two, nobody knows
    (root / "poetry.lock").rename(root / "uv.lock")
    assert "run `uv sync`" in (environment_of(root, known)[1] or "")
    other = venv(tmp_path / "elsewhere")
    assert environment_of(root, {**known, "VIRTUAL_ENV": str(other)})[0] is None
    own = venv(tmp_path / "envs/churn-3.11")
    assert environment_of(root, {**known, "VIRTUAL_ENV": str(own)}) == (f"{own}/bin/python", None)
    venv(root / ".venv")
    assert environment_of(root, {**known, "VIRTUAL_ENV": str(own)}) == (".venv/bin/python", None)


def test_condas_environment_is_the_projects_where_it_describes_one(tmp_path: Path) -> None:
    root, conda = tmp_path / "churn", tmp_path / "conda/envs/ml"
    put(conda, "bin/python", "conda-meta/history")
    put(root, "train.py")
    given = {"CONDA_PREFIX": str(conda)}
    assert environment_of(root, given) == (None, None)
    put(root, "environment.yml")
    assert environment_of(root, given) == (f"{conda}/bin/python", None)
    assert "conda env create -f environment.yml" in (environment_of(root, {})[1] or "")


def test_tables_and_the_parts_of_a_split(tmp_path: Path) -> None:
    put(tmp_path, "data/all.csv", "README.md", ".venv/x/iris.csv", "harness-runs/1/a.csv")
    assert tables(tmp_path) == ["data/all.csv"]
    put(tmp_path, "data/train.csv")
    assert split_files(tmp_path) is None
    put(tmp_path, "data/test.csv", "other/val.csv")
    found = split_files(tmp_path)
    assert found is not None
    assert (found.train, found.validation, found.held_out) == (
        "data/train.csv",
        None,
        "data/test.csv",
    )
    put(tmp_path, "data/dev.csv")
    assert split_files(tmp_path, "data/train.csv").validation == "data/dev.csv"
    assert split_files(tmp_path, "data/all.csv") is None
