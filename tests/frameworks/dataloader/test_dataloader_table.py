"""docs/dataloader_table.md names tests that are here, and that are about the same."""

import importlib
import inspect
import pathlib
import re

import loader_datasets

HERE = pathlib.Path(__file__).parent
MODULES = [importlib.import_module(path.stem) for path in sorted(HERE.glob("test_dataloader_*.py")) if path.stem != __name__]
TABLE = HERE.parents[2] / "docs" / "dataloader_table.md"

# What a test of torch's with such a name is about: one of the tests that its row names says that word.
ABOUT = {
    "_pin": "pin_memory", "prefetch": "prefetch_factor", "drop_last": "drop_last", "worker_init": "worker_init_fn", "timeout": "timeout", "memmap": "memmap",
    "numpy_scalars": r"np\.\{name\}", "mapping_keep": "OrderedDict", "sequence": "UserList|sequences of", "bad_numpy": "array of strings", "namedtuple": "Pair",
    "persistent": "persistent_workers", "affinity": "sched_setaffinity", "generator": "generator", "growing": "length", "datapipe": "datapipes",
    "thread_creation": "warns", "contexts": "multiprocessing_context", "worker_info": "get_worker_info", "iterable": "IterableDataset", "segfault": "SIGSEGV|multiprocessing_context",
    "sampler": "sampler", "batch_none": "batch_size=None",
}  # fmt: skip


def module_of(test):
    """The module of a test; None: it is in none."""
    return next((module for module in MODULES if callable(getattr(module, test, None))), None)


def source_of(test):
    """A test's text, with the tables and the classes of these modules that it names."""
    module = module_of(test)
    text = inspect.getsource(getattr(module, test))
    for name in set(re.findall(r"\b(ORDERS|[A-Z]\w+)\b", text)):
        found = getattr(module, name, None)
        if isinstance(found, type) and found.__module__ in (module.__name__, loader_datasets.__name__):
            text += inspect.getsource(found)
        elif name == "ORDERS":
            text += inspect.getsource(loader_datasets).partition("\nORDERS = {")[2].partition("\n}\n")[0]
    return text


def test_the_table_names_tests_that_are_about_the_same():
    wrong = []
    for name, note in re.findall(r"^\| `(\w+)` \| (?:passes|differs) \| (.*) \|$", TABLE.read_text(), re.MULTILINE):
        text = "".join(map(source_of, re.findall(r"`(test_\w+)`", note)))
        wrong += [f"{name}: none of its tests says {words}" for part, words in ABOUT.items() if part in name and not re.search(words, text)]
    assert not wrong, "\n".join(wrong)


def test_the_table_names_tests_that_are_here():
    rows = re.findall(r"^\| `(\w+)` \| (passes|differs|does not apply) \| (.*) \|$", TABLE.read_text(), re.MULTILINE)
    assert len(rows) > 100
    for name, verdict, note in rows:
        tests = re.findall(r"`(test_\w+)`", note)
        assert tests or verdict == "does not apply", f"{name} names no test of ours"
        for test in tests:
            assert module_of(test) is not None, f"{name} names {test}, which is not here"
