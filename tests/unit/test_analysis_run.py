"""A run folder opens in Python, draws, and leaves as Parquet, csv and MCAP."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from analysis_run import recorded, write

from tcpsbed import Run
from tcpsbed.analysis import export
from tcpsbed.analysis.records import ROW_BYTES, open_records
from tcpsbed.errors import DataError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(write(tmp_path_factory.mktemp("run")))


def test_a_run_tells_what_it_is(run: Run) -> None:
    text = repr(run)
    assert "handmade: virtual, seed 7" in text
    assert "kinematic: 4000 sent, 1.00 % lost, delay 5.500 ms mean" in text
    assert "DISTURBED: node n1 stalled" in text
    assert run.disturbed
    assert "<li>kinematic: 4000 sent" in run._repr_html_()


def test_an_error_is_not_called_a_disturbance(tmp_path: Path) -> None:
    folder = write(tmp_path)
    summary = json.loads((folder / "summary.json").read_text())
    summary |= {"errors": ["ss-com: refused"], "disturbances": []}
    (folder / "summary.json").write_text(json.dumps(summary))
    text = repr(Run(folder))
    assert "  ERROR: ss-com: refused" in text and "DISTURBED" not in text


def test_rows_are_mapped_and_a_torn_end_is_left_out(run: Run, tmp_path: Path) -> None:
    assert np.array_equal(run.records, recorded())
    torn = tmp_path / "records.bin"
    torn.write_bytes(recorded()[:10].tobytes()[:-5])
    assert len(open_records(torn)) == 9
    torn.write_bytes(b"")
    assert len(open_records(torn)) == 0


def test_samples_have_names(run: Run) -> None:
    table = run.samples.to_arrow()
    assert isinstance(table, pa.Table)
    assert table.schema == export.SCHEMA
    found = {(row["kind"], row["flow"], row["point"], row["node"]) for row in table.to_pylist()}
    assert found == {
        ("sent", "kinematic", "hand.exit", "n0"),
        ("enter", "kinematic", "srv.entry", "n1"),
        ("exit", "kinematic", "srv.exit", "n1"),
        ("delivered", "kinematic", "robot.entry", "n2"),
        ("dropped", "kinematic", "l2.forward", ""),
        ("queue", "", "l2.forward", ""),
        ("sync", "", "n2", "n0"),
        ("gap", "", "", "n1"),
        ("echo", "kinematic", "srv.entry", "n0"),
        ("echo", "kinematic", "srv.exit", "n0"),
        ("echo", "kinematic", "robot.entry", "n0"),
    }


def test_a_drop_at_a_component_names_the_component(tmp_path: Path) -> None:
    from analysis_run import plan, rows

    (tmp_path / "plan.json").write_text(json.dumps(plan()))
    dead, full = (rows("dropped", 1, index=1, flow=0, point=1, detail=detail) for detail in (6, 1))
    (tmp_path / "records.bin").write_bytes(np.concatenate([dead, full]).tobytes())
    assert export.table(tmp_path)["point"].to_pylist() == ["srv", "l2.forward"]


def test_parquet_in_several_row_groups_is_the_same_table(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import parquet

    monkeypatch.setattr(export, "BATCH_ROWS", 5000)
    file = export.to_parquet(run.folder, tmp_path / "samples.parquet")
    assert parquet.ParquetFile(file).num_row_groups == -(-len(run.records) // 5000)
    assert parquet.read_table(file)["value_ns"].to_pylist() == run.records["value"].tolist()
    assert [p.name for p in tmp_path.iterdir()] == ["samples.parquet"]


def test_csv_has_a_header_and_a_line_for_each_row(run: Run, tmp_path: Path) -> None:
    lines = export.to_csv(run.folder, tmp_path / "samples.csv").read_text().splitlines()
    assert lines[0] == ",".join(f'"{name}"' for name in export.SCHEMA.names)
    assert len(lines) == len(run.records) + 1
    assert '0,"sent","kinematic","hand.exit",0,0,24,"n0",0' in lines


def test_mcap_has_a_topic_for_each_flow_and_kind(run: Run, tmp_path: Path) -> None:
    reader = pytest.importorskip("mcap.reader")
    file = export.to_mcap(run.folder, tmp_path / "samples.mcap")
    with file.open("rb") as stream:
        counts: dict[str, int] = {}
        for _, channel, message in reader.make_reader(stream).iter_messages():
            counts[channel.topic] = counts.get(channel.topic, 0) + 1
            json.loads(message.data)
    assert (counts["/kinematic/sent"], counts["/kinematic/delivered"], counts["/run/gap"]) == (4000, 3960, 1)


def test_mcap_without_its_package_names_the_extra(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    with pytest.raises(DataError, match=r"pip install tcpsbed\[mcap\]"):
        export.to_mcap(run.folder)


def test_plots_draw_the_curves_and_carry_their_origin(run: Run) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    delay = run.plot.delay(["kinematic"])
    assert "handmade · virtual · seed 7" in delay.get_title(loc="left")
    assert "DISTURBED" in delay.get_title(loc="left")
    assert np.nanmax(delay.lines[0].get_ydata()) == pytest.approx(5.5)
    assert run.plot.cdf().lines[0].get_ydata()[-1] == 1
    path = run.plot.path()
    assert sum(bar.get_width() for bar in path.patches) == pytest.approx(5.5)
    assert max(run.plot.queue().lines[0].get_ydata()) == 150
    assert run.plot.cdf(ax=path) is path
    with pytest.raises(DataError, match="kinematic"):
        run.plot.delay(["nothing"])


def test_plots_without_matplotlib_name_the_extra(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DataError, match=r"pip install 'tcpsbed\[plot\]'"):
        run.plot.cdf()


def test_folders_that_are_no_runs_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"summary\.json cannot be read \(no such file"):
        Run(tmp_path)
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(DataError, match="broken JSON"):
        Run(tmp_path)
    (tmp_path / "summary.json").write_text('{"version": 99}')
    with pytest.raises(DataError, match="version: found 99; allowed: 1"):
        Run(tmp_path)
    with pytest.raises(DataError, match=r"records\.bin"):
        open_records(tmp_path / "records.bin")


def test_a_record_row_has_the_length_of_the_core() -> None:
    assert recorded().dtype.itemsize == ROW_BYTES
