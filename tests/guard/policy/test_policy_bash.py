"""Command lines: each that changes a protected file when it is really run is denied; ordinary work
is not."""

import subprocess

import pytest
from policy_project import CONTROL, FROZEN, OPEN

POLICY = ".harness/policy.json"
MANY = " ".join(f"a{number}" for number in range(70))
"""More words than are followed one by one."""
SPELLED = {"policy": POLICY, "root": "{root}"}

# Each of these changes, removes or replaces .harness/policy.json when bash runs it in the project's
# root.
WRITES = [
    "echo x > .harness/policy.json",
    "echo x >> .harness/policy.json",
    "echo x >| .harness/policy.json",
    "echo x &> .harness/policy.json",
    "echo x &>> .harness/policy.json",
    "ls nowhere 2> .harness/policy.json",
    "> .harness/policy.json",
    ": > '.harness/policy.json'",
    'echo x > "$PWD/.harness/policy.json"',
    'echo x > "{root}/.harness/policy.json"',
    "echo x > .harness/'policy'.json",
    "echo x > .har\\ness/policy.json",
    "echo x > $'.harness/\\x70olicy.json'",
    "echo x > .harness/pol*.json",
    "echo x > .[h]arness/policy.json",
    "echo x | tee .harness/policy.json",
    "echo x | tee -a -- .harness/policy.json",
    "cp notes.txt .harness/policy.json",
    "cp notes.txt .harness/ && cp notes.txt policy.json && cp policy.json .harness",
    "cp -t .harness notes.txt && cp notes.txt policy.json && cp policy.json -t .harness",
    "install -m 600 notes.txt .harness/policy.json",
    "mv notes.txt .harness/policy.json",
    "mv .harness/policy.json gone",
    "mv .harness gone",
    "ln -sf ../notes.txt .harness/policy.json",
    "ln -f notes.txt .harness/policy.json",
    "ln -s .harness way && echo x > way/policy.json",
    "ln -s . way && echo x > way/.harness/policy.json",
    "ln .harness/policy.json other && echo x > other",
    "cp -l .harness/policy.json other && echo x > other",
    "rm .harness/policy.json",
    "rm -rf .harness",
    "rm -rf .harness/*",
    "rm -rf .h*",
    "rm -rf {root}/.harness",
    "rm -f .harness/{config.toml,policy.json}",
    "unlink .harness/policy.json",
    "shred -u .harness/policy.json",
    "truncate -s 0 .harness/policy.json",
    "dd if=/dev/null of=.harness/policy.json",
    "sed -i s/before/after/ .harness/policy.json",
    "sed -i.bak -e s/before/after/ .harness/policy.json",
    "sed -n 'w .harness/policy.json' notes.txt patch.diff",
    "perl -pi -e s/before/after/ .harness/policy.json",
    "awk 'BEGIN {print 1 > \".harness/policy.json\"}'",
    "sort notes.txt patch.diff -o .harness/policy.json",
    "python3 -c \"open('.harness/policy.json','w')\"",
    "python3 -Sc \"open('.harness/policy.json','w')\"",
    "python3 - <<'EOF'\nopen('.harness/policy.json', 'w')\nEOF",
    "python3 <<EOF\nimport pathlib; pathlib.Path('.harness/policy.json').write_text('')\nEOF",
    "echo \"open('.harness/policy.json','w')\" | python3",
    'perl -e \'open(F, ">", ".harness/policy.json")\'',
    "cd .harness && echo x > policy.json",
    "cd sub; cd ../.harness; rm policy.json",
    "(cd .harness; rm policy.json)",
    "pushd .harness > /dev/null && rm policy.json",
    'cd "$PWD/.harness" && rm *.json',
    "F=.harness/policy.json; rm $F",
    'F=.harness/policy; rm "${{F}}.json"',
    "D=.harness; F=policy.json; echo x > $D/$F",
    'export F=.harness/policy.json && rm "$F"',
    "X='rm .harness/policy.json'; $X",
    'for f in .harness/*.json; do rm "$f"; done',
    "for d in sub .harness; do rm -f $d/policy.json; done",
    "if true; then rm .harness/policy.json; fi",
    "while true; do rm .harness/policy.json; break; done",
    "{{ rm .harness/policy.json; }}",
    "f() {{ rm .harness/policy.json; }}; f",
    "function f {{ rm .harness/policy.json; }}; f",
    "! rm .harness/policy.json",
    "true && false || rm .harness/policy.json",
    "sleep 0 & rm .harness/policy.json & wait",
    "echo $(rm .harness/policy.json)",
    'echo "`rm .harness/policy.json`"',
    "cat <(rm .harness/policy.json)",
    "echo x | tee >(cat > .harness/policy.json) > /dev/null; sleep 0.2",
    "cat <<EOF\n$(rm .harness/policy.json)\nEOF",
    "cat > .harness/policy.json <<'EOF'\nnew\nEOF",
    "cat <<'EOF' | bash\nrm .harness/policy.json\nEOF",
    "bash <<'EOF'\nrm .harness/policy.json\nEOF",
    "bash <<< 'rm .harness/policy.json'",
    "bash -c 'rm .harness/policy.json'",
    "sh -ec 'cd .harness; rm policy.json'",
    "eval 'rm .harness/policy.json'",
    "eval rm .harness/policy.json",
    "trap 'rm .harness/policy.json' EXIT",
    "env rm .harness/policy.json",
    "env -i -u X A=1 /bin/rm .harness/policy.json",
    "env -C .harness rm policy.json",
    "env -S 'rm .harness/policy.json'",
    "nohup rm .harness/policy.json > /dev/null",
    "timeout -k 1 5 rm .harness/policy.json",
    "timeout --signal=KILL 5 nice -n 5 rm .harness/policy.json",
    "time rm .harness/policy.json",
    "command rm .harness/policy.json",
    "exec rm .harness/policy.json",
    "setsid rm .harness/policy.json; sleep 0.2",
    "stdbuf -oL rm .harness/policy.json",
    "echo .harness/policy.json | xargs rm",
    "echo .harness/policy.json | xargs -I {{}} rm {{}}",
    "ls -d .harness/* | grep json | xargs -n1 rm",
    "find . -name '*.json' | xargs rm -f",
    "find . -name policy.json -print0 | xargs -0 rm",
    "ls -A | xargs rm -rf",
    "grep -rl before . | xargs sed -i s/before/after/",
    "tar cf .harness/policy.json train.py",
    "tar -cf .harness/policy.json train.py",
    "source <(echo 'echo x > .harness/policy.json')",
    "bash <(echo 'echo x > .harness/policy.json')",
    "find .harness -name policy.json -delete",
    "find . -name policy.json -exec rm {{}} ;".replace(" ;", " \\;"),
    "find . -name policy.json -exec sh -c 'rm \"$1\"' _ {{}} +",
    "find .harness -name '*.json' | while read f; do rm \"$f\"; done",
    'rm "$(ls .harness/policy.json)"',
    "tar cf a.tar notes.txt && tar xf a.tar -C .harness && rm -f .harness/policy.json",
    "chmod -R 000 .harness; rm -rf .harness",
    "touch -d 2001-01-01 .harness/policy.json; rm .harness/policy.json",
    (
        "git init -q 2>/dev/null; git rm -f --ignore-unmatch .harness/policy.json > /dev/null; rm"
        " -f .harness/policy.json"
    ),
    "rm .harness/policy.json # tidy up",
    "rm ~+/.harness/policy.json",
    "\\rm .harness/policy.json",
    "r''m .harness/policy.json",
    "'/bin/rm' -- .harness/policy.json",
    "$(echo rm) .harness/policy.json",
    "read f <<< .harness/policy.json; rm $f",
    "exec 3> .harness/policy.json; echo x >&3",
    "rm .har{{ness,m}}/policy.json",
    "rm -f .harness/policy.{{json,txt}}",
    "A=(.harness/policy.json); rm ${{A[0]}}",
    "case x in x) rm .harness/policy.json;; esac",
    "select f in 1; do rm .harness/policy.json; break; done <<< 1",
    'rm -rf "$PWD"/.harness',
    'cd / && rm -rf "$OLDPWD/.harness"',
    'mapfile -t F < <(echo .harness/policy.json); rm "${{F[0]}}"',
    'printf -v F %s .harness/policy.json; rm "$F"',
    "env bash -c 'exec rm \"$0\"' .harness/policy.json",
    "perl -e 'unlink shift' .harness/policy.json",
    "python3 -c 'import os,sys; os.remove(sys.argv[1])' .harness/policy.json",
    "sort -o.harness/policy.json notes.txt patch.diff",
    "rm -f notes.txt .harness/policy.json",
    "touch -r notes.txt x; mv x .harness/policy.json",
    "# tidy up\nrm .harness/policy.json",
    "rm \\\n .harness/policy.json",
    "echo 'it is done'\trm;\nrm\t.harness/policy.json",
    f"for f in {MANY} .harness/policy.json; do rm -f $f; done",
    f"rm -f {{{MANY.replace(' ', ',')},.harness/policy.json}}",
    "F='x .harness/policy.json'; rm -f ./nothing$F",
    "F='.harn*'; rm -rf ./$F",
    "F=x; read F <<< .harness/policy.json; rm $F",
    "F=x; printf -v F .harness/policy.json; rm $F",
    "F=.harness/policy.json; declare -n G=F; rm $G",
    "rm .harness/polic{y..y}.json",
    "sed -n w.harness/policy.json notes.txt",
    "python3 -W ignore -c \"open('.harness/policy.json', 'w')\"",
    "python3 -X utf8 -c 'import sys; open(sys.argv[1], \"w\")' .harness/policy.json",
    "git -c alias.x='!echo x > .harness/policy.json' x",
    "uniq notes.txt .harness/policy.json",
    'cd "$(pwd)/.harness" && rm policy.json',
    'rm -rf "$(pwd)"/.harness',
    "bash -cx 'rm .harness/policy.json'",
    "trap 'rm .harness/policy.json' EXIT; true",
    "mkdir way && cp notes.txt way/policy.json && cp way/* .harness",
]


def filled(command: str, root) -> str:
    return (
        command.replace(
            "{root}", str(root).replace(" ", "\\ ") if '"{root}' not in command else str(root)
        )
        .replace("{{", "{")
        .replace("}}", "}")
    )


@pytest.mark.parametrize("command", WRITES)
def test_what_bash_would_change_is_denied(project, command):
    text = filled(command, project.root)
    before = (project.root / POLICY).read_bytes(), (project.root / POLICY).stat().st_mtime_ns
    said = project.bash(text)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(project.root.parent)}
    subprocess.run(
        ["bash", "-c", text],
        cwd=project.root,
        env=environment,
        capture_output=True,
        timeout=30,
        check=False,
    )
    path = project.root / POLICY
    unchanged = (
        path.is_file()
        and not path.is_symlink()
        and (path.read_bytes(), path.stat().st_mtime_ns) == before
    )
    assert not unchanged, "the command is no example: it changes nothing"
    assert said["permission"] == "deny"
    assert said["reason"]
    assert said["hint"]


READS_AND_ORDINARY_WORK = [
    "ls -la .harness",
    "cat plan.md",
    "head -5 .harness/experiments/exp-0001/runs/run-01/metrics.jsonl | wc -l",
    "grep -rn before .harness/experiments plan.md 2>/dev/null",
    "diff plan.md notes.txt > out.txt",
    "sed -n 1,3p plan.md",
    "awk '{{print $1}}' plan.md",
    "python3 -c 'print(1)'",
    (
        'python3 -c "import json;'
        " print(open('.harness/experiments/exp-0001/runs/run-01/metrics.jsonl').read())\""
    ),
    "python3 -c \"import numpy as np; print(np.load('data/train.npz').files)\"",
    "python3 analyse.py data/train.npz --out fig.png",
    "python3 -m pytest -q tests",
    "ruff check train.py",
    "mkdir -p out/a && cp model.py out/ && mv out/model.py out/a && rm -rf out",
    "cp plan.md notes.txt",
    "cp a.py .",
    "mv sub/helper.py .",
    "touch new.py && chmod +x new.py",
    "rm -f *.pyc",
    "echo hello > notes.txt 2>&1",
    "echo 'the plan is in plan.md and .harness is off limits' > notes.txt",
    "cat > model.py <<'EOF'\n# see plan.md; rm -rf .harness would be refused\nEOF",
    "for n in 1 2 3; do echo $n >> notes.txt; done",
    'for f in sub/*.py; do sed -i s/a/b/ "$f"; done',
    "git status && git diff plan.md && git log --oneline | head",
    "git add -A && git commit -qm 'see plan.md'",
    "git checkout -- train.py",
    "git checkout train.py model.py",
    "git checkout -b idea",
    "git stash list; git worktree list",
    "git config --get user.name",
    "find . -name '*.py' | xargs wc -l",
    "tar czf out.tgz src",
    "find sub -name '*.pyc' -delete",
    "pip list | grep torch",
    "nvidia-smi || true",
    f"cat {OPEN}/score.json | jq .mean",
    "tee notes.txt < plan.md",
    "test -f plan.md && echo yes",
    "[[ -f plan.md && 1 > 0 ]] && echo yes",
    "((1 > 0)) && echo $((2 > 1))",
    "ls .harness/experiments/*/result.md",
    "harness status; harness experiment list --json",
    "harness gate check exp-0002",
    "harness train exp-0002 -- python train.py",
    "harness try 'a wider MLP' --set lr=0.1 -- python train.py",
    "harness try --continue",
    "harness report",
    "harness --help | grep init",
    "cd sub && ls && cd -",
]


@pytest.mark.parametrize(
    "command",
    [
        "find sub -name '*.tmp' | xargs rm",
        "grep -rl foo sub | xargs sed -i s/a/b/",
        "source <(kubectl completion bash)",
    ],
)
def test_what_is_not_known_to_the_end_and_reaches_nothing_protected_is_not_denied(
    project, command
):
    assert project.bash(command)["permission"] is None


@pytest.mark.parametrize("command", READS_AND_ORDINARY_WORK)
def test_reading_and_ordinary_work_pass(project, command):
    said = project.bash(command.replace("{{", "{").replace("}}", "}"))
    assert said["permission"] == "allow", said


@pytest.mark.parametrize("path", [*CONTROL, *FROZEN])
@pytest.mark.parametrize(
    "form", ["echo x > {}", "rm {}", "sed -i s/a/b/ {}", "cp notes.txt {}", "git checkout -- {}"]
)
def test_every_control_and_frozen_file_is_kept(project, form, path):
    assert project.bash(form.format(path))["permission"] == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "cat {}/ledger.db",
        "cd {} && ls",
        "sqlite3 {}/ledger.db",
        "ls {}/vault",
        "echo < {}/ledger.db",
        "tool --in={}/x",
        "python3 -c \"open('{}/ledger.db')\"",
        "ln -s {} way",
        "find {} -type f",
        "cp -r {} here",
    ],
)
def test_state_is_out_of_reach_of_every_program(project, command):
    text = command.format(str(project.state))
    assert project.bash(text)["permission"] == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git checkout .",
        "git checkout main",
        "git checkout HEAD -- plan.md",
        "git checkout HEAD plan.md",
        "git restore .",
        "git restore --source=HEAD~1 plan.md",
        "git restore --pathspec-from-file=list",
        "git stash",
        "git stash -u",
        "git stash pop",
        "git clean -fdx",
        "git clean -fd .",
        "git reset --hard",
        "git switch main",
        "git worktree add ../w",
        "git apply patch.diff",
        "git am patch.diff",
        "git merge other",
        "git pull",
        "git rebase main",
        "git revert HEAD",
        "git -C sub reset --hard",
        "cd sub && git checkout ..",
        "git rm -r .",
        "git mv plan.md x.md",
        "git config core.hooksPath /tmp/hooks",
        "git diff --output=plan.md",
        "git stash && rm train.py",
        "git checkout $BRANCH",
        "patch plan.md patch.diff",
    ],
)
def test_git_over_protected_files_is_denied(project, command):
    assert project.bash(command)["permission"] == "deny"


def test_git_in_another_repository_is_not_judged(project, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    assert project.bash("git reset --hard", cwd=tmp_path / "elsewhere")["permission"] == "allow"


TRAINING = [
    "python train.py",
    "python3 -u ./train.py --epochs 3",
    "/usr/bin/python3.11 train.py",
    "python -W ignore -X dev train.py",
    "python -m train",
    "python -mtrain",
    "python -m cProfile -o out.prof train.py",
    "python train_cnn.py",
    "cd sub && python ../train.py",
    "./train.py",
    "env CUDA_VISIBLE_DEVICES=0 python train.py",
    "A=1 python train.py",
    "nohup python train.py &",
    "bash -c 'python train.py'",
    'bash -c "nohup timeout 5 python train.py" &',
    "timeout 300 python train.py",
    "time python train.py",
    "echo 1 | xargs -I X python train.py",
    "echo train.py | xargs python",
    "uv run python train.py",
    "uv run --with torch train.py",
    "poetry run python train.py",
    "torchrun --nproc-per-node 2 train.py",
    "accelerate launch train.py",
    "python -m torch.distributed.run train.py",
    "coverage run train.py",
    "cat train.py | python -",
    "python < train.py",
    "python - < train.py",
    "if true; then python train.py; fi",
    "(python train.py)",
    "echo $(python train.py)",
    "P=python; $P train.py",
    "S=train.py; python $S",
    "python -c \"import runpy; runpy.run_path('train.py')\"",
    "python -c \"exec(open('train.py').read())\"",
    'python -c "import train; train.main()"',
    "python -c \"import subprocess; subprocess.run(['python', 'train.py'])\"",
    "setsid python train.py; sleep 1",
    "sudo -u nobody python train.py",
    "tmux new -d 'python train.py' ; python train.py",
]


@pytest.mark.parametrize("command", TRAINING)
def test_training_outside_the_harness_is_denied_with_the_right_command(project, command):
    said = project.bash(command)
    assert (said["permission"], said["rule"]) == ("deny", "training_outside_harness")
    assert "start_run" in said["hint"]
    assert "harness train exp-0002 -- " in said["hint"]
    by_hand = project.bash(command, mode="interactive", role=None)
    assert "start_run" not in by_hand["hint"]


@pytest.mark.parametrize(
    "command",
    [
        "cat train.py",
        "python -m py_compile train.py",
        "python predict.py",
        "vim train.py",
        "git diff train.py",
        "python -c 'from train import build; print(build())'",
        "cat train.py; python --version",
        "grep -n main train.py && python - <<'EOF'\nprint(1)\nEOF",
        "python evaluate_training.py",
    ],
)
def test_looking_at_the_entry_is_no_training(project, command):
    assert project.bash(command)["permission"] == "allow"


def test_other_entries_are_known_by_their_words(project):
    shell = {"entry": ["bash", "run_training.sh"]}
    assert project.bash("bash run_training.sh", **shell)["rule"] == "training_outside_harness"
    assert project.bash("sh ./run_training.sh", **shell)["rule"] == "training_outside_harness"
    assert project.bash("bash other.sh", **shell)["permission"] == "allow"
    module = {"entry": ["python", "-m", "package.fit"]}
    assert (
        project.bash("python3 -m package.fit --x", **module)["rule"] == "training_outside_harness"
    )
    assert project.bash("python3 -m package.look", **module)["permission"] == "allow"
    assert project.bash("fit --all", entry=["fit"])["rule"] == "training_outside_harness"
    assert project.bash("python train.py", entry=[])["permission"] == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "harness gate approve exp-0002 --reason x",
        "harness --project . gate approve exp-0002",
        "harness gate --json reject exp-0002",
        "/opt/venv/bin/harness plan approve plan.md",
        "python -m harness plan approve plan.md",
        "python -m harness.cli.main gate approve exp-0002",
        "yes | harness ledger import folder",
        "bash -c 'harness init'",
        "env A=1 timeout 5 harness --project x init",
        "harness gate 'approve' exp-0002",
    ],
)
def test_human_verbs_are_denied(project, command):
    said = project.bash(command)
    assert (said["permission"], said["rule"]) == ("deny", "human_verb")


def test_new_experiment_by_hand_while_one_is_open_is_denied(project):
    said = project.bash("harness experiment new --hypothesis 'deeper'")
    assert (said["rule"], "harness train exp-0002" in said["hint"]) == ("experiment_open", True)
    assert (
        project.bash("harness experiment new --hypothesis x", open_experiment=None)["permission"]
        == "allow"
    )
    assert (
        project.bash("harness experiment new --hypothesis x", open_gate="validation")["rule"]
        == "gate_open"
    )


def test_internals_of_the_harness_are_not_called_from_program_text(project):
    said = project.bash(
        'python -c \'from harness.cli.main import main; main(["gate","approve"])\''
    )
    assert said["permission"] == "deny"
    assert (
        project.bash("python -c 'from harness.run_logger import RunLogger'")["permission"]
        == "allow"
    )


@pytest.mark.parametrize(
    "command", ["echo 'open", "rm $(cat list)", "$RUN model.py", "case x in y) ls;; esac", "cd $D"]
)
def test_what_cannot_be_read_gets_no_opinion_where_nothing_protected_is_named(project, command):
    assert project.bash(command)["permission"] is None
    assert project.bash(f"{command}\ncat plan.md")["permission"] == "deny"


def test_unreadable_command_inside_a_protected_folder_is_denied(project):
    assert project.bash("rm $(ls)", cwd=project.root / ".harness")["permission"] == "deny"
    assert project.bash("rm *", cwd=project.root / ".harness")["permission"] == "deny"
    assert (
        project.bash("python3 -c \"open('x','w')\"", cwd=project.root / ".harness")["permission"]
        == "deny"
    )
    assert project.bash("cat policy.json", cwd=project.root / ".harness")["permission"] == "allow"


def test_own_artifacts_may_be_written_by_bash(project):
    assert project.bash(f"echo x >> {OPEN}/config.yaml")["permission"] == "allow"
    assert project.bash(f"echo x >> {OPEN}/result.md")["permission"] == "deny"


def test_a_very_long_command_is_judged_by_what_it_names(project):
    long = "echo " + "x " * 200_000
    assert project.bash(long)["permission"] is None
    assert project.bash(long + " > plan.md")["permission"] == "deny"
