"""The imports of client/python/penstock: which module takes something of which other one, also in the middle of a function.

What only a type checker reads (TYPE_CHECKING) is no arrow. The package of a module is none either: that of datasets holds penstock.Dataset, and those
that are below it never name it.
"""

import ast
import pathlib

PACKAGE = "penstock"

# The rooms, from the lowest up, and what each may import besides itself. The lists are exact.
ALLOWED = {
    # The modules of the folder itself that stand below all others: errors, types, nests, and what C++ and pickles of batches know by name.
    "ground": set(),
    # The worker processes' own, which load nothing else of the package.
    "_worker": {"ground"},
    "_spec": {"ground"},
    "_tracing": {"ground", "_spec"},
    "_numpy": {"ground", "_spec", "_tracing"},
    "_running": {"ground", "_spec"},
    # tf's names on traced values.
    "names": {"ground", "_spec", "_tracing", "_numpy", "_running"},
    # Parquet files by pyarrow, also in worker processes.
    "_parquet": {"ground"},
    "_dataset": {"ground", "_worker", "_spec", "_tracing", "_running", "names", "_parquet"},
    "penstock": {"ground", "_tracing", "_numpy", "_running", "names", "_dataset"},
    # The samples of a torch Dataset, fetched by worker processes.
    "_loading": {"ground", "_worker", "_spec", "_running", "penstock"},
    "loops": {"ground", "_tracing", "_running", "penstock", "_loading"},
}
_NAMES = {"_json", "audio", "functions", "image", "io", "strings"}
# What worker processes load by themselves, too.
_SENT = {"penstock._loading._parcel", "penstock._loading._payload"}
_FACES = {"", "experimental"}
# For whose sake a framework is imported: nothing of the package imports them, but for penstock.NAME.
_LOOPS = {"_epochs", "cuda", "huggingface", "jax", "ray", "tensorflow", "torch"}


def room(module):
    """Where a module lives, by its name."""
    if module in _SENT:
        return "ground"
    first, *inner = module.split(".")[1:] or [""]
    if inner or first in ALLOWED and first != "penstock":
        return first
    return "names" if first in _NAMES else "penstock" if first in _FACES else "loops" if first in _LOOPS else "ground"


# The native module and the generated registry, which are no files of the tree; both import nothing of the package while they are loaded.
_MADE = {f"{PACKAGE}._core", f"{PACKAGE}._registry"}


def modules(folder):
    """The files of the package, by the names of their modules."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(folder).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imports(tree):
    """The import statements of a module, each with whether it stands in a function."""
    waiting = [(node, False) for node in tree.body]
    while waiting:
        node, is_late = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, is_late
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            waiting += [(inner, is_late) for inner in node.orelse]
        else:
            is_late = is_late or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            waiting += [(inner, is_late) for inner in ast.iter_child_nodes(node)]


def arrows(folder):
    """A dict from each module to those that it imports: a set of pairs of a module and whether the import stands in a function."""
    known = modules(folder)
    found = {}
    for module, path in known.items():
        taken = set()
        for node, is_late in _imports(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                assert node.level == 0, f"{path}: imports name the package"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in known or name in _MADE else node.module for name in names]
            taken |= {(name, is_late) for name in names if name in known and name != module}
        found[module] = taken
    return found


def circles(graph):
    """The sets of nodes that reach each other, of more than one."""

    def reached(start):
        seen, waiting = set(), [start]
        while waiting:
            for node in graph[waiting.pop()] - seen:
                seen.add(node)
                waiting.append(node)
        return seen

    reach = {node: reached(node) for node in graph}
    return {frozenset({other for other in reach[node] if node in reach[other]}) for node in graph if node in reach[node]}


def check(folder):
    """Sentences about imports that may not be, and pairs of rooms whose arrow no module needs."""
    found = arrows(folder)
    complaints = [f"a circle: {', '.join(sorted(circle))}" for circle in circles({module: {to for to, _ in taken} for module, taken in found.items()})]
    complaints += [f"{module} is in no room: ALLOWED lacks {room(module)}" for module in found if room(module) not in ALLOWED]
    found = {module: taken for module, taken in found.items() if room(module) in ALLOWED}
    used = set()
    for module, taken in found.items():
        for to, _ in sorted(taken):
            pair = room(module), room(to)
            if pair[0] != pair[1]:
                used.add(pair)
                if pair[1] not in ALLOWED[pair[0]]:
                    complaints.append(f"{module} may not import {to}: {pair[0]} may not know {pair[1]}")
    return complaints, {(one, other) for one, others in ALLOWED.items() for other in others} - used


if __name__ == "__main__":
    import sys

    folder = sys.argv[1]
    found = arrows(folder)
    all_arrows = {module: {to for to, _ in taken} for module, taken in found.items()}
    early = {module: {to for to, is_late in taken if not is_late} for module, taken in found.items()}
    late = sum(len({to for to, is_late in taken if is_late}) for taken in found.values())
    flat = sum(path.parent == pathlib.Path(folder) for path in modules(folder).values())
    sizes = sorted(((len(path.read_text().splitlines()), module) for module, path in modules(folder).items()), reverse=True)
    print(f"modules {len(found)}, in the folder itself {flat}; largest {sizes[:4]}")
    print(f"arrows {sum(map(len, all_arrows.values()))}, in functions {late}")
    print(f"circles {sorted(map(len, circles(all_arrows)))}, at import alone {sorted(map(len, circles(early)))}")
    for module, taken in found.items():
        for to, is_late in sorted(taken):
            if is_late:
                print("  late:", module, "->", to)
