"""The examples learn: each trains its model on chess positions of well-known games, beside a daemon of its own."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(os.environ.get("PENSTOCK_BIN", ROOT / "build/release/bin"))


@pytest.fixture(scope="module")
def chess(tmp_path_factory):
    """The socket of a daemon that runs chess_float32."""
    folder = tmp_path_factory.mktemp("chess")
    subprocess.run([PROGRAMS / "penstock", "make-sample", "chess", "--records", "20000", "--out", folder / "data"], check=True,
                   stdout=subprocess.DEVNULL)
    socket = str(folder / "s")
    daemon = subprocess.Popen([PROGRAMS / "penstockd", "--socket", socket, "--state-dir", "none", "--log-level", "error"])
    while not os.path.exists(socket):
        assert daemon.poll() is None
        time.sleep(0.01)
    subprocess.run([PROGRAMS / "penstock", "--socket", socket, "create", ROOT / "config/pipelines/chess_float32.textproto", "--files",
                    f"{folder}/data/*.tfrecord"], check=True, stdout=subprocess.DEVNULL)
    yield socket
    daemon.terminate()
    daemon.wait()


def learns(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    first, last = map(float, re.search(r"loss ([0-9.]+) -> ([0-9.]+)", done.stdout).groups())
    assert last < 0.9 * first, done.stdout
    return done.stdout


def needs(package):
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"needs {package}")


@needs("torch")
def test_torch(chess):
    assert "rows" in learns(sys.executable, ROOT / "examples/train_torch.py", "--socket", chess, "--steps", 100)


@needs("torch")
def test_torch_in_two_processes(chess):
    out = learns(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, ROOT / "examples/train_torch.py",
                 "--socket", chess, "--steps", 60)
    assert "60 steps of 256 rows" in out  # each rank has half of a batch


@needs("jax")
def test_jax(chess):
    learns(sys.executable, ROOT / "examples/train_jax.py", "--socket", chess, "--steps", 100)


@needs("keras")
def test_keras(chess):
    learns(sys.executable, ROOT / "examples/train_keras.py", "--socket", chess, "--steps", 100)


@pytest.fixture
def chats(tmp_path):
    """JSON lines of sums, as pages and as prompts with answers, and the tokenizer for them."""
    rows = [{"prompt": f"What is {a} and {b}?", "answer": f" It is {a + b}."} for a in range(40) for b in range(40)]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps({**row, "text": row["prompt"] + row["answer"]}) + "\n" for row in rows))
    return ["--data", tmp_path / "chats.jsonl", "--tokenizer", ROOT / "tests/golden/tokenizers/gpt2.json", "--vocabulary", 1024]


@needs("torch")
def test_pretraining_on_packed_pages(chats):
    assert "60 steps of 1024 tokens" in learns(sys.executable, ROOT / "examples/pretrain_text.py", *chats, "--steps", 60, "--length", 128)


@needs("torch")
@needs("transformers")
def test_fine_tuning_on_answers(chats):
    assert "60 steps, " in learns(sys.executable, ROOT / "examples/finetune_answers.py", *chats, "--steps", 60)


def test_cpp(chess, tmp_path):
    library = PROGRAMS.parent / "lib"
    subprocess.run(["g++", "-std=c++20", "-O2", ROOT / "examples/train_linear.cc", f"-I{ROOT}/client/c", f"-I{ROOT}/client/cpp",
                    f"-L{library}", f"-Wl,-rpath,{library}", "-lpenstock", "-o", tmp_path / "train_linear"], check=True)
    learns(tmp_path / "train_linear", chess, 100)
