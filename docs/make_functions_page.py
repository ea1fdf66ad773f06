"""Writes docs/functions.md, the manual of the expression language's functions, of docs/functions.json.

    python docs/make_functions_page.py

tests/expr/docs_test.cc holds that list equal to the daemon's registry, and tests/config/test_functions_page.py this page equal to the list.
"""

import json
import pathlib

DOCS = pathlib.Path(__file__).resolve().parent
LIST = DOCS / "functions.json"
PAGE = DOCS / "functions.md"
# Made by docs/pictures/make_function_pictures.py.
PICTURES = "pictures/functions"

HEAD = """\
# The functions of the expression language

What expressions are, and which types they have, stands in [expressions.md](expressions.md). Python has these functions on traced
values, in `penstock.image`, `penstock.io` and `penstock.functions` ([python.md](python.md)). An argument with a default may be left
out, and each may be given by name. Where a manual calls an argument a constant, it is known when the pipeline is compiled.
This page is written from the registrations of the functions: by docs/make_functions_page.py, of functions.json.
"""


def page(functions):
    """The manual of functions as the list has them."""
    return HEAD + sections(functions)


def sections(functions):
    """A section for each function: its signature, its manual, and its picture where there is one."""
    text = ""
    for function in functions:
        name = function["name"]
        text += f"\n## {name}\n\n`{function['signature']}`\n\n{function['doc']}\n"
        if (DOCS / PICTURES / f"{name}.png").exists():
            text += f"\n![{name}]({PICTURES}/{name}.png)\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(LIST.read_text(encoding="utf-8"))), encoding="utf-8")
