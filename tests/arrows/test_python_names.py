"""A function, a class or a test that has the name of an earlier one of its module takes its place: the earlier one is never called again."""

import ast
import collections

from tree_files import ROOT, tree_files


def names_that_come_twice(source):
    """Names of functions and classes that a module, or one of its classes, defines twice without a decorator: properties and overloads do so on purpose."""
    for scope in [tree := ast.parse(source), *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        counts = collections.Counter(
            node.name for node in scope.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not node.decorator_list
        )
        yield from (name for name, count in counts.items() if count > 1)


def test_no_name_of_a_module_comes_twice():
    paths = list(tree_files(".py"))
    assert len(paths) > 300
    assert {path: names for path in paths if (names := list(names_that_come_twice((ROOT / path).read_text())))} == {}


def test_a_name_that_comes_twice_is_found():
    assert list(names_that_come_twice("def a(): 1\nclass B:\n  def c(self): 1\n  def c(self): 2\ndef a(): 2\n")) == ["a", "c"]
