"""The C interface's requests about specs, through libpenstock.so itself."""

import ctypes
import json
import os
import pathlib

import pytest

SPEC = 'name: "made" stage { range { stop: 10 } } stage { batch { batch_size: 5 } }'
INVALID_ARGUMENT, NOT_FOUND, UNAVAILABLE = 3, 5, 14


@pytest.fixture(scope="module")
def library():
    build = pathlib.Path(os.environ["PENSTOCK_BIN"]).parent
    library = ctypes.CDLL(str(next(build.rglob("libpenstock.so"))))
    library.penstock_last_error.restype = ctypes.c_char_p
    return library


class Control:
    def __init__(self, library, socket):
        self._library, self._socket = library, socket.encode()

    def described(self, function, *arguments):
        text = ctypes.c_char_p()
        code = getattr(self._library, function)(self._socket, *arguments, ctypes.byref(text))
        if code != 0:
            return code
        description = json.loads(text.value)
        self._library.penstock_free(text)
        return description

    def create(self, name, spec):
        return self.described("penstock_create", name, spec)

    def validate(self, spec):
        return self.described("penstock_validate", spec)

    def delete(self, name):
        return self._library.penstock_delete(self._socket, name)

    def error(self):
        return self._library.penstock_last_error().decode()


@pytest.fixture
def control(library, daemon):
    return Control(library, daemon.socket)


def test_a_spec_is_checked_and_nothing_starts(control):
    assert [tensor["name"] for tensor in control.validate(SPEC.encode())["pipeline"]["element"]] == ["value"]
    assert control.delete(b"made") == NOT_FOUND and "made" in control.error()
    assert control.validate(b"stage { rang { stop: 10 } }") == INVALID_ARGUMENT
    assert "rang" in control.error()


def test_a_pipeline_is_made_and_deleted(control):
    assert control.create(None, SPEC.encode())["pipeline"]["name"] == "made"
    assert control.create(b"other", SPEC.encode())["pipeline"]["name"] == "other"
    assert control.create(None, SPEC.encode()) not in (0,) and "made" in control.error()
    assert control.delete(b"made") == 0 and control.delete(b"other") == 0
    assert control.delete(b"made") == NOT_FOUND


def test_nobody_listens(library, tmp_path):
    control = Control(library, str(tmp_path / "socket"))
    assert control.validate(SPEC.encode()) == UNAVAILABLE and "start one" in control.error()
    control = Control(library, "x" * 200)
    assert control.delete(b"made") == INVALID_ARGUMENT and "107" in control.error()


def test_a_description_may_be_left(library, daemon):
    assert library.penstock_create(daemon.socket.encode(), None, SPEC.encode(), None) == 0
    assert library.penstock_delete(daemon.socket.encode(), b"made") == 0
