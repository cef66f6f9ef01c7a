"""Inside bwrap's network namespace: open the gateway's port, hand it out, become the command.
Self-contained: `python -I -S gateway_listen.py PORT COMMAND ...`; descriptor 3 is the way out to
front.py."""

import os
import socket
import sys

GATEWAY_DESCRIPTOR = 3


def main() -> int:
    port, argv = int(sys.argv[1]), sys.argv[2:]
    with (
        socket.socket(fileno=GATEWAY_DESCRIPTOR) as pair,
        socket.create_server(("127.0.0.1", port)) as listener,
    ):
        socket.send_fds(pair, [b"d"], [listener.fileno()])
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"harness sandbox: {argv[0]} cannot be started: {error.strerror}\n")
    return 127


if __name__ == "__main__":
    sys.exit(main())
