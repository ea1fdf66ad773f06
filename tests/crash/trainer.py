"""A trainer of the crash loop: takes batches and writes down what it took, with a checkpoint behind each.

    trainer.py SOCKET PIPELINE FOLDER NAME OPTIONS

FOLDER/NAME.log has a line for each batch that was worked on: step, whether it was redelivered, the CRC of its bytes, and of a split
group's consumer with a batch size of its own the rows, with commas. FOLDER/NAME.cursor is the checkpoint, replaced as a whole while the batch is still held. A trainer that is killed
is started again with the same words, and goes on behind its checkpoint. It ends in front of the step that FOLDER/stop
names, or FOLDER/stop-SIZE if it has a batch size of its own; a worker of a split group, which has no position of its own and no checkpoint, when there is FOLDER/stop-workers.
"""

import json
import os
import sys
import time
import zlib

import penstock


def attach(*words, **options):
    """The first attachment finds no daemon where that is being started again, or, where all trainers come at once, no ring to catch up in;
    whoever launches a trainer tries once more."""
    deadline = time.monotonic() + 300  # it may be killed again before it has answered, and again
    while True:
        try:
            return penstock.attach(*words, **options)
        except (penstock.UnavailableError, penstock.NotFoundError, penstock.ResourceExhaustedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def main():
    socket, pipeline, folder, name, options = sys.argv[1:]
    options = json.loads(options)
    is_split = options.get("mode") == "split"
    size = options.get("batch_size")
    stop = os.path.join(folder, "stop-workers" if is_split else f"stop-{size}" if size else "stop")
    checkpoint = os.path.join(folder, name + ".cursor")
    cursor = None
    if not is_split and os.path.exists(checkpoint):
        with open(checkpoint, "rb") as file:
            cursor = file.read()
    log = open(os.path.join(folder, name + ".log"), "a", buffering=1)
    # A kill may have left half a line.
    log.write("\n")
    # Where all went on behind their checkpoints, a split group that was ahead waits until the stream is
    # where it was.
    timeout = 1200 if is_split else 120
    loader = attach(
        pipeline, socket=socket, cursor=cursor, timeout=timeout, reconnect=120, **options
    )
    for batch in loader:
        crc = zlib.crc32(batch["n"].tobytes())
        rows = " " + ",".join(map(str, batch["n"].tolist())) if is_split and size else ""
        log.write(f"{loader.step} {int(loader.redelivered)} {crc}{rows}\n")
        if is_split:
            # Nobody else slows a split group down while all others catch up: it would be millions of
            # steps ahead of them.
            time.sleep(0.002)
        else:
            with open(checkpoint + ".new", "wb") as file:
                file.write(loader.cursor)
            os.replace(checkpoint + ".new", checkpoint)
        if os.path.exists(stop):
            with open(stop) as file:
                if is_split or loader.step + 1 >= int(file.read()):
                    break


main()
