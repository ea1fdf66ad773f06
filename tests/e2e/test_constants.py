"""Constants of a spec whose values are in an .npy file."""

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
        (TABLE.astype(np.float16), "", "expected bools, integers, float32 or float64, found float16 (100, 5)"),
        (np.array(["a", "b"]), "", "expected bools, integers, float32 or float64, found string (2,)"),
        (np.zeros(3, "V2"), "", "expected bools, integers, float32 or float64, found values of a type that NumPy has not"),
        (np.zeros((0, 5)), "", "expected elements, found none"),
        (np.asfortranarray(TABLE), "", "Fortran order"),
        (TABLE.astype(">f8"), "", "big-endian numbers"),
        (TABLE, 'dtype: "float32"', "dtype: expected \"float32\", found float64 (100, 5)"),
        (TABLE, "shape: [5, 100]", "shape: expected (5, 100), found float64 (100, 5)"),
        (TABLE, "value: 1", "expected one of value, int_value and npy, found several"),
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
        with pytest.raises(penstock.NotFoundError):
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
        with pytest.raises(penstock.NotFoundError):
            penstock.attach("number", socket=str(socket), reconnect=0)
        daemon.kill()
        assert "constant n: shape: expected (), found float64 (1,)" in daemon.process.stderr.read()
    finally:
        daemon.kill()


def test_its_values_cannot_be_set_on_the_command_line(penstock_command, table):
    result = penstock_command("validate", write(penstock_command), "--set", "T=1")
    assert result.code == 1 and "its values are in a file: change its npy in the spec" in result.err, result
