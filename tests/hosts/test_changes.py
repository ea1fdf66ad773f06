"""Hosts that are processes of their own, without an engine: five of them become three while they live, and one of those that stay is killed in between."""

import json
import pathlib
import subprocess
import sys

import penstock

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 60
ASKED_AT, KILLED_AT, CHANGED_AT = 4, 15, 30
STAY = (0, 2, 3)  # of five


class Host:
    def __init__(self, hosts, host):
        self.process = subprocess.Popen([sys.executable, HERE / "changing_worker.py", str(hosts), str(host)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the host has died"
        return json.loads(line)

    def end(self):
        self.process.kill()
        self.process.communicate()


def test_three_of_five_stay_and_one_of_them_is_killed_in_between():
    whole = penstock.Dataset.range(3000).shuffle(80, seed=7).filter(lambda x: x % 5 != 0).map(lambda x: {"n": x}).batch(12)
    expected = [batch["n"].tolist() for _, batch in zip(range(STEPS), iter(whole))]
    hosts = [Host(5, host) for host in range(5)]
    everybody = list(hosts)
    try:
        pipelines, state = set(), None
        for step in range(STEPS):
            if step == KILLED_AT:
                # With all that it had made ahead, and what it had been told. Who takes its place has the state, and is told again.
                hosts[2].end()
                hosts[2] = Host(5, 2)
                everybody.append(hosts[2])
                hosts[2].ask(do="resume", state=state)
            if step == CHANGED_AT:
                hosts = [hosts[host] for host in STAY]
            said = [host.ask(do="step") for host in hosts]
            assert sum((one["rows"] for one in said), []) == expected[step], f"step {step}"
            assert len({one["state"]["cursor"] for one in said}) == 1
            state = said[0]["state"]
            assert len(state["cursor"]) <= 2 * 150
            pipelines.add(said[0]["pipeline"])
            if step == ASKED_AT:
                for number, host in enumerate(STAY):
                    hosts[host].ask(do="reworld", hosts=3, host=number, at_step=CHANGED_AT)
            if step == KILLED_AT:
                hosts[2].ask(do="reworld", hosts=3, host=1, at_step=CHANGED_AT)
        # The daemon of the first host has changed its pipeline, which was never made anew.
        assert len(pipelines) == 1
    finally:
        for host in everybody:
            host.end()
