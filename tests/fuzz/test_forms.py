"""Every file that people, agents and training code write is read, or refused in words. See
properties.py."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.artifacts import jsonl
from harness.errors import PlanError
from harness.plans.parse import parse_plan
from tests.fuzz.near_forms import SHAPES
from tests.fuzz.properties import PROPERTIES
from tests.fuzz.starting_inputs import SEEDS

CORPUS = Path(__file__).parent / "corpus"
FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.mark.parametrize("form", PROPERTIES)
@FUZZ
@given(data=st.data())
def test_what_nearly_has_the_form(form: str, data: st.DataObject, tmp_path: Path):
    PROPERTIES[form](tmp_path, data.draw(SHAPES[form]))


@pytest.mark.parametrize("form", PROPERTIES)
@FUZZ
@given(data=st.binary(max_size=400))
def test_any_bytes(form: str, data: bytes, tmp_path: Path):
    PROPERTIES[form](tmp_path, data)


@pytest.mark.parametrize(
    "path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_the_seeds_of_the_fuzzer(path: Path, tmp_path: Path):
    PROPERTIES[path.parent.name](tmp_path, path.read_bytes())


def test_the_seeds_are_those_that_are_kept():
    kept = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in CORPUS.glob("*/*")}
    assert kept == {
        f"{form}/{name}": text.encode()
        for form, files in SEEDS.items()
        for name, text in files.items()
    }
    assert set(SEEDS) == set(PROPERTIES)


def test_the_work_on_a_torn_line_is_bounded(monkeypatch: pytest.MonkeyPatch):
    """Restarts within a line cost at most a few readings of it, however deep it is nested."""
    starts: list[int] = []
    decode = jsonl._lenient.raw_decode

    def counted(text: str, start: int) -> tuple[object, int]:
        starts.append(start)
        return decode(text, start)

    monkeypatch.setattr(jsonl._lenient, "raw_decode", counted)
    line = jsonl.parse_line(b'{"a":[' * 400 + b"1," * 200_000)
    assert line.lost
    assert 1 <= len(starts) <= 20


def test_a_plan_with_very_many_problems_tells_the_first():
    text = "---\n" + "".join(f"k{number}: 1\n" for number in range(300)) + "---\n"
    with pytest.raises(PlanError) as refused:
        parse_plan(text, where="plan.md")
    said = refused.value.message.splitlines()
    assert said[0] == "plan.md has 308 problems:"
    assert len(said) == 52
    assert said[-1] == "  and 258 more"
