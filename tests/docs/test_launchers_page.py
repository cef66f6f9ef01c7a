"""docs/launchers.md: its config.toml is read as it stands, and no option goes without a word."""

import re
import tomllib
from pathlib import Path

import pytest

from harness.domain.launch_options import OPTIONS, read_launchers
from harness.errors import ConfigError
from harness.runs.launchers.launcher import NAMES
from harness.settings import load_settings, new_config

PAGE = (Path(__file__).parents[2] / "docs/launchers.md").read_text("utf-8")
(BLOCK,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_its_config_is_read(tmp_path: Path) -> None:
    config = tmp_path / ".harness/config.toml"
    config.parent.mkdir()
    config.write_text(new_config("page", "cafe") + BLOCK)
    settings = load_settings(tmp_path, {"HOME": str(tmp_path)})
    assert settings.launchers == tomllib.loads(BLOCK)["launchers"]
    assert set(settings.launchers) == set(OPTIONS)


def test_it_names_every_launcher_and_option() -> None:
    for name in (*NAMES, *OPTIONS):
        assert f"| `{name}` |" in PAGE
    for options in OPTIONS.values():
        for option in options:
            assert re.search(rf"\b{option}\b", PAGE), option


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"slrum": {}}, "launchers has 'slrum'; known: local, slurm"),
        ({"slurm": {"gpu": 1}}, "launchers.slurm has 'gpu'; known: partition"),
        ({"slurm": {"time": "4h"}}, "launchers.slurm.time is '4h'; expected a number"),
        ({"slurm": {"gpus": True}}, "launchers.slurm.gpus is True; expected a whole"),
        ({"local": {"gpus": -1}}, "launchers.local.gpus is -1; expected a whole"),
        ({"local": {"gpus": 0.5}}, "launchers.local.gpus is 0.5; expected a whole"),
        ({"torchrun": {"processes": 2.0}}, "launchers.torchrun.processes is 2.0; expected a wh"),
        ({"ray": {"restarts": 1.5}}, "launchers.ray.restarts is 1.5; expected a whole"),
        ({"slurm": {"time": float("inf")}}, "launchers.slurm.time is inf; expected a number"),
        ({"slurm": {"cluster": "moon"}}, "launchers.slurm.cluster is 'moon'; expected \"local\""),
        ({"ray": 1}, "launchers.ray is 1; expected a table"),
        (["ray"], r"launchers is \['ray'\]; expected tables"),
    ],
)
def test_what_it_does_not_know_is_a_sentence(given: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_launchers(given, where="config.toml")
