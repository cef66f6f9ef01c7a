"""The scorer of docs/guide.md is one: `plan check` takes it, and it scores as it says."""

import re
from pathlib import Path

from tests.cli.journey import make_project

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
NAMED = re.compile(r"```python\n(# (score\.py), in plan\.md: (.*?)\n.*?)```", re.S)


def test_the_scorer_of_the_guide_is_taken_by_plan_check_and_scores(tmp_path: Path) -> None:
    found = NAMED.search(GUIDE.read_text("utf-8"))
    assert found is not None
    code, name, keys = found.groups()
    made = make_project(tmp_path / "project", tmp_path / "home")
    (made.root / name).write_text(code, "utf-8")
    plan = (made.root / "plan.md").read_text("utf-8")
    for line in re.findall(r"`(\w+: [\w.]+)`", keys):
        key = line.partition(":")[0]
        plan = re.sub(rf"^  {key}: .*$", f"  {line}", plan, flags=re.M)
    assert f"scorer: {name}" in plan
    (made.root / "plan.md").write_text(plan, "utf-8")
    assert made.harness("init").exit_code == 0
    checked = made.harness("plan", "check", "--json")
    assert checked.exit_code == 0, checked.stdout
    assert (checked.document["problems"], checked.document["findings"]) == ([], [])
    space: dict[str, object] = {}
    exec(code, space)
    score = space["score"]
    assert callable(score)
    rows = [{"id": str(row), "prediction": answer} for row, answer in enumerate("aaab")]
    assert score(["a", "a", "b", "b"], rows) == 0.75
