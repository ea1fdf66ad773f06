"""The site that `./dev docs` has built, what its pages are made of, and the notebook."""

import ast
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SITE = ROOT / "build/website"
sys.path.insert(0, str(ROOT / "website/hooks"))
import functions_page  # noqa: E402
import links  # noqa: E402
import ops_page  # noqa: E402
import python_page  # noqa: E402


def html(page):
    return (SITE / page).read_text(encoding="utf-8")


def test_every_function_has_a_family_and_an_anchor():
    functions = json.loads((ROOT / "docs/functions.json").read_text())
    families = functions_page.families(functions)
    assert sum(map(len, families.values())) == len(functions)
    for family, members in families.items():
        page = html(f"reference/functions/{family}.html")
        assert [member["name"] for member in members if f'id="{member["name"]}"' not in page] == []
    assert {"resize", "random_crop", "tanh", "take", "string_lookup", "decode_raw"} <= {m["name"] for f in families for m in families[f] if f != "language"}
    assert len(families["language"]) < 40


def test_every_op_has_its_manual():
    proto = (ROOT / "proto/penstock/v1/ops.proto").read_text()
    stages = re.search(r"  oneof op \{\n(.*?)  \}", proto, re.DOTALL)[1]
    ops = re.findall(r"^    \w+ (\w+) = \d+;$", stages, re.MULTILINE)
    page = html("reference/ops.html")
    assert len(ops) > 40 and [op for op in ops if f'id="{op}"' not in page] == []
    assert "buffer_size" in page and "drawn uniformly from" in page


def test_comments_of_fields_and_values_are_there():
    ((_, _, text),) = ops_page.pages()
    assert "* **`on_damage`** (OnDamage)" in text and "* **`SKIP_SHARD`**: The rest of the file is left out." in text
    assert "repeated" in text and "### DamagePolicy" in text


def test_every_public_name_of_python_has_its_place():
    package = ast.parse((ROOT / "client/python/penstock/__init__.py").read_text())
    assigned = {ast.unparse(node.targets[0]): node.value for node in package.body if isinstance(node, ast.Assign)}
    listed = ast.literal_eval(assigned["__all__"])
    types = {name for name in listed if re.fullmatch(r"(?:u?int|float)\d+", name)}
    missing = set(listed) - types - python_page.names()
    assert missing == set(), "website/hooks/python_page.py says on which page a name stands"


def test_every_public_module_of_python_has_its_page():
    modules = {path.stem for path in (ROOT / "client/python/penstock").glob("[a-z]*.py")}
    assert modules - python_page.names() == set()


def test_the_methods_of_a_dataset_are_there():
    page = html("reference/python/datasets.html")
    for method in ("map", "shuffle", "batch", "from_tensor_slices", "state_dict", "save_spec"):
        assert re.search(rf'id="penstock\.Dataset(?:Iterator)?\.{method}"', page), method


def test_source_that_is_linked_is_a_page():
    assert "PENSTOCK_" in html("source/ring/layout.h.html") or "layout" in html("source/ring/layout.h.html")
    assert "find_package" in html("source/examples/find_package.html")


def test_nothing_comes_from_elsewhere():
    found = set()
    for path in SITE.rglob("*.html"):
        found |= set(re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', path.read_text(encoding="utf-8")))
    assert {url for url in found if not url.endswith("canonical")} == set()


def test_a_list_behind_a_paragraph_is_a_list():
    text = links.outside_of_fences("a:\n* b\n```\nc\n* d\n```", lambda line, before: "\n" + line if line.startswith("*") else line)
    assert text == "a:\n\n* b\n```\nc\n* d\n```"
    assert "<li>" in html("decisions/0118-python-in-worker-processes.html")


@pytest.mark.parametrize("link, says", [("[x](glossary.md#glossary)", None), ("[x](nowhere.md)", "nowhere.md"),
                                        ("[x](glossary.md#no-such-word)", "no-such-word"), ("[x](../server/nothing.cc)", "nothing.cc")])  # fmt: skip
def test_a_broken_link_is_an_error(tmp_path, link, says):
    """Of a small site with the same hooks and the same strictness."""
    import yaml

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# Index\n\n{link}\n")
    (tmp_path / "docs/glossary.md").write_text("# Glossary\n")
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump({
        "site_name": "small", "strict": True, "hooks": [str(ROOT / "website/hooks/links.py")], "plugins": [],
        "not_in_nav": "/source/", "nav": ["index.md", "glossary.md"], "validation": {"links": {"not_found": "warn", "anchors": "warn"}},
    }))  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode == 0) == (says is None) and (says or "") in done.stderr, done.stderr


def test_the_notebook_runs(tmp_path):
    import nbclient
    import nbformat

    notebook = nbformat.read(ROOT / "docs/tutorials/first_batches.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "the notebook is kept without results"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = json.dumps([cell.get("outputs") for cell in notebook.cells])
    assert "TensorSpec(shape=(None, 2), dtype=float32" in shown and "<Dataset tfrecord" in shown
