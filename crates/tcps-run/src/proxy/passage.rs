//! A proxy as the host of an engine: until it is stopped, with what others ask of it and may see of it.

use super::{
    change::Changing,
    shared::{Order, Outcome, Settings, Shared, Snapshot},
};
use crate::{
    emu::{
        flow, lock, Account, Accounts, Between, Datagram, Ended, Engine, EngineHost, Layers, Pace, Path,
        Ports, Row, Service, Tape, Transit, FAR, NEAR,
    },
    os::clock::monotonic_ns,
    recording::{ring, Foreign, Recording},
};
use std::{
    borrow::Cow,
    sync::{mpsc::Receiver, Arc},
};
use tcps_core::{
    ids::LinkId,
    record::DropReason,
    time::{Time, MS, NEVER},
};
use tcps_net::Packet;
use tcps_plan::net::NetworkSpec;
use tcps_plan::{report::Link, RunError};

/// Time between two looks that others may take.
const SHOW_NS: Time = 100 * MS;

/// Time in which the loop gets its privileges: nothing is due before.
const UNTIMED_NS: Time = 100 * MS;

/// What others ask for, and what they are shown.
struct Passage {
    shared: Arc<Shared>,
    orders: Receiver<Order>,
    changing: Changing,
    /// Of the doors.
    names: Vec<String>,
    shown: Time,
    errors: Vec<String>,
    recording: Option<Recording<'static>>,
}

/// The loop between ports, over a network, ready to run.
pub(super) fn passage(
    settings: &Settings,
    network: &NetworkSpec,
    ports: Box<dyn Ports>,
    names: Vec<String>,
    (shared, orders): (&Arc<Shared>, Receiver<Order>),
) -> Result<impl FnOnce() -> Outcome + Send, RunError> {
    let raw = ports.stamps() != "kernel";
    let tape = settings.capture.as_ref().map(|path| Tape::begin(path, raw)).transpose()?;
    let recording = settings.record.as_ref().map(|record| {
        let plan = Cow::Owned(record.plan.clone());
        Ok::<_, RunError>(Recording::new(plan, ring(&record.ring)?, UNTIMED_NS))
    });
    let recording = recording.transpose()?;
    let flows = names.iter().flat_map(|name| [name.clone(), name.clone()]).collect();
    let (text, level) = (settings.network.clone(), recording.as_ref().map(|r| r.plan().records));
    let (changing, layers) = Changing::begin(network, text, flows, settings.seed, level)?;
    let ways = (0..names.len() as u16).flat_map(|door| [(door, NEAR, FAR), (door, FAR, NEAR)]);
    let accounts = Accounts::new(ways, true);
    let Settings { waiting, spin_ns, realtime, .. } = *settings;
    let pace = Pace { waiting, spin_ns, realtime };
    let (shared, start) = (shared.clone(), shared.start);
    let passage = Passage { shared, orders, changing, names, shown: 0, errors: Vec::new(), recording };
    passage.show(0, &accounts, &[], 0);
    let engine = Engine::new(passage, ports, layers, accounts, start, pace).taped(tape);
    Ok(move || engine.run().into_outcome(start))
}

impl Passage {
    /// Of doors, and of services by their names.
    fn rows(&self, accounts: &Accounts, services: &[Service], whole: bool) -> [Vec<Row>; 2] {
        let named = self.named(services);
        let row = |((door, from, _, service), account): (Path, &Account)| match usize::from(service) {
            0 => (0, Row::of(&self.names[usize::from(door)], from, account, whole)),
            number => (number, Row::of(&named[number - 1], from, account, whole)),
        };
        let (doors, mut apart): (Vec<_>, Vec<_>) =
            accounts.iter().map(row).partition(|(service, _)| *service == 0);
        apart.sort_by_key(|(service, _)| *service);
        [doors, apart].map(|rows| rows.into_iter().map(|(_, row)| row).collect())
    }

    /// Names of services, with the programs that are known.
    fn named(&self, services: &[Service]) -> Vec<String> {
        let mut programs = lock(&self.shared.programs);
        let name = |service: &Service| match programs.entry(*service).or_default() {
            Some(program) => format!("{service} {program}"),
            None => service.to_string(),
        };
        services.iter().map(name).collect()
    }

    fn show(&self, now: Time, accounts: &Accounts, services: &[Service], clients: usize) {
        let [doors, services] = self.rows(accounts, services, false);
        *lock(&self.shared.snapshot) = Snapshot { t_s: now as f64 / 1e9, doors, services, clients };
    }

    fn obey(&mut self, order: Order, b: &mut Between<'_>) {
        match order {
            Order::Event(line, text) => {
                self.changing.note(text);
                if let Some(recording) = &mut self.recording {
                    recording.ask(b.now, &line);
                    // A change that was ordered later comes later.
                    recording.act(b);
                }
            }
            Order::Change(spec, text, event) => {
                if let Err(e) = self.changing.change(b.network, b.latest, &spec, text) {
                    self.errors.push(format!("the network could not be changed: {e}"));
                } else if let (Some(recording), Some(number)) = (&mut self.recording, event) {
                    recording.happened(b.now, number);
                }
            }
        }
    }
}

/// A datagram as a sample.
fn sample(d: &Datagram) -> Foreign {
    Foreign {
        flow: flow(d.door, d.from),
        index: d.index,
        bytes: d.rated_bytes,
        ends: [d.from, d.to],
        came: d.arrived,
    }
}

impl EngineHost for Passage {
    fn goes_on(&mut self, _: Time, _: &Layers) -> bool {
        self.recording.iter().for_each(Recording::beat);
        !self.shared.stopped()
    }

    fn next(&self) -> Time {
        self.recording.as_ref().map_or(NEVER, Recording::next)
    }

    fn act(&mut self, mut b: Between<'_>) -> bool {
        let mut changes = false;
        while let Ok(order) = self.orders.try_recv() {
            self.obey(order, &mut b);
            changes = true;
        }
        if let Some(recording) = &mut self.recording {
            changes |= recording.act(&mut b);
        }
        if b.now - self.shown >= SHOW_NS {
            self.shown = b.now;
            b.accounts.turn(b.now);
            self.show(b.now, b.accounts, b.services, b.clients);
        }
        changes
    }

    fn entered(&mut self, datagram: &Datagram, _: &mut [u8]) {
        self.recording.iter_mut().for_each(|r| r.push(&sample(datagram).sent()));
    }

    fn dropped(&mut self, at: Time, packet: &Packet, link: LinkId, reason: DropReason) {
        self.recording.iter_mut().for_each(|r| r.dropped(at, packet, link, reason));
    }

    fn arrived(&mut self, datagram: &Datagram, transit: &Transit) {
        let Some(recording) = &mut self.recording else { return };
        recording.arrived(datagram, transit);
        transit.sent.into_iter().for_each(|at| recording.push(&sample(datagram).delivered(at)));
    }

    fn passed(&mut self, passage: &tcps_net::Passage) {
        self.recording.iter_mut().for_each(|r| r.passed(passage));
    }

    fn gap(&mut self, now: Time, late: Time) {
        self.recording.iter_mut().for_each(|r| r.gap(now, late));
    }
}

impl Ended<Passage> {
    /// What is left of a loop that began at `start` (CLOCK_MONOTONIC).
    fn into_outcome(mut self, start: Time) -> Outcome {
        let mut errors = std::mem::take(&mut self.host.errors);
        errors.extend(self.untaped);
        let [mut doors, services] = self.host.rows(&self.accounts, &self.services, true);
        let of_doors = self.accounts.iter().filter(|((.., service), _)| *service == 0);
        for (((door, from, ..), _), row) in of_doors.zip(&mut doors) {
            let refused = self.refused.get(usize::from(door)).filter(|_| from == NEAR);
            row.unreached = refused.copied().unwrap_or(0);
        }
        let report = self.host.recording.take().map(|recording| {
            let itself = recording.itself(self.own.clone(), self.cpu_ns);
            let mut report = recording.report(&mut self.network, |_| true);
            report.nodes.push(itself);
            errors.append(&mut report.errors);
            Box::new(report)
        });
        Outcome {
            doors,
            services,
            links: self.network.accounts().0.into_iter().map(Link::from).collect(),
            own: self.own,
            errors,
            duration_s: (monotonic_ns() - start) as f64 / 1e9,
            report,
        }
    }
}
