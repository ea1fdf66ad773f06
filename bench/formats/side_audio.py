"""One peer of audio.py's cases: `side_audio.py NAME FILES SECONDS`. Prints {"examples_per_s": …, "cpu_s_per_million": …}, processor time of all its processes."""

import glob
import io
import json
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))

from process_tree import cpu_seconds  # noqa: E402

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
    batches = globals()[f"{name}_batches"](files)
    for _ in range(4):
        next(batches)
    sounds, begin, cpu = 0, time.monotonic(), cpu_seconds()
    while time.monotonic() - begin < seconds:
        sounds += next(batches)
    took, cpu = time.monotonic() - begin, cpu_seconds() - cpu
    print(json.dumps({"examples_per_s": sounds / took, "cpu_s_per_million": 1e6 * cpu / sounds}))


if __name__ == "__main__":
    main()
