"""`python -m harness.training.replicas [--replicas N] -- CMD`: what `harness train --replicas`
starts in its sandbox; by itself an unregistered run."""

import argparse
import os
import sys

from harness.domain.distributed import DiLoCoConfig
from harness.errors import HarnessError, RefusedError, UsageError
from harness.run_logger import RunLogger
from harness.training.replicas.crew import Crew
from harness.training.replicas.network import enter_own


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m harness.training.replicas")
    parser.add_argument("--replicas", type=int)
    at = words.index("--") if "--" in words else len(words)
    asked, command = parser.parse_args(words[:at]), words[at + 1 :]
    try:
        return _run(asked.replicas, command)
    except HarnessError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        return error.exit_code


def _run(replicas: int | None, command: list[str]) -> int:
    if not command:
        raise UsageError(
            "There is no command to start the replicas with.",
            hint="Give it after `--`: `... --replicas 2 -- python train.py`.",
        )
    more = {} if replicas is None else {"replicas": replicas}
    config = DiLoCoConfig.from_environment(os.environ, **more)
    if not enter_own() and not config.open_ports:
        raise RefusedError(
            "There is no network of their own for the replicas here: their ports would be open to"
            " other machines.",
            hint="Use the sandbox bwrap; or set distributed.open_ports to true in config.yaml where"
            " nobody else reaches this machine.",
            code="open_ports",
        )
    log = RunLogger.from_environment()
    return Crew(config, command, log=log, environ=os.environ).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
