"""What of a benchmark the training rows tell, and honest rows that tell nothing."""

import json
import random
from typing import Any

import pytest

from bench._dates import dates
from harness.ledger.project import Project
from harness.posttrain.contamination import contamination, said
from harness.posttrain.program import TrainingProgram
from tests.posttrain import programs

Rows = list[dict[str, Any]]
NAMES = ("Anna", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo", "Ida", "Jon")
THINGS = ("pears", "coins", "books", "pens", "stones", "cards")


def kinds(training: Rows, benchmark: Rows) -> dict[str, int]:
    return contamination(training, benchmark).plain()["kinds"]


def facts(count: int, seed: int) -> Rows:
    """Questions of twenty words, with answers of ten."""
    draw = random.Random(seed)
    words = [f"w{number}" for number in range(3000)]
    return [
        {
            "id": f"{seed}-{number}",
            "prompt": f"Tell me this: {' '.join(draw.choices(words, k=20))}?",
            "chosen": " ".join(draw.choices(words, k=10)),
            "rejected": " ".join(draw.choices(words, k=10)),
        }
        for number in range(count)
    ]


BENCHMARK = facts(50, 1)
OTHERS = facts(200, 2)


def reworded(row: dict[str, Any]) -> dict[str, Any]:
    words = row["prompt"].removeprefix("Tell me this: ").rstrip("?").split()
    random.Random(row["id"]).shuffle(words)
    return {"prompt": f"Please, what about {' '.join(words[:-2])}", "chosen": "something else"}


def marked(text: str) -> str:
    """With a mark that nobody sees in each word, and capitals."""
    return text.upper().replace("W", "W\u200b")


LEAKS = {
    "prompt": lambda row: {"prompt": marked(row["prompt"]), "chosen": "x"},
    "13-gram": lambda row: {"prompt": "Learn.", "chosen": f"So: {row['prompt']} And that is it."},
    "answer": lambda row: {"prompt": f"Say {row['id']}", "completion": marked(row["chosen"])},
    "reworded": reworded,
}


@pytest.mark.parametrize("kind", LEAKS)
def test_each_way_to_tell_a_benchmark_is_found(kind: str) -> None:
    leak = [LEAKS[kind](row) for row in BENCHMARK]
    assert kinds([*OTHERS, *leak], BENCHMARK) == {kind: 50}
    assert kinds([*OTHERS, *leak[:2]], BENCHMARK) == {kind: 2}


def test_an_answer_hidden_in_another_field_is_found() -> None:
    leak = [{"prompt": "p", "chosen": "c", "meta": {"more": [row["chosen"]]}} for row in BENCHMARK]
    assert kinds([*OTHERS, *leak], BENCHMARK) == {"answer": 50}


def test_short_questions_in_other_words_and_short_answers_alone_are_found() -> None:
    benchmark = programs.rows(40, 100)
    asked = [{"prompt": f"Add 1 to {n}, please.", "chosen": str(n + 1)} for n in range(100, 140)]
    assert kinds([*programs.rows(20), *asked], benchmark) == {"reworded": 40}
    alone = [{"prompt": f"Say it, {n}", "chosen": str(n + 101)} for n in range(40)]
    assert kinds([*programs.rows(20), *alone], benchmark) == {"answer": 40}
    held = dates(80, 99)
    alone = [{"prompt": f"Say {n}", "chosen": row["chosen"]} for n, row in enumerate(held)]
    honest = dates(240, 7, frozenset(row["prompt"] for row in held))
    assert kinds([*honest, *alone], held) == {"answer": 80}


def sums(count: int, seed: int) -> Rows:
    draw = random.Random(seed)
    pairs = [(draw.randint(0, 99), draw.randint(0, 99)) for _ in range(count)]
    return [
        {"id": str(n), "prompt": f"{a} + {b} = ?", "chosen": str(a + b)}
        for n, (a, b) in enumerate(pairs)
    ]


def stories(count: int, seed: int) -> Rows:
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        (one, other), thing = draw.sample(NAMES, 2), draw.choice(THINGS)
        many, few = draw.randint(10, 60), draw.randint(1, 9)
        prompt = (
            f"{one} has {many} {thing} and gives {few} of them to {other}. How many {thing} does"
            f" {one} have left? Think step by step, then give the number alone."
        )
        answer = f"{one} has {many} - {few} = {many - few} {thing} left."
        rows.append({"id": str(number), "prompt": prompt, "chosen": answer})
    return rows


def choices(count: int, seed: int) -> Rows:
    draw = random.Random(seed)
    return [row | {"chosen": draw.choice("ABCD")} for row in facts(count, seed + 100)]


def enumerated(count: int, seed: int) -> Rows:
    """Every answer of the domain once in training, some of them in the benchmark."""
    if seed == 1:
        return [{"id": str(n), "prompt": f"half of {2 * n}", "chosen": str(n)} for n in range(40)]
    return [
        {"id": str(n), "prompt": f"one less than {n + 1}", "chosen": str(n)} for n in range(999)
    ]


def without(rows: Rows, benchmark: Rows) -> Rows:
    known = {row["prompt"] for row in benchmark}
    return [row for row in rows if row["prompt"] not in known]


@pytest.mark.parametrize("size", [100, 1000])
@pytest.mark.parametrize("make", [sums, stories, choices, enumerated, facts])
def test_honest_rows_of_one_kind_are_no_contamination(make: Any, size: int) -> None:
    benchmark = make(60, 1)
    found = contamination(without(make(size, 2), benchmark), benchmark)
    assert not found.blocks, said(found.plain())


def test_dates_of_the_bench_are_honest() -> None:
    held = dates(80, 99)
    for seed in range(7, 12):
        rows = dates(240, seed, frozenset(row["prompt"] for row in held))
        assert contamination(rows, held).found == {}


def test_a_usual_answer_of_the_benchmark_tells_nothing() -> None:
    refusal = "I am sorry, but I cannot help you with this request."
    benchmark = [row | {"chosen": refusal} if n < 2 else row for n, row in enumerate(BENCHMARK)]
    assert kinds([{"prompt": "p", "chosen": refusal}], benchmark) == {}


def test_a_specification_keeps_what_was_found_and_it_blocks(
    project: Project, program: TrainingProgram, root: Any
) -> None:
    programs.write_rows(root / "held_out.jsonl", BENCHMARK)
    programs.write_rows(root / "train.jsonl", [*OTHERS, *map(reworded, BENCHMARK)])
    made = program.create(programs.request(mode="sft"), by="me")
    assert made.contamination is not None
    assert (made.contamination["count"], made.contamination["blocks"]) == (50, True)
    (warning,) = (item for item in made.warnings if item["field"] == "dataset")
    assert "50 of 50 benchmark rows" in warning["actual"]
    assert "PASS" in warning["reason"]
    json.dumps(made.contamination)
