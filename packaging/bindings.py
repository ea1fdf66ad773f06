"""Puts bindings for other versions of Python into a wheel.

    python bindings.py WHEEL OUT BINDING...

WHEEL is what scikit-build made for one Python; each BINDING is `_core` for another one, such as `_core.cpython-313-x86_64-linux-gnu.so`. The
wheel in the folder OUT holds them side by side: each Python imports the one that has its own suffix. Its tags are of exactly these versions
(cp311-none, …), so that pip takes it for no version that nobody tried. Needs the PyPI package `wheel`.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def python_tag(binding):
    """"cp313" of "_core.cpython-313-x86_64-linux-gnu.so"."""
    found = re.fullmatch(r"_core\.cpython-(3\d+)-\S+\.so", os.path.basename(binding))
    if not found:
        raise ValueError(f"no binding of a CPython is called so: {binding}")
    return f"cp{found[1]}"


def python_tags(bindings):
    """The tags of all bindings, oldest first and joined as in the name of a wheel: "cp39.cp310"."""
    tags = [python_tag(binding) for binding in bindings]
    twice = {tag for tag in tags if tags.count(tag) > 1}
    if twice:
        raise ValueError(f"two bindings are for one Python: {', '.join(sorted(twice))}")
    return ".".join(sorted(tags, key=lambda tag: int(tag[3:])))


def main(wheel, out, *bindings):
    with tempfile.TemporaryDirectory() as folder:
        def run(*words):
            subprocess.run([sys.executable, "-m", "wheel", *map(str, words)], check=True)

        run("unpack", "--dest", folder, wheel)
        (tree,) = pathlib.Path(folder).iterdir()
        for binding in bindings:
            shutil.copy(binding, tree / "penstock")
        tags = python_tags(path.name for path in (tree / "penstock").glob("_core.*.so"))
        (packed := pathlib.Path(folder, "packed")).mkdir()
        run("pack", "--dest-dir", packed, tree)
        (made,) = packed.iterdir()
        run("tags", "--python-tag", tags, "--abi-tag", "none", "--remove", made)
        (made,) = packed.iterdir()
        pathlib.Path(out).mkdir(parents=True, exist_ok=True)
        shutil.copy(made, out)
        print(os.path.join(out, made.name))


if __name__ == "__main__":
    main(*sys.argv[1:])
