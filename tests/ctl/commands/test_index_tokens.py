"""`penstock index --tokens` as a user types it: what it writes, what is packed by it, and what it says."""

import json
import os
import pathlib
import subprocess

import pytest

PENSTOCK = pathlib.Path(os.environ.get("PENSTOCK_BIN", "build/release/bin")).resolve() / "penstock"
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "hello": 1, "world": 2, ",": 3}, "unk_token": "[UNK]"},
}  # fmt: skip


def penstock(folder, *arguments):
    return subprocess.run([PENSTOCK, *arguments], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def corpus(tmp_path):
    """Two files of JSON lines, and a spec that packs their tokens."""
    for part in range(2):
        rows = [{"text": "hello, world " * ((7 * n + part) % 23)} for n in range(50)]
        (tmp_path / f"part-{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (tmp_path / "spec.textproto").write_text(f"""
name: "packed"
stage {{ json_lines {{ files: "part-*.jsonl" }} }}
stage {{ decode_json {{ feature {{ name: "text" dtype: "string" }} }} }}
stage {{ shuffle {{ buffer_size: 20 seed: 1 }} }}
stage {{ map {{ out: "tokens = tokenize(text, '{tmp_path}/tokenizer.json')" }} }}
stage {{ pack {{ sequence_length: 32 window: 30 segment_ids: true }} }}
stage {{ batch {{ batch_size: 2 }} }}
""")
    return tmp_path


def batches(folder, *arguments):
    done = penstock(folder, "run", "spec.textproto", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def explanation(folder, *arguments):
    done = penstock(folder, "validate", "spec.textproto", "--explain", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_packed_by_an_index_is_what_is_packed_without(corpus):
    assert "`penstock index --tokens SPEC` spares that: no index of tokens (" in explanation(corpus)
    assert "cursor: replay data" in explanation(corpus)
    without = batches(corpus)
    done = penstock(corpus, "index", "--tokens", "spec.textproto", "--workers", "2")
    assert done.returncode == 0, done.stderr
    tokens = [sum(3 * ((7 * n + part) % 23) for n in range(50)) for part in range(2)]
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    for part, line in enumerate(lines[:2]):
        assert line.startswith(f"{corpus}/part-{part}.jsonl: 50 documents, {tokens[part]} tokens, wrote {corpus}/.part-{part}.jsonl.tokens-")
        assert pathlib.Path(line.split(", wrote ")[1]).stat().st_size > 100
    assert lines[2] == f"100 documents and {sum(tokens)} tokens in 2 files"
    assert "pack: packs by the index of tokens, 100 documents in 2 files" in explanation(corpus)
    # The shuffle in front goes by numbers alone.
    assert "cursor: replay order" in explanation(corpus)
    assert batches(corpus) == without
    again = penstock(corpus, "index", "--tokens", "spec.textproto")
    assert again.stdout.count(" tokens, has ") == 2


def test_a_cursor_of_either_goes_on_with_the_other(corpus):
    whole = batches(corpus).splitlines()
    batches(corpus, "--steps", "5", "--cursor-out", "before")
    assert penstock(corpus, "index", "--tokens", "spec.textproto").returncode == 0
    assert batches(corpus, "--resume", "before").splitlines() == whole[5:]
    batches(corpus, "--steps", "9", "--cursor-out", "with")
    for index in corpus.glob(".*tokens-*"):
        index.unlink()
    assert batches(corpus, "--resume", "with").splitlines() == whole[9:]


def test_another_tokenizer_needs_another_index(corpus):
    assert penstock(corpus, "index", "--tokens", "spec.textproto").returncode == 0
    assert "packs by the index" in explanation(corpus)
    other = json.loads(json.dumps(TOKENIZER))
    other["model"]["vocab"]["hello,"] = 4
    other["pre_tokenizer"]["type"] = "WhitespaceSplit"
    (corpus / "tokenizer.json").write_text(json.dumps(other))
    assert "packs by the index" not in explanation(corpus)
    # The content counts, and not the place.
    (corpus / "elsewhere.json").write_text(json.dumps(TOKENIZER))
    spec = corpus / "spec.textproto"
    spec.write_text(spec.read_text().replace("tokenizer.json", "elsewhere.json"))
    assert "packs by the index" in explanation(corpus)


def test_a_world_says_what_each_host_computes(corpus):
    world = ("--world", "2:1")
    assert "each host computes all elements" in explanation(corpus, *world)
    assert penstock(corpus, "index", "--tokens", "spec.textproto").returncode == 0
    assert "each host computes all elements" not in explanation(corpus, *world)


@pytest.mark.parametrize("options, code, message", [
    (["missing.textproto"], 1, "cannot open the spec missing.textproto"),
    (["spec.textproto", "--verify"], 2, "--verify: expected it without --tokens, where SPEC decides"),
    (["spec.textproto", "--format", "text_line"], 2, "--format: expected it without --tokens, where SPEC decides"),
    (["spec.textproto", "--workers", "300"], 2, "--workers"),
    (["spec.textproto", "none-*.jsonl"], 1, "none-*.jsonl"),
    (["filtered.textproto"], 1, "FAILED_PRECONDITION: there can be no index of tokens: stage pack: values decide the order in front of it (filter)"),
    (["unpacked.textproto"], 1, "expected a `pack`"),
], ids=["spec", "flag", "format", "workers", "files", "filter", "pack"])  # fmt: skip
def test_mistakes_are_told(corpus, options, code, message):
    spec = (corpus / "spec.textproto").read_text()
    (corpus / "filtered.textproto").write_text(spec.replace("stage { map", "stage { filter { predicate: \"text != ''\" } }\nstage { map"))
    (corpus / "unpacked.textproto").write_text("\n".join(line for line in spec.splitlines() if "pack {" not in line and "map {" not in line))
    done = penstock(corpus, "index", "--tokens", *options)
    assert done.returncode == code
    assert message in done.stderr
    assert not list(corpus.glob(".*tokens-*"))


def test_a_document_that_fails_is_named(corpus):
    with open(corpus / "part-1.jsonl", "a") as lines:
        lines.write('{"text": 7}\n')
    done = penstock(corpus, "index", "--tokens", "spec.textproto")
    assert done.returncode == 1
    assert "DATA_LOSS: stage decode_json: " in done.stderr and "part-1.jsonl, record 50, offset " in done.stderr
    spec = corpus / "spec.textproto"
    spec.write_text(spec.read_text() + "stage { ignore_errors {} }\n")
    left_out = penstock(corpus, "index", "--tokens", "spec.textproto")
    assert left_out.returncode == 0, left_out.stderr
    assert "51 documents, " in left_out.stdout and " tokens, 1 left out, wrote " in left_out.stdout
    assert "packs by the index of tokens, 100 documents" in explanation(corpus)
