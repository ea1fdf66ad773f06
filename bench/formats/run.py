"""Formats of records, beside the packages that read them: `./dev bench formats [--quick] [--cases A,B]`.

One line of JSON a case; everything else goes to stderr. Each other file of this folder that says `CASES = ("tar", …)` runs those cases, and takes --quick, --cases
and --peer-python, a Python that has the peers; `side_*.py` are the peers.
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
    parser.add_argument("--peer-python", default=sys.executable, help="a Python that has pyarrow, datasets, torch, webdataset and grain")
    arguments = parser.parse_args()
    programs = {program: cases for program in sorted(HERE.glob("*.py")) if (cases := cases_of(program))}
    known = [case for cases in programs.values() for case in cases]
    wanted = arguments.cases.split(",") if arguments.cases else known
    if unknown := [case for case in wanted if case not in known]:
        parser.error(f"no such case: {', '.join(unknown)}. There are: {', '.join(known)}")
    failed = False
    for program, cases in programs.items():
        chosen = [case for case in cases if case in wanted]
        if chosen:
            words = ["--cases", ",".join(chosen), "--peer-python", arguments.peer_python, *(["--quick"] if arguments.quick else [])]
            failed = subprocess.run([sys.executable, str(program), *words]).returncode != 0 or failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
