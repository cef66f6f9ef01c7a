"""Predict programs that cheat, break or hang: each ends as a finding, none as a score."""

import csv
import socket
import time

import psutil
import pytest

from harness.domain.statuses import Split
from harness.evaluation.predict import PredictLimits

from .workplace import HONEST, PREDICT, N, codes

HOSTILE = {
    "writes no rows": ("write([])", "predictions_empty"),
    "writes nothing": ("", "predictions_absent"),
    "writes an empty file": ("open(os.environ['HARNESS_PREDICTIONS'], 'w')", "predictions_absent"),
    "leaves rows out": ("write([(row['id'], 'a') for row in rows[2:]])", "predictions_missing"),
    "repeats rows": (
        "write([(row['id'], 'a') for row in rows + rows[:1]])",
        "predictions_duplicate",
    ),
    "adds rows": (
        "write([(row['id'], 'a') for row in rows] + [('r0', 'a')])",
        "predictions_extra",
    ),
    "invents a class": (
        "write([(row['id'], 'zebra') for row in rows])",
        "predictions_unknown_class",
    ),
    "crashes": ("sys.exit('no GPU here')", "predict_crashed"),
    "kills itself": ("os.kill(os.getpid(), 9)", "predict_crashed"),
    "forgets the header": (
        "write([(row['id'], 'a') for row in rows[1:]], (rows[0]['id'], 'a'))",
        "predictions_wrong_columns",
    ),
    "links to the labels": (
        "os.symlink(HELD_OUT, os.environ['HARNESS_PREDICTIONS'])",
        "predictions_unreadable",
    ),
    "makes a pipe": ("os.mkfifo(os.environ['HARNESS_PREDICTIONS'])", "predictions_unreadable"),
    "makes a folder": ("os.mkdir(os.environ['HARNESS_PREDICTIONS'])", "predictions_unreadable"),
    "replaces the output folder": (
        (
            "import shutil; out = os.path.dirname(os.environ['HARNESS_PREDICTIONS']);"
            " shutil.rmtree(out); os.symlink(os.path.dirname(HELD_OUT), out)"
        ),
        "predictions_unreadable",
    ),
    "writes another file beside it": (
        (
            "write([(row['id'], 'a') for row in rows]); open(os.environ['HARNESS_PREDICTIONS'] +"
            " '.npz', 'w').write('x')"
        ),
        "predictions_unreadable",
    ),
    "pickles": (
        (
            "import numpy as np; np.savez(os.environ['HARNESS_PREDICTIONS'], id=[row['id'] for row"
            " in rows], prediction=np.array([print for _ in rows], dtype=object))"
        ),
        "predictions_unreadable",
    ),
    "changes its checkpoint": (
        "p = os.environ['HARNESS_CHECKPOINT']; os.chmod(p, 0o644); open(p, 'w').write('better')",
        "checkpoint_changed",
    ),
    "removes its checkpoint": (
        "os.unlink(os.environ['HARNESS_CHECKPOINT'])",
        "checkpoint_changed",
    ),
    "depends on the other rows": (
        "write([(row['id'], 'a' if len(rows) > 20 else 'b') for row in rows])",
        "predictions_not_reproducible",
    ),
    "draws lots": (
        "write([(row['id'], 'ab'[os.urandom(1)[0] % 2]) for row in rows])",
        "predictions_not_reproducible",
    ),
    "fails only the second time": (
        "sys.exit(3) if len(rows) < 40 else write([(row['id'], 'a') for row in rows])",
        "predict_crashed",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_fault_is_a_finding_and_never_a_score(workplace, unsandboxed, name):
    body, code = HOSTILE[name]
    outcome = workplace.evaluate(
        f"{PREDICT}HELD_OUT = {str(workplace.held_out.path)!r}\n{body}\n", unsandboxed
    )
    assert codes(outcome) == [code]
    assert outcome.value is None
    assert outcome.interval is None
    assert outcome.findings[0].hint
    assert outcome.n == N


def test_counts_and_examples_name_rows_as_the_source_does(workplace, unsandboxed):
    body = "write([(row['id'], 'a') for row in rows if abs(float(row['x'])) != 8])\n"
    finding = workplace.evaluate(PREDICT + body, unsandboxed).findings[0]
    assert finding.message == "1 of 40 predictions are missing, rows: 'row-7'."
    assert finding.data["count"] == 1


@pytest.mark.parametrize(
    "body",
    [
        "sys.exit('LEAK ' + rows[0]['x'])",
        "write([(row['id'], 'LEAK' + row['x']) for row in rows])",
        "write([('LEAK' + row['x'], 'a') for row in rows])",
        "write([], ['LEAK' + row['x'] for row in rows])",
        "write([(row['id'], 'a') for row in rows if float(row['x']) > 9])",
    ],
)
def test_on_held_out_a_finding_carries_nothing_that_predict_chose(workplace, unsandboxed, body):
    program = f"{PREDICT}{body}\n"
    outcome = workplace.evaluate(program, unsandboxed, split=Split.HELD_OUT, sealed=True)
    assert outcome.findings
    for finding in outcome.findings:
        assert "Details are withheld" in finding.message
        assert "`harness evaluate --check`" in finding.hint, "where it shows its own error"
        assert "LEAK" not in str(finding.plain())
        assert "row-" not in str(finding.plain())


def test_a_crash_shows_the_end_of_stderr(workplace, unsandboxed):
    body = (
        "print('\\x1b[31mred', file=sys.stderr)\n[print('noise', i, file=sys.stderr) for i in"
        " range(50)]\n1/0\n"
    )
    message = workplace.evaluate(body.join(["import sys\n", ""]), unsandboxed).findings[0].message
    assert "exit code 1" in message
    assert "ZeroDivisionError" in message
    assert "noise 10\n" not in message


def test_a_hang_is_ended_at_the_limit(workplace, unsandboxed):
    limits = PredictLimits(predict_seconds=0.7)
    outcome = workplace.evaluate("import time\ntime.sleep(600)\n", unsandboxed, limits=limits)
    assert codes(outcome) == ["predict_timed_out"]
    assert "0.7 s" in outcome.findings[0].message


def test_a_predict_that_wants_too_much_memory_is_a_finding_and_no_score(workplace, unsandboxed):
    limits = PredictLimits(memory_bytes=256 * 2**20)
    outcome = workplace.evaluate(
        "taken = bytearray(400 * 2**20)\n" + HONEST, unsandboxed, limits=limits
    )
    assert codes(outcome) == ["predict_crashed"]
    assert "MemoryError" in outcome.findings[0].message
    assert outcome.value is None


def test_predict_gets_no_more_than_the_machine_has():
    assert 0 < PredictLimits().memory_bytes < psutil.virtual_memory().total


def test_a_child_that_stays_is_gone_and_cannot_change_the_predictions(workplace, unsandboxed):
    pid_file = workplace.state / "child.pid"
    child = (
        f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    body = (
        "import subprocess, time\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)\n"
        f"while not os.path.exists({str(pid_file)!r}): time.sleep(0.02)\n"
    )
    outcome = workplace.evaluate(PREDICT + body + HONEST, unsandboxed)
    assert outcome.value == pytest.approx(0.9)
    pid = int(pid_file.read_text())
    for _ in range(250):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.02)
    else:
        pytest.fail(f"process {pid} is still running")


def test_a_hundred_megabytes_of_output_do_no_harm(workplace, unsandboxed):
    body = "for _ in range(100): sys.stdout.write('x' * 1_000_000)\n"
    before = psutil.Process().memory_info().rss
    assert workplace.evaluate(PREDICT + body + HONEST, unsandboxed).value == pytest.approx(0.9)
    assert psutil.Process().memory_info().rss - before < 60_000_000


def test_predicting_by_row_order_is_useless(workplace, unsandboxed):
    labels = [row["y"] for row in csv.DictReader(workplace.held_out.path.open(newline=""))]
    body = f"known = {labels!r}\nwrite([(row['id'], known[i]) for i, row in enumerate(rows)])\n"
    outcome = workplace.evaluate(PREDICT + body, unsandboxed)
    assert outcome.value is None  # the part that is predicted again has other positions
    assert codes(outcome) == ["predictions_not_reproducible"]


@pytest.mark.parametrize(
    "how", ["open(HELD_OUT).read()", "os.listdir(os.path.dirname(HELD_OUT))", "open(TRAIN).read()"]
)
def test_in_a_sandbox_the_labels_are_out_of_reach(workplace, sandboxed, how):
    names = f"HELD_OUT = {str(workplace.held_out.path)!r}\nTRAIN = {str(workplace.train.path)!r}\n"
    outcome = workplace.evaluate(PREDICT + names + how + "\n" + HONEST, sandboxed)
    assert codes(outcome) == ["predict_crashed"]
    assert (
        "No such file" in outcome.findings[0].message
        or "Permission denied" in outcome.findings[0].message
    )


@pytest.mark.parametrize(
    "what",
    [
        "open('predict.py', 'a')",
        "open(os.environ['HARNESS_INPUTS'], 'a')",
        "os.unlink(os.environ['HARNESS_CHECKPOINT'])",
        "open('new.txt', 'w')",
        "import socket; socket.create_connection(('127.0.0.1', PORT), timeout=3)",
    ],
)
def test_in_a_sandbox_only_the_output_folder_is_writable_and_there_is_no_network(
    workplace, sandboxed, what
):
    with socket.create_server(("127.0.0.1", 0)) as server:
        program = f"{PREDICT}PORT = {server.getsockname()[1]}\n{what}\n"
        outcome = workplace.evaluate(program + HONEST, sandboxed)
    assert codes(outcome) == ["predict_crashed"]
