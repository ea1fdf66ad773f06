"""Tokenizers in `map`: ids are those of the libraries (tests/golden/make_tokenizer_goldens.py), files are known by what they hold. Fault 21d."""

import json
import pathlib
import shutil

import numpy as np
import penstock
import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "golden" / "tokenizers"
CASES = json.loads((FOLDER / "cases.json").read_text())
TEXTS = CASES["texts"]


def ids_of(texts, tokenizer, **options):
    dataset = penstock.Dataset.from_tensor_slices(np.array([text.encode() if isinstance(text, str) else text for text in texts], object))
    return [row.tolist() for row in dataset.map(lambda text: penstock.functions.tokenize(text, str(tokenizer), **options))]


@pytest.mark.parametrize("name", ["gpt2", "llama3", "qwen2", "bert", "unigram", "llama2"])
def test_ids_are_those_of_the_library(name):
    assert ids_of(TEXTS, FOLDER / f"{name}.json") == CASES["tokenizers"][name]["ids"]
    assert ids_of(TEXTS[:40], FOLDER / f"{name}.json", add_special_tokens=False) == CASES["tokenizers"][name]["plain"]


def test_a_file_of_ranks_has_the_pattern_that_is_named(tmp_path):
    wanted = CASES["tokenizers"]["small.tiktoken o200k_base"]["ids"]
    assert ids_of(TEXTS, FOLDER / "small.tiktoken", pattern="o200k_base") == wanted
    # The name of the file says it, too.
    shutil.copy(FOLDER / "small.tiktoken", tmp_path / "o200k_base.tiktoken")
    assert ids_of(TEXTS, tmp_path / "o200k_base.tiktoken") == wanted
    with pytest.raises(penstock.InvalidArgumentError, match=r"pattern: expected the name of a published pattern.*small\.tiktoken"):
        ids_of(TEXTS, FOLDER / "small.tiktoken")


@pytest.mark.parametrize("name", ["unigram", "bpe_bytes"])
def test_models_of_sentencepiece_give_its_ids_and_texts(name):
    folder = FOLDER.parent / "sentencepiece"
    cases = json.loads((folder / "cases.json").read_text())
    case, path = cases["models"][name], str(folder / f"{name}.model")
    ids = ids_of(cases["texts"][:40], path)
    assert ids == case["ids"][:40]
    # The model wants its <s> in front, which its file does not say.
    texts = penstock.Dataset.from_tensor_slices(np.array([text.encode() for text in cases["texts"][:40]], object))

    def framed(text):
        ids = np.concatenate([np.array([1], np.int32), penstock.functions.tokenize(text, path)])
        return ids, penstock.functions.detokenize(ids, path)

    for (found, back), own, text in zip(texts.map(framed), ids, case["decoded"][:40], strict=True):
        assert found.tolist() == [1, *own] and back.item().decode() == text


def test_there_and_back():
    path = str(FOLDER / "gpt2.json")
    texts = penstock.Dataset.from_tensor_slices(np.array([text.encode() for text in TEXTS[:60]], object))

    def back(text):
        ids = penstock.functions.tokenize(text, path, dtype="int64")
        return penstock.functions.detokenize(ids, path), ids

    for text, (again, ids) in zip(TEXTS[:60], texts.map(back), strict=True):
        assert ids.dtype == np.int64
        assert again.item().decode() == text.replace("<|endoftext|>", "")


def test_batches_are_ragged_or_padded():
    path = str(FOLDER / "gpt2.json")
    dataset = penstock.Dataset.from_tensor_slices(np.array([b"one", b"two and three", b""], object))
    dataset = dataset.map(lambda text: penstock.functions.tokenize(text, path, max_length=3))
    (batch,) = dataset.padded_batch(3)
    assert batch.dtype == np.int32 and batch.shape[0] == 3 and batch.shape[1] <= 3
    assert batch[2].tolist() == [0] * batch.shape[1]


def test_what_is_no_utf8_is_an_error_or_replaced():
    path = FOLDER / "gpt2.json"
    with pytest.raises(penstock.DataLossError, match="expected UTF-8, found none at byte 3 of 5"):
        ids_of([b"abc\xffd"], path)
    for bad in (b"abc\xffd", b"\xe2\x82", b"\xed\xa0\x80x", bytes(range(256))):
        assert ids_of([bad], path, errors="replace") == ids_of([bad.decode(errors="replace")], path)


@pytest.mark.parametrize("options, message", [
    ({"errors": "odd"}, 'errors: expected "strict" or "replace"'),
    ({"dtype": "uint8"}, 'dtype: expected "int32" or "int64"'),
    ({"max_length": -1}, "max_length: expected"),
    ({"pattern": "gpt2"}, r"pattern: expected none, as a tokenizer\.json has its own"),
    ({"content": "1-00000000"}, r"the tokenizer's file holds something else than when the pipeline was made.*gpt2\.json"),
])
def test_wrong_options_are_refused(options, message):
    with pytest.raises(penstock.Error, match=message):
        ids_of(["a"], FOLDER / "gpt2.json", **options)


def test_what_the_file_adds_has_room():
    assert ids_of(["one two"], FOLDER / "bert.json", max_length=2) == [[1, 2]]
    with pytest.raises(penstock.InvalidArgumentError, match="max_length: expected 0 or at least 2"):
        ids_of(["one two"], FOLDER / "bert.json", max_length=1)
    (ids,) = ids_of(["one two"], FOLDER / "bert.json", max_length=1, add_special_tokens=False)
    assert len(ids) == 1


def test_a_file_that_cannot_be_used_is_named(tmp_path):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(penstock.NotFoundError, match=r"tokenizer\.json"):
        ids_of(["a"], path)
    path.write_text("")
    with pytest.raises(penstock.InvalidArgumentError, match=r"found an empty file \(.*tokenizer\.json\)"):
        ids_of(["a"], path)
    # The first pieces of a model of SentencePiece.
    path.write_bytes(b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02\n\x0c\n\x03<s>\x15\0\0\0\0\x18\x03")
    with pytest.raises(penstock.InvalidArgumentError, match=r"pattern: expected none, as a model of SentencePiece has its own rules \(.*tokenizer\.json\)"):
        ids_of(["a"], path, pattern="gpt2")
    with pytest.raises(penstock.InvalidArgumentError, match=r"pieces: expected one by which a text is cut, found none \(.*tokenizer\.json\)"):
        ids_of(["a"], path)
    spec = json.loads((FOLDER / "gpt2.json").read_text())
    spec["normalizer"] = {"type": "Nmt"}
    path.write_text(json.dumps(spec))
    with pytest.raises(penstock.InvalidArgumentError, match=r'normalizer\.type: expected one of .*, found "Nmt" \(.*tokenizer\.json\)'):
        ids_of(["a"], path)
    with open(path, "wb") as file:
        file.truncate((256 << 20) + 1)
    with pytest.raises(penstock.InvalidArgumentError, match=r"larger than the limit: 268435457 > 268435456 bytes"):
        ids_of(["a"], path)


def test_a_cursor_knows_the_file_by_what_it_holds(tmp_path):
    here, there = tmp_path / "here.json", tmp_path / "elsewhere" / "there.json"
    there.parent.mkdir()
    shutil.copy(FOLDER / "gpt2.json", here)
    shutil.copy(FOLDER / "gpt2.json", there)

    def dataset(path):
        texts = penstock.Dataset.from_tensor_slices(np.array([text.encode() for text in TEXTS], object)).shuffle(20, seed=3)
        return texts.map(lambda text: penstock.functions.tokenize(text, str(path)))

    iterator = iter(dataset(here))
    for _ in range(10):
        next(iterator)
    state = iterator.state_dict()
    rest = [row.tolist() for row in iterator]
    again = iter(dataset(there))
    again.load_state_dict(state)
    assert [row.tolist() for row in again] == rest
    # A file of ranks whose name says another pattern gives other ids.
    one, other = tmp_path / "gpt2.tiktoken", tmp_path / "o200k_base.tiktoken"
    shutil.copy(FOLDER / "small.tiktoken", one)
    shutil.copy(FOLDER / "small.tiktoken", other)
    iterator = iter(dataset(one))
    next(iterator)
    with pytest.raises(penstock.Error, match="work"):
        again = iter(dataset(other))
        again.load_state_dict(iterator.state_dict())
        next(again)
    # The same tokenizer with another merge.
    spec = json.loads(there.read_text())
    spec["model"]["merges"] = spec["model"]["merges"][:-1]
    there.write_text(json.dumps(spec))
    again = iter(dataset(there))
    with pytest.raises(penstock.Error, match="work"):
        again.load_state_dict(state)
        next(again)
