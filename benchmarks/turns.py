"""Processes that prepare side by side, compiling on all processors, and then have the GPU one at a time."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading

READY = "prepared, and waiting"


def wait_for_turn() -> None:
    """In such a process: says that all is prepared, and waits to be told that no other process uses the GPU."""
    print(READY, flush=True)
    sys.stdin.readline()


class Prepared:
    """`python arguments`, a process that calls `wait_for_turn`. Without $OUT: its report is for its parent."""

    def __init__(self, arguments: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={name: value for name, value in os.environ.items() if name != "OUT"},
        )  # fmt: skip
        self.said = threading.Event()
        """That it waits, or has ended."""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:  # to its end, so that the process can always write
            if line.strip() == READY:
                self.said.set()
        self.said.set()

    def turn(self, seconds: float) -> bool:
        """Lets it go on, until it ends. Whether it did in time."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self.process.stdin.write("go\n")
            self.process.stdin.close()
        try:
            self.process.wait(max(1.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
