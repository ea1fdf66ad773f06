"""Pages that are made when the site is built: the Python API, the ops, the functions by family, and the nav of all of these."""

import pathlib

import functions_page
import ops_page
import python_page
from mkdocs.structure.files import File

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def on_config(config):
    config["nav"] = _filled(config["nav"], {
        "REFERENCE_PYTHON": [{title: path} for title, path, _ in python_page.pages()],
        "REFERENCE_FUNCTIONS": [{title: path} for title, path, _ in functions_page.pages()],
        "DECISIONS": [f"decisions/{path.name}" for path in sorted((DOCS / "decisions").glob("*.md"), key=_index_first)],
    })
    return config


def on_files(files, config):
    for title, path, text in [*python_page.pages(), *functions_page.pages(), *ops_page.pages()]:
        files.append(File.generated(config, path, content=text))
    return files


def _index_first(path):
    return (path.name != "index.md", path.name)


def _filled(nav, lists):
    """The nav with lists in the place of their names."""
    if isinstance(nav, list):
        return [_filled(item, lists) for item in nav]
    if isinstance(nav, dict):
        return {title: _filled(item, lists) for title, item in nav.items()}
    return lists.get(nav, nav)
