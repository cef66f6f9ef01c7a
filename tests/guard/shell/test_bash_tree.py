"""The tree's reading of shell commands: what only it sees through, where both agree, and that
nothing breaks it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import MissingExtraError
from harness.guard.policy.decide import decide
from harness.guard.policy.shell_reader import read_script
from harness.guard.policy.shell_script import TEXT, VARIABLE, ShellScript, WordPart
from harness.guard.shell import tree_reader as bash_tree
from harness.guard.shell.decide_with_tree import judge_call
from harness.guard.shell.tree_reader import LONGEST, MOST_PIPES, read_tree
from tests.guard.policy.policy_project import SampleProject

QUICK = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SHELL = st.text(
    alphabet=st.sampled_from(list("ab ./$'\"`\\(){}<>|&;#\n\t*?[]=-EOF0!~")), max_size=60
)
PIECES = st.lists(
    st.sampled_from(
        (
            "rm x",
            "case a in",
            "esac",
            ";;",
            "$(",
            ")",
            "`",
            "|",
            '"',
            "'",
            "<<E\nE\n",
            "<<<",
            ">f",
            "&&",
            ";",
            "if",
            "then",
            "fi",
            "{",
            "}",
            "f()",
            "f a",
            "${X:-y}",
            '"$@"',
            "$1",
            "[[",
            "]]",
            "((",
            "))",
            "a=(b c)",
            "echo x",
            "xargs",
            "sh",
            "for i in a",
            "do",
            "done",
            "!",
            "coproc",
            "\\\n",
            "\u00e9",
            "\ud800",
        )
    ),
    max_size=12,
).map(" ".join)

ONLY_THE_TREE = [
    "case 1 in 1) rm -rf .har*;; esac",
    "case $(rm .har*/policy.json) in *) ls;; esac",
    "D=.harn; case x in x) rm -rf ${D}ess;; esac",
    "rm -r ${X:-.har}ness",
    'rm "${A:-plan}.md"',
    "D=.harn'ess'; rm -r ${D:-x}",
    "echo ${X:-$(rm .har*/policy.json)}",
    "[[ -n $(rm -r .har*) ]] && ls",
    "F=(.har*); rm -r ${F[0]}",
    'F=(a .harn"ess"); rm -r "${F[@]}"',
    'F=(pla"n".md); for f in "${F[@]}"; do rm -r $f; done',
    'g() { rm $1; }; f() { g "$1"; }; f pla*.md; f $(ls)',
    'f() { rm -r "$1"; }; f .har*',
    'f() { for x in "$@"; do rm -r $x; done; }; f a pla*.md',
    "rm -r $(echo .har)ness",
    "rm -r $(printf '%s' .har)ness",
    "echo rm -r .har'ness' | sh",
    "printf 'rm plan''.md' | bash -s",
    "cat <<E | sh\nD=.harn; rm -r ${D}ess\nE",
    "cat <<< 'rm -r .har*' | sh",
    "echo .har'ness' | xargs rm -r",
    "case 1 in 1) python3 -c \"open('pla'+'n.md', 'w')\"; rm pla*.md;; esac",
    "case go in go) python train.py;; esac",
]
BOTH_DENY = ["coproc N { python train.py; }", "f() { python $1; }; f train.py"]

READ_ALIKE = [
    'A=1 rm -rf "$x/y" z > out 2>&1',
    "cat > out a b",
    "> f cat x",
    "rm a\\ b 'c d'\"e\"$f",
    "echo $'a\\nb' $\"c\"d",
    "(cd x; rm y) 2> z",
    "{ a; b; } > f",
    "if rm a; then rm b; elif rm c; then rm d; else rm e; fi",
    'while read -r f; do rm "$f"; done < list',
    "for i in a 'b c' {d,e}; do rm $i; done > log",
    "a && b || c; d & e |& f",
    "cat <<EOF | wc -l\nrm $(ls) $x\nEOF\nls",
    "a && cat > f <<'EOF'\nbody $x\nEOF",
    "cat <<-EOF\n\tbody\n\tEOF",
    "diff <(ls a) >(cat b)",
    "export A=b C && unset A",
    "rm \\\n  x # comment",
    "echo `rm x` && f() { rm y; }",
    "! rm x; time rm y",
    "! { rm x; }",
    "! ! (rm x)",
    "exec 3> f; echo >&2 hi",
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> SampleProject:
    return SampleProject(tmp_path_factory.mktemp("tree"))


def bash(project: SampleProject, command: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}, "cwd": str(project.root)}


@pytest.mark.parametrize("command", ONLY_THE_TREE)
def test_only_the_tree_sees_through_it(shared: SampleProject, command: str):
    call = bash(shared, command)
    assert decide(call, shared.snapshot)["permission"] != "deny"
    assert judge_call(call, shared.snapshot)["permission"] == "deny"


@pytest.mark.parametrize("command", BOTH_DENY)
def test_both_readers_deny_what_one_of_them_cannot_follow(shared: SampleProject, command: str):
    call = bash(shared, command)
    assert decide(call, shared.snapshot)["permission"] == "deny"
    assert judge_call(call, shared.snapshot)["permission"] == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "case $1 in test) pytest -q;; *) ls;; esac",
        'f() { echo "$1"; }; f notes.txt',
        "F=(a b); echo ${F[@]} ${X:-y} > notes.txt",
        "python - <<'EOF'\nprint('see the plan')\nEOF\necho done",
        "cat <<E; ls\nplan.md\nE",
    ],
)
def test_ordinary_work_is_not_denied(shared: SampleProject, command: str):
    assert judge_call(bash(shared, command), shared.snapshot)["permission"] != "deny"


def values(script: ShellScript) -> set[str]:
    """Commands as a rule sees them: words, targets, inputs; the text of what nobody knows aside."""

    def word(parts: tuple[WordPart, ...]) -> list[str]:
        known = [
            part.text if part.kind != VARIABLE else f"${part.text}"
            for part in parts
            if part.kind != "dynamic"
        ]
        return [
            "".join(known),
            *(part.kind for part in parts if part.kind not in (TEXT, "quoted")),
        ]

    return {
        repr(
            (
                [word(item.parts) for item in command.words],
                [(item.operator, word(item.target.parts)) for item in command.redirections],
                command.inputs,
            )
        )
        for command in script.commands
    }


@pytest.mark.parametrize("command", READ_ALIKE)
def test_both_readers_agree(command: str):
    tree, own = read_tree(command), read_script(command)
    assert (tree.problem, own.problem) == ("", "")
    assert values(tree) == values(own)
    assert [name for name, _ in tree.loops if " " not in name] == [name for name, _ in own.loops]


def test_what_the_grammar_gives_up_on_is_said_and_the_other_reader_stands(shared: SampleProject):
    command = "cat <<A <<B\nplan.md\nA\nx\nB\n"  # good bash; the grammar knows one heredoc a line
    assert "line 1" in read_tree(command).problem
    assert read_script(command).problem == ""
    assert judge_call(bash(shared, command), shared.snapshot)["permission"] == "allow"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a" * (LONGEST + 1), "longer"),
        ("a|" * (MOST_PIPES + 1), "pipes"),
        ("a\0b", "NUL"),
        ("$(" * 500 + ")" * 500, ""),
    ],
)
def test_what_would_cost_too_much_is_not_read(text: str, why: str):
    assert why in read_tree(text).problem != ""


def test_a_word_cut_by_a_continued_line_is_said():
    assert read_tree("rm pl\\\nan.md").problem != ""


@given(text=SHELL | PIECES)
@QUICK
def test_any_text_is_read_without_a_crash(shared: SampleProject, text: str):
    assert isinstance(read_tree(text).problem, str)
    call = bash(shared, text)
    answers = [
        decide(call, shared.snapshot)["permission"],
        judge_call(call, shared.snapshot)["permission"],
    ]
    assert answers[0] != "deny" or answers[1] == "deny"
    assert answers[1] != "allow" or answers[0] == "allow"


@given(
    target=st.sampled_from(["plan.md", ".harness/policy.json", ".claude/settings.json"]),
    data=st.data(),
)
@settings(QUICK, max_examples=200)
def test_a_protected_target_in_any_wrapping_is_denied(
    shared: SampleProject, target: str, data: st.DataObject
):
    inner = data.draw(
        st.sampled_from(["rm {}", "echo x > {}", "sed -i s/a/b/ {}", "F={}; rm $F"])
    ).format(target)
    wrappings = (
        "case a in a) {};; esac",
        "f() {{ {}; }}; f",
        "[[ -n $({}) ]]",
        "echo ${{X:-$({})}}",
        "if ls; then {}; fi",
        "({}) &",
        "! {}",
        "time {}",
        "coproc N {{ {}; }}",
    )
    for _ in range(data.draw(st.integers(1, 3))):
        inner = data.draw(st.sampled_from(wrappings)).format(inner)
    call = bash(shared, inner)
    assert decide(call, shared.snapshot, read_tree)["permission"] == "deny", inner


def test_without_the_grammar_the_reader_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    bash_tree._parser.cache_clear()
    monkeypatch.setattr(bash_tree, "_MISSING", ImportError("No module named 'tree_sitter'"))
    with pytest.raises(MissingExtraError, match="tree_sitter"):
        read_tree("ls")


def test_other_tools_are_judged_without_the_grammar(
    shared: SampleProject, monkeypatch: pytest.MonkeyPatch
):
    bash_tree._parser.cache_clear()
    monkeypatch.setattr(bash_tree, "_MISSING", ImportError("No module named 'tree_sitter'"))
    call = {
        "tool_name": "Write",
        "tool_input": {"file_path": "train.py"},
        "cwd": str(Path(shared.root)),
    }
    assert judge_call(call, shared.snapshot)["permission"] == "allow"
