"""A robot of your own: a drawer on a rail with a stop, pulled by a spring. Scenario: examples/own_robot.toml.

A robot is a class with `step(t_ns, command, sense) -> int`, called in every period in virtual time and on sockets alike.
"""

import numpy as np


class Drawer:
    """One axis: command x (m), sense force (N), x (m), speed (m/s)."""

    def __init__(self, mass_kg: float = 0.5, stop_m: float = 0.3, stiffness_n_m: float = 5000.0) -> None:
        self.mass_kg, self.stop_m, self.stiffness_n_m = mass_kg, stop_m, stiffness_n_m
        self.x_m = self.v_m_s = self.goal_m = 0.0
        self.last_ns: int | None = None

    def step(self, t_ns: int, command: np.ndarray, sense: np.ndarray) -> int:
        """Moves the drawer to `t_ns`; writes what it senses and says how many values these are."""
        if len(command) > 0:  # empty until the first command has come
            self.goal_m = float(command[0])
        steps = 0 if self.last_ns is None else min((t_ns - self.last_ns) // 100_000, 1000)
        self.last_ns = t_ns
        for _ in range(steps):
            self._move(1e-4)
        sense[:3] = self._stop_force(), self.x_m, self.v_m_s
        return 3

    def arrived(self) -> bool:
        """Whether it is where it was sent, or against the stop: what the echo point `….held` waits for."""
        return abs(self.x_m - min(self.goal_m, self.stop_m)) < 0.002

    def _move(self, dt_s: float) -> None:
        pull_n = 2000.0 * (self.goal_m - self.x_m) - 60.0 * self.v_m_s
        self.v_m_s += (pull_n - self._stop_force()) / self.mass_kg * dt_s
        self.x_m += self.v_m_s * dt_s

    def _stop_force(self) -> float:
        return self.stiffness_n_m * max(self.x_m - self.stop_m, 0.0)
