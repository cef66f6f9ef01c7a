"""What active priors deny: commands by their words, changes by their path, in each spelling."""

import pytest

TAUGHT = [
    {"prior": "p-0001", "form": "deny command", "pattern": "pip install *", "rule": "Not so."},
    {"prior": "p-0002", "form": "deny path", "pattern": "raw/*.csv", "rule": "Leave them."},
]


@pytest.mark.parametrize(
    "command",
    [
        "pip install numpy",
        "/usr/bin/pip install -q numpy",
        "cd sub && FOO=1 pip install numpy",
        "env A=1 nohup pip install numpy",
        "sh -c 'pip install numpy'",
        "true; (pip install numpy) &",
        "rm raw/a.csv",
        "rm -r raw",
        "rm raw/*.csv",
        "cp notes.txt raw/b.csv",
        "echo x > ./sub/../raw/a.csv",
    ],
)
def test_a_command_that_a_prior_forbids_is_denied(project, command):
    said = project.bash(command, taught=TAUGHT)
    assert (said["permission"], said["rule"]) == ("deny", "prior_denies"), said
    assert "which a person activated" in said["reason"]
    assert "harness priors refused p-000" in said["hint"]
    assert project.bash(command)["rule"] != "prior_denies"


@pytest.mark.parametrize(
    "command",
    ["pip list", "pip download numpy", "echo pip install", "cat raw/a.csv", "rm raw.csv"],
)
def test_honest_what_only_looks_alike_passes(project, command):
    assert project.bash(command, taught=TAUGHT)["rule"] != "prior_denies"


def test_a_write_that_a_prior_forbids_is_denied_and_reading_is_not(project):
    for path in ("raw/a.csv", "sub/../raw/a.csv", f"{project.root}/raw/A.CSV"):
        said = project.ask("Write", {"file_path": path}, taught=TAUGHT)
        assert (said["permission"], said["rule"]) == ("deny", "prior_denies"), path
    assert project.ask("Write", {"file_path": "raw/a.txt"}, taught=TAUGHT)["permission"] == "allow"
    project.write("raw/a.csv")
    assert project.ask("Read", {"file_path": "raw/a.csv"}, taught=TAUGHT)["permission"] == "allow"


def test_a_damaged_rule_denies_everything(project):
    said = project.ask("Write", {"file_path": "notes.txt"}, taught=[{"prior": "p-0001"}])
    assert (said["permission"], said["rule"]) == ("deny", "snapshot_damaged")
