"""The manual pages: the one of the settings is what its script makes of server.proto, and the others name what there is."""

import pathlib
import re
import runpy

_TREE = pathlib.Path(__file__).parents[2]


def test_the_settings_page_is_current():
    script = runpy.run_path(str(_TREE / "docs/man/make_config_page.py"))
    proto = (_TREE / "proto/penstock/v1/server.proto").read_text()
    page = (_TREE / "docs/man/penstockd.textproto.5").read_text()
    assert page == script["page"](proto), "python docs/man/make_config_page.py proto/penstock/v1/server.proto > docs/man/penstockd.textproto.5"
    for field in re.findall(r"^  (?:repeated |optional )?\w+ (\w+) = \d+;", proto, re.MULTILINE):
        assert f".B {field} " in page


def test_every_command_has_its_line():
    page = (_TREE / "docs/man/penstock.1").read_text()
    commands = set()
    for source in (_TREE / "client/ctl").rglob("*.cc"):
        commands |= set(re.findall(r'(?:root\.AddCommand\(|Add\(root, socket,)\s*"([a-z-]+)"', source.read_text()))
    assert len(commands) > 12
    assert {command for command in commands if command.replace("-", r"\-") not in page} == set()


def test_the_annotated_configuration_names_every_setting():
    proto = (_TREE / "proto/penstock/v1/server.proto").read_text()
    annotated = (_TREE / "config/penstockd.textproto").read_text()
    fields = re.findall(r"^  (?:repeated |optional )?\w+ (\w+) = \d+;", proto, re.MULTILINE)
    assert [field for field in fields if not re.search(rf"\b{field}\b", annotated)] == []
