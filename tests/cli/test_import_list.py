"""`harness import results.tsv`: what another loop kept, as it says, and what of it is noise."""

from pathlib import Path

import pytest

from harness.decisions.imported_list import judge_list
from harness.foreign.kept_list import read_list
from tests.cli.journey import Answer, Journey, make_project

HEADER = "commit\tval_bpb\tmemory_gb\tstatus\tdescription\n"
OWN = (  # as the loop's own instructions show it
    "a1b2c3d\t0.997900\t44.0\tkeep\tbaseline\n"
    "b2c3d4e\t0.993200\t44.2\tkeep\tincrease LR to 0.04\n"
    "c3d4e5f\t1.005000\t44.0\tdiscard\tswitch to GeLU activation\n"
    "d4e5f6g\t0.000000\t0.0\tcrash\tdouble model width (OOM)\n"
)
REPEATS = (
    "e5f6a7b\t0.992900\t44.2\tkeep\tseed 43\n"
    "e5f6a7b\t0.993700\t44.2\tdiscard\tthe same again\n"
    "e5f6a7b\t0.993300\t44.2\tdiscard\tonce more\n"
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    base = tmp_path_factory.mktemp("lists")
    journey = make_project(base / "project", base / "home")
    assert journey.harness("init", "--hooks", "none").exit_code == 0
    return journey


def imported(journey: Journey, text: str, *words: str) -> Answer:
    (journey.root / "results.tsv").write_text(text)
    return journey.harness("import", "results.tsv", *words)


def test_what_is_kept_within_the_noise_is_said(project: Journey) -> None:
    done = imported(project, HEADER + OWN + REPEATS, "--json")
    assert done.exit_code == 0, done.stderr
    (said,) = done.document["imported"]
    assert (done.document["evidence"], said["format"]) == ("logged", "list of experiments")
    assert [row["status"] for row in said["experiments"]] == (
        ["keep", "keep", "discard", "crash", "keep", "discard", "discard"]
    )
    crashed = said["experiments"][3]
    assert (crashed["value"], crashed["description"]) == (None, "double model width (OOM)")
    judged = said["judged"]
    assert (judged["metric"], judged["direction"]) == ("val_bpb", "minimize")
    # Three values of one commit: their deviation is 0.0004; Student's t of 2 degrees is 4.303.
    assert judged["noise"]["deviation"] == pytest.approx(4e-4)
    assert judged["noise"]["limit"] == pytest.approx(4.303 * 2**0.5 * 4e-4, rel=1e-3)
    assert [(one["commit"], one["beyond"]) for one in judged["kept"]] == [
        ("a1b2c3d", "the first"),
        ("b2c3d4e", "beyond the noise"),
        ("e5f6a7b", "within the noise"),
    ]
    assert judged["kept"][1]["gain"] == pytest.approx(0.0047)
    assert judged["total"]["beyond"] == "beyond the noise"


def test_a_person_reads_it_and_no_gate_does(project: Journey) -> None:
    shown = imported(project, HEADER + OWN, "--noise", "0.003").stdout
    assert "4 experiments of another program: 2 keep, 1 discard, 1 crash; as it says" in shown
    assert "val_bpb: smaller is better" in shown
    assert "noise: 0.003 a run, so 0.008315 between two; from --noise, as you said it" in shown
    assert "b2c3d4e  0.9932   0.0047  within the noise  increase LR to 0.04" in shown
    assert "1 of 1 further KEEP not beyond the noise; in all val_bpb went from 0.9979" in shown
    assert project.harness("experiment", "list", "--json").document["experiments"] == []


def test_without_a_repeat_the_noise_comes_from_what_was_discarded(tmp_path: Path) -> None:
    path = tmp_path / "results.tsv"
    discarded = "".join(
        f"{number}000000\t{value}\t1\tdiscard\tidea {number}\n"
        for number, value in enumerate((1.001, 1.002, 1.003, 1.004, 1.005, 3.0))
    )
    path.write_text(HEADER + OWN.splitlines(True)[0] + discarded + OWN.splitlines(True)[1])
    listed = read_list(path)
    assert listed is not None
    judged = judge_list(listed, noise=None, direction=None)
    # Around 1.0035 they lie 0.0005, 0.0005, 0.0015, 0.0015, 0.0025 and far away.
    assert judged.noise.deviation == pytest.approx(1.4826 * 0.0015, rel=1e-3)
    assert "it may be too large" in judged.noise.source
    assert judged.kept[1].beyond == "within the noise"


def test_repeats_with_one_seed_tell_nothing(project: Journey) -> None:
    same = "a1b2c3d\t0.997900\t44.0\tdiscard\tbaseline\n"
    shown = imported(project, HEADER + OWN + same).stdout
    assert "noise: unknown: its repeats are equal to the last digit" in shown
    assert "1 further KEEP: say the noise with --noise to judge them" in shown


def test_other_columns_and_a_larger_better_metric_are_read(project: Journey) -> None:
    text = (
        "exp,status,sharpe,idea\n1,KEEP,0.5,first\n2,discarded,0.4,worse\n3,kept,0.9,wider\n"
        "4,keep,0.9,simpler\n5,?,1,torn\n"
    )
    (judged,) = (one["judged"] for one in imported(project, text, "--json").document["imported"])
    assert (judged["metric"], judged["direction"]) == ("sharpe", "maximize")
    assert [one["beyond"] for one in judged["kept"]] == ["the first", "unknown", "not better"]


@pytest.mark.parametrize(
    ("text", "words", "code"),
    [
        (HEADER + OWN, ("--noise", "0"), "noise_unfit"),
        (HEADER + OWN.splitlines(True)[0], (), "direction_unknown"),
        ("epoch\tloss\n0\t1.0\n", ("--noise", "1"), "no_list"),
    ],
)
def test_what_cannot_be_judged_says_what_to_do(
    project: Journey, text: str, words: tuple[str, ...], code: str
) -> None:
    refused = imported(project, text, *words, "--json")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, code)


def test_a_table_of_a_training_is_a_log_as_before(project: Journey) -> None:
    (project.root / "log.csv").write_text("epoch,loss\n0,2.0\n1,1.0\n")
    (said,) = project.harness("import", "log.csv", "--json").document["imported"]
    assert (said["format"], said["experiments"], said["judged"]) == ("CSV", None, None)
