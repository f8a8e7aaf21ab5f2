"""The process that workers are forked from, as the one knows it that asks for copies.

Python is started there, and modules are imported, once. It runs nothing else and has no threads, so
that its copies lack none. What the workers of a program have imported, the template imports before
it is copied the next time.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress

from tcl.workers.worker import LONGEST_REQUEST

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tcl.workers.worker import make_copies; make_copies(int(sys.argv[2]))"
)


class _Template:
    def __init__(self) -> None:
        self.program = sys.executable
        self._told: set[str] = set()
        """Those of ``_modules`` of which the process has heard."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = json.dumps([str(p) or os.getcwd() for p in sys.path])
        # It ignores Ctrl+C, and hears of none before: a signal may be for all processes of a job.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        with theirs, ExitStack() as after:
            after.callback(signal.pthread_sigmask, signal.SIG_SETMASK, before)
            self._process = subprocess.Popen(
                # Not the folder that this runs in: files there may have the names of modules.
                [self.program, "-P", "-c", _BOOT, path, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,  # a Ctrl+C at the terminal is for the parent alone
            )

    def prepare(self) -> None:
        """Have it import what it is to import before it is copied, while this process goes on."""
        self._send([])

    def fork(self, files: Sequence[int]) -> int:
        self._send(files)
        answer = self._control.recv(LONGEST_REQUEST)
        if not answer:
            raise OSError(f"{self.program} has ended")
        if int(answer) < 0:
            raise OSError(-int(answer), os.strerror(-int(answer)))
        return int(answer)

    def _send(self, files: Sequence[int]) -> None:
        new = sorted(_modules - self._told)
        request = json.dumps(new).encode()
        if len(request) > LONGEST_REQUEST:
            request = b"[]"
        self._told.update(new)
        socket.send_fds(self._control, [request], files)

    def let_go(self) -> None:
        """In a copy of this process, whose template it is not."""
        self._control.close()
        self._process.returncode = 0

    def end(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()


_lock = threading.Lock()
_template: _Template | None = None
_modules: set[str] = set()
"""That workers have imported, or will."""


def fork(files: Sequence[int]) -> int:
    """The number of a new process that serves tasks: see ``tcl.workers.worker.serve``. ``files``:
    its standard input, output and error, and where it is written how the process ended, as
    ``os.waitstatus_to_exitcode`` has it. ``OSError`` if there can be none."""
    global _template
    with _lock:
        if _template is not None and _template.program == sys.executable:
            with suppress(OSError):  # somebody ended it
                return _template.fork(files)
        if _template is not None:
            _template.end()
            _template = None
        template = _Template()
        try:
            found = template.fork(files)
        except BaseException:
            template.end()
            raise
        _template = template
        return found


def learn(modules: Iterable[str]) -> None:
    """These were imported by a worker, or are about to be, and will be by others. What the first
    worker needs is best known before: it is imported for it alone otherwise, and for the next one
    again."""
    with _lock:
        _modules.update(modules)


def prepare(modules: Iterable[str]) -> None:
    """``learn``, and have the template import them now: it takes a second where Numba is one of
    them, in which this process goes on."""
    global _template
    learn(modules)
    with _lock, suppress(OSError):  # whoever needs a copy finds out
        if _template is None:
            _template = _Template()
        _template.prepare()


def _end_template() -> None:
    if _template is not None:
        _template.end()


def _forget() -> None:
    global _lock, _template
    _lock = threading.Lock()
    if _template is not None:
        _template.let_go()
        _template = None


atexit.register(_end_template)
os.register_at_fork(after_in_child=_forget)
