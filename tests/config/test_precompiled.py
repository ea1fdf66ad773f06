"""A precompiled header that comes out of ccache is the one that its sources make, whatever stood in its place before."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.skipif(not (shutil.which("ccache") and shutil.which("g++")), reason="wants ccache and g++")
def test_a_precompiled_header_is_never_another_branchs(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CCACHE_")}
    environment["CCACHE_DIR"] = str(tmp_path / "cache")
    # What a test has just written counts as new, which ccache would pass by.
    environment["CCACHE_SLOPPINESS"] = "pch_defines,time_macros,include_file_mtime,include_file_ctime"

    def run(*command):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)

    def value_of(header):
        """What a program finds in the header that is precompiled now, as CMake does it."""
        (tmp_path / "a.h").write_text(header)
        include = ("-include", str(tmp_path / "all.hxx"))
        lists = ("-MD", "-MT", "all.hxx.gch", "-MF", "all.hxx.gch.d")
        run(ROOT / "cmake/ccache.sh", "ccache", "g++", "-x", "c++-header", *include, *lists, "-o", "all.hxx.gch", "-c", "all.hxx.cxx")
        run("g++", "-Werror=invalid-pch", *include, "-o", "program", "main.cc")
        return subprocess.run([tmp_path / "program"]).returncode

    (tmp_path / "all.hxx").write_text('#include "a.h"\n')
    (tmp_path / "all.hxx.cxx").write_text("")
    (tmp_path / "main.cc").write_text("int main() { return kValue; }\n")
    assert value_of("constexpr int kValue = 1;") == 1
    shutil.copy(tmp_path / "all.hxx.gch", tmp_path / "begun")
    assert value_of("constexpr int kValue = 2;") == 2
    # Another folder that has begun with the same one, and goes on in another way.
    shutil.copy(tmp_path / "begun", tmp_path / "all.hxx.gch")
    assert value_of("constexpr int kValue = 3;") == 3
