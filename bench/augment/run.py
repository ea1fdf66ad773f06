"""What augmenting images costs beside torchvision and Pillow: `./dev bench augment [--quick] [--cases A,B]`.

Each case (cases.py) is run by turns in Penstock, from the image to the batch in a client, and in a loop over torchvision's function that
makes batches of its results, as a DataLoader's worker does, and printed as a line of JSON: `ours` and `theirs` are medians of microseconds of processor time an image, all processes together;
`ratio`, `min` and `max` the median and the extremes of theirs / ours over the turns. Everything else goes to stderr.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import cases
import numpy
import paired_costs

TAKE = pathlib.Path(__file__).parents[1] / "effects" / "take.py"


def write_photo(folder):
    import penstock

    picture = penstock.Dataset.from_tensors(cases.picture(375, 500))
    (file,) = picture.map(lambda x: penstock.io.encode_jpeg(x, quality=90))
    (pathlib.Path(folder) / "photo.jpg").write_bytes(file.item())


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
    paired_costs.add_options(parser, compared)
    arguments = parser.parse_args()
    if arguments.loop:
        print(json.dumps(loop(arguments.loop, arguments.folder, arguments.seconds)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write_photo(folder)
        more = ["--folder", folder, "--seconds", arguments.seconds]

        def penstock(case):
            command = [sys.executable, TAKE, "--side", "penstock", "--cases-of", pathlib.Path(__file__).parent, "--case", case, *more]
            return paired_costs.run_json(command, arguments.seconds)["cpu_s_per_million"]

        def torchvision(case):
            return paired_costs.run_json([arguments.torch_python, __file__, "--loop", case, *more], arguments.seconds)

        return paired_costs.compare(parser, arguments, compared, "torchvision", penstock, torchvision)


if __name__ == "__main__":
    sys.exit(main())
