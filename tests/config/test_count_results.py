"""tests/support/count_results.py, by files that pytest wrote and one of ctest's form."""

import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).parents[1] / "support" / "count_results.py"

TESTS = '''
import pathlib, pytest
WAS = pathlib.Path(__file__).with_name("was")

@pytest.mark.parametrize("name", ["a b", "c::d"])
def test_passes(name): pass

class TestRoom:
    def test_fails(self): assert 1 == 2

def test_is_unsteady():
    if not WAS.exists():
        WAS.touch()
        assert False, "the first time"

def test_is_skipped(): pytest.skip("no")
'''


def script(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], check=True, capture_output=True, text=True).stdout


def run_pytest(folder, junit, *tests):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", "--junitxml", folder / junit, *tests],
        cwd=folder, capture_output=True).returncode


def test_a_test_that_passes_when_it_is_run_again_is_unsteady(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    assert run_pytest(tmp_path, "first.xml", "test_some.py") == 1
    failed = script("failed", tmp_path / "first.xml")
    assert failed.split() == ["test_some.py::TestRoom::test_fails", "test_some.py::test_is_unsteady"]
    assert script("count", tmp_path / "first.xml") == "2 2 0\n"
    (tmp_path / "again.txt").write_text(failed)
    assert run_pytest(tmp_path, "again.xml", "@again.txt") == 1
    assert script("count", tmp_path / "first.xml", tmp_path / "again.xml") == "2 1 1\n"
    told = script("tell", tmp_path / "first.xml", tmp_path / "again.xml")
    assert "FAILED: test_some.py::TestRoom::test_fails\n" in told and "assert 1 == 2" in told
    assert "UNSTEADY" in told and "test_some.py::test_is_unsteady\n" in told and "the first time" in told


def test_a_file_of_ctest(tmp_path):
    (tmp_path / "ctest.xml").write_text(
        '<testsuite><testcase name="tests_base:good" classname="tests_base:good" status="run"/>'
        '<testcase name="tests_base:bad" classname="tests_base:bad" status="fail"><failure message=""/>'
        '<system-out>REQUIRE( 1 == 2 )</system-out></testcase>'
        '<testcase name="tests_base:left out" classname="tests_base:left out" status="disabled"/></testsuite>')
    assert script("count", tmp_path / "ctest.xml") == "1 1 0\n"
    assert script("failed", tmp_path / "ctest.xml") == "tests_base:bad\n"
    assert script("tell", tmp_path / "ctest.xml") == "FAILED: tests_base:bad\n    REQUIRE( 1 == 2 )\n"
