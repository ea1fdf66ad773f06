"""No code outside of an op's own file knows ops by name: what an op is like stands in its registration (server/engine/spec/op_traits.h)."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]

# What else has the name of an op.
EXCEPTIONS = {
    ("client/ctl/cache.cc", '"cache"'): "the command `penstock cache`",
    ("client/ctl/consumers.cc", '"skip"'): "what happens to a slow consumer",
    ("client/ctl/index.cc", '"files"'): "an argument",
    ("client/ctl/inspect.cc", '"files"'): "an argument",
    ("client/ctl/verify.cc", '"files"'): "an argument",
    ("server/service/daemon/daemon_config.cc", "mutable_cache("): "a part of the configuration",
    ("server/service/state/overrides.cc", '"text_line"'): "the option of a constant",
    ("server/service/socket/settings.cc", '"cache"'): "a part of the configuration",
    ("server/service/http/metrics.cc", '"counter"'): "a type of metrics",
    ("server/service/http/status_json.cc", '"batch"'): "a key of the page's JSON",
}


def ops_of(root):
    """Pairs of an op's name and its message."""
    proto = (root / "proto/penstock/v1/ops.proto").read_text()
    oneof = re.search(r"oneof op \{(.*?)\}", proto, re.DOTALL).group(1)
    return [(name, message) for message, name in re.findall(r"^\s*(\w+) (\w+) = \d+;", oneof, re.MULTILINE)]


def names_of_ops(text, ops):
    """What of a file's code names an op."""
    # Prose may name them: comments, and words inside of messages.
    code = re.sub(r"//[^\n]*", "", text)
    found = []
    for name, message in ops:
        # `files()`, `skip()` and the like are functions of many things; of a stage they stand behind has_ or mutable_.
        for pattern in (rf"\b(?:has|mutable|clear)_{name}\(", rf"\bStage::k{message}\b", rf'"{name}"', rf"\bv1::{message}\b"):
            found += re.findall(pattern, code)
    return found


def test_it_finds_what_names_an_op():
    ops = ops_of(ROOT)
    assert ("take_while", "TakeWhile") in ops and len(ops) > 40
    assert names_of_ops("if (stage.has_take_while()) case v1::Stage::kZip: // v1::Map", ops) == ["Stage::kZip", "has_take_while("]
    assert names_of_ops('Is("zip") || Is("such as zip") || v1::Shuffle::kSeedFieldNumber', ops) == ["v1::Shuffle", '"zip"']


def test_only_an_ops_own_file_names_it():
    ops = ops_of(ROOT)
    used = set()
    complaints = []
    for top in ("server/engine", "server/service", "server/cuda", "client/ctl"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix not in {".h", ".cc"}:
                continue
            name = path.relative_to(ROOT).as_posix()
            for found in names_of_ops(path.read_text(), ops):
                if (name, found) in EXCEPTIONS:
                    used.add((name, found))
                else:
                    complaints.append(f"{name}: {found}")
    assert complaints == []
    assert used == set(EXCEPTIONS), "an exception that no file needs any more"
