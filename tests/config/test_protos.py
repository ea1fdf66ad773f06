"""The contract of the control plane keeps buf's STANDARD rules (proto/buf.yaml says where not)."""

import pathlib
import shutil
import subprocess

import pytest

_PROTO = pathlib.Path(__file__).parents[2] / "proto"


@pytest.mark.skipif(not shutil.which("buf"), reason="buf is not installed; ./dev test service installs it")
def test_buf_lint():
    done = subprocess.run(["buf", "lint"], cwd=_PROTO, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
