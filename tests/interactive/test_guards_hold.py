"""Through the real CLI, with the project's own settings and nothing of the SDK: what is protected
does not change."""

import shlex
from pathlib import Path

import pytest

from tests.interactive.gateway import bash, call, delegate, shown
from tests.interactive.lab import RUN, Lab
from tests.interactive.sdk import FROM_PROJECT, Played, play
from tests.interactive.ways import Call, bash_ways, git_ways, labels, tool_ways

EDITS = {
    "policy": ('"schema"', '"scheme"'),
    "settings": ('"timeout": 30', '"timeout": 31'),
    "hook": ("import", "x"),
}


def write(label: str, path: Path) -> Call:
    """By the Write tool; beside the ledger, since it overwrites no binary file that it has not
    read."""
    beside = path.with_name("ledger.db-journal") if path.suffix == ".db" else path
    return call(label, "Write", file_path=str(beside), content="x")


def all_ways(name: str, path: Path) -> list[Call]:
    return [
        write(f"{name}_write", path),
        *tool_ways(name, path, EDITS.get(name)),
        *bash_ways(name, path),
    ]


def ordinary(folder: Path, tag: str) -> list[Call]:
    """What an agent does all day; each leaves a trace below `folder`."""
    at = shlex.quote(str(folder))
    return [
        call(f"{tag}_write", "Write", file_path=str(folder / f"{tag}.py"), content="x = 1\n"),
        bash(f"{tag}_echo", f"echo x = 1 > {at}/{tag}.txt"),
        bash(f"{tag}_python", "python3 -c 'print(6 * 7)'"),
        call(
            f"{tag}_mcp", "mcp__files__write_file", path=str(folder / f"{tag}.json"), content="{}"
        ),
        bash(f"{tag}_sub", f"mkdir -p {at}/below && cd {at}/below && echo y > {tag}.txt"),
        bash(f"{tag}_sed", f"sed -i s/1/2/ {at}/{tag}.txt"),
    ]


def edits(folder: Path, tag: str) -> list[Call]:
    return [
        call(
            f"{tag}_edit",
            "Edit",
            file_path=str(folder / f"{tag}.py"),
            old_string="x = 1",
            new_string="x = 3",
        )
    ]


def assert_ordinary(played: Played, folder: Path, tag: str) -> None:
    assert (folder / f"{tag}.py").read_text("utf-8") == "x = 3\n"
    assert (folder / f"{tag}.txt").read_text("utf-8") == "x = 2\n"
    assert (folder / f"{tag}.json").read_text("utf-8") == "{}"
    assert (folder / "below" / f"{tag}.txt").read_text("utf-8") == "y\n"
    assert played.text(f"{tag}_python") == "42"


def test_no_way_changes_what_is_kept(lab: Lab) -> None:
    """From the root, in a path with a space, whole paths: the file tools, MCP and every Bash
    form."""
    calls = [item for name, path in lab.kept().items() for item in all_ways(name, path)]
    calls += [item for name in ("hook", "settings") for item in git_ways(name, lab.kept()[name])]
    before = lab.hashes()
    turns = [calls, ordinary(lab.root, "root"), edits(lab.root, "root"), "Done."]
    played = play(lab.root, lab.home, {"PLEASE CHANGE IT": turns})
    assert len(calls) > 100
    assert played.not_held(calls) == {}
    assert lab.hashes() == before
    assert_ordinary(played, lab.root, "root")


def test_after_cd_into_a_subfolder(lab: Lab) -> None:
    calls = [
        bash("cd", "cd sub"),
        bash("settings", "echo x > ../.claude/settings.json"),
        bash("hook", "rm -rf ../.claude/hooks"),
        bash("policy", "sed -i s/a/b/ ../.harness/policy.json"),
        bash("artifact", f"tee ../{RUN}/metrics.jsonl < notes.txt"),
        call("write", "Write", file_path=str(lab.kept()["settings"]), content="x"),
        bash("back", "cd ../.harness"),
        bash("relative", "python3 -c \"open('policy.json', 'w')\""),
        bash("here", "echo x > policy.json"),
        bash("home", f"cd {shlex.quote(str(lab.root))}/sub && pwd"),
    ]
    before = lab.hashes()
    turns = [calls, ordinary(lab.root / "sub", "insub"), edits(lab.root / "sub", "insub"), "Done."]
    played = play(lab.root, lab.home, {"PLEASE WALK": turns})
    assert played.not_held(calls).keys() == {"cd", "back", "home"}
    assert played.text("home").endswith("/sub")
    assert lab.hashes() == before
    assert_ordinary(played, lab.root / "sub", "insub")


def test_after_cd_into_another_repository(lab: Lab) -> None:
    back = Path("..") / lab.root.name
    calls = [
        bash("cd", f"cd {shlex.quote(str(lab.other))} && pwd"),
        bash("settings", f"echo x > {shlex.quote(str(back / '.claude/settings.json'))}"),
        bash("ledger", f"rm -f {shlex.quote(str(lab.kept()['ledger']))}"),
        call("write", "Write", file_path=str(lab.kept()["policy"]), content="x"),
        call("mcp", "mcp__files__write_file", path=str(lab.kept()["artifact"]), content="x"),
    ]
    before = lab.hashes()
    turns = [calls, ordinary(lab.other, "other"), edits(lab.other, "other"), "Done."]
    options = {**FROM_PROJECT, "add_dirs": [str(lab.other)]}
    played = play(lab.root, lab.home, {"PLEASE GO ELSEWHERE": turns}, options=options)
    assert played.text("cd") == str(lab.other)
    assert played.not_held(calls).keys() == {"cd"}
    assert lab.hashes() == before
    assert_ordinary(played, lab.other, "other")


@pytest.mark.parametrize("place", ["link", "worktree"])
def test_each_place_holds_and_lets_work(place: str, lab: Lab) -> None:
    """Started through a symbolic link, and in a worktree: both copies of each kept file are
    held."""
    start = {"link": lab.link, "worktree": lab.worktree}[place]
    calls: list[Call] = []
    for name, path in lab.kept(start).items():
        calls += [write(f"{name}_write", path)]
        calls += [bash(f"{name}_echo", f"echo x > {shlex.quote(str(path))}")]
        if path.is_relative_to(start):
            calls += [bash(f"{name}_relative", f"echo x > {path.relative_to(start)}")]
    for name, path in lab.kept().items():
        calls += [bash(f"{name}_main", f"rm -f {shlex.quote(str(path))}")]
    before = lab.hashes()
    turns = [calls, ordinary(start, place), edits(start, place), "Done."]
    played = play(start, lab.home, {"PLEASE TRY": turns})
    assert played.not_held(calls) == {}
    assert lab.hashes() == before
    assert_ordinary(played, start, place)


def test_subagents_are_held_too(lab: Lab) -> None:
    """One of the CLI's own kinds, and one whose file stands in the project."""
    kinds = ("general-purpose", "model-builder")
    tries: dict[str, list[Call]] = {kind: [] for kind in kinds}
    for kind in kinds:
        tries[kind] = [write(f"{kind}_{name}", path) for name, path in lab.kept().items()]
        tries[kind] += [
            bash(f"{kind}_{name}_sh", f"rm -f {shlex.quote(str(path))}")
            for name, path in lab.kept().items()
        ]
    work = {kind: ordinary(lab.root, f"by-{kind}")[:2] for kind in kinds}
    before = lab.hashes()
    played = play(
        lab.root,
        lab.home,
        {
            "PLEASE DELEGATE": [
                [delegate(kind, f"PLEASE TRY AS {kind}", kind) for kind in kinds],
                "Done.",
            ]
        },
        subagents={
            f"PLEASE TRY AS {kind}": [tries[kind], work[kind], "Reported."] for kind in kinds
        },
    )
    for kind in kinds:
        assert not played.failed(kind), played.text(kind)
        assert played.not_held(tries[kind]) == {}
        assert labels(work[kind]) <= played.passed_labels
    assert lab.hashes() == before


def test_skills_and_other_shells_are_held_too(lab: Lab) -> None:
    """A slash command that the model calls runs lines of its own; Monitor starts a shell in the
    background."""
    bad = f"echo x > {shlex.quote(str(lab.kept()['policy']))}"
    calls = [
        call("skill", "Skill", skill="harness:gate", args=f"exp-0001; {bad}"),
        call("plain", "Skill", skill="harness:status", args=""),
        call("monitor", "Monitor", command=bad, description="Watch"),
    ]
    options = {
        **FROM_PROJECT,
        "allowed_tools": [*FROM_PROJECT["allowed_tools"], "Skill", "Monitor"],
    }
    before = lab.hashes()
    prompts = {
        "PLEASE TRY SKILLS": [calls, "Done."],
        "The gate's answer": ["Done."],
        "The harness says": ["Done."],
    }
    played = play(lab.root, lab.home, prompts, send=["PLEASE TRY SKILLS"], options=options)
    assert played.held("monitor")
    assert lab.hashes() == before
    said = shown(played.requests[-1])
    assert "[not run: blocked by hook:" in said
    assert "toy, version 1" in said  # the plain one ran
