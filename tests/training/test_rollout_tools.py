"""Tools and environments in rollouts: called by TRL, masked out of every channel, told to the
teacher as well."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

torch = pytest.importorskip("torch")
trl = pytest.importorskip("trl")
pytest.importorskip("peft")

from harness.domain.composition import (  # noqa: E402 - needs the libraries that may be missing
    Composition,
    DistillationChannel,
    FrozenFunction,
    RewardChannel,
    Rollouts,
    composition_from,
)
from harness.errors import HarnessError, RunError, UsageError  # noqa: E402
from harness.files import sha256_bytes  # noqa: E402
from harness.run_logger import RunLogger  # noqa: E402
from harness.training.chat import prompt_ids  # noqa: E402
from harness.training.composed_trainer import ComposedTrainer  # noqa: E402
from harness.training.rewards import text_of  # noqa: E402
from harness.training.tools import (  # noqa: E402
    asked_with,
    environment_class,
    tool_functions,
)
from tests.training.calling_model import ADD  # noqa: E402
from tests.training.composing import gradient, ready, task_of  # noqa: E402
from tests.training.test_composed import apart, rel  # noqa: E402
from tests.training.tiny_model import (  # noqa: E402
    environment,
    save_tool_model,
)

SCORE = """def score(completions, **more):
    return [float(len(one)) for one in completions]
"""


def frozen(source: str, name: str) -> FrozenFunction:
    digest = sha256_bytes(source.encode())
    return FrozenFunction(name=name, file=f"{name}.py", sha256=digest, source=source)


METHOD = indent(ADD.replace("(a", "(self, a"), "    ")
RESET = """class Desk:
    def reset(self, **row):
        return " Be brief."

"""
DESK = Rollouts(max_tokens=1000, environment=frozen(RESET + METHOD, "Desk"), tool_turns=4)
TOOLS = Rollouts(max_tokens=1000, tools=(frozen(ADD, "add"),), tool_turns=4)
COMPOSITION = Composition(
    reward=RewardChannel(functions=(frozen(SCORE, "score"),), function_weights=(1.0,)),
    distillation=DistillationChannel(weight=10.0, success=1e6),
    rollouts=TOOLS,
    gradients_every=1,
)
NUMBERS = {"max_seq_length": 4096, "batch_size": 4, "gradient_accumulation": 1}


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunLogger]:
    for key, value in environment(tmp_path).items():
        monkeypatch.setenv(key, value)
    with RunLogger.from_environment() as opened:
        yield opened


def call(a: int, b: int) -> str:
    words = json.dumps({"name": "add", "arguments": {"a": a, "b": b}})
    return f"<tool_call>\n{words}\n</tool_call>"


def scripted(
    trainer: ComposedTrainer, prompts: list[list[int]], *_words: Any, **_more: Any
) -> Any:
    """Every other rollout calls the tool twice, the second time with what it was told; the others
    answer at once."""
    said = []
    for place, ids in enumerate(prompts):
        text = trainer.processing_class.decode(ids)
        # A later turn is asked for those alone that called.
        calls = len(prompts) < 4 or place % 2 == 0
        if "<tool_response>\n3\n" not in text:
            told = call(1, 2) if calls else f"No{place}."
        else:
            told = "It is 7." if "<tool_response>\n7\n" in text else call(3, 4)
        said.append(trainer.processing_class(f"{told}<|im_end|>").input_ids)
    return said, None


@pytest.mark.parametrize(
    ("template", "rollouts"), [("qwen2_5", TOOLS), ("qwen3", TOOLS), ("qwen3", DESK)]
)
def test_what_a_tool_returns_carries_no_loss_in_any_channel(
    tmp_path: Path,
    log: RunLogger,
    monkeypatch: pytest.MonkeyPatch,
    template: str,
    rollouts: Rollouts,
) -> None:
    monkeypatch.setattr(ComposedTrainer, "_generate_single_turn", scripted)
    save_tool_model(tmp_path / "model", template)
    composition = replace(COMPOSITION, rollouts=rollouts)
    trainer, inputs = ready(task_of(tmp_path, log, composition, hyperparameters=NUMBERS))
    tokenizer, mask = trainer.processing_class, inputs["completion_mask"].bool()
    seen = []
    for ids, row, of_model in zip(
        inputs["completion_ids"], mask, inputs["tool_mask"].bool(), strict=True
    ):
        seen.append([tokenizer.decode(ids[row & kept]) for kept in (of_model, ~of_model)])
    both = [f"{call(1, 2)}<|im_end|>{call(3, 4)}<|im_end|>It is 7.<|im_end|>"]
    called = [one for one in seen if one[1]]
    assert [one[0] for one in called] == both * 2
    for _, returned in called:
        assert "<tool_response>\n3\n</tool_response>" in returned
        assert "<tool_response>\n7\n</tool_response>" in returned
    assert sorted(one[0][:2] for one in seen if not one[1]) == ["No", "No"]
    noted = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    assert (noted["tools/call_frequency"], noted["tools/failure_frequency"]) == (1.0, 0.0)
    for row, prompt in enumerate(inputs["prompt_ids"]):
        asked = prompt[inputs["prompt_mask"][row].bool()].tolist()
        assert '"name": "add"' in tokenizer.decode(asked)
        shown = inputs["teacher_ids"][row][inputs["teacher_mask"][row].bool()]
        shown = shown[: -int(mask[row].sum())].tolist()
        told = tokenizer.decode(shown)
        question = tokenizer.decode(asked).rpartition("<|im_start|>user\n")[2].partition("<")[0]
        assert '"name": "add"' in told
        assert "A hint:" in told
        for one in (question, told):
            assert ("Be brief." in one) == bool(rollouts.environment)
        assert prompt_ids(tokenizer, asked_with(question, trainer.tools)) == asked
    counted = inputs["token_weights"] > 0
    assert torch.equal(counted, mask & inputs["tool_mask"].bool())
    exact = apart(trainer, inputs)
    for name in ("reward", "distillation", "dpo"):
        ours = trainer.channel_losses(trainer.model, inputs, {name: 1.0})[name]
        assert float(ours) == pytest.approx(float(exact[name]), rel=1e-5, abs=1e-6), name
        alone = gradient(trainer, exact[name])
        assert float(alone.norm()) > 0, name
        assert rel(gradient(trainer, ours), alone) < 1e-5, name
    # The check itself: with the tool's tokens the two channels of the rollouts would be others.
    blind = {name: one for name, one in inputs.items() if name != "tool_mask"}
    others = apart(trainer, blind)
    for name in ("reward", "distillation"):
        assert rel(gradient(trainer, others[name]), gradient(trainer, exact[name])) > 1e-3


def test_a_tool_that_fails_is_an_answer_and_turns_are_counted(
    tmp_path: Path, log: RunLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def always(trainer: Any, prompts: Any, *_words: Any, **_more: Any) -> Any:
        word = trainer.processing_class(f"{call(1, 2)}<|im_end|>").input_ids
        return [list(word) for _ in prompts], None

    monkeypatch.setattr(ComposedTrainer, "_generate_single_turn", always)
    save_tool_model(tmp_path / "model", "qwen2_5")
    broken = ADD.replace("return a + b", "raise OSError('no such sum')")
    rollouts = replace(TOOLS, tools=(frozen(broken, "add"),), tool_turns=2)
    composition = replace(COMPOSITION, rollouts=rollouts)
    trainer, inputs = ready(task_of(tmp_path, log, composition, hyperparameters=NUMBERS))
    noted = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    assert (noted["tools/call_frequency"], noted["tools/failure_frequency"]) == (2.0, 1.0)
    text = trainer.processing_class.decode(inputs["completion_ids"][0])
    assert text.count("no such sum") == 2
    assert [len(one) for one in trainer._completions] == [5] * 4
    assert text_of(trainer._completions[0]) == ""  # it ended with a call


def test_a_tool_that_cannot_be_used_is_refused_in_words(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(save_tool_model(tmp_path / "model", "qwen2_5"))
    tools = tool_functions([frozen(ADD, "add")], tokenizer, tmp_path / "tools")
    assert [one(a=1, b=2) for one in tools] == [3]
    assert (tmp_path / "tools/0.py").read_text() == ADD
    bare = "def add(a, b):\n    return a + b\n"
    for source, said in (
        (bare, "not described"),
        (ADD.replace("b: another", ""), "not described"),
        (ADD.replace("def add", "def sub"), "no function add"),
    ):
        with pytest.raises(UsageError, match=said):
            tool_functions([frozen(source, "add")], tokenizer, tmp_path / "tools")
    changed = replace(frozen(ADD, "add"), source=ADD + "#")
    with pytest.raises(RunError, match="hash"):
        tool_functions([changed], tokenizer, tmp_path / "tools")
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    with pytest.raises(UsageError, match="chat template"):
        tool_functions([frozen(ADD, "add")], tokenizer, tmp_path / "tools")
    assert tool_functions([], tokenizer, tmp_path / "tools") == []
    assert asked_with("2+2?", []) == "2+2?"


def test_a_composition_with_tools_survives_its_plain_form_and_one_of_before_has_none() -> None:
    plain = json.loads(json.dumps(COMPOSITION.plain()))
    assert composition_from(plain) == COMPOSITION
    for name in ("tools", "tool_turns", "environment"):
        del plain["rollouts"][name]
    before = composition_from(plain).rollouts
    assert (before.tools, before.environment) == ((), None)
    playing = replace(COMPOSITION, rollouts=DESK)
    assert composition_from(json.loads(json.dumps(playing.plain()))) == playing


def test_an_environment_that_cannot_be_used_is_refused_in_words(
    tmp_path: Path, log: RunLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(save_tool_model(tmp_path / "model", "qwen2_5"))
    kept = tmp_path / "tools"
    assert environment_class(None, tokenizer, kept) is None
    made = environment_class(DESK.environment, tokenizer, kept)
    assert made is not None
    assert made().add(1, 2) == 3
    bare = "class Desk:\n    def reset(self, **row): ...\n    def add(self, a): ...\n"
    of_base = bare.replace("Desk", "Base") + "class Desk(Base): ...\n"
    for source, said in (
        ("class Desk: ...", "reset"),
        ("def Desk(): ...", "no class Desk"),
        (bare, "add is not described"),
        (of_base, "add is not described"),
    ):
        with pytest.raises(UsageError, match=said):
            environment_class(frozen(source, "Desk"), tokenizer, kept)
    monkeypatch.setattr(ComposedTrainer, "_generate_single_turn", scripted)
    moody = "import itertools\ncount = itertools.count()\n" + RESET + METHOD
    moody = moody.replace('" Be brief."', 'f" Be brief {next(count)}."')
    long = (RESET + METHOD).replace("Be brief.", "Be brief." * 400)
    for source, said in ((moody, "two rollouts of one row"), (long, "max_seq_length")):
        rollouts = replace(DESK, environment=frozen(source, "Desk"))
        composition = replace(COMPOSITION, rollouts=rollouts)
        with pytest.raises(HarnessError, match=said):
            ready(task_of(tmp_path, log, composition, hyperparameters=NUMBERS))
