//! The loop of a proxy: from doors into the network, and out again when the network says so.

use super::{
    capture::Tape,
    layers::Layers,
    lock, outcome,
    tally::{Delivery, Tally},
    tape, Outcome, Settings, Shared,
};
use crate::{
    error::RunError,
    os::{
        clock::{monotonic_ns, RunClock},
        socket::MAX_DATAGRAM,
        wait::{awake, privileges, Waiter, GAP_NS},
    },
    report::{RealSelf, Spread},
};
use hdrhistogram::Histogram;
use serde_json::Value;
use std::{os::fd::RawFd, sync::Arc};
use tcps_core::{
    report::histogram,
    time::{Time, MS},
};
use tcps_net::{spec::NetworkSpec, NetEvent, Packet};
use tcps_wire::pcapng::Seen;

/// Packets taken from a place before the others have their turn.
const BATCH: usize = 64;
/// Time between two looks that others may take.
const SHOW_NS: Time = 100 * MS;

/// Where packets come in and go out. Places are numbered as their descriptors.
pub(super) trait Doors: Send {
    /// What can be waited for.
    fn descriptors(&self) -> Vec<RawFd>;
    /// Whether the descriptors are others than when this was last asked; also the moment to forget idle clients.
    fn changed(&mut self, now: Time) -> bool;
    /// The next packet at a place, with its bytes in the buffer.
    fn receive(&mut self, place: usize, clock: &mut RunClock, buffer: &mut [u8]) -> Taken;
    /// Sends a packet that came out of the network; tells whether it went.
    fn deliver(&mut self, entered: &Entered, bytes: &[u8]) -> bool;
    /// Adds a packet to a capture: where it came in, or where it goes out.
    fn tape(&self, tape: &mut Tape, at: Time, entered: &Entered, bytes: &[u8], seen: Seen);
    /// What says when packets came in.
    fn stamps(&self) -> &'static str;
    /// Datagrams that the kernel dropped on the way in, and packets that are for nobody.
    fn troubles(&self) -> (u64, u64);
    /// Packets whose port cannot be read.
    fn unread(&self) -> u64 {
        0
    }
    /// Clients that are known.
    fn clients(&self) -> usize;
}

/// What a place gives.
pub(super) enum Taken {
    /// Nothing more at the moment.
    Empty,
    /// A packet that is not for the network.
    Stranger,
    Packet(Entered),
}

/// A packet that comes in.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entered {
    pub door: u16,
    /// Side that it comes from: `NEAR` or `FAR`.
    pub from: u16,
    /// The client that it is of.
    pub client: u32,
    /// Run time.
    pub arrived: Time,
    pub len: usize,
    pub dscp: u8,
    pub wire_bytes: u32,
}

/// A packet under way.
#[derive(Default)]
struct Letter {
    entered: Entered,
    /// When it entered the network, which never goes back in time: at its arrival or later.
    at: Time,
    bytes: Vec<u8>,
    copies: u16,
}

/// The loop, ready to run.
pub(super) struct Passage {
    shared: Arc<Shared>,
    settings: Settings,
    doors: Box<dyn Doors>,
    layers: Layers,
    tally: Tally,
    tape: Option<Tape>,
    clock: RunClock,
    start: Time,
    letters: Vec<Letter>,
    free: Vec<u32>,
    arrivals: Vec<(Time, u32)>,
    buffer: Vec<u8>,
    /// The network never goes back in time.
    latest: Time,
    shown: Time,
    late: Histogram<u64>,
    gaps: u64,
    errors: Vec<String>,
}

impl Passage {
    /// Between doors, with a network.
    pub fn new(
        settings: &Settings,
        network: NetworkSpec,
        doors: Box<dyn Doors>,
        tally: Tally,
        shared: &Arc<Shared>,
    ) -> Result<Self, RunError> {
        let layers = Layers::new(&network, settings.network.clone(), tally.names(), settings.seed)?;
        let start = monotonic_ns();
        let mut tally = tally;
        *lock(&shared.snapshot) = tally.snapshot(0, 0);
        Ok(Self {
            tape: tape(settings, doors.stamps() != "kernel")?,
            shared: shared.clone(),
            settings: settings.clone(),
            doors,
            layers,
            tally,
            clock: RunClock::new(start),
            start,
            letters: Vec::new(),
            free: Vec::new(),
            arrivals: Vec::with_capacity(BATCH),
            buffer: vec![0; MAX_DATAGRAM],
            latest: 0,
            shown: 0,
            late: histogram(),
            gaps: 0,
            errors: Vec::new(),
        })
    }

    /// Runs until it is stopped.
    pub fn run(mut self) -> Outcome {
        let mut privileges = privileges(self.settings.realtime);
        let _awake = awake(self.settings.realtime, &mut privileges);
        let mut waiter = self.waiter();
        while !self.shared.stopped() {
            let due = self.layers.poll_timeout();
            waiter.wait(due.saturating_add(self.start));
            let now = self.clock.now();
            waiter.ready().for_each(|place| self.receive(place));
            self.enter();
            if due <= now {
                let _ = self.late.record((now - due) as u64);
                self.gaps += u64::from(now - due > GAP_NS);
            }
            self.latest = self.latest.max(now);
            self.advance();
            if now - self.shown >= SHOW_NS {
                self.shown = now;
                self.look_around(now);
            }
            if self.doors.changed(now) {
                waiter = self.waiter();
            }
        }
        self.finish(privileges)
    }

    fn waiter(&self) -> Waiter {
        Waiter::new(&self.doors.descriptors(), self.settings.waiting, self.settings.spin_ns)
    }

    /// What others asked for, and what they may see.
    fn look_around(&mut self, now: Time) {
        let change = lock(&self.shared.change).take();
        if let Some((spec, text)) = change {
            self.change(&spec, text);
        }
        let snapshot = self.tally.snapshot(now, self.doors.clients());
        *lock(&self.shared.snapshot) = snapshot;
    }

    fn change(&mut self, spec: &NetworkSpec, text: Value) {
        if let Err(e) = self.layers.change(self.latest, spec, text) {
            self.errors.push(format!("the network could not be changed: {e}"));
        }
    }

    fn receive(&mut self, place: usize) {
        for _ in 0..BATCH {
            match self.doors.receive(place, &mut self.clock, &mut self.buffer) {
                Taken::Empty => return,
                Taken::Stranger => {}
                Taken::Packet(e) => self.post(e),
            }
        }
    }

    /// Keeps what the buffer holds until it enters.
    fn post(&mut self, entered: Entered) {
        let bytes = &self.buffer[..entered.len];
        self.tally.of(entered.door, entered.from).came(entered.len);
        if let Some(tape) = &mut self.tape {
            self.doors.tape(tape, self.start + entered.arrived, &entered, bytes, Seen::Coming);
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.letters.push(Letter::default());
            self.letters.len() as u32 - 1
        });
        let letter = &mut self.letters[id as usize];
        (letter.entered, letter.copies) = (entered, 0);
        letter.bytes.clear();
        letter.bytes.extend_from_slice(bytes);
        self.arrivals.push((entered.arrived, id));
    }

    /// Lets what was read into the network, in the order in which it came.
    fn enter(&mut self) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.sort_by_key(|(arrived, _)| *arrived);
        for (arrived, payload) in arrivals.drain(..) {
            self.latest = self.latest.max(arrived);
            self.advance();
            let letter = &mut self.letters[payload as usize];
            letter.at = self.latest;
            let Entered { door, from, dscp, wire_bytes, .. } = letter.entered;
            let dst = if from == super::NEAR { super::FAR } else { super::NEAR };
            let packet = Packet { payload, class: door, index: 0, dst, dscp, wire_bytes, sent_ns: arrived };
            self.layers.send(self.latest, from, packet);
        }
        self.arrivals = arrivals;
    }

    fn advance(&mut self) {
        let Self { layers, letters, free, doors, tally, tape, clock, start, latest, .. } = self;
        layers.advance(*latest, |event| {
            let letter_of = |p: &Packet| p.payload as usize;
            let done = match event {
                NetEvent::Duplicated { packet, .. } => {
                    letters[letter_of(&packet)].copies += 1;
                    return;
                }
                NetEvent::Dropped { packet, reason, .. } => {
                    let e = &letters[letter_of(&packet)].entered;
                    tally.of(e.door, e.from).lost(reason);
                    packet.payload
                }
                NetEvent::Arrived { at, packet } => {
                    let letter = &letters[letter_of(&packet)];
                    let e = &letter.entered;
                    let went = doors.deliver(e, &letter.bytes);
                    let sent = clock.now();
                    let delivery = Delivery {
                        arrived: e.arrived,
                        set_ns: at - letter.at,
                        delivered_ns: sent - e.arrived,
                        bytes: letter.bytes.len(),
                    };
                    let count = tally.of(e.door, e.from);
                    if went {
                        count.went(delivery);
                    } else {
                        count.unsent(delivery);
                    }
                    if let (true, Some(tape)) = (went, tape.as_mut()) {
                        doors.tape(tape, *start + sent, e, &letter.bytes, Seen::Leaving);
                    }
                    packet.payload
                }
            };
            let letter = &mut letters[done as usize];
            match letter.copies.checked_sub(1) {
                Some(left) => letter.copies = left,
                None => free.push(done),
            }
        });
    }

    fn finish(self, privileges: Vec<String>) -> Outcome {
        let (socket_drops, strangers) = self.doors.troubles();
        let own = RealSelf {
            ticks: self.late.len(),
            late_ns: Spread::of(&self.late),
            gaps_over_1ms: self.gaps,
            socket_drops,
            strangers,
            unread: self.doors.unread(),
            clock_steps: self.clock.steps(),
            waiting: format!("{:?}", self.settings.waiting).to_lowercase(),
            privileges,
            ..RealSelf::default()
        };
        let mut errors = self.errors;
        errors.extend(self.tape.and_then(Tape::finish));
        outcome(self.tally, self.layers.network(), own, errors, self.start)
    }
}
