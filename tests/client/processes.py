"""What tests of several processes share."""

import contextlib
import os
import time


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.002)


@contextlib.contextmanager
def forked_child():
    """A child that has what this process has, and waits until the block has ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    try:
        yield
    finally:
        os.close(writing)
        os.waitpid(child, 0)


def stop(process):
    """SIGSTOP; returns when none of the process's threads runs any more, which the signal alone does not wait for."""
    # Programs that take its source have no imports of this file.
    import os
    import signal

    def state(task):
        try:
            with open(f"/proc/{process}/task/{task}/stat") as stat:
                return stat.read().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return "gone"

    os.kill(process, signal.SIGSTOP)
    while {state(task) for task in os.listdir(f"/proc/{process}/task")} != {"T"}:
        pass
