"""A profile out of measurements of an access network."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tcpsbed import proxy
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.proxy.measured import Columns, profile_text

TABLE = "when,rtt,sd,loss,dl,ul\n" + "".join(
    f"{n},{rtt},2.0,{loss},{dl},0\n"
    for n, (rtt, loss, dl) in enumerate(
        [
            ("20", "0.0", "0"),
            ("-", "-", "1000"),
            ("30", "25.0", "3000"),
            ("40", "0.0", "2000"),
            ("100", "0", "0"),
        ]
    )
)


def written(folder: Path, text: str = TABLE, name: str = "day.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def loaded(folder: Path, columns: Columns, quantile: float = 50.0):
    file = folder / "measured.toml"
    file.write_text(profile_text([written(folder)], columns, quantile))
    return proxy.load(file)


def test_half_of_the_round_trip_is_the_delay_each_way(tmp_path):
    for link in loaded(tmp_path, Columns("rtt")).network["links"]:
        assert link["delay_ns"] == 17_500_000, "the median is between 30 and 40 ms"
        assert link.get("jitter") is None and link.get("rate_bps") is None


def test_spread_becomes_jitter_that_leaves_the_mean_as_it_is(tmp_path):
    link = loaded(tmp_path, Columns("rtt", spread="sd")).network["links"][0]
    jitter = link["jitter"]["delay"]
    assert jitter["kind"] == "exponential" and jitter["mean_ns"] == 1_414_000
    assert link["delay_ns"] + jitter["mean_ns"] == 17_500_000


def test_a_bad_moment_is_slow_and_has_little_rate(tmp_path):
    good = loaded(tmp_path, Columns("rtt", down="dl"), 0).network["links"]
    bad = loaded(tmp_path, Columns("rtt", down="dl"), 100).network["links"]
    assert [link["delay_ns"] for link in good] == [10_000_000] * 2
    assert [link["delay_ns"] for link in bad] == [50_000_000] * 2
    # Down is backward: the mobile's side is near. Lines with nothing to transfer say nothing about the rate.
    assert (good[1]["rate_bps"], bad[1]["rate_bps"]) == (3e6, 1e6)
    assert good[0].get("rate_bps") is None


def test_loss_is_the_mean_of_what_was_measured(tmp_path):
    link = loaded(tmp_path, Columns("rtt", loss="loss")).network["links"][0]
    assert link["loss"] == {"kind": "random", "p": pytest.approx(0.0625)}


@pytest.mark.parametrize(
    ("columns", "quantile", "words"),
    [
        (Columns("ping"), 50, 'day.csv: found no column "ping"; allowed: when, rtt'),
        (Columns("when", down="ul"), 50, "no bit rate above 0"),
        (Columns("rtt", rate_unit="bps"), 50, "--rate-unit"),
        (Columns("rtt"), 101, "--quantile"),
    ],
)
def test_what_is_not_there_is_told(tmp_path, columns, quantile, words):
    with pytest.raises((ConfigError, DataError)) as refused:
        profile_text([written(tmp_path)], columns, quantile)
    assert words in str(refused.value)


def test_a_spread_that_no_jitter_of_that_mean_has_is_refused_with_both(tmp_path):
    file = written(tmp_path, "rtt,sd\n5.5,600\n")
    said = r"day.csv: sd: found a standard deviation of 600 ms, too large for a round trip of 5.5 ms .at most 3.89 ms."
    with pytest.raises(DataError, match=said):
        profile_text([file], Columns("rtt", spread="sd"))


def test_one_of_two_columns_of_a_name_is_chosen_by_its_number(tmp_path):
    file = written(tmp_path, "rtt,when,rtt\n10,0,30\n")
    with pytest.raises(DataError, match='found 2 columns "rtt"; allowed: one of them by its number: 0, 2'):
        profile_text([file], Columns("rtt"))
    assert 'delay = "5.000 ms"' in profile_text([file], Columns("0"))
    assert 'delay = "15.000 ms"' in profile_text([file], Columns("2"))


def test_a_dash_is_standard_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["config", "link-from-csv", str(written(tmp_path)), "--rtt", "rtt"]
    plain, dash = (CliRunner().invoke(app, [*words, *more]) for more in ([], ["--out", "-"]))
    assert plain.exit_code == 0 and dash.stdout == plain.stdout != "" and not Path("-").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rtt\nfast\n", ":2"),
        ("rtt\n20\n-3\n", ":3"),
        ("rtt\ninf\n", ":2"),
        ("rtt\n-\n", "nothing was measured"),
        ("", "found no column"),
        ("rtt\n" + "x" * 200_000, "x.csv"),
    ],
)
def test_a_value_that_is_no_measurement_is_told_with_its_line(tmp_path, text, words):
    with pytest.raises(DataError) as refused:
        profile_text([written(tmp_path, text, "x.csv")], Columns("rtt"))
    assert words in str(refused.value) and len(str(refused.value)) < 400


def test_a_production_network_becomes_a_profile(tmp_path):
    recorded = Path(os.environ["TCPSBED_DATA"]) / "network/5g/5G-production-dataset.zip"
    if not recorded.exists():
        pytest.skip("needs the recordings of a 5G production network")
    name = "5G-production-dataset/Download/Static/B_2019.12.16_13.40.04.csv"
    with zipfile.ZipFile(recorded) as packed:
        table = written(tmp_path, packed.read(name).decode())
    out = tmp_path / "5g.toml"
    words = ["--rtt", "PINGAVG", "--spread", "PINGSTDEV", "--loss", "PINGLOSS", "--down", "DL_bitrate"]
    command = [
        sys.executable,
        "-m",
        "tcpsbed",
        "config",
        "link-from-csv",
        str(table),
        *words,
        "--out",
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    up, down = proxy.load(out).network["links"]
    assert 20e6 < up["delay_ns"] < 60e6 and 10e6 < down["rate_bps"] < 600e6
