"""Every form in which a shell changes a file, over everything that is protected, through the real
program.

`{p}` stands for the protected path, `{d}` for its folder, `{b}` for its name, `{r}` for the
project's root.
"""

import json
import os
import shlex

import pytest
from hook_project import HookProject

TARGETS = {
    "ledger": "{state}/ledger.db",
    "policy": ".harness/policy.json",
    "hooks": ".claude/hooks/harness/run.py",
    "settings": ".claude/settings.json",
    "artifact": ".harness/experiments/exp-0001/runs/run-01/metrics.jsonl",
}
FORMS = {
    "redirect": "echo x > {p}",
    "append": "printf x >> {p}",
    "clobber": "echo x >| {p}",
    "stderr": "ls nothing 2> {p}",
    "both": "make &> {p}",
    "read-write": "exec 3<> {p}",
    "no command": "> {p}",
    "heredoc": "cat > {p} <<'EOF'\nx\nEOF",
    "heredoc first": "cat <<EOF > {p}\nx\nEOF",
    "heredoc to tee": "tee {p} <<EOF\nx\nEOF",
    "here-string": "tee {p} <<< x",
    "tee": "echo x | tee -a {p} > /dev/null",
    "sed -i": "sed -i s/a/b/ {p}",
    "sed --in-place": "sed --in-place=.bak -e s/a/b/ {p}",
    "perl -i": "perl -pi -e s/a/b/ {p}",
    "cp": "cp notes.txt {p}",
    "cp -t": "cp -t {d} notes.txt",
    "cp into folder": "cp {b} {d}",
    "mv over": "mv notes.txt {p}",
    "mv away": "mv {p} notes.txt",
    "ln over": "ln -sf ../notes.txt {p}",
    "ln of it": "ln {p} other_name",
    "symlink of it": "ln -s {p} other_name",
    "symlink, then write": "ln -s {d} x && echo x > x/{b}",
    "rm": "rm -f {p}",
    "rm -r": "rm -rf {d}",
    "unlink": "unlink {p}",
    "truncate": "truncate -s 0 {p}",
    "touch": "touch {p}",
    "chmod": "chmod -R 777 {d}",
    "install": "install -m 644 notes.txt {p}",
    "dd": "dd if=/dev/zero of={p} bs=1 count=1",
    "rsync": "rsync -a notes.txt {p}",
    "patch": "patch {p} patch.diff",
    "python -c": "python -c \"open('{p}', 'w').write('x')\"",
    "python3 pathlib": "python3 -c \"from pathlib import Path; Path('{p}').write_text('')\"",
    "python -W -c": "python -W ignore -c \"open('{p}', 'w')\"",
    "python -Ic": "python3 -Ic \"import os; os.remove('{p}')\"",
    "python argv": "python3 -c 'import os,sys; os.remove(sys.argv[1])' {p}",
    "python heredoc": "python - <<'EOF'\nopen('{p}', 'a').write('x')\nEOF",
    "node -e": "node -e \"require('fs').writeFileSync('{p}', '')\"",
    "awk": 'awk \'BEGIN {{ print "x" > "{p}" }}\'',
    "find -delete": "find {d} -name '*' -delete",
    "find -exec": "find {d} -type f -exec rm {{}} +",
    "find -exec sh": "find {d} -type f -exec sh -c 'rm \"$1\"' _ {{}} \\;",
    "xargs": "echo {p} | xargs rm",
    "xargs sh": "ls {d} | xargs -I X sh -c 'rm {d}/X'",
    "xargs with path": "echo -f | xargs rm {p}",
    "parallel": "parallel rm ::: {p}",
    "env": "env A=1 rm {p}",
    "env -S": "env -S 'rm {p}'",
    "command": "command rm {p}",
    "exec": "exec rm {p}",
    "nohup": "nohup rm {p} &",
    "timeout": "timeout 5 rm {p}",
    "nice": "nice -n 5 rm {p}",
    "sudo": "sudo -u root rm {p}",
    "busybox": "busybox rm {p}",
    "bash -c": "bash -c 'rm {p}'",
    "sh -c in sh -c": "sh -c \"sh -c 'rm {p}'\"",
    "bash -lc": 'bash -lc "cd / && cd {r} && rm {p}"',
    "bash here-string": "bash <<< 'rm {p}'",
    "bash heredoc": "bash <<'EOF'\nrm {p}\nEOF",
    "piped to sh": "echo 'rm {p}' | sh",
    "eval": "eval 'rm {p}'",
    "eval of a variable": "C='rm {p}'; eval $C",
    "trap": "trap 'rm {p}' EXIT",
    "substitution": "echo $(rm {p})",
    "backticks": "echo `rm {p}`",
    "process substitution": "cat notes.txt > >(tee {p})",
    "subshell": "(rm {p})",
    "group": "{{ rm {p}; }}",
    "and": "true && rm {p}",
    "or": "false || rm {p}",
    "background": "rm {p} & wait",
    "background job": "(sleep 1; rm {p}) &",
    "coproc": "coproc rm {p}",
    "if": "if true; then rm {p}; fi",
    "for": "for f in notes.txt {p}; do rm $f; done",
    "while": "while read f; do rm {p}; done < notes.txt",
    "function": "f() {{ rm {p}; }}; f",
    "variable": "F={p}; rm $F",
    "variable in braces": 'F={p}; rm "${{F}}"',
    "exported variable": "export F={p} && rm $F",
    "brace expansion": "rm {{notes.txt,{p}}}",
    "wildcard": "rm {d}/*",
    "question mark": "rm {p_last_unknown}",
    "quoted": "rm '{p}'",
    "quotes within": "rm {p_split}",
    "after cd": "cd {d} && rm {b}",
    "after cd in a subshell": "(cd {d}; rm ./{b})",
    "pushd": "pushd {d}; rm {b}; popd",
    "after cd and back": "cd sub && rm ../{p_or_absolute}",
    "dots": "rm sub/../{p_or_absolute}",
    "git rm": "git rm -f {p}",
    "git checkout": "git checkout HEAD -- {p}",
    "git checkout of all": "git checkout -f main",
    "git restore": "git restore {p}",
    "git stash": "git stash -u",
    "git stash pop": "git stash pop",
    "git clean": "git clean -fdx",
    "git reset": "git reset --hard HEAD~1",
    "git apply": "git apply patch.diff",
    "git worktree": "git worktree add ../copy",
    "git alias": "git -c alias.x='!rm {p}' x",
    "comment before": "# tidy up\nrm {p}",
    "line continued": "rm \\\n  {p}",
    "sponge": "cat notes.txt | sponge {p}",
    "sqlite": "sqlite3 {p} 'drop table facts'",
    "ed": "ed {p} < notes.txt",
    "vim": "vim -es -c wq {p}",
    "gzip": "gzip {p}",
    "curl": "curl -o {p} http://127.0.0.1:9/x",
    "wget": "wget -O {p} http://127.0.0.1:9/x",
    "tar": "tar -xf a.tar -C {d}",
}
WHOLE_TREE = {
    "git checkout of all",
    "git stash",
    "git stash pop",
    "git clean",
    "git reset",
    "git apply",
    "git worktree",
}


def written(project: HookProject, form: str, target: str) -> str:
    """The form over the target. Quoting is the form's own, so the paths here hold no blank."""
    path = target.format(state=project.state)
    folder, base = os.path.split(path)
    return FORMS[form].format(
        p=path,
        d=folder,
        b=base,
        r=shlex.quote(str(project.root)),
        p_last_unknown=path[:-1] + "?",
        p_split=f'{folder}/"{base[:2]}"{base[2:]}',
        p_or_absolute=path if not path.startswith("/") else os.path.relpath(path, project.root),
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> HookProject:
    project = HookProject(tmp_path_factory.mktemp("forms"))
    project.write("a.tar")
    return project


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_each_form_over_each_target_is_denied(plain: HookProject, form: str, target: str):
    if form in WHOLE_TREE and target == "ledger":
        target = "policy"  # the state is in no working tree
    command = written(plain, form, TARGETS[target])
    answer = plain.shell(command)
    assert answer.denied, command
    assert answer.errors.startswith("harness: ")


def test_hard_link_is_followed(project: HookProject):
    os.link(project.root / ".claude/settings.json", project.root / "other_name")
    assert project.shell("echo x > other_name").denied
    assert project.call("Write", {"file_path": "other_name"}).denied


def test_symbolic_link_is_followed(project: HookProject):
    (project.root / "x").symlink_to(".claude")
    (project.root / "y").symlink_to(project.state)
    assert project.shell("echo x > x/settings.json").denied
    assert project.shell("cat y/ledger.db").denied
    assert project.call("Write", {"file_path": "x/settings.json"}).denied


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "git status --short && git diff | head -50",
        "git add -A && git commit -q -m 'a wider MLP'",
        "git log --oneline -5; git show HEAD:train.py",
        "git checkout -b idea",
        "git checkout -- train.py",
        "python -m pytest -q 2>&1 | tail -20",
        "python -c 'import numpy; print(numpy.__version__)'",
        "pip install -q scikit-learn > pip.log 2>&1",
        "cat plan.md .harness/experiments/exp-0001/result.md",
        "grep -rn accuracy .harness/experiments | head",
        "sed -i s/16/32/ model.py && sed -n 1,20p model.py",
        "mkdir -p notebooks && cp train.py notebooks/old_model.py && mv notes.txt notebooks/",
        "find . -name '*.py' -not -path './.venv/*' | xargs wc -l",
        "find sub -name '*.pyc' -delete",
        "for f in *.py; do echo $f; python -m py_compile $f; done",
        "cat > model.py <<'EOF'\nimport torch\nEOF",
        "echo '# plan.md is read first' >> notes.txt",
        "cd sub && rm -f helper.pyc && cd ..",
        "harness status --json",
        "harness train exp-0002 -- python train.py",
        "harness gate check exp-0002; harness experiment list",
        "nvidia-smi; df -h; du -sh data",
        "tail -f training.log & sleep 1; kill %1",
        "jq .score .harness/experiments/exp-0001/score.json",
        "rm -rf build dist __pycache__",
        "echo x > /tmp/scratch.txt",
        "x=$(date +%s); echo $x > stamp.txt",
    ],
)
def test_ordinary_commands_pass_without_a_word(plain: HookProject, command: str):
    assert not plain.shell(command).denied, plain.shell(command).errors


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "given",
    [
        {"path": "{p}", "content": "x"},
        {"edits": [{"file": {"path": "{p}"}}]},
        {"uri": "file://{r}/{p}"},
        {"command": "echo x > {p}"},
        {"cmd": "cd {d} && rm {b}"},
        {"argv": ["rm", "-f", "{p}"]},
    ],
    ids=str,
)
def test_tools_of_other_servers_are_held_to_it(plain: HookProject, given: dict, target: str):
    path = TARGETS[target].format(state=plain.state)
    folder, base = os.path.split(path)
    place = os.path.join(plain.root, path)
    text = (
        json.dumps(given)
        .replace("{r}/{p}", place)
        .replace("{p}", path)
        .replace("{d}", folder)
        .replace("{b}", base)
    )
    assert plain.call("mcp__files__do", json.loads(text)).denied
    assert not plain.call("mcp__files__do", {"path": "notes.txt", "command": "ls"}).denied


@pytest.mark.parametrize("tool", ["Write", "Edit", "MultiEdit", "NotebookEdit"])
@pytest.mark.parametrize("target", TARGETS)
def test_editing_tools_are_held_to_it(plain: HookProject, tool: str, target: str):
    key = "notebook_path" if tool == "NotebookEdit" else "file_path"
    path = TARGETS[target].format(state=plain.state)
    for spelled in (
        path,
        os.path.join(plain.root, path),
        f"sub/../{path}" if not path.startswith("/") else path,
    ):
        assert plain.call(tool, {key: spelled}).denied
    assert not plain.call(tool, {key: "notes.txt"}).denied


def test_training_outside_is_denied_with_the_right_command(plain: HookProject):
    for command in (
        "python train.py --epochs 3",
        "cd sub; nohup python ../train.py &",
        "torchrun train.py",
    ):
        answer = plain.shell(command)
        assert answer.denied, command
        assert "harness train exp-0002 -- " in answer.errors


@pytest.mark.parametrize(
    ("gate", "expected"),
    [("validation", "harness gate check exp-0002"), (None, "harness train exp-0002 -- CMD")],
)
def test_opening_an_experiment_while_one_is_open_is_denied_with_the_next_command(
    project: HookProject, gate: str | None, expected: str
):
    project.save({**project.snapshot, "mode": "interactive", "role": None, "open_gate": gate})
    answers = [
        project.shell("harness experiment new --hypothesis 'another one'"),
        project.call("mcp__harness__open_experiment", {"hypothesis": "another one"}),
        project.call(
            "mcp__plugin_harness_harness__open_experiment", {"hypothesis": "another one"}
        ),
    ]
    for answer in answers:
        assert answer.denied
        assert expected in answer.errors
    again = {"hypothesis": "wider is better"}
    assert not project.call("mcp__plugin_harness_harness__open_experiment", again).denied
