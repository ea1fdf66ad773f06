"""What augmenting images costs beside torchvision and Pillow: `./dev bench augment [--quick] [--cases A,B]`.

Each case (cases.py) is run by turns in Penstock, from the image to the batch in a client, and in a loop over torchvision's function that
makes batches of its results, as a DataLoader's worker does, and printed as a line of JSON: `ours` and `theirs` are medians of microseconds of processor time an image, all processes together;
`ratio`, `min` and `max` the median and the extremes of theirs / ours over the turns. Everything else goes to stderr.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import cases
import numpy

TAKE = pathlib.Path(__file__).parents[1] / "effects" / "take.py"


def run(command, seconds):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120 + 20 * seconds)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def write_photo(folder):
    import penstock

    picture = penstock.Dataset.from_tensors(cases.picture(375, 500))
    (file,) = picture.map(lambda x: penstock.io.encode_jpeg(x, quality=90))
    (pathlib.Path(folder) / "photo.jpg").write_bytes(file.item())


def penstock(case, folder, seconds):
    command = [sys.executable, TAKE, "--side", "penstock", "--cases-of", pathlib.Path(__file__).parent, "--case", case,
               "--folder", folder, "--seconds", seconds]  # fmt: skip
    return run(command, seconds)["cpu_s_per_million"]


def torchvision(python, case, folder, seconds):
    return run([python, __file__, "--loop", case, "--folder", folder, "--seconds", seconds], seconds)


def loop(case, folder, seconds):
    """Batches made in this process: microseconds an image."""
    import PIL.Image

    function = cases.torchvision_recipe(folder) if case == "recipe" else cases.torchvision_functions()[case]
    image = PIL.Image.fromarray(cases.IMAGE)

    def batch():
        return numpy.stack([numpy.asarray(function(image)) for _ in range(cases.BATCH)])

    batch()
    batches, start, end = 0, time.process_time(), time.monotonic() + seconds
    while time.monotonic() < end:
        batch()
        batches += 1
    return (time.process_time() - start) / (batches * cases.BATCH) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch-python", help="a Python with torchvision")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--loop", metavar="CASE", help="torchvision's side of one case")
    compared = [case for case in cases.CASES if case != "image"]
    parser.add_argument("--cases", type=lambda text: text.split(","), default=compared)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="the window's length")
    parser.add_argument("--quick", action="store_true", help="one run")
    arguments = parser.parse_args()
    if arguments.loop:
        print(json.dumps(loop(arguments.loop, arguments.folder, arguments.seconds)))
        return 0
    runs = 1 if arguments.quick else arguments.runs
    unknown = set(arguments.cases) - set(compared)
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}. There are: {', '.join(compared)}")
    with tempfile.TemporaryDirectory() as folder:
        write_photo(folder)
        return compare(arguments, runs, folder)


def compare(arguments, runs, folder):
    failed = False
    for case in arguments.cases:
        try:
            pairs = [(penstock(case, folder, arguments.seconds), torchvision(arguments.torch_python, case, folder, arguments.seconds))
                     for _ in range(runs)]  # fmt: skip
            ratios = [theirs / ours for ours, theirs in pairs]
            ours, theirs = (round(statistics.median(side), 1) for side in zip(*pairs))
            ratio, least, most = (round(value, 3) for value in (statistics.median(ratios), min(ratios), max(ratios)))
            print(json.dumps({"case": case, "peer": "torchvision", "ours": ours, "theirs": theirs, "ratio": ratio, "runs": runs,
                              "min": least, "max": most}), flush=True)  # fmt: skip
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            print(f"FAILED: {case}: {error}", file=sys.stderr, flush=True)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
