//! Robots at their node, and the echoes that wait for them to arrive.

use super::Node;
use crate::{
    code::{self, PythonCode},
    error::RunError,
    outside::Outside,
    plan::Plan,
};
use tcps_core::{robot::Robot, sample::Echo, time::Time};

/// A robot with its tick, its newest commands and the echoes that wait for it to arrive.
pub(super) struct RobotAt {
    pub(super) component: u16,
    pub(super) robot: Box<dyn Robot>,
    pub(super) period_ns: Time,
    pub(super) next: Time,
    /// Newest command per flow that drives it.
    pub(super) commands: Vec<(u16, Vec<f64>)>,
    pub(super) fused: Vec<f64>,
    pub(super) sense: Vec<f64>,
    pub(super) sensed: usize,
    pub(super) held: Vec<(u16, Echo)>,
}

impl RobotAt {
    /// A new command of a flow; several flows have equal authority.
    pub(super) fn command(&mut self, flow: u16, values: &[f64]) {
        match self.commands.iter_mut().find(|c| c.0 == flow) {
            Some(c) => {
                c.1.clear();
                c.1.extend_from_slice(values);
            }
            None => self.commands.push((flow, values.to_vec())),
        }
        let n = self.commands.iter().map(|c| c.1.len()).min().unwrap_or(0);
        let share = 1.0 / self.commands.len() as f64;
        self.fused.clear();
        self.fused.extend((0..n).map(|i| self.commands.iter().map(|c| c.1[i]).sum::<f64>() * share));
    }
}

impl Node {
    pub(super) fn step_robot<O: Outside>(&mut self, i: usize, now: Time, out: &mut O) {
        let r = &mut self.robots[i];
        if r.next > now {
            return;
        }
        // A loop that was away takes one step for all that it missed.
        let behind = (now - r.next) / r.period_ns;
        self.missed_ticks += behind as u64;
        let at = r.next + behind * r.period_ns;
        r.sensed = r.robot.step(at, &r.fused, &mut r.sense).min(r.sense.len());
        r.next = at + r.period_ns;
        self.show_sense(i, now, out);
        let r = &mut self.robots[i];
        if !r.held.is_empty() && r.robot.arrived() {
            for (flow, echo) in std::mem::take(&mut r.held) {
                self.answer(now, flow, echo, out);
            }
        }
    }
}

pub(super) fn robots(
    plan: &Plan,
    here: impl Fn(u16) -> bool,
    python: &mut dyn PythonCode,
) -> Result<Vec<RobotAt>, RunError> {
    let mut robots = Vec::new();
    for (id, c) in plan.components.iter().enumerate() {
        if let Some(r) = c.robot.as_ref().filter(|_| here(id as u16)) {
            let robot = code::robot(&r.run, python)
                .map_err(|e| RunError::new(format!("components.{}.robot: {e}", c.name)))?;
            robots.push(RobotAt {
                component: id as u16,
                robot,
                period_ns: r.period_ns.max(1),
                next: 0,
                commands: Vec::new(),
                fused: Vec::new(),
                sense: vec![0.0; r.senses as usize],
                sensed: 0,
                held: Vec::new(),
            });
        }
    }
    Ok(robots)
}
