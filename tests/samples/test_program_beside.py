"""`penstock make-sample` is the program penstock-samples, found beside the command; what it makes is tried in tests/ctl/data/test_data_commands.py."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

BIN = pathlib.Path(os.environ.get("PENSTOCK_BIN", "build/release/bin")).resolve()


@pytest.fixture
def folder(tmp_path):
    """A folder with a command of its own, and nothing beside it."""
    (tmp_path / "bin").mkdir()
    shutil.copy(BIN / "penstock", tmp_path / "bin")
    return tmp_path


def run(folder, *words):
    return subprocess.run([folder / "bin/penstock", *words], capture_output=True, text=True, env={**os.environ, "PATH": str(folder / "path")})


def put_program(folder, answer):
    folder.mkdir(exist_ok=True)
    program = folder / "penstock-samples"
    program.write_text(f'#!/bin/sh\nprintf "{answer}\\n"\nprintf "%s\\n" "$@"\nexit 7\n')
    program.chmod(0o755)


@pytest.mark.parametrize("words", [
    [],
    ["--help"],
    ["chess", "--help"],
    ["chess", "--records", "10", "--out", "a b", "--seed=3", ""],
    ["--version", "list", "-x", "run", "--socket", "nowhere"],
], ids=lambda words: " ".join(words) or "none")
def test_all_words_behind_it_are_the_programs(folder, words):
    put_program(folder / "bin", "beside")
    put_program(folder / "path", "of PATH")
    done = run(folder, "--socket", "unused", "make-sample", *words)
    assert (done.returncode, done.stdout.splitlines()) == (7, ["beside", *(words or [""])]), done


def test_help_of_it_is_the_programs_too(folder):
    put_program(folder / "bin", "beside")
    assert run(folder, "help", "make-sample", "chess").stdout.splitlines() == ["beside", "chess", "--help"]


def test_without_a_program_beside_it_is_the_one_of_path(folder):
    put_program(folder / "path", "of PATH")
    assert run(folder, "make-sample", "chess").stdout.splitlines() == ["of PATH", "chess"]


def test_without_any_it_says_what_is_missing(folder):
    done = run(folder, "make-sample", "chess", "--out", "x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("penstock make-sample: cannot start penstock-samples; install it beside this program or into a folder of PATH: "
                           "No such file or directory\n")


def test_the_command_needs_no_library_of_pictures():
    def libraries(name):
        text = subprocess.run(["readelf", "-d", BIN / name], check=True, capture_output=True, text=True).stdout
        return set(re.findall(r"Shared library: \[(lib\w+)", text))

    assert {"libjpeg", "libpng16"} <= libraries("penstock-samples")
    assert not {"libjpeg", "libpng16"} & libraries("penstock")
