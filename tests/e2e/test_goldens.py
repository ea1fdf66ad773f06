"""Both reference pipelines, run as a user runs them, against tf.data's own results (tests/golden/README.md)."""

import hashlib
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
PENSTOCK = pathlib.Path(os.environ["PENSTOCK_BIN"]) / "penstock"


def in_order(name, folder):
    """The pipeline's spec without shuffle and repeat, with its last batch kept: what tf.data was asked for."""
    text = (ROOT / "config" / "pipelines" / f"{name}.textproto").read_text()
    text, shuffles = re.subn(r"stage \{ shuffle \{[^}]*\} \}", "", text)
    text, repeats = re.subn(r"stage \{ repeat \{[^}]*\} \}", "", text)
    assert shuffles == 1 and repeats == 1
    path = folder / f"{name}.textproto"
    path.write_text(text.replace("drop_remainder: true", "drop_remainder: false"))
    return path


def run(name, files, folder, workers=2):
    """All rows of the pipeline over the files: a dict of arrays, and the number of steps."""
    out = folder / "out"
    command = [PENSTOCK, "run", in_order(name, folder), "--out", out, "--workers", str(workers)]
    for file in files:
        command += ["--files", GOLDEN / file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    steps = [dict(np.load(path)) for path in sorted(out.glob("step-*.npz"))]
    return {key: np.concatenate([step[key] for step in steps]) for key in steps[0]}, len(steps)


def sha256(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


@pytest.mark.parametrize(
    "name, dtype, tolerance",
    [("chess", np.float64, 1e-12), ("chess_float32", np.float32, 5e-7)],
)
def test_chess_equals_tensorflow(name, dtype, tolerance, tmp_path):
    golden = np.load(GOLDEN / "pipeline_chess.npz")
    rows = {}
    for part, file in enumerate(["chess.tfrecord", "chess_extremes.tfrecord"]):
        folder = tmp_path / str(part)
        folder.mkdir()
        rows[part], steps = run(name, [file], folder)
        assert steps == 1
    board, flags, score = (np.concatenate([rows[0][key], rows[1][key]]) for key in ("board", "flags", "score"))
    assert board.shape == (128, 8, 8, 24) and board.dtype == dtype
    assert flags.shape == (128, 10) and flags.dtype == dtype
    assert score.shape == (128,) and score.dtype == dtype
    np.testing.assert_array_equal(board, golden["board"].astype(dtype))
    np.testing.assert_array_equal(flags, golden["flags"].astype(dtype))
    # The bytes too: no value is -0.0.
    type_name = np.dtype(dtype).name
    assert sha256(board) == str(golden[f"board_{type_name}_sha256"])
    assert sha256(flags) == str(golden[f"flags_{type_name}_sha256"])
    difference = np.abs(score.astype(np.float64) - golden[f"score_{type_name}"].astype(np.float64))
    assert difference.max() <= tolerance, difference.max()


@pytest.mark.parametrize("workers", [1, 3])
def test_flowers_equals_tensorflow(workers, tmp_path):
    golden = np.load(GOLDEN / "pipeline_flowers.npz")
    rows, _ = run("flowers", ["flowers.tfrecord"], tmp_path, workers)
    assert rows["image"].shape == (8, 192, 192, 3) and rows["image"].dtype == np.float32
    assert rows["label"].dtype == np.int64
    np.testing.assert_array_equal(rows["label"], golden["label"])
    np.testing.assert_allclose(rows["image"][:, ::8, ::8], golden["image_every_8th"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(rows["image"][:, -1], golden["image_last_rows"], rtol=0, atol=1e-5)
    # Every pixel as TensorFlow has it: decoding, resizing and scaling are equal to the last bit.
    assert [sha256(image) for image in rows["image"]] == [str(digest) for digest in golden["image_sha256"]]
