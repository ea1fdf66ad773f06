"""Batches on a device through a real daemon: how long after the daemon's copy another process has them (hand_over.py), and what training
loops wait (flowers.py).

    python bench/cuda/run.py [--device N] [--seconds S] [--photos GLOB]

One line of JSON a case. Without a device it says so, and nothing was measured; a peer whose package is not installed is named as not run.
"""

import argparse
import pathlib
import subprocess
import tempfile

import penstock.cuda
from daemon import Daemon, tell
from flowers import flowers
from hand_over import hand_over


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10, help="of each training loop")
    parser.add_argument("--photos", help="photographs of which flowers are made; without them that case is left out")
    parser.add_argument("--batches", type=int, default=3000, help="of hand_over")
    arguments = parser.parse_args()
    try:
        penstock.cuda.open(arguments.device)
    except penstock.Error as error:
        tell("cuda", not_run=str(error))
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        daemon = Daemon(folder)
        try:
            hand_over(daemon, arguments.device, arguments.batches)
            if arguments.photos:
                subprocess.run([daemon.penstock, "make-sample", "flowers", "--photos", arguments.photos, "--records", "2000", "--out",
                                folder / "flowers"], check=True, stdout=subprocess.DEVNULL)
                flowers(daemon, f"{folder}/flowers/*.tfrecord", arguments.device, arguments.seconds)
            else:
                tell("flowers", not_run="no photographs: --photos GLOB")
        finally:
            daemon.stop()


if __name__ == "__main__":
    main()
