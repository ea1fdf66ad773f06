"""How long behind the ring a trainer's process has a batch on the device, and has read it back from there.

Processes note when they have which batch of a slow pipeline, each as a group of its own:

  host   as soon as it lies in the mapped ring: the clock of the others
  copy   having copied it to the device by itself (cuMemcpyHtoDAsync out of the mapped ring) and read it back
  ring   having found it in the device's ring and read it back

`apart`: copy beside host on a pipeline without a device, ring beside host on one with it; `added_us` is by how much ring is later than
copy. `together`: copy and ring on one pipeline, where the daemon's copies and the trainer's own share the device.

One worker makes the batches, so that each finds everybody waiting; and all ask without end instead of sleeping, since what it takes to wake a
process (microseconds, or hundreds of them in a virtual machine) is the ring's and not the device's: bench_handover measures that.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import penstock
import penstock.cuda

from daemon import tell

SPEC = """
name: "plain"
stage {{ range {{ stop: 10000000 }} }}
stage {{ map {{ constant {{ name: "ZEROS" dtype: "float64" shape: 1024 {values} }}
                out: "x = uint8(ZEROS + float64(value))" out: "work = sum(tanh(ZEROS + float64(value)))" out: "n = value" }} }}
stage {{ batch {{ batch_size: 64 drop_remainder: true }} }}
ring {{ {ring} }}
"""
# The first batches are left out: processes start, and slots are pinned.
WARM_UP_SHARE = 0.1
RUN_S = 60
# Of what a process notes: when it had the batch, and when it had read it.
TAKEN, READ = 0, 1


def at_once(loader):
    """The next batch, without a sleep."""
    while True:
        try:
            return next(loader)
        except penstock.DeadlineExceededError:
            pass


def follow(side, socket, device, batches):
    """One of the processes: prints when it had which batch, in nanoseconds of the clock that they share."""
    cuda = None if side == "host" else penstock.cuda.open(device)
    loader = penstock.attach("plain", socket, group=side, timeout=0, cuda=cuda if side == "ring" else None)
    seen, memory = [], None
    for _ in range(batches):
        batch = at_once(loader)
        taken = time.perf_counter_ns()
        images = batch["x"]
        if side == "copy":
            if memory is None:
                memory = cuda.to_device(images)
            cuda.copy(images, memory.__cuda_array_interface__["data"][0])
            memory.numpy()
        elif side == "ring":
            images.numpy()
        read = time.perf_counter_ns()
        number = batch["n"].numpy() if side == "ring" else batch["n"]
        seen.append((int(number[0]), (taken, read)))
    # Memory of the ring goes back before the loader does, and the loader before a full pipe may hold this process up, and with it
    # the ring and the other process.
    del batch, images, number
    loader.close()
    print(json.dumps({"seen": seen[int(len(seen) * WARM_UP_SHARE) :], "stats": cuda.stats() if cuda else {}}))


def run(daemon, device, batches, ring, sides):
    """What each side saw: {number of its first row: when}, and its statistics."""
    daemon.create("plain", SPEC.format(values=" ".join("value: 0" for _ in range(1024)), ring=ring))
    daemon.update("plain", "--workers", "1")
    command = [sys.executable, __file__, "--device", str(device), "--batches", str(batches), "--socket", daemon.socket]
    processes = {side: subprocess.Popen([*command, side], stdout=subprocess.PIPE, text=True) for side in sides}
    found = {}
    try:
        for side, process in processes.items():
            out, _ = process.communicate(timeout=RUN_S)
            if process.returncode != 0:
                raise SystemExit(f"hand_over: {side} failed")
            found[side] = json.loads(out)
            found[side]["seen"] = dict(map(tuple, found[side]["seen"]))
    finally:
        # None goes on asking when another has failed.
        for process in processes.values():
            process.kill()
            process.wait()
    daemon.delete("plain")
    return found


def later(found, first, second, moment=READ):
    """By how many microseconds `second` had, or had read, each batch after `first` had."""
    one, other = found[first]["seen"], found[second]["seen"]
    both = sorted(one.keys() & other.keys())
    if len(both) < 2:
        raise SystemExit(f"hand_over: {first} and {second} had no batches in common")
    return [(other[number][moment] - one[number][READ]) / 1e3 for number in both]


def percentiles(values):
    """10, 50 and 90 %."""
    tenths = statistics.quantiles(values, n=10)
    return [round(tenths[at], 1) for at in (0, 4, 8)]


def hand_over(daemon, device, batches):
    on_device = f"device: {device} slots: 8"
    copy, ring, ring_taken = [], [], []
    stats = {}
    # There and back, so that what changes meanwhile counts for both.
    for side in ("copy", "ring", "ring", "copy"):
        found = run(daemon, device, batches // 2, on_device if side == "ring" else "slots: 8", ["host", side])
        if side == "copy":
            copy += later(found, "host", side)
            stats = found[side]["stats"]
        else:
            ring += later(found, "host", side)
            ring_taken += later(found, "host", side, TAKEN)
    tell("hand_over", side="apart", batch_bytes=64 * 1024, batches=len(ring), copy_us=percentiles(copy), ring_us=percentiles(ring),
         ring_taken_us=percentiles(ring_taken), added_us=round(statistics.median(ring) - statistics.median(copy), 2),
         straight_copies=stats["copies"], why_staged=stats["why_staged"])
    added = later(run(daemon, device, batches, on_device, ["copy", "ring"]), "copy", "ring")
    tell("hand_over", side="together", batches=len(added), added_us=percentiles(added))


def main():
    parser = argparse.ArgumentParser(description="one of the processes; bench/cuda/run.py starts it")
    parser.add_argument("side", choices=["host", "copy", "ring"])
    parser.add_argument("--device", type=int)
    parser.add_argument("--batches", type=int)
    parser.add_argument("--socket", type=pathlib.Path)
    arguments = parser.parse_args()
    follow(arguments.side, str(arguments.socket), arguments.device, arguments.batches)


if __name__ == "__main__":
    main()
