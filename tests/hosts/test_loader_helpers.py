"""A loader that is given helpers, whoever starts them: its daemon hears of them while it runs, and shares nothing with other daemons of the process."""

import hashlib
import os
import subprocess

import numpy as np
import pytest

import penstock
from penstock import _control
from penstock._epochs import EpochLoader
from penstock._running import _daemon
from penstock._running._helpers import Helpers
from programs import Daemon, eventually, free_port, program

EPOCHS = 4


class Listed(Helpers):
    """Helpers whose addresses somebody else writes down."""

    def addresses(self):
        return self.listed


def dataset():
    """Some 10 ms a step on one core, so that there is something to lend."""

    def work(x):
        return {"n": x, "x": penstock.functions.sum(penstock.functions.random_uniform([30000], seed=1)) + x.astype(np.float32)}

    return penstock.Dataset.range(12000).shuffle(100, seed=7).map(work).batch(20)


def digest(batch):
    return hashlib.sha256(np.asarray(batch["n"]).tobytes() + np.asarray(batch["x"]).tobytes()).hexdigest()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    subprocess.run([program("penstock"), "certificates", folder, "127.0.0.1", "penstock-trainer"], check=True, capture_output=True)
    return folder


@pytest.fixture
def helpers(certificates):
    def make(key, *addresses):
        pem = [(certificates / name).read_bytes() for name in ("penstock-trainer.pem", "penstock-trainer.key", "authority.pem")]
        made = Listed(key, 2, *pem)
        made.listed = list(addresses)
        return made

    yield make
    penstock.stop_private_daemon()


@pytest.fixture
def served(certificates, tmp_path):
    """Addresses of two daemons that help whoever shows the trainer's certificate."""
    config = tmp_path / "helper.textproto"
    config.write_text(
        f'serve {{ certificate: "{certificates}/127.0.0.1.pem" key: "{certificates}/127.0.0.1.key" client_authorities: "{certificates}/authority.pem" '
        'certificate_names: "penstock-trainer" }\nworker_defaults { workers: 1 worker_nice: 0 }\n'
    )
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    daemons = [Daemon(tmp_path / f"{number}.sock", "--config", str(config), "--serve", address, keeps_state=False) for number, address in enumerate(addresses)]
    assert all(daemon.is_ready for daemon in daemons)
    yield addresses
    for daemon in daemons:
        daemon.stop()


def told(loader):
    stats = _control.stats(loader.socket, loader._loader.pipeline)
    return {one["address"]: one for one in stats.get("helpers", [])}, int(stats["slots"])


def has(loader, addresses):
    """Waits, without taking a batch, until the daemon knows these helpers and no others. That takes seconds, however fast steps are."""
    eventually(lambda: set(told(loader)[0]) == set(addresses))


def test_a_loader_hears_of_helpers_while_it_runs(helpers, served):
    expected = [digest(batch) for batch in EpochLoader(dataset(), np.array, {})]
    plain = _daemon.private_socket()
    given = helpers("given")
    loader = EpochLoader(dataset(), np.array, {"helpers": given})
    for epoch in range(EPOCHS):
        loader.set_epoch(0)
        made, steps, slots = [], {}, 0
        given.listed = []
        for batch in loader:
            made.append(digest(batch))
            if len(made) == 60:
                given.listed = served[:1]
                has(loader, served[:1])
            if len(made) == 330:
                given.listed = served[1:]
                has(loader, served[1:])
            if len(made) % 5 == 0:
                found, slots = told(loader)
                steps.update({address: int(one.get("steps", 0)) for address, one in found.items()})
        assert made == expected
        # Two for each of two helpers, and six.
        assert slots == 10
        assert set(steps) == set(served)
        if max(steps.values()) > 0:
            break
    else:
        pytest.fail(f"in {EPOCHS} epochs the helpers have done no more than this: {steps}")
    # Another dataset of this process has nothing of it, and neither have the keys of the daemon outlasted its start.
    assert loader.socket is None and _daemon.private_socket() == plain != _daemon.private_socket(given)
    assert sorted(os.listdir(os.path.dirname(_daemon.private_socket(given)))) == ["helpers", "penstock.sock", "penstock.sock.lock"]
    folder = os.path.dirname(_daemon.private_socket(given))
    penstock.stop_private_daemon()
    assert not os.path.exists(folder)


def test_a_daemon_that_is_killed_has_helpers_again(helpers, served):
    expected = [digest(batch) for batch in EpochLoader(dataset(), np.array, {})]
    given = helpers("killed", *served)
    loader = EpochLoader(dataset(), np.array, {"helpers": given})
    made = []
    with pytest.warns(RuntimeWarning, match="a new one goes on behind step"):
        for batch in loader:
            made.append(digest(batch))
            if len(made) == 50:
                process = _daemon._helped["killed"].process
                process.kill()
                process.wait()
            if len(made) == 110:
                has(loader, served)
    assert made == expected


def test_processes_that_share_a_daemon_give_the_same_helpers(helpers, served, tmp_path):
    expected = [digest(batch) for batch in EpochLoader(dataset(), np.array, {})]
    share = f"helped-{os.getpid()}"
    given = helpers("shared", *served)
    loader = EpochLoader(dataset(), np.array, {"helpers": given, "share": share})
    made = []
    for batch in loader:
        made.append(digest(batch))
        if len(made) == 5:
            eventually(lambda: {one["address"] for one in _control.stats(loader.socket, loader._source).get("helpers", [])} == set(served))
    assert made == expected
    with pytest.raises(penstock.FailedPreconditionError, match="started with other helpers"):
        EpochLoader(dataset(), np.array, {"helpers": helpers("others"), "share": share})
    loader.close()
    EpochLoader(dataset(), np.array, {"share": f"{share}-alone"}).close()
    with pytest.raises(penstock.FailedPreconditionError, match="started without helpers"):
        EpochLoader(dataset(), np.array, {"helpers": given, "share": f"{share}-alone"})


def test_who_cannot_say_where_helpers_are_leaves_those_that_are_known(helpers, served):
    class Away(Listed):
        def addresses(self):
            if self.listed is None:
                raise ConnectionError("nobody answers")
            return self.listed

    given = helpers("away", *served)
    given.__class__ = Away
    loader = EpochLoader(dataset(), np.array, {"helpers": given})
    batches = iter(loader)
    next(batches)
    eventually(lambda: next(batches) and set(told(loader)[0]) == set(served))
    given.listed = None
    for _ in range(150):
        next(batches)
    assert set(told(loader)[0]) == set(served)
    loader.close()


def steps_of(helpers, expected, addresses):
    """How many steps each of these helpers has made in a pass of a loader that is given them."""
    for _ in range(EPOCHS):
        loader = EpochLoader(dataset(), np.array, {"helpers": helpers})
        made, steps = [], {}
        for batch in loader:
            made.append(digest(batch))
            if len(made) == 5:
                has(loader, addresses)
            if len(made) % 5 == 0:
                steps.update({address: int(one.get("steps", 0)) for address, one in told(loader)[0].items()})
        assert made == expected and set(steps) == set(addresses)
        if sum(steps.values()) > 0:
            return steps
    pytest.fail(f"in {EPOCHS} epochs the helpers have made no step")


def test_a_list_of_addresses_on_this_machine_is_enough(tmp_path):
    expected = [digest(batch) for batch in EpochLoader(dataset(), np.array, {})]
    address = f"127.0.0.1:{free_port()}"
    config = tmp_path / "helper.textproto"
    config.write_text("worker_defaults { workers: 1 worker_nice: 0 }\n")
    daemon = Daemon(tmp_path / "helper.sock", "--config", str(config), "--serve", address, keeps_state=False)
    assert daemon.is_ready
    try:
        assert steps_of([address], expected, [address])[address] > 0
        # A file that names it, and later does not.
        listed = tmp_path / "addresses"
        listed.write_text(f"{address}\n")
        given = penstock.helpers(listed, count=1)
        assert steps_of(given, expected, [address])[address] > 0
        listed.write_text("")
        loader = EpochLoader(dataset(), np.array, {"helpers": given})
        batches = iter(loader)
        eventually(lambda: next(batches) and told(loader)[0] == {})
        loader.close()
    finally:
        penstock.stop_private_daemon()
        daemon.stop()


def test_helpers_with_certificates_are_named_by_one_argument(certificates, served):
    expected = [digest(batch) for batch in EpochLoader(dataset(), np.array, {})]
    paths = {name: str(certificates / file) for name, file in (("certificate", "penstock-trainer.pem"), ("key", "penstock-trainer.key"), ("authorities", "authority.pem"))}
    try:
        given = penstock.helpers(served, **paths)
        # Two processes that name the same ones may share a daemon.
        assert given.key == penstock.helpers(tuple(served), **paths).key != penstock.helpers(served[:1], **paths).key
        assert sum(steps_of(given, expected, served).values()) > 0
    finally:
        penstock.stop_private_daemon()


def test_what_are_no_helpers_is_told(helpers, certificates):
    for wrong in ("10.0.0.7:9466", 3):
        with pytest.raises(TypeError, match="penstock.helpers"):
            EpochLoader(dataset(), np.array, {"helpers": wrong})
    with pytest.raises(TypeError, match="helpers is of a Dataset"):
        EpochLoader("name", np.array, {"helpers": helpers("any")})
    for wrong in (["10.0.0.7"], ["10.0.0.7:0"], [":9466"], ["10.0.0.7:9466", "10.0.0.8:port"], []):
        with pytest.raises(ValueError, match="addresses: expected"):
            EpochLoader(dataset(), np.array, {"helpers": wrong})
    with pytest.raises(TypeError, match="addresses: expected"):
        penstock.helpers([3])
    key = str(certificates / "penstock-trainer.key")
    with pytest.raises(ValueError, match="certificate, key and authorities, or none"):
        penstock.helpers(["10.0.0.7:9466"], key=key)
    with pytest.raises(ValueError, match="plaintext"):
        penstock.helpers(["10.0.0.7:9466"], certificate=key, key=key, authorities=key, plaintext=True)
    with pytest.raises(FileNotFoundError):
        penstock.helpers(["10.0.0.7:9466"], certificate="no.pem", key="no.key", authorities="no.pem")


def test_a_number_of_slots_that_the_dataset_names_stays(helpers):
    options = penstock.Options()
    options.ring.slots = 4
    for given, slots in ({"helpers": helpers("few")}, 4), ({}, 4):
        loader = EpochLoader(dataset().with_options(options), np.array, given)
        batches = iter(loader)
        next(batches)
        assert told(loader)[1] == slots
        loader.close()
    options.ring.slots = 65
    with pytest.raises(penstock.InvalidArgumentError, match="slots"):
        next(iter(EpochLoader(dataset().with_options(options), np.array, {})))
