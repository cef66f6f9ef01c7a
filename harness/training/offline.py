"""Environment of every program that loads a language model; imported before the libraries that read
it.

No network, no telemetry, no spinning threads. What is set already stays.
"""

import os

_SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRL_EXPERIMENTAL_SILENCE": "1",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_WAIT_POLICY": (
        "passive"
    ),  # two threads that spin on two shared cores run seven times slower
}
for _name, _value in _SETTINGS.items():
    os.environ.setdefault(_name, _value)
