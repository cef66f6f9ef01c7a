"""Tables at any width: no word is broken to fit, and nothing is left out."""

import pytest
from rich.cells import cell_len

from harness.views.layout import broken, cell_width
from harness.views.tables import experiments_table, figure, render_table, rounded

COLUMNS = ("run", "seed", "status", "seconds", "reason")
ROWS = [
    ("run-01", 1944974825, "completed", 2.3, "exit code 0"),
    ("run-02", 761718419, "failed", "-", "crashed: ValueError: there is no table of that name"),
    ("run-03", 5, "completed", 12.0, "日本語の理由 that takes two columns a character"),
]


@pytest.mark.parametrize("width", [200, 100, 80, 60, 40, 30, 1])
def test_a_table_fits_and_every_word_stands_whole(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = render_table("runs", COLUMNS, ROWS).splitlines()
    assert max(map(cell_width, lines)) <= max(30, width)
    words = " ".join(lines).split()
    for row in ROWS:
        assert {word for cell in row for word in str(cell).split()} - {"-"} <= set(words)
    head = lines[1].split() == list(COLUMNS)
    assert head is (width >= 80)


@pytest.mark.parametrize("gap", [" ", ""])
def test_columns_are_counted_where_latin_and_wide_letters_stand_in_one_cell(
    monkeypatch: pytest.MonkeyPatch, gap: str
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    mixed = f"{'latin ' * 8}ab {gap.join(['日本'] * 20)}"
    lines = render_table("", ("run", "reason"), [("run-01", mixed)]).splitlines()
    assert len(lines) > 2
    assert max(map(cell_len, lines)) <= 60
    assert "".join(mixed.split()) in "".join("".join(lines).split())


@pytest.mark.parametrize("width", ["0", "no number", ""])
def test_without_a_width_it_is_as_wide_as_a_page(
    monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert render_table("", COLUMNS, ROWS).splitlines()[0].split() == list(COLUMNS)


LINES = (
    "next     explain the alarm of the run that an alarm ended: `harness watch exp-0001 --once`",
    "state    /home/a-person/with-a-long-name/.local/state/harness/some-project-0123456789abcdef",
    "expected of the 7 experiments that the plan has left, on claude-opus-5-5: 5,169,500 tokens",
    "alarm    日本語の理由 that takes two columns a character, and is long enough to be broken",
)


@pytest.mark.parametrize("width", [200, 80, 60, 40])
@pytest.mark.parametrize("line", LINES)
def test_a_line_is_broken_between_words_and_a_command_or_a_path_stands_whole(
    line: str, width: int
) -> None:
    lines = [*broken(line, width)]
    assert " ".join(" ".join(lines).split()) == " ".join(line.split())
    wide = [one for one in lines if cell_width(one) > width]
    assert all(len(one.split()) == 1 or "`" in one or "/home" in one for one in wide)
    assert ("`harness watch exp-0001 --once`" in line) is any(
        "`harness watch exp-0001 --once`" in one for one in lines
    )
    inner = 2 if line.startswith("expected") else 9
    assert all(one[:inner] == " " * inner and one[inner] != " " for one in lines[1:])
    assert len(lines) == 1 or cell_width(line) > width


def score(mean: float, half: float, evidence: str = "recomputed") -> dict[str, object]:
    return {
        "score": mean,
        "interval": [mean - half, mean + half],
        "spread": 0.001,
        "released": None,
        "n_seeds": 3,
        "launches": 3,
        "split": "validation",
        "evidence": evidence,
    }


NONE = dict.fromkeys(score(0, 0)) | {"launches": 3}


def test_validation_and_held_out_have_a_column_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    row = {
        "experiment": "exp-0002",
        "status": "judged",
        "tree": None,
        "gone": None,
        "parent": "exp-0001",
        "verdict": "FAIL",
        "hypothesis": "a wider MLP",
        "validation": score(0.94321, 0.0164, "recomputed, session not isolated"),
        "held_out": NONE,
        "findings": [{"message": "Below the must tier."}],
    }
    text = experiments_table([row])
    head, first = text.splitlines()[:2]
    names = ["experiment", "status", "validation", "held-out", "verdict", "idea"]
    assert head.split() == names
    assert first.index("0.943 ±0.016") == head.index("validation")
    assert first[head.index("held-out")] == "-"
    told = " ".join(text.split())
    assert "a wider MLP (builds on" in told
    assert "exp-0002 0.943 [0.927, 0.960] validation, 3 seeds, spread 0.001, recomputed" in told
    assert "session not isolated Below the must tier." in told


@pytest.mark.parametrize(
    ("mean", "half", "shown"),
    [(0.94321, 0.0164, "0.943"), (0.9, 0.2, "0.90"), (123.4, 31.0, "123"), (0.5, 0.0, "0.5")],
)
def test_a_number_is_rounded_to_its_interval(mean: float, half: float, shown: str) -> None:
    assert rounded(mean, [mean - half, mean + half]) == shown
    assert figure(score(mean, half)).split()[0].rstrip("0") == shown.rstrip("0")
