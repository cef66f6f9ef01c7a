"""Whatever comes in: no crash, and no silent allow for a command that writes to a protected
file."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policy_project import CONTROL, FROZEN, SampleProject

from harness.guard.policy.decide import decide
from harness.guard.policy.shell_reader import read_script

QUICK = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SHELL = st.text(
    alphabet=st.sampled_from(list("ab ./$'\"`\\(){}<>|&;#\n\t*?[]=-EOF0!~")), max_size=60
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)

FORMS = (
    "echo x > {}",
    "echo x >> {}",
    "echo x 2>{}",
    "echo x | tee {}",
    "cp a {}",
    "mv {} b",
    "ln -sf a {}",
    "rm -f {}",
    "touch {}",
    "chmod 777 {}",
    "truncate -s0 {}",
    "dd if=a of={}",
    "sed -i s/a/b/ {}",
    "git checkout -- {}",
    "git restore {}",
    "F={}; rm $F",
    "for f in {}; do rm $f; done",
)
WRAPPERS = (
    "{}",
    "({})",
    "true && {}",
    "false; {} &",
    "if true; then {}; fi",
    "echo $({})",
    'echo "`{}`"',
    "{{ {}; }}",
    "env A=1 bash -c '{}'",
    'nohup sh -c "{}"',
    "ls | {}",
    "# note\n{}\n",
    "cat <<EOF\nnote\nEOF\n{}",
    "timeout 5 bash <<'EOF'\n{}\nEOF",
    "eval '{}'",
    "xargs -n1 bash -c '{}'",
)
NOISE = st.sampled_from(
    ["", "; ls", " && echo 'done'", " # plan", "\n", " || true", '; echo "$HOME"', " | cat"]
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> SampleProject:
    return SampleProject(tmp_path_factory.mktemp("fuzz"))


@given(text=SHELL)
@QUICK
def test_reader_never_raises(text):
    script = read_script(text)
    assert isinstance(script.problem, str)


@given(text=st.text(max_size=80))
@QUICK
def test_reader_takes_any_text(text):
    assert isinstance(read_script(text).problem, str | None)


@given(text=SHELL)
@QUICK
def test_any_command_gets_an_answer(shared, text):
    assert shared.bash(text)["permission"] in ("allow", "deny", None)


@given(
    call=JSON,
    tool=st.sampled_from(
        ["Write", "Edit", "Bash", "Read", "mcp__x__y", "mcp__harness__open_experiment", "Other"]
    ),
)
@QUICK
def test_any_payload_gets_an_answer(shared, call, tool):
    for payload in (call, {"tool_name": tool, "tool_input": call, "cwd": str(shared.root)}):
        assert decide(payload, shared.snapshot)["permission"] in ("allow", "deny", None)


@given(snapshot=JSON, data=st.data())
@QUICK
def test_any_snapshot_gets_a_denial_or_is_whole(shared, snapshot, data):
    call = {"tool_name": "Write", "tool_input": {"file_path": "plan.md"}, "cwd": str(shared.root)}
    assert decide(call, snapshot)["permission"] == "deny"
    key = data.draw(st.sampled_from(sorted(shared.snapshot)))
    assert decide(call, {**shared.snapshot, key: snapshot})["permission"] in (
        "allow",
        "deny",
        None,
    )


def spelled(draw, root: Path, name: str) -> str:
    how = draw(
        st.sampled_from(["plain", "dot", "around", "absolute", "upper", "slashes", "wildcard"])
    )
    folder, _, base = name.rpartition("/")
    return {
        "plain": name,
        "dot": f"./{name}",
        "around": f"sub/../{name}",
        "absolute": f"{root}/{name}".replace(" ", "\\ "),
        "upper": name.upper(),
        "slashes": name.replace("/", "//"),
        "wildcard": f"{folder}/{base[:-1]}?" if folder else f"{base[:-1]}?",
    }[how]


@given(data=st.data())
@settings(QUICK, max_examples=800)
def test_a_protected_target_is_never_allowed(shared, data):
    name = data.draw(st.sampled_from([*CONTROL, *FROZEN]))
    target = spelled(data.draw, shared.root, name)
    form = data.draw(st.sampled_from(FORMS))
    inner = form.replace("{}", target)
    for _ in range(data.draw(st.integers(0, 2))):
        wrapper = data.draw(st.sampled_from(WRAPPERS))
        quote = (
            "'"
            if "'{}'" in wrapper
            else '"'
            if '"{}"' in wrapper
            else "`"
            if "`{}`" in wrapper
            else ""
        )
        if (
            quote and (quote in inner or "$" in inner or "\\" in inner or "`" in inner)
        ) or "EOF" in inner:
            continue
        inner = wrapper.replace("{{", "{").replace("}}", "}").replace("{}", inner)
    command = inner + data.draw(NOISE)
    assert shared.bash(command)["permission"] == "deny", command
