"""A sandbox is believed after it kept a program from what must fail; a bwrap counts only where root
put it."""

import os
from pathlib import Path

import pytest

from harness import process
from harness.domain.statuses import SandboxKind
from harness.sandbox import landlock, select
from harness.sandbox.bwrap import Bwrap
from harness.sandbox.select import SANDBOXES, available
from harness.sandbox.trial import fault

DROPS_ALL = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
KEEPS_ALL_BUT = """
words=()
for word in "$@"; do [ "$word" = @OPTION@ ] || words+=("$word"); done
exec /usr/bin/bwrap "${words[@]}"
"""


def fake_bwrap(folder: Path, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    fake = folder / "bwrap"
    fake.write_text(f"#!/bin/bash\n{script}\n")
    fake.chmod(0o755)
    return fake


@pytest.mark.parametrize("kind", [SandboxKind.BWRAP, SandboxKind.LANDLOCK])
def test_one_that_confines_has_no_fault(kind: SandboxKind) -> None:
    if reason := available()[kind]:
        pytest.skip(reason)
    assert fault(SANDBOXES[kind]()) is None


def test_a_bwrap_that_drops_its_options_is_refused_with_all_that_it_let_through(
    tmp_path: Path,
) -> None:
    assert fault(Bwrap(str(fake_bwrap(tmp_path / "bin", DROPS_ALL)))) == (
        "it does not confine: it let a program read a file that was not granted, write outside what"
        " was granted, connect to a port of this machine, connect to a Unix socket outside, see the"
        " process that started it"
    )


def test_a_bwrap_that_drops_one_option_is_told_which_way_is_open(tmp_path: Path) -> None:
    if reason := available()[SandboxKind.BWRAP]:
        pytest.skip(reason)
    script = KEEPS_ALL_BUT.replace("@OPTION@", "--unshare-net")
    assert fault(Bwrap(str(fake_bwrap(tmp_path / "bin", script)))) == (
        "it does not confine: it let a program connect to a port of this machine"
    )


def test_a_bwrap_that_fails_or_answers_for_the_program_is_refused(tmp_path: Path) -> None:
    broken = fake_bwrap(tmp_path / "broken", "echo 'bwrap: no user namespaces' >&2; exit 1")
    assert fault(Bwrap(str(broken))) == "it fails here: bwrap: no user namespaces"
    answers = fake_bwrap(tmp_path / "answers", """echo '{"granted": "no", "through": []}'""")
    assert fault(Bwrap(str(answers))) == "it fails here: a granted file could not be read"
    missing = fault(Bwrap(str(tmp_path / "missing")))
    assert missing is not None
    assert "cannot be started" in missing


def test_a_landlock_that_sets_no_rules_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := available()[SandboxKind.LANDLOCK]:
        pytest.skip(reason)
    monkeypatch.setattr(landlock, "_confined", lambda argv, _confinement, _granted: list(argv))
    assert fault(SANDBOXES[SandboxKind.LANDLOCK]()) == (
        "it does not confine: it let a program read a file that was not granted, write outside what"
        " was granted, connect to a port of this machine"
    )


def test_path_is_not_asked_for_bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fake_bwrap(tmp_path / "bin", f"touch {tmp_path}/called; {DROPS_ALL}")
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    select._reason.__wrapped__(SandboxKind.BWRAP)
    assert not (tmp_path / "called").exists()


def test_without_one_of_roots_the_reason_says_where_it_belongs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = fake_bwrap(tmp_path / "bin", DROPS_ALL)
    fake.chmod(0o777)
    monkeypatch.setattr(process, "SYSTEM_FOLDERS", (str(fake.parent),))
    process.system_program.cache_clear()
    try:
        reason = select._reason.__wrapped__(SandboxKind.BWRAP)
    finally:
        process.system_program.cache_clear()
    assert reason.startswith("there is no bwrap of root's in /usr/local/bin, /usr/bin, /bin,")


def test_a_program_counts_as_roots_by_owner_and_permissions(tmp_path: Path) -> None:
    fake = fake_bwrap(tmp_path / "bin", DROPS_ALL)
    link = tmp_path / "link"
    link.symlink_to(fake)
    assert process.is_roots("/usr/bin/env")
    assert process.is_roots(str(fake)) is (os.geteuid() == 0)
    fake.chmod(0o757)
    assert not process.is_roots(str(fake))
    assert not process.is_roots(str(link))
    fake.chmod(0o755)
    fake.parent.chmod(0o777)
    assert not process.is_roots(str(fake))
    if os.geteuid() == 0:
        fake.parent.chmod(0o755)
        os.chown(fake, 65534, -1)
        assert not process.is_roots(str(fake))
