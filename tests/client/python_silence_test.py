"""What would go on in silence, or fail without a remedy: strings as bytes, ranks without rows, changed and vanished folders, rings that are too small."""

import copy
import hashlib
import io
import os
import pickle
import shutil
import signal
import subprocess
import sys
import warnings

import numpy as np
import penstock
import pytest
from penstock._running import _daemon

D = penstock.Dataset


# --- strings ---


def test_a_string_gives_its_own_bytes():
    (word,) = D.from_tensors("w\u00f6rd")
    wanted = "w\u00f6rd".encode()
    file = io.BytesIO()
    file.write(word)
    assert bytes(word) == bytes(memoryview(word)) == file.getvalue() == word.tobytes() == wanted
    assert hashlib.sha256(word).digest() == hashlib.sha256(wanted).digest()
    assert isinstance(word, np.ndarray) and word.shape == () and word.dtype == object and word.item() == word[()] == wanted
    assert bytes(copy.deepcopy(word)) == wanted
    again = pickle.loads(pickle.dumps(word))
    assert type(again) is np.ndarray and again.item() == wanted


def test_several_strings_have_no_bytes_of_their_own():
    (words,) = D.from_tensor_slices(["a", "b"]).batch(2)
    for use in (bytes, memoryview, hashlib.md5, io.BytesIO().write, type(words).tobytes):
        with pytest.raises(TypeError, match=r"an array of several strings has no bytes of its own: b\"\".join\(x.ravel\(\)\)"):
            use(words)
    assert b"".join(words.ravel()) == b"ab" and words[0] == b"a" and words.tolist() == [b"a", b"b"]
    # What is made of them with another type is NumPy's.
    assert bytes(words.astype("S1")) == words.astype("S1").tobytes(order="C") == b"ab" and np.char.upper(words.astype("S1")).tolist() == [b"A", b"B"]
    ragged = next(iter(D.from_tensor_slices(["a b", "c"]).map(penstock.strings.split).ragged_batch(2)))
    with pytest.raises(TypeError, match="an array of several strings"):
        bytes(ragged.values)


# --- errors ---


def test_an_error_of_an_element_is_both_of_tensorflows():
    broken = D.from_tensor_slices(["x"]).map(lambda x: penstock.io.decode_jpeg(x))
    for kind in (penstock.InvalidArgumentError, penstock.DataLossError):
        with pytest.raises(kind) as error:
            list(broken)
        assert type(error.value) is penstock.DataLossError and error.value.code == "DATA_LOSS"
    assert not issubclass(penstock.InvalidArgumentError, penstock.DataLossError)


# --- ranks ---


def test_a_rank_without_a_row_says_so():
    path = _daemon.private_socket()
    penstock._control.create(path, "few_rows", D.range(3).batch(2).spec_text())
    ranks = [penstock.attach("few_rows", path, mode="rank", rank=rank, world_size=2) for rank in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [next(rank).tolist() for rank in ranks] == [[0], [1]]
        assert next(ranks[1]).tolist() == [2]
    with pytest.warns(RuntimeWarning, match="this rank has no row of a batch, .*drop_remainder=True leaves it out"):
        assert next(ranks[0]).tolist() == []
    for rank in ranks:
        rank.close()
    penstock._control.delete(path, "few_rows")


# --- rings ---


def large(path, megabytes):
    with penstock.io.TFRecordWriter(path) as writer:
        for size in megabytes:
            writer.write(bytes(size << 20))
    return penstock.TFRecordDataset(path)


def test_a_ring_grows_for_what_only_the_data_tells_the_size_of(tmp_path):
    dataset = large(tmp_path / "a", [1, 70, 2, 3]).map(lambda r: penstock.io.decode_raw(r, np.uint8))
    with pytest.warns(RuntimeWarning, match="a batch of 734005[0-9]+ bytes does not fit .*options.ring.slot_bytes = 100663296") as warned:
        assert [len(x) >> 20 for x in dataset] == [1, 70, 2, 3]
    assert len(warned) == 1
    iterator = iter(dataset)
    next(iterator)
    again = iter(dataset)
    again.load_state_dict(iterator.state_dict())
    with pytest.warns(RuntimeWarning, match="does not fit"):
        assert [len(x) >> 20 for x in again] == [70, 2, 3]


def test_how_large_a_slot_is_may_be_said(tmp_path):
    dataset = large(tmp_path / "a", [70])
    options = penstock.Options()
    options.ring.slot_bytes = 80 << 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [len(x.item()) >> 20 for x in dataset.with_options(options)] == [70]
    assert "ring { slot_bytes: 83886080 }" in dataset.with_options(options).spec_text()
    options.ring.slot_bytes = 66 << 20
    for loader in (iter(dataset.with_options(options)), dataset.loader(socket=_daemon.private_socket(), name="large")):
        with pytest.raises(penstock.ResourceExhaustedError, match=r"in Python: options = penstock.Options\(\); options.ring.slot_bytes = N"):
            next(loader)
        loader.close()
    penstock._control.delete(_daemon.private_socket(), "large")


def test_how_much_memory_work_may_take_may_be_said():
    dataset = penstock.Dataset.range(5).map(lambda x: np.sum(np.arange(1 << 23) + x))
    assert len(list(dataset)) == 5
    options = penstock.Options()
    options.memory.max_work_bytes = 20 << 20
    limited = dataset.with_options(options)
    assert "max_work_bytes: 20971520" in limited.spec_text()
    with pytest.raises(penstock.ResourceExhaustedError, match=r"> 20\.0 MiB \(max_work_bytes of its spec\)"):
        list(limited)
    options.memory.max_work_bytes = "20 MiB"
    with pytest.raises(ValueError, match="options.memory.max_work_bytes is an integer from 0"):
        list(dataset.with_options(options))


# --- folders ---


@pytest.fixture
def own_daemon(tmp_path, monkeypatch):
    """A private daemon of this test's own."""
    penstock.stop_private_daemon()
    yield
    penstock.stop_private_daemon()


def test_a_private_daemons_folder_that_has_gone_is_made_anew(own_daemon):
    running = iter(D.range(1000).batch(1))
    assert next(running).tolist() == [0]
    first = _daemon._daemon
    shutil.rmtree(first.folder)
    assert [x.tolist() for x in D.range(2).batch(2)] == [[0, 1]]
    second = _daemon._daemon
    assert second is not first and first.alive() and not _daemon.has_died(first.socket)
    # What ran goes on, and behind the end of its daemon too.
    assert next(running).tolist() == [1]
    os.kill(first.process.pid, signal.SIGKILL)
    with pytest.warns(RuntimeWarning, match="the private penstockd was killed"):
        assert sum(len(x) for x in running) == 998
    penstock.stop_private_daemon()
    assert not first.alive() and not second.alive()


def test_so_is_one_below_a_folder_for_temporary_files_that_has_gone(own_daemon, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert [x.tolist() for x in D.range(2).batch(2)] == [[0, 1]]
    assert _daemon._daemon.folder.startswith("/tmp/penstock-")


READS = """
import os, sys
import penstock

D = penstock.Dataset
folder = sys.argv[1]
os.chdir(folder + "/A")
first = D.from_tensor_slices(["t.txt", folder + "/B/t.txt"]).map(penstock.io.read_file)
for name in "BA":
    os.chdir(f"{folder}/{name}")
    made = D.from_tensor_slices(["t.txt", folder + "/A/t.txt"]).map(penstock.io.read_file)
    os.chdir("/")
    print(list(made.as_numpy_iterator()), list(first.as_numpy_iterator()))
os.chdir(folder + "/start")
print("regex_replace" in D.from_tensor_slices(["t.txt"]).map(penstock.io.read_file).spec_text())
"""


def test_relative_paths_count_from_where_the_function_is_traced(tmp_path):
    for name in ("A", "B", "start", r"with \1 and \\"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.txt").write_text(name)
    done = subprocess.run([sys.executable, "-c", READS, str(tmp_path)], cwd=tmp_path / "start", capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[b'B', b'A'] [b'A', b'B']", "[b'A', b'A'] [b'A', b'B']", "False"]
    odd = [
        "import os, sys, penstock",
        "os.chdir(sys.argv[1])",
        "print(list(penstock.Dataset.from_tensor_slices(['t.txt']).map(penstock.io.read_file).as_numpy_iterator()))",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(odd), str(tmp_path / r"with \1 and \\")], capture_output=True, text=True, check=True)
    assert done.stdout == repr([rb"with \1 and \\"]) + "\n"


# --- classes ---


def test_classes_have_numbers_of_their_own_in_every_split(tmp_path):
    for path in ("train/cat/1", "train/dog/1", "train/emu/1", "val/cat/1", "val/emu/1"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x")

    def labels(split, **classes):
        dataset = penstock.FilesDataset(f"{tmp_path}/{split}/*/*", class_from_folder=True, **classes)
        assert list(dataset.element_spec) == ["path", "bytes", "label", "class_name"]
        return [(e["class_name"], int(e["label"])) for e in dataset.as_numpy_iterator()]

    names = ["emu", "dog", "cat"]
    assert labels("train", class_names=names) == [(b"cat", 2), (b"dog", 1), (b"emu", 0)]
    assert labels("val", class_names=names) == [(b"cat", 2), (b"emu", 0)]
    assert labels("val") == [(b"cat", 0), (b"emu", 1)]
    with pytest.raises(penstock.DataLossError, match='expected one of the 2 words .* found "dog" .*train/dog/1'):
        labels("train", class_names=["cat", "emu"])
    for wrong in ([], ["a", "a"], "cat"):
        with pytest.raises(ValueError, match="class_names are a list of names that differ"):
            penstock.FilesDataset("x", class_from_folder=True, class_names=wrong)
    with pytest.raises(ValueError, match="class_from_folder=True"):
        penstock.FilesDataset("x", class_names=["a"])
