"""Takes batches of everything whose last bit could depend on the machine, and compares their sums with those of sums_of_batches.txt.

    python sums_of_batches.py [--write]

The sums were written on x86-64. The Python that runs this must find the `penstock` package; `penstock` is in PENSTOCK_BIN, or beside this Python.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import penstock

SUMS = pathlib.Path(__file__).with_suffix(".txt")


def transcendental(value):
    """Functions that a library of another machine computes in another way. Of float64 those that docs/limits.md does not except."""
    x = value.astype("float64") / 64 + 0.015625
    y = x.astype("float32")
    out = {"power64": np.power(x, 0.3), "power32": np.power(y, 0.3), "arctan2": np.arctan2(y, 2.0), "hypot": np.hypot(y, 3.0)}
    for name in ("exp", "log", "log1p", "tanh", "sqrt", "reciprocal"):
        out[f"{name}64"] = getattr(np, name)(x)
    for name in ("exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "tanh", "sinh", "arctan", "arcsinh", "cbrt", "sqrt", "reciprocal"):
        out[f"{name}32"] = getattr(np, name)(y)
    return out


def chess(features):
    bits = penstock.functions.unpack_bits(penstock.io.decode_raw(features["d"], penstock.uint8))
    score = features["s"].astype("float64")
    return {"bits": bits, "mean": bits.astype("float32").mean(), "deviation": bits.astype("float64").std(), "score": np.tanh(score / 400) * 0.9}


def photograph(features):
    image = penstock.image.decode_jpeg(features["image/encoded"], channels=3)
    small = penstock.image.resize(image, [96, 96])
    return {"plain": image.sum(), "small": small, "hue": penstock.image.adjust_hue(small / 255, 0.1),
            "grey": penstock.image.rgb_to_grayscale(small), "standard": penstock.image.per_image_standardization(small)}


def datasets(folder):
    """{name: a dataset}; the files are drawn in `folder`."""
    program = pathlib.Path(os.environ.get("PENSTOCK_BIN") or pathlib.Path(sys.executable).parent, "penstock")
    for kind, records in (("chess", 200), ("flowers", 24)):
        subprocess.run([program, "make-sample", kind, "--records", str(records), "--out", folder / kind], check=True, stdout=subprocess.DEVNULL)
    fixed, text, number = penstock.io.FixedLenFeature, penstock.string, penstock.int64
    records = penstock.TFRecordDataset(str(folder / "chess" / "*.tfrecord"))
    return {
        "records": records.batch(16),
        "numbers": penstock.Dataset.range(3000).shuffle(500, seed=7).map(transcendental).batch(128),
        "chess": records.shuffle(64, seed=3).parse_example({"d": fixed([], text), "s": fixed([], number)}).map(chess).batch(32),
        "flowers": penstock.TFRecordDataset(str(folder / "flowers" / "*.tfrecord")).parse_example({"image/encoded": fixed([], text)})
        .map(photograph).batch(8),
    }


def sums(dataset):
    """{name of a tensor: the sum of its dtype, shapes and bytes in all batches}."""
    found = {}
    for batch in dataset:
        for name, values in (batch.items() if isinstance(batch, dict) else [("", batch)]):
            values = np.asarray(values)
            found.setdefault(name, hashlib.sha256()).update(f"{values.dtype} {values.shape} ".encode())
            found[name].update(b"\0".join(values.ravel().tolist()) if values.dtype == object else values.tobytes())
    return {name: digest.hexdigest() for name, digest in found.items()}


def a_wrong_checksum_is_found(folder):
    (path, *_) = sorted((folder / "chess").glob("*.tfrecord"))
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    try:
        for _ in penstock.TFRecordDataset(str(path)).batch(16):
            pass
    except penstock.Error:
        return True
    return False


def main(words):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        lines = [f"{digest}  {name} {tensor}".rstrip() for name, dataset in datasets(folder).items() for tensor, digest in sorted(sums(dataset).items())]
        if not a_wrong_checksum_is_found(folder):
            sys.exit("a record whose checksum is wrong was read")
    if words == ["--write"]:
        SUMS.write_text("".join(f"{line}\n" for line in lines))
        return
    wrong = set(SUMS.read_text().splitlines()) ^ set(lines)
    if wrong:
        sys.exit("these sums differ from those of x86-64: " + ", ".join(sorted({line.split("  ")[1] for line in wrong})))
    print(len(lines), "sums are those of x86-64")


if __name__ == "__main__":
    main(sys.argv[1:])
