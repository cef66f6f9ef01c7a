"""The shell reader: programs, words, redirections and inputs, or why the text could not be read."""

import pytest

from harness.guard.policy.shell_reader import read_script


def programs(text: str) -> list[list[str]]:
    script = read_script(text)
    assert script.problem == "", script.problem
    return [
        [word.plain if word.plain is not None else word.raw for word in item.words]
        for item in script.commands
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \t\n\n", []),
        ("# only a comment", []),
        ("ls -l a\\ b", [["ls", "-l", "a b"]]),
        ("a; b && c || d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a |& b", [["a"], ["b"]]),
        ("echo 'a b' \"c d\" e'f'\"g\"", [["echo", "a b", "c d", "efg"]]),
        ('echo "a \\" \\\\ \\x"', [["echo", 'a " \\ \\x']]),
        ("echo a#b #c", [["echo", "a#b"]]),
        ("a\\\nb", [["ab"]]),
        ("a \\\n b", [["a", "b"]]),
        ("(a; b)", [["a"], ["b"]]),
        ("{ a; b; }", [["a"], ["b"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while a; do b; done", [["a"], ["b"]]),
        ("f() { a; }", [["a"]]),
        ("function f { a; }", [["a"]]),
        ("echo $(a b)", [["a", "b"], ["echo", "$(a b)"]]),
        ("echo `a b`", [["a", "b"], ["echo", "`a b`"]]),
        ('echo "x $(a "$(b)")"', [["b"], ["a", '"$(b)"'], ["echo", '"x $(a "$(b)")"']]),
        ("a <(b) >(c)", [["b"], ["c"], ["a", "<(b)", ">(c)"]]),
        ("echo $'a\\n\\x41\\u00e9\\101'", [["echo", "a\nA\u00e9A"]]),
        ("for ((i=0;i<3;i++)); do a; done", [["a"]]),
        ("((a > b)) && c", [["c"]]),
        ("((a > ./b); c)", [["a"], ["c"]]),
        ("echo $((a > ./b); c)", [["a"], ["c"], ["echo", "$((a > ./b); c)"]]),
        ("[[ a > b && c ]] || d", [["d"]]),
        ("A=1 B='2 3' c", [["A=1", "B=2 3", "c"]]),
        ("echo a{b,c}", [["echo", "a{b,c}"]]),
        ("echo $ 100%", [["echo", "$", "100%"]]),
    ],
)
def test_programs_and_words(text, expected):
    assert programs(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > b", [(">", "b")]),
        ("a>b", [(">", "b")]),
        ("a 2>b >>c <d", [(">", "b"), (">>", "c"), ("<", "d")]),
        ("a 2>&1", [(">&", "1")]),
        ("a &> b", [("&>", "b")]),
        ("a &>> b", [("&>>", "b")]),
        ("a >| b", [(">|", "b")]),
        ("a <> b", [("<>", "b")]),
        ("a > 'b c'", [(">", "b c")]),
        ("> b", [(">", "b")]),
    ],
)
def test_redirections(text, expected):
    (command,) = read_script(text).commands
    assert [(item.operator, item.target.plain) for item in command.redirections] == expected


def test_redirection_of_a_group_is_listed():
    commands = read_script("(a; b) > c").commands
    assert [item.target.plain for command in commands for item in command.redirections] == ["c"]


def test_heredocs():
    script = read_script("a <<X > f\nbody 1\nX\nb <<-'Y'\n\tbody 2\n\tY\nc <<< 'text'\nd")
    assert script.problem == ""
    assert [(command.words[0].plain, command.inputs) for command in script.commands] == [
        ("a", ("body 1",)),
        ("b", ("body 2",)),
        ("c", ("text",)),
        ("d", ()),
    ]


def test_heredoc_without_an_end_goes_to_the_end_of_the_text():
    script = read_script("bash <<X\nrm a\nX; ls")
    assert [command.inputs for command in script.commands] == [("rm a\nX; ls",)]


def test_two_heredocs_of_one_line_belong_to_their_programs():
    script = read_script("a <<X | b $(c) <<Y\nfirst\nX\nsecond\nY\n")
    given = {command.words[0].plain: command.inputs for command in script.commands}
    assert given == {"a": ("first",), "b": ("second",), "c": ()}


def test_unquoted_heredoc_runs_its_substitutions_and_a_quoted_one_does_not():
    assert ["rm", "x"] in programs("cat <<E\n$(rm x) `ls`\nE")
    assert ["rm", "x"] not in programs("cat <<'E'\n$(rm x)\nE")
    assert ["rm", "x"] not in programs("cat <<E\n\\$(rm x)\nE")


def test_heredoc_inside_a_substitution():
    assert programs("git commit -m \"$(cat <<'E'\nsay ' and )\nE\n)\"")[0] == ["cat"]


def test_loops_keep_their_words():
    (loop,) = read_script("for f in a 'b c' $d; do x; done").loops
    assert (loop[0], [word.raw for word in loop[1]]) == ("f", ["a", "'b c'", "$d"])


@pytest.mark.parametrize(
    "text",
    [
        "'",
        '"',
        "`",
        "$(",
        "(",
        ")",
        "$'",
        "${",
        "a >",
        "a > ;",
        "[[ a",
        "((",
        "$((1",
        "case a in b) ;; esac",
        "a\x00b",
        "${x:-$(y)}",
        "[[ $(a) ]]",
        "a (b)",
        "(" * 40 + "a" + ")" * 40,
        "x" * 300000,
    ],
)
def test_what_cannot_be_read_says_why(text):
    assert read_script(text).problem


def test_variables_are_not_plain():
    (command,) = read_script("a $b \"$c\" ${d} 'e$f' ${g%x} $1").commands
    assert [word.plain for word in command.words] == ["a", None, None, None, "e$f", None, None]
