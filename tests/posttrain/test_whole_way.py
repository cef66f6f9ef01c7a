"""The way of bench/posttrain.py, with models that were brought in."""

from pathlib import Path

from bench._served import Steps, go
from harness.ledger.project import open_project
from harness.posttrain.promotion import serve_path
from tests.blobs import own_environment
from tests.conformance.imported import Imports
from tests.posttrain import programs


def test_a_worse_one_is_refused_and_the_best_is_served_again(tmp_path: Path) -> None:
    root, environment = programs.make_root(tmp_path / "tuning"), own_environment(tmp_path)
    with open_project(root, environment) as project:
        imports = Imports(project, tmp_path)
        best, next_best, worse = (imports.model(seed) for seed in (1, 2, 3))
        for model in (best, next_best):
            imports.evaluated(model)
        imports.evaluated(worse, "FAIL", delta=-0.4, candidate=0.1)
    steps = Steps()
    path = go(root, environment, {"best": best, "next": next_best}, {"worse": worse}, steps)
    assert [line for line in steps.lines if line[1] != line[2]] == []
    asked = [line[0] for line in steps.lines]
    assert asked.count("serve-path") == 3
    assert {"promote worse from registered", "promote next from promotable", "rollback"} <= set(
        asked
    )
    with open_project(root, environment, read_only=True) as project:
        assert str(serve_path(project, "local-reader")) == path
        assert project.ledger.model(next_best).state == "retired"
        assert [item.kind for item in project.ledger.decisions()].count("ROLLBACK") == 1


def test_with_one_good_model_there_is_nothing_to_roll_back_to(tmp_path: Path) -> None:
    root, environment = programs.make_root(tmp_path / "tuning"), own_environment(tmp_path)
    with open_project(root, environment) as project:
        imports = Imports(project, tmp_path)
        model = imports.model()
        imports.evaluated(model)
    steps = Steps()
    go(root, environment, {"only": model}, {}, steps)
    assert steps.wrong == 0
    assert ("rollback", "nothing_to_roll_back_to", "nothing_to_roll_back_to") in steps.lines
