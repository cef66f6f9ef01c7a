"""What every Sandbox promises about a run: environment, output, limits, and that nothing is left
running."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness import process
from harness.errors import SandboxError
from harness.runs.environment import child_environment
from harness.sandbox.behind_front import MARKER


def running(word: str) -> list[int]:
    """pids of the processes on this machine that have `word` in their command line."""
    found = []
    for one in psutil.process_iter(["cmdline", "status"]):
        if one.info["status"] != psutil.STATUS_ZOMBIE and word in " ".join(
            one.info["cmdline"] or []
        ):
            found.append(one.pid)
    return found


def gone(word: str) -> bool:
    """Whether they are all gone; gives the kernel a moment."""
    for _ in range(200):
        if not running(word):
            return True
        time.sleep(0.05)
    return False


def test_exit_code_and_output(place):
    completed = place.sh("echo out; echo err >&2; exit 7")
    assert (completed.exit_code, completed.stdout, completed.stderr) == (7, b"out\n", b"err\n")
    assert not completed.timed_out


def test_a_signal_is_128_plus_its_number(place):
    assert place.sh("kill -9 $$").exit_code == 137


def test_a_command_that_does_not_exist_says_so(place):
    completed = place.run("/no/such program")
    assert completed.exit_code != 0
    assert b"/no/such program" in completed.stderr


def test_the_environment_is_what_was_given(place, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "must not be inherited")
    names = place.run("/usr/bin/env", environment={"GIVEN": "yes"}).stdout.decode()
    words = {line.partition("=")[0] for line in names.splitlines()}
    assert words - {"PWD", "TMPDIR", "LC_CTYPE"} == {"PATH", "HOME", "GIVEN", MARKER}


def test_standard_input_is_empty(place):
    assert place.sh("wc -c").stdout.strip() == b"0"


def test_only_the_three_standard_descriptors_are_open(place):
    assert place.sh("ls /proc/$$/fd").stdout.split()[:3] == [b"0", b"1", b"2"]
    script = (
        "import os; print([n for n in os.listdir('/proc/self/fd') if"
        " os.path.exists(f'/proc/self/fd/{n}')])"
    )
    assert place.python(script).stdout == b"['0', '1', '2']\n"


def test_output_beyond_a_mebibyte_is_dropped(place):
    completed = place.python(
        "import os, sys\nfor _ in range(100): os.write(1, b'x' * 2**20)\nsys.exit(3)"
    )
    assert completed.exit_code == 3
    assert completed.stdout == b"x" * 2**20


def test_the_limit_ends_it_and_lets_it_clean_up(place):
    script = (
        "import signal, sys, time, pathlib\n"
        "def end(*_): pathlib.Path('cleaned').write_text('yes'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    completed = place.python(script, timeout_s=1.5)
    assert completed.timed_out
    assert completed.exit_code is None
    assert completed.stdout == b"ready\n"
    assert (place.project / "cleaned").read_text() == "yes"


def test_what_ignores_the_end_is_killed(place):
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for _ in range(2):\n"
        "    if os.fork() == 0: os.setsid()\n"
        "time.sleep(987651)\n"
    )
    completed = place.python(script, timeout_s=1)
    assert completed.timed_out
    assert gone("987651")


@pytest.mark.parametrize("scrub", [False, True])
def test_a_child_left_behind_is_ended(place, scrub):
    program = "'/usr/bin/env', '-i', '/bin/sleep', '987652'" if scrub else "'/bin/sleep', '987652'"
    script = (
        "import os, sys, time\n"
        "if os.fork(): time.sleep(0.3); sys.exit(5)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        f"argv = [{program}]\n"
        "os.execv(argv[0], argv)\n"
    )
    assert place.python(script).exit_code == 5
    assert gone("987652")


def test_a_child_that_kills_its_guardians_is_still_ended(unsandboxed):
    # The kills are a grandchild's: the child dies with its guardian, and would leave the front
    # stopped.
    kills = (
        "import os, signal, sys\nfront, guardian = map(int, sys.argv[1:])\nos.kill(front,"
        " signal.SIGSTOP); os.kill(guardian, signal.SIGKILL); os.kill(front, signal.SIGKILL)\n"
    )
    script = (
        "import os, subprocess, sys, time\nsubprocess.Popen(['/bin/sleep', '987653'],"
        " start_new_session=True)\nguardian = os.getppid()\nfront ="
        " open(f'/proc/{guardian}/stat').read().rsplit(')',"
        f" 1)[1].split()[1]\nsubprocess.Popen([sys.executable, '-c', {kills!r}, front,"
        " str(guardian)], start_new_session=True)\ntime.sleep(60)\n"
    )
    completed = unsandboxed.python(script)
    assert completed.exit_code == 137
    assert gone("987653")


def test_memory_is_limited(place):
    completed = place.python("x = bytearray(400 * 2**20)", memory_bytes=256 * 2**20)
    assert completed.exit_code == 1
    assert b"MemoryError" in completed.stderr


def test_what_our_own_process_loads_from_is_no_commands(place, monkeypatch):
    """A session of the loop is started with nothing that was inherited."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/libraries")
    own = {"PATH": "/usr/bin:/bin"}
    ask = ["/bin/sh", "-c", "echo ${LD_LIBRARY_PATH-unset}"]
    words = place.sandbox.command(ask, place.confinement(), environment=own)
    done = subprocess.run(
        words, cwd=place.project, env=own, capture_output=True, timeout=60, check=True
    )
    assert done.stdout == b"unset\n"


def test_memory_of_a_command_is_limited(place):
    script = "x = bytearray(400 * 2**20)"
    command = place.sandbox.command(
        [sys.executable, "-c", script],
        place.confinement(),
        environment={},
        memory_bytes=256 * 2**20,
    )
    done = subprocess.run(
        command, capture_output=True, cwd=place.project, env={"PATH": "/usr/bin:/bin"}, check=False
    )
    assert done.returncode == 1
    assert b"MemoryError" in done.stderr


def test_a_memory_limit_above_one_that_holds_already_is_no_error(place):
    command = place.sandbox.command(
        ["/bin/sh", "-c", "ulimit -d"], place.confinement(), environment={}, memory_bytes=2**40
    )
    limited = ["/bin/sh", "-c", 'ulimit -d 1048576; exec "$@"', "sh", *command]
    done = subprocess.run(
        limited, capture_output=True, cwd=place.project, env={"PATH": "/usr/bin:/bin"}, check=False
    )
    assert done.returncode == 0, done.stderr
    assert os.geteuid() == 0 or done.stdout == b"1048576\n"


def test_torch_works_below_four_gibibytes(sandboxed):
    pytest.importorskip("torch")
    script = (
        "import torch\nm = torch.nn.Linear(64, 64); o ="
        " torch.optim.AdamW(m.parameters())\nm(torch.ones(8, 64)).sum().backward(); o.step();"
        " torch.save(m.state_dict(), 'w.pt'); print('trained')\n"
    )
    completed = sandboxed.python(
        script, memory_bytes=4 * 2**30, timeout_s=120, environment={"OMP_NUM_THREADS": "1"}
    )
    assert completed.stdout == b"trained\n", completed.stderr[-500:]


def test_a_working_directory_outside_the_sandbox_is_refused(sandboxed):
    with pytest.raises(SandboxError, match="working directory"):
        sandboxed.sh("pwd", cwd=sandboxed.state)


def test_a_missing_path_is_refused(sandboxed):
    confinement = sandboxed.confinement(read_only=(sandboxed.project / "absent",))
    with pytest.raises(SandboxError, match="absent, which is missing"):
        sandboxed.sh("pwd", confinement=confinement)


def _start(place, tmp_path: Path, script: str) -> subprocess.Popen[bytes]:
    words = ["/bin/sh", "-c", script]
    command = place.sandbox.command(words, place.confinement(), environment={})
    return subprocess.Popen(
        command, cwd=place.project, env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL
    )


def _await(word: str) -> None:
    for _ in range(200):
        if running(word):
            return
        time.sleep(0.02)
    pytest.fail(f"{word} never started")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_command_ends_with_all_it_started_when_its_first_process_does(
    sandboxed, tmp_path, number
):
    process = _start(
        sandboxed, tmp_path, "setsid sleep 987654 & setsid sleep 987654 & sleep 987654"
    )
    _await("sleep 987654")
    process.send_signal(number)
    process.wait(timeout=20)
    assert gone("sleep 987654")


def test_a_command_ends_when_its_caller_is_killed(sandboxed, tmp_path):
    command = sandboxed.sandbox.command(
        ["/bin/sh", "-c", "setsid sleep 987655 & sleep 987655"],
        sandboxed.confinement(),
        environment={},
    )
    caller = subprocess.Popen(
        [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *command],
        cwd=sandboxed.project,
    )
    _await("sleep 987655")
    caller.kill()
    caller.wait()
    assert gone("sleep 987655")


def test_terminate_reaches_the_command_itself(sandboxed, tmp_path):
    script = (
        "trap 'echo cleaned > cleaned; exit 4' TERM; echo r > ready; while :; do sleep 0.05; done"
    )
    process = _start(sandboxed, tmp_path, script)
    while not (sandboxed.project / "ready").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.terminate()
    assert process.wait(timeout=20) == 4
    assert (sandboxed.project / "cleaned").exists()


def test_the_pipes_of_the_caller_are_the_commands(sandboxed):
    command = sandboxed.sandbox.command(["/bin/cat"], sandboxed.confinement(), environment={})
    done = subprocess.run(
        command, input=b"through", capture_output=True, cwd=sandboxed.project, env={}, check=True
    )
    assert done.stdout == b"through"


def test_none_says_none(unsandboxed):
    assert unsandboxed.sandbox.kind == "none"
    words = ["echo", "a b"]
    sandbox, confinement = unsandboxed.sandbox, unsandboxed.confinement()
    assert sandbox.command(words, confinement, environment={}) == words


ASKED = 'echo "$LD_LIBRARY_PATH|$HARNESS_COMMAND_LD_LIBRARY_PATH"'


def test_a_commands_libraries_are_none_of_the_programs_that_confine_it(place, monkeypatch):
    """They may lie where an agent writes; front.py, bwrap and landlock_exec.py are not confined."""
    inherited = {**os.environ, "LD_LIBRARY_PATH": "/opt/libraries"}
    outside = child_environment(inherited, place.project, {})
    assert "LD_LIBRARY_PATH" not in outside
    ask = ["/bin/sh", "-c", ASKED]
    words = place.sandbox.command(ask, place.confinement(), environment=outside)
    done = subprocess.run(
        words, cwd=place.project, env=outside, capture_output=True, timeout=60, check=True
    )
    assert done.stdout == b"/opt/libraries|\n"
    given = {}
    run = process.run
    monkeypatch.setattr(
        process,
        "run",
        lambda *words, **more: given.update(more["environment"]) or run(*words, **more),
    )
    done = place.sh(ASKED, environment={"LD_LIBRARY_PATH": "/opt/libraries"})
    assert done.stdout == b"/opt/libraries|\n", done.stderr
    assert "LD_LIBRARY_PATH" not in given
