"""Settings of all tests: what is a proof, and which files start first."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.once import found_once

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile(
    "long", deadline=None, max_examples=10_000
)  # `make fuzz` where atheris is missing
settings.load_profile("repeatable")  # `--hypothesis-profile default` searches at random instead

ROOT = Path(__file__).parents[1]
PROOFS = (
    "tests/architecture/test_own_memory.py",
    "tests/artifacts/test_remote.py",
    "tests/cheats/test_bench.py",
    "tests/cli/test_data_split.py",
    "tests/cli/test_default_experiment.py",
    "tests/cli/test_first_hour.py",
    "tests/cli/test_first_start.py",
    "tests/cli/test_grade.py",
    "tests/cli/test_hidden_journey.py",
    "tests/cli/test_init.py",
    "tests/cli/test_interpreter.py",
    "tests/cli/test_journey.py",
    "tests/cli/test_judge_changed.py",
    "tests/cli/test_judge_in_project.py",
    "tests/cli/test_keep.py",
    "tests/cli/test_reproduce.py",
    "tests/cli/test_lessons.py",
    "tests/cli/test_own_environment.py",
    "tests/cli/test_person.py",
    "tests/cli/test_posttrain.py",
    "tests/cli/test_predict_time.py",
    "tests/cli/test_scorer_packages.py",
    "tests/cli/test_several_open.py",
    "tests/cli/test_start_up.py",
    "tests/cli/test_state_closed.py",
    "tests/cli/test_train_from.py",
    "tests/cli/test_try.py",
    "tests/cli/test_two_trees.py",
    "tests/cli/test_watch.py",
    "tests/cli/test_wrong_files.py",
    "tests/cli/test_wrong_uses.py",
    "tests/demo/test_demo.py",
    "tests/docs/test_diloco_page.py",
    "tests/docs/test_examples.py",
    "tests/docs/test_readme_commands.py",
    "tests/docs/test_team_page.py",
    "tests/doctor/test_doctor.py",
    "tests/doctor/test_killers.py",
    "tests/doctor/test_live.py",
    "tests/driver/test_mcp_server.py",
    "tests/evaluation/test_noise_floor.py",
    "tests/evaluation/test_scorer_probes.py",
    "tests/fuzz/test_forms.py",
    "tests/gates/test_bits_way_out.py",
    "tests/gates/test_control_gate.py",
    "tests/gates/test_evaluated_and_judged.py",
    "tests/gates/test_plan_edits.py",
    "tests/gates/test_reference.py",
    "tests/gates/test_sealed.py",
    "tests/guard/policy/test_policy_fuzz.py",
    "tests/hooks/test_fuzz.py",
    "tests/install/test_install.py",
    "tests/install/test_modes.py",
    "tests/install/test_upgrade.py",
    "tests/interactive/",
    "tests/invariants/",
    "tests/judge/test_grade_inside.py",
    "tests/judge/test_handed_files.py",
    "tests/judge/test_inside.py",
    "tests/judge/test_question.py",
    "tests/judge/test_terminal.py",
    "tests/ledger/test_ledger_damage.py",
    "tests/ledger/test_ledger_exchange.py",
    "tests/ledger/test_ledger_processes.py",
    "tests/ledger/test_ledger_server.py",
    "tests/ledger/test_ledger_verify.py",
    "tests/loop/test_loop_state.py",
    "tests/model_gateway/test_gateway_cli.py",
    "tests/plans/test_killed_approval.py",
    "tests/plans/test_leaks.py",
    "tests/plans/test_row_places.py",
    "tests/plans/test_row_search.py",
    "tests/plans/test_row_search_honest.py",
    "tests/plans/test_woven.py",
    "tests/posttrain/test_caged.py",
    "tests/posttrain/test_evaluate.py",
    "tests/posttrain/test_gc.py",
    "tests/posttrain/test_joint_verdict.py",
    "tests/posttrain/test_promotion.py",
    "tests/posttrain/test_run.py",
    "tests/projections/test_hostile_text.py",
    "tests/rendering/test_standing.py",
    "tests/rendering/test_wheel.py",
    "tests/runs/test_cards.py",
    "tests/runs/test_checkpoint_watch.py",
    "tests/runs/test_forged.py",
    "tests/runs/test_limits.py",
    "tests/runs/test_ray.py",
    "tests/runs/test_run_alarms.py",
    "tests/runs/test_skypilot.py",
    "tests/runs/test_slurm.py",
    "tests/runs/test_torchrun.py",
    "tests/runs/test_workspace.py",
    "tests/sandbox/test_sandbox_reach.py",
    "tests/sandbox/test_sandbox_run.py",
    "tests/scenarios/",
    "tests/training/test_diloco_composed.py",
    "tests/training/test_diloco_faults.py",
    "tests/training/test_diloco_rounds.py",
    "tests/training/test_full_disk.py",
    "tests/training/test_hf_callback.py",
    "tests/training/test_resume_proof.py",
    "tests/training/test_composed.py",
    "tests/training/test_composed_smollm2.py",
    "tests/training/test_rollout_tools.py",
    "tests/cli/test_composed_cli.py",
    "tests/cli/test_own_transcripts.py",
    "tests/test_compat_libraries.py",
    "tests/training/test_trainers.py",
    "tests/weather/test_clocks.py",
    "tests/weather/test_in_a_files_place.py",
    "tests/weather/test_outputs.py",
    "tests/weather/test_refused_calls.py",
    "tests/weather/test_small_disks.py",
    "tests/workflows/",
)
"""Whole sessions of the real CLI, whole installations, training that is killed and resumed, whole
journeys by the command, searches and simulations: most of the suite's time. `make proofs` runs them beside one another; those marked slow in their own file kill at moments
that depend on the machine's speed and run alone."""
IN_CI = (
    "tests/artifacts/test_remote.py",
    "tests/cli/test_data_split.py",
    "tests/cli/test_default_experiment.py",
    "tests/cli/test_first_hour.py",
    "tests/cli/test_first_start.py",
    "tests/cli/test_grade.py",
    "tests/cli/test_hidden_journey.py",
    "tests/cli/test_init.py",
    "tests/cli/test_journey.py",
    "tests/cli/test_judge_changed.py",
    "tests/cli/test_keep.py",
    "tests/cli/test_reproduce.py",
    "tests/cli/test_lessons.py",
    "tests/cli/test_own_environment.py",
    "tests/cli/test_predict_time.py",
    "tests/cli/test_scorer_packages.py",
    "tests/cli/test_several_open.py",
    "tests/cli/test_start_up.py",
    "tests/cli/test_state_closed.py",
    "tests/cli/test_try.py",
    "tests/cli/test_wrong_files.py",
    "tests/cli/test_wrong_uses.py",
    "tests/docs/test_examples.py",
    "tests/docs/test_readme_commands.py",
    "tests/docs/test_team_page.py",
    "tests/doctor/test_doctor.py",
    "tests/driver/test_mcp_server.py",
    "tests/evaluation/test_noise_floor.py",
    "tests/evaluation/test_scorer_probes.py",
    "tests/gates/test_bits_way_out.py",
    "tests/gates/test_control_gate.py",
    "tests/gates/test_evaluated_and_judged.py",
    "tests/gates/test_plan_edits.py",
    "tests/gates/test_reference.py",
    "tests/gates/test_sealed.py",
    "tests/interactive/test_audit_names.py",
    "tests/interactive/test_guards_hold.py",
    "tests/invariants/test_out_of_reach.py",
    "tests/judge/test_grade_inside.py",
    "tests/judge/test_handed_files.py",
    "tests/judge/test_inside.py",
    "tests/judge/test_question.py",
    "tests/judge/test_terminal.py",
    "tests/ledger/test_ledger_damage.py",
    "tests/ledger/test_ledger_exchange.py",
    "tests/plans/test_row_search.py",
    "tests/posttrain/test_promotion.py",
    "tests/projections/test_hostile_text.py",
    "tests/rendering/test_standing.py",
    "tests/runs/test_forged.py",
    "tests/runs/test_limits.py",
    "tests/runs/test_run_alarms.py",
    "tests/runs/test_workspace.py",
    "tests/sandbox/test_sandbox_reach.py",
    "tests/sandbox/test_sandbox_run.py",
    "tests/scenarios/test_one_loop.py",
    "tests/scenarios/test_team_ci.py",
    "tests/training/test_composed.py",
    "tests/training/test_hf_callback.py",
    "tests/training/test_trainers.py",
    "tests/weather/test_in_a_files_place.py",
    "tests/weather/test_outputs.py",
    "tests/weather/test_refused_calls.py",
)
"""The proofs that `.ci/run` runs too: of each kind one, and those of what the grade rests on."""
SECONDS = {
    path: float(seconds)
    for seconds, path in (
        line.split() for line in Path(__file__).with_name("seconds.txt").read_text().splitlines()
    )
}
"""Of each file that takes longest, as measured once; `pytest --durations=400` measures
them anew."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the proofs, and put the slowest files first, so that no process is left with one of them
    at the end. It runs before `-m` chooses."""
    for item in items:
        path = path_of(item)
        if path.startswith(PROOFS) and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.parallel)
            if path in IN_CI:
                item.add_marker(pytest.mark.ci)
    items.sort(key=lambda item: -SECONDS.get(path_of(item), 0.0))


def path_of(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session", autouse=True)
def _found_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What judges is looked for once a process: thousands of files, and no test changes those of
    its own Python. Tests of a changed judge start another one (tests/own_judge.py). The rows of
    the same table are searched once."""
    with found_once(tmp_path_factory.mktemp("once")):
        yield
