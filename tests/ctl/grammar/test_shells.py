"""What shells complete, and what programs read: `penstock completion`, and --json of list, get and stats."""

import json
import os
import pathlib
import shutil
import subprocess

import penstock
import pytest

PENSTOCK = pathlib.Path(os.environ.get("PENSTOCK_BIN", "build/release/bin")).resolve() / "penstock"


def penstock_command(*arguments, **options):
    return subprocess.run([PENSTOCK, *arguments], capture_output=True, text=True, **options)


def completed(*words, socket=""):
    """What bash offers for the last word."""
    script = f"source <('{PENSTOCK}' completion bash); penstock() {{ '{PENSTOCK}' \"$@\"; }}; COMP_WORDS=(penstock \"$@\"); COMP_CWORD=$#; _penstock; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, env={**os.environ, "PENSTOCK_SOCKET": socket})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


def test_commands_and_options_complete():
    assert completed("cr") == ["create"] and completed("--soc") == ["--socket"]
    assert {"create", "inspect", "completion", "help", "--version"} <= set(completed(""))
    assert completed("inspect", "--p") == ["--python"] and completed("validate", "--fi") == ["--files"]
    assert completed("help", "ins") == ["inspect"]
    # Of options before the command, one takes a word.
    assert completed("--socket", "list", "inspect", "--spe") == ["--spec"]
    assert completed("inspect", "data/") == []  # files, by bash itself


def test_every_command_has_its_options():
    commands = [line.split()[0] for line in penstock_command("--help").stdout.partition("Subcommands:\n")[2].splitlines() if line.strip()]
    assert len(commands) > 30 and sorted(commands) == sorted(set(completed("")) - {"help", "--help", "--socket", "--version"})
    # The words of make-sample are another program's.
    for command in set(commands) - {"make-sample"}:
        assert "--help" in completed(command, "--"), command


def test_pipelines_complete():
    with iter(penstock.Dataset.range(10)) as iterator:
        next(iterator)
        assert iterator.pipeline in completed("stats", "", socket=iterator.socket)
        assert completed("stats", iterator.pipeline[:-3], socket=iterator.socket) == [iterator.pipeline]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_ones_of_their_shell(shell):
    done = penstock_command("completion", shell)
    assert done.returncode == 0 and "inspect" in done.stdout and len(done.stdout.splitlines()) > 30
    if shutil.which(shell):
        subprocess.run([shell, "-n", "/dev/stdin"], input=done.stdout, text=True, check=True)
    assert penstock_command("completion", "csh").returncode == 2


def test_programs_read_lists_specs_and_counters():
    with iter(penstock.Dataset.range(100).batch(7)) as iterator:
        next(iterator)
        name, at = iterator.pipeline, {"env": {**os.environ, "PENSTOCK_SOCKET": iterator.socket}}
        (listed,) = [line for line in map(json.loads, penstock_command("list", "--json", **at).stdout.splitlines()) if line["name"] == name]
        assert listed["batch_rows"] == 7 and listed["state"].startswith("PIPELINE_STATE_")
        got = json.loads(penstock_command("get", name, "--json", **at).stdout)
        assert [list(stage)[-1] for stage in got["spec"]["stage"]] == ["range", "batch"] or "range" in json.dumps(got["spec"])
        told = json.loads(penstock_command("stats", name, "--json", **at).stdout)
        assert told["name"] == name and int(told["steps"]) >= 1 and len(told["stages"]) == 2 and told["consumers"]
        assert penstock_command("stats", "another", "--json", **at).returncode == 1
