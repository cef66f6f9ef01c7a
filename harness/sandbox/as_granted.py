"""Inside bwrap's mounts: become the command if each shows what was granted. Self-contained: `python
-I -S as_granted.py HELD COMMAND ...`.

bwrap finds a source by its path, a moment after the judge looked at it: an agent may have put a
link to the vault in its place between. A mount that is made moves no more. HELD is JSON: path ->
device and inode. Exit status 125: another file or folder was mounted (nothing was run); 127: the
command cannot be started.
"""

import json
import os
import sys


def differs(path: str, held: list[int]) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return True
    return [found.st_dev, found.st_ino] != held


def main() -> int:
    granted, argv = json.loads(sys.argv[1]), sys.argv[2:]
    for path, held in granted.items():
        if differs(path, held):
            sys.stderr.write(f"harness sandbox: {path} was exchanged before it was mounted\n")
            return 125
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"harness sandbox: {argv[0]} cannot be started: {error.strerror}\n")
    return 127


if __name__ == "__main__":
    sys.exit(main())
