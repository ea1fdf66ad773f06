"""What type checkers see of the package (py.typed), where that may be another thing than what Python sees."""

import ast
import builtins
import inspect
import os
import typing

import numpy as np
import pytest

import penstock


@pytest.mark.parametrize("module", [penstock, penstock.audio, penstock.experimental, penstock.image, penstock.io, penstock.strings])
def test_what_a_module_takes_from_another_one_is_exported(module):
    """Without __all__ a name that is imported is private to a checker."""
    defined = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("penstock")
    }
    exported = set(module.__all__)
    assert len(exported) == len(module.__all__) and all(hasattr(module, name) for name in exported)
    # What has another name in public, or none.
    inner = {"Dataset", "DecodeWav", "Stage", "Trait", "declare", "counted_from_last", "example_stage", "sequence_example_stage", "sizes_of", "to_integer", "user_line"}
    assert defined - exported <= inner


def test_a_flag_is_pythons():
    """penstock.bool is NumPy's, in the module where attach stands."""
    assert eval(penstock.attach.__annotations__["take_over"], vars(penstock)) is builtins.bool  # noqa: S307


@pytest.mark.parametrize(
    "function, parameter",
    [
        (penstock.Dataset.cache, "filename"),
        (penstock.Dataset.snapshot, "path"),
        (penstock.Dataset.save, "path"),
        (penstock.Dataset.load, "path"),
        (penstock.Dataset.loader, "socket"),
    ],
)
def test_paths_are_path_likes(function, parameter):
    names = {"os": os, "Union": typing.Union, "Optional": typing.Optional}
    assert os.PathLike in typing.get_args(eval(function.__annotations__[parameter], names))  # noqa: S307


def test_operators_of_traced_values_stand_in_their_class():
    (made,) = ast.parse(inspect.getsource(penstock.Tensor)).body
    written = {node.name for node in made.body if isinstance(node, ast.FunctionDef)}
    written |= {name.id for node in made.body if isinstance(node, ast.Assign) for name in ast.walk(node) if isinstance(name, ast.Name)}
    own = {name for name, value in vars(penstock.Tensor).items() if inspect.isfunction(value)}
    assert {"__sub__", "__rsub__", "__rmatmul__"} <= own <= written
    assert typing.get_type_hints(penstock.Tensor.__getattr__)["return"] is typing.Any


@pytest.mark.parametrize("dtype", [np.float32, "float32", np.dtype(np.float32)])
def test_equal_specs_have_one_hash(dtype):
    found = penstock.Dataset.from_tensors(np.zeros(3, np.float32)).element_spec
    given = penstock.TensorSpec((3,), dtype)
    assert given == found and hash(given) == hash(found) and given.dtype.name == "float32"


def test_specs_of_types_that_numpy_lacks():
    rows = penstock.Dataset.from_tensors(("text", np.float32(1))).map(lambda text, x: (text, penstock.functions.bfloat16(x)))
    text, half = rows.element_spec
    assert {penstock.TensorSpec((), penstock.string), penstock.TensorSpec((), penstock.bfloat16)} == {text, half}
