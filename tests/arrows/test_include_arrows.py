import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import include_arrows

ROOT = pathlib.Path(__file__).parents[2]


def test_the_tree_keeps_its_arrows():
    complaints, unused = include_arrows.check(ROOT)
    assert complaints == []
    assert unused == set(), "arrows that no file needs any more"


def test_arrows_point_to_what_stands_before():
    modules = list(include_arrows.ALLOWED)
    for place, module in enumerate(modules):
        assert include_arrows.ALLOWED[module] <= set(modules[:place]), module


@pytest.mark.parametrize("room", [*include_arrows.rooms(), *include_arrows.MODULES_WITH_README])
def test_each_room_says_what_lives_there_and_who_comes_in(room):
    text = (ROOT / room / "README.md").read_text()
    assert text.startswith(f"# {room}\n")
    words = text.split("Who comes in: ")
    assert len(words[0].split()) > 20
    said = " ".join(text[text.find("Who comes in: "):].split("\n\n")[0].split())
    assert said == include_arrows.who_comes_in(room), "python tests/arrows/include_arrows.py --write-readmes"


def test_who_comes_in_is_told_by_folders(monkeypatch):
    monkeypatch.setattr(include_arrows, "ALLOWED", {
        "base": set(),
        "server/engine/read": {"base"},
        "server/engine/plan": {"base", "server/engine/read"},
        "server/functions/math": {"base"},
        "server/functions/text": set(),
        "client/ctl": {"base"},
    })
    assert include_arrows.who_comes_in("base") == "Who comes in: all rooms of `server/engine`, `server/functions/math`, `client/ctl`."
    assert include_arrows.who_comes_in("server/engine/read") == "Who comes in: `server/engine/plan`."
    assert include_arrows.who_comes_in("client/ctl") == "Who comes in: nobody: what is here registers itself, or is a program."


def plant(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return include_arrows.check(root)[0]


def test_arrows_that_point_down_are_fine(tmp_path):
    assert plant(tmp_path, {
        "server/engine/plan/plan.cc": '#include "server/engine/plan/plan.h"\n#include "base/file.h"\n#include "penstock/v1/ops.pb.h"\n',
        "server/ops/batch.cc": '#include <vector>\n#include "server/ops/batch.h"\n#include "server/engine/plan/plan.h"\n',
        "ring/writer.cc": "#include <boost/interprocess/mapped_region.hpp>\n",
        "client/ctl/files/shards.h": '#include "io/record/tfrecord_writer.h"\n',
        "tests/engine/plan/plan_test.cc": '#include "server/engine/plan/plan.h"\n',
    }) == []


@pytest.mark.parametrize("name, include, words", [
    ("server/engine/run/executor.cc", '"ring/writer.h"', "server/engine/run may not include ring"),
    ("server/engine/read/file_table.cc", '"server/engine/plan/plan.h"', "server/engine/read may not include server/engine/plan"),
    ("base/file.cc", '"server/engine/plan/plan.h"', "base may not include server/engine/plan"),
    ("server/ops/batch.cc", '"server/ops/shuffle.h"', "know nothing of each other"),
    ("server/functions/image/resize.cc", '"server/functions/image/decode_jpeg.h"', "know nothing of each other"),
    ("server/functions/image/resize.cc", '"server/functions/array/sort.h"', "server/functions/image may not include server/functions/array"),
    ("server/functions/image/resize.cc", '"server/ops/batch.h"', "server/functions/image may not include server/ops"),
    ("server/service/pipeline/pipeline.cc", '"server/ops/batch.h"', "server/service/pipeline may not include server/ops"),
    ("server/engine/plan.cc", '"base/file.h"', "in no module"),
    ("client/c/penstock.cc", '"base/file.h"', "client/c may not include base"),
    ("client/python/module.cc", '"penstock/v1/ops.pb.h"', "client/python may not include proto"),
    ("client/c/penstock.cc", "<google/protobuf/message.h>", "bring their own"),
    ("client/c/penstock.cc", '"io/record/tfrecord_writer.h"', "client/c may not include io/record"),
    ("ring/writer.cc", "<boost/interprocess/sync/interprocess_mutex.hpp>", "never used"),
    ("ring/writer.cc", '"client/c/penstock.h"', "ring may not include client/c"),
    ("ring/writer.cc", '"tests/support/catch.h"', "nothing but tests"),
    ("ring/writer.cc", '"layout.h"', "not a path from the root"),
    ("client/ctl/commands/index.cc", '"server/engine/plan/plan.h"', "client/ctl/commands may not include server/engine/plan"),
    ("client/ctl/commands/make_sample.cc", '"client/samples/samples.h"', "client/ctl/commands may not include client/samples"),
    ("client/ctl/terminal/terminal.cc", '"client/ctl/daemon/daemon_connection.h"', "client/ctl/terminal may not include client/ctl/daemon"),
    ("client/ctl/misc/things.h", '"base/file.h"', "in no module"),
    ("base/file.cc", '"io/record/record_index.h"', "base may not include io/record"),
    ("server/misc/things.h", '"base/file.h"', "in no module"),
])
def test_a_planted_violation_is_found(tmp_path, name, include, words):
    complaints = plant(tmp_path, {name: f"#include {include}\n"})
    assert len(complaints) == 1
    assert complaints[0].startswith(name)
    assert words in complaints[0]


def test_a_cycle_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(include_arrows.ALLOWED, "ring", {"proto"})
    monkeypatch.setitem(include_arrows.ALLOWED, "proto", {"ring"})
    complaints = plant(tmp_path, {
        "ring/a.h": '#include "proto/b.h"\n',
        "proto/b.h": '#include "ring/a.h"\n',
    })
    assert complaints == ["modules include each other: proto -> ring -> proto"]
