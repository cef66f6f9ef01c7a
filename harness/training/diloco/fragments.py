"""The parts of a model that are synced one by one."""

import torch

from harness.errors import UsageError


class Fragment(torch.nn.Module):
    """Holds parameters of another module under their own names, dots as `__`."""

    def __init__(self, named: list[tuple[str, torch.nn.Parameter]]) -> None:
        super().__init__()
        for name, parameter in named:
            self.register_parameter(name.replace(".", "__"), parameter)


def fragments_of(model: torch.nn.Module, count: int) -> list[Fragment]:
    """The model's trainable parameters, in its order, in `count` parts of about equal size; each is
    in one part, a shared one too. Raises UsageError when there are fewer parameters."""
    named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    if len(named) < count:
        raise UsageError(
            f"distributed.fragments is {count}; the model has {len(named)} trainable parameters.",
            hint=f"Set it to {max(1, len(named))} at most.",
            code="distributed_invalid",
        )
    total = sum(parameter.numel() for _, parameter in named)
    parts: list[list[tuple[str, torch.nn.Parameter]]] = [[]]
    before = 0
    for place, (name, parameter) in enumerate(named):
        missing = count - len(parts)
        full = before >= total * len(parts) / count
        if parts[-1] and missing and (full or len(named) - place <= missing):
            parts.append([])
        parts[-1].append((name, parameter))
        before += parameter.numel()
    return [Fragment(part) for part in parts]
