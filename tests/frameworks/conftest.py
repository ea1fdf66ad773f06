"""What these tests share: a daemon, a pipeline in it, and a dataset like it.

They run where the framework is: `./dev test frameworks` makes that environment. Elsewhere nothing here is collected.
"""

import importlib.util
import os
import pathlib
import subprocess
import time

import pytest

pytest.register_assert_rewrite("loader_datasets")
collect_ignore = [
    name for name, package in (("test_torch.py", "torch"), ("dataloader", "torch"), ("test_transforms.py", "torch"), ("test_trainers.py", "torch"),
                               ("test_migrating.py", "torch"), ("test_torchdata.py", "torchdata"), ("test_jax.py", "jax"),
                               ("test_huggingface_datasets.py", "datasets"), ("test_libarchive.py", "libarchive"),
                               ("test_tensorflow.py", "tensorflow"), ("test_drawn.py", "tensorflow"), ("test_parquet.py", "pyarrow"))
    if importlib.util.find_spec(package) is None
]

SPEC = """name: "numbers"
stage { range { stop: 100 } }
stage { shuffle { buffer_size: 100 seed: 5 } }
stage { map { out: "n = value" out: "x = float32(value * [1, 2, 3])" } }
stage { batch { batch_size: 8 } }
stage { repeat { REPEAT } }
"""


@pytest.fixture
def served(tmp_path):
    """served(count) runs the pipeline with that many epochs; returns the socket of its daemon."""
    programs = pathlib.Path(os.environ["PENSTOCK_BIN"])
    socket = str(tmp_path / "s")
    daemon = subprocess.Popen([programs / "penstockd", "--socket", socket, "--state-dir", "none", "--log-level", "error"])
    while not os.path.exists(socket):
        assert daemon.poll() is None
        time.sleep(0.01)

    def create(count=2):
        spec = tmp_path / "numbers.textproto"
        spec.write_text(SPEC.replace("REPEAT", f"count: {count}" if count else ""))
        subprocess.run([programs / "penstock", "--socket", socket, "create", spec], check=True, stdout=subprocess.DEVNULL)
        return socket

    yield create
    daemon.terminate()
    daemon.wait()
