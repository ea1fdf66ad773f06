"""The functions of the expression language, a page for each family. A family is the folder of server/functions that registers the function."""

import functools
import importlib.util
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAMILIES = {
    "image": "Images",
    "random": "Random functions",
    "math": "Mathematics",
    "array": "Arrays",
    "string": "Strings",
    "text": "Text for language models",
    "format": "Formats",
    "language": "Of the language itself",
}


def _manual():
    spec = importlib.util.spec_from_file_location("make_functions_page", ROOT / "docs/make_functions_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def families(functions):
    """The functions of each family, by its name. What no folder registers belongs to the language itself."""
    signatures = {}
    for folder in (ROOT / "server/functions").iterdir():
        for source in folder.glob("*.cc"):
            for name in re.findall(r'"(\w+)\(', source.read_text(encoding="utf-8")):
                signatures.setdefault(name, folder.name)
    made = {family: [] for family in FAMILIES}
    for function in functions:
        made[signatures.get(function["name"], "language")].append(function)
    return made


def _functions():
    return json.loads((ROOT / "docs/functions.json").read_text(encoding="utf-8"))


@functools.cache
def page_of(name):
    """The page that a function stands on: its family's; of any other name, the overview."""
    family = next((family for family, members in families(_functions()).items() if any(member["name"] == name for member in members)), "index")
    return f"reference/functions/{family}.md"


def pages():
    """(title, path, text) of each page, the overview first."""
    functions = _functions()
    manual = _manual()
    overview = (
        "# Functions\n\nFunctions work on tensors inside of `map`. In Python they are `penstock.functions.NAME`, and most also have their name of "
        "NumPy, tf.image, tf.io or tf.strings. [The expression language](../../expressions.md) says what types they take.\n"
    )
    made = []
    for family, members in families(functions).items():
        title, path = FAMILIES[family], f"reference/functions/{family}.md"
        names = ", ".join(f"[`{member['name']}`]({family}.md#{member['name']})" for member in members)
        overview += f"\n## {title}\n\n{names}\n"
        text = f"# {title}\n" + manual.sections(members).replace("](pictures/", "](../../pictures/")
        made.append((title, path, text))
    return [("Overview", "reference/functions/index.md", overview), *made]
