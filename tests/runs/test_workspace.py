"""What runs is what was registered: training in its workspace, by the command, in each sandbox."""

import json
import py_compile
import shutil
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

import pytest

from harness.domain.statuses import SandboxKind
from harness.sandbox.select import available
from tests.cli.journey import Answer, Journey, make_project

SANDBOXED = ["bwrap", "landlock"]
EVERY = [*SANDBOXED, "none"]
HEAD = """\
import json, os, sys
from pathlib import Path
from harness.run_logger import RunLogger

def train(**told):
    with RunLogger.from_environment() as log:
        log.start(total_epochs=1)
        log.epoch(0, {"loss": 0.5})
        kept = log.checkpoint_dir / "model.json"
        kept.write_text(json.dumps({**told, "seed": log.seed}))
        log.checkpoint_saved(kept, epoch=0, final=True)

def refused(act):
    try:
        act()
    except OSError:
        return True
    return False
"""


def git(root: Path, *words: str) -> None:
    identity = ("-c", "user.email=a@b", "-c", "user.name=a")
    subprocess.run(["git", "-C", str(root), *identity, *words], check=True, capture_output=True)


def require(sandbox: str) -> None:
    if sandbox != "auto" and (reason := available()[SandboxKind(sandbox)]):
        pytest.skip(f"{sandbox}: {reason}")


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    made = make_project(tmp_path / "project", tmp_path / "home")
    plan = made.root / "plan.md"
    plan.write_text(plan.read_text("utf-8").replace("seeds: 3", "seeds: 2"), "utf-8")
    git(made.root, "init", "-q")
    assert made.harness("init").exit_code == 0
    return made


def begin(journey: Journey, code: str, *, config: str = "") -> None:
    """Approve, with `code` as train.py and `config` added to config.toml, and open exp-0001."""
    (journey.root / "train.py").write_text(code, "utf-8")
    path = journey.root / ".harness/config.toml"
    path.write_text(path.read_text("utf-8") + config, "utf-8")
    approved = journey.harness("plan", "approve")
    assert approved.exit_code == 0, approved.stdout + approved.stderr
    assert journey.harness("experiment", "new", "--hypothesis", "h").exit_code == 0


def train(journey: Journey, sandbox: str, *command: str) -> Answer:
    require(sandbox)
    lower = ("--reason", "a test") if sandbox in ("landlock", "none") else ()
    words = ("train", "exp-0001", "--sandbox", sandbox, *lower, "--json")
    answer = journey.harness(*words, *(("--", *command) if command else ()))
    left = journey.state / "workspaces"
    assert not left.exists() or list(left.iterdir()) == [], "a workspace ends with its run"
    return answer


def told(journey: Journey) -> list[dict[str, object]]:
    """What each run's checkpoint says, in the runs' order."""
    runs = journey.root / ".harness/experiments/exp-0001/runs"
    return [json.loads(path.read_text()) for path in sorted(runs.glob("*/checkpoints/model.json"))]


def codes(answer: Answer) -> list[str]:
    return [found["code"] for found in answer.document["findings"]]


@pytest.mark.parametrize("sandbox", SANDBOXED)
def test_training_that_edits_the_live_code_by_its_path_does_not(
    journey: Journey, sandbox: str
) -> None:
    live = journey.root / "train.py"
    act = f"Path({str(live)!r}).write_text('raise SystemExit(3)')"
    code = HEAD + f"train(refused=refused(lambda: {act}))\n"
    begin(journey, code)
    answer = train(journey, sandbox)
    assert answer.exit_code == 0, answer.stdout
    assert live.read_text("utf-8") == code
    # With bwrap its own copy stands at that path; Landlock has granted nothing there.
    assert [entry["refused"] for entry in told(journey)] == [sandbox == "landlock"] * 2


@pytest.mark.parametrize("sandbox", EVERY)
def test_byte_code_is_never_what_runs(journey: Journey, sandbox: str) -> None:
    """An unchecked .pyc is believed by Python whatever its source says by now."""
    (journey.root / "model.py").write_text("SAYS = 'planted'\n", "utf-8")
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    planted = py_compile.compile(str(journey.root / "model.py"), invalidation_mode=mode)
    assert planted is not None
    (journey.root / "model.py").write_text("SAYS = 'read'\n", "utf-8")
    seen = subprocess.run(
        [sys.executable, "-c", "import model; print(model.SAYS)"],
        cwd=journey.root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout == "planted\n", "in the live tree it would run"
    begin(journey, HEAD + "import model\ntrain(says=model.SAYS)\n")
    assert train(journey, sandbox).exit_code == 0
    assert {entry["says"] for entry in told(journey)} == {"read"}


@pytest.mark.parametrize("sandbox", EVERY)
def test_a_module_that_git_ignores_is_not_there_and_named(journey: Journey, sandbox: str) -> None:
    (journey.root / ".gitignore").write_text("data/\nimpl.py\n", "utf-8")
    (journey.root / "impl.py").write_text("SAYS = 'unregistered'\n", "utf-8")
    begin(journey, HEAD + "train()\nimport impl\n")
    answer = train(journey, sandbox)
    assert answer.exit_code == 1
    assert codes(answer) == ["run_not_completed", "path_not_in_workspace"]
    found = answer.document["findings"][1]
    assert "missed impl.py" in found["message"]
    assert "readable" in found["hint"]


def test_an_ignored_file_and_a_folder_to_write_in_are_named(journey: Journey) -> None:
    (journey.root / ".gitignore").write_text("data/\ncache/\noutputs/\n", "utf-8")
    for name in ("cache/vocabulary.txt", "outputs/old.txt"):
        (journey.root / name).parent.mkdir()
        (journey.root / name).write_text("x")
    begin(journey, HEAD + "train()\nopen(sys.argv[1], sys.argv[2])\n")
    for name, mode, missed in (
        ("cache/vocabulary.txt", "r", "cache/vocabulary.txt"),
        ("outputs/new.txt", "w", "outputs"),
    ):
        answer = train(journey, "bwrap", "python", "train.py", name, mode)
        assert answer.document["findings"][1]["data"]["path"] == missed
    nowhere = train(journey, "bwrap", "python", "train.py", "nowhere/at/all", "r")
    assert codes(nowhere) == ["run_not_completed"]


@pytest.mark.parametrize("sandbox", SANDBOXED)
def test_code_swapped_and_restored_while_runs_start_never_runs(
    journey: Journey, sandbox: str
) -> None:
    code = HEAD + "import time; time.sleep(0.5)\ntrain(says='registered')\n"
    begin(journey, code)
    require(sandbox)
    live, runs = journey.root / "train.py", journey.root / ".harness/experiments/exp-0001/runs"

    def swap() -> None:
        for name, text in (("run-01", code.replace("registered", "swapped")), ("run-02", code)):
            while not (runs / name / "stdout.log").exists():
                time.sleep(0.01)
            live.write_text(text, "utf-8")

    swapping = threading.Thread(target=swap, daemon=True)
    swapping.start()
    assert train(journey, sandbox).exit_code == 0
    swapping.join(10)
    assert [entry["says"] for entry in told(journey)] == ["registered", "registered"]


@pytest.fixture
def own_venv(journey: Journey) -> str:
    """A virtual environment of the project's own, with an editable install of the project and a
    console script; what config.toml then says."""
    root = journey.root
    venv.create(root / ".venv", symlinks=True)
    (packages,) = (root / ".venv/lib").glob("python3*/site-packages")
    (packages / "mine.pth").write_text(f"{root / 'src'}\n")
    (root / "src/mine").mkdir(parents=True)
    (root / "src/mine/__init__.py").write_text("WHERE = __file__\n")
    (root / ".gitignore").write_text("data/\n.venv/\n")
    script = root / ".venv/bin/my-training"
    script.write_text(f"#!{root}/.venv/bin/python\nimport runpy\nrunpy.run_path('train.py')\n")
    script.chmod(0o755)
    return 'interpreter = ".venv/bin/python"\n'


@pytest.mark.parametrize("sandbox", EVERY)
def test_a_projects_own_environment_trains_and_imports_the_workspace(
    journey: Journey, own_venv: str, sandbox: str
) -> None:
    code = HEAD + "import mine\ntrain(where=mine.WHERE, top=os.environ['HARNESS_PROJECT'])\n"
    begin(journey, code, config=own_venv)
    answer = train(journey, sandbox, ".venv/bin/my-training")
    assert answer.exit_code == 0, answer.stdout
    for entry in told(journey):
        assert entry["where"] == f"{entry['top']}/src/mine/__init__.py"
        assert (entry["top"] == str(journey.root)) == (sandbox == "bwrap")


@pytest.mark.parametrize("sandbox", SANDBOXED)
def test_training_cannot_plant_a_pth_in_the_projects_environment(
    journey: Journey, own_venv: str, sandbox: str
) -> None:
    (packages,) = (journey.root / ".venv/lib").glob("python3*/site-packages")
    relative = packages.relative_to(journey.root)
    code = HEAD + "".join(
        f"{name} = refused(lambda: Path({str(folder)!r}, 'evil.pth').write_text('import os'))\n"
        for name, folder in (("a", packages), ("b", relative))
    )
    begin(journey, code + "train(refused=[a, b])\n", config=own_venv)
    answer = train(journey, sandbox)
    assert answer.exit_code == 0, answer.stdout
    assert [entry["refused"] for entry in told(journey)] == [[True, True]] * 2
    assert not (packages / "evil.pth").exists()


@pytest.mark.parametrize("sandbox", EVERY)
def test_declared_data_is_there(journey: Journey, sandbox: str, tmp_path: Path) -> None:
    """A table behind a link to another place, an ignored folder of many files, another disk."""
    root, disk = journey.root, tmp_path / "disk"
    disk.mkdir()
    (disk / "words").write_text("on a disk")
    shutil.move(root / "data/train.npz", disk / "table.npz")
    (root / "data/train.npz").symlink_to(disk / "table.npz")
    (root / ".gitignore").write_text("data/\nimages/\n")
    (root / "images/a").mkdir(parents=True)
    for number in range(200):
        (root / f"images/a/{number}.txt").write_text(str(number))
    code = HEAD + (
        "images = sum(int(path.read_text()) for path in Path('images').rglob('*.txt'))\n"
        f"same = Path({str(root / 'images/a/7.txt')!r}).read_text()\n"
        f"words = Path({str(disk / 'words')!r}).read_text()\n"
        "kept = refused(lambda: Path('images/a/7.txt').write_text('7'))\n"
        "size = len(Path('data/train.npz').read_bytes())\n"
        "train(images=images, same=same, words=words, kept=kept, size=size)\n"
    )
    # The table is not readable where it lies, and stands in the workspace all the same.
    begin(journey, code, config=f'readable = ["images", "{disk}/words"]\n')
    answer = train(journey, sandbox)
    assert answer.exit_code == 0, answer.stdout
    for entry in told(journey):
        assert (entry["images"], entry["same"], entry["words"]) == (19900, "7", "on a disk")
        assert entry["size"] == (disk / "table.npz").stat().st_size
        assert entry["kept"] == (sandbox != "none")


@pytest.mark.parametrize("sandbox", SANDBOXED)
def test_a_readable_link_out_of_the_project_opens_nothing(
    journey: Journey, sandbox: str, tmp_path: Path
) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private/key").write_text("secret")
    (journey.root / "images").mkdir()
    begin(journey, HEAD + "train()\n", config='readable = ["images"]\n')
    (journey.root / "images").rmdir()
    (journey.root / "images").symlink_to(tmp_path / "private")
    answer = train(journey, sandbox)
    assert answer.exit_code == 1
    assert "leads out of the project" in answer.document["runs"][0]["reason"]


def test_large_untracked_files_are_named_and_not_copied(journey: Journey) -> None:
    with (journey.root / "video.bin").open("wb") as stream:
        stream.truncate((50 << 20) + 1)
    begin(journey, HEAD + "train()\nif sys.argv[1:]:\n    open('video.bin')\n")
    answer = train(journey, "bwrap")
    assert (answer.exit_code, codes(answer)) == (0, ["files_not_copied"])
    (found,) = answer.document["findings"]
    assert "video.bin" in found["message"]
    assert all(way in found["hint"] for way in ("Commit", "ignore", "readable"))
    missed = train(journey, "bwrap", "python", "train.py", "open")
    assert "more than 50 MB" in missed.document["findings"][-1]["message"]
    held = {path.stat().st_size for path in (journey.state / "vault/objects").iterdir()}
    assert max(held) < 50 << 20


def test_output_of_the_command_is_no_code(journey: Journey) -> None:
    """`nohup harness train`, and output sent to a file of the project: no seed is repeated."""
    begin(journey, HEAD + "train()\n")
    program = [sys.executable, "-m", "harness", "train", "exp-0001"]
    for name in ("nohup.out", "training.log"):
        for _ in range(2):
            with (journey.root / name).open("ab") as stream:
                done = subprocess.run(
                    program,
                    cwd=journey.root,
                    env=journey.environment(),
                    check=False,
                    stdout=stream,
                    stderr=stream,
                )
            assert done.returncode == 0, (journey.root / name).read_text()
    assert len(told(journey)) == 2
    assert train(journey, "auto").exit_code == 0
    assert len(told(journey)) == 2


@pytest.mark.slow
def test_torchrun(journey: Journey) -> None:
    """Its processes talk by TCP, which Landlock does not grant."""
    torchrun = Path(sys.executable).with_name("torchrun")
    if not torchrun.exists():
        pytest.skip("torch is not installed")
    begin(journey, HEAD + "train(world=os.environ['WORLD_SIZE'])\n")
    command = (str(torchrun), "--standalone", "--nproc-per-node=2", "train.py")
    answer = train(journey, "bwrap", *command)
    assert answer.exit_code == 0, answer.stdout
    assert [entry["world"] for entry in told(journey)] == ["2", "2"]
