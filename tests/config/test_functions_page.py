"""docs/functions.json: what the manual, the stub and Python's registry are made of."""

import ast
import importlib.util
import json
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
FUNCTIONS = json.loads((ROOT / "docs" / "functions.json").read_text(encoding="utf-8"))


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = load(ROOT / "docs" / "make_functions_page.py")
REGISTRY = load(ROOT / "client" / "python" / "make_registry.py")


def test_the_page_is_the_lists():
    assert (ROOT / "docs" / "functions.md").read_text(encoding="utf-8") == PAGE.page(FUNCTIONS), "run: python docs/make_functions_page.py"


def test_a_function_is_a_section():
    text = PAGE.page([{"name": "f", "signature": "f(a, b=1)", "doc": "What it gives.\n\n* a, b: numbers."}])
    assert text == PAGE.HEAD + "\n## f\n\n`f(a, b=1)`\n\nWhat it gives.\n\n* a, b: numbers.\n"


def test_parameters_are_those_of_the_signature():
    assert len(FUNCTIONS) > 200
    for function in FUNCTIONS:
        made = ast.parse(f"def {function['signature']}: pass").body[0].args
        defaults = [ast.literal_eval(default) for default in made.defaults]
        expected = list(zip([argument.arg for argument in made.args], [...] * (len(made.args) - len(defaults)) + defaults))
        found = [(parameter["name"], parameter.get("default", ...)) for parameter in function["parameters"]]
        assert repr(found) == repr(expected), function["name"]


def test_python_has_the_list():
    names = {}
    exec(REGISTRY.registry(FUNCTIONS), names)  # noqa: S102
    assert names["FUNCTIONS"] == {function["name"]: (function["signature"], function["doc"]) for function in FUNCTIONS}
    assert names["PARAMETERS"]["resize"][:2] == [("image", ...), ("size", ...)]
    assert names["PARAMETERS"].keys() == names["FUNCTIONS"].keys()


def check_stub(names):
    """A stub of these names, each of the function of the list."""
    by_name = {function["name"]: function for function in FUNCTIONS}
    made = {node.name: node for node in ast.parse(REGISTRY.stub(FUNCTIONS, names)).body if isinstance(node, ast.FunctionDef)}
    assert made.keys() == names.keys()
    for shown, name in names.items():
        args, function = made[shown].args, by_name[name]
        assert [argument.arg for argument in args.args] == [parameter["name"] for parameter in function["parameters"]]
        defaults = [parameter["default"] for parameter in function["parameters"] if "default" in parameter]
        assert repr([ast.literal_eval(default) for default in args.defaults]) == repr(defaults)
        assert ast.get_docstring(made[shown]) == "\n".join(line.rstrip() for line in function["doc"].splitlines())


def test_the_stub_has_every_function_with_its_defaults():
    check_stub({function["name"]: function["name"] for function in FUNCTIONS})


def test_images_and_formats_have_stubs_of_their_own():
    image, io = REGISTRY.names_of_image(FUNCTIONS), REGISTRY.names_of_io(FUNCTIONS)
    for names in (image, io):
        check_stub(names)
    assert image["transpose"] == "image_transpose" and image["decode_png"] == "decode_png" and not {"tanh", "string_lower", "decode_raw"} & image.keys()
    assert {"decode_raw", "decode_png", "encode_jpeg"} <= io.keys() and "resize" not in io
