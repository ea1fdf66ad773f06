"""A wheel's promises: python check_wheel.py WHEEL, in an environment where it is installed.

At most 15 MB. What `import penstock` takes of processor time beyond the import of NumPy is printed, the least of several runs by
turns, each in a process of its own: 30 ms is the aim on a quiet machine. What it imports is tested (tests/client/kinds_test.py).
"""

import os
import subprocess
import sys

MAX_BYTES = 15_000_000
RUNS = 9

_MEASURE = "import time; begin = time.process_time(); import {}; print(time.process_time() - begin)"


def seconds(modules):
    done = subprocess.run([sys.executable, "-c", _MEASURE.format(modules)], check=True, capture_output=True, text=True)
    return float(done.stdout)


def main():
    (wheel,) = sys.argv[1:]
    size = os.path.getsize(wheel)
    print(f"{os.path.basename(wheel)}: {size / 1e6:.1f} MB")
    assert size <= MAX_BYTES, f"the wheel is larger than {MAX_BYTES} bytes: {size}"
    seconds("numpy, penstock")  # the files are warm, and compiled
    numpy, both = (min(times) for times in zip(*((seconds("numpy"), seconds("numpy, penstock")) for _ in range(RUNS))))
    print(f"import penstock: {1e3 * (both - numpy):.1f} ms beyond NumPy's {1e3 * numpy:.1f}")


if __name__ == "__main__":
    main()
