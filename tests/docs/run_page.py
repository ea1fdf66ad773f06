"""Runs the examples of a page as a reader does: its blocks of `sh` and of `python`, one after another, in the folder that this process is in.

    python run_page.py PAGE [--first FILE]

Blocks of Python share their names. FILE is Python that runs before them, with what a page leaves to its reader (a model, for one); it may raise
`Enough` out of a loop that never ends. Blocks of `sh` are bash, and stop at the first command that fails; what they leave running ends with this
process. Other blocks, and those without a language, are no examples. Errors have the lines of the page.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys


class Enough(Exception):
    """Ends the block of Python that is running: its loop has been seen to work."""


def blocks(text):
    """(language, first line, code) of each example."""
    for match in re.finditer(r"^```(sh|python)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield match[1], text[: match.start(2)].count("\n"), match[2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--first", type=pathlib.Path)
    arguments = parser.parse_args()
    # Functions of the page are those of __main__, as they are in a notebook or in a script.
    names = vars(sys.modules["__main__"])
    names["Enough"] = Enough
    if arguments.first is not None:
        exec(compile(arguments.first.read_text(), str(arguments.first), "exec"), names)
    count = 0
    for language, first, code in blocks(arguments.page.read_text()):
        count += 1
        if language == "sh":
            subprocess.run(["bash", "-e", "-c", code], check=True)
            continue
        try:
            exec(compile("\n" * first + code, str(arguments.page), "exec"), names)
        except Enough:
            pass
    print(f"{count} examples")


if __name__ == "__main__":
    # What bash has started in the background is of this process' group.
    if os.getpgrp() != os.getpid():
        os.setpgrp()
    try:
        main()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
