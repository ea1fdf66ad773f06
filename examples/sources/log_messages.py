"""The messages of a log of segments, as brokers keep them, for penstock.Dataset.from_source. A position is the number of the next message, as in Kafka.

Each segment is a file that is named after the number of its first message (00000000000000000000.log); a message is its length, 4 bytes, and its bytes.

    dataset = penstock.Dataset.from_source(LogMessages("topic-0"))
"""

import os
import struct

import penstock

_LENGTH = struct.Struct(">I")


class LogMessages(penstock.io.Source):
    """Args: folder: of the segments."""

    def __init__(self, folder):
        self.folder = folder

    def read(self, position):
        wanted = int.from_bytes(position or b"", "little")
        starts = sorted(int(name[:-4]) for name in os.listdir(self.folder) if name.endswith(".log"))
        # The last segment that begins in front of it has it.
        for start in [start for place, start in enumerate(starts) if place + 1 == len(starts) or starts[place + 1] > wanted]:
            path = os.path.join(self.folder, f"{start:020}.log")
            with open(path, "rb") as file:
                number = start
                while head := file.read(_LENGTH.size):
                    message = file.read(*_LENGTH.unpack(head)) if len(head) == _LENGTH.size else b""
                    if len(head) < _LENGTH.size or len(message) < _LENGTH.unpack(head)[0]:
                        raise EOFError(f"{path} is cut in message {number}")
                    number += 1
                    if number > wanted:
                        yield message, number.to_bytes(8, "little")
