"""What the reference's own tests asked of its specifications and results, asked of ours, and its 28
faults.

The list of all of them, each with the test that holds it or the difference: training_program.yaml.
Runs, models and promotion: test_training_models.py.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from harness.artifacts.content import hash_path
from harness.domain.models import MODEL_TRANSITIONS, ModelState, require_model_transition
from harness.domain.statuses import RUN_TRANSITIONS, RunStatus
from harness.errors import LedgerError, TransitionError, UsageError
from harness.files import sha256_bytes
from harness.ledger.project import Project, open_project
from harness.posttrain.base_models import add_base_model, family_warnings
from harness.posttrain.code_hashes import code_hash
from harness.posttrain.dataset_export import export_rows
from harness.posttrain.field_problems import SpecificationError
from harness.posttrain.joint_verdict import Joint, verdict_of
from harness.posttrain.promotion import serving_stack
from harness.posttrain.specification import Request, Specification, config_fingerprint
from harness.posttrain.specification_checks import check_request
from harness.posttrain.validation import Observed, validate
from harness.posttrain.vocabulary import (
    HYPERPARAMETERS,
    MINUTES,
    THRESHOLDS,
    TOKENS,
    Backend,
    HardwareTier,
)
from tests.blobs import own_environment
from tests.conformance.imported import adapter, right_result
from tests.posttrain import programs


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """For all tests that change nothing in it."""
    with opened(tmp_path_factory.mktemp("shared")) as found:
        yield found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Project]:
    with opened(tmp_path) as found:
        yield found


def specify(project: Project, request: Request) -> Specification:
    return check_request(project, request).spec


def opened(folder: Path) -> Project:
    return open_project(programs.make_root(folder / "tuning"), own_environment(folder))


def wrong(project: Project, **more: Any) -> dict[str, str]:
    """field -> reason of all problems."""
    with pytest.raises(SpecificationError) as told:
        specify(project, programs.request(**more))
    return {item.field: item.reason for item in told.value.problems}


class Case:
    """A specification, a result that is right for it, and what the harness saw."""

    def __init__(self, project: Project, folder: Path, **more: Any) -> None:
        self.spec: Specification = specify(project, programs.request(**more))
        self.output = folder
        adapter(folder / "adapter")
        now = {"dataset_sha256": self.spec.dataset["sha256"], "base_model_sha256": None}
        now |= {"code_hash": self.spec.code_hash}
        self.seen: dict[str, Any] = {
            "experiment": "exp-0001",
            "run": "run-01",
            "spec_sha256": "5" * 64,
            "exit_code": 0,
            "output": folder,
            "minutes": 2.0,
            "tokens": 100.0,
            "rows": 2,
            "loss": 0.5,
            "before": now,
            "after": now,
        }
        self.result = right_result(self.spec)

    def judge(
        self, seen: dict[str, Any] | None = None, **more: Any
    ) -> tuple[set[str], str | None]:
        found, digest = validate(
            self.spec, self.result | more, Observed(**(self.seen | (seen or {})))
        )
        return {item.field for item in found}, digest


@pytest.fixture
def case(project: Project, tmp_path: Path) -> Case:
    return Case(project, tmp_path / "out")


# --- specification: 12 behaviours of createExperiment, 44 of the contract


def test_the_defaults_are_the_references(project: Project) -> None:
    spec = specify(project, programs.request())
    assert spec.hyperparameters == {
        "learning_rate": 3e-4,
        "batch_size": 2,
        "gradient_accumulation": 8,
        "lora_rank": 16,
        "lora_alpha": 32,
        "lora_dropout": 0.05,
        "warmup_ratio": 0.1,
        "max_steps": 1000,
        "max_seq_length": 2048,
        "beta": 0.1,
    }
    assert (
        spec.budget
        == {"minutes": 240.0, "tokens": 2_000_000}
        == {"minutes": MINUTES.default, "tokens": TOKENS.default}
    )
    assert spec.hardware_tier is HardwareTier.CPU


def test_custom_numbers_merge_over_the_defaults(project: Project) -> None:
    spec = specify(
        project, programs.request(hyperparameters={"max_steps": 5}, minutes=1, tokens=7)
    )
    assert (spec.hyperparameters["max_steps"], spec.hyperparameters["lora_rank"]) == (5, 16)
    assert spec.budget == {"minutes": 1.0, "tokens": 7}


def test_a_specification_says_all_that_was_asked(project: Project) -> None:
    spec = specify(project, programs.request(seed=7))
    told = spec.for_trainer(project.layout.root, experiment="exp-0001", run="run-01")
    assert {
        name: told[name]
        for name in ("experiment", "run", "backend", "mode", "profile", "seed", "dtype")
    } == {
        "experiment": "exp-0001",
        "run": "run-01",
        "backend": "command",
        "mode": "orpo",
        "profile": "local-reader",
        "seed": 7,
        "dtype": "float32",
    }
    assert (told["dataset"]["rows"], told["benchmark"]["rows"]) == (20, 40)
    assert told["dataset"]["path"] == str(project.layout.root / "train.jsonl")
    assert (told["config_fingerprint"], told["code_hash"]) == (
        spec.config_fingerprint,
        spec.code_hash,
    )
    assert told["artifact"] == {"path": "adapter", "format": "peft-adapter"}


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """With a folder in the place of SmolLM2's weights, and rows for every mode."""
    base = tmp_path_factory.mktemp("weighted")
    (base / "weights").mkdir()
    (base / "weights" / "config.json").write_text("{}")
    with opened(base) as found:
        programs.write_rows(
            found.layout.root / "train.jsonl", [row | {"answer": "1"} for row in programs.rows(20)]
        )
        add_base_model(found, programs.MODEL, weights=base / "weights", gguf=None, inherited={})
        yield found


def of(backend: Backend, **more: Any) -> Request:
    return programs.request(backend=backend.value, mode=sorted(backend.modes)[0].value, **more)


@pytest.mark.parametrize("backend", Backend)
def test_the_default_tier_is_the_backends(weighted: Project, backend: Backend) -> None:
    small = backend in (Backend.DRY_RUN, Backend.COMMAND)
    assert specify(weighted, of(backend)).hardware_tier is (
        HardwareTier.CPU if small else HardwareTier.CONSUMER_GPU
    )


@pytest.mark.parametrize("tier", HardwareTier)
@pytest.mark.parametrize("backend", Backend)
def test_every_tier_of_a_backend_is_accepted(
    weighted: Project, backend: Backend, tier: HardwareTier
) -> None:
    asked = of(backend, tier=tier.value)
    assert specify(weighted, asked).hardware_tier is tier


def test_a_datasets_fingerprint_is_of_its_bytes(own: Project) -> None:
    root = own.layout.root
    one = specify(own, programs.request()).dataset
    assert one["sha256"] == sha256_bytes((root / "train.jsonl").read_bytes())
    (root / "copy.jsonl").write_bytes((root / "train.jsonl").read_bytes())
    assert specify(own, programs.request(dataset="copy.jsonl")).dataset["sha256"] == one["sha256"]
    programs.write_rows(root / "train.jsonl", programs.rows(19))
    less = specify(own, programs.request()).dataset
    assert less["sha256"] != one["sha256"]
    assert less["rows"] == 19


def test_the_cpu_tier_is_refused_where_a_gpu_is_needed(project: Project) -> None:
    assert "model" in wrong(
        project, backend="trl-orpo", tier="cpu-experimental", model="Qwen/Qwen2.5-7B-Instruct"
    )


@pytest.mark.parametrize("name", ["bread-1b", "thread-model", "reader", "local-editor-7b", ""])
def test_fault_21_models_are_ids_of_a_registry_never_substrings(
    project: Project, name: str
) -> None:
    assert "model" in wrong(project, model=name)


def test_fault_21_a_real_id_is_accepted_and_profiles_hold(project: Project) -> None:
    real = "Qwen/Qwen2.5-7B-Instruct"
    spec = specify(
        project, programs.request(backend="dry-run", model=real, profile="local-editor")
    )
    assert spec.model["id"] == real
    assert "model" in wrong(project, profile="local-editor")  # the small one reads only


def test_fault_12_a_typing_error_is_refused_not_taken_for_another_backend(
    project: Project,
) -> None:
    assert wrong(
        project, backend="unsloth-orpo", mode="rpo", profile="reader", tier="gpu"
    ).keys() >= {
        "backend",
        "mode",
        "profile",
        "hardware_tier",
    }


@pytest.mark.parametrize("name", HYPERPARAMETERS)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -5, None, "3", True])
def test_fault_26_numbers_are_numbers_within_bounds(
    project: Project, name: str, value: Any
) -> None:
    assert f"hyperparameters.{name}" in wrong(project, hyperparameters={name: value})


def test_fault_26_the_seed_is_part_of_the_contract(project: Project) -> None:
    assert {"seed", "budget.minutes", "budget.tokens", "hyperparameters.epochs", "dtype"} <= set(
        wrong(
            project,
            seed=-1,
            minutes=float("nan"),
            tokens=0,
            hyperparameters={"epochs": 3},
            dtype="int3",
        )
    )


def test_config_fingerprints_are_canonical() -> None:
    values: dict[str, Any] = {"backend": "command", "mode": "orpo", "dtype": "float32", "seed": 1}
    one = config_fingerprint(**values, hyperparameters={"a": 1e-5, "b": 2})
    assert one == config_fingerprint(**values, hyperparameters={"b": 2, "a": 0.00001})
    assert one != config_fingerprint(**values | {"seed": 2}, hyperparameters={"a": 1e-5, "b": 2})
    text = (
        '{"backend":"command","dtype":"float32","hyperparameters":{"a":1e-05,"b":2},'
        '"mode":"orpo","seed":1}'
    )
    assert one == sha256_bytes(text.encode())
    assert len(one) == 64


def test_fault_4_an_edited_text_is_another_dataset(own: Project) -> None:
    before = specify(own, programs.request()).dataset
    path = own.layout.root / "train.jsonl"
    path.write_text(path.read_text().replace('"chosen": "1"', '"chosen": "one"'))
    after = specify(own, programs.request()).dataset
    assert before["rows"] == after["rows"]
    assert before["sha256"] != after["sha256"]


def test_fault_4_a_missing_dataset_is_an_error_never_a_fingerprint(project: Project) -> None:
    assert {"dataset", "benchmark"} <= set(
        wrong(project, dataset="nope.jsonl", benchmark="nope.jsonl")
    )


def test_fault_5_the_code_hash_covers_what_the_trainer_imports(own: Project) -> None:
    root = own.layout.root
    (root / "losses.py").write_text("BETA = 1\n")
    programs.write_trainer(root, "import losses\n")
    words = ["python", "trainer.py"]
    before = code_hash(Backend.COMMAND, words, own.settings)
    (root / "losses.py").write_text("BETA = 2\n")
    assert code_hash(Backend.COMMAND, words, own.settings) != before
    (root / "unrelated.py").write_text("x = 1\n")
    (root / "losses.py").write_text("BETA = 1\n")
    assert code_hash(Backend.COMMAND, words, own.settings) == before


def test_fault_17_rows_that_are_trained_on_are_no_benchmark(project: Project) -> None:
    assert "in both" in wrong(project, benchmark="train.jsonl")["benchmark"]


@pytest.mark.parametrize(
    ("evaluator", "change", "reason"),
    [
        ("preference", {"rejected": None}, "missing"),
        ("preference", {"rejected": "same", "chosen": "same"}, "equal"),
        ("exact_match", {"chosen": " "}, "missing"),
        ("perplexity", {"chosen": None}, "missing"),
        (["python", "judge.py"], {"id": None}, "missing"),
    ],
)
def test_a_benchmark_that_its_evaluator_could_not_score_is_refused(
    own: Project, evaluator, change, reason
) -> None:
    specify(own, programs.request(evaluator=evaluator))
    rows = programs.rows(40, 100)
    programs.write_rows(own.layout.root / "held_out.jsonl", [*rows[:-1], rows[-1] | change])
    assert wrong(own, evaluator=evaluator) == {"benchmark row 40": reason}


def test_a_benchmark_has_ids_of_its_own_and_rows_enough_for_a_verdict(own: Project) -> None:
    rows, path = programs.rows(40, 100), own.layout.root / "held_out.jsonl"
    programs.write_rows(path, [*rows, rows[0] | {"prompt": "another"}])
    assert "twice" in wrong(own)["benchmark"]
    programs.write_rows(path, rows[:19])
    assert "too few" in wrong(own)["benchmark"]
    programs.write_rows(path, rows[:20])
    specify(own, programs.request())


def test_rows_of_a_fine_tuning_have_what_is_learnt(own: Project) -> None:
    programs.write_rows(own.layout.root / "train.jsonl", [{"prompt": "p", "rejected": "a"}])
    assert wrong(own, mode="sft") == {"dataset row 1": "missing"}
    programs.write_rows(own.layout.root / "train.jsonl", [{"prompt": "p", "chosen": "a"}])
    specify(own, programs.request(mode="sft"))


def test_damaged_rows_are_an_answer(own: Project, tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    for text in ("{}\n[]\n", "", '{"prompt": "\\ud800"}\n', "{"):
        source.write_text(text)
        with pytest.raises(UsageError, match=r"rows\.jsonl"):
            export_rows(source, tmp_path / "out.jsonl")
    (own.layout.root / "held_out.jsonl").write_text("{")
    assert "JSON" in wrong(own)["benchmark"]


def test_fault_22_a_pair_without_a_difference_is_refused(own: Project) -> None:
    programs.write_rows(
        own.layout.root / "train.jsonl", [{"prompt": "p", "chosen": "a", "rejected": "a"}]
    )
    assert wrong(own)["dataset row 1"] == "equal"


# --- validation of results


def test_a_right_result_is_believed(case: Case) -> None:
    assert case.judge() == (set(), hash_path(case.output / "adapter"))


def test_a_failed_result_with_a_reason_is_valid(case: Case) -> None:
    failed = {"status": "failed", "failure": "out of memory", "artifact": None}
    assert case.judge({"exit_code": 1}, **failed) == (set(), None)
    assert case.judge({"exit_code": 1}, **failed | {"failure": " "})[0] == {"failure"}


IDENTITY = ("experiment", "run", "backend", "mode", "profile", "model", "seed", "dtype", "schema")
HASHES = ("spec_sha256", "config_fingerprint", "dataset_sha256", "base_model_sha256")


@pytest.mark.parametrize("name", [*IDENTITY, *HASHES])
def test_one_problem_for_each_field_that_differs(case: Case, name: str) -> None:
    assert case.judge(**{name: "0" * 64})[0] == {name}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["dataset_sha256", "base_model_sha256", "code_hash"])
def test_fault_3_the_harness_hashes_itself_whatever_the_result_echoes(
    case: Case, when: str, name: str
) -> None:
    assert case.judge({when: case.seen[when] | {name: "0" * 64}})[0] == {name}


def test_all_problems_are_collected(case: Case) -> None:
    found, _ = case.judge(
        **dict.fromkeys((*IDENTITY, *HASHES), "x"), status="weird", artifact=None
    )
    assert found >= {*IDENTITY, *HASHES, "status", "artifact"}


def test_fault_1_a_dry_run_is_validated(project: Project, tmp_path: Path) -> None:
    dry = Case(project, tmp_path / "dry", backend="dry-run")
    assert dry.judge() == (set(), None)
    assert dry.judge(
        experiment="exp-0009", backend="command", artifact={"path": "x", "format": "y"}
    )[0] == {
        "experiment",
        "backend",
        "artifact",
    }
    assert (
        "artifact"
        in dry.judge({"exit_code": 1}, status="failed", failure="x", artifact=dry.spec.artifact)[0]
    )
    assert "status" in dry.judge(status="completed")[0]


def test_dry_run_is_no_status_of_another_backend(case: Case) -> None:
    assert "status" in case.judge(status="dry_run")[0]


NAN = float("nan")
TOLD = {"wall_clock_minutes": 1.0, "final_loss": 0.5, "tokens_seen": 100, "steps": 2}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"status": "weird"}, "status"),
        ({"metrics": TOLD | {"final_loss": NAN}}, "metrics.final_loss"),
        ({"metrics": TOLD | {"final_loss": None}}, "metrics.final_loss"),
        ({"metrics": TOLD | {"wall_clock_minutes": 99999}}, "metrics.wall_clock_minutes"),
        ({"metrics": TOLD | {"wall_clock_minutes": -1}}, "metrics.wall_clock_minutes"),
        ({"metrics": TOLD | {"tokens_seen": 3_000_000}}, "metrics.tokens_seen"),
        ({"metrics": TOLD | {"tokens_seen": 50}}, "metrics.tokens_seen"),
        ({"metrics": {}}, "metrics"),
        ({"artifact": {"path": "adapter", "format": "gguf"}}, "artifact"),
        ({"artifact": {"path": "/etc/passwd", "format": "peft-adapter"}}, "artifact"),
        ({"rows_used": 19}, "rows_used"),
        ({"rows_refused": {"empty": -1}, "rows_used": 21}, "rows_used"),
        ({"dataset_rows": 3}, "dataset_rows"),
        ({"extra": {"deep": {"deployable": True}}}, "extra"),
        ({"seed": True}, "seed"),
    ],
)
def test_fault_2_what_was_registered_there_is_refused(
    case: Case, change: dict[str, Any], field: str
) -> None:
    assert field in case.judge(**change)[0]


@pytest.mark.parametrize(
    "name", ["deployable", "promotion_state", "state", "verdict", "checkpointId"]
)
def test_no_field_can_set_a_promotion_state(case: Case, name: str) -> None:
    assert case.judge(**{name: True})[0] == {name}


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "adapter_model.safetensors").unlink(),
        lambda folder: (folder / "adapter_config.json").write_text("{"),
        lambda folder: (folder / "adapter_model.safetensors").write_bytes(b"junk"),
        lambda folder: adapter(folder, (NAN, 1.0)),
        lambda folder: (folder / "extra.bin").symlink_to("/etc/passwd"),
        lambda folder: (folder / "extra").symlink_to("/etc"),
        lambda folder: (
            (folder / "adapter_config.json").unlink(),
            os.mkfifo(folder / "adapter_config.json"),
        ),
        lambda folder: folder.rename(folder.with_name("moved")),
    ],
)
def test_fault_2_an_artifact_is_read_before_it_is_believed(
    case: Case, change: Callable[[Path], Any]
) -> None:
    change(case.output / "adapter")
    fields_found, digest = case.judge()
    assert (fields_found, digest) == ({"artifact"}, None)


def test_an_artifact_that_leads_out_of_the_output_folder_is_refused(
    case: Case, tmp_path: Path
) -> None:
    (case.output / "adapter").rename(tmp_path / "elsewhere")
    (case.output / "adapter").symlink_to(tmp_path / "elsewhere")
    assert case.judge() == ({"artifact.path"}, None)


@pytest.mark.parametrize(("status", "code"), [("completed", 1), ("failed", 0)])
def test_fault_8_status_and_exit_code_must_agree(case: Case, status: str, code: int) -> None:
    assert "status" in case.judge({"exit_code": code}, status=status)[0]


# --- states, promotion, storage


def test_fault_6_pending_may_become_failed_and_completed_is_terminal() -> None:
    assert {RunStatus.RUNNING, RunStatus.FAILED, RunStatus.LOST} <= RUN_TRANSITIONS[
        RunStatus.PENDING
    ]
    assert RunStatus.COMPLETED not in RUN_TRANSITIONS[RunStatus.PENDING]
    assert RUN_TRANSITIONS[RunStatus.COMPLETED] == frozenset()


def test_fault_13_no_step_leads_back_and_every_step_has_a_name() -> None:
    order = ["registered", "candidate", "shadow", "promotable", "deployed", "retired"]
    for state, following in MODEL_TRANSITIONS.items():
        up = [order.index(item) for item in following if item in order]
        if state in order and state is not ModelState.RETIRED:
            assert all(place == order.index(state) + 1 for place in up)


def test_fault_14_rejected_is_final() -> None:
    assert MODEL_TRANSITIONS[ModelState.REJECTED] == frozenset()


def judged(delta: float, low: float, high: float, n: int, *, p: float = 0.01, **more: Any) -> str:
    asked = {"delta": THRESHOLDS.delta, "quality": THRESHOLDS.quality, "rows": THRESHOLDS.rows}
    joint = Joint(delta=delta, interval=(low, high), p=p, p_corrected=p)
    return verdict_of(delta, n, asked, joint, 1, **more)[0]


def test_fault_11_and_18_only_a_real_gain_passes() -> None:
    assert judged(0.06, 0.01, 0.11, 40) == "PASS"
    assert judged(0.06, 0.01, 0.11, 20) == "PASS"
    assert judged(1.0, 1.0, 1.0, 19) == "INCONCLUSIVE"
    assert judged(-1.0, -1.0, -1.0, 19) == "INCONCLUSIVE"
    assert judged(0.05, 0.001, 0.1, 40) == "PASS"
    assert judged(0.05, 0.0, 0.1, 40) == "INCONCLUSIVE"
    assert judged(0.06, -0.01, 0.13, 40) == "INCONCLUSIVE"
    assert judged(0.06, 0.01, 0.11, 40, p=0.051) == "INCONCLUSIVE"
    assert judged(0.06, 0.01, 0.11, 40, hindrance="seeds are missing") == "INCONCLUSIVE"
    assert judged(0.04, 0.01, 0.07, 40) == "FAIL"
    assert judged(0.0, 0.0, 0.0, 40) == "FAIL"
    assert judged(-0.9, -1.0, -0.8, 40) == "FAIL"


def test_the_thresholds_are_named() -> None:
    values = {item.name: getattr(THRESHOLDS, item.name) for item in fields(THRESHOLDS)}
    assert values == {
        "delta": 0.05,
        "rows": 20,
        "quality": 0.65,
        "arbiter_rejection": 0.20,
        "execution_rejection": 0.15,
        "observations": 5,
        "shadow_seconds": 3600.0,
    }


def test_fault_16_a_second_rollback_does_not_return_to_the_bad_one() -> None:
    class Served:
        def __init__(self, model: str | None, how: str) -> None:
            self.model, self.how = model, how

    history = [
        Served("a", "deploy"),
        Served("b", "deploy"),
        Served("c", "deploy"),
        Served("b", "rollback"),
    ]
    assert serving_stack(history) == ["a", "b"]  # type: ignore[arg-type]
    assert serving_stack([*history, Served("a", "rollback")]) == ["a"]  # type: ignore[arg-type]


def test_fault_10_a_damaged_ledger_is_not_an_empty_one(own: Project, tmp_path: Path) -> None:
    path = own.layout.ledger_db
    own.close()
    path.write_bytes(b"{}" * 2000)
    with pytest.raises(LedgerError):
        open_project(own.layout.root, own_environment(tmp_path))
    assert path.read_bytes() == b"{}" * 2000


def test_an_export_says_licence_and_consent_and_hashes_each_row(
    project: Project, tmp_path: Path
) -> None:
    row = programs.rows(1)[0]
    good = row | {"licence": "cc-by-4.0", "consent": True}
    bad = [row, row | {"licence": "x", "consent": "yes"}, good | {"rejected": row["chosen"]}]
    programs.write_rows(tmp_path / "in.jsonl", [good, *bad])
    made = export_rows(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert (made["rows"], len(made["left_out"]), made["licences"]) == (1, 3, ["cc-by-4.0"])
    (line,) = (tmp_path / "out.jsonl").read_text().splitlines()
    assert len(json.loads(line)["sha256"]) == 64


def test_a_shared_family_of_data_judge_and_model_is_told(own: Project) -> None:
    def told(teacher: str, model: str = programs.MODEL) -> list[str]:
        made = [
            row | {"provenance": {"teacher": teacher, "judge": "x-1"}} for row in programs.rows(3)
        ]
        programs.write_rows(own.layout.root / "train.jsonl", made)
        asked = programs.request(model=model, tier="datacenter-gpu")
        return [
            f"{item.actual}: {item.reason}"
            for item in family_warnings(own, specify(own, asked), made)
        ]

    assert told("HuggingFaceTB/SmolLM2-1.7B-Instruct") == [
        "smollm: shared by teacher, trained model"
    ]
    llama = "meta-llama/Llama-3.2-1B-Instruct"
    assert told("meta-llama/Llama-2-7b-chat", llama) == ["llama: shared by teacher, trained model"]
    assert told("microsoft/phi-4", "microsoft/Phi-3.5-mini-instruct") == [
        "phi: shared by teacher, trained model"
    ]
    assert told("Qwen/Qwen3-8B", llama) == []


def test_no_state_is_skipped() -> None:
    with pytest.raises(TransitionError):
        require_model_transition("m" * 64, ModelState.REGISTERED, ModelState.DEPLOYED)
