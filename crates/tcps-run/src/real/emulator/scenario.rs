//! The network of a scenario as the host of an engine: its events, samples of its queues, and rows of what happens in it.

use super::transits::Transits;
use crate::{
    carrier::Carrier,
    emu::{Between, Datagram, Ended, EngineHost, Layers, Transit},
    network_rows,
    os::ring::Producer,
    real::{
        events::{asked, Events, Steered},
        session::DRAIN_NS,
    },
};
use serde_json::Value;
use std::sync::{
    atomic::{AtomicBool, Ordering},
    mpsc::Receiver,
};
use tcps_core::{
    ids::{LinkId, NodeId},
    record::{DropReason, Kind, Record},
    time::{Time, NEVER},
};
use tcps_net::{Packet, Passage};
use tcps_plan::{
    report::{EmulatedPath, NodeSelf, RealSelf, Report},
    Action, EventPlan, Plan,
};

/// A scenario as the host of the engine between its nodes, until its end or until it is stopped.
pub(super) struct ScenarioHost<'a> {
    plan: &'a Plan,
    ring: Producer,
    stop: &'a AtomicBool,
    steering: Receiver<Value>,
    events: Events,
    probe_at: Time,
    errors: Vec<String>,
    /// Whether the row says that the network has died.
    died: bool,
    transits: Transits,
}

impl<'a> ScenarioHost<'a> {
    /// Of a plan, with rows in a ring.
    pub fn new(plan: &'a Plan, ring: Producer, stop: &'a AtomicBool, steering: Receiver<Value>) -> Self {
        let probe_at = if plan.queue_probe_ns.is_some() { 0 } else { NEVER };
        let (events, transits) = (Events::new(plan), Transits::new(plan));
        Self { plan, ring, stop, steering, events, probe_at, errors: Vec::new(), died: false, transits }
    }

    fn apply(&mut self, number: u32, event: &EventPlan, b: &mut Between<'_>) {
        let stopped = b.network.has_stopped();
        let network = b.network.present();
        match &event.action {
            Action::Link(change) => {
                for link in &change.links {
                    if let Err(e) = network.change_link(b.latest, *link, change) {
                        self.errors.push(format!("events.{}: {e}", event.name));
                    }
                }
            }
            Action::Reroute => network.reroute(b.latest),
            Action::Traffic { traffic, running } => {
                traffic.iter().for_each(|t| network.set_traffic(b.latest, *t, *running && !stopped));
            }
            Action::Flow { .. } | Action::Component { .. } | Action::Clock { .. } => {}
        }
        self.ring.push(&Record { index: number, ..Record::new(b.now, Kind::Event) });
    }

    /// The emulator's number comes after those of the nodes.
    fn own_number(&self) -> NodeId {
        NodeId(self.plan.nodes.len() as u16)
    }

    fn probe_queues(&mut self, now: Time, network: &mut Carrier) {
        for link in network_rows::queued_links(self.plan) {
            let found = network.queue(now, link);
            self.ring.push(&network_rows::queue(now, link, found));
        }
        let period = self.plan.queue_probe_ns.unwrap_or(NEVER).max(1);
        self.probe_at += period * ((now - self.probe_at) / period + 1);
    }
}

impl EngineHost for ScenarioHost<'_> {
    fn goes_on(&mut self, now: Time, network: &Layers) -> bool {
        self.ring.beat();
        let died = network.failure().is_some();
        if died && !std::mem::replace(&mut self.died, died) {
            self.ring.push(&Record { node: self.own_number(), ..Record::new(now, Kind::Died) });
        }
        !died && !self.stop.load(Ordering::Relaxed) && now < self.plan.duration_ns + DRAIN_NS
    }

    fn next(&self) -> Time {
        self.events.next().min(self.probe_at)
    }

    fn act(&mut self, mut b: Between<'_>) -> bool {
        while let Ok(line) = self.steering.try_recv() {
            match asked(self.plan, None, &line) {
                Ok((number, event)) => self.events.take(b.now, Steered { number, event, noted: true }),
                Err(e) => self.errors.push(e.to_string()),
            }
        }
        if self.next() > b.now {
            return false;
        }
        let plan = self.plan;
        while let Some(number) = self.events.due(b.now) {
            self.apply(number as u32, &plan.events[number], &mut b);
        }
        while let Some(s) = self.events.steered(b.now) {
            self.apply(s.number, &s.event, &mut b);
        }
        if self.probe_at <= b.now {
            self.probe_queues(b.now, b.network.present());
        }
        true
    }

    fn dropped(&mut self, at: Time, packet: &Packet, link: LinkId, reason: DropReason) {
        let row = network_rows::dropped(at, packet, link, reason);
        row.iter().for_each(|row| self.ring.push(row));
    }

    fn arrived(&mut self, datagram: &Datagram, transit: &Transit) {
        self.transits.add(datagram, transit);
    }

    fn passed(&mut self, passage: &Passage) {
        network_rows::hop(passage).iter().for_each(|row| self.ring.push(row));
    }

    fn gap(&mut self, now: Time, late: Time) {
        self.ring.push(&Record { value: late, node: self.own_number(), ..Record::new(now, Kind::Gap) });
    }
}

/// What is told of a run at its end: of vertices by these names, and of those links that it carries.
pub(super) fn report(
    ended: Ended<ScenarioHost<'_>>,
    names: &[String],
    carries: impl Fn(u16) -> bool,
) -> Report {
    let Ended { host, mut network, accounts, stamps, own, cpu_ns, .. } = ended;
    let mut report = Report { errors: host.errors, ..Report::default() };
    let (links, traffic) = network.accounts();
    let carried = (0..).zip(links).filter(|(number, _)| carries(*number));
    report.accounts(carried.map(|(_, link)| link).collect(), traffic);
    let hops = network.hops();
    // A foreign network tells nothing.
    if !hops.is_empty() {
        report.hops(host.plan, &hops);
        report.legs(host.plan, &host.transits.finish());
    }
    report.errors.extend(network.failures());
    report.errors.extend(network.failure().map(str::to_owned));
    report.interrupted = network.failure().is_some();
    report.nodes.extend(network.itself().map(|f| f.node()));
    let name = |vertex: u16| names.get(usize::from(vertex)).map_or("", String::as_str);
    for ((_, from, to), account) in accounts.iter().filter(|(_, a)| a.decided() > 0) {
        let path = format!("{} -> {}", name(from), name(to));
        report.emulator.push(EmulatedPath { path, stamps, told: account.told(true) });
    }
    report.nodes.push(NodeSelf {
        name: "emulator".into(),
        cores: 1,
        busy_s: cpu_ns as f64 / 1e9,
        real: Some(RealSelf { ring_overflows: host.ring.lost(), ..own }),
        ..NodeSelf::default()
    });
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{assets::Disk, emu::Accounts, os::ring::Consumer};
    use serde_json::json;
    use std::sync::mpsc::channel;
    use tcps_core::record::RECORD_BYTES;

    /// What the emulator of one link, whose plan has these events, says after its first turn and these lines.
    fn told(events: &Value, lines: &[Value]) -> (Vec<String>, Vec<Record>) {
        let plan: Plan = serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a"], "components": [], "flows": [],
            "nodes": [{"name": "a"}, {"name": "b"}],
            "network": {"vertices": ["a", "b"], "links": [{"name": "l", "from": 0, "to": 1}]},
            "events": events,
        }))
        .unwrap();
        let place =
            std::env::temp_dir().join(format!("tcps-scenario-{}-{}", std::process::id(), lines.len()));
        let stop = AtomicBool::new(false);
        let (steer, steering) = channel();
        lines.iter().for_each(|line| steer.send(line.clone()).unwrap());
        let mut host = ScenarioHost::new(&plan, Producer::create(&place, 16).unwrap(), &stop, steering);
        let mut network = Layers::new(Carrier::new(&plan, None, true, &mut Disk).unwrap());
        let mut accounts = Accounts::new([], false);
        let (network, accounts) = (&mut network, &mut accounts);
        host.act(Between { now: 0, latest: 0, network, accounts, clients: 0 });
        let mut bytes = Vec::new();
        Consumer::open(&place).unwrap().drain(&mut bytes);
        std::fs::remove_file(&place).unwrap();
        let rows =
            bytes.chunks_exact(RECORD_BYTES).map(|b| Record::from_bytes(b.try_into().unwrap()).unwrap());
        (host.errors, rows.collect())
    }

    fn change(link: u16) -> Value {
        json!({"kind": "link", "links": [link], "rate_bps": 1e6, "delay_ns": null, "loss": null, "up": null})
    }

    #[test]
    fn an_event_that_fails_is_told_by_its_name() {
        let events = json!([{"at_ns": 0, "name": "the line slows down", "action": change(7)}]);
        let (errors, _) = told(&events, &[]);
        assert!(errors[0].starts_with("events.the line slows down: "), "{errors:?}");
    }

    #[test]
    fn an_event_that_is_asked_for_happens_and_leaves_a_row_with_its_number() {
        let ask = |number: u32, action: Value| json!({"op": "event", "number": number, "name": "e", "action": action});
        let reroute = json!({"kind": "reroute"});
        let clock = json!({"kind": "clock", "node": 1, "step_ns": 5});
        let (errors, rows) = told(&json!([]), &[ask(3, change(0)), ask(4, reroute), ask(5, clock)]);
        assert_eq!(
            rows.iter().map(|r| (r.kind, r.index)).collect::<Vec<_>>(),
            [(Kind::Event, 3), (Kind::Event, 4)]
        );
        assert!(errors.len() == 1 && errors[0].contains("found an action of b at the network"), "{errors:?}");
    }
}
