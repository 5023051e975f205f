"""The linters of the house can fail: a forbidden arrow, a stale drawing, a claim without a test, a wrong licence."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest


def tool(root: Path, name: str) -> ModuleType:
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(f"tools_{name}", root / "tools" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if str(root / "tools") not in sys.path:
        sys.path.append(str(root / "tools"))  # as where a tool is run, which may import another
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def arrows(root):
    return tool(root, "check_arrows")


@pytest.fixture
def claims(root):
    return tool(root, "claims")


def test_an_arrow_between_rooms_that_never_see_each_other_is_named(arrows):
    found = arrows.violations({"tcps-net": {"tcps-transport": "crates/tcps-net/src/lib.rs:3"}}, arrows.CRATES)
    assert found == [
        "crates/tcps-net/src/lib.rs:3: tcps-net imports tcps-transport; it may import tcps-core, tcps-plan, tcps-wire"
    ]


def test_arrows_reach_as_far_as_they_lead(arrows):
    assert arrows.reach(arrows.CRATES, "tcps-transport") == {"tcps-wire", "tcps-core"}
    assert not arrows.violations({"tcps-transport": {"tcps-core": "somewhere"}}, arrows.CRATES)


def test_a_room_that_nobody_knows_is_named(arrows):
    assert "tcps-new" in arrows.violations({"tcps-new": {}}, arrows.CRATES)[0]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import tcpsbed.views", "tcpsbed.views"),
        ("from tcpsbed import scenarios", "tcpsbed.scenarios"),
        ("from tcpsbed.scenarios.units import read", "tcpsbed.scenarios.units.read"),
        ("from ..views import text", "tcpsbed.views.text"),
        ("def late():\n    from tcpsbed.worlds import run", "tcpsbed.worlds.run"),
        ("importlib.import_module('tcpsbed.cli')", "tcpsbed.cli"),
        ("import numpy", None),
    ],
)
def test_every_way_of_importing_is_seen(arrows, line, found):
    names = [name for name, _ in arrows.imported(ast.parse(line), ["tcpsbed", "analysis"])]
    assert names == ([found] if found else [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("use crate::registry::Side;", ["registry"]),
        ("use crate::{\n    channel::{Side, ChannelFlow},\n    udp,\n};", ["channel", "udp"]),
        ("fn f(x: &crate::Side) {}", ["Side"]),
        ("use super::congestion::Window;", ["tcp.congestion"]),
        ("use super::super::udp::tag;", ["udp"]),
        ("pub(in crate::tcp) fn f() {} // crate::udp", []),
        ("#[cfg(test)]\nmod tests {\n    use crate::registry::endpoint;\n}\n", []),
    ],
)
def test_every_path_to_another_module_of_a_crate_is_seen(arrows, text, found):
    assert [name for name, _ in arrows.used(text, ["tcp", "sender"])] == found


def test_no_rule_allows_a_circle(arrows):
    for rules in (arrows.CRATES, *arrows.MODULES.values(), arrows.PACKAGES):
        assert not [room for room in rules if room in arrows.reach(rules, room)]


def test_a_transport_that_imports_the_registry_is_named(arrows):
    found = arrows.violations({"udp": {"registry": "udp.rs:14"}}, arrows.MODULES["tcps-transport"])
    assert found == [
        "udp.rs:14: udp imports registry; it may import channel, had, outbox, params, reassembly"
    ]


@pytest.mark.parametrize(
    ("room", "target"),
    [
        ("tcps-node", "tcps-run"),
        ("tcps-node", "tcps-analysis"),
        ("tcps-analysis", "tcps-node"),
        ("tcps-plan", "tcps-node"),
    ],
)
def test_who_counts_and_who_reports_never_see_each_other(arrows, room, target):
    assert len(arrows.violations({room: {target: "somewhere"}}, arrows.CRATES)) == 1


def crate(root: Path, **files: str) -> Path:
    """A crate of these files: `a_b` is `a/b.rs`."""
    for name, text in {"lib": "mod a;\nmod b;\n", **files}.items():
        write(root, f"crates/c/src/{name.replace('_', '/')}.rs", text)
    return root / "crates"


@pytest.mark.parametrize(
    "use",
    [
        "use crate::b::B;",
        "use super::b::B as Other;",
        "use crate::{b::{self, C}, d};",
        "fn f(x: &crate::b::B) {}",
        "use super::b;\nfn f() { b::make() }",
        "fn f() { use crate::b::*; }",
        "use crate::B;",
        "use crate::b::Trait as _;",
        "use crate::*;\nfn f() { b::make() }",
    ],
)
def test_two_files_that_use_each_other_in_any_form_are_a_circle(arrows, tmp_path, use):
    handed_on = "mod a;\nmod b;\npub use b::B;\n"
    b = "use crate::a::A;\npub struct B(A);\npub fn make() {}\npub trait Trait {}\n"
    found = arrows.file_circles(crate(tmp_path, lib=handed_on, a=f"{use}\npub struct A;", b=b), {})
    assert found[0] == "crates/c/src/a.rs: 2 files use one another in a circle:"
    assert found[1:] == [
        f"  crates/c/src/a.rs:{found[1].split(':')[1].split()[0]} uses crates/c/src/b.rs",
        "  crates/c/src/b.rs:2 uses crates/c/src/a.rs",
    ]


@pytest.mark.parametrize(
    "a",
    [
        "pub struct A; // use crate::b::B;",
        'pub struct A; const X: &str = "crate::b::B";',
        "pub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n",
        "pub struct A;\n#[cfg(test)]\nfn f() -> [u8; 2] { crate::b::make() }\n",
        "pub struct A;\npub use crate::b::B;",
    ],
)
def test_comments_texts_tests_and_what_is_only_handed_on_close_no_circle(arrows, tmp_path, a):
    files = crate(tmp_path, a=a, b="use crate::a::A;\npub struct B(A);\npub fn make() -> [u8; 2] { [0; 2] }")
    assert arrows.file_circles(files, {}) == []


def test_what_a_module_hands_on_counts_as_the_file_that_defines_it(arrows, tmp_path):
    mod = "mod member;\nmod part;\npub use part::Part;\npub fn all() { member::make() }\n"
    member = "use super::Part;\npub fn make() { Part; }\n"
    lib = "mod a;\n"
    files = crate(tmp_path, lib=lib, a_mod=mod, a_member=member, a_part="pub struct Part;")
    assert arrows.file_circles(files, {}) == []
    files = crate(tmp_path, lib=lib, a_mod=mod + "pub struct Whole;", a_member=f"use super::Whole;\n{member}")
    assert arrows.file_circles(files, {})[0].startswith("crates/c/src/a/member.rs: 2 files")


def test_an_arrow_with_a_reason_may_close_a_circle_while_it_does_and_there_are_five_at_most(arrows, tmp_path):
    files = crate(
        tmp_path, a="pub struct A;\nfn f() { crate::b::make() }", b="pub fn make() { crate::a::A; }"
    )
    arrow = ("crates/c/src/a.rs", "crates/c/src/b.rs")
    assert arrows.file_circles(files, {arrow: "its part is any, by name"}) == []
    crate(tmp_path, a="pub struct A;")
    assert arrows.file_circles(files, {arrow: "its part is any, by name"}) == [
        "tools/check_arrows.py: crates/c/src/a.rs -> crates/c/src/b.rs closes no circle any more"
    ]
    many = {(f"{i}", "b"): "a reason" for i in range(6)}
    assert (
        arrows.file_circles(files, many)[-1] == "tools/check_arrows.py allows 6 arrows in circles; at most 5"
    )
    assert all(reason and "\n" not in reason for reason in arrows.CIRCLES.values())


@pytest.mark.parametrize(
    ("b", "circle"),
    [
        ("from tcpsbed import A", True),
        ("def f():\n    from tcpsbed import a", True),
        ("from .a import A", True),
        ("if TYPE_CHECKING:\n    from tcpsbed.a import A", False),
        ("if TYPE_CHECKING:\n    import typing\nelse:\n    from tcpsbed.a import A", True),
        ("if typing.TYPE_CHECKING:\n    from tcpsbed.a import A\nelif B:\n    import typing", False),
        ("if not TYPE_CHECKING:\n    from tcpsbed.a import A", True),
        ("from tcpsbed import C", False),
    ],
)
def test_two_python_files_that_use_each_other_are_a_circle_but_not_for_types(arrows, tmp_path, b, circle):
    handed_on = "from tcpsbed.a import A\nfrom tcpsbed.c import C\n"
    for name, text in {"__init__": handed_on, "a": "import tcpsbed.b", "b": b, "c": ""}.items():
        write(tmp_path, f"tcpsbed/{name}.py", text)
    found = arrows.python_circles(tmp_path / "tcpsbed")
    assert found[:1] == ["tcpsbed/a.py:1 uses tcpsbed/b.py, in a circle of 2 files"] * circle


def test_lab_imports_what_the_testbed_shows_and_exceptions_do_not_outlive_their_use(
    arrows, tmp_path, monkeypatch
):
    monkeypatch.setattr(arrows, "ROOT", tmp_path)
    monkeypatch.setattr(arrows, "LAB_EXCEPT", {"inside.deep": "a reason", "inside.gone": "a reason"})
    for name in ("inside/__init__", "inside/deep", "inside/deeper", "errors"):
        write(tmp_path, f"tcpsbed/{name}.py", "")
    text = (
        "from tcpsbed.errors import A\nfrom tcpsbed.inside import deep\nfrom tcpsbed.inside.deeper import B\n"
    )
    write(tmp_path, "tcpsbed/lab/a.py", text)
    assert arrows.lab_reaches(tmp_path / "tcpsbed") == [
        "tcpsbed/lab/a.py:3: lab imports inside.deeper, which LAB_FACES does not have",
        "tools/check_arrows.py: lab imports inside.gone no more",
    ]


def test_a_stale_drawing_changes_when_it_is_drawn_again(arrows):
    text = "<!-- arrows:crates -->\nold\n<!-- /arrows -->\n"
    assert arrows.drawn(text, "new") == "<!-- arrows:crates -->\nnew\n<!-- /arrows -->\n"


def test_arrows_that_others_imply_are_not_drawn(arrows):
    drawn = arrows.essential({"a": {}, "b": {"a": ""}, "c": {"b": "", "a": ""}})
    assert drawn == [("b", "a"), ("c", "b")]


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_claim_without_a_test_is_found_and_one_with_a_test_is_not(claims, tmp_path):
    write(
        tmp_path,
        "crates/x/src/lib.rs",
        "// [RFC 8289 §5]\nfn a() {}\n// [Polachan 2022]\n#[cfg(test)]\nmod tests {\n  // [RFC 8289 §5.3]\n}\n",
    )
    write(tmp_path, "python/p/a.py", '"""Text. [Gokhale 2017: dumbbell]"""\n')
    write(tmp_path, "tests/paper/test_a.py", "# [Gokhale 2017: dumbbell]\n")
    rows = claims.table(*claims.collect(tmp_path))
    assert {claim: bool(tests) for claim, _, tests in rows} == {
        "Gokhale 2017: dumbbell": True,
        "Polachan 2022": False,
        "RFC 8289 §5": True,
    }


def test_a_topic_that_the_page_does_not_explain_is_found(claims, tmp_path):
    page = "| cited as | x |\n|---|---|\n| Gokhale 2017: streams | x |\n| model: FIFO link | x |\n| design: hooks | x |\n"
    write(tmp_path, "docs/protocols.md", page)
    write(
        tmp_path,
        "crates/x/src/lib.rs",
        "// [Gokhale 2017: streams] [model: FIFO link] [design: hooks]\n// [Gokhale 2017: header]\n",
    )
    write(tmp_path, "scenarios/a.toml", "# [model: wire size] [Gokhale 2017: streams]\n")
    found = claims.unexplained(tmp_path)
    assert [(name, str(path), line) for name, (path, line) in found] == [
        ("Gokhale 2017: header", "crates/x/src/lib.rs", 2),
        ("model: wire size", "scenarios/a.toml", 1),
    ]


def test_a_wider_test_proves_no_part(claims):
    assert claims.proves("RFC 8289 §5.3", "RFC 8289")
    assert claims.proves("RFC 8289 §5.3", "RFC 8289 §5")
    assert not claims.proves("RFC 8289", "RFC 8289 §5.3")
    assert claims.proves("Gokhale 2017: header", "Gokhale 2017")
    assert not claims.proves("Gokhale 2017: header", "Gokhale 2017: head")


@pytest.mark.parametrize("text", ["[T; 3]", "[Kind; 19]", "[1, 2]", "[RFC]", "a[2022]"])
def test_code_in_comments_is_no_claim(claims, text):
    assert not claims.CLAIM.search(text)


def test_licence_expressions(root):
    licences = tool(root, "licences")
    names = {"MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"}
    assert licences.allowed("MIT OR GPL-3.0-only", names)
    assert licences.allowed("(MIT OR Apache-2.0) AND Unicode-3.0", names)
    assert licences.allowed("Apache-2.0 WITH LLVM-exception", names)
    assert not licences.allowed("MIT AND GPL-3.0-only", names)
    assert not licences.allowed("GPL-2.0-only", names)


def test_a_wheel_holds_licence_and_firmware_and_no_folder_of_its_builder(root, tmp_path):
    licences = tool(root, "licences")
    file = tmp_path / "tcpsbed.whl"
    notices = [
        "x/licenses/LICENSE",
        "x/NOTICE",
        "x/NOTICE-third-party",
        "tcpsbed/report/vendor/LICENSE-uPlot",
        "x/sboms/sbom.cdx.json",
    ]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    metadata = f"License-Expression: {project['license']}\n"
    whole = [*notices, *(f"tcpsbed/firmware/{name}" for name in licences.firmware())]
    assert {"tcpsbed/firmware/Makefile", "tcpsbed/firmware/core/board.c"} < set(whole)

    def looked(names: list[str], text: str = "") -> list[str]:
        with zipfile.ZipFile(file, "w") as archive:
            for name in names:
                archive.writestr(name, text)
            archive.writestr("x.dist-info/METADATA", metadata)
        return licences.wheel(file)

    assert looked(whole) == []
    assert looked(whole[:-1]) == [f"no {whole[-1]} in the wheel"]
    assert looked([*whole[:2], *whole[3:]]) == ["no NOTICE-third-party in the wheel"]
    metadata = "License-Expression: Apache-2.0\n"
    assert any("does not say" in line for line in looked(whole))
    wrong = looked([*whole, "benches/ns3/a.cc"], f"see {root}/crates")
    assert "benches/ns3/a.cc has no place in the wheel" in wrong
    assert f"x/licenses/LICENSE names the folder {root}" in wrong


def test_of_alternatives_one_licence_is_taken_and_the_expression_names_all(root):
    notices = tool(root, "notices")
    assert notices.taken("MIT OR Apache-2.0") == ["MIT"]
    assert notices.taken("Apache-2.0 AND ISC") == ["Apache-2.0", "ISC"]
    assert notices.taken("(MIT OR Apache-2.0) AND Unicode-3.0") == ["MIT", "Unicode-3.0"]
    assert (
        notices.lacking([{"license": "Zlib"}]) == ["Zlib"] and notices.lacking([{"license": "MIT/ISC"}]) == []
    )


def test_third_party_notices_are_of_what_is_linked_today(root):
    notices = tool(root, "notices")
    assert notices.stale() == []
    text = notices.NOTICES.read_text()
    assert "Leon Sorokin" in text and re.search(r"^ring \d", text, re.M)
    assert "syn 2" not in text, "what only builds is not linked"
    listed = {part["name"]: part for part in json.loads(notices.BILL.read_text())["components"]}
    assert {"ring", "uplot"} < set(listed) and "syn" not in listed
    assert (
        listed["ring"]["purl"].startswith("pkg:cargo/ring@")
        and len(listed["ring"]["hashes"][0]["content"]) == 64
    )


def test_every_pin_has_a_hash_and_no_index_is_named(root):
    names = {}
    for pinned in ("requirements", "audit", "wheel"):
        text = (root / f"tools/{pinned}.txt").read_text()
        assert "://" not in text and "index-url" not in text
        assert all("--hash=sha256:" in pin for pin in re.split(r"^(?=[\w-]+==)", text, flags=re.M)[1:])
    for ending in ("in", "txt"):
        text = (root / f"tools/requirements.{ending}").read_text()
        names[ending] = dict(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M))
    plain = {name.lower().replace("_", "-"): version for name, version in names["in"].items()}
    assert plain == names["txt"], "tools/pin.sh writes requirements.txt"
