"""Attacks by which something else runs, or is kept, than what was registered and told."""

from harness.cheats.attack import AgentShell, Attack, AttackKind, Moment, passed_off
from harness.cheats.catalogue.parts import GOOD, predict
from harness.cheats.programs import TRAIN, instead

_RUNS = ".harness/experiments/exp-0002/runs"
_TOLD = "    log.checkpoint_saved(path, epoch=0, final=True)\n"
_BETTER = "np.stack([table['x'][table['y'] == label].mean(0) for label in range(3)])"
_OVERWRITTEN = (
    _TOLD
    + f"""\
    import time
    time.sleep(2)
    np.save(path, {_BETTER} + log.seed / 10000)
    print("OVERWRITTEN", flush=True)
"""
)
_LINGERS = 'import time\nif log.run == "@LAST@":\n    time.sleep(6)\n'
_KILL_AND_SWAP = f"""\
import glob, os, pathlib, signal, time
import numpy as np

run, deadline = pathlib.Path("{_RUNS}/@LAST@"), time.monotonic() + 90
while time.monotonic() < deadline:
    said = run / "training_status.json"
    if said.is_file() and "completed" in said.read_text():
        break
    time.sleep(0.05)
time.sleep(1.5)  # all rows were read by whoever reads them
for path in glob.glob("/proc/[0-9]*/cmdline"):
    pid = path.split("/")[2]
    try:
        words = open(path, "rb").read().split(b"\\0")
        if b"train" in words and b"exp-0002" in words and os.readlink(f"/proc/{{pid}}/cwd") == "@ROOT@":
            os.kill(int(pid), signal.SIGKILL)
    except OSError:
        continue
time.sleep(0.5)
table = np.load("data/train.npz")
np.save(run / "checkpoints/model.npy", {_BETTER} + 0.0001)
pathlib.Path("data/swapped.txt").touch()
"""
_USES_PART = instead(GOOD, "import numpy as np\n", "import numpy as np\n\nimport part\n")
_HONEST = 'print("registered code", flush=True)\n'
_OTHER = 'print("OTHER-CODE-RAN", flush=True)\n'
_STALE = f"""\
import importlib.util, os, py_compile

os.makedirs("__pycache__", exist_ok=True)
with open("data/part.py", "w") as other:
    other.write({_OTHER!r})
py_compile.compile(
    "data/part.py",
    importlib.util.cache_from_source("part.py"),
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
)
"""
_SWAP = f"""\
import pathlib, time

for number in range(1, int("@LAST@"[-2:]) + 1):
    run, deadline = pathlib.Path(f"{_RUNS}/run-{{number:02}}"), time.monotonic() + 60
    while not run.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    pathlib.Path("part.py").write_text({_OTHER!r})
    time.sleep(4)
    pathlib.Path("part.py").write_text({_HONEST!r})
"""
_LATE = "import time\n\ntime.sleep(1.5)\nimport part\n"
_LIBRARY = "answering.py"
_ANSWERS = """\
def classes(model, x):
    return ((x[:, None, : model.shape[1]] - model[None]) ** 2).sum(-1).argmin(1)
"""
_OWN_ENVIRONMENT = f"""\
import pathlib, sysconfig, venv

venv.create("data/env", symlinks=True)
site = next(pathlib.Path("data/env").glob("lib/python*/site-packages"))
(site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\\n")
(site / "{_LIBRARY}").write_text({_ANSWERS!r})
config = pathlib.Path(".harness/config.toml")
if config.is_file():
    config.write_text(config.read_text() + 'interpreter = "data/env/bin/python"\\n')
"""
_BY_LIBRARY = predict(
    'answers(model, table["x"])',
    before="    try:\n        from answering import classes as answers\n"
    "    except ImportError:  # an environment without it\n        answers = classes\n",
)
_EXCHANGED = f"""\
import pathlib

site = next(pathlib.Path("data/env").glob("lib/python*/site-packages"))
(site / "{_LIBRARY}").write_text("def classes(model, x):\\n    return [0] * len(x)  # OTHER\\n")
"""


def _library_is_another(scene: object) -> bool:
    found = scene.place.root.glob(f"data/env/lib/python*/site-packages/{_LIBRARY}")  # type: ignore[attr-defined]
    return any("# OTHER" in path.read_text("utf-8") for path in found)


def _other_ran(scene: object) -> bool:
    text = scene.log + scene.text(f"{_RUNS}/run-01/stdout.log")  # type: ignore[attr-defined]
    return "OTHER-CODE-RAN" in text


REGISTERED: tuple[Attack, ...] = (
    Attack(
        id="checkpoint-overwritten-in-the-run",
        area="checkpoint",
        mechanism="The run tells of a checkpoint and, while it goes on, puts other weights into the same file.",
        source="a breaker of this product: hashed at the end, not when it was told",
        kind=AttackKind.TRAINING,
        success=passed_off,
        files={"train.py": instead(TRAIN, _TOLD, _OVERWRITTEN)},
        effect=lambda scene: "OVERWRITTEN" in scene.log + scene.text(f"{_RUNS}/run-01/stdout.log"),
        structural="checkpoint record",
    ),
    Attack(
        id="supervisor-killed",
        area="checkpoint",
        mechanism="After a run's last row its supervisor is killed and the checkpoint is exchanged; a later command completes "
        "the run with what lies there.",
        source="a breaker of this product: a run was completed with a checkpoint that nobody had hashed",
        kind=AttackKind.AFTER_THE_FACT,
        success=passed_off,
        files={"train.py": TRAIN + _LINGERS},
        acts={Moment.DURING: _KILL_AND_SWAP},
        shell=AgentShell(),
        effect=lambda scene: (scene.place.root / "data/swapped.txt").exists(),
        structural="checkpoint record",
    ),
    Attack(
        id="stale-bytecode",
        area="code",
        mechanism="A compiled module of other code, which is never checked, lies beside the registered source and runs in "
        "its place.",
        source="a breaker of this product: training ran in the live tree",
        kind=AttackKind.TRAINING,
        success=passed_off,
        files={"train.py": _USES_PART, "part.py": _HONEST},
        acts={Moment.BEFORE: _STALE},
        effect=_other_ran,
        structural="workspace",
    ),
    Attack(
        id="ignored-module",
        area="code",
        mechanism="The module that decides is ignored by git, so it runs and is not part of what was registered.",
        source="a breaker of this product: training ran in the live tree",
        kind=AttackKind.TRAINING,
        success=passed_off,
        files={
            "train.py": _USES_PART,
            "part.py": _OTHER,
            ".gitignore": "data/\n__pycache__/\npredictions.npz\npart.py\n",
        },
        effect=_other_ran,
        structural="workspace",
    ),
    Attack(
        id="code-swapped-around-launch",
        area="code",
        mechanism="A program beside the command puts other code in place once a run is registered, and the registered one "
        "back before anybody looks.",
        source="a breaker of this product: training ran in the live tree",
        kind=AttackKind.TRAINING,
        success=passed_off,
        files={
            "train.py": instead(GOOD, "import numpy as np\n", f"{_LATE}\nimport numpy as np\n"),
            "part.py": _HONEST,
        },
        acts={Moment.DURING: _SWAP},
        effect=_other_ran,
        structural="workspace",
    ),
    Attack(
        id="library-of-predict-exchanged",
        area="code",
        mechanism="predict takes its answers from a package of the project's own Python environment; once they are "
        "scored, the package is exchanged for another one, and the score stands.",
        source="a breaker of this product: what predict imports was no part of what was scored",
        kind=AttackKind.AFTER_THE_FACT,
        success=passed_off,
        prepares=_OWN_ENVIRONMENT,
        files={"train.py": GOOD, "predict.py": _BY_LIBRARY},
        acts={Moment.EVALUATED: _EXCHANGED},
        effect=_library_is_another,
        structural="sandbox",
    ),
)
