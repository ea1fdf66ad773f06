"""What a worker process is started with, by its path: the rest of the room, without the rest of the package.

Descriptors: 3 the function's file, 4 inputs, 5 outputs, 6 the socket, 7 where its stack goes. sys.argv: this file, the bytes of the configuration, the daemon's process.
"""

import os
import sys


def main():
    # In the package's place, whose own import takes NumPy and the native module; _package makes it the whole of it for a function that asks.
    package = type(sys)("penstock")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["penstock"] = package
    from penstock._worker import _process

    _process.main(int(sys.argv[2]), int(sys.argv[3]))


if __name__ == "penstock._worker._start" and len(sys.argv) == 4:
    try:
        main()
    finally:
        # Threads that the function has started do not hold it up.
        try:
            sys.stdout.flush()
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
