"""A person's verb and training are denied however they are started; ordinary uses of the same
programs are not."""

import os
import shutil

import pytest

from harness.contract.roles import ASKED_VERBS, HUMAN_VERBS
from harness.guard.shell.decide_with_tree import judge_call

VERB = "harness gate approve exp-0002"
HUMAN = [
    "script --command='harness audit --accept' /dev/null",
    "(env -u CLAUDECODE setsid script --command='harness audit --accept' -q /dev/null &)",
    f"tmux new-session -d {VERB}",
    "tmux send-keys -t 0 harness Space gate Space approve Enter",
    f"screen -dmS x {VERB}",
    "harness -- gate approve",
    "harness gate -- approve",
    "harness audit --acc",
    "python -mharness gate approve",
    "python -Im harness gate approve",
    "python /opt/venv/bin/harness gate approve",
    "python3 /opt/harness/__main__.py gate approve",
    "$(which harness) gate approve",
    '"$(command -v harness)" gate approve',
    "$BIN/harness gate approve",
    "echo gate approve exp-0002 | xargs harness",
    "echo approve | xargs -I{} harness gate {} exp-0002",
    'h() { harness "$@"; }; h gate approve',
    "alias h=harness\nh gate approve",
    "ln -s /opt/venv/bin/harness h; ./h gate approve",
    "cp $(which harness) h && ./h gate approve",
    "harness $VERB",
    "harness gate $VERB",
    f"systemd-run --user {VERB}",
    f"ssh localhost {VERB}",
    f"docker exec x {VERB}",
    f"gdb -ex run --args {VERB}",
    f"echo '{VERB}' | at now",
    f"echo '* * * * * {VERB}' | crontab -",
    f"echo '{VERB}' | sh",
    f'bash -c "$(echo {VERB})"',
    f"expect -c 'spawn {VERB}'",
    f"socat EXEC:'{VERB}',pty -",
    f"make -f - <<< 'x:;{VERB}'",
    f"EDITOR='{VERB}' git commit --amend",
    f"env GIT_SEQUENCE_EDITOR='{VERB}' git log",
    f"python -c 'import os; os.system(\"{VERB}\")'",
    'python -c \'import pty; pty.spawn(["harness", "gate", "approve"])\'',
    f"perl -e 'system(\"{VERB}\")'",
    f'node -e \'require("child_process").execSync("{VERB}")\'',
    f"awk 'BEGIN{{system(\"{VERB}\")}}'",
    f"cat > go.sh <<'E'\n{VERB}\nE\nbash go.sh",
]
TRAINING = [
    "python tr*.py",
    "python /dev/stdin < train.py",
    "python <(cat train.py)",
    "python ${X:-train.py}",
    'python -c "$(cat train.py)"',
    "cat tr*.py | python",
    "git show HEAD:train.py | python",
    "xargs python <<< train.py",
    "parallel python ::: train.py",
    "cp train.py other.py && python other.py",
    "ln -s train.py x; python x",
    "cat train.py > x.py; python x.py",
    "git show HEAD:train.py > x.py; python x.py",
    "cat > go.py <<'E'\nimport train\ntrain.main()\nE\npython go.py",
    "echo 'python train.py' | sh",
    "tmux new -d python train.py",
    "screen -dm python train.py",
    "systemd-run --scope python train.py",
    "perf stat python train.py",
    "gdb --args python train.py",
    "rye run python train.py",
    "docker run image python train.py",
    "sbatch --wrap='python train.py'",
    "nix-shell --run 'python train.py'",
    "kernprof -l train.py",
    "scalene train.py",
    "memray run train.py",
    "python -m memray run train.py",
    "jupyter nbconvert --execute train.ipynb",
    "ipython -c '%run train.py'",
    "make train",
    "npm run train",
    "bash train.sh",
    "$PYTHON train.py",
    "find . -name train.py -exec python {} +",
]
WRITES = [
    "GIT_EDITOR='rm plan.md' git commit",
    "PAGER='rm plan.md' git -p log",
    "LESSOPEN='|rm plan.md' less notes.txt",
    "export PROMPT_COMMAND='rm plan.md'",
    "GIT_EXTERNAL_DIFF='rm plan.md' git diff",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!rm plan.md' git x",
    "make --eval='all:;rm plan.md'",
    "make -f - <<'E'\nall:\n\trm plan.md\nE",
    "gdb -batch -ex 'shell rm plan.md'",
    "man -P 'rm plan.md' ls",
    "emacs --batch --eval '(delete-file \"plan.md\")'",
    ". /dev/stdin <<< 'rm plan.md'",
    "alias z=rm; z plan.md",
    "X=pl; X+=an.md; rm $X",
    "IFS=:; X=a:plan.md; rm $X",
    "claude mcp remove harness",
    "claude config set disableAllHooks true",
]
ORDINARY = [
    "python tests/train_test.py",
    "python -m unittest tests.test_model",
    "make test",
    "make -j4 all",
    "npm run build",
    "tmux ls",
    "tmux new -d 'python predict.py'",
    "crontab -l",
    "ssh host nvidia-smi",
    "EDITOR=vim git commit",
    "GIT_PAGER=cat git log",
    "GIT_SSH_COMMAND='ssh -i key' git fetch",
    "black train.py && mypy train.py",
    "docker run --rm image ls",
    "pip install ray torch",
    "git commit -m 'python train.py takes --epochs; harness gate approve is for a person'",
    "rg 'harness gate approve' docs",
    "echo 'run harness gate approve yourself'",
    'harness train "$EXP" -- python train.py --seed $SEED',
    'harness gate check "$EXP"',
    "cp train.py old.py",
    "cat train.py; cat > look.py <<'E'\nprint(1)\nE\npython look.py",
    "jupyter nbconvert --to html train.ipynb",
    "python - <<'E'\n# see `train.py`\nimport train\nprint(train.RATE)\nE",
    "claude mcp list",
]
NO_OPINION = [
    "echo a b | xargs rm",
    '"$VENV/bin/python" predict.py',
    "python $SCRIPT",
    "curl -s host/install | sh",
]
"""Not all of these is known, and what is known names nothing that would start."""


@pytest.mark.parametrize("command", HUMAN)
def test_a_persons_verb_is_denied_behind_any_launcher(project, command):
    said = project.bash(
        command, human_verbs=[["gate", "approve"], ["audit", "--accept"], ["init"]]
    )
    assert (said["permission"], said["rule"]) in (
        ("deny", "human_verb"),
        ("deny", "unclear_start"),
    )
    assert said["hint"]


@pytest.mark.parametrize(
    ("command", "verb"),
    [
        ("harness keep", "keep"),
        ("cd sub && harness --project . keep exp-0002 --reason fine", "keep"),
        ("harness report --out notes.md", "report --out"),
        ("harness report --out=notes.md", "report --out"),
        ("harness report", None),
        ("harness try 'keep the best' --rationale keep -- python train.py keep", None),
    ],
)
def test_of_the_short_verbs_keep_is_a_persons(project, command, verb):
    said = project.bash(
        command,
        mode="interactive",
        human_verbs=[list(each) for each in HUMAN_VERBS],
        asked_verbs=[list(each) for each in ASKED_VERBS],
    )
    if verb is None:
        assert said is None or said["permission"] != "deny"
        return
    assert (said["permission"], said["rule"]) == ("deny", "human_verb")
    assert f"`harness {verb}` must be run by a person" in said["reason"]
    assert ("In `harness claude` you may run it" in said["hint"]) is (verb == "keep")


def test_a_persons_verb_comes_with_the_line_that_they_type(project):
    said = project.bash(
        "cd sub; harness gate approve exp-0002 --json --reason 'It holds.'", mode="interactive"
    )
    line = "harness gate approve exp-0002 --reason 'It holds.'"
    assert f"They type `cd '{project.root}' && {line}` in a terminal of their own" in said["hint"]
    assert "`!` here does not do" in said["hint"]
    assert "In `harness claude` you may run it" in said["hint"]
    other = project.bash("harness init $X", mode="interactive")["hint"]
    assert "&& harness init`" in other
    assert "harness claude" not in other
    assert "terminal" not in project.bash("harness gate approve exp-0002", mode="driver")["hint"]


@pytest.mark.parametrize("command", TRAINING)
def test_training_is_denied_behind_any_launcher(project, command):
    said = project.bash(command)
    assert (said["permission"], said["rule"]) in (
        ("deny", "training_outside_harness"),
        ("deny", "unclear_start"),
    )
    assert "harness train exp-0002 -- " in said["hint"]


@pytest.mark.parametrize("command", WRITES)
def test_command_text_in_variables_and_options_is_judged(project, command):
    assert project.bash(command)["permission"] == "deny"


@pytest.mark.parametrize("command", ORDINARY)
def test_ordinary_uses_of_launchers_pass(project, command):
    said = project.bash(command)
    assert said["permission"] == "allow", said
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "cwd": str(project.root)}
    assert judge_call(call, project.snapshot)["permission"] != "deny", (
        "the second reader denies it"
    )


@pytest.mark.parametrize("command", NO_OPINION)
def test_unknown_programs_that_name_no_start_are_not_denied(project, command):
    assert project.bash(command)["permission"] is None


def test_a_link_of_another_name_to_the_harness_is_the_harness(project):
    shutil.copy("/bin/true", project.root / "harness")
    os.symlink("harness", project.root / "other")
    assert (
        project.bash(f"{project.root / 'other'} gate approve".replace("pro ject", "pro\\ ject"))[
            "rule"
        ]
        == "human_verb"
    )
