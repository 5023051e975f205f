"""The report: self-contained, complete, nothing shown where there is nothing, and drawn by a browser without complaint."""

from __future__ import annotations

import html
import json
import math
import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sample_run
from browsing import becomes
from typer.testing import CliRunner

from tcpsbed import documents
from tcpsbed.analysis import machine
from tcpsbed.cli.app import app
from tcpsbed.cli.run import _tell
from tcpsbed.errors import DataError
from tcpsbed.results import Place
from tcpsbed.studio import freeze
from tcpsbed.views import charts, flows, glossary, markup, numbers, tables, text
from tcpsbed.views.compare import compare, sentence
from tcpsbed.views.folder import RunFolder, open_folder


def page_of(tmp_path: Path, **settings: object) -> str:
    """The page of a sample run."""
    return freeze.write(sample_run.write(tmp_path / "run", **settings)).read_text()


def data_of(page: str) -> dict:
    """The charts' data in a page."""
    return json.loads(page.split('id="data">')[1].split("</script>")[0])


def told(page: str, kind: str) -> dict:
    """A message in a page."""
    return next(one for one in data_of(page)["messages"] if one["k"] == kind)


def test_the_page_fetches_nothing(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    assert not re.search(r"""(?:src|href|action|data|poster)\s*=\s*["']?\s*(?:https?:)?//""", page)
    assert not re.search(
        r"url\(\s*['\"]?(?:https?:)?//|@import|<link[^>]+stylesheet|<script[^>]+src|<img|<iframe", page
    )


@pytest.mark.parametrize("world", ["virtual", "real", "proxy"])
def test_the_headline_has_the_same_order_everywhere(tmp_path: Path, world: str) -> None:
    line = f"{world} · seed 1 · 100 s, first 0.5 s warm-up"
    page = page_of(tmp_path, world=world)
    assert f'<span id="facts" class="soft">{line}</span>' in page
    assert text.headline(open_folder(tmp_path / "run")).startswith(f"quickstart · {line} · tcpsbed 0.1.0\n")
    assert (
        '% of the delay of video</b> is waiting in the queue of link bottleneck.forward; <b class="bad">'
        in page
    )


@pytest.mark.slow
@pytest.mark.parametrize(("world", "colour"), [("real", "--lost"), ("proxy", "--link")])
def test_stalls_have_the_colour_of_an_alarm_only_where_they_are_one(
    tmp_path: Path, opened: Callable[..., Any], world: str, colour: str
) -> None:
    file = sample_run.write(tmp_path / "run", world=world) / "series.json"
    stalled = [{"from_s": 61.2, "to_s": 61.9, "why": "emulator stalled"}]
    file.write_text(json.dumps(json.loads(file.read_text()) | {"disturbed": stalled}))
    page = opened(freeze.write(tmp_path / "run").as_uri())
    becomes(page, "document.querySelector('#strip-canvas').width > 300")
    count = """([name]) => {
      document.body.style.color = `var(${name})`;
      const [red, green, blue] = getComputedStyle(document.body).color.match(/\\d+/g).map(Number);
      const canvas = document.querySelector('#strip-canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, 4);
      const far = (n) => [red, green, blue].reduce((sum, v, i) => sum + Math.abs(data[n - 3 + i] - v), 0);
      return data.filter((alpha, n) => n % 4 === 3 && Math.abs(alpha - 77) < 4 && far(n) < 9).length;
    }"""
    found = {name: page.evaluate(count, [name]) for name in ("--lost", "--link")}
    assert [name for name, points in found.items() if points] == [colour], found


def test_the_page_says_the_warm_up_among_the_facts_too(tmp_path: Path) -> None:
    assert page_of(tmp_path).count("100 s, first 0.5 s warm-up") == 2


def test_a_flow_that_is_renumbered_on_the_path_is_named_in_its_section(tmp_path: Path) -> None:
    folder = sample_run.write(tmp_path / "run")
    summary = json.loads((folder / "summary.json").read_text())
    summary["flows"]["haptic"] |= {"resampled_at": ["srv"], "repeated": 1200}
    (folder / "summary.json").write_text(json.dumps(summary))
    section = str(flows.per_flow(open_folder(folder)))
    assert section.count("sends samples at its own period") == 1
    assert "haptic: srv sends samples at its own period" in section


def test_sections_say_where_the_time_went_and_all_the_rest(tmp_path: Path) -> None:
    page = page_of(tmp_path, world="real")
    found = re.findall(r'<section id="([\w-]+)">', page)
    assert found == [
        "spread",
        "flows",
        "places",
        "echo",
        "ages",
        "network",
        "stages",
        "emulator",
        "endpoints",
        "clocks",
        "assumed_free",
        "ignored",
        "run",
        "scenario",
        "terms",
    ]
    for shown in (
        "quickstart",
        "real",
        "bottleneck",
        "node cloud stalled for 3.2 ms",
        "SCHED_FIFO",
        "9f9f",
        "tcpsbed",
    ):
        assert shown in page


@pytest.mark.parametrize("as_json", [False, True])
def test_what_was_never_tried_is_told_once_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    folder = sample_run.write(tmp_path / "run")
    file = folder / "summary.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"untried": ["a thing: never tried"]}))
    _tell(open_folder(folder), Place(folder, folder, folder), None, as_json=as_json, quiet=True)
    assert capsys.readouterr().err == "tcpsbed: a thing: never tried\n"
    assert '<section id="untried">' in freeze.write(folder).read_text()
    assert "untried: a thing: never tried" in text.notes(json.loads(file.read_text()))


def test_headings_link_to_what_their_terms_mean(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    linked = set(re.findall(r'<th [^>]*><a href="#(term-[\w-]+)">', page))
    assert {"term-pdv"} <= linked == set(re.findall(r'id="(term-[\w-]+)"', page))
    assert glossary.anchor("round trip mean") == "round-trip" and not glossary.anchor("place")


def test_the_glossary_has_two_sentences_a_term_at_most() -> None:
    assert len(glossary.entries()) > 60
    assert [
        name for name, (_, text) in glossary.entries().items() if len(re.findall(r"[.] |[.]$", text)) > 2
    ] == []


def test_sections_with_nothing_to_show_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    bare = {"version": 1, "name": "bare", "world": "virtual", "seed": 1, "duration_s": 1.0, "flows": {}}
    (folder / "summary.json").write_text(json.dumps(bare))
    page = freeze.write(folder).read_text()
    assert re.findall(r'<section id="([\w-]+)">', page) == ["run"] and '<h1 id="name">bare</h1>' in page
    assert "Nothing arrived</b> in this run." in page


@pytest.mark.parametrize("key", ["superseded", "suppressed"])
def test_counts_of_a_flow_add_up_on_the_screen_and_the_page(tmp_path: Path, key: str) -> None:
    folder = sample_run.write(tmp_path / "run")
    assert key not in text.overview(open_folder(folder))
    summary = json.loads((folder / "summary.json").read_text())
    summary["flows"]["haptic"][key] = 937
    (folder / "summary.json").write_text(json.dumps(summary))
    run = open_folder(folder)
    assert key in text.overview(run) and " 937 " in text.overview(run)
    assert key in freeze.render(run) and ">937<" in freeze.render(run)


def test_disturbances_are_told_before_any_number(tmp_path: Path) -> None:
    page = page_of(tmp_path, world="real")
    assert page.index('class="banner doubt"') < page.index('aria-labelledby="h-path"')
    assert 'class="banner' not in page_of(tmp_path, world="virtual").split("</style>")[1]


def test_segments_of_a_path_add_up_to_its_delay(tmp_path: Path) -> None:
    run = open_folder(sample_run.write(tmp_path / "run"))
    places = freeze.render(run).split('<section id="places">')[1].split("</section>")[0]
    for table in places.split("<table")[1:]:
        assert ">end to end<" in table
        lanes = [(float(x), float(width)) for x, width in re.findall(r'x="([\d.]+)" width="([\d.]+)"', table)]
        assert sum(width for _, width in lanes) == pytest.approx(100, abs=0.02)
        assert all(b[0] == pytest.approx(a[0] + a[1], abs=0.01) for a, b in pairwise(lanes))


def test_names_are_escaped(tmp_path: Path) -> None:
    folder = sample_run.write(tmp_path / "run", name="<script>alert(1)</script>")
    summary = json.loads((folder / "summary.json").read_text())
    summary["events"][0]["name"] = "</script><b>"
    (folder / "summary.json").write_text(json.dumps(summary))
    page = freeze.write(folder).read_text()
    assert "<script>alert" not in page and "</script><b>" not in page
    assert told(page, "plan")["plan"]["events"][0]["name"] == "</script><b>"


def test_names_of_flows_disturbances_and_profiles_are_escaped(tmp_path: Path) -> None:
    bad = "<script>alert(1)<b>\"'&"
    for name in "ab":
        folder = sample_run.write(tmp_path / name, world="real")
        summary = json.loads((folder / "summary.json").read_text())
        summary |= {"errors": [f"error {bad}"], "disturbances": [f"stalled {bad}"]}
        for key in ("flows", "path"):
            summary[key][bad] = summary[key]["haptic"]
        (folder / "summary.json").write_text(json.dumps(summary))
    profile = tmp_path / "mine.toml"
    told = json.dumps(bad)
    profile.write_text(f"name = {told}\nsource = {told}\n[flows.{told}]\n'delay_ms.p99' = {{ most = 1 }}\n")
    a, b, page = (str(tmp_path / name) for name in ("a", "b", "page.html"))
    pages = [freeze.write(tmp_path / "a").read_text()]
    for words in (("compare", a, b), ("check-qos", a, "--profile", str(profile))):
        CliRunner().invoke(app, [*words, "--page", page])
        pages.append(Path(page).read_text())
        Path(page).unlink()
    for shown in pages:
        assert "<script>alert" not in shown and '<b>"' not in shown
        assert shown.count("<script") == 2 and html.escape(bad) in shown
    assert html.escape(f"stalled {bad}") in pages[0] and html.escape(f"error {bad}") in pages[0]
    assert f"<h2>{html.escape(bad)}</h2>" in pages[1]
    assert html.escape(f"a: {bad}") in pages[2] and html.escape(f"stalled {bad}") in pages[2]


def test_numbers_that_are_none_leave_gaps_not_errors(tmp_path: Path) -> None:
    folder = sample_run.write(tmp_path / "run")
    series = json.loads((folder / "series.json").read_text())
    series["flows"]["haptic"]["delay_mean_ms"][:3] = [None] * 3
    (folder / "series.json").write_text(json.dumps(series))
    curve = told(freeze.write(folder).read_text(), "bins")["mean_ms"][1]
    assert curve[:3] == [None, None, None] and curve[3] is not None


def test_a_place_of_the_page_that_is_not_there_is_an_error() -> None:
    body = '<p id="a"></p><ul id="b">old</ul><h2 id="c">kept</h2><div id="d"><i></i></div>'
    filled = freeze._filled(body, {"a": '<b id="c">x</b>', "b": r"\1"})
    assert (
        filled
        == '<p id="a"><b id="c">x</b></p><ul id="b">\\1</ul><h2 id="c">kept</h2><div id="d"><i></i></div>'
    )
    for wrong, name in ((body, "gone"), (body, "d"), (body + body, "a")):
        with pytest.raises(RuntimeError, match=f": {name}$"):
            freeze._filled(wrong, {name: ""})


def test_a_number_that_is_none_in_the_summary_is_no_number_in_the_page(tmp_path: Path) -> None:
    folder = sample_run.write(tmp_path / "run")
    summary = json.loads((folder / "summary.json").read_text())
    flow = summary["flows"]["kinematic"]
    flow["loss"] = flow["delay_ms"]["p99"] = None
    (folder / "summary.json").write_text(json.dumps(summary))
    shown = told(freeze.write(folder).read_text(), "now")["flows"][0]
    assert shown["name"] == "kinematic" and shown["loss"] is None and "p99_ms" not in shown
    json.loads(documents.strict(freeze.more(open_folder(folder))), parse_constant=pytest.fail)
    assert documents.strict({"a": [1.5, math.inf, {"b": math.nan}], "c": None}) == json.dumps(
        {"a": [1.5, None, {"b": None}], "c": None}
    )


def test_every_link_of_a_large_network_tells_what_it_dropped(tmp_path: Path) -> None:
    folder = sample_run.write(tmp_path / "run")
    summary = json.loads((folder / "summary.json").read_text())
    like = summary["network"][0]
    names = [f"l{number}" for number in range(130)]
    summary["network"] = [like | {"name": name, "dropped_packets": 7, "max_queue_bytes": 9} for name in names]
    del summary["network"][120]["max_queue_bytes"]
    (folder / "summary.json").write_text(json.dumps(summary))
    links = [{"name": name, "from": 0, "to": 1} for name in [*names, "unknown"]]
    network = {"vertices": ["a", "b"], "links": links, "traffic": []}
    plan = {"flows": [{}] * len(summary["flows"]), "nodes": [], "components": [], "network": network}
    (folder / "plan.json").write_text(json.dumps(plan))
    now = told(freeze.write(folder).read_text(), "now")
    assert now["drops"] == [7] * 130 + [None]
    assert now["fullest"] == [9] * 120 + [None] + [9] * 9 + [None]


def test_every_axis_has_a_label_and_time_and_delay_their_unit(tmp_path: Path) -> None:
    for chart in data_of(page_of(tmp_path))["charts"]:
        assert chart["xLabel"] and chart["yLabel"], chart["title"]
        for label in (chart["xLabel"], chart["yLabel"]):
            assert "share" in label or re.search(r"\((s|ms|kB|Mbit/s)\)", label), label


def test_events_and_disturbed_windows_reach_the_charts(tmp_path: Path) -> None:
    now = told(page_of(tmp_path, world="real"), "now")
    assert now["events"] == [{"t_s": 40.0, "number": 0}, {"t_s": 70.0, "number": 1}]
    assert now["disturbed"] == [[61.2, 61.9]] and now["unseen"] == [[0, 0.5]]


def test_a_page_is_made_quickly(tmp_path: Path) -> None:
    run = RunFolder(sample_run.write(tmp_path / "run"))
    _ = run.summary, run.series
    times = []
    for _ in range(3):
        begun = time.process_time()
        freeze.render(run)
        times.append(time.process_time() - begun)
    assert min(times) < 0.3


def test_the_vendored_script_carries_its_licence() -> None:
    vendor = freeze.VENDOR
    assert "MIT License" in (vendor / "LICENSE-uPlot").read_text()
    assert (
        (vendor / "uPlot.iife.min.js")
        .read_text()
        .startswith("/*! https://github.com/leeoniya/uPlot (v1.6.32) */")
    )


def test_a_folder_without_a_run_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        open_folder(tmp_path / "nowhere")
    with pytest.raises(DataError, match=re.escape("no summary.json")):
        open_folder(tmp_path)
    (tmp_path / "summary.json").write_text("{broken")
    with pytest.raises(DataError, match="broken JSON"):
        open_folder(tmp_path)
    (tmp_path / "summary.json").write_text('{"version": 2}')
    with pytest.raises(DataError, match="version: found 2"):
        open_folder(tmp_path)


def test_the_page_names_the_commit_that_made_the_run(tmp_path: Path) -> None:
    run = sample_run.write(tmp_path / "a")
    summary = json.loads((run / "summary.json").read_text())
    summary["versions"]["commit"] = f"{'0123456789' * 4}-dirty"
    (run / "summary.json").write_text(json.dumps(summary))
    page = freeze.render(open_folder(run))
    assert "0.1.0, commit 012345678901-dirty" in page
    said = machine.commit()
    assert not said or re.fullmatch("[0-9a-f]{40}(-dirty)?", said)


def test_compare_refuses_runs_of_different_versions(tmp_path: Path) -> None:
    a, b = sample_run.write(tmp_path / "a"), sample_run.write(tmp_path / "b")
    summary = json.loads((b / "summary.json").read_text())
    summary["versions"]["tcpsbed"] = "0.2.0"
    (b / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(DataError, match=r"different versions of tcpsbed .*0\.1\.0.*0\.2\.0"):
        compare(a, b)


def test_compare_takes_the_flows_that_all_runs_have(tmp_path: Path) -> None:
    folders = [
        sample_run.write(tmp_path / name, shift=shift)
        for name, shift in (("a", 0.0), ("b", 3.0), ("c", -1.0))
    ]
    summary = json.loads((folders[1] / "summary.json").read_text())
    del summary["flows"]["audio"]
    (folders[1] / "summary.json").write_text(json.dumps(summary))
    shown = str(compare(*folders))
    assert "left out: A: audio" in shown and "left out: C: audio" in shown
    summary["flows"] = {"other": summary["flows"]["haptic"]}
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(DataError, match=r"no flow is in all runs \(.*/d: other\)") as raised:
        compare(folders[0], tmp_path / "d")
    assert (raised.value.key, raised.value.allowed) == ("compare", "runs with a flow of the same name")
    assert re.search(
        r"delay p50 \(ms\)\s+22\.970\s+25\.880\s+22\.000\s+\+2\.910\s+−0\.970\s+1\.127\s+0\.958", shown
    )


def test_differences_within_the_intervals_are_said_to_be_none(tmp_path: Path) -> None:
    folders = []
    for name, mean, half in (("a", 3.0, 0.5), ("b", 3.4, 0.4), ("c", 5.0, 0.4)):
        folders.append(sample_run.write(tmp_path / name))
        summary = json.loads((folders[-1] / "summary.json").read_text())
        spread = {"haptic": {"delay_ms": {"mean": {"n": 3, "mean": mean, "ci95": half}}}}
        summary["across_seeds"] |= {"flows": spread, "seeds": [1, 2, 3]}
        (folders[-1] / "summary.json").write_text(json.dumps(summary))
    shown = str(compare(*folders)).split("haptic", 1)[1]
    assert "Until here the numbers are those of one seed" in shown
    assert (
        re.search(r"delay mean .*B: may be 0 \(means over seeds\)\n", shown) and shown.count("may be 0") == 1
    )


def test_comparisons_and_verdicts_are_pages_too(tmp_path: Path) -> None:
    for name, shift in (("a", 0.0), ("b", 3.0)):
        sample_run.write(tmp_path / name, shift=shift)
    page, a, b = (str(tmp_path / name) for name in ("page.html", "a", "b"))

    told = ""

    def cli(*words: str) -> int:
        nonlocal told
        done = CliRunner().invoke(app, [*words, "--page", page])
        told = done.stdout
        return done.exit_code

    assert cli("compare", a, b) == 0 and told.endswith(f"\npage: {page}\n")
    found = Path(page).read_text()
    assert "The delay p99 of kinematic goes" in found and "+2.910" in found
    assert data_of(found)["charts"][0]["title"] == "Delay of kinematic"
    Path(page).unlink()
    assert cli("check-qos", a, "--profile", "telehaptics") == 1 and told.endswith(f"\npage: {page}\n")
    assert "limits are broken</b>" in Path(page).read_text() and "FAIL" in Path(page).read_text()
    assert cli("check-qos", a, "--profile", "telehaptics", "--json") == 1 and json.loads(told)
    assert cli("check-qos", a, "--profile", "telehaptics", "--quiet") == 1 and told == ""
    sample_run.write(tmp_path / "a", world="real")
    assert cli("check-qos", a, "--profile", "telehaptics") == 3
    assert "<strong>Do not use these numbers: " in Path(page).read_text()
    Path(page).write_text("mine")
    assert cli("compare", a, b) == 2
    assert Path(page).read_text() == "mine"


@pytest.mark.parametrize("amiss", ["a", "b"])
@pytest.mark.parametrize("delay", [-0.5, 0.0, None])
def test_a_delay_without_a_ratio_makes_no_sentence_of_a_comparison(
    tmp_path: Path, amiss: str, delay: float | None
) -> None:
    """Clocks that disagree by more than the delay make it less than 0."""
    folders = [sample_run.write(tmp_path / "a"), sample_run.write(tmp_path / "b", shift=3.0)]
    summary = json.loads((tmp_path / amiss / "summary.json").read_text())
    summary["flows"]["kinematic"]["delay_ms"]["p99"] = delay
    (tmp_path / amiss / "summary.json").write_text(json.dumps(summary))
    said = "".join(words for _, words in sentence(compare(*folders)))
    assert "goes from" in said and "kinematic" not in said
    for flow in summary["flows"].values():
        flow["delay_ms"]["p99"] = delay
    (tmp_path / amiss / "summary.json").write_text(json.dumps(summary))
    assert "No flow has a delay above 0" in sentence(compare(*folders))[0][1]


def test_contents_link_to_every_section_whatever_its_name(tmp_path: Path) -> None:
    names = [
        "haptic",
        "ann/haptic",
        "ann-haptic",
        "ann_haptic",
        "Ann/haptic",
        "a b",
        'x" onclick="',
        "ä<b>",
        "/",
        "_",
    ]
    found = tables.Table("", (markup.words("n"),), (("1",),))
    inside = "".join(freeze.table(found, name) for name in names)
    ids = re.findall(r'<section id="([^"]*)"><h2>', inside)
    assert re.findall(r'<a href="#([^"]*)">', markup.contents(inside)) == ids
    assert len(set(ids)) == len(names) and all(re.fullmatch(r"[\w.-]+", one) for one in ids)
    assert "<b>" not in inside and markup.contents(inside).count("ann/haptic</a>") == 1
    assert markup.anchor("flow-left_hand") == "flow-left_hand"


def test_no_page_takes_the_place_of_what_it_is_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever `--force` says, and before anything is read."""
    a, b = (sample_run.write(tmp_path / name) for name in "ab")
    profile = tmp_path / "mine.toml"
    profile.write_text("[flows.haptic]\nloss = { most = 1 }\n")
    check = ("check-qos", str(a), "--profile", str(profile))
    kept = {file: file.read_bytes() for file in (profile, a / "summary.json", b / "series.json")}

    def refused(*words: str, page: Path) -> str:
        done = CliRunner().invoke(app, [*words, "--page", str(page), "--force"])
        assert done.exit_code == 2 and done.stdout == ""
        assert {file: file.read_bytes() for file in kept} == kept
        return done.stderr

    assert "mine.toml is an input of this command" in refused(*check, page=profile)
    assert f'is in the folder "{a}", which this command reads' in refused(*check, page=a / "summary.json")
    assert f'is in the folder "{b}", which this command reads' in refused(
        "compare", str(a), str(b), page=b / "series.json"
    )
    (tmp_path / "mine.html").write_text("mine")
    monkeypatch.setattr(
        "tcpsbed.cli.runs.open_folder", lambda _: pytest.fail("read before the page was refused")
    )
    done = CliRunner().invoke(app, [*check, "--page", str(tmp_path / "mine.html")])
    assert done.exit_code == 2 and "exists already" in done.stderr


def test_text_tables_are_aligned_and_leave_empty_columns_out() -> None:
    shown = text.table(
        [markup.words("flow"), markup.Column("p99", "ms"), markup.Column("none")],
        [["a", "1.000", "–"], ["long", "12.000", ""]],
    )
    assert shown == "flow  p99 ms\n────  ──────\na      1.000\nlong  12.000\n"


def test_bars_of_text_lie_end_to_end() -> None:
    assert text.span(0, 16, 32) == "█" * 16
    assert text.span(16, 16, 32) == " " * 16 + "█" * 16
    assert text.span(0, 0.0001, 32) == "▏" and text.span(0, 0, 32) == "" and text.span(0, 1, 0) == ""


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (numbers.ms(0.0123), "0.012"),
        (numbers.ms(123.456), "123.46"),
        (numbers.ms(None), "–"),
        (numbers.ms(math.nan), "–"),
        (numbers.ms(-0.00001), "0.000"),
        (numbers.ms(-1.5), "−1.500"),
        (numbers.count(1234567), "1\u202f234\u202f567"),
        (numbers.us(1340), "1.340"),
        (numbers.percent(0.0), "0.00 %"),
        (numbers.percent(0.00002), "0.0020 %"),
        (numbers.percent(0.25), "25.0 %"),
        (numbers.rate(1.5e6), "1.500 Mbit/s"),
        (numbers.rate(310e3), "310.0 kbit/s"),
        (numbers.size(15000), "15.0 kB"),
        (numbers.size(12), "12 B"),
        (numbers.ms(1234.5), "1\u202f234.5"),
        (numbers.us(None), "–"),
        (numbers.us(100_000), "100.0"),
        (numbers.percent(0.0999), "9.99 %"),
        (numbers.percent(0.005), "0.500 %"),
        (numbers.half_shown(None, numbers.ms), "–"),
        (numbers.half_shown(0.5, numbers.ms), "0.500"),
        (numbers.half_shown(0.0001, numbers.ms), "<0.001"),
        (numbers.half_shown(0.0, numbers.ms), "0.000"),
        (numbers.rate(2e9), "2.000 Gbit/s"),
        (numbers.general(-1.23456), "−1.235"),
    ],
)
def test_numbers_as_people_read_them(shown: str, wanted: str) -> None:
    assert shown == wanted


def test_intervals_come_as_half_width_or_as_ends() -> None:
    assert (
        numbers.half_width(0.5) == 0.5
        and numbers.half_width([1.0, 2.0]) == 0.5
        and numbers.half_width(None) is None
    )


def test_cumulative_curves_begin_at_0_and_have_a_value_at_every_x() -> None:
    x, lines = charts.joined({"a": ([1, 2, 3], [0.1, 0.5, 1.0]), "b": ([2, 4], [0.2, 1.0])})
    assert x == [0, 1, 2, 3, 4]
    assert lines == {"a": [0, 0.1, 0.5, 1.0, 1.0], "b": [0, 0, 0.2, 0.2, 1.0]}
    constant, steps = charts.joined({"a": ([5, 5, 5], [0.0, 0.5, 1.0]), "none": ([None], [1.0])})
    assert constant == [0, 5] and steps == {"a": [0, 1.0], "none": [0, 0]}
