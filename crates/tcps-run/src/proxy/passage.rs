//! A proxy as the host of an engine: until it is stopped, with what others ask of it and may see of it.

use super::{
    change::Changing,
    shared::{Outcome, Settings, Shared, Snapshot},
};
use crate::{
    emu::{lock, Accounts, Between, Ended, Engine, EngineHost, Layers, Pace, Ports, Row, Tape, FAR, NEAR},
    os::clock::monotonic_ns,
};
use std::sync::Arc;
use tcps_core::time::{Time, MS};
use tcps_plan::net::NetworkSpec;
use tcps_plan::{report::Link, RunError};

/// Time between two looks that others may take.
const SHOW_NS: Time = 100 * MS;

/// What others ask for, and what they are shown.
struct Passage {
    shared: Arc<Shared>,
    changing: Changing,
    /// Of the doors.
    names: Vec<String>,
    shown: Time,
    errors: Vec<String>,
}

/// The loop between ports, over a network, ready to run.
pub(super) fn passage(
    settings: &Settings,
    network: &NetworkSpec,
    ports: Box<dyn Ports>,
    names: Vec<String>,
    shared: &Arc<Shared>,
) -> Result<impl FnOnce() -> Outcome + Send, RunError> {
    let (text, seed, start) = (settings.network.clone(), settings.seed, monotonic_ns());
    let (changing, layers) = Changing::begin(network, text, names.clone(), seed)?;
    let raw = ports.stamps() != "kernel";
    let tape = settings.capture.as_ref().map(|path| Tape::begin(path, raw)).transpose()?;
    let ways = (0..names.len() as u16).flat_map(|door| [(door, NEAR, FAR), (door, FAR, NEAR)]);
    let accounts = Accounts::new(ways, true);
    let Settings { waiting, spin_ns, realtime, .. } = *settings;
    let pace = Pace { waiting, spin_ns, realtime };
    let passage = Passage { shared: shared.clone(), changing, names, shown: 0, errors: Vec::new() };
    passage.show(0, &accounts, 0);
    let engine = Engine::new(passage, ports, layers, accounts, start, pace).taped(tape);
    Ok(move || engine.run().into_outcome(start))
}

impl Passage {
    fn rows(&self, accounts: &Accounts, whole: bool) -> Vec<Row> {
        let row = |((door, from, _), account)| Row::of(&self.names[usize::from(door)], from, account, whole);
        accounts.iter().map(row).collect()
    }

    fn show(&self, now: Time, accounts: &Accounts, clients: usize) {
        let doors = self.rows(accounts, false);
        *lock(&self.shared.snapshot) = Snapshot { t_s: now as f64 / 1e9, doors, clients };
    }
}

impl EngineHost for Passage {
    fn goes_on(&mut self, _: Time, _: &Layers) -> bool {
        !self.shared.stopped()
    }

    fn act(&mut self, b: Between<'_>) -> bool {
        if b.now - self.shown < SHOW_NS {
            return false;
        }
        self.shown = b.now;
        let change = lock(&self.shared.change).take();
        let changes = change.is_some();
        if let Some((spec, text)) = change {
            if let Err(e) = self.changing.change(b.network, b.latest, &spec, text) {
                self.errors.push(format!("the network could not be changed: {e}"));
            }
        }
        b.accounts.turn(b.now);
        self.show(b.now, b.accounts, b.clients);
        changes
    }
}

impl Ended<Passage> {
    /// What is left of a loop that began at `start` (CLOCK_MONOTONIC).
    fn into_outcome(mut self, start: Time) -> Outcome {
        let mut errors = std::mem::take(&mut self.host.errors);
        errors.extend(self.untaped);
        let mut doors = self.host.rows(&self.accounts, true);
        for (((door, from, _), _), row) in self.accounts.iter().zip(&mut doors) {
            let refused = self.refused.get(usize::from(door)).filter(|_| from == NEAR);
            row.unreached = refused.copied().unwrap_or(0);
        }
        Outcome {
            doors,
            links: self.network.accounts().0.into_iter().map(Link::from).collect(),
            own: self.own,
            errors,
            duration_s: (monotonic_ns() - start) as f64 / 1e9,
        }
    }
}
