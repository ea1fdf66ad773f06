"""Whose pipelines are, who asked for what, and how many pipelines and workers a user may have."""

import json
import os
import pwd
import re
import signal

import pytest

from programs import Penstock, eventually
from strangers import STRANGER, Stranger

ALL = f"access_rule {{ uids: {STRANGER} rights: [RIGHT_READ, RIGHT_ATTACH, RIGHT_CONTROL] }}\n"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def me():
    return f"{os.geteuid()}({pwd.getpwuid(os.geteuid()).pw_name})"


def rows(command):
    """The cells of `penstock list`, by the pipelines' names."""
    head, *lines = command("list").out.splitlines()
    return {line.split()[0]: dict(zip(head.split(), line.split())) for line in lines}


def events(command, *words):
    return [json.loads(line) for line in command("events", *words, "--json").out.splitlines()]


def test_the_owner_is_listed_shown_and_told(remote, counter):
    assert remote("create", counter("mine", more="workers: 2")).code == 0
    assert rows(remote)["mine"]["OWNER"] == me()
    assert rows(remote)["mine"]["WORKERS"] == "2"
    assert f"# owner: {me()}\n" in remote("get", "mine").out
    listed = json.loads(remote("list", "--json").out)
    assert (listed["owner_uid"], listed["workers"]) == (os.geteuid(), 2)
    assert remote("update", "mine", "--workers", "3").code == 0
    assert rows(remote)["mine"]["WORKERS"] == "3"
    assert re.search(rf"  mine  created  \d+ stages, by {re.escape(me())}$", remote("events").out, re.M)
    assert remote("delete", "mine").code == 0
    told = {event["kind"]: event for event in events(remote)}
    for kind in ("CREATED", "UPDATED", "DELETED"):
        assert told[f"EVENT_KIND_{kind}"]["uid"] == told[f"EVENT_KIND_{kind}"]["owner_uid"] == os.geteuid()


@as_root
def test_who_asked_may_be_another_one_than_the_owner(serve, place, counter):
    daemon = serve(ALL, pipelines=())
    stranger, owner = Stranger(place, daemon.socket), Penstock(place, daemon.socket)
    assert stranger("create", counter("theirs")).code == 0
    assert rows(owner)["theirs"]["OWNER"] == str(STRANGER)
    assert owner("pause", "theirs").code == 0
    assert re.search(rf"  theirs  paused  .*, by {re.escape(me())}, owned by {STRANGER}$", owner("events").out, re.M)
    assert owner("delete", "theirs").code == 0
    assert events(stranger)[-1]["owner_uid"] == STRANGER and events(stranger)[-1]["uid"] == os.geteuid()
    daemon.stop()
    log = daemon.process.stderr.read()
    assert f"pipeline theirs created by user {STRANGER}" in log
    assert f"pipeline theirs paused by user {os.geteuid()}" in log
    assert f"pipeline theirs deleted by user {os.geteuid()}" in log


@as_root
def test_the_owner_is_the_same_after_a_restart(serve, place, counter):
    daemon = serve(ALL, pipelines=())
    assert Stranger(place, daemon.socket)("create", counter("theirs", more="stage { repeat {} }")).code == 0
    daemon.kill()
    daemon = serve(ALL, pipelines=())
    owner = Penstock(place, daemon.socket)
    eventually(lambda: rows(owner)["theirs"]["STATE"] == "running")
    assert rows(owner)["theirs"]["OWNER"] == str(STRANGER)


@as_root
def test_a_quota_of_pipelines(serve, place, counter):
    daemon = serve(ALL + "user_quota { max_pipelines: 1 }", pipelines=("own-1", "own-2"))
    stranger = Stranger(place, daemon.socket)
    assert stranger("create", counter("first")).code == 0
    refused = stranger("create", counter("second"))
    assert refused.code == 1
    assert (f"RESOURCE_EXHAUSTED: user {STRANGER} has 1 pipeline, and may have at most 1 (user_quota[0].max_pipelines of the daemon's "
            "configuration): delete one") in refused.err
    assert stranger("delete", "first").code == 0
    assert stranger("create", counter("second")).code == 0


@as_root
def test_a_quota_of_workers(serve, place, counter):
    text = ALL + f"user_quota {{ uids: {STRANGER} max_workers: %d }}"
    daemon = serve(text % 3, pipelines=())
    stranger = Stranger(place, daemon.socket)
    assert stranger("create", counter("first", more="workers: 2")).code == 0
    refused = stranger("create", counter("second", more="workers: 2"))
    assert refused.code == 1
    assert "user_quota[0].max_workers" in refused.err and "ask for at most 1 (workers, --workers)" in refused.err
    assert "second" not in rows(stranger)
    # What the daemon chooses is what is left; and what is refused changes nothing.
    assert stranger("create", counter("second")).code == 0
    assert rows(stranger)["second"]["WORKERS"] == "1"
    assert "max_workers" in stranger("update", "first", "--workers", "3").err
    assert rows(stranger)["first"]["WORKERS"] == "2"
    assert stranger("update", "first", "--workers", "1").code == 0
    assert stranger("update", "second", "--workers", "2").code == 0
    # Of a smaller quota nothing is taken away, and a larger one is taken up by who asks.
    config = place / "penstockd.textproto"
    config.write_text(text % 1)
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: "RESOURCE_EXHAUSTED" in stranger("create", counter("third")).err)
    assert rows(stranger)["second"]["WORKERS"] == "2"
    config.write_text(text % 9)
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: stranger("create", counter("third", more="workers: 6")).code == 0)
