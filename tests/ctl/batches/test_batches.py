"""What `penstock run` writes and prints of tensors of every kind (tests/support/all_kinds.h)."""

import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

import penstock

# Of this environment, which may have no ml_dtypes.
pytestmark = pytest.mark.filterwarnings("ignore:bfloat16 tensors")

BIN = pathlib.Path(os.environ.get("PENSTOCK_BIN", "build/release/bin")).resolve()
STEPS = 7


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """For each step the printed line, the file's arrays, and the Python client's batch."""
    folder = tmp_path_factory.mktemp("batches")
    socket = str(folder / "socket")
    server = subprocess.Popen(
        [BIN / "kinds_server", socket, "--steps", str(STEPS), "--last-rows", "3", "--slots", "8"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout.readline() == b"ready\n"
    try:
        # They fit into this consumer's share of the ring, and so they are all there for the next.
        batches = list(penstock.attach("kinds", socket))
        command = [BIN / "write_batches", socket, "kinds", folder]
        lines = subprocess.check_output(command, text=True).splitlines()
    finally:
        server.kill()
        server.communicate()
    files = []
    for step in range(STEPS):
        with np.load(folder / f"{step}.npz") as arrays:
            files.append({name: arrays[name] for name in arrays})
    assert len(lines) == len(batches) == STEPS
    return list(zip(lines, files, batches))


def strings_of(arrays, name):
    offsets, data = arrays[name + ".offsets"], arrays[name + ".bytes"].tobytes()
    return [data[first:last] for first, last in zip(offsets, offsets[1:])]


def test_the_keys_of_each_kind(steps):
    _, arrays, _ = steps[0]
    assert list(arrays) == [
        "x", "half", "id",
        "name.offsets", "name.bytes",
        "note.offsets", "note.bytes",
        "words.offsets", "words.bytes", "words.shape",
        "crop",
        "ids.values", "ids.row_splits_0",
        "boxes.values", "boxes.row_splits_0",
        "tokens.values", "tokens.row_splits_0", "tokens.row_splits_1",
        "tags.offsets", "tags.bytes", "tags.row_splits_0",
        "paths.offsets", "paths.bytes", "paths.row_splits_0", "paths.row_splits_1",
    ]  # fmt: skip


def test_numpy_reads_what_the_client_sees(steps):
    for _, arrays, batch in steps:
        for name in ("x", "id", "crop"):
            np.testing.assert_array_equal(arrays[name], batch[name], strict=name != "id")
        assert arrays["half"].tobytes() == batch["half"].tobytes()
        for name in ("name", "note", "words"):
            assert strings_of(arrays, name) == batch[name].ravel().tolist()
        assert tuple(arrays["words.shape"]) == batch["words"].shape
        for name in ("ids", "boxes", "tokens"):
            np.testing.assert_array_equal(
                arrays[name + ".values"], batch[name].flat_values, strict=True
            )
        for name in ("tags", "paths"):
            assert strings_of(arrays, name) == batch[name].flat_values.tolist()
        for name in ("ids", "boxes", "tokens", "tags", "paths"):
            for axis, splits in enumerate(batch[name].nested_row_splits):
                np.testing.assert_array_equal(
                    arrays[f"{name}.row_splits_{axis}"], splits, strict=True
                )


def test_a_line_has_the_checksum_of_all_parts(steps):
    for line, arrays, batch in steps:
        found = re.findall(r"  (\w+) (\w+) (\([^)]*\)) crc32c=([0-9a-f]{8})", line)
        assert [name for name, *_ in found] == list(batch)
        for name, dtype, shape, crc in found:
            parts = [arrays[key] for key in arrays if key.split(".")[0] == name]
            assert int(crc, 16) == crc32c(b"".join(part.tobytes() for part in parts)), name
            want = str(batch[name].shape).replace("None", "?")
            assert shape == want
        assert found[0][1] == "float32" and found[3][1] == "string"
