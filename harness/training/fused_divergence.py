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

MOST_KEPT = 512
"""Likeliest words that a program can keep."""
_BLOCK, _WARPS = 4096, 8
_GROUPS, _ROOM = 1024, 1024
_LOG2_E = tl.constexpr(math.log2(math.e))
_LN_2 = tl.constexpr(math.log(2))
_LOWEST = tl.constexpr(-1e30)
"""Of a logit beyond the vocabulary; finite, since infinities have no difference."""
_TINY = tl.constexpr(1e-37)
_LEAST_REST = tl.constexpr(1e-7)


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
    gradient = _over(student, kind)
    _row[(len(student),)](
        student,
        gradient,
        teacher,
        weights,
        losses,
        student.shape[1],
        student.stride(0),
        gradient.stride(0),
        **_settings(beta, temperature, clip),
    )
    return losses.sum(), gradient


def write_top_k_gradient(
    student: torch.Tensor,
    teacher: torch.Tensor,
    weights: torch.Tensor,
    *,
    k: int,
    tail: bool,
    beta: float,
    temperature: float,
    clip: float | None,
    kind: torch.dtype | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `write_gradient`, over the student's `k` likeliest words, k <= MOST_KEPT and below the
    vocabulary; of equal words the first ones. `tail`: one more word stands for the rest, else the
    kept ones are renormalized."""
    losses = torch.zeros_like(weights, dtype=torch.float32)
    rows, width = student.shape
    found = torch.zeros(rows, dtype=torch.int32, device=student.device)
    room = torch.empty((rows, _ROOM), dtype=torch.int64, device=student.device)
    gradient = _over(student, kind)
    _top_k_row[(rows,)](
        student,
        gradient,
        teacher,
        weights,
        losses,
        found,
        room,
        width,
        student.stride(0),
        gradient.stride(0),
        k,
        **_settings(beta, temperature, clip),
        TAIL=tail,
        GROUPS=_GROUPS,
        ROOM=_ROOM,
    )
    return losses.sum(), gradient


def _over(logits: torch.Tensor, kind: torch.dtype | None) -> torch.Tensor:
    """The memory of `logits` as a tensor of their shape with the dtype `kind`: the beginning of
    each row."""
    if kind is None or kind == logits.dtype:
        return logits
    return logits.view(kind)[:, : logits.shape[1]]


def _settings(beta: float, temperature: float, clip: float | None) -> dict[str, Any]:
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
def _read(logits, at, inside):
    return tl.load(logits + at, mask=inside, other=_LOWEST).to(tl.float32)


@triton.jit
def _clear(logits, width, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    nothing = tl.zeros([BLOCK], logits.dtype.element_ty)
    for start in range(0, width, BLOCK):
        tl.store(logits + start + lanes, nothing, mask=start + lanes < width)


@triton.jit
def _log_sum(logits, width, scale, BLOCK: tl.constexpr):
    """log2 sum_v 2^(scale * logits_v), by a sum a lane; two words a turn, so that each lane's sum
    is put to a new largest word half as often."""
    lanes = tl.arange(0, BLOCK)
    most = tl.full([BLOCK], _LOWEST, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, 2 * BLOCK):
        at = start + lanes
        one = _read(logits, at, at < width) * scale
        two = _read(logits, at + BLOCK, at + BLOCK < width) * scale
        new = tl.maximum(most, tl.maximum(one, two))
        total = total * tl.exp2(most - new) + tl.exp2(one - new) + tl.exp2(two - new)
        most = new
    top = tl.max(most, 0)
    return top + tl.log2(tl.sum(total * tl.exp2(most - top), 0))


@triton.jit
def _parts(
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
        slope = -p * _LOG2_E
    elif REVERSE:
        part = q * (log_q - log_p)
        slope = part + q * _LOG2_E
    else:
        log_m = tl.log2(tl.maximum(beta * p + (1 - beta) * q, _TINY))
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
        _clear(gradient, width, BLOCK)
    else:
        of_q = _log_sum(student, width, scale, BLOCK)
        of_p = _log_sum(teacher, width, scale, BLOCK)
        parts = tl.zeros([BLOCK], tl.float32)
        slopes = tl.zeros([BLOCK], tl.float32)
        for start in range(0, width, BLOCK):
            at = start + lanes
            log_q = _read(student, at, at < width) * scale - of_q
            log_p = _read(teacher, at, at < width) * scale - of_p
            part, slope, q = _parts(log_q, log_p, beta, clip, FORWARD, REVERSE, CLIPPED)
            parts += tl.where(at < width, part, 0.0)
            slopes += tl.where(at < width, slope, 0.0)
        tl.store(losses + row, tl.sum(parts, 0) * weight * _LN_2)
        total = tl.sum(slopes, 0)
        factor = weight * inverse * _LN_2
        for start in range(0, width, BLOCK):
            at = start + lanes
            log_q = _read(student, at, at < width) * scale - of_q
            log_p = _read(teacher, at, at < width) * scale - of_p
            part, slope, q = _parts(log_q, log_p, beta, clip, FORWARD, REVERSE, CLIPPED)
            slopes = (slope - q * total) * factor
            tl.debug_barrier()  # no word is written over that another warp has yet to read
            tl.store(gradient + at, slopes.to(gradient.dtype.element_ty), mask=at < width)


@triton.jit
def _order(value):
    """A float32 as an integer of the same order."""
    bits = tl.where(value == 0, 0.0, value).to(tl.int32, bitcast=True)  # -0.0 equals 0.0
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _keys(logits, at, width):
    """One integer a word: the order of its logit, then of its index, the first highest."""
    order = _order(_read(logits, at, at < width)).to(tl.int64)
    return (order << 32) | (at ^ 0x7FFFFFFF).to(tl.int64)


@triton.jit
def _collect(logits, width, least, found, room, BLOCK: tl.constexpr, ROOM: tl.constexpr):
    """Put the keys from `least` on into `room`; returns how many there are."""
    lanes = tl.arange(0, BLOCK)
    for start in range(0, width, BLOCK):
        at = start + lanes
        keys = _keys(logits, at, width)
        kept = (keys >= least) & (at < width)
        slot = tl.atomic_add(found + tl.zeros([BLOCK], tl.int32), 1, mask=kept)
        tl.store(room + slot, keys, mask=kept & (slot < ROOM))
    tl.debug_barrier()
    return tl.atomic_add(found, 0)


@triton.jit
def _kth_key(logits, width, k, BLOCK: tl.constexpr):
    """The k-th largest key, by halving: reads the row 63 times."""
    lanes = tl.arange(0, BLOCK)
    key = tl.full([], -(2**62), tl.int64)
    step = tl.full([], 2**62, tl.int64)
    for _ in range(63):
        count = tl.zeros([], tl.int32)
        for start in range(0, width, BLOCK):
            at = start + lanes
            above = (_keys(logits, at, width) >= key + step) & (at < width)
            count += tl.sum(above.to(tl.int32), 0)
        key = tl.where(count >= k, key + step, key)
        step = step >> 1
    return key


@triton.jit
def _largest_keys(
    logits,
    width,
    k,
    found,
    room,
    BLOCK: tl.constexpr,
    GROUPS: tl.constexpr,
    ROOM: tl.constexpr,
):
    """The ROOM largest keys, or fewer, but at least k; sorted, the largest first."""
    # The k-th of the largest words of many groups is no more than the k-th of all words, and
    # seldom much less.
    groups = tl.arange(0, GROUPS)
    most = tl.full([GROUPS], _LOWEST, tl.float32)
    for start in range(0, width, GROUPS):
        most = tl.maximum(most, _read(logits, start + groups, start + groups < width))
    ranked = tl.sort(_order(most), descending=True)
    least = tl.sum(tl.where(groups == k - 1, ranked, 0), 0).to(tl.int64) << 32
    many = _collect(logits, width, least, found, room, BLOCK, ROOM)
    if many > ROOM:  # nearly all are equal
        least = _kth_key(logits, width, k, BLOCK)
        tl.atomic_xchg(found, 0)
        tl.debug_barrier()
        many = _collect(logits, width, least, found, room, BLOCK, ROOM)
    slots = tl.arange(0, ROOM)
    keys = tl.load(room + slots, mask=slots < many, other=-(2**62))
    return tl.sort(keys, descending=True)


@triton.jit
def _scale_others(student, gradient, width, scale, of_q, factor, BLOCK: tl.constexpr):
    """Write `factor` Q(v) over every word."""
    lanes = tl.arange(0, BLOCK)
    for start in range(0, width, BLOCK):
        at = start + lanes
        slopes = tl.exp2(_read(student, at, at < width) * scale - of_q) * factor
        tl.debug_barrier()  # as in _row
        tl.store(gradient + at, slopes.to(gradient.dtype.element_ty), mask=at < width)


@triton.jit
def _inside(values, inside):
    return tl.sum(tl.where(inside, values, 0.0), 0)


@triton.jit
def _top_k_row(
    student,
    gradient,
    teacher,
    weights,
    losses,
    found,
    room,
    width,
    student_stride,
    gradient_stride,
    k,
    scale,
    inverse,
    beta,
    clip,
    FORWARD: tl.constexpr,
    REVERSE: tl.constexpr,
    CLIPPED: tl.constexpr,
    BLOCK: tl.constexpr,
    TAIL: tl.constexpr,
    GROUPS: tl.constexpr,
    ROOM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    student += row * student_stride
    gradient += row * gradient_stride
    teacher += row * student_stride
    found += row
    weight = tl.load(weights + row)
    if weight == 0:
        _clear(gradient, width, BLOCK)
    else:
        of_q, of_p = _log_sum(student, width, scale, BLOCK), _log_sum(teacher, width, scale, BLOCK)
        keys = _largest_keys(student, width, k, found, room + row * ROOM, BLOCK, GROUPS, ROOM)
        inside = tl.arange(0, ROOM) < k
        at = (keys & 0xFFFFFFFF) ^ 0x7FFFFFFF
        log_q = _read(student, at, inside) * scale - of_q
        log_p = _read(teacher, at, inside) * scale - of_p
        mass_q, mass_p = tl.sum(tl.exp2(log_q), 0), tl.sum(tl.exp2(log_p), 0)
        if not TAIL:
            log_q -= tl.log2(mass_q)
            log_p -= tl.log2(mass_p)
        part, slope, q = _parts(log_q, log_p, beta, clip, FORWARD, REVERSE, CLIPPED)
        loss, total = _inside(part, inside), _inside(slope, inside)
        factor = weight * inverse * _LN_2
        tl.debug_barrier()  # the kept words are read before they are written over
        if TAIL:
            rest_q = tl.log2(tl.maximum(1 - mass_q, _LEAST_REST))
            rest_p = tl.log2(tl.maximum(1 - mass_p, _LEAST_REST))
            more, rest, mass = _parts(rest_q, rest_p, beta, clip, FORWARD, REVERSE, CLIPPED)
            loss, total = loss + more, total + rest
            others = (rest / mass - total) * factor
            _scale_others(student, gradient, width, scale, of_q, others, BLOCK)
        else:
            _clear(gradient, width, BLOCK)
        tl.debug_barrier()
        slopes = (slope - q * total) * factor
        tl.store(gradient + at, slopes.to(gradient.dtype.element_ty), mask=inside)
        tl.store(losses + row, loss * weight * _LN_2)
