"""What functions of images and arrays cost beside TensorFlow's: `./dev bench functions [--quick] [--cases A,B]`.

Each case (cases.py) is run by turns in Penstock and in tf.data with parallel map and prefetch, and printed as a line of JSON: `ours`
and `theirs` are medians of microseconds of processor time an element, all processes together; `ratio`, `min` and `max` the median and
the extremes of theirs / ours over the turns. Everything else goes to stderr.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import cases
import paired_costs

TAKE = pathlib.Path(__file__).parents[1] / "effects" / "take.py"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tf-python", required=True, help="a Python with TensorFlow")
    paired_costs.add_options(parser, cases.CASES)
    arguments = parser.parse_args()

    def microseconds(python, side, case):
        command = [python, TAKE, "--side", side, "--cases-of", pathlib.Path(__file__).parent, "--case", case, "--folder", ".",
                   "--seconds", arguments.seconds, "--tuned"]  # fmt: skip
        return paired_costs.run_json(command, arguments.seconds)["cpu_s_per_million"]

    return paired_costs.compare(
        parser, arguments, cases.CASES, "tf.data",
        ours=lambda case: microseconds(sys.executable, "penstock", case),
        theirs=lambda case: microseconds(arguments.tf_python, "tensorflow", case),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
