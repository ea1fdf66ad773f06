"""Links to files outside of docs/, and lists as GitHub reads them.

A page of docs/ may link to any file of the tree. Each file that is linked becomes a page below source/: Markdown as it is, a folder as its list, and
everything else as text. So a link that leads nowhere is an error here as any other.
"""

import os
import pathlib
import re

import functions_page
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<!\\)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^\s*(```+)")
_LANGUAGES = {".cc": "cpp", ".h": "cpp", ".hpp": "cpp", ".py": "python", ".sh": "bash", ".proto": "protobuf", ".yaml": "yaml", ".json": "json"}


def outside_of_fences(text, change):
    """The text with `change(line, the line before)` in the place of each line outside of fences."""
    lines, fence, before = [], None, ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and fence is None:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = None
        elif fence is None:
            line = change(line, before)
        before = line
        lines.append(line)
    return "\n".join(lines)


def _target(place, link):
    """The path in the tree that a link of the file at `place` leads to; None if it leads out of it or nowhere."""
    path = pathlib.Path(os.path.normpath(ROOT / pathlib.PurePosixPath(place).parent / link))
    return path.relative_to(ROOT).as_posix() if ROOT in path.parents and path.exists() else None


def _page_of(target):
    """The site's page of a path in the tree."""
    if target == "docs/functions.md":
        return "reference/functions/index.md"
    if target.startswith("docs/"):
        return target[len("docs/"):]
    return f"source/{target}" if target.endswith(".md") else f"source/{target}.md"


def _linked(place, text):
    found = set()

    def look(line, before):
        for link, _ in _LINK.findall(line):
            target = _target(place, link)
            if target is not None and (not target.startswith("docs/") or _hidden(target)):
                found.add(target)
        return line

    outside_of_fences(text, look)
    return found


def _hidden(target):
    """Whether it lies in docs/ and is no page of the site by itself."""
    return target.endswith((".py", ".json")) or target.startswith("docs/man")


def _text_of(target):
    path = ROOT / target
    if path.is_dir():
        lines = [f"* [{item.name}]({path.name}/{item.name})" for item in sorted(path.iterdir()) if not item.name.startswith((".", "__"))]
        return "\n".join([f"# {target}/", "", *lines, ""])
    text = path.read_text(encoding="utf-8")
    if target.endswith(".md"):
        return text
    return f"# {target}\n\n``````{_LANGUAGES.get(path.suffix, 'text')}\n{text}``````\n"


def _place_of(page):
    """Where in the tree the source of a page stands; None for a page that was made."""
    if page.startswith("source/"):
        target = page[len("source/"):]
        return target if (ROOT / target).exists() else target[: -len(".md")]
    return f"docs/{page}"


def on_files(files, config):
    waiting = set(re.findall(r"'source/([^']+)'", str(config["nav"])))
    for file in files.documentation_pages():
        if file.src_uri.endswith(".md"):
            waiting |= _linked(f"docs/{file.src_uri}", file.content_string)
    seen = set()
    while waiting:
        target = waiting.pop()
        seen.add(target)
        page = f"source/{target}.md" if _hidden(target) else _page_of(target)
        text = _text_of(target)
        files.append(File.generated(config, page, content=text))
        waiting |= _linked(target, text) - seen
    return files


def on_page_markdown(text, page, config, files):
    uri = page.file.src_uri
    place = _place_of(uri)

    def change(line, before):
        # A list may follow a paragraph at once, on GitHub.
        if re.match(r"(\*|-|\d+\.) ", line) and re.match(r"[^\s|>*#-]", before) and not re.match(r"\d+\. ", before):
            line = "\n" + line
        return _LINK.sub(lambda match: _rewritten(match, place, uri), line)

    return outside_of_fences(text, change)


def _rewritten(match, place, uri):
    link, anchor = match[1], match[2] or ""
    target = _target(place, link)
    if target is None:
        return match[0]
    page = f"source/{target}.md" if _hidden(target) else _page_of(target)
    if target == "docs/functions.md":
        page = functions_page.page_of(anchor[1:])
    return f"]({os.path.relpath(page, os.path.dirname(uri) or '.')}{anchor})"
