"""The generated files: what they say, that they are functions of the facts, and that texts cannot
break them."""

import re
import shutil

import pytest
from ledger_samples import (
    decided,
    ended,
    evaluated,
    full_ledger,
    judged,
    life,
    open_ledger,
    plan,
    prior,
    register,
    started,
)

from harness.artifacts.locate import Layout
from harness.domain.ids import experiment_id
from harness.domain.statuses import ExperimentStatus
from harness.evaluation.outcome import TRIVIAL
from harness.ledger.exchange import import_facts
from harness.ledger.facts import BY_HARNESS, HandOffWritten, TamperingNoticed
from harness.ledger.verify import verify
from harness.projections import refresh as pages
from harness.projections.checklist import BATCH, COLUMNS, NEWEST, boundary
from harness.projections.text import BANNER
from harness.settings import Settings

STEP = "train: `harness train exp-0001`"


def refresh(ledger, layout, *, next_steps=STEP, everything=False):
    return pages.refresh(ledger, layout, next_steps, everything=everything)


def make_layout(folder) -> Layout:
    settings = {
        "project_id": "test",
        "interpreter": None,
        "memory_dir": ".harness/memory",
        "readable": (),
    }
    return Layout(Settings(root=folder / "project", state=folder, **settings))


@pytest.fixture
def layout(tmp_path):
    return make_layout(tmp_path)


def contents(layout, *, facts=True):
    root = layout.root / ".harness"
    found = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }
    return (
        found if facts else {name: data for name, data in found.items() if "/facts/" not in name}
    )


def rows(layout, name="checklist"):
    lines = layout.project(name).read_text("utf-8").splitlines()
    return [
        dict(zip(COLUMNS, split(line), strict=True)) for line in lines if line.startswith("| exp-")
    ]


def split(line):
    cells = line.replace("\\|", "\0").strip("| ").split(" | ")
    return [cell.replace("\0", "|") for cell in cells]


def many(ledger, count, *, close=True):
    with ledger.transaction():
        for _ in range(count):
            name = ledger.open_experiment(hypothesis="one of many", parent=None, by="me").id
            if close:
                ledger.move_experiment(name, ExperimentStatus.DISCARDED, "x")


def test_files_are_written_once_carry_a_banner_and_hold_no_time_but_the_facts(tmp_path, layout):
    with full_ledger(tmp_path) as ledger:
        written = refresh(ledger, layout)
        assert sorted(path.name for path in written if path.parent != layout.hand_offs) == [
            "BRIEFING.md",
            "CHECKLIST.md",
            "DECISION_LOG.md",
            "PRIORS.md",
            "STATE.md",
            "alice.jsonl",
        ]
        (told,) = layout.hand_offs.iterdir()
        assert [told] == [layout.hand_off(*key) for key in ledger.hand_off_keys()]
        assert refresh(ledger, layout) == []
        assert ledger.stale_projections() == set()
    for name, data in contents(layout, facts=False).items():
        assert data.decode().splitlines()[0] == BANNER, name
        assert data.endswith(b"\n")


def test_deleted_files_come_back_equal(tmp_path, layout):
    with full_ledger(tmp_path) as ledger:
        many(ledger, NEWEST + BATCH)
        refresh(ledger, layout)
        whole = contents(layout)
        assert "experiments/CHECKLIST-0001-1000.md" in whole
        for name in whole:
            (layout.root / ".harness" / name).unlink()
            refresh(ledger, layout)
            assert contents(layout) == whole, name
        shutil.rmtree(layout.root)
        refresh(ledger, layout)
        assert contents(layout) == whole
        ledger.rebuild()
        refresh(ledger, layout, everything=True)
        assert contents(layout) == whole


def test_step_by_step_and_at_once_give_the_same_bytes(tmp_path, layout):
    other = make_layout(tmp_path / "other")
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan())
        refresh(ledger, layout)
        parent = None
        for index in range(4):
            parent = life(ledger, 0.4 + index / 10, parent=parent, keep=index == 2)
            refresh(ledger, layout)
            many(ledger, 90, close=index != 1)
            refresh(ledger, layout)
        refresh(ledger, other, everything=True)
        assert contents(layout) == contents(other)


def test_an_imported_ledger_gives_the_same_projections(tmp_path, layout):
    clone_layout = make_layout(tmp_path / "clone")
    with full_ledger(tmp_path) as ledger, open_ledger(tmp_path / "clone", writer="bob") as clone:
        refresh(ledger, layout)
        import_facts(clone, layout.facts_dir)
        refresh(clone, clone_layout)
    assert contents(clone_layout) == contents(layout)


def test_w4_changed_files_are_fixed(tmp_path, layout):
    with full_ledger(tmp_path) as ledger:
        refresh(ledger, layout)
        whole = contents(layout)
        (told,) = layout.hand_offs.iterdir()
        for path in (
            layout.project("checklist"),
            layout.decision_log,
            layout.state_md,
            layout.briefing,
            told,
        ):
            path.write_text("edited")
        text = layout.facts_dir / "alice.jsonl"
        text.write_bytes(text.read_bytes().replace(b"digits", b"fidgit", 1))
        refresh(ledger, layout, everything=True)
        aside = text.with_name("alice.jsonl.differs-1")
        assert aside.exists()
        aside.unlink()
        assert contents(layout) == whole
        layout.decision_log.write_text(
            "shorter"
        )  # noticed without being asked, at the next decision
        decided(ledger, "exp-0003", "ITERATE")
        refresh(ledger, layout)
        assert layout.decision_log.read_text().count("\n## d-") == 4


def test_a_row_says_what_is_known(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan())
        first = life(ledger, 0.6, keep=True)
        second = life(ledger, 0.55, parent=first)
        third = ledger.open_experiment(hypothesis="deeper", parent=first, by="me").id
        refresh(ledger, layout)
        newest, failed, kept = rows(layout)
        assert kept["metric"] == "accuracy 0.6000 (validation, seeds: 1)"
        assert kept["change against parent"] == "+0.5000 (to trivial, not compared yet)"
        assert (kept["verdict"], kept["top shortfall"], kept["next planned"]) == (
            "PASS (validation)",
            "-",
            third,
        )
        assert (failed["parent"], failed["change against parent"]) == (
            first,
            "-0.0500 (not compared yet)",
        )
        assert failed["top shortfall"] == '"[below_must] accuracy 0.55 is below 0.9."'
        assert (failed["evidence level"], failed["next planned"]) == ("recomputed", "drop it")
        assert [newest[name] for name in ("experiment", "status", "metric", "verdict")] == [
            third,
            "open",
            "-",
            "-",
        ]
        assert newest["next planned"] == "train it"

        run = register(ledger, third)
        ledger.append(started(third, run))
        bypassed = {
            "code": "run_logger_bypassed",
            "message": "no rows",
            "hint": "use it",
            "data": {},
        }
        ledger.append(ended(third, run, "killed", findings=[bypassed]))
        refresh(ledger, layout)
        assert rows(layout)[0]["top shortfall"] == '"[run_logger_bypassed] no rows"'
        for seed, value in (
            (7, 0.5),
            (8, 0.7),
            (7, 0.6),
        ):  # a later evaluation of a seed replaces the earlier one
            ledger.append(evaluated(third, run, value, seed=seed, sandbox="none"))
        refresh(ledger, layout)
        row = rows(layout)[0]
        assert row["metric"] == "accuracy 0.6500 (validation, seeds: 2)"
        assert row["evidence level"] == "recomputed, predict not isolated"
        assert row["change against parent"] == "+0.0500 (not compared yet)"
        for _ in range(2):
            register(ledger, third)
        refresh(ledger, layout)
        assert rows(layout)[0]["metric"] == "accuracy 0.6500 (validation, seeds: 2 of 3 launches)"
        judged(ledger, first, 0.9)  # a parent's new score shows in its children's rows
        refresh(ledger, layout)
        by_name = {item["experiment"]: item["change against parent"] for item in rows(layout)}
        assert (by_name[third], by_name[second]) == (
            "-0.2500 (not compared yet)",
            "-0.3500 (not compared yet)",
        )


def compared(ledger, difference, better, p, *, parent=None, **said):
    """An experiment with the validation gate's verdict, which compared it so."""
    name = ledger.open_experiment(hypothesis="wider", parent=parent, by="me").id
    comparison = {
        "against": parent or TRIVIAL,
        "difference": difference,
        "better": better,
        "p_corrected": p,
        "comparisons": 1,
        "no_longer": [],
        **said,
    }
    judged(ledger, name, 0.5 + difference, comparison=comparison)
    return name


def test_better_or_worse_is_the_word_of_the_verdicts_comparison(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan(direction="minimize"))
        first = compared(ledger, -0.1, True, 0.01)
        compared(ledger, 0.2, False, 0.002, parent=first)
        compared(
            ledger, -0.3, False, 0.4, parent=first, comparisons=2
        )  # seeds alone would call it better
        compared(ledger, -0.1, False, 0.09, parent=first, comparisons=3, no_longer=[first])
        compared(ledger, 0.0, None, None, parent=first)
        compared(ledger, 0.4, False, 0.01)
        refresh(ledger, layout)
        assert [row["change against parent"] for row in reversed(rows(layout))] == [
            "-0.1000 (better than trivial, on readable labels)",
            "+0.2000 (worse, on readable labels)",
            "-0.3000 (within noise; try 2, on readable labels)",
            f"-0.1000 (within noise; try 3; {first} no longer beyond it, on readable labels)",
            "0 (noise unknown, on readable labels)",
            "+0.4000 (worse than trivial, on readable labels)",
        ]


def test_the_plans_direction_decides_what_is_best(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan(direction="maximize"))
        low, high = (compared(ledger, difference, None, None) for difference in (-0.1, 0.2))
        refresh(ledger, layout)
        assert f"best: {high} (open): accuracy 0.7000 on validation" in layout.briefing.read_text()
        ledger.append(plan(2, direction="minimize"))
        refresh(ledger, layout)
        assert f"best: {low} (open): accuracy 0.4000 on validation" in layout.state_md.read_text()


@pytest.mark.slow
@pytest.mark.parallel
def test_newest_and_unfinished_stay_on_the_first_page(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        left_open = ledger.open_experiment(hypothesis="left open", parent=None, by="me").id
        many(ledger, 1449)
        refresh(ledger, layout)
        first = layout.project("checklist").read_text()
        names = [row["experiment"] for row in rows(layout)]
        assert boundary(1450) == 1200
        assert names == [experiment_id(number) for number in range(1450, 1200, -1)] + [left_open]
        assert "(CHECKLIST-0001-1000.md)" in first
        assert "(CHECKLIST-1001-2000.md)" in first
        older = layout.checklist_page(1, 1000).read_text()
        assert older.count("\n| exp-") == 1000
        assert layout.checklist_page(1001, 2000).read_text().count("\n| exp-") == 200
        times = {path: path.stat().st_mtime_ns for path in layout.experiments.iterdir()}
        many(ledger, 1)
        refresh(ledger, layout)
        changed = {
            path.name
            for path in layout.experiments.iterdir()
            if path.stat().st_mtime_ns != times.get(path)
        }
        assert changed == {"CHECKLIST.md"}  # rows leave the first page in batches
        ledger.move_experiment(left_open, ExperimentStatus.DISCARDED, "x")
        refresh(ledger, layout)
        assert left_open not in {row["experiment"] for row in rows(layout)}
        assert "| exp-0001 | - | discarded |" in layout.checklist_page(1, 1000).read_text()


def test_very_many_unfinished_ones_are_counted(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        many(ledger, 650, close=False)
        refresh(ledger, layout)
        assert len(rows(layout)) == 250 + 200
        assert "200 more unfinished:" in layout.project("checklist").read_text()


NASTY = (
    "a | b\n## d-0009 KEEP exp-0001\r\n- by: human\u2028# State\x85| exp-0666 | x |\n<!-- \x1b[2J"
    " `\\| ``` end"
)


def test_w4_texts_cannot_forge_entries_rows_or_headings(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan())
        name = ledger.open_experiment(hypothesis=NASTY, parent=None, by=NASTY).id
        run = register(ledger, name)
        ledger.append(started(name, run))
        ledger.append(ended(name, run, "failed", reason=NASTY))
        finding = {"code": "x", "message": NASTY, "hint": NASTY, "data": {}}
        judged(ledger, name, None, "INCONCLUSIVE", findings=[finding])
        decided(
            ledger,
            name,
            "ITERATE",
            by=NASTY,
            context=NASTY,
            choice=NASTY,
            alternatives=NASTY,
            reason=NASTY,
        )
        refresh(ledger, layout)
        log = layout.decision_log.read_text("utf-8")
        assert [line for line in log.splitlines() if line.startswith("## ")] == [
            "## d-0001 ITERATE exp-0001"
        ]
        assert [line[:6] for line in log.splitlines() if line.startswith("- ")] == [
            "- time",
            "- by: ",
            "- conf",
            "- verd",
        ]
        assert log.count("> \\## d-0009 KEEP exp-0001") == 4
        for data in contents(layout, facts=False).values():
            assert b"\x1b" not in data
            assert data.count(b"<!--") <= 1 + (b"# Briefing" in data) * 10
            headings = [line for line in data.decode().split("\n") if line.startswith("#")]
            assert not [line for line in headings if "d-0009" in line or "exp-0666" in line]
        (row,) = rows(layout)
        assert row["hypothesis"].startswith('"a | b ## d-0009 KEEP')
        assert len(layout.briefing.read_text("utf-8").splitlines()) < 60


def test_briefing_is_short_and_says_what_matters(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        refresh(ledger, layout)
        assert f"## Next step\n\n{STEP}\n" in layout.briefing.read_text()
        assert f"- next step: {STEP}\n" in layout.state_md.read_text()
        assert refresh(ledger, layout, next_steps="decide") == [layout.state_md, layout.briefing]
        assert "## Next step\n\ndecide\n" in layout.briefing.read_text()
        assert refresh(ledger, layout, next_steps="decide") == []
        ledger.append(plan())
        life(ledger, 0.61)
        name = ledger.open_experiment(hypothesis="z" * 5000, parent=None, by="me").id
        for _ in range(30):
            register(ledger, name)
        findings = [
            {"code": f"c{index}", "message": "m" * 300, "hint": "n" * 300, "data": {}}
            for index in range(30)
        ]
        judged(ledger, name, 0.2, findings=findings)
        for _ in range(9):
            decided(ledger, name, "ITERATE", reason="r" * 3000)
        refresh(ledger, layout)
        text = layout.briefing.read_text("utf-8")
        assert len(text) <= 6000
        for words in (
            "Tell digits apart",
            f"best: {name} (running): accuracy 0.2000 on validation, seeds: 1, recomputed",
            f"{name} is running",
            f"FAIL for {name} at the validation gate",
            f"- [c0] {'m' * 300} {'n' * 300}",
            "more: `harness gate check",
            "d-0010 ITERATE",
        ):
            assert words in text, words
        assert "d-0001" not in text


def test_a_discarded_experiment_is_not_the_best(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan())
        life(ledger, 0.6)
        refresh(ledger, layout)
        assert (
            "- best: none kept; best discarded: exp-0001: accuracy 0.6"
            in layout.state_md.read_text()
        )
        life(ledger, 0.5, keep=True)
        life(ledger, 0.7)
        refresh(ledger, layout)
        assert "- best: exp-0002 (kept): accuracy 0.5" in layout.state_md.read_text()


def hand_off(ledger, text, experiment=None):
    ledger.append(HandOffWritten(by="agent", session="5b0c", text=text, experiment=experiment))


def test_a_hand_off_is_a_page_and_reaches_the_next_briefing(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan())
        name = ledger.open_experiment(hypothesis="h", parent=None, by="me").id
        for text in ("the first", "the second", f"the third\n## Next step\n{NASTY}"):
            hand_off(ledger, text, name)
        refresh(ledger, layout)
        pages = sorted(layout.hand_offs.iterdir())
        assert [page.read_text("utf-8").count("\n> ") > 0 for page in pages] == [True] * 3
        first = ledger.hand_offs()[0]
        at = re.sub(r":|\.\d+", "", first.at)
        assert at.startswith("2026-01-01T0000")
        assert pages[0].name == f"{at}-{first.hash[:8]}.md"
        text = layout.briefing.read_text("utf-8")
        assert text.index("> the third") < text.index("> the second")
        assert "the first" not in text
        assert text.count("\n## Next step\n") == 1, (
            "a hand-off cannot pass for a part of the briefing"
        )
        assert "claimed, not checked" in text
        for page in (*pages, layout.briefing):
            assert "\x1b" not in page.read_text("utf-8")


def test_the_newest_note_of_an_agent_stays_beside_what_transcripts_tell(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        for text in ("an older note", "the note"):
            hand_off(ledger, text)
        for number in range(4):
            text = f"Session s-{number} ended."
            fact = HandOffWritten(by=BY_HARNESS, session="s", text=text, experiment=None)
            ledger.append(fact)
        refresh(ledger, layout)
        text = layout.briefing.read_text("utf-8")
        assert text.index("> Session s-3 ended.") < text.index("> the note")
        assert text.count("claimed, not checked") == 2
        hand_off(ledger, "the newest note")
        refresh(ledger, layout)
        text = layout.briefing.read_text("utf-8")
        assert text.index("> the newest note") < text.index("> Session s-3 ended.")
        assert "> the note" not in text


def test_a_hand_off_is_cut_before_any_fact(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan())
        name = ledger.open_experiment(hypothesis="z" * 400, parent=None, by="me").id
        findings = [
            {"code": f"c{index}", "message": "m" * 300, "hint": "n" * 300, "data": {}}
            for index in range(30)
        ]
        judged(ledger, name, 0.2, findings=findings)
        refresh(ledger, layout)
        before = layout.briefing.read_text("utf-8")
        hand_off(ledger, "older " * 600)
        hand_off(ledger, "x" * 4000)
        refresh(ledger, layout)
        text = layout.briefing.read_text("utf-8")
        assert len(text) <= 6000
        assert text.startswith(before)
        assert "older" not in text
        assert "xxx" in text
        whole = layout.hand_off(*ledger.hand_off_keys()[-1])
        assert f"cut; full text: sessions/{whole.name}" in text
        for _ in range(5):
            decided(ledger, name, "ITERATE", reason="r" * 3000)
        for index in range(40):
            register(ledger, name, seed=index)
        hand_off(ledger, "\n" * 3999 + "x")
        refresh(ledger, layout)
        assert len(layout.briefing.read_text("utf-8")) <= 6000


def test_priors_are_a_page_beside_memory_and_a_line_each_in_the_briefing(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        refresh(ledger, layout)
        path = layout.project("priors")
        assert path == layout.root / ".harness" / "PRIORS.md"
        assert "None yet." in path.read_text("utf-8")
        assert "## Priors" not in layout.briefing.read_text("utf-8")
        first = prior(
            ledger,
            lesson=NASTY.split("\n")[0],
            evidence=NASTY,
            rule=NASTY,
            check=["sh", "-c", "echo `x`"],
        )
        for index in range(6):
            prior(ledger, lesson=f"lesson {index}", supersedes=first if index == 0 else None)
        refresh(ledger, layout)
        text = path.read_text("utf-8")
        assert (
            next(line for line in text.splitlines() if line.startswith("## p-"))
            == "## p-0002 lesson 0"
        )
        assert "- supersedes: p-0001" in text
        assert "## Superseded\n\n- p-0001 by p-0002: a | b" in text
        lines = [
            line
            for line in layout.briefing.read_text("utf-8").splitlines()
            if line.startswith("- p-")
        ]
        assert [line.split()[1] for line in lines] == [
            "p-0003",
            "p-0004",
            "p-0005",
            "p-0006",
            "p-0007",
        ]
        assert lines[0] == "- p-0003 lesson 1 Rule: Try wider first."
        assert "1 older: " in layout.briefing.read_text("utf-8")


def test_a_page_of_priors_that_a_person_wrote_is_set_aside(tmp_path, layout):
    path = layout.project("priors")
    path.parent.mkdir(parents=True)
    path.write_text("# What I believe\n")
    with open_ledger(tmp_path) as ledger:
        refresh(ledger, layout)
    assert path.with_name("PRIORS.md.not-ours-1").read_text() == "# What I believe\n"


def test_memory_at_the_top_has_its_priors_beside_it(tmp_path):
    settings = Settings(
        root=tmp_path,
        state=tmp_path / "s",
        project_id="test",
        interpreter=None,
        memory_dir="memory",
        readable=(),
    )
    assert Layout(settings).project("priors") == tmp_path / "PRIORS.md"
    assert Layout(settings).hand_offs == tmp_path / "memory" / "sessions"


def test_w4_state_follows_every_transition(tmp_path, layout):
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan())
        name = ledger.open_experiment(hypothesis="h", parent=None, by="me").id
        for action, words in (
            (lambda: None, f"| {name} | open |"),
            (lambda: register(ledger, name), f"| {name} | running |"),
            (
                lambda: ledger.append(started(name, "run-01")),
                "| exp-0001/run-01 | running | 7 | 1 | bwrap |",
            ),
            (lambda: ledger.append(ended(name, "run-01")), "## Open runs\n\nNone."),
            (
                lambda: ledger.move_experiment(name, ExperimentStatus.JUDGED, "x"),
                f"| {name} | judged |",
            ),
            (
                lambda: ledger.move_experiment(name, ExperimentStatus.KEPT, "x"),
                "## Unfinished experiments\n\nNone.",
            ),
        ):
            action()
            refresh(ledger, layout)
            assert words in layout.state_md.read_text("utf-8")
    assert verify(layout.ledger_db, layout.anchors, layout.facts_dir) == []


def test_tampering_is_told_until_its_experiment_is_decided_or_the_plan_approved_again(
    tmp_path, layout
):
    def noticed(**fields):
        ledger.append(
            TamperingNoticed(
                what="scorer_changed", path="score.py", expected="1", actual="2", **fields
            )
        )

    def told():
        refresh(ledger, layout)
        return [
            line
            for line in layout.briefing.read_text().splitlines()
            if "tampering noticed" in line
        ]

    with open_ledger(tmp_path) as ledger:
        ledger.append(plan())
        name = ledger.open_experiment(hypothesis="h", parent=None, by="me").id
        noticed(experiment=name)
        noticed()
        assert told() == ["- tampering noticed 2 times; last: scorer_changed: score.py"]
        ledger.move_experiment(name, ExperimentStatus.DISCARDED, "decided")
        assert told() == ["- tampering noticed 1 times; last: scorer_changed: score.py"]
        ledger.append(plan(2))
        assert told() == []
        assert len(ledger.tampering()) == 2
        assert layout.state_md.read_text().count("scorer_changed: score.py") == 2
