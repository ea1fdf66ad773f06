"""The reference of the Python package: which page shows which names. mkdocstrings writes them from the docstrings.

tests/website holds that every public name has a place.
"""

# Title, file, what it says first, and its names.
_PAGES = [
    ("Datasets", "datasets", "", ["Dataset", "DatasetIterator", "ArrowDataset", "ArrowFeature", "FilesDataset", "FixedLengthRecordDataset", "TarDataset",
                                  "TextLineDataset", "TFRecordDataset", "Options", "TensorSpec", "Skipped", "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY"]),
    ("Attaching", "attaching", "", ["attach", "shared_daemon", "stop_private_daemon", "helpers"]),
    ("JSON", "json", "", ["JsonFeature", "decode_json"]),
    ("Tensors", "tensors", "", ["RaggedTensor", "SparseTensor", "Tensor", "show"]),
    ("Python functions", "python_functions", "", ["At", "numpy_function", "offer_workers", "py_function", "rng"]),
    ("Errors", "errors", "", ["Error", "AbortedError", "AlreadyExistsError", "CancelledError", "DataLossError", "DeadlineExceededError", "DetachedError",
                              "FailedPreconditionError", "InternalError", "InvalidArgumentError", "NotFoundError", "OutOfRangeError", "PeerLostError",
                              "PermissionDeniedError", "ResourceExhaustedError", "TraceError", "UnauthenticatedError", "UnavailableError",
                              "UnimplementedError", "UnknownError"]),
]
# A dataset is made by its methods.
_OPTIONS = {"Dataset": "    options:\n      merge_init_into_class: false\n"}
# Modules, whole. Most functions of images are made from the registry: they stand with the functions.
_MODULES = ["io", "image", "strings", "audio", "experimental", "torch", "jax", "tensorflow", "huggingface", "cuda", "ray"]
# Types have NumPy's meaning, and what is in the compiled module has its text in _core.pyi.
WITHOUT_PAGE = {"Loader", "abi_version", "version", "default_socket", "TFRecordOptions", "TFRecordWriter", "functions", "string", "bool", "bfloat16"}


def names():
    """Every name of the package that has a place."""
    return {name for _, _, _, listed in _PAGES for name in listed} | set(_MODULES) | WITHOUT_PAGE


def pages():
    """(title, path, text) of each page."""
    made = []
    for title, file, first, listed in _PAGES:
        sections = "\n".join(f"::: penstock.{name}\n{_OPTIONS.get(name, '')}" for name in listed)
        made.append((title, f"reference/python/{file}.md", f"# {title}\n\n{first}\n\n{sections}"))
    for module in _MODULES:
        options = "    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
        made.append((f"penstock.{module}", f"reference/python/{module}.md", f"# penstock.{module}\n\n::: penstock.{module}\n{options}"))
    return made
