"""Teachers: services, recorded answers, limits, and the pairs that come of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.clock import ManualClock, SystemClock
from harness.errors import RunError, UsageError
from harness.teachers.asking import AnswerFile, Asking, Question
from harness.teachers.circularity import circularity, family_of
from harness.teachers.endpoints import Endpoint
from harness.teachers.named import Around, asking_of, named, price_from
from tests.cli.journey import Journey
from tests.teachers.service import SLOW, of_anthropic, of_openai, serving
from tests.traces.test_training_rows import MENDED, asked, state, text

KEY = "sk-" + "not-a-real-key-0123456789"
QUESTION = Question(text="what now?", longest=100)


def endpoint(url: str, form: str = "openai", **more: Any) -> Endpoint:
    given = {"key": None, "clock": ManualClock()} | more
    return Endpoint(form=form, model="m", url=url, **given)


def around(**more: Any) -> Around:
    words = {"environ": {}, "interpreter": "python3", "folders": {}, "clock": ManualClock()}
    return Around(**words | more)


def test_both_forms_say_what_the_service_wants_and_read_what_it_says():
    with serving(of_openai("run it"), of_anthropic("run it", stop="max_tokens")) as service:
        first = endpoint(service.url, key=KEY).answer(QUESTION)
        second = endpoint(service.url, "anthropic", key=KEY).answer(QUESTION)
    assert (first.text, first.cut, first.input_tokens, first.output_tokens) == (
        *("run it", False),
        *(40, 10),
    )
    assert (second.text, second.cut, second.input_tokens) == ("run it", True, 1000)
    assert [one["path"] for one in service.asked] == ["/v1/chat/completions", "/v1/messages"]
    assert {one["messages"][0]["content"] for one in service.asked} == {"what now?"}
    assert service.headers[0]["authorization"] == f"Bearer {KEY}"
    assert service.headers[1]["x-api-key"] == KEY


def test_a_busy_service_is_asked_again_as_late_as_it_says():
    busy = (429, {"retry-after": "7"}, {"error": {"message": "slow down"}})
    with serving(busy, (529, {}, {}), of_openai("now")) as service:
        teacher = endpoint(service.url)
        assert teacher.answer(QUESTION).text == "now"
    assert (teacher.retries, len(service.asked)) == (2, 3)
    assert teacher.clock.monotonic() == 7 + 14


def test_a_service_that_stays_down_ends_with_its_words():
    with serving((503, {}, {"error": {"message": "no GPU"}})) as service:
        with pytest.raises(RunError, match="HTTP 503: no GPU"):
            endpoint(service.url).answer(QUESTION)
        assert len(service.asked) == 6
    with serving((400, {}, {"error": {"message": "no such model"}})) as service:
        with pytest.raises(RunError, match="no such model"):
            endpoint(service.url).answer(QUESTION)
        assert len(service.asked) == 1
    with serving((200, {}, {"choices": []})) as service, pytest.raises(RunError, match="form"):
        endpoint(service.url).answer(QUESTION)


class Awake(SystemClock):
    def sleep(self, seconds: float) -> None:
        return


@pytest.mark.parametrize(
    "broken", [(200, SLOW, b" " * 400), (200, {"content-encoding": "gzip"}, b"no gzip")]
)
def test_an_answer_that_drips_or_cannot_be_unpacked_is_lost_and_asked_for_again(broken: Any):
    with serving(broken, of_openai("now")) as service:
        teacher = endpoint(service.url, timeout=0.5, clock=Awake())
        assert teacher.answer(QUESTION).text == "now"
    assert (teacher.lost, len(service.asked)) == (1, 2)


def test_a_lost_answer_is_taken_to_have_cost_what_it_could(tmp_path: Path):
    with serving((0, {}, None), of_anthropic("late")) as service:
        teacher = endpoint(service.url, "anthropic", timeout=0.3)
        asking = Asking(
            teacher=teacher,
            answers=AnswerFile(tmp_path / "a.jsonl"),
            price=price_from("1000,1000"),
            limit=10.0,
        )
        assert asking.answer(QUESTION) is not None
    worst = (len("what now?") + 64 + 100) / 1000
    assert asking.spent.lost == 1
    assert asking.spent.usd == pytest.approx(worst + 1.1)


def test_no_question_is_asked_that_could_pass_the_limit(tmp_path: Path):
    """Each costs 1.1 dollars and could cost 0.173."""
    with serving(of_anthropic("yes")) as service:
        asking = Asking(
            teacher=endpoint(service.url, "anthropic"),
            answers=AnswerFile(tmp_path / "a.jsonl"),
            price=price_from("1000,1000"),
            limit=2.3,
        )
        questions = [Question(text=f"what now{n}", longest=100) for n in range(9)]
        answers = [asking.answer(one) for one in questions]
    assert [one is not None for one in answers] == [True, True] + [False] * 7
    assert (len(service.asked), asking.stopped) == (2, "the spend limit")
    assert asking.spent.usd == pytest.approx(2.2)


@pytest.mark.parametrize("status", [0, 500, 502, 504])
def test_each_try_stays_within_the_limit(tmp_path: Path, status: int):
    """A lost try may have cost 0.173 dollars, and the limit has room for two."""
    with serving((status, {}, {})) as service:
        asking = Asking(
            teacher=endpoint(service.url, "anthropic", timeout=0.2),
            answers=AnswerFile(tmp_path / "a.jsonl"),
            price=price_from("1000,1000"),
            limit=0.4,
        )
        assert asking.answer(QUESTION) is None
    assert (len(service.asked), asking.stopped) == (2, "the spend limit")
    assert (asking.spent.lost, asking.spent.usd) == (2, pytest.approx(0.346))


def test_an_answer_without_text_is_counted_and_kept(tmp_path: Path):
    silent = of_openai("")
    silent[2]["choices"][0]["message"]["content"] = None
    with serving(silent, (200, {}, {"choices": []})) as service:
        asking = Asking(
            teacher=endpoint(service.url),
            answers=AnswerFile(tmp_path / "a.jsonl"),
            price=price_from("1000,1000"),
            limit=10.0,
        )
        first, again = asking.answer(QUESTION), asking.answer(QUESTION)
        assert first == again
        assert first is not None
        assert (first.text, asking.spent.usd) == ("", pytest.approx(0.05))
        # What is no answer at all was computed too.
        with pytest.raises(RunError, match="form"):
            asking.answer(Question(text="what now?!", longest=100))
    assert len(service.asked) == 2
    assert (asking.spent.lost, asking.spent.usd) == (1, pytest.approx(0.05 + 0.174))


@pytest.mark.parametrize("before", ["ada:pass-word@", ":pass-word@", "ada:pass@word@"])
def test_a_password_in_an_address_is_refused_and_not_shown(before: str):
    with pytest.raises(UsageError, match=r"'models\.example/v1' is no address") as refused:
        endpoint(f"https://{before}models.example/v1")
    assert "word" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://[::1/v1", "ftp://x/v1", "http:///v1", "here"])
def test_an_address_that_is_none_is_refused(url: str):
    with pytest.raises(UsageError, match="is no address of a service"):
        endpoint(url)


def test_kept_answers_are_read_again_but_for_torn_lines(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    with serving(of_openai("one")) as service:
        asking = Asking(
            teacher=endpoint(service.url), answers=AnswerFile(path), price=None, limit=None
        )
        asking.answer(QUESTION)
        path.write_bytes(path.read_bytes() + b'{"model": "m", "answ')
        again = Asking(
            teacher=endpoint(service.url), answers=AnswerFile(path), price=None, limit=None
        )
        found = again.answer(QUESTION)
        assert found is not None
        assert (found.text, again.spent.recorded, again.answers.damaged) == ("one", 1, 1)
        again.answer(Question(text="another", longest=1))
    assert len(service.asked) == 2
    kept = AnswerFile(path)
    assert (kept.models, kept.damaged) == (["m"], 1)
    assert kept.find("m", Question(text="another", longest=1)) is not None
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("spec", "more", "code"),
    [
        ("gpt-4", {}, "teacher_unknown"),
        ("local:nowhere", {}, "teacher_unknown"),
        ("replay:nothing.jsonl", {}, "teacher_unknown"),
        ("openai:some-model", {}, "price_unknown"),
        ("anthropic:claude-opus-5", {}, "spend_limit_missing"),
        (
            "openai:m@http://models.example/v1",
            {"environ": {"OPENAI_API_KEY": KEY}, "price": price_from("0,0")},
            "key_in_the_open",
        ),
    ],
)
def test_what_could_go_wrong_later_is_refused_first(
    tmp_path: Path, spec: str, more: dict[str, Any], code: str
):
    with pytest.raises(UsageError) as refused:
        asking_of(spec, tmp_path / "a.jsonl", around(**more))
    assert refused.value.code == code
    assert KEY not in str(refused.value)


def test_a_specification_of_a_teacher_names_model_and_place():
    served = named("openai:org/m@http://127.0.0.1:1/v1")
    assert (served.model, served.place) == ("org/m", "http://127.0.0.1:1/v1")
    assert named("anthropic:claude-opus-5").place == "https://api.anthropic.com/v1"
    assert repr(endpoint("http://127.0.0.1:1/v1", key=KEY)).count(KEY) == 0
    for words in ("1", "a,b", "-1,2", "nan,1"):
        with pytest.raises(UsageError, match="price"):
            price_from(words)


def test_families_and_circles():
    names = ("claude-opus-5", "us.anthropic.claude-opus-5-v1:0", "meta-llama/Llama-3.2-1B", "7-b")
    assert [family_of(name) for name in names] == ["claude", "claude", "llama", "b"]
    assert family_of("2024") == "unknown"
    authors = {"claude-opus-5": 3, "qwen-3": 1}
    told = circularity(authors, teacher="claude-haiku-5", judge="claude-opus-5")
    assert [(one["kind"], one["rows"], one["share"]) for one in told["findings"]] == [
        ("teacher is of the family of an author of the traces", 3, 0.75),
        ("judge is an author of the traces", 3, 0.75),
        ("judge is of the family of the teacher", 4, 1.0),
    ]
    assert circularity(authors, teacher="llama", judge=None)["findings"] == []


GOOD = state("c", "b", text("All tests pass."), outcome={"feedback": "Thanks."})


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    states = [*MENDED, GOOD, state("d", None, text("Yes."), added=asked("ready?"))]
    lines = "".join(json.dumps(one | {"model": "claude-test-1"}) + "\n" for one in states)
    (tmp_path / "work" / "states.jsonl").write_text(lines)
    return Journey(tmp_path / "work", tmp_path / "home")


def rows_by(journey: Journey, out: str, *words: str, code: int = 0, **extra: str) -> Any:
    answer = journey.harness("traces", "rows", "states.jsonl", "-o", out, *words, **extra)
    assert answer.exit_code == code, answer.stdout + answer.stderr
    return answer


def test_pairs_by_a_teacher_are_made_kept_replayed_and_flagged(journey: Journey):
    pytest.importorskip("detect_secrets", reason="the extra `traces` is not installed")
    free = ("--price", "0,0", "--answers", "kept.jsonl", "--judge", "judge-1")
    with serving(of_openai('Bash({"command": "pytest"})\nask ada@example.com')) as service:
        spec = f"openai:claude-served@{service.url}"
        told = rows_by(
            journey, "a.jsonl", "--teacher", spec, *free, "--json", OPENAI_API_KEY=KEY
        ).document
        hinted = [one["messages"][0]["content"] for one in service.asked]
        assert service.headers[0]["authorization"] == f"Bearer {KEY}"
        asked_first = len(service.asked)
        again = rows_by(journey, "b.jsonl", "--teacher", spec, *free, "--json").document
        assert len(service.asked) == asked_first
    rows = [json.loads(line) for line in (journey.root / "a.jsonl").read_text().splitlines()]
    assert told["reasons"] == {"teacher with a hint": 1, "teacher disagreement": len(rows) - 1}
    first = rows[0]
    assert "not found: pytset" in hinted[0]
    assert "not found: pytset" not in first["prompt"]
    assert first["rejected"] == 'Bash({"command": "pytset"})'
    assert "run the tests" not in first["rejected"]  # what it thought
    assert first["chosen"].endswith("ask [EMAIL]")
    assert first["provenance"]["teacher"] == "claude-served"
    assert first["provenance"]["generator"] == "claude-test-1"
    assert told["teacher"]["asked"] == asked_first
    assert again["teacher"]["recorded"] == asked_first
    assert again["teacher"]["asked"] == 0
    (found,) = told["circularity"]["findings"]
    assert found["kind"] == "teacher is of the family of an author of the traces"
    assert "**Circular**" in (journey.root / "a.card.md").read_text()
    replayed = rows_by(journey, "c.jsonl", "--teacher", "replay:kept.jsonl")
    assert "circular: the teacher is of" in replayed.stdout
    same = [(journey.root / name).read_bytes() for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    assert same[0] == same[1] == same[2]
    written = [path.read_bytes() for path in journey.root.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in data for data in written)


def test_a_teacher_that_agrees_or_is_cut_makes_no_pair(journey: Journey):
    pytest.importorskip("detect_secrets", reason="the extra `traces` is not installed")
    with serving(of_openai("Yes.", stop="length"), of_openai("No."), of_openai("Yes.")) as service:
        told = rows_by(
            journey,
            "a.jsonl",
            *("--teacher", f"openai:m@{service.url}", "--price", "0,0", "--json"),
        ).document
        refused = rows_by(
            journey,
            "b.jsonl",
            *("--teacher", f"openai:m@{service.url}", "--price", "0,0", "--kind", "sft"),
            code=2,
        )
    assert told["skipped"]["answer cut"] == 1
    assert told["skipped"]["teacher agrees"] == 1
    assert "a teacher makes pairs" in refused.stderr.lower()


def test_a_local_model_answers_by_the_same_protocol(journey: Journey):
    pytest.importorskip("detect_secrets", reason="the extra `traces` is not installed")
    pytest.importorskip("transformers", reason="the extra `train` is not installed")
    from tests.training.tiny_model import save_tiny_model

    save_tiny_model(journey.root / "tiny-local")
    words = ("--teacher", "local:tiny-local", "--answer-tokens", "8", "--most", "2", "--json")
    words += ("--context", "200")
    refused = rows_by(journey, "a.jsonl", *words, code=2).document["error"]["message"]
    assert "'answer cut': 2, 'not asked': 2" in refused  # a random model ends no answer
    kept = AnswerFile(journey.root / "a.answers.jsonl")
    lines = [json.loads(line)["answer"] for line in kept.path.read_text().splitlines()]
    assert (kept.models, [one["output_tokens"] for one in lines]) == (["tiny-local"], [8, 8])
    assert all(one["input_tokens"] > 50 for one in lines)
