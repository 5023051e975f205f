"""A control stream beside users of the web: what TCP makes of it, and what datagrams make of it."""

from __future__ import annotations

import tcpsbed

BENCH = """
name = "microscope"
seed = 2
duration = "60 s"
warmup = "10 s"
[components]
ms-com = "client"
ss-com = "server"
[links.lan]
from = "client"
to = "server"
rate = "10 Mbit/s"
delay = "0.5 ms"
queue = "40 packets"
[traffic.web]
on = "lan.backward"
users = 60
utilisation = "90 %"
congestion = "reno"
[flows]
"""
TIP = 'direction = "backward"\nrate = "30 Hz"\nsample = "40 B"\ncodec = "raw"\n'
TRANSPORTS = ("udp", '{ kind = "quic", mode = "datagram" }', '{ kind = "tcp", congestion = "reno" }')


# [Hudson 2001: results] Latency and jitter of TCP are above those of UDP under loss; TCP loses nothing, UDP something.
def test_tcp_pays_for_what_it_does_not_lose_with_latency(tmp_path):
    flows = (
        f"[flows.tip{i}]\n{TIP}transport = {t}\n".replace("= udp", '= "udp"')
        for i, t in enumerate(TRANSPORTS)
    )
    (tmp_path / "scenario.toml").write_text(BENCH + "".join(flows))
    run = tcpsbed.run(tmp_path / "scenario.toml", out=tmp_path / "out").summary
    udp, datagrams, tcp = (run["flows"][f"tip{i}"] for i in range(len(TRANSPORTS)))
    line = next(line for line in run["network"] if line["name"] == "lan.backward")
    assert 0.85 < line["utilisation"] < 0.95 and line["loss"] > 0.005
    assert tcp["lost"] == 0 and udp["lost"] + datagrams["lost"] > 0
    assert tcp["delay_ms"]["mean"] > 1.3 * udp["delay_ms"]["mean"]
    assert tcp["jitter_ms"]["step"]["mean"] > 1.5 * udp["jitter_ms"]["step"]["mean"]
    assert abs(datagrams["delay_ms"]["mean"] - udp["delay_ms"]["mean"]) < 2.0


def test_the_shipped_dumbbell_feels_reno_and_cubic(tmp_path, shipped_scenarios):
    run = tcpsbed.run(shipped_scenarios / "dumbbell-tcp-background.toml", out=tmp_path / "out")
    curve = run.series["flows"]["haptic"]["delay_mean_ms"]
    times = run.series["t_s"]

    def mean(start_s: float, stop_s: float) -> float:
        values = [d for t, d in zip(times, curve, strict=True) if start_s < t < stop_s and d is not None]
        return sum(values) / len(values)

    alone = [mean(1, 10), mean(26, 35), mean(51, 59)]
    against = [mean(11, 25), mean(36, 50)]
    assert max(alone) < 16.5 and min(against) > 30.0, (alone, against)
