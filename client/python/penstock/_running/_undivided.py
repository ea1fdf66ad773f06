"""What a thread does once at a time, although signals come in between."""

import threading

from penstock import _errors


class Undivided:
    """A context manager beside a lock that a thread may take twice (RLock), which is taken first: within, the thread is not to come again.

    A signal's handler runs in the main thread, between any two steps of what that does. With a plain lock it would wait for what it has
    interrupted, and that for it; here it is refused.

    Raises:
      FailedPreconditionError: on the way in, a second time in one thread.
    """

    __slots__ = ("_what", "_thread")

    def __init__(self, what):
        self._what = what
        self._thread = None

    @property
    def is_mine(self):
        """Whether this thread is within."""
        return self._thread == threading.get_ident()

    def __enter__(self):
        if self._thread is not None:
            raise _errors.FailedPreconditionError(f"{self._what} by the code that this one has interrupted, as a signal's handler does: come again behind it")
        self._thread = threading.get_ident()

    def __exit__(self, *error):
        self._thread = None
