//! What a loop notes about itself, and its part of the run's report.

use super::host::RealHost;
use crate::os::{
    capture::Capture,
    ring::Producer,
    wait::{Detach, GAP_NS},
};
use hdrhistogram::Histogram;
use tcps_core::{
    ids::NodeId,
    record::{Kind, Record},
    report::histogram,
    time::Time,
};
use tcps_node::Node;
use tcps_plan::{
    report::{quantiles, true_clock_errors, Boundary, RealSelf, Report, Spread},
    Plan,
};

/// What a loop notes about itself.
pub(super) struct Account {
    /// Names of its sessions, where its node has other loops.
    sessions: Vec<String>,
    late: Histogram<u64>,
    ticks: u64,
    gaps: u64,
    /// Datagrams from senders that are not peers.
    pub strangers: u64,
    /// Privileges that it has, and those that it was refused.
    pub privileges: Vec<String>,
}

impl Account {
    /// Nothing noted yet.
    pub fn new(sessions: Vec<String>) -> Self {
        Self { sessions, late: histogram(), ticks: 0, gaps: 0, strangers: 0, privileges: Vec::new() }
    }

    /// The loop has come to something that was due, so much later.
    #[inline]
    pub fn tick(&mut self, late: Time) {
        self.ticks += 1;
        let _ = self.late.record(late.max(0) as u64);
    }

    /// What was due, or came, has waited so long for the loop.
    #[inline]
    pub fn gap(&mut self, late: Time, now: Time, node: NodeId, ring: &mut Producer) {
        if late > GAP_NS {
            self.gaps += 1;
            ring.push(&Record { value: late, node, ..Record::new(now, Kind::Gap) });
        }
    }

    /// What the loop of node `id` tells at its end.
    pub fn report(
        self,
        plan: &Plan,
        id: NodeId,
        mut node: Node,
        mut world: RealHost,
        cpu_ns: Time,
        detach: &mut dyn Detach,
    ) -> Report {
        // A worker may need the interpreter to come to its end.
        detach.detached(&mut || {
            for (worker, told) in world.crew.end() {
                node.ended(worker, told);
            }
        });
        let mut report = Report::default();
        let (name, mut told) = (&plan.nodes[id].name, node.report());
        for stream in &mut world.streams {
            let own = told.endpoints.iter_mut().find(|(channel, ..)| *channel == stream.channel());
            own.into_iter().for_each(|(_, stats, _)| stream.add_to(stats));
        }
        let fault = world.capture.take().and_then(Capture::finish);
        report.errors.extend(fault.map(|what| format!("node {name}: {what}")));
        for (number, (_, line)) in told.boards.iter_mut().enumerate() {
            *line = world.lines.end(number, std::mem::take(line));
        }
        report.legs(plan, &std::mem::take(&mut world.legs).finish());
        report.node(plan, id, told);
        true_clock_errors(plan, &mut report.clocks);
        if let Some(n) = report.nodes.last_mut() {
            n.busy_s = cpu_ns as f64 / 1e9;
            n.real = Some(self.of_loop(plan, &world, detach));
        }
        report
    }

    fn of_loop(self, plan: &Plan, world: &RealHost, detach: &mut dyn Detach) -> RealSelf {
        RealSelf {
            sessions: self.sessions,
            ticks: self.ticks,
            late_ns: Spread::of(&self.late),
            gaps_over_1ms: self.gaps,
            ring_overflows: world.ring.lost(),
            socket_drops: world.sockets.iter().map(|s| s.drops() as u64).sum(),
            strangers: self.strangers,
            unread: 0,
            unsent: world.unsent,
            clock_steps: world.clock.steps(),
            stamp_to_loop_ns: Spread::of(&world.stamp_to_loop),
            send_ns: Spread::of(&world.send),
            interpreter_wait_ns: detach.interpreter_waits().map(Spread::of),
            waiting: format!("{:?}", plan.real.waiting).to_lowercase(),
            privileges: self.privileges,
            quantiles_ns: Some(Boundary {
                wakeup: quantiles(&self.late),
                send: quantiles(&world.send),
                receive: quantiles(&world.stamp_to_loop),
            }),
        }
    }
}
