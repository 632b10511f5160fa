"""A tap between an editor and the server: passes everything on, records it, and can remove some of
the editor's capabilities, as if it were an editor that can less.

    tap.py SERVER LOG WITHOUT [ARGUMENT...]

`WITHOUT` is a JSON list of paths into the parameters of `initialize`, such as `"capabilities/window/showMessage"`.

Rule: but for what `WITHOUT` names, every message is passed on byte for byte and in order.
"""

import json
import os
import subprocess
import sys
import threading
from typing import BinaryIO


def messages(stream: BinaryIO):
    """The messages of one direction, as header and body; ends with the stream."""
    while True:
        header = b""
        while not header.endswith(b"\r\n\r\n"):
            byte = stream.read(1)
            if not byte:
                return
            header += byte
        length = next(
            int(line.split(b":")[1]) for line in header.split(b"\r\n") if line.lower().startswith(b"content-length:")
        )
        yield header, stream.read(length)


def take_away(body: bytes, without: list[str]) -> bytes:
    """The request to initialize, without some of what it says."""
    message = json.loads(body)
    for path in without:
        *parents, last = path.split("/")
        parent = message["params"]
        for name in parents:
            parent = parent.get(name) or {}
        parent.pop(last, None)
    return json.dumps(message).encode()


def main() -> None:
    """Runs the server until either side ends."""
    server, log_path, without, *arguments = sys.argv[1:]
    log = open(log_path, "ab", buffering=0)
    child = subprocess.Popen([server, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin and child.stdout

    def write_down(who: str, body: bytes) -> None:
        # One write for one line, so that the two directions do not mix.
        log.write(json.dumps({"from": who, "message": json.loads(body)}).encode() + b"\n")

    def pass_back(stream: BinaryIO) -> None:
        for header, body in messages(stream):
            write_down("server", body)
            sys.stdout.buffer.write(header + body)
            sys.stdout.buffer.flush()
        # The server is gone, and with it the reason to be here.
        os._exit(child.wait())

    threading.Thread(target=pass_back, args=(child.stdout,), daemon=True).start()
    for header, body in messages(sys.stdin.buffer):
        if without != "[]" and json.loads(body).get("method") == "initialize":
            body = take_away(body, json.loads(without))
            header = b"Content-Length: %d\r\n\r\n" % len(body)
        write_down("editor", body)
        child.stdin.write(header + body)
        child.stdin.flush()
    child.stdin.close()
    child.wait()


main()
