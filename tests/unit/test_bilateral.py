"""Bilateral control in a scenario: energies at both ports as they are recorded, through links that lose in bursts."""

import numpy as np
import pytest

import tcpsbed
from tcpsbed.analysis import signals


def energies(shipped_scenarios, folder, scheme: str, delay: str) -> tuple[np.ndarray, np.ndarray]:
    """Energy through both ports at every tick, in J, and the force of the wall, in N."""
    sets = [
        f'hooks.leader.params.scheme="{scheme}"',
        f'components.tactile-teleoperator.robot.params.scheme="{scheme}"',
        f'links.line.delay="{delay}"',
    ]
    tcpsbed.run(shipped_scenarios / "bilateral.toml", out=folder, set=sets)
    leader = signals.read(folder, "hand.exit", "kinematic")
    follower = signals.read(folder, "tactile-teleoperator.sense")
    assert np.array_equal(leader.t_ns, follower.t_ns)
    return leader.values[:, 6] + follower.values[:, 6], follower.values[:, 5]


@pytest.mark.parametrize("delay", ["0 ms", "10 ms", "25 ms", "50 ms", "100 ms"])
@pytest.mark.parametrize("scheme", ["wave", "tdpa"])
def test_passive_schemes_give_back_at_most_a_millijoule_too_much(shipped_scenarios, tmp_path, scheme, delay):
    """[model: wall tests] RTT 0 to 200 ms, 10 % lost in bursts, wall of 500 N/m: at least -1 mJ at every tick."""
    energy, contact = energies(shipped_scenarios, tmp_path, scheme, delay)
    assert energy.min() >= -1e-3
    assert contact.max() > 0.3, "the wall was met"


def test_position_forward_gives_back_what_it_was_never_given(shipped_scenarios, tmp_path):
    """[model: position-force] [model: wall tests] At an RTT of 100 ms."""
    energy, _ = energies(shipped_scenarios, tmp_path, "pd", "50 ms")
    assert energy.min() < -0.05
