"""The function's file (server/python/function_file.h), and how many threads what it uses may have."""

import json
import mmap
import os
import struct
import sys

MAGIC = b"penstock python\n"


def read_header(file):
    head = os.pread(file, len(MAGIC) + 8, 0)
    (size,) = struct.unpack_from("=Q", head, len(MAGIC))
    return json.loads(os.pread(file, size, len(head)))


def load(file, header):
    """The function: its pickle's large arrays stay in the file, which all workers map once. They are read-only; who writes all the same, as a torch
    tensor over them may, writes into a page of its own."""
    import pickle

    data = memoryview(mmap.mmap(file, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)).toreadonly()  # novermin
    parts = [data[offset : offset + size] for offset, size in header["parts"]]
    return pickle.loads(parts[0], buffers=parts[1:])


def limit_threads(threads, sets):
    """One thread each, as there is a process for every processor, unless the user has set it (`sets`), or the environment has."""
    for name in (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "BLIS_NUM_THREADS",
        "RAYON_NUM_THREADS",
    ):  # fmt: skip
        if sets:
            os.environ[name] = str(threads)
        else:
            os.environ.setdefault(name, str(threads))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


_LIMITED = set()


def limit_threads_of_modules(threads):
    """The same of what the function has imported by now."""
    for name, call in (("cv2", "setNumThreads"), ("torch", "set_num_threads")):
        module = sys.modules.get(name)
        if module is not None and name not in _LIMITED and hasattr(module, call):
            _LIMITED.add(name)
            getattr(module, call)(0 if name == "cv2" and threads == 1 else threads)
