"""A trainer of one of the builds that builds.py compares: a line of standard input says for how many seconds it takes batches, and a line of JSON what that came to."""

import argparse
import glob
import json
import os
import sys
import time

import penstock

import window


def cpu_seconds(pid):
    """What all threads of a process have run so far, as the scheduler counts it (man 5 proc, schedstat): in nanoseconds, where stat has ticks."""
    return sum(int(open(path).read().split()[0]) for path in glob.glob(f"/proc/{pid}/task/*/schedstat")) / 1e9


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True)
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--daemon-pid", type=int, required=True)
    parser.add_argument("--read", action="store_true", help="sum every byte")
    arguments = parser.parse_args()
    touch = window.sum_bytes if arguments.read else window.touch_ends
    pids = arguments.daemon_pid, os.getpid()

    batches = iter(penstock.attach(arguments.pipeline, socket=arguments.socket))

    def take(seconds):
        begin = time.perf_counter()
        examples = 0
        while (elapsed := time.perf_counter() - begin) < seconds:
            arrays = tuple(next(batches).values())
            touch(arrays)
            examples += len(arrays[0])
        return examples, elapsed

    take(0.5)
    print("ready", flush=True)
    for line in sys.stdin:
        # What became ready while the other build was measured.
        take(float(line) / 5)
        before = sum(map(cpu_seconds, pids))
        examples, elapsed = take(float(line))
        cpu = sum(map(cpu_seconds, pids)) - before
        print(json.dumps({"examples_per_s": examples / elapsed, "cpu_s_per_million": cpu / examples * 1e6}), flush=True)


if __name__ == "__main__":
    main()
