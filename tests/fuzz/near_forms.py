"""Inputs that nearly have a form: each key with its right value or another, whole files torn, glued
and damaged."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.plan_text import plan_text

ODD = [
    '"\\ud800"',
    '"a\\0b"',
    "9" * 399,
    "1e400",
    "-.inf",
    ".nan",
    "[" * 60,
    "&a 1",
    "*a",
    "!!set {}",
    "TODO",
    "~",
]
EXTREME = st.sampled_from(
    [0, -1, 2**63, -(2**63), 10**40, 1e308, float("nan"), float("inf"), "NaN", "\ud800", "\0", ""]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | EXTREME
ANY = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
BASE = plan_text(
    "n",
    "tell a from b",
    tiers="must: 0.5",
    budget="experiments: 8, run_minutes: 5, total_minutes: 40",
)
PLAN_LINES = BASE.splitlines()


def of(**usual: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of the keys, of which most have a usual value."""
    return st.fixed_dictionaries(
        {}, optional={key: st.sampled_from(values) | ANY for key, values in usual.items()}
    )


def written(rows: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[bytes]:
    return torn(
        st.lists(rows, max_size=8).map(
            lambda many: b"".join(json.dumps(row).encode() + b"\n" for row in many)
        )
    )


@st.composite
def torn(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """`whole` as it is, or with bytes cut out of it, put into it or said twice."""
    data = draw(whole)
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        noise = draw(
            st.sampled_from([b"", b"\0", b"\n", b"\r", b"{", b'"', b"\xff\xfe", b"\xef\xbb\xbf"])
            | st.binary(max_size=4)
        )
        data = data[:start] + noise + data[end if draw(st.booleans()) else start :]
    return data


@st.composite
def _plans(draw: st.DrawFn) -> bytes:
    """An ordinary plan in which the values of up to three lines are others."""
    changed = list(PLAN_LINES)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(1, len(changed) - 1))
        value = draw(st.sampled_from(ODD) | SCALARS.map(str) | ANY.map(json.dumps))
        changed[at] = f"{changed[at].partition(':')[0]}: {value}"
    return "\n".join(changed).encode("utf-8", "surrogatepass")


NAMES = st.sampled_from(["accuracy", "val/loss", '"\\ud800"', "'a: b'"]) | st.text(max_size=8).map(
    json.dumps
)
NUMBERS = (
    st.floats().map(repr)
    | st.integers().map(str)
    | st.sampled_from(["0.90", ".5", "1e-999", "93%", *ODD])
)
_results = st.builds(
    lambda claims, short, body: (
        "---\nclaims:\n"
        + "".join(f"  {name}: {value}\n" for name, value in claims)
        + f"shortfalls: {json.dumps(short)}\n---\n{body}"
    ).encode("utf-8", "surrogatepass"),
    st.lists(st.tuples(NAMES, NUMBERS), max_size=4),
    st.lists(st.text(max_size=10), max_size=3) | ANY,
    st.text(max_size=20),
)
COUNTS = [0, 1, 2, 3]
VALUES = st.dictionaries(
    st.sampled_from(["loss", "val/loss", "epoch", "event"]), SCALARS, max_size=3
)
_rows = of(
    event=["epoch", "start", "attempt", "end"],
    epoch=COUNTS,
    step=COUNTS,
    resumed_at=COUNTS,
    loss=[0.1, "nan"],
).flatmap(lambda row: st.just(row) | VALUES.map(lambda inner: {**row, "metrics": inner}))
_status = of(
    run=["exp-0001/run-01"],
    status=["running"],
    epoch=COUNTS,
    step=COUNTS,
    rows=COUNTS,
    learning_rate=[0.1, "NaN"],
    metrics=[{}, {"loss": 0.1}, {"loss": "NaN"}, {"loss": [1]}],
    checkpoint=[None, {}],
    error=[None, "x"],
    seed=COUNTS,
).map(lambda value: json.dumps({"run": "a", "status": "running", **value}).encode())
BLOCKS = of(
    type=["text", "tool_use", "tool_result"],
    id=["t1", "t2"],
    name=["Bash", "Agent"],
    tool_use_id=["t1"],
    text=["x"],
    input=[{}, {"prompt": "p"}],
    content=["x", [{"type": "text", "text": "y"}]],
    is_error=[True],
)
_messages = st.lists(BLOCKS, max_size=3).flatmap(
    lambda blocks: of(
        id=["m1", "m2"],
        content=[blocks, "text"],
        model=["<synthetic>", "m"],
        usage=[{"input_tokens": 1}],
    )
)
_turns = of(
    type=["assistant", "user", "system", "summary"],
    uuid=["u1", "u2", "u3"],
    parentUuid=["u1"],
    sessionId=["s"],
    subtype=["compact_boundary"],
    isSidechain=[True, False],
    agentId=["a1"],
    toolUseResult=[{"agentId": "a1"}],
).flatmap(lambda row: _messages.map(lambda said: {**row, "message": said}) | st.just(row))
ENTRY = of(
    type=["command"], command=["python3", "x"], args=[[".claude/hooks/harness/x.py"], ["y"]]
)
_groups = st.lists(
    of(matcher=["*"]).flatmap(
        lambda group: st.lists(ENTRY, max_size=3).map(lambda e: {**group, "hooks": e})
    ),
    max_size=3,
)
_claude = st.builds(
    lambda rest, hooks, indent: json.dumps({**rest, "hooks": hooks}, indent=indent).encode(),
    st.dictionaries(st.text(max_size=5), ANY, max_size=3),
    st.dictionaries(st.sampled_from(["PreToolUse", "Stop", "X"]), _groups, max_size=3) | ANY,
    st.sampled_from([None, 2, "\t"]),
)
_toml = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "interpreter",
                "memory_dir",
                "readable",
                "known_checkpoints",
                "hooks",
                "other",
                "project_id",
            ]
        ),
        st.sampled_from(
            [
                '"x"',
                '"../x"',
                '"a\\u0000b"',
                '["/a"]',
                '["/"]',
                '["/a\\u0000"]',
                "[" * 3000,
                "9" * 5000,
                '"driver"',
            ]
        )
        | ANY.map(json.dumps),
    ),
    max_size=4,
).map(
    lambda pairs: ('project_id = "abc"\n' + "".join(f"{k} = {v}\n" for k, v in pairs)).encode(
        "utf-8", "surrogatepass"
    )
)

SHAPES: dict[str, st.SearchStrategy[bytes]] = {
    "plan": torn(_plans()),
    "result": torn(_results),
    "metrics": written(_rows),
    "lines": written(_rows),
    "status": torn(_status),
    "transcript": written(_turns),
    "claude_settings": torn(_claude),
    "config": torn(_toml),
}
