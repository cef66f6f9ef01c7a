"""Full-vocabulary divergences from hidden states, forward and backward, on a GPU: time as a ratio
to the matrix products that nobody can spare, memory beside the head's gradient, and the difference
to float32. 4,096 tokens x 151,936 words x 2,048 wide, bfloat16; the median of eight.

- four products: student's and teacher's logits, the gradients of hidden states and of the head.
  A frozen head needs the first three.
- float32: the same inputs, in float32 throughout, over 512 of the tokens. Ours rounds to bfloat16
  only the gradient in the logits and what comes of it.

    python bench/divergence.py [--record]   # --record writes docs/evidence/divergence-gpu.json

Where TRL is installed its own function runs beside ours.
"""

import statistics
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from _record import record, wants_record

sys.path.append(str(Path(__file__).resolve().parents[1]))
from harness.domain.composition import Objective
from harness.training.divergences import Divergence, distillation_loss

TOKENS, WORDS, WIDTH, CHECKED, CHUNK, REPEATS = 4096, 151_936, 2048, 512, 1366, 8
GIB = 2**30
FORMS = {
    "beta 0": Divergence(beta=0.0),
    "beta 0.5": Divergence(),
    "beta 1": Divergence(beta=1.0),
    "temperature 0.9": Divergence(temperature=0.9),
    "clip": Divergence(clip=0.001),
    "mask": Divergence(),
    "top-100 and tail": Divergence(objective=Objective.TOP_K),
    "top-100": Divergence(objective=Objective.TOP_K, tail=False),
    "sampled": Divergence(objective=Objective.SAMPLED),
}
Pair = tuple[torch.Tensor, torch.Tensor]


def measured(*works: Callable[[], Any]) -> list[tuple[float, float]]:
    """(median milliseconds, GiB above what was held before) of each, in turns: a card that grows
    warm slows all of them alike."""
    times: list[list[float]] = [[] for _ in works]
    most = [0] * len(works)
    for turn in range(REPEATS + 2):
        for index, work in enumerate(works):
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            start, end = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            work()
            end.record()
            torch.cuda.synchronize()
            if turn >= 2:  # the first ones compile and warm the caches
                times[index].append(start.elapsed_time(end))
                most[index] = max(most[index], torch.cuda.max_memory_allocated() - before)
    return [(statistics.median(each), held / GIB) for each, held in zip(times, most, strict=True)]


def inputs() -> tuple[Pair, Pair]:
    torch.manual_seed(0)
    kind: dict[str, Any] = {"device": "cuda", "dtype": torch.bfloat16}
    student = torch.randn(TOKENS, WIDTH, **kind) * 0.5
    teacher = student + torch.randn(TOKENS, WIDTH, **kind) * 0.1
    head = torch.randn(WORDS, WIDTH, **kind) * 0.04
    return (student, head), (teacher, head + torch.randn(WORDS, WIDTH, **kind) * 0.005)


def products(student: Pair, teacher: Pair, *, head: bool) -> Callable[[], None]:
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    out = torch.empty(CHUNK, WORDS, **kind)  # type: ignore[call-overload] # a table of settings
    gradient = torch.randn_like(out) * 1e-4
    of_hidden, of_head = torch.empty_like(student[0]), torch.empty_like(student[1])

    def work() -> None:
        for start in range(0, TOKENS, CHUNK):
            here = slice(start, min(TOKENS, start + CHUNK))
            rows = here.stop - start
            for hidden, weight in (student, teacher):
                torch.mm(hidden[here], weight.T, out=out[:rows])
            torch.mm(gradient[:rows], student[1], out=of_hidden[here])
            if head:
                torch.mm(gradient[:rows].T, student[0][here], out=of_head)

    return work


def step(
    form: Divergence, student: Pair, teacher: Pair, weights: torch.Tensor, head: bool
) -> Pair:
    tokens = torch.zeros(len(weights), dtype=torch.long, device="cuda")
    hidden = student[0].detach().requires_grad_()
    weight = student[1].detach().requires_grad_(head)
    loss = distillation_loss((hidden, weight), teacher, tokens, weights, form)
    loss.backward()
    return loss.detach(), hidden.grad  # type: ignore[return-value] # backward made it


def differences(
    form: Divergence, student: Pair, teacher: Pair, weights: torch.Tensor
) -> dict[str, float]:
    """Relative, of loss and gradients, to float32 over CHECKED tokens."""
    tokens = torch.zeros(CHECKED, dtype=torch.long, device="cuda")
    found = []
    for wide in (True, False):
        hidden, head = (one.detach() for one in (student[0][:CHECKED], student[1]))
        others = teacher[0][:CHECKED], teacher[1]
        if wide:
            hidden, head, others = hidden.float(), head.float(), tuple(o.float() for o in others)
        hidden.requires_grad_()
        head.requires_grad_()
        if wide:
            values = form.values(hidden @ head.T, others[0] @ others[1].T, tokens)
            loss = (values * weights[:CHECKED]).sum()
        else:
            loss = distillation_loss((hidden, head), others, tokens, weights[:CHECKED], form)
        loss.backward()
        found.append((loss.detach(), hidden.grad, head.grad))
    names = ("loss", "hidden gradient", "head gradient")
    return {
        name: float((ours.float() - exact).norm() / exact.norm())
        for name, exact, ours in zip(names, *found, strict=True)
    }


def of_trl(student: Pair, teacher: Pair) -> Callable[[], None] | None:
    if find_spec("trl") is None:
        return None
    from trl.experimental.gkd.gkd_trainer import GKDTrainer

    def work() -> None:
        hidden, head = (one.detach().requires_grad_() for one in student)
        both = (hidden @ head.T)[None], (teacher[0] @ teacher[1].T)[None]
        labels = torch.zeros(1, TOKENS, dtype=torch.long, device="cuda")
        GKDTrainer.generalized_jsd_loss(*both, labels=labels, beta=0.5).backward()

    return work


def main() -> int:
    if not torch.cuda.is_available():
        print("No CUDA GPU is here: nothing was measured.")
        return 0
    figures: dict[str, float | str] = {"card": torch.cuda.get_device_name(0)}
    student, teacher = inputs()
    of_head = student[1].nbytes / GIB
    four = products(student, teacher, head=True)
    three = products(student, teacher, head=False)
    (most, _), (fewer, _) = measured(four, three)
    print(f"{figures['card']}: four products {most:.1f} ms, three {fewer:.1f} ms")
    figures |= {"four products ms": round(most, 2), "three products ms": round(fewer, 2)}
    trl = of_trl(student, teacher)
    if trl is not None:
        (base, _), (ms, held) = measured(four, trl)
        figures |= {"TRL ratio": round(ms / base, 2), "TRL GiB": round(held - of_head, 2)}
        print(f"TRL: {ms / base:.2f}x, {held - of_head:.2f} GiB beside the head's gradient")
    for name, form in FORMS.items():
        weights = torch.full((TOKENS,), 1 / TOKENS, device="cuda")
        if name == "mask":
            weights *= torch.rand(TOKENS, device="cuda") < 0.7

        def learning(
            head: bool, form: Divergence = form, weights: torch.Tensor = weights
        ) -> Callable[[], Pair]:
            return lambda: step(form, student, teacher, weights, head)

        (base, _), (less, _), (ms, held), (frozen, _) = measured(
            four, three, learning(True), learning(False)
        )
        told = {
            "ratio": round(ms / base, 2),
            "GiB": round(held - of_head, 2),
            "frozen ratio to four": round(frozen / base, 2),
            "frozen ratio to three": round(frozen / less, 2),
            **{
                f"{part} percent": round(100 * value, 3)
                for part, value in differences(form, student, teacher, weights).items()
            },
        }
        print(f"{name:17s}" + "  ".join(f"{key} {value}" for key, value in told.items()))
        figures |= {f"{name}: {key}": value for key, value in told.items()}
    if wants_record():
        record("divergence-gpu", "python bench/divergence.py --record", figures, seed=0)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
