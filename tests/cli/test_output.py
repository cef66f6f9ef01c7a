"""What the commands print: foreign text is plain, in words and in JSON."""

import io
import json

import pytest
from rich.text import Text

from harness.cli.output import emit, print_event, tell
from harness.views.console import PlainConsole
from harness.views.tables import render_table

HOSTILE = "\x1b[2J\x1b]0;PASS\x07loss\u202e\u200b\x9b2J"


def test_words_are_plain_and_tables_keep_their_rows(capsys: pytest.CaptureFixture[str]) -> None:
    table = render_table("", ("run", HOSTILE), [(HOSTILE, "PASS"), ("a\nb", "x")])
    emit({}, HOSTILE, table, as_json=False)
    tell(HOSTILE)
    print_event({"text": f"exp-0001 failed\n{HOSTILE}"})
    shown = capsys.readouterr()
    assert shown.out.split("\n")[0] == "loss"
    assert not {"\x1b", "\x9b", "\u202e", "\u200b", "\x07"} & set(shown.out + shown.err)
    assert "a b" in shown.out
    assert shown.err == "loss\nexp-0001 failed loss\n"


def test_json_keeps_the_value_and_shows_nothing_invisible(
    capsys: pytest.CaptureFixture[str],
) -> None:
    emit({"name": HOSTILE}, as_json=True)
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"name": HOSTILE}
    assert not {"\x1b", "\x9b", "\u202e", "\u200b"} & set(shown)


def test_a_console_draws_with_codes_of_its_own_only() -> None:
    stream = io.StringIO()
    console = PlainConsole(file=stream, force_terminal=True, width=40)
    console.print(Text(HOSTILE, style="red"))
    shown = stream.getvalue()
    assert "loss" in shown
    assert "\x1b[31m" in shown
    assert not {"\x9b", "\u202e", "\u200b", "\x07"} & set(shown)
    assert "[2J" not in shown
