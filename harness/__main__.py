"""`python -m harness` is the `harness` command."""

import sys

# `-m` puts the folder that we stand in first: a json.py there would run in place of Python's own.
if not sys.flags.safe_path:
    del sys.path[0]

from harness.cli.main import main

main()
