"""Records what this release leaves behind: python record.py FOLDER, with PENSTOCK_BIN and the package on PYTHONPATH. FOLDER must not exist."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import left_behind
import protocol

_CONFIGURATION = pathlib.Path(__file__).parents[2] / "config" / "penstockd.textproto"


def run(folder, *words):
    program = pathlib.Path(os.environ["PENSTOCK_BIN"], "penstock")
    return subprocess.run([program, *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def start(folder, state):
    """A daemon, and its socket, when it accepts connections."""
    address = str(folder / "penstock.sock")
    ready, ready_end = os.pipe()
    daemon = subprocess.Popen([pathlib.Path(os.environ["PENSTOCK_BIN"], "penstockd"), "--socket", address, "--state-dir", state, "--log-level", "error", *left_behind.REJOIN,
                               "--ready-fd", str(ready_end)], cwd=folder, pass_fds=[ready_end])
    os.close(ready_end)
    assert os.read(ready, 1), "penstockd did not start"
    os.close(ready)
    return daemon, address


def write_spec(folder, name, stages):
    spec = folder / f"{name}.textproto"
    spec.write_text(f'name: "{name}"\n' + stages.replace(" stage {", "\nstage {") + "\n")
    return spec


def record_cursors(folder):
    saving = write_spec(folder, "saving", left_behind.SAVING)
    run(folder, "run", saving.name)
    saving.unlink()
    # `documents` and `packed_texts` read one file, and an index of tokens is made in front of both.
    write_spec(folder, left_behind.BY_TOKENS, left_behind.SPECS[left_behind.BY_TOKENS])
    run(folder, "index", "--tokens", f"{left_behind.BY_TOKENS}.textproto")
    for name, stages in left_behind.SPECS.items():
        spec = write_spec(folder, name, stages)
        if name in left_behind.KEEPING:
            run(folder, "run", spec.name)
        cursor = f"{name}.cursor"
        run(folder, "run", spec.name, "--steps", str(left_behind.STEPS_BEFORE), "--cursor-out", cursor)
        (folder / f"{name}.tail").write_text(run(folder, "run", spec.name, "--resume", cursor, "--steps", str(left_behind.STEPS_BEHIND)))


def record_state(folder):
    """A pipeline that was changed while it ran, and a trainer that is there when the daemon is killed."""
    import penstock

    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "kept.textproto").write_text(left_behind.KEPT)
        daemon, address = start(scratch, "state")
        run(scratch, "--socket", address, "create", "kept.textproto")
        loader = penstock.attach("kept", socket=address, consumer="trainer", timeout=60)
        for _ in range(3):
            next(loader)
        run(scratch, "--socket", address, "seek", "kept", "--beginning", "--at-step", "40")
        history = run(scratch, "--socket", address, "history", "kept")
        daemon.kill()
        daemon.wait()
        loader.close()
        shutil.copytree(scratch / "state", folder / "state", ignore=shutil.ignore_patterns("lock"))
        (folder / "state.history").write_text(history)
        (scratch / "penstock.sock").unlink(missing_ok=True)
        daemon, address = start(scratch, "state")
        (folder / "state.steps").write_text(left_behind.sums(address, 60))
        daemon.terminate()
        daemon.wait()


def record_hello(folder):
    """What a client sends first, to a listener that answers nothing."""
    import penstock

    with tempfile.TemporaryDirectory() as scratch, socket.socket(socket.AF_UNIX) as listener:
        address = os.path.join(scratch, "penstock.sock")
        listener.bind(address)
        listener.listen()
        sent = []

        def listen():
            connection, _ = listener.accept()
            with connection:
                sent.append(connection.recv(65536))

        listening = threading.Thread(target=listen)
        listening.start()
        try:
            penstock.attach("kept", socket=address, timeout=5, reconnect=0, group="earlier")
        except penstock.UnavailableError:
            pass
        listening.join()
    text = sent[0].hex()
    (folder / "hello.hex").write_text("".join(text[at:at + 96] + "\n" for at in range(0, len(text), 96)))


def main(folder):
    folder.mkdir()
    left_behind.write_data(folder)
    record_cursors(folder)
    run(folder, "index", "numbers-0.tfrecord")
    record_state(folder)
    record_hello(folder)
    (folder / "protocol.txt").write_text("".join(f"{line}\n" for line in protocol.lines()))
    shutil.copy(_CONFIGURATION, folder / "configuration.textproto")
    (folder / "refused.json").write_text("{}\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
