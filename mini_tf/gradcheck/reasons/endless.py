"""Changes that would never end, such as `np.c_ @ W`, for which NumPy asks np.c_ for one item after another."""

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

POLL = 0.25              # seconds between two looks at the clock

_lock = threading.Lock()
_deadlines = {}          # {thread: when it is interrupted}
_interrupted = set()     # threads
_watches = False         # whether the thread that looks at the clock is running


class TooLong(TimeoutError):
    """What runs took longer than it may."""


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Inside the block, TooLong is raised after so many seconds, as soon as a line of Python runs.

    It comes from a thread of its own: so it works in any thread, and on any system.
    """
    global _watches
    thread = threading.get_ident()
    with _lock:
        _deadlines[thread] = time.monotonic() + seconds
        if not _watches:
            threading.Thread(target=_watch, name="mini_tf endless", daemon=True).start()
            _watches = True
    try:
        yield
    finally:
        with _lock:
            _deadlines.pop(thread, None)
        if thread in _interrupted:
            _interrupted.discard(thread)
            with suppress(TooLong):                      # if it is still to come, it comes here, and not later
                for _ in range(100):
                    time.sleep(0)


def _watch():
    global _watches
    while True:
        time.sleep(POLL)
        with _lock:
            if not _deadlines:
                _watches = False
                return
            for thread in [thread for thread, deadline in _deadlines.items() if time.monotonic() > deadline]:
                del _deadlines[thread]
                _interrupted.add(thread)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TooLong))
