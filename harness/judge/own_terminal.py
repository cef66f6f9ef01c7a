"""Lead one program on a terminal that is its alone. Self-contained: `python -I -S own_terminal.py
COMMAND ...`, started without a controlling terminal.

Where stdin is a terminal it becomes the controlling one, so that the program gets SIGWINCH and a
shell in it has job control; it is nobody else's, so that what is pushed into its input (TIOCSTI)
reaches the program itself. When the program stops (Ctrl-Z), the judge outside is told, through the
socket that HARNESS_JUDGE names; when it answers, the program goes on. Exit status: the program's,
128 + n after signal n, 127 when it cannot be started.
"""

import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
import sys
import termios

JUDGE = "HARNESS_JUDGE"
PASSED_OVER = (signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP)
TO_THE_PROGRAM = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""The process in front of the sandbox sends them to every process in it."""


def start(argv: list[str], on_terminal: bool) -> int:
    """The pid of the program, in the foreground of the terminal."""
    program = os.fork()
    if program:
        with contextlib.suppress(OSError):
            os.setpgid(program, program)
        return program
    os.setpgid(0, 0)
    if on_terminal:
        os.tcsetpgrp(0, os.getpid())
    for number in (*PASSED_OVER, *TO_THE_PROGRAM):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"harness claude: {argv[0]} cannot be started: {error.strerror}\n".encode())
    os._exit(127)


def tell_the_judge() -> None:
    """Wait until the person goes on; the frame is one of client.py."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as place:
        place.connect(os.environ.get(JUDGE, ""))
        asked = json.dumps({"stopped": True}).encode("ascii")
        place.sendall(struct.pack(">cI", b"r", len(asked)) + asked)
        while place.recv(64):
            pass


def main() -> int:
    on_terminal = os.isatty(0)
    if on_terminal:
        with contextlib.suppress(PermissionError):  # where it leads its session already
            os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (*PASSED_OVER, *TO_THE_PROGRAM):
        signal.signal(number, signal.SIG_IGN)
    program = start(sys.argv[1:], on_terminal)
    while True:
        _, status = os.waitpid(program, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        tell_the_judge()
        if on_terminal:
            os.tcsetpgrp(0, program)
        os.killpg(program, signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(main())
