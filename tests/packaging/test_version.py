"""packaging/version.py: the version stands in three files, which agree and change together."""

import pathlib
import runpy
import shutil

import pytest

_TREE = pathlib.Path(__file__).parents[2]
version = runpy.run_path(str(_TREE / "packaging" / "version.py"))
_FILES = ("pyproject.toml", "CMakeLists.txt", "CHANGELOG.md")


@pytest.fixture
def tree(tmp_path):
    for name in _FILES:
        shutil.copy(_TREE / name, tmp_path)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\nText.\n\n## Unreleased\n\n* One change.\n")
    return tmp_path


def texts(tree):
    return {name: (tree / name).read_text() for name in _FILES}


def test_this_tree_agrees():
    assert version["number"](version["read"]())


def test_a_bump_changes_all_and_nothing_else(tree):
    before = texts(tree)
    version["bump"]("0.2.0", "2027-01-02", tree)
    after = texts(tree)
    assert version["read"](tree) == "0.2.0"
    for name in ("pyproject.toml", "CMakeLists.txt"):
        changed = [(old, new) for old, new in zip(before[name].splitlines(), after[name].splitlines()) if old != new]
        assert len(changed) == 1 and changed[0][1] == changed[0][0].replace(version["read"](), "0.2.0"), changed
    assert after["CHANGELOG.md"] == "# Changelog\n\nText.\n\n## Unreleased\n\n## 0.2.0 (2027-01-02)\n\n* One change.\n"


def test_the_first_release_may_have_the_number_that_is_there_and_no_other(tree):
    first = version["read"](tree)
    version["bump"](first, "2027-01-02", tree)
    assert version["read"](tree) == first
    path = tree / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## Unreleased\n", "## Unreleased\n\n* Another change.\n"))
    with pytest.raises(ValueError, match="does not come after"):
        version["bump"](first, "2027-01-03", tree)
    version["bump"]("9.0.0", "2027-01-03", tree)
    assert path.read_text().index("## 9.0.0") < path.read_text().index("* Another change.") < path.read_text().index(f"## {first}")


@pytest.mark.parametrize("number, reason", [
    ("0.0.9", "does not come after"), ("0.2", "three numbers"), ("0.2.0rc1", "three numbers"), ("0.02.0", "three numbers"), ("", "three numbers")])
def test_what_is_no_next_version(tree, number, reason):
    before = texts(tree)
    with pytest.raises(ValueError, match=reason):
        version["bump"](number, "2027-01-02", tree)
    assert texts(tree) == before


def test_a_release_without_a_change_is_refused(tree):
    version["bump"]("0.2.0", "2027-01-02", tree)
    before = texts(tree)
    with pytest.raises(ValueError, match="nothing is listed"):
        version["bump"]("0.3.0", "2027-01-03", tree)
    assert texts(tree) == before


@pytest.mark.parametrize("name, text, reason", [
    ("pyproject.toml", 'version = "0.9.0"\n', "the versions differ: pyproject.toml has 0.9.0"),
    ("CMakeLists.txt", "project(penstock VERSION 0.9.0 LANGUAGES C CXX)\n", "CMakeLists.txt has 0.9.0"),
    ("CHANGELOG.md", "## Unreleased\n\n## 0.9.0 (2027-01-02)\n", "CHANGELOG.md has 0.9.0"),
    ("CHANGELOG.md", "# Changelog\n", "no line"),
    ("pyproject.toml", "", "0 were found"),
])
def test_files_that_do_not_agree(tree, name, text, reason):
    (tree / name).write_text(text)
    with pytest.raises(ValueError, match=reason):
        version["read"](tree)
