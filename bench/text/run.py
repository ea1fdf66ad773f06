"""Text for language models, beside others: `./dev bench text [--quick] [--cases A,B]`.

One line of JSON a case; everything else goes to stderr. Each other file of this folder is a program. One that says `CASES = ("json", …)` runs those cases,
and takes --quick and --cases; any other one is a case of its file's name, and takes no arguments.
"""

import argparse
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def cases_of(program):
    """The names that a program's CASES has; None where it has none."""
    found = re.search(r"^CASES = \((.*?)\)", program.read_text(), re.MULTILINE | re.DOTALL)
    return re.findall(r"\"([^\"]+)\"", found.group(1)) if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a figure that shows that the case runs, and little else")
    parser.add_argument("--cases", help="their names, with commas between them; all by default")
    arguments = parser.parse_args()
    programs = {program: cases_of(program) for program in sorted(HERE.glob("*.py")) if program.name != "run.py"}
    known = [case for program, cases in programs.items() for case in cases or [program.stem]]
    wanted = arguments.cases.split(",") if arguments.cases else known
    if unknown := [case for case in wanted if case not in known]:
        parser.error(f"no such case: {', '.join(unknown)}. There are: {', '.join(known)}")
    failed = False
    for program, cases in programs.items():
        chosen = [case for case in cases or [program.stem] if case in wanted]
        words = ["--cases", ",".join(chosen), *(["--quick"] if arguments.quick else [])] if cases else []
        if chosen:
            failed = subprocess.run([sys.executable, str(program), *words]).returncode != 0 or failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
