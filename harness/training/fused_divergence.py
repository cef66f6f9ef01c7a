"""`Divergence` of logits on a GPU without a tensor beside them: one Triton program a position reads
both rows of logits, adds up the loss and writes the gradient over the student's. Logits are float32
as a rule, the gradient what the head's matrix product takes: bfloat16 in the first half of the row.

The formulas are those of harness/training/divergences.py, in base 2 inside. Sums are in float32.
Needs Triton, which comes with PyTorch for CUDA.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
# Triton compiles the functions below; their types are not Python's.

import math
from typing import Any

import torch
import triton
import triton.language as tl

_BLOCK, _WARPS = 8192, 32
LOG2_E = tl.constexpr(math.log2(math.e))
LN_2 = tl.constexpr(math.log(2))
_LOWEST = tl.constexpr(-1e30)
"""Of a logit beyond the vocabulary; finite, since infinities have no difference."""
TINY = tl.constexpr(1e-37)


def write_gradient(
    student: torch.Tensor,
    teacher: torch.Tensor,
    weights: torch.Tensor,
    *,
    beta: float,
    temperature: float,
    clip: float | None,
    kind: torch.dtype | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(sum_t weights_t JSD_beta(P_t, Q_t), its gradient in `student`), shapes () and (tokens,
    vocabulary).

    `student` and `teacher` (tokens, vocabulary) are contiguous logits of one floating dtype, on one
    GPU; `weights` (tokens,) float32. A position of weight 0 is not read. The gradient has the dtype
    `kind`, no wider than the logits (by default theirs), and lies in their memory.
    """
    losses = torch.zeros_like(weights, dtype=torch.float32)
    gradient = lay_over(student, kind)
    _row[(len(student),)](
        student,
        gradient,
        teacher,
        weights,
        losses,
        student.shape[1],
        student.stride(0),
        gradient.stride(0),
        **settings(beta, temperature, clip),
    )
    return losses.sum(), gradient


def lay_over(logits: torch.Tensor, kind: torch.dtype | None) -> torch.Tensor:
    """The memory of `logits` as a tensor of their shape with the dtype `kind`: the beginning of
    each row."""
    if kind is None or kind == logits.dtype:
        return logits
    return logits.view(kind)[:, : logits.shape[1]]


def settings(beta: float, temperature: float, clip: float | None) -> dict[str, Any]:
    return {
        "scale": math.log2(math.e) / temperature,
        "inverse": 1 / temperature,
        "beta": beta,
        "clip": (math.inf if clip is None else clip) * math.log2(math.e),
        "FORWARD": beta == 0,
        "REVERSE": beta == 1,
        "CLIPPED": clip is not None,
        "BLOCK": _BLOCK,
        "num_warps": _WARPS,
    }


@triton.jit
def read_logits(logits, at, inside):
    return tl.load(logits + at, mask=inside, other=_LOWEST).to(tl.float32)


@triton.jit
def clear_row(logits, width, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    nothing = tl.zeros([BLOCK], logits.dtype.element_ty)
    for start in range(0, width, BLOCK):
        tl.store(logits + start + lanes, nothing, mask=start + lanes < width)


@triton.jit
def _add(most, total, one, two, scale):
    """(largest word, sum of 2^(scale * (word - largest))) of each lane with two words more, so that
    a sum is put to a new largest word half as often."""
    new = tl.maximum(most, tl.maximum(one, two))
    total = total * tl.exp2((most - new) * scale)
    return new, total + tl.exp2((one - new) * scale) + tl.exp2((two - new) * scale)


@triton.jit
def _log_total(most, total, scale):
    top = tl.max(most, 0)
    return top * scale + tl.log2(tl.sum(total * tl.exp2((most - top) * scale), 0))


@triton.jit
def log_sums(student, teacher, width, scale, BLOCK: tl.constexpr):
    """log2 sum_v 2^(scale * logits_v) of both rows, and the student's largest logit of each lane:
    of the words that are a multiple of BLOCK apart."""
    lanes = tl.arange(0, BLOCK)
    most_q = tl.full([BLOCK], _LOWEST, tl.float32)
    most_p = tl.full([BLOCK], _LOWEST, tl.float32)
    total_q = tl.zeros([BLOCK], tl.float32)
    total_p = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, 2 * BLOCK):
        at = start + lanes
        after = at + BLOCK
        one, two = read_logits(student, at, at < width), read_logits(student, after, after < width)
        three, four = (
            read_logits(teacher, at, at < width),
            read_logits(teacher, after, after < width),
        )
        most_q, total_q = _add(most_q, total_q, one, two, scale)
        most_p, total_p = _add(most_p, total_p, three, four, scale)
    of_q = _log_total(most_q, total_q, scale)
    return of_q, _log_total(most_p, total_p, scale), most_q


@triton.jit
def from_end(step, width, BLOCK: tl.constexpr):
    """Where the block that is `step` words before the last one begins. A pass from the end finds in
    the cache what the one before it read last."""
    return (width - 1) // BLOCK * BLOCK - step


@triton.jit
def word_parts(
    log_q,
    log_p,
    beta,
    clip,
    FORWARD: tl.constexpr,
    REVERSE: tl.constexpr,
    CLIPPED: tl.constexpr,
):
    """(f_v, g_v, Q(v)): what a word adds and its slope in log Q(v), both divided by ln 2."""
    q = tl.exp2(log_q)
    p = tl.exp2(log_p)
    if FORWARD:
        part = p * (log_p - log_q)
        slope = -p * LOG2_E
    elif REVERSE:
        part = q * (log_q - log_p)
        slope = part + q * LOG2_E
    else:
        log_m = tl.log2(tl.maximum(beta * p + (1 - beta) * q, TINY))
        slope = (1 - beta) * q * (log_q - log_m)
        part = beta * p * (log_p - log_m) + slope
    if CLIPPED:
        slope = tl.where(part <= clip, slope, 0.0)
        part = tl.minimum(part, clip)
    return part, slope, q


@triton.jit
def _row(
    student,
    gradient,
    teacher,
    weights,
    losses,
    width,
    student_stride,
    gradient_stride,
    scale,
    inverse,
    beta,
    clip,
    FORWARD: tl.constexpr,
    REVERSE: tl.constexpr,
    CLIPPED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    student += row * student_stride
    gradient += row * gradient_stride
    teacher += row * student_stride
    weight = tl.load(weights + row)
    lanes = tl.arange(0, BLOCK)
    if weight == 0:
        clear_row(gradient, width, BLOCK)
    else:
        of_q, of_p, _ = log_sums(student, teacher, width, scale, BLOCK)
        sums = tl.zeros([BLOCK], tl.float32)
        total = -LOG2_E
        if not FORWARD or CLIPPED:
            for step in range(0, width, BLOCK):
                at = from_end(step, width, BLOCK) + lanes
                log_q = read_logits(student, at, at < width) * scale - of_q
                log_p = read_logits(teacher, at, at < width) * scale - of_p
                _, slope, _ = word_parts(log_q, log_p, beta, clip, FORWARD, REVERSE, CLIPPED)
                sums += tl.where(at < width, slope, 0.0)
            total = tl.sum(sums, 0)
        parts = tl.zeros([BLOCK], tl.float32)
        factor = weight * inverse * LN_2
        for start in range(0, width, BLOCK):
            at = start + lanes
            log_q = read_logits(student, at, at < width) * scale - of_q
            log_p = read_logits(teacher, at, at < width) * scale - of_p
            part, slope, q = word_parts(log_q, log_p, beta, clip, FORWARD, REVERSE, CLIPPED)
            parts += tl.where(at < width, part, 0.0)
            slopes = (slope - q * total) * factor
            tl.debug_barrier()  # no word is written over that another warp has yet to read
            tl.store(gradient + at, slopes.to(gradient.dtype.element_ty), mask=at < width)
        tl.store(losses + row, tl.sum(parts, 0) * weight * LN_2)
