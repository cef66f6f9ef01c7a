"""The composed trainer with answers that follow from step and row, so that one process and several
learn from the same ones."""

import random
import sys
from typing import Any

from harness.training.composed_trainer import ComposedTrainer
from harness.training.trainers.composed import build
from harness.training.trainers.program import run


def answers(self: ComposedTrainer, prompts: Any, *_more: Any, **_named: Any) -> tuple[Any, None]:
    first = self.accelerator.process_index * len(prompts)
    made = []
    for row in range(first, first + len(prompts)):
        draw = random.Random(f"{self.state.global_step} {row}")
        made.append([draw.randrange(60, 90) for _ in range(draw.randrange(2, 8))])
    return made, None


if __name__ == "__main__":
    ComposedTrainer._generate_single_turn = answers
    sys.exit(run("composed", "composed", ("prompt",), build))
