"""A wheel's promises: python check_wheel.py WHEEL, in an environment where it is installed.

At most 15 MB, and `import penstock` takes less processor time beyond the import of NumPy than that takes itself: the least of
several runs of each, each in a process of its own. It prints how much; 30 ms is the aim on a quiet machine.
"""

import os
import subprocess
import sys

MAX_BYTES = 15_000_000
RUNS = 9

_MEASURE = "import time; begin = time.process_time(); import {}; print(time.process_time() - begin)"


def least_seconds(modules):
    times = []
    for _ in range(RUNS):
        done = subprocess.run([sys.executable, "-c", _MEASURE.format(modules)], check=True, capture_output=True, text=True)
        times.append(float(done.stdout))
    return min(times)


def main():
    (wheel,) = sys.argv[1:]
    size = os.path.getsize(wheel)
    print(f"{os.path.basename(wheel)}: {size / 1e6:.1f} MB")
    assert size <= MAX_BYTES, f"the wheel is larger than {MAX_BYTES} bytes: {size}"
    least_seconds("numpy, penstock")  # the files are warm, and compiled
    numpy = least_seconds("numpy")
    more = least_seconds("numpy, penstock") - numpy
    print(f"import penstock: {1e3 * more:.1f} ms beyond NumPy's {1e3 * numpy:.1f}")
    assert more <= numpy, f"import penstock takes longer than that of NumPy: {more:.3f} s beyond {numpy:.3f} s"


if __name__ == "__main__":
    main()
