"""The errors that a user meets first: each names its cause and the next command to type."""

import os
import subprocess

import pytest

from programs import Penstock


@pytest.mark.parametrize("words", [["list"], ["get", "x"], ["stats", "x"], ["delete", "x"], ["create", "SPEC"]])
def test_no_daemon(tmp_path, counter, words):
    spec = counter()
    socket = tmp_path / "none.sock"
    result = Penstock(tmp_path, socket)(*[spec if word == "SPEC" else word for word in words])
    assert result.code == 1
    assert f"UNAVAILABLE: no penstockd at {socket}" in result.err
    assert f"start one: penstockd --socket {socket}" in result.err


def test_the_default_socket_is_named(penstock_command, tmp_path):
    result = penstock_command("list", PENSTOCK_SOCKET=str(tmp_path / "default.sock"))
    assert str(tmp_path / "default.sock") in result.err


def test_no_permission(daemon, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    # All folders above may be entered, so that the socket's own mode decides.
    folder = tmp_path
    while folder != folder.parent and folder.stat().st_uid == 0:
        folder.chmod(folder.stat().st_mode | 0o055)
        folder = folder.parent
        if folder == folder.parent or str(folder) == "/tmp":
            break
    os.chmod(tmp_path / "run", 0o755)

    def become_nobody():
        os.setgid(65534)
        os.setuid(65534)

    penstock = Penstock(tmp_path, daemon.socket)
    words = penstock.command("list")
    run = lambda: subprocess.run(words, capture_output=True, text=True, preexec_fn=become_nobody, cwd="/")
    try:
        refused = run()
    except PermissionError:
        pytest.skip("the build's folder is closed to others")
    assert refused.returncode == 1
    assert "PERMISSION_DENIED: no permission to connect to" in refused.stderr
    assert "ls -l" in refused.stderr
    # With the file's permission, allowed_uids still decides.
    os.chmod(daemon.socket, 0o666)
    refused = run()
    assert refused.returncode == 1
    assert "user 65534 is not in its allowed_uids" in refused.stderr


def test_no_pipeline_of_that_name(remote, counter):
    assert "there are none: start one with penstock create SPEC" in remote("get", "counter").err
    remote("create", counter())
    result = remote("stats", "cuonter")
    assert result.code == 1
    assert 'no pipeline "cuonter", did you mean "counter"?' in result.err


def test_no_spec(penstock_command):
    result = penstock_command("run", "none.textproto")
    assert result.code == 1
    assert "NOT_FOUND: cannot open the spec none.textproto" in result.err


def test_a_spec_without_a_name(remote, counter, tmp_path):
    spec = counter()
    spec.write_text(spec.read_text().replace('name: "counter"\n', "", 1))
    result = remote("create", spec)
    assert result.code == 1
    assert "--name NAME" in result.err
    assert remote("create", spec, "--name", "named").code == 0
    assert remote("run", spec, "--steps", "1").code == 0
