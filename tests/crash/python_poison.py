"""One element in 10,000 that harms its worker process: what it costs, and that all others are as they were: fault 64 of docs/reliability.md.

    python_poison.py [--elements 10000] [--workers 2] [--most-seconds 2] [--timeout-ms 300] [--seed S] [--campaign]

For each kind of poison a dataset of so many elements with one of them at a random place, and one with all kinds, each by `ignore_errors`. Nothing but that
element is left out, `skipped()` says why, and the bytes of all others, draws among them, are those of a run without poison. The seconds lost are those that the
run took beyond the one without.

With --campaign a line about it is added to tests/campaigns.jsonl. The Python package must be on PYTHONPATH, and PENSTOCK_BIN the folder of the programs.
"""

import argparse
import os
import pathlib
import random
import struct
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import campaigns  # noqa: E402
import numpy as np  # noqa: E402
import poison_rows  # noqa: E402

import penstock  # noqa: E402

# What skipped() says of each kind.
REASONS = {
    "segfault": "ended its process (SIGSEGV) twice",
    "hang": "took longer than timeout_ms ({timeout_ms}) twice",
    "exit": "ended its process (exit status 3) twice",
    "memory": "MemoryError",
}
BATCH = 50


def taken(elements, poison, workers, timeout_ms):
    """The rows, seconds and reasons of what was left out; `poison`: a dict from places to kinds."""
    rows = penstock.Dataset.range(elements).map(
        poison_rows.Poisoned(poison), python=True, output=penstock.TensorSpec((3,), np.float64), timeout_ms=timeout_ms, seed=5, workers=workers
    )
    dataset = rows.ignore_errors().batch(BATCH)
    with warnings.catch_warnings():
        # That elements are left out.
        warnings.simplefilter("ignore", RuntimeWarning)
        started = time.monotonic()
        found = np.concatenate([np.array(batch) for batch in dataset])
        seconds = time.monotonic() - started
    skipped = dataset.skipped()
    assert skipped.count == len(skipped.places)
    return found, seconds, [place["reason"] for place in skipped.places]


def lost_by(kinds, elements, workers, timeout_ms, dice):
    """The seconds that each poison costs, one of each kind in `elements` for each of them."""
    poison = {number * elements + dice.randrange(elements): kind for number, kind in enumerate(kinds)}
    count = elements * len(kinds)
    clean, before, none = taken(count, {}, workers, timeout_ms)
    found, seconds, reasons = taken(count, poison, workers, timeout_ms)
    assert not none and len(clean) == count
    assert clean[:, 0].tolist() == list(range(count))
    assert found.tobytes() == np.delete(clean, sorted(poison), axis=0).tobytes(), f"other rows than {poison} are missing or have other bytes"
    assert len(reasons) == len(kinds), reasons
    for (place, kind), reason in zip(sorted(poison.items()), reasons):
        assert REASONS[kind].format(timeout_ms=timeout_ms) in reason, f"element {place}, {kind}: {reason}"
    return (seconds - before) / len(kinds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elements", type=int, default=10_000, help="of which one is poison")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--most-seconds", type=float, default=2.0, help="that one may cost")
    parser.add_argument("--timeout-ms", type=int, default=300, help="a row's")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--campaign", action="store_true", help="note it in tests/campaigns.jsonl")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else struct.unpack("<I", os.urandom(4))[0]
    dice = random.Random(seed)
    os.environ.setdefault("PENSTOCKD", str(pathlib.Path(os.environ["PENSTOCK_BIN"]) / "penstockd"))
    started = time.monotonic()
    # The first worker imports what others find in the page cache.
    taken(100, {}, arguments.workers, arguments.timeout_ms)
    lost = {}
    for name, kinds in {**{kind: [kind] for kind in REASONS}, "all": list(REASONS)}.items():
        lost[name] = round(lost_by(kinds, arguments.elements, arguments.workers, arguments.timeout_ms, dice), 2)
        print(f"{name}: {lost[name]:.2f} s lost for each, and the element alone", flush=True)
    late = {name: seconds for name, seconds in lost.items() if seconds > arguments.most_seconds}
    assert not late, f"poison costs more than {arguments.most_seconds} s: {late}; seed {seed}"
    if arguments.campaign:
        more = {"of_elements": arguments.elements, "seconds_lost": lost, "seed": seed}
        print(campaigns.note("poison in Python functions", 2 * len(REASONS), "elements", time.monotonic() - started, **more))


if __name__ == "__main__":
    main()
