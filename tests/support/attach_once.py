"""Checks an installation: makes data, starts the daemon, takes all batches; then the same from a private daemon, which the package has
to find by itself.

    python attach_once.py BIN

BIN is the folder of `penstock` and `penstockd`; the Python that runs this must find the `penstock` package.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import penstock

SPEC = """
name: "installed"
stage { tfrecord { files: "chess/*.tfrecord" } }
stage { parse_example { feature { key: "d" bytes { length: 194 } } feature { key: "s" int64 {} } } }
stage { map { out: "bits = unpack_bits(d)" out: "score = float32(s)" } }
stage { batch { batch_size: 8 } }
"""


def main(bin_folder):
    bin_folder = pathlib.Path(bin_folder)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([bin_folder / "penstock", "make-sample", "chess", "--records", "20", "--out", "chess"],
                       cwd=folder, check=True)
        pathlib.Path(folder, "spec.textproto").write_text(SPEC)
        socket = os.path.join(folder, "penstock.sock")
        ready, ready_end = os.pipe()
        daemon = subprocess.Popen([bin_folder / "penstockd", "--socket", socket, "--ready-fd", str(ready_end), "--state-dir", "none"], pass_fds=[ready_end])
        os.close(ready_end)
        try:
            assert os.read(ready, 1), "penstockd did not start"
            subprocess.run([bin_folder / "penstock", "--socket", socket, "create", "spec.textproto"], cwd=folder, check=True)
            rows = 0
            for batch in penstock.attach("installed", socket=socket):
                assert batch["bits"].shape[1:] == (1552,), batch["bits"].shape
                rows += len(batch["score"])
            assert rows == 20, rows
            dataset = (
                penstock.TFRecordDataset(os.path.join(folder, "chess", "*.tfrecord"))
                .parse_example({"s": penstock.io.FixedLenFeature([], penstock.int64)})
                .map(lambda x: x["s"].astype("float32") / 100)
                .batch(8)
            )
            assert sum(len(batch) for batch in dataset) == rows
        finally:
            daemon.terminate()
            daemon.wait()
    print("attached, took", rows, "rows")


if __name__ == "__main__":
    main(sys.argv[1])
