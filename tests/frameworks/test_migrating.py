"""docs/migrating.md: the examples that need a framework. What it was and what it is are both run, one behind the other, and give batches of the same shapes and types."""

import importlib
import pathlib
import re

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs/migrating.md"
TEXT = PAGE.read_text()
FENCE = r"^```python with frameworks {}\n(.*?)^```$\n"
PAIRS = re.findall(FENCE.format("was") + FENCE.format("is"), TEXT, flags=re.MULTILINE | re.DOTALL)
FRAMEWORKS = ["albumentations", "torchvision", "grain", "datasets", "torch"]


def title(was):
    """What a pair is about: the first of these that it imports."""
    return next(name for name in FRAMEWORKS if re.search(rf"^(import|from) {name}\b", was, flags=re.MULTILINE))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("cat", "dog"):
        (tmp_path / "data/pictures" / name).mkdir(parents=True)
        (tmp_path / "data/pictures" / name / "1.jpg").write_bytes((ROOT / "tests/golden/images/rgb_420.jpg").read_bytes())
    monkeypatch.chdir(tmp_path)


def run(example, names):
    # The page's own line numbers, for errors.
    first = TEXT[: TEXT.index(example)].count("\n")
    exec(compile("\n" * first + example, str(PAGE), "exec"), names)  # noqa: S102


def described(batch):
    """Structure, types and shapes; axes that draws decide are as long as any."""
    if isinstance(batch, dict):
        return {key: described(inner) for key, inner in batch.items()}
    if isinstance(batch, (list, tuple)):
        return tuple(described(inner) for inner in batch)
    array = np.asarray(batch)
    return array.dtype.name, array.ndim


def test_there_is_a_pair_of_each():
    assert sorted(title(was) for was, _ in PAIRS) == sorted(FRAMEWORKS)
    assert TEXT.count("```python with frameworks ") == 2 * len(PAIRS)


@pytest.mark.parametrize("was, now", PAIRS, ids=[title(was) for was, _ in PAIRS])
def test_both_give_the_same_batches(was, now, folder):
    for name in re.findall(r"^(?:import|from) (\w+)", was, flags=re.MULTILINE):
        pytest.importorskip(name)
    importlib.invalidate_caches()
    # Classes and functions of a page are in no module, as those of a notebook are.
    names = {"__name__": "__main__"}
    run(was, names)
    # torch's own forks, which finds what no module has.
    loader = names["loader"]
    theirs = list(loader)
    run(now, names)
    ours = list(names["loader"])
    assert len(ours) == len(theirs) > 0
    assert [described(batch) for batch in ours] == [described(batch) for batch in theirs]
