"""Does a run end, and does it leave its process alive? Tried in a copy of this process, which a
function of C may keep, or end, without harm to this one.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import warnings

from tcl.common.number_format import duration
from tcl.tuner.measure.harness import Run
from tcl.tuner.measure.verdict import Verdict

_DONE = 91
"""The exit code of a copy whose run has ended: a function may end its process with another one."""


def trial(run: Run, limit: float) -> tuple[Verdict, str] | None:
    """Run once in a copy of this process: how that failed, and what happened, in a sentence; None
    if nothing did within ``limit`` seconds, or if no copy can be made.

    What the copy writes stays in it, but for memory that processes share.
    """
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        with warnings.catch_warnings():
            # The copy runs the function and ends; it waits for no thread that it does not have.
            warnings.simplefilter("ignore")
            child = os.fork()
            if child == 0:
                resource.setrlimit(resource.RLIMIT_CORE, (0, most))
                _run_and_exit(run, limit)
    except OSError:  # no memory for one
        return None
    status = None
    try:
        status = os.waitpid(child, 0)[1]
    except ChildProcessError:  # somebody here waits for all children
        return None
    finally:
        if status is None:
            _interrupted(child)
    code = os.waitstatus_to_exitcode(status)
    if code == _DONE:
        return None
    if code == -signal.SIGALRM:
        return Verdict.TIMEOUT, f"it had not ended after {duration(limit)}"
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return Verdict.RUNTIME, f"it ended its process {how}"


def _run_and_exit(run: Run, limit: float) -> None:
    """In the copy. An alarm ends it in time, even if nobody is left who waits for it."""
    try:
        faulthandler.disable()
        for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        signal.setitimer(signal.ITIMER_REAL, limit)
        run()
    finally:  # an exception is raised again by the run that is measured
        os._exit(_DONE)


def _interrupted(child: int) -> None:
    """After Ctrl+C."""
    try:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except OSError:  # it has ended, and somebody else was told
        pass
