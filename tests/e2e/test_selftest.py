"""`penstock selftest`: evidence on a user's own files."""

import re

import numpy as np
import penstock
from programs import on_a_terminal


def test_it_compares_workers_resumes_and_kills(penstock_command, counter):
    # A seed that is drawn is drawn once for all runs.
    spec = counter(records=200, more="stage { repeat {} }")
    spec.write_text(spec.read_text().replace("stage { parse_example", "stage { shuffle { buffer_size: 20 } } stage { parse_example"))
    done = penstock_command("selftest", spec, "--steps", 30, "--resumes", 2, "--kills", 2, "--seed", 3, "--workers", 3)
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert lines[0].split() == "1 worker, undisturbed 30 batches".split()
    assert re.search(r"step 29 .*crc32c=[0-9a-f]{8}", lines[2])
    assert len([line for line in lines if line.startswith("resumed after batch")]) == 2
    assert len([line for line in lines if line.startswith("killed at batch")]) == 2
    assert all(line.endswith(", the same") for line in lines[3:-1])
    assert re.fullmatch(r"the same bytes in \d+ runs, \d+ batches compared", lines[-1])


def test_on_a_terminal_a_bar_shows_how_far_it_is(penstock_command, counter):
    words = ["selftest", counter(), "--steps", 6, "--resumes", 1, "--kills", 1, "--seed", 3, "--workers", 2]
    done = on_a_terminal(penstock_command.command(*words), cwd=penstock_command.folder, env=penstock_command.environment)
    drawn = done.stderr
    assert done.returncode == 0, drawn
    bars = re.findall(r"\r\[(#*)\.*\] +(\d+) %  (.*?)\x1b\[K", drawn)
    assert bars[0] == ("", "0", "1 worker, undisturbed")
    percents = [int(percent) for _, percent, _ in bars]
    assert percents == sorted(percents) and percents[-1] <= 100
    said = {line[:44].rstrip() for line in done.stdout.splitlines()}
    assert {name for _, _, name in bars} <= said
    assert drawn.endswith("\r\x1b[K")
    assert "%" not in done.stdout
    # Where there is no terminal, there is no bar.
    piped = penstock_command(*words)
    assert (piped.code, piped.err) == (0, "")


def test_a_finite_stream_is_compared_to_its_end(penstock_command, counter):
    done = penstock_command("selftest", counter(), "--resumes", 2, "--kills", 1)
    assert done.code == 0, done
    assert "11 batches, to the end" in done.out


def test_what_cannot_run_is_an_error(penstock_command, counter):
    spec = counter()
    spec.write_text(spec.read_text().replace("float32(n)", "float32(nothing)"))
    done = penstock_command("selftest", spec)
    assert done.code == 1 and "nothing" in done.err
    assert penstock_command("selftest", counter(), "--steps", 0).code == 2


class CountsCalls:
    """Impure: what it gives for some elements depends on how many its process has had."""

    def __init__(self):
        self.calls = 0

    def __call__(self, number):
        self.calls += 1
        return np.int64(self.calls if number % 8 == 5 else number)


def test_an_impure_python_function_is_found_and_the_first_element_that_differs(penstock_command, tmp_path):
    dataset = penstock.Dataset.range(1000).map(CountsCalls(), python=True, output=penstock.TensorSpec((), np.int64), workers=1).batch(8)
    spec = tmp_path / "impure.textproto"
    spec.write_text(dataset.spec_text())
    # This process has the function as long as the dataset is there.
    done = penstock_command("selftest", spec, "--steps", 6, "--resumes", 1, "--kills", 0, "--seed", 3, "--workers", 2)
    assert done.code != 0, done
    behind = int(re.search(r"^resumed after batch (\d+), \d workers +DIFFERENT: $", done.out, re.MULTILINE)[1])
    assert f"\n  first     element {8 * (behind + 1) + 5} of the stream: row 5 of that batch\n" in done.out, done
    assert done.out.splitlines()[-1] == "DIFFERENT BYTES; again: --seed 3"
