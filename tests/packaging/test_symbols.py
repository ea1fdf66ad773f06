"""packaging/symbols.py: what a file needs, and the tag that follows."""

import pathlib
import runpy
import subprocess
import sys
import zipfile

import pytest

_SCRIPT = pathlib.Path(__file__).parents[2] / "packaging" / "symbols.py"
symbols = runpy.run_path(str(_SCRIPT))

# Of `objdump -p`, shortened. What a file defines itself (the first list) is not what it needs.
_DUMP = """
Dynamic Section:
  NEEDED               libm.so.6
  NEEDED               libbig-1a2b.so.3
  SONAME               libgiven.so.1

Version definitions:
1 0x01 0x0865f4e6 libgiven.so.1
2 0x00 0x0b792650 GLIBC_2.99

Version References:
  required from libm.so.6:
    0x06969189 0x00 30 GLIBC_2.29
    0x09691a75 0x00 06 GLIBC_2.2.5
  required from libstdc++.so.6:
    0x0297f840 0x00 40 GLIBCXX_3.4.30
    0x0bafd178 0x00 47 CXXABI_1.3.8
"""


def test_what_a_file_needs():
    libraries, versions = symbols["needs"](_DUMP)
    assert libraries == {"libm.so.6", "libbig-1a2b.so.3"}
    assert versions == {("GLIBC", (2, 29)), ("GLIBC", (2, 2, 5)), ("GLIBCXX", (3, 4, 30)), ("CXXABI", (1, 3, 8))}


@pytest.mark.parametrize("versions, tag", [
    ({}, (2, 28)),
    ({"GLIBC": (2, 2, 5)}, (2, 28)),
    ({"GLIBC": (2, 28)}, (2, 28)),
    ({"GLIBC": (2, 29)}, (2, 31)),
    ({"GLIBC": (2, 17), "GLIBCXX": (3, 4, 25)}, (2, 28)),
    # libstdc++ decides where it is newer than glibc, and as numbers, not as text.
    ({"GLIBC": (2, 17), "GLIBCXX": (3, 4, 9)}, (2, 28)),
    ({"GLIBC": (2, 17), "GLIBCXX": (3, 4, 29)}, (2, 34)),
    ({"GLIBC": (2, 34), "GLIBCXX": (3, 4, 30)}, (2, 35)),
    ({"GLIBC": (2, 34), "CXXABI": (1, 3, 14)}, (2, 39)),
    ({"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30)}, (2, 36)),
])
def test_the_lowest_glibc(versions, tag):
    assert symbols["lowest_glibc"](versions) == tag


def test_what_no_distribution_has():
    with pytest.raises(LookupError, match="GLIBC"):
        symbols["lowest_glibc"]({"GLIBC": (2, 99)})


@pytest.fixture
def library(tmp_path):
    """A real ELF file: the Python that runs this."""
    return pathlib.Path(sys.executable).resolve()


def wheel_of(tmp_path, tag, *files):
    path = tmp_path / f"penstock-0.1.0-cp311-none-{tag}_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.write(file, f"penstock.libs/{file.name}")
    return path


def checked(wheel):
    return subprocess.run([sys.executable, str(_SCRIPT), "--check", str(wheel)], capture_output=True, text=True, timeout=60)


def test_a_tag_that_is_too_low_is_refused(tmp_path, library):
    done = checked(wheel_of(tmp_path, "manylinux_2_5", library))
    # A Python of another machine may need a library besides; that is refused for itself.
    assert done.returncode == 1 and ("the name does not have the tag" in done.stderr or "does not hold" in done.stderr), done


def test_a_library_that_is_not_inside_is_named(tmp_path):
    """libstdc++ of this machine's compiler is there, the library that a program of it needs is not."""
    (tmp_path / "answer.c").write_text("int answer(void) { return 42; }")
    (tmp_path / "asks.c").write_text("int answer(void); int main(void) { return answer(); }")
    for words in (["-shared", "-o", "libanswer.so.1", "-Wl,-soname,libanswer.so.1", "answer.c"], ["-o", "asks", "asks.c", "libanswer.so.1"]):
        subprocess.run(["cc", *words], cwd=tmp_path, check=True)
    done = checked(wheel_of(tmp_path, "manylinux_2_28", tmp_path / "asks"))
    assert done.returncode == 1 and "needs libraries that it does not hold: libanswer.so.1" in done.stderr, done
    done = checked(wheel_of(tmp_path, "manylinux_2_34", tmp_path / "asks", tmp_path / "libanswer.so.1"))
    assert "does not hold" not in done.stderr, done
