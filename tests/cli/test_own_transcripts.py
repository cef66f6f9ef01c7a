"""From one's own transcripts to an evaluated adapter, as docs/traces.md says: its commands in an empty
folder, with a tiny model."""

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("trl")
pytest.importorskip("detect_secrets", reason="the extra `traces` is not installed")

from tests.cli.journey import UNSANDBOXED, Journey
from tests.traces.rows import Transcript
from tests.training.tiny_model import save_tiny_model

PAGE = (Path(__file__).parents[2] / "docs/traces.md").read_text("utf-8")
TOPICS = "apple pear plum cherry grape melon fig date lemon lime kiwi mango peach olive nut berry"


def test_the_page_leads_from_sessions_to_an_evaluated_adapter(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    commands = [
        line for block in blocks for line in block.splitlines() if line.startswith("harness")
    ]
    root = tmp_path / "work"
    (tmp_path / "home").mkdir()
    root.mkdir()
    save_tiny_model(root / "model")
    (composition,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (root / "composed.toml").write_text(composition)
    for number, topic in enumerate(TOPICS.split() * 5):
        mended(root, f"{topic}{number}")
    journey, model, verdicts = Journey(root, tmp_path / "home"), "", []
    for line in commands:
        line = line.replace("max_steps=100", "max_steps=2").replace("MODEL", model)
        verb = tuple(shlex.split(line)[1:])
        more = UNSANDBOXED if verb[:2] in (("posttrain", "run"), ("posttrain", "evaluate")) else ()
        done = journey.harness(*verb, *more, "--json")
        judged = verb[1] == "evaluate"  # 1: not PASS
        assert done.exit_code in ((0, 1) if judged else (0,)), (line, done.stdout, done.stderr)
        told = done.document
        model = told.get("model", model) if verb[1] == "run" else model
        verdicts += [told["verdict"]] if judged else []
    assert len(verdicts) == 1
    assert verdicts[0] in ("PASS", "FAIL", "INCONCLUSIVE")
    assert told["specification"]["composition"]["reward"]["weight"] == 0
    assert told["specification"]["benchmark"]["evaluator"] == "preference"
    assert re.fullmatch("[0-9a-f]{64}", model)
    assert (root / "pairs.card.md").exists()


def mended(root: Path, name: str) -> None:
    """A session in which a call failed and the next one did not."""
    main = Transcript(root / f"sessions/{name}.jsonl", session=name, cwd=root)
    main.prompt(f"please run the tests of the {name}")
    main.call(f"{name}-1", "Bash", command=f"pytset {name}")
    main.result(f"{name}-1", f"no program pytset in {name}", error=True)
    main.call(f"{name}-2", "Bash", command=f"pytest {name}")
    main.result(f"{name}-2", "3 passed")
