//! The network of a scenario as the host of an engine: until its end, steered line by line.

use crate::{
    attack::Attacker,
    emu::{Between, Datagram, Ended, EngineHost, Layers, Transit},
    os::ring::Producer,
    real::session::DRAIN_NS,
    recording::Recording,
};
use serde_json::Value;
use std::{
    borrow::Cow,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::Receiver,
    },
};
use tcps_core::{
    ids::{LinkId, VertexId},
    record::{DropReason, Kind, Record},
    time::Time,
};
use tcps_net::{Packet, Passage};
use tcps_plan::{
    report::{EmulatedPath, Report},
    Plan,
};

/// A scenario as the host of the engine between its nodes, until its end or until it is stopped.
pub(super) struct ScenarioHost<'a> {
    recording: Recording<'a>,
    stop: &'a AtomicBool,
    steering: Receiver<Value>,
    /// Whether the row says that the network has died.
    died: bool,
}

impl<'a> ScenarioHost<'a> {
    /// Of a plan, with rows in a ring.
    pub fn new(
        plan: &'a Plan,
        ring: Producer,
        attacker: Option<Attacker>,
        stop: &'a AtomicBool,
        steering: Receiver<Value>,
    ) -> Self {
        let recording = Recording::new(Cow::Borrowed(plan), ring, 0).attacked(attacker);
        Self { recording, stop, steering, died: false }
    }
}

impl EngineHost for ScenarioHost<'_> {
    fn goes_on(&mut self, now: Time, network: &Layers) -> bool {
        self.recording.beat();
        let died = network.failure().is_some();
        if died && !std::mem::replace(&mut self.died, died) {
            let node = self.recording.own_number();
            self.recording.push(&Record { node, ..Record::new(now, Kind::Died) });
        }
        !died && !self.stop.load(Ordering::Relaxed) && now < self.recording.plan().duration_ns + DRAIN_NS
    }

    fn next(&self) -> Time {
        self.recording.next()
    }

    fn act(&mut self, mut b: Between<'_>) -> bool {
        while let Ok(line) = self.steering.try_recv() {
            self.recording.ask(b.now, &line);
        }
        self.recording.act(&mut b)
    }

    fn entered(&mut self, datagram: &Datagram, bytes: &mut [u8]) {
        self.recording.entered(datagram, bytes);
    }

    fn shot(&mut self, now: Time) -> Option<(VertexId, Datagram, Vec<u8>)> {
        self.recording.shot(now)
    }

    fn dropped(&mut self, at: Time, packet: &Packet, link: LinkId, reason: DropReason) {
        self.recording.dropped(at, packet, link, reason);
    }

    fn arrived(&mut self, datagram: &Datagram, transit: &Transit) {
        self.recording.arrived(datagram, transit);
    }

    fn passed(&mut self, passage: &Passage) {
        self.recording.passed(passage);
    }

    fn gap(&mut self, now: Time, late: Time) {
        self.recording.gap(now, late);
    }
}

/// What is told of a run at its end: of vertices by these names, and of those links that it carries.
pub(super) fn report(
    ended: Ended<ScenarioHost<'_>>,
    names: &[String],
    carries: impl Fn(LinkId) -> bool,
) -> Report {
    let Ended { host, mut network, accounts, stamps, own, cpu_ns, .. } = ended;
    let itself = host.recording.itself(own, cpu_ns);
    let mut report = host.recording.report(&mut network, carries);
    report.errors.extend(network.failures());
    report.errors.extend(network.failure().map(str::to_owned));
    report.interrupted = network.failure().is_some();
    report.nodes.extend(network.itself().map(|f| f.node()));
    let name = |vertex: VertexId| names.get(vertex.index()).map_or("", String::as_str);
    for ((_, from, to, _), account) in accounts.iter().filter(|(_, a)| a.decided() > 0) {
        let path = format!("{} -> {}", name(from), name(to));
        report.emulator.push(EmulatedPath { path, stamps, told: account.told(true) });
    }
    report.nodes.push(itself);
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{assets::Disk, carrier::Carrier, emu::Accounts, os::ring::Consumer};
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
        let mut host = ScenarioHost::new(&plan, Producer::create(&place, 16).unwrap(), None, &stop, steering);
        let mut network = Layers::new(Carrier::new(&plan, None, true, &mut Disk).unwrap());
        let mut accounts = Accounts::new([], false);
        let (network, accounts) = (&mut network, &mut accounts);
        host.act(Between { now: 0, latest: 0, network, accounts, services: &[], clients: 0 });
        let mut bytes = Vec::new();
        Consumer::open(&place).unwrap().drain(&mut bytes);
        std::fs::remove_file(&place).unwrap();
        let rows =
            bytes.chunks_exact(RECORD_BYTES).map(|b| Record::from_bytes(b.try_into().unwrap()).unwrap());
        (host.recording.errors, rows.collect())
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
