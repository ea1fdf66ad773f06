"""The README, the tutorials and the how-to pages: every example runs as it stands. Those that need torch, Keras, JAX or pyarrow: tests/frameworks/test_pages_of_frameworks.py."""

import re

import pages
import pytest

ROOT = pages.ROOT
# One shows what `top` says of a busy machine, the other is of C++.
WITHOUT_EXAMPLES = {"docs/howto/bottleneck.md", "docs/howto/cpp.md"}
FRAMEWORKS = {
    "docs/tutorials/torch.md", "docs/tutorials/keras.md", "docs/tutorials/jax.md", "docs/howto/arrow.md", "docs/howto/parquet.md"
}  # fmt: skip
PAGES = sorted(str(path.relative_to(ROOT)) for folder in ("tutorials", "howto") for path in (ROOT / "docs" / folder).glob("*.md"))
# Commands that no test here runs: they build the project, or run all tests. `./dev test docs` runs the demo.
COMMANDS = {
    "README.md": ["./dev demo", "./dev test"],
    "docs/howto/pack-documents.md": ["penstock index --tokens SPEC"],
    "docs/howto/mix-sources.md": ["penstock update NAME --set mix.weight=0.5,0.5 --at-step 20000", "penstock history NAME > changes"],
    "docs/howto/cpp.md": ["cmake --install build/release --prefix PREFIX",
                          "g++ -std=c++20 train.cc -IPREFIX/include -LPREFIX/lib -lpenstock -Wl,-rpath,PREFIX/lib"],
}  # fmt: skip


def _examples(page):
    return [text for language, text in pages.fences(page) if language in ("sh", "python")]


def test_all_pages_but_two_have_examples():
    assert {page for page in PAGES if not _examples(page)} == WITHOUT_EXAMPLES


@pytest.mark.parametrize("page", [page for page in PAGES if page not in FRAMEWORKS | WITHOUT_EXAMPLES])
def test_the_examples_of_a_page_run(page, tmp_path):
    assert pages.run(page, tmp_path) == len(_examples(page)) > 0


def test_the_readmes_examples_run(tmp_path):
    """Where a framework is missing, with something in its place: the pipelines are run all the same."""
    assert pages.run("README.md", pages.with_samples(tmp_path), "--first", ROOT / "tests/docs/readme_reader.py") == 5


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 122 and not line.startswith("|")] == []


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_no_other_command_is_in_a_page(page):
    """A block without a language that looks like commands is one of those above."""
    lines = [line for language, text in pages.fences(page) if not language for line in text.splitlines()]
    commands = [re.sub(r" +#.*", "", line) for line in lines if re.match(r"\./dev |\w[\w+-]* --?\w|penstock", line)]
    assert commands == COMMANDS.get(page, [])


def test_dev_knows_the_commands_of_the_pages():
    known = pages.output_of(ROOT / "dev", "help")
    text = "".join((ROOT / page).read_text() for page in ["README.md", *PAGES, "docs/benchmarks.md"])
    named = set(re.findall(r"\./dev [a-z]+(?: [a-z]+)?", text))
    assert {"./dev demo", "./dev test", "./dev bench peers"} <= named
    missing = [name for name in named if name.split()[1] not in ("help",) and " ".join(name.split()[:2]) not in known]
    missing += [name for name in named if name.startswith("./dev bench ") and name not in known and not name.endswith("kernels")]
    assert missing == []


def test_the_spec_of_ones_own_data(tmp_path):
    page = "docs/howto/own-data.md"
    pages.run(page, tmp_path)
    (spec,) = (text for language, text in pages.fences(page) if language == "textproto")
    (tmp_path / "mine.textproto").write_text(spec)
    out = pages.output_of(pages.BIN / "penstock", "run", "mine.textproto", "--steps", "1", folder=tmp_path)
    assert "x float32 (64, 4)" in out and "y int64 (64,)" in out


def test_the_example_in_cpp_compiles(tmp_path):
    (code,) = (text for language, text in pages.fences("docs/howto/cpp.md") if language == "cpp")
    train = "#include <cstddef>\n#include <span>\nvoid Train(std::span<const double> boards, size_t rows);\n"
    (tmp_path / "train.cc").write_text(train + code)
    pages.output_of("g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", f"-I{ROOT}/client/c", f"-I{ROOT}/client/cpp", tmp_path / "train.cc")


def test_every_decision_has_its_topic():
    index = (ROOT / "docs/decisions/index.md").read_text()
    linked = re.findall(r"^\* \[(\d{4})\]\((\1-[\w-]+\.md)\): ", index, re.MULTILINE)
    there = sorted(path.name for path in (ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert sorted(name for _, name in linked) == there, "a line in docs/decisions/index.md is missing, twice there, or of a page that has gone"


def test_links_of_the_pages_lead_somewhere():
    """Those of the README, which is no page of the site; the site holds all others."""
    links = re.findall(r"\]\((?!https?:|#)([^)\s#]+)", (ROOT / "README.md").read_text())
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []
