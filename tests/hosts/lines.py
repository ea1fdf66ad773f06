"""A line between a daemon and its helper. It does to their bytes what networks and other releases do. How frames look: server/helpers/frame.h."""

import contextlib
import socket
import struct
import threading
import time

_HEAD = struct.Struct("<IIQIIQI")  # and behind it the checksum of all that
_CRC = struct.Struct("<I")
# Signs of life are shorter, and steps longer.
_SHORT = 4096


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ 0x82F63B78 * (byte & 1)
        table.append(byte)
    return table


_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _of_another_release(head, hello):
    """The asker's first frame, as the helper would see it if one of them had been upgraded: field 1 of HelperHello is the release."""
    assert hello[0] == 0x0A and hello[1] < 0x80
    end = 2 + hello[1]
    hello = hello[: end - 1] + b"~" + hello[end:]
    magic, kind, step, meta_bytes, _, data_bytes, data_crc = _HEAD.unpack(head[: _HEAD.size])
    head = _HEAD.pack(magic, kind, step, meta_bytes, crc32c(hello), data_bytes, data_crc)
    return head + _CRC.pack(crc32c(head)), hello


class Line:
    """Leads from `port` of this object to the helper's.

    does: "passes"; "damages" flips a bit of each long piece that comes from the helper; "cuts" ends the connection in the middle of one; "drips" hands it on bit
    by bit; "hangs" hands nothing on, in either direction; "upgrades" changes the release that the asker tells.
    """

    def __init__(self, helper_port):
        self.does = "passes"
        self._helper_port = helper_port
        self._ends = set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Ends all connections."""
        for end in list(self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.does = "passes"
        self._listening.close()
        self.cut()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                asker, _ = self._listening.accept()
                with contextlib.suppress(OSError):
                    helper = socket.create_connection(("127.0.0.1", self._helper_port))
                    self._ends |= {asker, helper}
                    for carry, ends in ((self._forth, (asker, helper)), (self._back, (helper, asker))):
                        threading.Thread(target=self._carry, args=(carry, *ends), daemon=True).start()
                    continue
                asker.close()

    def _carry(self, carry, source, target):
        with contextlib.suppress(OSError, EOFError):
            carry(source, target)
        for end in (source, target):
            self._ends.discard(end)
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _wait_while_it_hangs(self):
        while self.does == "hangs":
            time.sleep(0.01)

    def _forth(self, source, target):
        head = _exactly(source, _HEAD.size + _CRC.size)
        hello = _exactly(source, _HEAD.unpack(head[: _HEAD.size])[3])
        if self.does == "upgrades":
            head, hello = _of_another_release(head, hello)
        target.sendall(head + hello)
        while piece := source.recv(65536):
            self._wait_while_it_hangs()
            target.sendall(piece)

    def _back(self, source, target):
        while piece := source.recv(65536):
            self._wait_while_it_hangs()
            middle = len(piece) // 2
            if len(piece) <= _SHORT or self.does in ("passes", "upgrades"):
                target.sendall(piece)
            elif self.does == "damages":
                target.sendall(piece[:middle] + bytes([piece[middle] ^ 0x10]) + piece[middle + 1 :])
            elif self.does == "cuts":
                target.sendall(piece[:middle])
                return
            else:
                for at in range(0, len(piece), 1000):
                    target.sendall(piece[at : at + 1000])
                    time.sleep(0.03)


def _exactly(source, count):
    data = b""
    while len(data) < count:
        piece = source.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data
