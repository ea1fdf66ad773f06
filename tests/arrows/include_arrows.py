"""Checks which module includes which: the arrows of docs/architecture.md point down only.

    python tests/arrows/include_arrows.py [ROOT]

prints a line for each forbidden include and exits with 1 if there is one; --write-readmes renews what the README.md of each room says of
who comes in. A module is a folder of ALLOWED, and so is a room, which is
a folder of a module; the includes looked at are those in quotes, which are written from the root of the tree.
"""

import pathlib
import re
import sys
import textwrap

# Module: the modules that its files include, besides their own. Lowest first: a module includes only what stands before it. The lists
# are exact: an arrow that no file needs any more is a complaint, too. The engine has no arrow to ring: it fills the spans of an abstract
# BatchSink. CUDA serves both sides: no library of it is linked, and trainers load it.
ALLOWED = {
    "proto": set(),
    "base": set(),
    "io/file": {"base"},
    "io/inflate": {"base", "io/file"},
    "io/record": {"base", "io/file", "io/inflate"},
    "io/element": {"base", "io/file", "io/record"},
    "io/array": {"base"},
    "io/arrow": {"base", "io/file", "io/inflate"},
    "io/parquet": {"base", "io/file", "io/inflate", "io/arrow"},
    "io/http": {"base"},
    "io/credentials": {"base", "io/http"},
    "io/remote": {"base", "io/file", "io/record", "io/http", "io/credentials"},
    "ring": set(),
    "cuda": {"ring"},
    "server/kernels": {"base"},
    "server/codec": {"proto", "base", "server/kernels"},
    "server/expr": {"base", "server/kernels"},
    "server/text/unicode": {"base"},
    "server/text/bpe": {"base"},
    "server/text/scan": {"base", "server/text/unicode", "server/text/bpe"},
    "server/text/parts": {"base", "server/text/unicode", "server/text/bpe", "server/text/scan"},
    "server/text/normalise": {"base", "server/text/unicode", "server/text/parts"},
    "server/text/pretokenise": {"base", "server/text/unicode", "server/text/scan", "server/text/parts"},
    "server/text/model": {"base", "server/text/unicode", "server/text/bpe", "server/text/parts"},
    "server/text/process": {"server/text/parts"},
    "server/text/decode": {"base", "server/text/unicode", "server/text/parts", "server/text/model"},
    "server/text/sentencepiece": {"base", "server/codec", "server/text/bpe", "server/text/parts"},
    "server/text": {
        "base", "io/file", "server/text/unicode", "server/text/bpe", "server/text/scan",
        "server/text/parts", "server/text/sentencepiece",
    },
    "server/image": {"base", "server/kernels", "server/expr"},
    "server/engine/tasks": {"base"},
    "server/engine/read": {
        "proto", "base", "io/file", "io/inflate", "io/record", "io/element", "io/array", "io/arrow",
        "io/parquet", "server/codec", "server/engine/tasks",
    },
    "server/engine/spec": {
        "proto", "base", "io/file", "io/record", "server/expr", "server/engine/read",
    },
    "server/engine/tensor": {"proto", "base", "server/kernels", "server/engine/read"},
    "server/engine/order": {
        "base", "server/engine/tasks", "server/engine/read", "server/engine/tensor",
    },
    "server/engine/share": {
        "proto", "base", "server/engine/read", "server/engine/spec", "server/engine/order",
    },
    "server/engine/compute": {
        "base", "io/record", "server/engine/tasks", "server/engine/read",
        "server/engine/tensor", "server/engine/order", "server/engine/share",
    },
    "server/engine/section": {
        "base", "server/engine/tasks", "server/engine/read", "server/engine/tensor",
        "server/engine/order", "server/engine/compute",
    },
    "server/engine/plan": {
        "proto", "base", "io/file", "io/record", "server/engine/read", "server/engine/spec",
        "server/engine/tensor", "server/engine/order", "server/engine/share",
        "server/engine/compute", "server/engine/section",
    },
    "server/engine/stage": {
        "proto", "base", "io/file", "io/record", "server/expr", "server/engine/tasks",
        "server/engine/read", "server/engine/spec", "server/engine/tensor",
        "server/engine/order", "server/engine/compute", "server/engine/section",
        "server/engine/plan",
    },
    "server/engine/keep": {
        "base", "io/file", "io/record", "io/element", "server/engine/tasks",
        "server/engine/read", "server/engine/spec", "server/engine/tensor",
        "server/engine/order", "server/engine/plan",
    },
    "server/engine/run": {
        "base", "io/record", "server/engine/tasks", "server/engine/read",
        "server/engine/spec", "server/engine/tensor", "server/engine/order",
        "server/engine/share", "server/engine/compute", "server/engine/section",
        "server/engine/plan", "server/engine/stage", "server/engine/keep",
    },
    "server/python": {"base", "ring", "server/engine/order"},
    "server/functions/array": {"base", "server/kernels", "server/expr"},
    "server/functions/format": {"base", "server/codec", "server/expr", "server/image"},
    "server/functions/image": {"base", "server/kernels", "server/codec", "server/expr", "server/image"},
    "server/functions/math": {"base", "server/kernels", "server/expr"},
    "server/functions/random": {"server/kernels", "server/expr", "server/image"},
    "server/functions/string": {"base", "server/codec", "server/expr"},
    "server/functions/text": {"base", "server/expr", "server/text/unicode", "server/text"},
    "server/ops": {
        "base", "io/record", "io/arrow", "io/parquet", "server/codec", "server/expr",
        "server/engine/read", "server/engine/spec", "server/engine/tensor", "server/engine/order",
        "server/engine/section", "server/engine/plan", "server/engine/stage",
        "server/engine/keep", "server/python",
    },
    "server/helpers": {
        "proto", "base", "io/file", "ring", "server/engine/spec", "server/engine/tensor",
        "server/engine/plan", "server/engine/run",
    },
    "server/cuda": {"proto", "ring", "cuda", "server/engine/tensor"},
    "server/service/socket": {"proto", "base", "ring"},
    "server/service/state": {
        "proto", "base", "io/file", "ring", "server/codec", "server/engine/tasks",
        "server/engine/spec", "server/engine/tensor", "server/engine/plan",
    },
    "server/service/watch": {
        "proto", "base", "ring", "server/codec", "server/engine/tensor",
        "server/engine/run",
    },
    "server/service/stream": {
        "proto", "base", "ring", "server/engine/tasks", "server/engine/read",
        "server/engine/tensor", "server/engine/plan", "server/engine/run", "server/cuda",
        "server/service/state",
    },
    "server/service/pipeline": {
        "proto", "base", "io/file", "ring", "server/engine/read", "server/engine/spec",
        "server/engine/plan", "server/engine/run", "server/cuda", "server/service/socket",
        "server/service/state", "server/service/watch", "server/service/stream",
    },
    "server/service/attach": {
        "proto", "base", "ring", "server/codec", "server/engine/run", "server/python",
        "server/service/socket", "server/service/state", "server/service/stream",
        "server/service/pipeline",
    },
    "server/service/tune": {
        "proto", "base", "ring", "server/service/socket", "server/service/watch",
        "server/service/pipeline",
    },
    "server/service/http": {
        "proto", "base", "io/file", "ring", "server/service/socket", "server/service/state",
        "server/service/watch", "server/service/pipeline", "server/service/tune",
    },
    "server/service/control": {
        "proto", "base", "ring", "server/codec", "server/engine/plan", "server/engine/run",
        "server/service/socket", "server/service/state", "server/service/stream", "server/service/watch",
        "server/service/pipeline", "server/service/tune",
    },
    "server/service/daemon": {
        "proto", "base", "io/file", "io/credentials", "io/remote", "ring", "server/engine/share", "server/engine/run",
        "server/cuda", "server/helpers", "server/service/socket", "server/service/state",
        "server/service/watch", "server/service/stream", "server/service/pipeline",
        "server/service/attach", "server/service/tune", "server/service/http",
        "server/service/control",
    },
    "server": {"base", "server/service/state", "server/service/watch", "server/service/daemon"},
    "client/c": {"ring", "cuda"},
    "client/cpp": {"client/c"},
    "client/python": {"ring", "client/c"},
    "client/ctl/grammar": {"base"},
    "client/ctl/terminal": {"base"},
    "client/ctl/files": {"base", "io/record", "io/remote", "ring"},
    "client/ctl/data": {
        "base", "io/record", "io/element", "io/remote", "client/ctl/grammar",
        "client/ctl/terminal", "client/ctl/files",
    },
    "client/ctl/inspect": {
        "base", "io/record", "client/ctl/grammar", "client/ctl/terminal", "client/ctl/files",
    },
    "client/ctl/arguments": {"proto", "base", "ring", "client/ctl/grammar"},
    "client/ctl/words": {"proto"},
    "client/ctl/batches": {"client/cpp", "client/ctl/words"},
    "client/ctl/daemon": {
        "proto", "base", "ring", "client/ctl/grammar", "client/ctl/terminal",
        "client/ctl/arguments",
    },
    "client/ctl/top": {
        "proto", "base", "client/ctl/grammar", "client/ctl/terminal", "client/ctl/arguments",
        "client/ctl/words", "client/ctl/daemon",
    },
    "client/ctl/commands": {
        "proto", "base", "io/record", "io/remote", "client/cpp", "client/ctl/grammar",
        "client/ctl/terminal", "client/ctl/files", "client/ctl/arguments", "client/ctl/words",
        "client/ctl/batches", "client/ctl/daemon",
    },
    "client/ctl": {
        "client/ctl/grammar", "client/ctl/terminal", "client/ctl/data", "client/ctl/inspect",
        "client/ctl/top", "client/ctl/commands",
    },
    "client/samples/chess": {"base"},
    "client/samples": {
        "base", "io/record", "client/ctl/grammar", "client/ctl/terminal", "client/ctl/files",
        "client/samples/chess",
    },
}

# Modules whose files register themselves and know nothing of each other: a file includes of its own module only its own header.
STRANGERS = {"server/ops"} | {module for module in ALLOWED if module.startswith("server/functions/")}

# Tests and benchmarks look at everything; nothing may look at them.
OBSERVERS = {"tests", "bench", "examples"}

# The headers that a trainer's author includes; they lie in one folder when they are installed.
PUBLIC_HEADERS = {"penstock.h": "client/c", "penstock_cuda.h": "client/c", "penstock.hpp": "client/cpp"}

# Other people's libraries whose headers are included in quotes.
LIBRARIES = {"CLI", "absl", "boost", "google", "grpcpp", "hwy", "nlohmann", "re2", "spdlog"}

# What a trainer's process must never load from us: its framework brings its own.
TRAINER_MODULES = {"ring", "cuda", "client/c", "client/cpp", "client/python"}
NEVER_IN_TRAINER = re.compile(r"(google/protobuf|grpc|grpcpp|absl|boost)/")
# In the daemon, too, Boost.Interprocess maps memory and does nothing else: a killed peer breaks its locks.
NEVER = re.compile(r"boost/interprocess/(sync|ipc)/")

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
SUFFIXES = {".h", ".hpp", ".cc", ".c", ".cu"}


def module_of(path):
    """The module of a path from the root, or None."""
    if path.startswith("penstock/v1/"):
        return "proto"  # generated
    if path in PUBLIC_HEADERS:
        return PUBLIC_HEADERS[path]
    folder = path.rpartition("/")[0]
    return folder if folder in ALLOWED else None


def source_files(root):
    for top in ("proto", "base", "io", "ring", "cuda", "server", "client"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES:
                yield path


def check(root):
    """Returns the complaints, one sentence each, and the arrows that no file needs any more."""
    root = pathlib.Path(root)
    complaints = []
    arrows = {}
    for path in source_files(root):
        name = path.relative_to(root).as_posix()
        module = module_of(name)
        if module is None:
            complaints.append(f"{name}: its folder is in no module of the table")
            continue
        for bracket, target in INCLUDE.findall(path.read_text()):
            if NEVER.match(target):
                complaints.append(f"{name} includes <{target}>: locks of Boost.Interprocess are never used")
            if module in TRAINER_MODULES and NEVER_IN_TRAINER.match(target):
                if not (module == "ring" and target.startswith("boost/interprocess/")):
                    complaints.append(f"{name} includes <{target}>: {module} is loaded by trainers, which bring their own")
            if bracket == "<":
                continue
            to = module_of(target)
            if target.split("/")[0] in OBSERVERS:
                complaints.append(f'{name} includes "{target}": nothing but tests and benchmarks includes these')
            elif target.split("/")[0] in LIBRARIES:
                continue
            elif to is None:
                complaints.append(f'{name} includes "{target}": not a path from the root into a module')
            elif to == module:
                if module in STRANGERS and pathlib.Path(target).stem != path.stem:
                    complaints.append(f'{name} includes "{target}": files of {module} know nothing of each other')
            elif to in ALLOWED[module]:
                arrows.setdefault(module, set()).add(to)
            else:
                complaints.append(f'{name} includes "{target}": {module} may not include {to}')
    for cycle in cycles(arrows):
        complaints.append("modules include each other: " + " -> ".join(cycle))
    unused = {(module, to) for module, modules in ALLOWED.items() for to in modules - arrows.get(module, set())}
    return complaints, unused


def rooms():
    """The modules that are rooms: folders of io, of the modules of server, and of the command."""
    return sorted(
        module for module in ALLOWED
        if module.count("/") == {"io": 1, "server": 2}.get(module.split("/")[0]) or module.startswith("client/ctl/")
    )


# Other modules that say who comes in, besides the rooms.
MODULES_WITH_README = [
    "base", "ring", "cuda", "server/kernels", "server/codec", "server/expr", "server/text", "server/image", "server/ops", "server/cuda", "server/python",
    "server/helpers", "client/c", "client/ctl", "client/samples",
]


def who_comes_in(module):
    """The sentence of a module's README.md: the modules that may include it. Of a folder whose modules all do, its name alone."""
    coming = [other for other, modules in ALLOWED.items() if module in modules]
    folders = {}
    for other in ALLOWED:
        folders.setdefault(other.rpartition("/")[0], []).append(other)
    words = []
    for other in coming:
        folder = other.rpartition("/")[0]
        siblings = [sibling for sibling in folders[folder] if sibling != module]
        if folder.count("/") and len(siblings) > 1 and set(siblings) <= set(coming):
            word = f"all rooms of `{folder}`"
        else:
            word = f"`{other}`"
        if word not in words:
            words.append(word)
    nobody = "nobody: what is here registers itself, or is a program" if not module.startswith("io/") else "nobody yet"
    return f"Who comes in: {', '.join(words) or nobody}."


def write_readmes(root):
    """Renews the sentence in all of them."""
    for module in [*rooms(), *MODULES_WITH_README]:
        path = pathlib.Path(root) / module / "README.md"
        parts = [part for part in path.read_text().rstrip("\n").split("\n\n") if not part.startswith("Who comes in: ")]
        sentence = textwrap.fill(who_comes_in(module), 100, break_long_words=False, break_on_hyphens=False)
        # Behind the first paragraph, which says what lives there.
        path.write_text("\n\n".join([*parts[:2], sentence, *parts[2:]]) + "\n")


def cycles(arrows):
    """Yields each cycle that a depth-first walk meets, as a list that ends with its first module."""
    done = set()

    def walk(module, path):
        if module in path:
            yield path[path.index(module):] + [module]
        elif module not in done:
            for to in sorted(arrows.get(module, ())):
                yield from walk(to, path + [module])
            done.add(module)

    for module in sorted(arrows):
        yield from walk(module, [])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write-readmes"]:
        write_readmes(pathlib.Path(__file__).parents[2])
        sys.exit()
    found, _ = check(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    print("\n".join(found))
    sys.exit(1 if found else 0)
