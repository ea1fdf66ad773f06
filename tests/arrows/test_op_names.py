"""No code outside of an op's own file knows ops by name: what an op is like stands in its registration (server/engine/spec/op_traits.h). Nor does the
expression language know what a function is like by its name (ElementwiseFunction of server/expr/function.h)."""

import ast
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]

# What else has the name of an op.
EXCEPTIONS = {
    ("client/ctl/data/cache.cc", '"cache"'): "the command `penstock cache`",
    ("client/ctl/commands/consumers.cc", '"skip"'): "what happens to a slow consumer",
    ("client/ctl/commands/index.cc", '"files"'): "an argument",
    ("client/ctl/inspect/inspect.cc", '"files"'): "an argument",
    ("client/ctl/data/verify.cc", '"files"'): "an argument",
    ("server/service/daemon/daemon_config.cc", "mutable_cache("): "a part of the configuration",
    ("server/service/state/overrides.cc", '"text_line"'): "the option of a constant",
    ("server/service/socket/settings.cc", '"cache"'): "a part of the configuration",
    ("server/service/http/metrics.cc", '"counter"'): "a type of metrics",
    ("server/service/http/status_json.cc", '"batch"'): "a key of the page's JSON",
}


def ops_of(root):
    """Pairs of an op's name and its message."""
    proto = (root / "proto/penstock/v1/ops.proto").read_text()
    oneof = re.search(r"oneof op \{(.*?)\}", proto, re.DOTALL).group(1)
    return [(name, message) for message, name in re.findall(r"^\s*(\w+) (\w+) = \d+;", oneof, re.MULTILINE)]


def names_of_ops(text, ops):
    """What of a file's code names an op."""
    # Prose may name them: comments, and words inside of messages.
    code = re.sub(r"//[^\n]*", "", text)
    found = []
    for name, message in ops:
        # `files()`, `skip()` and the like are functions of many things; of a stage they stand behind has_ or mutable_.
        for pattern in (rf"\b(?:has|mutable|clear)_{name}\(", rf"\bStage::k{message}\b", rf'"{name}"', rf"\bv1::{message}\b"):
            found += re.findall(pattern, code)
    return found


def test_it_finds_what_names_an_op():
    ops = ops_of(ROOT)
    assert ("take_while", "TakeWhile") in ops and len(ops) > 40
    assert names_of_ops("if (stage.has_take_while()) case v1::Stage::kZip: // v1::Map", ops) == ["Stage::kZip", "has_take_while("]
    assert names_of_ops('Is("zip") || Is("such as zip") || v1::Shuffle::kSeedFieldNumber', ops) == ["v1::Shuffle", '"zip"']


def test_only_an_ops_own_file_names_it():
    ops = ops_of(ROOT)
    used = set()
    complaints = []
    for top in ("server/engine", "server/service", "server/cuda", "client/ctl"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix not in {".h", ".cc"}:
                continue
            name = path.relative_to(ROOT).as_posix()
            for found in names_of_ops(path.read_text(), ops):
                if (name, found) in EXCEPTIONS:
                    used.add((name, found))
                else:
                    complaints.append(f"{name}: {found}")
    assert complaints == []
    assert used == set(EXCEPTIONS), "an exception that no file needs any more"


# Names of functions in the language itself.
FUNCTION_EXCEPTIONS = {
    "server/expr/elementwise_call.cc": {"less", "bitwise_or", "invert", "bitwise_and"},  # what a comparison of signed and unsigned numbers is made of
    "server/expr/drawn_numbers.h": {"shape", "float32", "float64"},  # a parameter and types
}
# The table of operators.
OPERATORS = "server/expr/parser.cc"


def names_of_functions(text, functions):
    return set(re.findall(r'"(\w+)"', re.sub(r"//[^\n]*", "", text))) & functions


def test_it_finds_names_of_functions():
    found = names_of_functions('if (function.name == "invert") // "add"\n {"equal", "string_equal"}, "power: what"', {"invert", "add", "equal", "power"})
    assert found == {"invert", "equal"}


def test_the_language_knows_functions_by_what_they_register():
    functions = {function["name"] for function in json.loads((ROOT / "docs/functions.json").read_text())}
    found = {}
    for path in sorted((ROOT / "server/expr").rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in {".h", ".cc"} and name != OPERATORS and (names := names_of_functions(path.read_text(), functions)):
            found[name] = names
    assert found == FUNCTION_EXCEPTIONS


# In Python the modules of _dataset/ hold the ops' methods and what these declare of them (_spec/_stage.py).
PYTHON_EXCEPTIONS = {
    ("_dataset/_sources.py", "from_tensors, range, counter, random"): "a declaration",
    ("_running/_sharing.py", "range { … }"): "a spec of its own",
    ("_running/_sharing.py", "batch { … }"): "a spec of its own",
}


def names_in_python(source, names, is_of_methods):
    """What of a module's code goes by the names of ops: lists of nothing else, text of their messages, and, outside of the methods, Stage.op beside a name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        parts = [part.value for part in getattr(node, "elts", ()) if isinstance(part, ast.Constant)]
        if isinstance(node, (ast.Set, ast.List, ast.Tuple)) and len(parts) > 1 and len(parts) == len(node.elts) and all(part in names for part in parts):
            found.append(", ".join(parts))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += [f"{name} {{ … }}" for name in re.findall(r"(?<![.\w])(\w+) \\?\{ ", node.value) if name in names]
        if isinstance(node, ast.Compare) and not is_of_methods:
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Attribute) and side.attr == "op" for side in sides):
                found += [f"op beside {side.value}" for side in sides if isinstance(side, ast.Constant) and side.value in names]
    return found


def test_it_finds_what_names_an_op_in_python():
    names = {name for name, _ in ops_of(ROOT)}
    for source in ('OPS = {"skip", "take"}', 'if op in ("take", "skip"): pass', r'x = re.compile(r"(shard \{ num_shards: \d+)")', 'stage.op == "ignore_errors"'):
        assert names_in_python(source, names, False), source
    for source in ('x = ("skip", 3)', 'x = {"take": _take}', 'f("take", "skip")', '"""Of shard and skip."""', '["map"]', 'stage.op == "python_code"'):
        assert not names_in_python(source, names, False), source


def test_python_knows_ops_by_what_their_methods_declare():
    names = {name for name, _ in ops_of(ROOT)}
    package = ROOT / "client/python/penstock"
    found = set()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        is_of_methods = name.startswith("_dataset/") and name != "_dataset/_chain.py"
        found |= {(name, what) for what in names_in_python(path.read_text(), names, is_of_methods)}
    assert found == set(PYTHON_EXCEPTIONS)
