"""Where code is written: programs, notebooks, what can be given to workers, with cloudpickle and without."""

import functools
import multiprocessing
import subprocess
import sys
import threading

import pytest
import torch
from loader_datasets import Squares, check_same, generator, numbers
from torch.utils.data import Dataset

from penstock.torch import DataLoader


SCRIPT = """
import torch
from torch.utils.data import Dataset
from penstock.torch import DataLoader

class Mine(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, index):
        return twice(index)

def twice(index):
    return 2 * index

class Found:
    def __init__(self, batch):
        self.rows = torch.tensor(batch)

for found in DataLoader(Mine(), batch_size=3, num_workers=2, collate_fn=lambda batch: Found(batch)):
    assert isinstance(found, Found)
    print(found.rows.tolist(), flush=True)
"""


@pytest.mark.parametrize("way", ["script without a guard", "-c", "stdin", "notebook"])
def test_code_of_main(way, tmp_path):
    command = [sys.executable]
    text = None
    if way == "-c":
        command += ["-c", SCRIPT]
    elif way == "stdin":
        command, text = [*command, "-"], SCRIPT
    else:
        path = tmp_path / "script.py"
        # A notebook's cells are compiled by names that are no files.
        path.write_text(SCRIPT if way != "notebook" else f"exec(compile({SCRIPT!r}, '<ipython-input-1>', 'exec'))")
        command.append(str(path))
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.stdout.splitlines() == ["[0, 2, 4]", "[6, 8, 10]"], done.stderr


@pytest.mark.parametrize("held", ["file", "lock", "pipe", "generator", "h5py", "lmdb"])
def test_what_cannot_be_pickled_is_named(held, tmp_path):
    if held == "h5py":
        value = pytest.importorskip("h5py").File(tmp_path / "x.h5", "w")
    elif held == "lmdb":
        value = pytest.importorskip("lmdb").open(str(tmp_path / "x"))
    else:
        value = {
            "file": lambda: open(__file__), "lock": threading.Lock, "pipe": lambda: multiprocessing.Queue(), "generator": lambda: (x for x in "x"),
        }[held]()  # fmt: skip

    class Holder(Dataset):
        def __init__(self):
            self.inner = {"deep": [1, value]}

        def __len__(self):
            return 3

        def __getitem__(self, index):
            return index

    with pytest.raises(TypeError, match=r"dataset\.inner\['deep'\]\[1\].*cannot be given to worker processes"):
        list(DataLoader(Holder(), num_workers=1))
    assert len(list(DataLoader(Holder()))) == 3
    with pytest.raises(TypeError, match="collate_fn uses value"):
        list(DataLoader(range(3), num_workers=1, collate_fn=lambda batch: value))


def test_a_handle_that_is_opened_in_the_worker():
    class Lazy(Dataset):
        file = None

        def __len__(self):
            return 3

        def __getitem__(self, index):
            if self.file is None:
                self.file = open(__file__)
            self.file.seek(0)
            return self.file.read(index + 1)

    assert [text for (text,) in DataLoader(Lazy(), num_workers=2)] == ['"', '""', '"""']


def halves(samples):
    """A collate_fn."""
    return torch.stack([sample[0] / 2 for sample in samples])


def seeds_nothing(word, worker):
    """A worker_init_fn."""


@pytest.fixture
def no_cloudpickle(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)


@pytest.mark.parametrize("arguments", [{}, {"collate_fn": halves}, {"worker_init_fn": functools.partial(seeds_nothing, "a word")}])
def test_without_cloudpickle_what_stands_in_modules_works(no_cloudpickle, arguments):
    ours, theirs = (
        loader(numbers(), batch_size=7, shuffle=True, num_workers=2, generator=generator(), **arguments)
        for loader in (DataLoader, torch.utils.data.DataLoader)
    )
    check_same(list(ours), list(theirs))


@pytest.mark.parametrize("what, arguments", [
    ("collate_fn", {"collate_fn": lambda samples: samples}),
    ("worker_init_fn", {"worker_init_fn": lambda worker: None}),
])  # fmt: skip
def test_without_cloudpickle_what_stands_in_no_module_is_refused_by_name(no_cloudpickle, what, arguments):
    with pytest.raises(TypeError, match=rf'^{what} is a builtins.function, which cannot be given .* go by cloudpickle: pip install "penstock\[python\]"$'):
        next(iter(DataLoader(numbers(), num_workers=1, **arguments)))


def test_without_cloudpickle_a_dataset_of_a_local_class_is_refused_by_name(no_cloudpickle):
    class Local(Squares):
        pass

    with pytest.raises(TypeError, match=r'^dataset is a .*Local, which cannot be given to worker processes'):
        next(iter(DataLoader(Local(), num_workers=1)))
