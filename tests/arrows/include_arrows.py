"""Checks which module includes which: the arrows of docs/architecture.md point down only.

    python tests/arrows/include_arrows.py [ROOT]

prints a line for each forbidden include and exits with 1 if there is one. A module is a folder of ALLOWED; the includes looked at
are those in quotes, which are written from the root of the tree.
"""

import pathlib
import re
import sys

# Module: the modules that its files may include, besides their own.
ALLOWED = {
    "proto": set(),
    "ring": set(),
    # CUDA for both sides: no library of it is linked, and trainers load it.
    "cuda": {"ring"},
    "base": set(),
    "server/kernels": {"base"},
    "io": {"base", "server/kernels"},
    "server/codec": {"base", "server/kernels", "proto"},
    "server/expr": {"base", "server/kernels"},
    # Not ring: the engine fills the spans of an abstract BatchSink.
    "server/engine": {"base", "server/kernels", "io", "server/codec", "server/expr", "proto"},
    "server/image": {"base", "server/kernels", "server/expr"},
    "server/functions": {"base", "server/kernels", "server/codec", "server/expr", "server/image"},
    "server/ops": {"base", "server/kernels", "io", "server/codec", "server/expr", "server/engine", "proto"},
    "server/cuda": {"base", "server/engine", "ring", "cuda", "proto"},
    "server/service": {"base", "io", "server/codec", "server/engine", "server/cuda", "ring", "cuda", "proto"},
    "server": {"base", "server/service"},  # main.cc
    "client/c": {"ring", "cuda"},
    "client/cpp": {"client/c"},
    "client/python": {"client/c", "client/cpp", "ring"},
    "client/ctl/chess": set(),
    "client/ctl": {"client/ctl/chess", "client/c", "client/cpp", "ring", "proto"},
}

# Single includes beyond the table, with their reason.
EXCEPTIONS = {
    ("client/ctl/command_line.cc", "base/signature.h"): "an unknown word gets the nearest known one, as a name in a spec does",
    ("client/ctl/shards.h", "io/tfrecord_writer.h"): "make-sample writes TFRecords as the daemon's tests do",
    ("client/ctl/make_sample_segmentation.cc", "base/random.h"): "the same options give the same records",
    ("client/ctl/make_sample_segmentation.cc", "io/example_builder.h"): "make-sample writes tf.train.Examples",
    ("client/ctl/fill_shards.cc", "io/example_builder.h"): "make-sample writes tf.train.Examples",
    ("client/ctl/write.cc", "io/tfrecord_writer.h"): "write packs a user's files",
    ("client/ctl/write.cc", "io/example_builder.h"): "write packs a user's files",
    ("client/ctl/write_jsonl.cc", "io/tfrecord_writer.h"): "write packs a user's JSON lines",
    ("client/ctl/write_jsonl.cc", "io/example_builder.h"): "write packs a user's JSON lines",
    ("client/ctl/make_sample_chess.cc", "io/example_builder.h"): "make-sample writes Examples",
    ("client/ctl/make_sample_flowers.cc", "io/example_builder.h"): "make-sample writes Examples",
    ("client/ctl/verify.cc", "io/record_stream.h"): "verify reads as the daemon does",
    ("client/ctl/spec_arguments.cc", "base/file_error.h"): "a spec that cannot be opened is told as the daemon tells it of files",
    ("client/ctl/cursor_file.cc", "base/replaced_file.h"): "a cursor takes another one's place as a file of records does",
    ("client/ctl/cache.cc", "base/disk.h"): "cache list, verify and clear look at the daemon's folders",
    ("client/ctl/cache.cc", "io/element_file.h"): "and at the files that it keeps there",
    ("client/ctl/index.cc", "io/record_index.h"): "index builds what the daemon loads",
    ("client/ctl/needed_indices.cc", "io/record_index.h"): "run and create build what the daemon would build without a progress bar",
    ("client/ctl/needed_indices.cc", "base/cache_folder.h"): "and put it where the daemon looks",
    ("client/ctl/chess/position_stream.h", "base/random.h"): "sample data is drawn with the same dice",
    ("client/ctl/make_sample_flowers.cc", "base/random.h"): "sample data is drawn with the same dice",
    ("client/ctl/make_sample_segmentation.cc", "base/random.h"): "sample data is drawn with the same dice",
}

# Modules whose files register themselves and know nothing of each other: a file includes of its own module only its own header.
STRANGERS = {"server/ops", "server/functions"}

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
SUFFIXES = {".h", ".cc", ".c", ".cu"}


def module_of(path):
    """The module of a path from the root, or None."""
    if path.startswith("penstock/v1/"):
        return "proto"  # generated
    if path in PUBLIC_HEADERS:
        return PUBLIC_HEADERS[path]
    folder = path.rpartition("/")[0]
    return folder if folder in ALLOWED else None


def source_files(root):
    for top in ("proto", "ring", "cuda", "server", "client"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES:
                yield path


def check(root):
    """Returns the complaints, one sentence each, and the exceptions that no file needs any more."""
    root = pathlib.Path(root)
    complaints = []
    arrows = {}
    used = set()
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
            elif (name, target) in EXCEPTIONS:
                used.add((name, target))
            elif to == module:
                if module in STRANGERS and pathlib.Path(target).stem != path.stem:
                    complaints.append(f'{name} includes "{target}": files of {module} know nothing of each other')
            elif to in ALLOWED[module]:
                arrows.setdefault(module, set()).add(to)
            else:
                complaints.append(f'{name} includes "{target}": {module} may not include {to}')
    for cycle in cycles(arrows):
        complaints.append("modules include each other: " + " -> ".join(cycle))
    return complaints, EXCEPTIONS.keys() - used


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
    found, _ = check(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    print("\n".join(found))
    sys.exit(1 if found else 0)
