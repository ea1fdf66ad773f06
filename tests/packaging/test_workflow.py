"""The workflow for a public CI runs commands of ./dev alone, and each is one that ./dev knows."""

import pathlib
import re
import subprocess

import pytest
import yaml

TREE = pathlib.Path(__file__).parents[2]
WORKFLOWS = sorted((TREE / ".github" / "workflows").glob("*.yml"))


def steps():
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            yield from (step["run"] for step in job["steps"] if "run" in step)


COMMANDS = sorted({found for step in steps() for found in re.findall(r"\./dev [a-z].*?(?=\)|\"|$)", step, re.MULTILINE)})


@pytest.fixture(scope="module")
def known():
    """The commands in the help, and the parts of ./dev test that it names."""
    text = subprocess.run(["./dev", "help"], cwd=TREE, check=True, capture_output=True, text=True).stdout
    commands = set(re.findall(r"(?:^|, )\./dev ((?:test )?\w+)", text, re.MULTILINE))
    return commands | {"test"} | {f"test {part}" for part in re.search(r"\./dev test \[([\w|]+)\]", text)[1].split("|")}


def test_the_workflow_tests_and_releases():
    assert {"./dev test", "./dev release", "./dev test wheels"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_workflow_is_in_the_help(command, known):
    _, name, *words = command.split()
    assert name in known
    if name == "test" and words:
        assert f"test {words[0]}" in known
