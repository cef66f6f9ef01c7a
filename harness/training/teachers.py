"""Whose next-token distribution a student learns, and what it is shown that the student is not.

The teacher is the student itself with privileged context (Hübotter et al. 2026, SDPO; Zhao et al.
2026, OPSD), or another local model. No gradient flows into it, and its dropout is off.
"""

import contextlib
import re
from collections.abc import (
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import (
    load_file,
    save_file,
)

from harness.domain.composition import (
    Context,
    Teacher,
)
from harness.training.chat import Prompt, messages
from harness.training.rewards import text_of

_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_FILE = "teacher.safetensors"


def backbone_of(model: Any) -> torch.nn.Module:
    """The transformer below the output head."""
    base: torch.nn.Module = model.get_base_model() if hasattr(model, "peft_config") else model
    return base.base_model  # type: ignore[return-value] # transformers names it so


@contextlib.contextmanager
def without_dropout(model: torch.nn.Module) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


class SelfTeacher:
    """The student with the adapter off (`base`), averaged (`ema`), or as it is (`live`)."""

    def __init__(self, kind: Teacher, student: Any, rate: float) -> None:
        self._kind, self._student, self._rate = kind, student, rate
        self._average: dict[str, torch.Tensor] = {}
        if kind is Teacher.EMA:
            self._average = {name: one.detach().clone() for name, one in self._trained()}

    @property
    def head(self) -> torch.Tensor:
        return head_of(self._student)

    @torch.no_grad()
    def hidden(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Last hidden states, shape (rows, length, width)."""
        words = {"input_ids": ids, "attention_mask": mask, "use_cache": False}
        backbone = backbone_of(self._student)
        off = self._student.disable_adapter() if self._kind is Teacher.BASE else _same()
        with without_dropout(self._student), off:
            out = torch.func.functional_call(backbone, self._average, kwargs=words)
        states: torch.Tensor = out.last_hidden_state
        return states

    @torch.no_grad()
    def follow(self) -> None:
        """After an optimizer step: average <- (1 - rate) * average + rate * student."""
        for name, one in self._trained() if self._average else ():
            self._average[name].lerp_(one.detach(), self._rate)

    def save(self, folder: Path) -> None:
        if self._average:
            save_file(self._average, folder / _FILE)

    def load(self, folder: Path) -> None:
        if self._average:
            kept = load_file(folder / _FILE)
            for name, one in self._average.items():
                one.copy_(kept[name])

    def _trained(self) -> Iterator[tuple[str, torch.Tensor]]:
        named = backbone_of(self._student).named_parameters()
        return ((name, one) for name, one in named if one.requires_grad)


class OtherTeacher:
    """A local model of its own, with the student's vocabulary."""

    def __init__(self, model: Any) -> None:
        self._model = model.eval().requires_grad_(False)

    @property
    def head(self) -> torch.Tensor:
        return head_of(self._model)

    @torch.no_grad()
    def hidden(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        out = backbone_of(self._model)(input_ids=ids, attention_mask=mask, use_cache=False)
        states: torch.Tensor = out.last_hidden_state
        return states

    def follow(self) -> None:
        return

    def save(self, _folder: Path) -> None:
        return

    def load(self, _folder: Path) -> None:
        return


def head_of(model: Any) -> torch.Tensor:
    """The output head's weight, shape (vocabulary, width)."""
    weight: torch.Tensor = model.get_output_embeddings().weight
    return weight


@contextlib.contextmanager
def _same() -> Iterator[None]:
    yield


def contexts(
    rows: Sequence[Mapping[str, Any]],
    completions: Sequence[Any],
    rewards: Sequence[float],
    *,
    group: int,
    kinds: Sequence[str],
    success: float,
) -> list[str | None]:
    """What the teacher is shown beside each row's prompt, None where there is nothing.

    Rows of one prompt stand together, `group` at a time. A sibling that reached `success` comes
    first, never the completion itself; else the row's hint (the rules of SDPO).
    """
    shown: list[str | None] = []
    for place, row in enumerate(rows):
        first = place - place % group
        good = [
            other
            for other in range(first, min(first + group, len(rows)))
            if other != place and rewards[other] >= success
        ]
        hint = row.get("hint")
        if Context.SIBLING in kinds and good:
            text = _THOUGHT.sub("", text_of(completions[good[0]])).strip()
            shown.append(f"A correct solution:\n\n{text}")
        elif Context.HINT in kinds and isinstance(hint, str) and hint.strip():
            shown.append(f"A hint:\n\n{hint.strip()}")
        else:
            shown.append(None)
    return shown


def privileged(prompt: Prompt, shown: str) -> list[dict[str, Any]]:
    """The teacher's prompt (the template of SDPO): what is shown follows the last question."""
    asked, told = messages(prompt), f"\n\n{shown}\n\nCorrectly solve the original question.\n"
    questions = [place for place, one in enumerate(asked) if one["role"] == "user"]
    if not questions:
        return [*asked, {"role": "user", "content": told.lstrip()}]
    last = questions[-1]
    said = asked[last]["content"]
    both = said + told if isinstance(said, str) else [*said, {"type": "text", "text": told}]
    return [*asked[:last], {**asked[last], "content": both}, *asked[last + 1 :]]
