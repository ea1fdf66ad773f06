"""Constants of a spec whose values are in a file, and constants of strings."""

import shutil

import numpy as np
import pytest

from programs import Daemon, Penstock

penstock = pytest.importorskip("penstock")

SPEC = """
name: "table"
stage {{ range {{ stop: 100 }} }}
stage {{ map {{ constant {{ name: "T" npy: "{npy}" {more} }} out: "x = take(T, value, axis=-2)" }} }}
stage {{ batch {{ batch_size: 10 }} }}
"""
TABLE = np.random.default_rng(3).normal(size=(100, 5))


@pytest.fixture
def table(penstock_command):
    np.save(penstock_command.folder / "table.npy", TABLE)
    return penstock_command.folder / "table.npy"


def write(penstock, npy="table.npy", more="", name="spec.textproto"):
    (penstock.folder / name).write_text(SPEC.format(npy=npy, more=more))
    return name


def steps(folder):
    return [np.load(path)["x"] for path in sorted(folder.glob("*.npz"))]


def test_a_table_beside_the_spec(penstock_command, table):
    result = penstock_command("run", write(penstock_command), "--out", "out")
    assert result.code == 0, result
    np.testing.assert_array_equal(np.concatenate(steps(penstock_command.folder / "out")), TABLE)


@pytest.mark.parametrize(
    "array, more, message",
    [
        (TABLE.astype(np.float16), "", "expected bools, integers, float32, float64 or strings, found float16 (100, 5)"),
        (np.zeros(3, "V2"), "", "expected bools, integers, float32, float64 or strings, found values of a type that NumPy has not"),
        (np.zeros((0, 5)), "", "expected elements, found none"),
        (np.asfortranarray(TABLE), "", "Fortran order"),
        (TABLE.astype(">f8"), "", "big-endian numbers"),
        (TABLE, 'dtype: "float32"', "dtype: expected \"float32\", found float64 (100, 5)"),
        (TABLE, "shape: [5, 100]", "shape: expected (5, 100), found float64 (100, 5)"),
        (TABLE, "value: 1", "expected one of value, int_value, string_value, npy and text_line, found several"),
        (TABLE[:1, :1], 'npy_crc32c: 1 dtype: "float64"', "shape: expected (), found float64 (1, 1)"),
        (TABLE, "npy_crc32c: 1", "the file holds other values than its npy_crc32c says: expected 1, found "),
    ],
)
def test_a_file_that_is_none(penstock_command, array, more, message):
    np.save(penstock_command.folder / "table.npy", array)
    result = penstock_command("validate", write(penstock_command, more=more))
    assert result.code == 1 and message in result.err, result
    assert 'stage map' in result.err and "constant T" in result.err, result
    assert str(penstock_command.folder / "table.npy") in result.err or "several" in message, result


def test_a_missing_and_a_cut_file(penstock_command, table):
    result = penstock_command("validate", write(penstock_command, npy="nowhere.npy"))
    assert result.code == 1 and "constant T" in result.err and "nowhere.npy" in result.err, result
    table.write_bytes(table.read_bytes()[:-8])
    result = penstock_command("validate", write(penstock_command))
    assert result.code == 1 and "the file ends inside of the array" in result.err, result


def test_a_cursor_knows_the_values_and_not_the_place(penstock_command, table):
    """Resumed with the table elsewhere; refused with another one."""
    folder = penstock_command.folder
    first = penstock_command("run", write(penstock_command), "--steps", 4, "--out", "out", "--cursor-out", "cursor")
    assert first.code == 0, first
    (folder / "elsewhere").mkdir()
    shutil.move(table, folder / "elsewhere" / "other.npy")
    moved = write(penstock_command, npy="elsewhere/other.npy", name="moved.textproto")
    rest = penstock_command("run", moved, "--resume", "cursor", "--out", "out")
    assert rest.code == 0, rest
    np.testing.assert_array_equal(np.concatenate(steps(folder / "out")), TABLE)

    np.save(folder / "elsewhere" / "other.npy", TABLE + 1)
    refused = penstock_command("run", moved, "--resume", "cursor", "--out", "refused")
    assert refused.code == 1 and "other" in refused.err, refused
    assert not list(folder.glob("refused/*"))


def test_a_restarted_daemon_reads_the_same_values_or_none(penstock_command, table):
    socket = penstock_command.folder / "penstock.sock"
    remote = Penstock(penstock_command.folder, socket)
    daemon = Daemon(socket)
    try:
        created = remote("create", write(penstock_command))
        assert created.code == 0, created
        daemon.kill()
        daemon = Daemon(socket)
        np.testing.assert_array_equal(next(iter(penstock.attach("table", socket=str(socket))))["x"], TABLE[:10])
        daemon.kill()
        np.save(table, TABLE + 1)
        daemon = Daemon(socket)
        with pytest.raises(penstock.UnavailableError, match="constant T: the file holds other values than its npy_crc32c says"):
            penstock.attach("table", socket=str(socket), reconnect=0)
        daemon.kill()
        assert "constant T: the file holds other values than its npy_crc32c says" in daemon.process.stderr.read()
    finally:
        daemon.kill()


def test_a_number_that_has_become_an_array_is_another_constant(penstock_command):
    """Its bytes are the same, and the elements would have an axis more."""
    folder = penstock_command.folder
    (folder / "number.textproto").write_text(
        'name: "number" stage { range { stop: 100 } } stage { map { constant { name: "n" npy: "n.npy" } out: "x = value + n" } } stage { batch { batch_size: 2 } }'
    )
    np.save(folder / "n.npy", np.float64(3))
    socket = folder / "penstock.sock"
    daemon = Daemon(socket)
    try:
        created = Penstock(folder, socket)("create", "number.textproto")
        assert created.code == 0, created
        daemon.kill()
        np.save(folder / "n.npy", np.array([3.0]))
        daemon = Daemon(socket)
        with pytest.raises(penstock.UnavailableError, match=r"constant n: shape: expected \(\), found float64 \(1,\)"):
            penstock.attach("number", socket=str(socket), reconnect=0)
        daemon.kill()
        assert "constant n: shape: expected (), found float64 (1,)" in daemon.process.stderr.read()
    finally:
        daemon.kill()


def test_its_values_cannot_be_set_on_the_command_line(penstock_command, table):
    result = penstock_command("validate", write(penstock_command), "--set", "T=1")
    assert result.code == 1 and "its values are in a file: change its npy in the spec" in result.err, result


WORDS = """
name: "words"
stage {{ range {{ stop: 6 }} }}
stage {{ map {{
  constant {{ name: "W" {words} }}
  out: "word = take(W, value % 3)"
  out: "number = string_lookup(take(W, (value + 1) % 3), W)" }} }}
stage {{ batch {{ batch_size: 6 }} }}
"""


def words(penstock, words, *more):
    (penstock.folder / "words.textproto").write_text(WORDS.format(words=words))
    return penstock("run", "words.textproto", "--out", "out", *more)


@pytest.mark.parametrize(
    "constant, array",
    [
        ('string_value: ["tench", "", "grüner Hai"]', None),
        ('string_value: ["tench", "", "grüner Hai"] dtype: "string" shape: [3]', None),
        ('npy: "w.npy"', np.array(["tench", "", "grüner Hai"])),
        ('npy: "w.npy" dtype: "string" shape: 3', np.array([b"tench", b"", "grüner Hai".encode()])),
        ('text_line: "w.txt"', b"tench\n\ngr\xc3\xbcner Hai"),
        ('text_line: "w.txt"', b"tench\r\n\r\ngr\xc3\xbcner Hai\r\n"),
    ],
)
def test_strings(penstock_command, constant, array):
    if isinstance(array, bytes):
        (penstock_command.folder / "w.txt").write_bytes(array)
    elif array is not None:
        np.save(penstock_command.folder / "w.npy", array)
    result = words(penstock_command, constant)
    assert result.code == 0, result
    step = np.load(penstock_command.folder / "out" / "step-000000.npz")
    ends, data = step["word.offsets"].tolist(), step["word.bytes"].tobytes()
    assert [data[a:b].decode() for a, b in zip(ends, ends[1:])] == ["tench", "", "grüner Hai"] * 2
    assert step["number"].tolist() == [1, 2, 0] * 2


def test_a_single_string_is_a_text_and_strings_can_be_set(penstock_command):
    spec = penstock_command.folder / "text.textproto"
    spec.write_text(
        'name: "text" stage { range { stop: 2 } } stage { map { constant { name: "W" string_value: "a\\nb" } constant { name: "N" string_value: ["b", "a"] } '
        'out: "n = string_lookup(take(N, value), W)" } } stage { batch { batch_size: 2 } }'
    )

    def numbers(*more):
        result = penstock_command("run", spec.name, "--out", "out", *more)
        assert result.code == 0, result
        return np.load(penstock_command.folder / "out" / "step-000000.npz")["n"].tolist()

    assert numbers() == [1, 0]
    assert numbers("--set", "N=a,b") == [0, 1]
    assert numbers("--set", "W=b\na") == [0, 1]
    refused = penstock_command("validate", spec.name, "--set", "N=a")
    assert refused.code == 1 and 'expected 2 values, found 1 in "a"' in refused.err, refused


@pytest.mark.parametrize(
    "constant, content, message",
    [
        ('text_line: "w.txt"', b"", "expected elements, found none"),
        ('text_line: "w.txt" shape: 2', b"a\nb\nc\n", "shape: expected (2,), found string (3,)"),
        ('text_line: "w.txt" dtype: "int64"', b"a\nb\nc\n", 'dtype: expected "int64", found string (3,)'),
        ('text_line: "w.txt" npy_crc32c: 7', b"a\nb\nc\n", "the file holds other values than its npy_crc32c says: expected 7, found "),
        ('text_line: "w.txt"', b"a\nb\na\n", 'vocabulary: expected words that differ, found "a" at 0 and 2'),
        ('text_line: "w.txt"', b"\x1f\x8b\x08\x00 and more", "the file is declared to be plain but looks like gzip"),
        ('text_line: "nowhere.txt"', b"", "nowhere.txt"),
        ('string_value: ["a", "b"] dtype: "int8"', b"", 'dtype: expected string, found "int8"'),
        ('value: 3 dtype: "string"', b"", "dtype: expected a number's type such as float32, found \"string\""),
        ('string_value: ["a", "b"] shape: 3', b"", "expected as many values as the shape (3,) holds, found 2"),
    ],
)
def test_strings_that_are_none(penstock_command, constant, content, message):
    (penstock_command.folder / "w.txt").write_bytes(content)
    result = words(penstock_command, constant)
    assert result.code == 1 and message in result.err and "map" in result.err, result
    if "w.txt" in constant and "differ" not in message:
        assert str(penstock_command.folder / "w.txt") in result.err, result


def test_a_cursor_knows_the_words_and_not_the_place(penstock_command):
    folder = penstock_command.folder
    (folder / "w.txt").write_bytes(b"a\nb\nc\n")
    (folder / "v.txt").write_bytes(b"a\r\nb\r\nc")
    (folder / "u.txt").write_bytes(b"a\nb\nd\n")
    assert words(penstock_command, 'text_line: "w.txt"', "--cursor-out", "cursor").code == 0
    assert words(penstock_command, 'text_line: "v.txt"', "--resume", "cursor").code == 0
    refused = words(penstock_command, 'text_line: "u.txt"', "--resume", "cursor")
    assert refused.code == 1 and "other" in refused.err, refused


def test_vocabularies_of_any_length_from_python():
    """30,000 words, more than an expression holds, as lists, arrays and texts, there and back."""
    listed = [f"word {i}" for i in range(30_000)]
    numbers = np.array([0, 29_999, 12_345])
    names = [listed[i].encode() for i in numbers]
    dataset = penstock.Dataset.from_tensor_slices(numbers)
    for words in (listed, np.array(listed), np.array(listed, object), [word.encode() for word in listed]):
        found = dataset.map(lambda i: penstock.functions.take(np.array(words), i)).batch(3)
        assert [bytes(word) for word in next(iter(found)).tolist()] == names
        back = found.map(lambda word: penstock.strings.lookup(word, words))
        assert next(iter(back)).tolist() == numbers.tolist()
    text = penstock.Dataset.from_tensor_slices(names).map(lambda name: penstock.functions.string_lookup(name, "\n".join(listed)))
    assert [int(n) for n in text] == numbers.tolist()
    zeros = [*listed, "zero\0"]
    last = penstock.Dataset.from_tensors("zero\0").map(lambda name: penstock.strings.lookup(name, zeros))
    assert [int(n) for n in last] == [30_000]
