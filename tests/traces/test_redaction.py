"""What is redacted, and what is left as it is."""

import json
from pathlib import Path

import pytest

from harness.errors import MissingExtraError, RefusedError, UsageError
from harness.traces import secrets
from harness.traces.ingest import Terms, ingest, manifest_of, sources
from harness.traces.redaction import Redactor
from tests.traces.rows import Transcript

pytest.importorskip("detect_secrets", reason="the extra `traces` is not installed")

JWT = (
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
)
# Put together here, so that nobody's scanner takes this file for a leak.
HIDDEN = {
    "export OPENAI_API_KEY={}": "sk-" + "proj-abcdefghijklmnopqrstuvwx1234",
    "key {} of ours": "sk-" + "ant-api03-abcdefghijklmnop",
    'password = "{}"': "hunter2" + "hunter2",
    "aws {}": "AKIA" + "IOSFODNN7EXAMPLE",
    "aws_secret_access_key = {}": "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
    "MY_SECRET={}": "abcd" + "efghijk",
    "git clone https://{}@example.com/x": "ada:pw12",
    "Authorization: Bearer {}": "abcdefghijklmnopqrst" + "uvwx",
    "token {}": "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "load with {}": "hf_" + "abcdefghijklmnopqrstuvwxyzABCD",
    "{}": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
    "see {} there": JWT,
    'curl -H "Authorization: Basic {}" x': "YWRhOmh1" + "bnRlcjJodW50ZXIy",
    "curl -s -u ada:{} https://x.io": "hunter2" + "secret",
    "machine x.io login ada password {}": "abc123" + "XYZ",
    "default login ada password {}": "abc124" + "XYZ",
    "machine x.io\\nlogin ada\\n password {}": "abc125" + "XYZ",
    "curl 'https://x.io/?a=1&b=2' 2>&1 --user ada:{} -v": "1hunter" + "secret",
    "vault login {}": "hvs." + "CAESIJ2v7KmQdX0pYbTzRnLwEoUg",
    "use {} here": "glpat-" + "AbCdEf1234567890abcd",
    "log in with {}": "npm_" + "AbCdEf1234567890AbCdEf1234567890",
    "{} of the cloud": "ya29." + "a0AfH6SMBx1234567890abcdef",
    "bot {}": "110201543:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    "redis://{}@host:6379": ":p4ssw0rd" + "long",
    "https://x.io/c?sv=2020&sig={}&se=1": "AbCdEf%2F1234567890" + "abcdef%3D",
    "AccountName=x;AccountKey={};x": "Zm9vYmFyYmF6Zm9v" + "YmFyYmF6Zm9vYmFy==",
    "Cookie: {}": "sessionid=38afes7a8f2b" + "3c4d5e6f",
    "password: {}": "hunter" + "2",
    "data: {}": "c2stYW50LWFwaTAzLUFCQ0RFRkdI" + "SUpLTE1OT1BRUlNUVVZXWFla",
    'api_key: "{}"  # pragma: allowlist secret': "zq8" + "Lm2Xw9",
}


@pytest.mark.parametrize("form", HIDDEN)
def test_a_secret_is_replaced_and_counted(form: str):
    redactor, value = Redactor(), HIDDEN[form]
    assert redactor.text(form.format(value)) == form.format("[SECRET]")
    assert sum(redactor.counts.values()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096 tokens: list[int] token = parser.next_token()",
        "password=$PASSWORD and api_key=os.environ['KEY']",
        "TestLogging_ContextSessionID_WhenNoGlobalSet is a name",
        "uuid '123e4567-e89b-12d3-a456-426614174000'",
        "git@github.com:ada/x.git, @decorator, version 1.2.3",
        "/home/user/project and /Users/runner/work",
        "a basic understanding of curl -s https://x.io and a login with a password",
        "curl -O https://x.io && docker run --user 1000:1000 img --steps 1000",
        "curl -O https://x.io && docker run --user ada:staff img",
        "curl --user 1000:1000 https://x.io --max-time 1000",
        "The login and password fields of the machine are here. Three fields fail",
        "login with password authentication",
        "self.hvs.compute_the_long_function_name()",
        "cookie: true, harness/traces/forms/claude_code_of_the_long_and_winding_road",
    ],
)
def test_what_is_no_secret_stays(text: str):
    assert (
        Redactor().text(text).replace("[USER]", "user").replace("user/work", "runner/work") == text
    )


def test_a_person_leaves_no_trace():
    redactor = Redactor(names=["Ada Example"], patterns=[r"CUST-\d+"])
    said = (
        "ada.example@mail.example.com in /home/aexample/p, C:\\Users\\aexample\\p and"
        " -home-aexample-p: ADA EXAMPLE, aexample, CUST-12"
    )
    assert redactor.text(said) == (
        "[EMAIL] in /home/[USER]/p, C:\\Users\\[USER]\\p and -home-[USER]-p: [NAME], [NAME],"
        " [REDACTED]"
    )
    assert redactor.counts == {"e-mail address": 1, "home folder": 3, "name": 2, "pattern": 1}


def test_every_text_of_a_value_is_redacted_keys_and_named_fields_too():
    redactor = Redactor()
    value = {"/home/ada1/x": [{"password": "correcthorse", "n": 3}, None, True]}
    assert redactor.value(value) == {
        "/home/[USER]/x": [{"password": "[SECRET]", "n": 3}, None, True]
    }


def test_a_pattern_that_is_none_is_refused():
    with pytest.raises(UsageError, match="no regular expression"):
        Redactor(patterns=["("])


def session(folder: Path, said: str) -> Path:
    main = Transcript(folder / "s.jsonl", session="s", cwd="/home/ada1/p")
    main.prompt(said)
    main.call("t1", "Bash", command="cat /home/ada1/.env")
    main.result("t1", "API_KEY=" + "abcdefgh1234")
    return main.path


def test_nothing_of_a_session_is_written_unredacted(tmp_path: Path):
    out = tmp_path / "out.jsonl"
    ingest(
        sources([session(tmp_path, "I am ada1, ada@example.com")]),
        out,
        redactor=Redactor(),
        terms=Terms(licence="MIT", consent=True),
        outcomes={"s": [{"experiment": "exp-0001", "status": "kept"}]},
    )
    written = out.read_text() + manifest_of(out).read_text()
    for secret in ("ada1", "ada@", "abcdefgh1234"):
        assert secret not in written
    (row,) = map(json.loads, out.read_text().splitlines())
    assert (row["licence"], row["consent"]) == ("MIT", True)
    assert row["outcome"]["experiments"] == [{"experiment": "exp-0001", "status": "kept"}]
    assert row["provenance"] == {
        "source": "s.jsonl",
        "form": "claude-code",
        "session": "s",
        "lines": [2, 2],
    }
    manifest = json.loads(manifest_of(out).read_text())
    assert manifest["redacted"]["secret: assigned secret"] == 1
    assert manifest["sessions"] == ["s"]


def test_strict_writes_nothing_where_something_would_be_redacted(tmp_path: Path):
    out = tmp_path / "out.jsonl"
    files = sources([session(tmp_path, "hello")])
    with pytest.raises(RefusedError, match=r"secret: assigned secret \(1\)") as refused:
        ingest(files, out, redactor=Redactor(), terms=Terms(), outcomes={}, strict=True)
    assert refused.value.exit_code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.jsonl"]


def test_strict_writes_what_is_clean(tmp_path: Path):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/work")
    main.prompt("hello")
    main.call("t1", "Read", file_path="a.py")
    out = tmp_path / "out.jsonl"
    told = ingest(
        sources([main.path]), out, redactor=Redactor(), terms=Terms(), outcomes={}, strict=True
    )
    assert (told["rows"], told["redacted"]) == (1, {})


def test_without_the_library_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Missing:
        def __getattr__(self, name: str) -> object:
            raise ModuleNotFoundError(name)

    monkeypatch.setattr(secrets, "util", Missing())
    secrets._scanner.cache_clear()
    out = tmp_path / "out.jsonl"
    with pytest.raises(MissingExtraError, match="detect-secrets"):
        ingest(
            sources([session(tmp_path, "hello")]),
            out,
            redactor=Redactor(),
            terms=Terms(),
            outcomes={},
        )
    assert not out.exists()
