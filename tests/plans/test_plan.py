from pathlib import Path

import pytest

from harness.domain.statuses import Direction, Tier
from harness.errors import NotFoundError, PlanError, UsageError
from harness.plans.parse import parse_plan, plan_from, read_plan
from harness.plans.scaffold import PLAN_FORM

PLAN = """\
---
schema: 1
name: mnist1d
workflow: deep-learning            # classical-ml | deep-learning | post-training | research
objective: Classify MNIST-1D within a CPU minute per run
data:
  train: data/train.npz            # npz without pickle, csv or jsonl
  validation: data/validation.npz  # without one the harness splits train
  held_out: {path: data/held_out.npz, inputs: [x], label: y, id: row}
oracle:
  metric: accuracy
  direction: maximize              # always explicit
  scorer: accuracy
  predict: python predict.py
  tiers: {must: 0.90, should: 0.92, could: 0.95}
  seeds: 3
  queries: 20
training: {entry: python train.py, checkpoint_every: 10}
budget: {experiments: 8, run_minutes: 5, total_minutes: 40}
loop: {stop_tier: must, patience: 3}
gates: {mode: auto}
agents: {profile: default}
---

# Words for people
"""


def problems(*changes: tuple[str, str]) -> list[str]:
    """The lines of the error that PLAN with these replacements gives."""
    text = PLAN
    for before, after in changes:
        assert before in text
        text = text.replace(before, after, 1)
    with pytest.raises(PlanError) as error:
        parse_plan(text, where="plan.md")
    return [line.strip() for line in error.value.message.splitlines()[1:] if line.strip()]


def test_a_full_plan_is_read() -> None:
    plan = parse_plan(PLAN, where="plan.md")
    objective = plan.objective()
    assert (objective.metric, objective.direction, objective.seeds, objective.queries) == (
        "accuracy",
        Direction.MAXIMIZE,
        3,
        20,
    )
    assert objective.tiers == {Tier.MUST: 0.90, Tier.SHOULD: 0.92, Tier.COULD: 0.95}
    assert plan.data.held_out.inputs == ("x",)
    assert (plan.sandbox, plan.budget.usd, plan.scorer_script) == ("preferred", None, None)


def test_plain_is_json_and_reads_back() -> None:
    plan = parse_plan(PLAN, where="plan.md")
    assert plan.plain()["schema"] == 1
    assert plan.plain()["objective"] == "Classify MNIST-1D within a CPU minute per run"
    assert plan_from(plan.plain()) == plan


def test_all_problems_are_listed_with_line_field_found_expected_and_next_step() -> None:
    assert problems(
        ("schema: 1", "schema: 2"),
        ("direction: maximize ", "directon: maximize "),
        ("tiers: {must: 0.90", "tiers: {must: .nan"),
        ("seeds: 3", "seeds: -3"),
        ("mode: auto", "mode: aut"),
        ("run_minutes: 5", "run_minutes: five"),
        ("predict: python predict.py", "predict:"),
    ) == [
        "plan.md:2: schema: found 2, expected 1. Correct schema.",
        (
            "plan.md:10: oracle.direction: found nothing, expected a value: this key is required. "
            "Add `direction:` to oracle."
        ),
        (
            "plan.md:12: oracle.directon: found an unknown key, expected a key of the schema. Did"
            " you mean 'direction'?"
        ),
        "plan.md:14: oracle.predict: found nothing, expected text. Correct oracle.predict.",
        (
            "plan.md:15: oracle.tiers.must: found nan, expected a finite number. Correct"
            " oracle.tiers.must."
        ),
        (
            "plan.md:16: oracle.seeds: found -3, expected a number of at least 1. Correct"
            " oracle.seeds."
        ),
        (
            "plan.md:19: budget.run_minutes: found 'five', expected a number. Correct"
            " budget.run_minutes."
        ),
        (
            "plan.md:21: gates.mode: found 'aut', expected one of supervised, auto, full-auto. Did"
            " you mean 'auto'?"
        ),
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            "could: 0.95",
            "could: 0.91",
            "oracle.tiers.could: found 0.91, expected more than should (0.92)",
        ),
        (
            "should: 0.92",
            "should: 0.90",
            "oracle.tiers.should: found 0.9, expected more than must (0.9)",
        ),
        ("must: 0.90", "must: 90", "expected 0 to 1, the range of accuracy"),
        (
            "direction: maximize",
            "direction: minimize",
            "oracle.direction: found 'minimize', expected maximize",
        ),
        ("metric: accuracy", "metric: mse", "oracle.metric: found 'mse', expected accuracy"),
        ("scorer: accuracy", "scorer: acuracy", "Did you mean 'accuracy'?"),
        (
            "scorer: accuracy",
            "scorer: ../score.py",
            "oracle.scorer: found '../score.py', expected the name of a metric",
        ),
        ("scorer: accuracy", "scorer: /score.py", "oracle.scorer"),
        ("seeds: 3", "seeds: 0", "a number of at least 1"),
        ("seeds: 3", "seeds: 3.5", "a whole number"),
        ("seeds: 3", "seeds: true", "a whole number"),
        ("queries: 20", 'queries: "20"', "a whole number"),
        ("run_minutes: 5", "run_minutes: 0", "greater than 0"),
        ("run_minutes: 5", "run_minutes: -.inf", "a finite number"),
        ("total_minutes: 40", "total_minutes: 4", "at least run_minutes (5)"),
        ("total_minutes: 40", "total_minutes: 40, usd: -1", "budget.usd"),
        ("experiments: 8", "experiments: .inf", "a whole number"),
        ("stop_tier: must", "stop_tier: gold", "one of must, should, could"),
        ("train: data/train.npz", "train: /data/train.npz", "a path inside the project"),
        ("train: data/train.npz", "train: ../train.npz", "a path inside the project"),
        ("train: data/train.npz", "train: .harness/train.npz", "outside .harness and .git"),
        (
            "train: data/train.npz",
            "train: data/train.pkl",
            "a table: one of .npz, .csv, .jsonl, .parquet",
        ),
        ("train: data/train.npz", "train: data/held_out.npz", "is train data"),
        (
            "validation: data/validation.npz",
            "validation: data/train.npz",
            "another file than train",
        ),
        ("inputs: [x]", "inputs: []", "a list with at least one entry"),
        ("inputs: [x]", "inputs: [x, y]", "columns without the label y"),
        ("inputs: [x]", "inputs: [x, row]", "neither named twice nor the id"),
        ("inputs: [x]", "inputs: x", "a list"),
        ("name: mnist1d", "name: MNIST 1D", "starting with a letter or digit"),
        ("objective: Classify MNIST-1D", "objective: TODO: say it", "this is not YAML"),
        (
            "budget: {experiments: 8, run_minutes: 5, total_minutes: 40}",
            "budget: 40",
            "a mapping of keys",
        ),
        (
            "profile: default",
            "profile: fast",
            "agents.profile: found 'fast', expected one of default",
        ),
        (
            "gates: {mode: auto}",
            "gates: {mode: auto}\nsandbox: strict",
            "one of required, preferred",
        ),
        (
            "gates: {mode: auto}",
            "gates: {mode: auto}\nusd: 3",
            "Remove it; known keys here: schema, name",
        ),
    ],
)
def test_each_field_refuses_what_it_cannot_mean(before: str, after: str, told: str) -> None:
    text = PLAN.replace(before, after, 1)
    assert text != PLAN
    with pytest.raises(PlanError) as error:
        parse_plan(text, where="plan.md")
    assert told in error.value.message
    assert "plan.md:" in error.value.message


def test_without_a_person_fewer_seeds_than_tell_experiments_apart_are_refused() -> None:
    text = PLAN.replace("seeds: 3", "seeds: 2")
    assert parse_plan(text, where="plan.md").oracle.seeds == 2
    assert problems(("seeds: 3", "seeds: 2"), ("mode: auto", "mode: full-auto")) == [
        "plan.md:16: oracle.seeds: found 2, expected at least 3 with gates.mode full-auto: fewer"
        " tell nothing apart, and nobody is asked. Correct oracle.seeds."
    ]
    assert parse_plan(PLAN.replace("mode: auto", "mode: full-auto"), where="plan.md").plain()[
        "gates"
    ] == {"mode": "full-auto", "phases": False}


def test_tiers_fall_when_the_metric_is_to_fall() -> None:
    changes = [
        ("metric: accuracy", "metric: mse"),
        ("direction: maximize", "direction: minimize"),
        ("scorer: accuracy", "scorer: mse"),
    ]
    text = PLAN
    for before, after in changes:
        text = text.replace(before, after, 1)
    falling = text.replace(
        "{must: 0.90, should: 0.92, could: 0.95}", "{must: 1e-1, should: 1e-2, could: 1e-3}"
    )
    assert parse_plan(falling, where="plan.md").oracle.tiers.could == 0.001
    with pytest.raises(PlanError, match="expected less than must"):
        parse_plan(text, where="plan.md")


def test_a_stop_tier_that_is_not_set_is_refused() -> None:
    found = problems((", could: 0.95", ""), ("stop_tier: must", "stop_tier: could"))
    assert found == [
        "plan.md:20: loop.stop_tier: found 'could', expected a tier that oracle.tiers sets: must,"
        " should. Correct loop.stop_tier."
    ]


def test_a_script_may_score_in_either_direction() -> None:
    text = PLAN.replace("scorer: accuracy", "scorer: judge/score.py").replace(
        "metric: accuracy", "metric: bleu"
    )
    assert parse_plan(text, where="plan.md").scorer_script == "judge/score.py"


def test_w7_a_template_full_of_todo_is_not_a_plan() -> None:
    """The reference calls its template a valid plan."""
    with pytest.raises(PlanError) as error:
        parse_plan(PLAN_FORM, where="plan.md")
    lines = [line for line in error.value.message.splitlines() if "TODO" in line]
    assert len(lines) == PLAN_FORM.count("TODO")
    assert (
        "plan.md:3: name: found 'TODO', expected a real value instead of the template's. Fill in"
        " name." in (error.value.message)
    )


@pytest.mark.parametrize("value", ["<your metric>", "...", "FIXME later", "tbd-TBD"])
def test_other_placeholders_are_no_values_either(value: str) -> None:
    assert any(
        "instead of the template's" in line
        for line in problems(("predict: python predict.py", f"predict: {value}"))
    )


def test_w7_a_key_given_twice_is_refused_with_both_lines() -> None:
    """The reference takes the last of two sections without a word."""
    with pytest.raises(
        PlanError, match=r"plan\.md:17: found the key 'seeds' a second time \(first on line 16\)"
    ):
        parse_plan(PLAN.replace("  seeds: 3\n", "  seeds: 3\n  seeds: 1\n"), where="plan.md")


def test_w7_headings_in_fences_and_repeated_sections_of_the_body_mean_nothing() -> None:
    """The reference cuts the objective at a heading inside a code fence."""
    body = "## Objective\n```\n## Oracle\nseeds: 99\n---\n```\n## Objective\nelse\n"
    assert parse_plan(PLAN + body, where="plan.md") == parse_plan(PLAN, where="plan.md")


@pytest.mark.parametrize(
    "data",
    [
        PLAN.encode(),
        b"\xef\xbb\xbf" + PLAN.encode(),
        PLAN.replace("\n", "\r\n").encode(),
        PLAN.replace("\n", "\r").encode(),
        PLAN.encode("utf-16"),
        b"\xff\xfe" + PLAN.encode("utf-16-le"),
        ("\n\n" + PLAN).encode(),
        PLAN.split("\n# Words")[0].rstrip().encode(),
        PLAN.replace("Classify", "Classer é \u2028 漢").encode(),
    ],
    ids=[
        "plain",
        "bom",
        "crlf",
        "cr",
        "utf16",
        "utf16le",
        "blank lines",
        "no last newline",
        "unicode",
    ],
)
def test_every_honest_encoding_gives_the_same_plan(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "plan.md"
    path.write_bytes(data)
    assert read_plan(path).oracle == parse_plan(PLAN, where="plan.md").oracle


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            PLAN.replace("Classify", "Classer à").encode("latin-1"),
            r"plan\.md:5: byte \d+ is not UTF-8",
        ),
        (b"\xff\xfe\x00", "is not UTF-16"),
        (PLAN.replace("auto", "au\x00to").encode(), r"plan\.md:21: a NUL character"),
    ],
)
def test_damage_is_named_and_never_replaced(tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / "plan.md"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=told):
        read_plan(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file is empty"),
        ("# A plan\n", "expected `---`"),
        ("```yaml\n---\nschema: 1\n---\n```\n", r"found '```yaml'; expected `---`"),
        ("---\nschema: 1\n", "not closed"),
        ("---\n- a\n---\n", "expected `key: value` lines"),
        ("---\n---\n", "schema: found nothing"),
        ("---\nname: &a x\nobjective: *a\n---\n", "an alias"),
        ("---\nname: !!python/object:os.system x\n---\n", "tag"),
    ],
)
def test_what_is_no_front_matter_says_why(text: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        parse_plan(text, where="plan.md")


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_plan(tmp_path / "plan.md")
