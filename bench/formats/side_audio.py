"""One peer of audio.py's cases: `side_audio.py NAME FILES SECONDS`. Prints {"examples_per_s": …, "cpu_s_per_million": …}, processor time of all its processes."""

import glob
import io
import pathlib
import sys

from timed_loop import time_batches

BATCH = 4


def contents(files):
    return [pathlib.Path(path).read_bytes() for path in sorted(glob.glob(files))]


def decoded(data):
    import soundfile

    return soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)[0]


def soundfile_batches(files):
    """One sound after another, of which nothing is kept."""
    sounds = contents(files)
    while True:
        for data in sounds:
            decoded(data)
            yield 1


class Sounds:
    def __init__(self, files):
        self.sounds = contents(files)

    def __len__(self):
        return 1_000_000

    def __getitem__(self, number):
        return decoded(self.sounds[number % len(self.sounds)])


def torch_batches(files):
    """The same in the worker processes of a DataLoader."""
    import torch

    for batch in torch.utils.data.DataLoader(Sounds(files), BATCH, num_workers=2):
        yield len(batch)


def main():
    name, files, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    time_batches(globals()[f"{name}_batches"](files), warm_up=4, seconds=seconds)


if __name__ == "__main__":
    main()
