//! Robots at their node, and the echoes that wait for them to arrive.

use super::context::Context;
use crate::{
    assets::{self, Assets},
    host::Host,
};
use tcps_core::{
    ids::{ComponentId, FlowId},
    robot::{Pace, Robot},
    sample::{Echo, PointId},
    time::{Time, MS},
};
use tcps_plan::{Authority, Plan, RobotPlan, RunError};

/// A robot with its tick, its newest commands and the echoes that wait for it to arrive.
pub(super) struct RobotAt {
    component: ComponentId,
    plan: RobotPlan,
    robot: Box<dyn Robot>,
    period_ns: Time,
    next: Time,
    /// Newest command per flow that drives it.
    commands: Vec<Command>,
    fused: Vec<f64>,
    /// The flow that holds the token.
    holder: Option<FlowId>,
    sense: Vec<f64>,
    sensed: usize,
    /// The newest echo command per flow that waits for the robot to arrive; it is looked at after each step.
    held: Vec<(FlowId, Echo)>,
    /// Why it could not be restarted.
    refused: Option<String>,
}

/// Periods of its flow for which an operator may be silent and keep its share in a robot.
const SILENT_PERIODS: Time = 10;
/// The least time of silence.
const SILENT_NS: Time = 100 * MS;
/// Time after its last movement in which the holder of the token keeps it.
const REST_NS: Time = 500 * MS;

/// The newest command of a flow.
#[derive(Debug)]
struct Command {
    flow: FlowId,
    weight: f64,
    at: Time,
    /// When it last differed from the one before.
    moved: Time,
    silence_ns: Time,
    values: Vec<f64>,
}

impl RobotAt {
    fn new(component: ComponentId, plan: &RobotPlan, assets: &mut dyn Assets) -> Result<Self, RunError> {
        Ok(Self {
            component,
            robot: assets::robot(&plan.run, assets)?,
            plan: plan.clone(),
            period_ns: plan.period_ns.max(1),
            next: plan.start_ns,
            commands: Vec::new(),
            fused: Vec::new(),
            holder: None,
            sense: vec![0.0; plan.senses as usize],
            sensed: 0,
            held: Vec::new(),
            refused: None,
        })
    }

    /// A new command of a flow, with its weight. One that has fallen silent for ten of its periods (at least 0.1 s) has no
    /// authority until it speaks again. The last command of all holds.
    pub(super) fn command(&mut self, now: Time, flow: FlowId, period_ns: Time, weight: f64, values: &[f64]) {
        let silence_ns = period_ns.saturating_mul(SILENT_PERIODS).max(SILENT_NS);
        let (moved, values) = match self.commands.iter().position(|c| c.flow == flow) {
            Some(i) => {
                let Command { values: mut kept, moved, .. } = self.commands.swap_remove(i);
                let moved = if kept == values { moved } else { now };
                kept.clear();
                kept.extend_from_slice(values);
                (moved, kept)
            }
            None => (now, values.to_vec()),
        };
        self.commands.retain(|c| now - c.at <= c.silence_ns);
        self.commands.push(Command { flow, weight, at: now, moved, silence_ns, values });
        // Sums of floats depend on their order: it is always that of flows.
        self.commands.sort_unstable_by_key(|c| c.flow);
        match self.plan.authority {
            Authority::Weight => self.fuse(),
            Authority::Token => self.obey(now),
        }
    }

    /// The mean of all commands by their weights; where all weigh nothing, the one before holds.
    fn fuse(&mut self) {
        let n = self.commands.iter().map(|c| c.values.len()).min().unwrap_or(0);
        let all: f64 = self.commands.iter().map(|c| c.weight).sum();
        if all <= 0.0 {
            return;
        }
        let share = 1.0 / all;
        let mean = |i| self.commands.iter().map(|c| c.weight * c.values[i]).sum::<f64>() * share;
        self.fused.clear();
        self.fused.extend((0..n).map(mean));
    }

    /// The command of the holder of the token.
    fn obey(&mut self, now: Time) {
        let moves = |c: &Command| now - c.moved <= REST_NS;
        let holds = |c: &&Command| self.holder == Some(c.flow);
        let holder = self.commands.iter().find(holds);
        let next = match holder {
            Some(c) if moves(c) => Some(c),
            _ => self.commands.iter().find(|c| moves(c)).or(holder).or(self.commands.first()),
        };
        if let Some(c) = next {
            self.fused.clone_from(&c.values);
            self.holder = Some(c.flow);
        }
    }

    /// Lets an echo wait until the robot has arrived; the one of the flow that still waits is superseded.
    pub(super) fn hold(&mut self, flow: FlowId, echo: Echo) -> Option<Echo> {
        match self.held.iter_mut().find(|h| h.0 == flow) {
            Some(held) => Some(std::mem::replace(&mut held.1, echo)),
            None => {
                self.held.push((flow, echo));
                None
            }
        }
    }

    /// What it senses.
    fn senses(&self) -> &[f64] {
        &self.sense[..self.sensed]
    }

    /// Its component has been restarted: it begins anew, at its next tick.
    pub(super) fn restart(&mut self, assets: &mut dyn Assets) {
        match Self::new(self.component, &self.plan, assets) {
            Ok(fresh) => *self = Self { next: self.next, refused: self.refused.take(), ..fresh },
            Err(e) => self.refused = Some(format!("cannot be restarted: {e}")),
        }
    }
}

/// The robots of a node, in the order of components.
pub(super) struct Robots {
    robots: Vec<RobotAt>,
    /// Steps that a late loop left out.
    pub(super) missed: u64,
}

impl Robots {
    /// The robots of the components that are here.
    pub(super) fn new(plan: &Plan, here: &[ComponentId], assets: &mut dyn Assets) -> Result<Self, RunError> {
        let mut robots = Vec::new();
        for &id in here {
            let c = &plan.components[id];
            if let Some(r) = &c.robot {
                let robot = RobotAt::new(id, r, assets);
                robots.push(robot.map_err(|e| e.within(format!("components.{}.robot", c.name)))?);
            }
        }
        Ok(Self { robots, missed: 0 })
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.robots.len()
    }

    /// The number of a component's robot.
    pub(super) fn of(&self, component: ComponentId) -> Option<usize> {
        self.robots.binary_search_by_key(&component, |r| r.component).ok()
    }

    /// A component's robot.
    pub(super) fn at(&mut self, component: ComponentId) -> Option<&mut RobotAt> {
        self.of(component).map(|i| &mut self.robots[i])
    }

    /// When one takes its next step.
    pub(super) fn next(&self, i: usize) -> Time {
        self.robots[i].next
    }

    /// What one senses.
    pub(super) fn senses(&self, i: usize) -> &[f64] {
        self.robots[i].senses()
    }

    /// Advances a robot whose tick has come, and answers the echoes for which it has arrived. One that fails is told of,
    /// with its component.
    pub(super) fn step<O: Host>(
        &mut self,
        i: usize,
        now: Time,
        cx: &mut Context<'_, O>,
    ) -> Result<(), (ComponentId, String)> {
        let r = &mut self.robots[i];
        if r.next > now {
            return Ok(());
        }
        // A loop that was away takes one step for all that it missed.
        let behind = (now - r.next) / r.period_ns;
        let at = r.next + behind * r.period_ns;
        r.next = at + r.period_ns;
        if !cx.here.is_alive(r.component) {
            return Ok(());
        }
        self.missed += behind as u64;
        let sensed = r.robot.step(at, &r.fused, &mut r.sense).min(r.sense.len());
        if let Some(why) = r.robot.failure() {
            return Err((r.component, why));
        }
        r.sensed = sensed;
        cx.show_sense(now, PointId::held(r.component), r.senses());
        if !r.held.is_empty() && r.robot.arrived() {
            let now = cx.out.now(now);
            for (flow, echo) in std::mem::take(&mut r.held) {
                cx.answer(now, now, flow, echo);
            }
        }
        Ok(())
    }

    /// What failed, by component.
    pub(super) fn failures(&self) -> Vec<(ComponentId, String)> {
        let failure = |r: &RobotAt| Some((r.component, r.robot.failure().or(r.refused.clone())?));
        self.robots.iter().filter_map(failure).collect()
    }

    /// What loops of their own took, by component; they end.
    pub(super) fn paces(&mut self) -> Vec<(ComponentId, Pace)> {
        self.robots.iter_mut().filter_map(|r| Some((r.component, r.robot.pace()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::Nothing;
    use serde_json::json;

    #[test]
    fn an_operator_that_falls_silent_loses_its_share_and_gets_it_back() {
        let plan = json!({"run": {"kind": "builtin", "name": "wall_mass"}, "period_ns": MS, "senses": 3});
        let plan = serde_json::from_value(plan).unwrap();
        let mut robot = RobotAt::new(ComponentId(0), &plan, &mut Nothing).unwrap();
        let mut say = |now: Time, flow: FlowId, value: f64| {
            robot.command(now, flow, MS, 1.0, &[value]);
            robot.fused[0]
        };
        assert_eq!(say(0, FlowId(0), 4.0), 4.0);
        assert_eq!(say(MS, FlowId(1), 2.0), 3.0, "equal authority");
        assert_eq!(say(SILENT_NS, FlowId(1), 2.0), 3.0, "as long as it may be silent");
        assert_eq!(say(SILENT_NS + 1, FlowId(1), 2.0), 2.0, "the one that stopped is forgotten");
        assert_eq!(say(SILENT_NS + MS, FlowId(0), 6.0), 4.0, "and speaks again");
        assert_eq!(say(9 * SILENT_NS, FlowId(0), 6.0), 6.0, "the last one to speak holds");
    }

    fn robot_with(authority: &str) -> RobotAt {
        let plan = json!({"run": {"kind": "builtin", "name": "wall_mass"}, "period_ns": MS, "senses": 3,
            "authority": authority});
        RobotAt::new(ComponentId(0), &serde_json::from_value(plan).unwrap(), &mut Nothing).unwrap()
    }

    #[test]
    fn weights_share_a_robot_and_no_weight_moves_nothing() {
        let mut robot = robot_with("weight");
        robot.command(0, FlowId(0), MS, 3.0, &[4.0]);
        robot.command(0, FlowId(1), MS, 1.0, &[0.0]);
        assert_eq!(robot.fused, [3.0], "three to one");
        let mut robot = robot_with("weight");
        robot.command(0, FlowId(0), MS, 0.0, &[4.0]);
        assert!(robot.fused.is_empty(), "an onlooker");
    }

    #[test]
    fn the_token_stays_with_the_one_that_moves_and_passes_on_from_one_that_rests() {
        let mut robot = robot_with("token");
        let mut say = |now: Time, flow: FlowId, value: f64| {
            robot.command(now, flow, MS, 1.0, &[value]);
            robot.fused[0]
        };
        assert_eq!(say(0, FlowId(0), 1.0), 1.0, "the first to speak");
        assert_eq!(say(MS, FlowId(1), 9.0), 1.0, "and no other");
        for t in 2..1_000 {
            say(t * MS, FlowId(0), t as f64);
            assert_eq!(say(t * MS, FlowId(1), -(t as f64)), t as f64, "as long as it moves");
        }
        let mut passed = None;
        for t in 1_000..2_000 {
            say(t * MS, FlowId(0), 999.0);
            if say(t * MS, FlowId(1), -(t as f64)) < 0.0 {
                passed.get_or_insert(t * MS - 999 * MS);
            }
        }
        assert_eq!(passed, Some(REST_NS + MS), "half a second after its last movement");
    }

    #[test]
    fn the_token_is_not_taken_from_one_that_moves_by_one_of_an_earlier_flow() {
        let mut robot = robot_with("token");
        robot.command(0, FlowId(3), MS, 1.0, &[3.0]);
        for t in 1..50 {
            robot.command(t * MS, FlowId(0), MS, 1.0, &[t as f64]);
            robot.command(t * MS, FlowId(3), MS, 1.0, &[-(t as f64)]);
            assert_eq!(robot.fused, [-(t as f64)], "two hands would pull the arm to and fro");
        }
    }
}
