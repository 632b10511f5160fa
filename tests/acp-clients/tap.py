"""A tap between an ACP client and the agent: passes every line on and records it.

    tap.py SERVER LOG [ARGUMENT...]

Rule: every line is passed on byte for byte and in order.
"""

import json
import os
import subprocess
import sys
import threading


def main() -> None:
    """Runs the agent until either side ends."""
    server, log_path, *arguments = sys.argv[1:]
    log = open(log_path, "ab", buffering=0)
    child = subprocess.Popen([server, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin and child.stdout

    def write_down(who: str, line: bytes) -> None:
        # One write for one line, so that the two directions do not mix.
        log.write(json.dumps({"from": who, "message": json.loads(line)}).encode() + b"\n")

    def pass_back() -> None:
        assert child.stdout
        for line in child.stdout:
            write_down("agent", line)
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        # The agent is gone, and with it the reason to be here.
        os._exit(child.wait())

    threading.Thread(target=pass_back, daemon=True).start()
    for line in sys.stdin.buffer:
        write_down("client", line)
        child.stdin.write(line)
        child.stdin.flush()
    child.stdin.close()
    child.wait()


main()
