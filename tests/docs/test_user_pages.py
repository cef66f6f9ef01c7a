"""Each page of docs/users/, done as it stands by a new user with a fresh HOME: what is to be typed
is read out of the page."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest

from tests.wheels import needed, packed, uv_takes

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/users"
BIN = Path(sys.executable).parent
WORDS = ("harness init", "harness plan approve", "harness try", "harness keep", "harness report")

# What lies in the repositories that the pages clone: a program as its owner has it, without a word
# of the harness.
PROGRAM = """\
import joblib
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

table = pd.read_csv("data/all.csv")
model = RandomForestClassifier().fit(pd.get_dummies(table.drop(columns="left")), table["left"])
joblib.dump(model, "model.joblib")
"""
REPOSITORIES = {
    "scikit-learn": {"train.py": PROGRAM},
    "boosting": {"train.py": PROGRAM},
    "pytorch": {"config.yaml": "width: 16\n", "train.py": "import torch\nimport yaml\n"},
    "monorepo": {
        "services/churn/requirements.txt": "numpy\n",
        "services/invoices/train.py": "print('another team')\n",
        "libs/features/features.py": "",
        "pyproject.toml": "[project]\nname = 'team'\nversion = '1'\n",
    },
    "uv": {
        "pyproject.toml": "[project]\nname = 'churn'\nversion = '1'\nrequires-python = '>=3.11'\n"
        "dependencies = ['numpy']\n",
        ".gitignore": ".venv/\n",
    },
}
MODULES = {"boosting": "lightgbm", "lightning": "lightning", "notebook": "IPython"}
"""What a page needs that `make setup` installs and a smaller environment may lack."""
IN_CI = ("uv",)
CELLS = """\
import json, os, sys
os.environ["IPYTHONDIR"] = sys.argv[1]
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(sys.stdin):
    shell.run_cell(cell).raise_error()
"""


@dataclass(frozen=True)
class Block:
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The name in a first line that is nothing but that."""
        found = re.match(r"# ([\w.-]+\.\w+)\n", self.text)
        return found[1] if found else None

    @property
    def kind(self) -> str:
        if self.file is not None:
            return "file"
        return {"": "typed", "python": "cells"}[self.language]


def blocks(page: Path) -> list[Block]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    return [Block(*one) for one in found]


@dataclass
class Newcomer:
    """A HOME with tables, repositories to clone, and a terminal."""

    home: Path
    at: Path
    said: str = ""

    def environment(self) -> dict[str, str]:
        wheels = str(self.home / "wheels")
        return {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": wheels,
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_PYTHON": str(Path(sys.executable).resolve()),
        }

    def do(self, page: Path) -> None:
        """All of it, in its order."""
        for kind, some in groupby(blocks(page), key=lambda block: block.kind):
            texts = list(some)
            if kind == "file":
                for block in texts:
                    (self.at / str(block.file)).write_text(block.text, "utf-8")
            elif kind == "cells":
                cells = json.dumps([block.text for block in texts])
                self._run([sys.executable, "-c", CELLS, str(self.home / "ipython")], cells)
            else:
                for block in texts:
                    self.type(block.text)

    def type(self, lines: str) -> None:
        """At a terminal; the first line that fails ends it."""
        left = self.home / "left"
        keyboard, terminal = pty.openpty()
        try:
            self._run(["bash", "-euc", f"{lines}\npwd > {left}"], terminal)
        finally:
            os.close(keyboard)
            os.close(terminal)
        self.at = Path(left.read_text().strip())

    def _run(self, command: list[str], given: int | str) -> None:
        stdin = {"stdin": given} if isinstance(given, int) else {"input": given}
        done = subprocess.run(
            command,
            cwd=self.at,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1500,
            check=False,
            **stdin,
        )
        self.said += done.stdout
        assert done.returncode == 0, done.stdout


@pytest.fixture
def newcomer(tmp_path: Path, request: pytest.FixtureRequest) -> Newcomer:
    page = request.node.callspec.params["page"]
    home, empty = tmp_path / "home", tmp_path / "empty"
    (home / "tables").mkdir(parents=True)
    empty.mkdir()
    for table in (ROOT / "examples").glob("*/data/*"):
        (home / "tables" / table.name).symlink_to(table)
    made = Newcomer(home, empty)
    for name in remotes(PAGES / f"{page}.md"):
        repository(home / "remotes" / name, REPOSITORIES.get(page, {}))
    (home / ".gitconfig").write_text(
        f'[url "file://{home}/remotes/"]\n\tinsteadOf = https://github.com/you/\n'
    )
    if page in ("monorepo", "uv"):
        uv_takes(home, home / "wheels")
        for found in needed(["numpy"]):
            packed(found, home / "wheels")
    if page == "huggingface":
        tiny_bert(home / "models/tiny-bert", ROOT / "examples/transformers/data/tickets.jsonl")
    return made


def remotes(page: Path) -> Iterator[str]:
    yield from re.findall(r"git clone https://github.com/you/([\w-]+)", page.read_text("utf-8"))


def repository(place: Path, files: dict[str, str]) -> None:
    place.mkdir(parents=True)
    for name, text in {"README.md": "# Ours\n", **files}.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, "utf-8")
    own = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*own, "commit", "-qm", "Ours"]):
        subprocess.run(
            ["git", *words],
            cwd=place,
            check=True,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        )


def tiny_bert(place: Path, texts: Path) -> None:
    """A model of random weights and a tokenizer of whole words, as `hf download` leaves them."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = sorted({word for line in texts.open() for word in json.loads(line)["text"].split()})
    names = {name: place for place, name in enumerate(["[PAD]", "[UNK]", *words])}
    whole = Tokenizer(models.WordLevel(names, unk_token="[UNK]"))
    whole.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=whole, pad_token="[PAD]", unk_token="[UNK]", model_max_length=12
    )
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = BertModel(BertConfig(vocab_size=len(names), intermediate_size=64, **size))
    tokenizer.save_pretrained(place)
    model.save_pretrained(place)


def executed() -> list[str]:
    """The pages that begin with a repository."""
    return sorted(page.stem for page in PAGES.glob("*.md") if list(remotes(page)))


def test_every_page_is_short_and_linked() -> None:
    linked = (ROOT / "docs/guide.md").read_text("utf-8")
    for page in PAGES.glob("*.md"):
        lines = page.read_text("utf-8").splitlines()
        words = [line for line in lines if line]
        assert len(words) <= 100, page.name
        assert f"](users/{page.name})" in linked, page.name


@pytest.mark.slow
@pytest.mark.parallel
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "page",
    [pytest.param(one, marks=[pytest.mark.ci] if one in IN_CI else []) for one in executed()],
)
def test_a_page_leads_from_git_clone_to_a_kept_result(newcomer: Newcomer, page: str) -> None:
    if page in MODULES:
        pytest.importorskip(MODULES[page])
    if page == "uv" and not (BIN / "uv").exists():
        pytest.skip("uv is not installed beside this Python")
    newcomer.do(PAGES / f"{page}.md")
    newcomer.type("harness experiment list --json > listed.json")
    listed = json.loads((newcomer.at / "listed.json").read_text())["experiments"]
    first = next(one for one in listed if one["experiment"] == "exp-0001")
    assert first["status"] == "kept"
    text = (PAGES / f"{page}.md").read_text("utf-8")
    assert len(listed) == text.count("\nharness try ")
    assert [words for words in WORDS if f"\n{words}" not in text and f"!{words}" not in text] == []
