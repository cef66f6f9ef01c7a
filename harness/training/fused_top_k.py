"""As fused_divergence.py, over the student's likeliest words.

Needs Triton, which comes with PyTorch for CUDA.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
# Triton compiles the functions below; their types are not Python's.

import torch
import triton
import triton.language as tl

from harness.training.fused_divergence import (
    LN_2,
    LOG2_E,
    TINY,
    clear_row,
    from_end,
    lay_over,
    log_sums,
    read_logits,
    settings,
)

MOST_KEPT = 512
"""Likeliest words that a program can keep."""
_GROUPS, _ROOM = 1024, 1024
_LEAST_REST = tl.constexpr(1e-7)


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
    gradient = lay_over(student, kind)
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
        **settings(beta, temperature, clip),
        TAIL=tail,
        GROUPS=_GROUPS,
        ROOM=_ROOM,
    )
    return losses.sum(), gradient


@triton.jit
def _order(value):
    """A float32 as an integer of the same order."""
    bits = tl.where(value == 0, 0.0, value).to(tl.int32, bitcast=True)  # -0.0 equals 0.0
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _keys(logits, at, width):
    """One integer a word: the order of its logit, then of its index, the first highest."""
    order = _order(read_logits(logits, at, at < width)).to(tl.int64)
    return (order << 32) | (at ^ 0x7FFFFFFF).to(tl.int64)


@triton.jit
def _collect(logits, width, least, found, room, BLOCK: tl.constexpr, ROOM: tl.constexpr):
    """Put the keys from `least` on into `room`; returns how many there are."""
    lanes = tl.arange(0, BLOCK)
    for step in range(0, width, BLOCK):
        at = from_end(step, width, BLOCK) + lanes
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
    most,
    width,
    k,
    found,
    room,
    BLOCK: tl.constexpr,
    GROUPS: tl.constexpr,
    ROOM: tl.constexpr,
):
    """The ROOM largest keys, or fewer, but at least k; sorted, the largest first. `most`: the
    largest logit of each lane."""
    # The k-th of the largest words of many groups is no more than the k-th of all words, and
    # seldom much less.
    groups = tl.arange(0, GROUPS)
    grouped = tl.max(tl.reshape(most, [GROUPS, BLOCK // GROUPS]), 1)
    ranked = tl.sort(_order(grouped), descending=True)
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
        slopes = tl.exp2(read_logits(student, at, at < width) * scale - of_q) * factor
        tl.debug_barrier()  # as in _row
        tl.store(gradient + at, slopes.to(gradient.dtype.element_ty), mask=at < width)


@triton.jit
def _log_ratio(more, base, plain):
    """log2(1 + more / base). Near 0 as 2 artanh(x / (2 + x)) / ln 2, elsewhere `plain`: the
    difference of two logarithms, which near 0 is nothing but their rounding."""
    ratio = more / base
    z = ratio / (2 + ratio)
    square = z * z
    series = 1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9)))
    near = 2 * LOG2_E * z * (1 + square * series)
    return tl.where(tl.abs(ratio) < 0.25, near, plain)


@triton.jit
def _few_parts(
    q,
    p,
    more,
    beta,
    clip,
    FORWARD: tl.constexpr,
    REVERSE: tl.constexpr,
    CLIPPED: tl.constexpr,
):
    """As `word_parts`, exact where P and Q are nearly equal: few words do not average their
    rounding away. `more`: P(v) - Q(v)."""
    log_q, log_p = tl.log2(tl.maximum(q, TINY)), tl.log2(tl.maximum(p, TINY))
    if FORWARD:
        part = p * _log_ratio(more, q, log_p - log_q)
        slope = -p * LOG2_E
    elif REVERSE:
        part = q * _log_ratio(-more, p, log_q - log_p)
        slope = part + q * LOG2_E
    else:
        mixed = tl.maximum(beta * p + (1 - beta) * q, TINY)
        log_m = tl.log2(mixed)
        slope = (1 - beta) * q * _log_ratio(-beta * more, mixed, log_q - log_m)
        part = beta * p * _log_ratio((1 - beta) * more, mixed, log_p - log_m) + slope
    if CLIPPED:
        slope = tl.where(part <= clip, slope, 0.0)
        part = tl.minimum(part, clip)
    return part, slope


@triton.jit
def _tail_parts(
    mass_q,
    mass_p,
    total,
    beta,
    clip,
    FORWARD: tl.constexpr,
    REVERSE: tl.constexpr,
    CLIPPED: tl.constexpr,
):
    """What the rest adds, its slope, and the slope of each of its words over Q(v); `total`: of the
    kept words' slopes."""
    mass_q = tl.minimum(mass_q, 1 - _LEAST_REST)
    mass_p = tl.minimum(mass_p, 1 - _LEAST_REST)
    q, more = 1 - mass_q, mass_q - mass_p
    part, slope = _few_parts(q, 1 - mass_p, more, beta, clip, FORWARD, REVERSE, CLIPPED)
    return part, slope, slope / q - (total + slope)


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
    found, room = found + row, room + row * ROOM
    weight = tl.load(weights + row)
    if weight == 0:
        clear_row(gradient, width, BLOCK)
    else:
        of_q, of_p, most = log_sums(student, teacher, width, scale, BLOCK)
        keys = _largest_keys(student, most, width, k, found, room, BLOCK, GROUPS, ROOM)
        inside = tl.arange(0, ROOM) < k
        at = (keys & 0xFFFFFFFF) ^ 0x7FFFFFFF
        log_q = read_logits(student, at, inside) * scale - of_q
        log_p = read_logits(teacher, at, inside) * scale - of_p
        mass_q, mass_p = tl.sum(tl.exp2(log_q), 0), tl.sum(tl.exp2(log_p), 0)
        if not TAIL:
            log_q -= tl.log2(mass_q)
            log_p -= tl.log2(mass_p)
        q, p = tl.exp2(log_q), tl.exp2(log_p)
        part, slope = _few_parts(q, p, p - q, beta, clip, FORWARD, REVERSE, CLIPPED)
        loss, total = _inside(part, inside), _inside(slope, inside)
        factor = weight * inverse * LN_2
        tl.debug_barrier()  # the kept words are read before they are written over
        if TAIL:
            more, rest, others = _tail_parts(
                mass_q, mass_p, total, beta, clip, FORWARD, REVERSE, CLIPPED
            )
            loss, total = loss + more, total + rest
            _scale_others(student, gradient, width, scale, of_q, others * factor, BLOCK)
        else:
            clear_row(gradient, width, BLOCK)
        tl.debug_barrier()
        slopes = (slope - q * total) * factor
        tl.store(gradient + at, slopes.to(gradient.dtype.element_ty), mask=inside)
        tl.store(losses + row, loss * weight * LN_2)
