"""The scorecard says only what a test or a measurement stands behind, and the README opens with
what was not shown."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.conftest import IN_CI, PROOFS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scorecard() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scorecard", ROOT / "docs/scorecard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text("def test_holds():\n    pass\n")
    evidence = tmp_path / "docs/evidence"
    evidence.mkdir(parents=True)
    record = {
        "command": "python bench/x.py",
        "date": "2026-01-02",
        "seed": 7,
        "figures": {"share_caught": 0.975},
    }
    (evidence / "x.json").write_text(json.dumps(record))
    return tmp_path / "docs"


def write(docs: Path, **claim: object) -> None:
    areas = [
        {
            "area": "A",
            "claims": [{"claim": "It holds.", "level": "unit", **claim}],
            "not_shown": ["The rest."],
        }
    ]
    (docs / "scorecard.yaml").write_text(
        yaml.safe_dump({"not_shown_first": ["No live model yet."], "areas": areas})
    )


def test_this_repository_is_fresh(scorecard: ModuleType):
    assert scorecard.main(["--check"]) == 0


def test_the_readme_opens_with_what_was_not_shown():
    text = (ROOT / "README.md").read_text()
    assert "No live model yet" in text[: text.index("## ")]


def test_a_figure_stands_with_its_command_seed_and_date(scorecard: ModuleType, docs: Path):
    write(docs, evidence="x", test="tests/test_it.py::test_holds")
    page, listed = scorecard.render(docs)
    shown = "`python bench/x.py`, docs/evidence/x.json, `tests/test_it.py::test_holds`"
    assert f"| It holds. | unit | {shown} | share caught 0.975 | 7 | 2026-01-02 |" in page
    assert "Not shown: The rest." in page
    assert "- No live model yet." in listed


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({}, "neither a test nor a file of evidence"),
        ({"test": "tests/test_it.py::test_gone"}, "has no test_gone"),
        ({"test": "tests/gone"}, "does not exist"),
        ({"evidence": "gone"}, "docs/evidence/gone.json"),
        ({"evidence": "x", "figures": ["other"]}, "wants the figure 'other'"),
        ({"test": "tests/test_it.py", "level": "surely"}, "has the level 'surely'"),
        ({"test": "tests/test_it.py", "figure": "99 %"}, "unknown key 'figure'"),
    ],
)
def test_a_claim_with_nothing_behind_it_is_refused(
    scorecard: ModuleType, docs: Path, claim: dict[str, object], said: str
):
    write(docs, **claim)
    with pytest.raises(scorecard.ScorecardError, match=said):
        scorecard.render(docs)


def test_make_test_is_said_of_no_proof():
    areas = yaml.safe_load((ROOT / "docs/scorecard.yaml").read_text())["areas"]
    for claim in (claim for area in areas for claim in area["claims"]):
        named = claim.get("test", [])
        paths = [one.partition("::")[0] for one in ([named] if isinstance(named, str) else named)]
        allowed = {
            "make test": not any(path.startswith(PROOFS) for path in paths),
            "make proofs-ci": set(paths) <= set(IN_CI),
        }
        assert allowed.get(claim.get("command"), True), claim["claim"]


NAMED = re.compile(r"`(?P<path>(?:tests|bench|docs/evidence)/[\w./-]*)(?:::(?P<function>\w+))?`")
AREAS = (
    "The main job",
    "Scores and gates",
    "Statistics",
    "Claims",
    "Training intelligence",
    "Watching",
    "Checkpoints",
    "Training programs",
    "Replicas",
    "Launchers",
    "Ledger and projections",
    "Hooks, doctor, plugin",
    "Installing",
    "Bad weather",
    "Hostile input",
    "Transcripts",
    "Nights without a person",
)


def test_every_area_has_claims_with_all_that_a_reader_asks_for():
    text = (ROOT / "docs/SCORECARD.md").read_text()
    parts = {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}
    assert set(AREAS) == set(parts)
    for name, part in parts.items():
        assert "| claim | level | shown by | figure | seed | date |" in part, name
        assert "Not shown: " in part, name


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs/adr").glob("*.md")), ids=lambda page: page.stem
)
def test_each_decision_names_what_executed_it(page: Path):
    held = page.read_text().partition("**Held by.**")[2]
    assert "not executed" in held or NAMED.search(held)
    for name in re.findall(r"bench/[\w/]+\.py|docs/evidence/[\w-]+\.json", held):
        assert (ROOT / name).is_file(), name
    assert not re.search(r"`test_\w+\.py`", held)  # a bare name says not where


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_what_a_document_says_to_have_been_executed_is_there(page: Path):
    for match in NAMED.finditer(page.read_text()):
        path = ROOT / match["path"]
        assert path.exists(), match.group()
        if match["function"]:
            assert f"def {match['function']}(" in path.read_text(), match.group()


def test_a_name_that_is_nowhere_would_be_found():
    match = NAMED.search("held by `tests/docs/test_gone.py::test_x`.")
    assert match is not None
    assert (match["path"], match["function"]) == ("tests/docs/test_gone.py", "test_x")
