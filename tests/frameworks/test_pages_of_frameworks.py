"""The pages that need a framework: their examples run as they stand, with torch, Keras, JAX and pyarrow themselves."""

import importlib.util
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "docs"))
import pages  # noqa: E402


def _has(*names):
    return all(importlib.util.find_spec(name) for name in names)


@pytest.mark.parametrize("framework, page", [("torch", "torch"), ("keras", "keras"), ("jax", "jax")])
def test_a_tutorial(framework, page, tmp_path):
    if not _has(framework):
        pytest.skip(f"needs {framework}")
    assert pages.run(f"docs/tutorials/{page}.md", tmp_path) >= 3


def test_the_page_of_arrow(tmp_path):
    if not _has("pyarrow", "datasets"):
        pytest.skip("needs pyarrow and datasets")
    assert pages.run("docs/howto/arrow.md", tmp_path) == 5


def test_parquet(tmp_path):
    if not _has("pyarrow"):
        pytest.skip("needs pyarrow")
    assert pages.run("docs/howto/parquet.md", tmp_path) == 7


def test_the_readme(tmp_path):
    if not _has("torch", "keras", "jax"):
        pytest.skip("needs torch, keras and jax")
    assert pages.run("README.md", pages.with_samples(tmp_path), "--first", pages.ROOT / "tests/docs/readme_reader.py") == 5
