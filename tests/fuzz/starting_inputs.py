"""Writes corpus/: each form as it is, and inputs that a reader once failed on. `python -m
tests.fuzz.starting_inputs`."""

from pathlib import Path

from tests.fuzz.near_forms import BASE

CORPUS = Path(__file__).parent / "corpus"
SEEDS: dict[str, dict[str, str]] = {
    "plan": {
        "whole": BASE,
        "half-a-character": BASE.replace("tell a from b", '"\\ud800"'),
        "nul-in-a-command": BASE.replace("python train.py", '"python \\0"'),
        "many-unknown-keys": (
            "---\n" + "".join(f"k{number}: 1\n" for number in range(300)) + "---\n"
        ),
    },
    "result": {
        "whole": "---\nclaims: {accuracy: 0.90}\nshortfalls: [one]\n---\n# Result\n",
        "half-a-character": '---\nclaims: {"\\ud800": 0.9}\n---\n',
        "more-digits-than-floats": "---\nclaims: {a: 1e-999, b: 0.1234567890123456789012}\n---\n",
    },
    "metrics": {
        "whole": (
            '{"event":"start","run":"a"}\n{"event":"epoch","epoch":0,"metrics":{"loss":"NaN"}}\n'
        ),
        "torn": (
            '{"event":"epoch","epoch":0,"metr{"event":"epoch","epoch":1}\n{"step":1,"loss":NaN}'
        ),
    },
    "lines": {"torn-and-deep": '{"a":[' * 60 + "1," * 60},
    "status": {
        "whole": '{"run":"exp-0001/run-01","status":"running","epoch":1,"metrics":{"loss":0.5}}',
        "list-as-metric": '{"run":"a","status":"running","metrics":{"loss":[1]}}',
        "text-as-epoch": '{"run":"a","status":"running","epoch":"1"}',
    },
    "transcript": {
        "whole": (
            '{"type":"user","uuid":"u1","sessionId":"s","message":{"content":"hello"}}\n'
            '{"type":"assistant","uuid":"u2","message":{"id":"m","content":'
            '[{"type":"tool_use","id":"t","name":"Bash"}]}}\n'
        )
    },
    "claude_settings": {
        "whole": (
            '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}, "model": "m"}'
        ),
        "long-number": '{"a": ' + "9" * 4400 + "}",
        "half-a-character": '{"hooks": {"\\ud800": {}}}',
    },
    "config": {
        "whole": 'project_id = "abc"\nmemory_dir = "memory"\nreadable = ["/data"]\n',
        "nul": 'project_id = "abc"\nmemory_dir = "a\\u0000b"\n',
        "long-number": 'project_id = "abc"\nhooks = ' + "9" * 4400,
        "deep": 'project_id = "abc"\nreadable = ' + "[" * 3000,
    },
}


def write() -> None:
    for form, files in SEEDS.items():
        (CORPUS / form).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (CORPUS / form / name).write_bytes(text.encode())


if __name__ == "__main__":
    write()
