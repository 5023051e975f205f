//! A unidirectional link: a queue, a line with a rate, and what may happen on the line.

use crate::{
    jitter::Jitter,
    loss,
    opportunity::Opportunities,
    packet::{Packet, Parcel},
    queue::{self, Flows, Limit, QueueDiscipline, Refused},
    spec::{Discipline, LinkSpec},
    stats::{LinkStats, QueueState},
};
use std::collections::VecDeque;
use tcps_core::{
    model::{DelayModel, LossModel},
    record::DropReason,
    seed::Stream,
    time::{serialisation_ns, Time, NEVER},
};

/// A link with its counters.
pub(crate) struct Link {
    pub from: u16,
    pub to: u16,
    pub rate_bps: f64,
    pub delay_ns: Time,
    pub up: bool,
    pub busy_until: Time,
    pub busy_total: Time,
    pub stats: LinkStats,
    pub mode: Mode,
}

/// The three ways of computing a link (see the crate's documentation).
pub(crate) enum Mode {
    Pure,
    Ahead(Ahead),
    Served(Box<Served>),
}

impl Link {
    /// The cheapest exact link for a specification.
    pub fn new(spec: &LinkSpec, flows: &Flows, seed: u64) -> Self {
        let rate_bps = spec.rate_bps.unwrap_or(f64::INFINITY);
        let calm = spec.medium.is_none()
            && spec.loss.is_none()
            && spec.jitter.is_none()
            && spec.duplicate == 0.0
            && spec.corrupt == 0.0
            && spec.outages.is_empty()
            && spec.opportunities_ns.is_none();
        let mode = match &spec.queue.discipline {
            _ if calm && rate_bps.is_infinite() => Mode::Pure,
            Discipline::DropTail if calm => Mode::Ahead(Ahead::new(Limit::of(&spec.queue))),
            _ => Mode::Served(Box::new(Served::new(spec, flows, seed))),
        };
        let stats = LinkStats { name: spec.name.clone(), ..LinkStats::default() };
        let (from, to, delay_ns) = (spec.from, spec.to, spec.delay_ns);
        Self { from, to, rate_bps, delay_ns, up: true, busy_until: 0, busy_total: 0, stats, mode }
    }

    /// Time that a packet occupies the line.
    #[inline]
    pub fn serialise(&self, bytes: u32) -> Time {
        serialisation_ns(bytes, self.rate_bps)
    }

    /// True for a link that only delays.
    pub fn is_pure(&self) -> bool {
        matches!(self.mode, Mode::Pure)
    }

    /// The served part, if that is how the link is computed.
    pub fn served(&mut self) -> Option<&mut Served> {
        match &mut self.mode {
            Mode::Served(s) => Some(s),
            _ => None,
        }
    }

    /// True if packets wait for the line.
    pub fn has_waiting(&self) -> bool {
        matches!(&self.mode, Mode::Served(s) if s.queue.packets() > 0)
    }

    /// True while no outage is scheduled and no event took the link down.
    pub fn is_up(&self, now: Time) -> bool {
        self.up && !matches!(&self.mode, Mode::Served(s) if s.line.in_outage(now))
    }

    /// Begins the next transmission of a served link, if the line is free and something waits.
    pub fn begin(&mut self, now: Time, refused: &mut Vec<Refused>) -> Option<Departure> {
        let Mode::Served(served) = &mut self.mode else { return None };
        if served.opportunities.is_some() {
            let (parcel, at) = served.use_opportunities(now, refused)?;
            self.busy_total += served.opportunities.as_ref()?.mean_ns(parcel.packet.wire_bytes);
            return Some(served.line.cross(at, at, self.delay_ns, self.up, parcel));
        }
        if now < self.busy_until {
            return None;
        }
        let parcel = served.queue.dequeue(now, refused)?;
        let took = serialisation_ns(parcel.packet.wire_bytes, self.rate_bps);
        self.busy_until = now.saturating_add(took);
        self.busy_total = self.busy_total.saturating_add(took);
        Some(served.line.cross(now, self.busy_until, self.delay_ns, self.up, parcel))
    }

    /// When `begin` should be called next; `NEVER` if nothing waits.
    pub fn next_service(&self) -> Time {
        match &self.mode {
            Mode::Served(s) if s.opportunities.is_some() => s.next_opportunity(),
            Mode::Served(s) if s.medium.is_none() && s.queue.packets() > 0 => self.busy_until,
            _ => NEVER,
        }
    }

    /// What waits at `now`.
    pub fn queue(&self, now: Time) -> QueueState {
        let (packets, bytes, mut wait_ns) = match &self.mode {
            Mode::Pure => (0, 0, 0),
            Mode::Ahead(a) => a.waiting(now),
            Mode::Served(s) => {
                let bytes = s.queue.bytes();
                (
                    s.queue.packets(),
                    bytes,
                    serialisation_ns(bytes.min(u64::from(u32::MAX)) as u32, self.rate_bps),
                )
            }
        };
        wait_ns = wait_ns.saturating_add(self.busy_until.saturating_sub(now).max(0));
        QueueState { packets, bytes, wait_ns }
    }

    /// When a packet behind all that wait will have left, as far as that is known.
    pub fn drained_at(&self, now: Time) -> Time {
        match &self.mode {
            Mode::Served(s) if s.opportunities.is_some() => s.drained_at(),
            _ => now.saturating_add(self.queue(now).wait_ns),
        }
    }

    /// Completes the counters at `now`: of packets whose times are known ahead, only those that have started count
    /// as carried.
    pub fn settle(&self, stats: &mut LinkStats, now: Time) {
        let queue = self.queue(now);
        let transit = match &self.mode {
            Mode::Served(s) => s.transit.as_ref().map(|t| t.0.packet.wire_bytes),
            _ => None,
        };
        stats.waiting_packets = queue.packets + transit.map_or(0, |_| 1);
        stats.waiting_bytes = queue.bytes + transit.map_or(0, u64::from);
        stats.packets = stats.offered_packets - stats.dropped_packets - stats.waiting_packets;
        stats.bytes = stats.offered_bytes - stats.dropped_bytes - stats.waiting_bytes;
        stats.busy_ns = self.busy_total - self.busy_until.saturating_sub(now).max(0);
    }
}

/// A first-in-first-out queue at a constant rate whose departures are known on arrival.
#[derive(Debug)]
pub(crate) struct Ahead {
    limit: Limit,
    starts: VecDeque<(Time, u32)>,
    waiting_bytes: u64,
}

impl Ahead {
    fn new(limit: Limit) -> Self {
        Self { limit, starts: VecDeque::new(), waiting_bytes: 0 }
    }

    /// The start of a packet that arrives at `now`, or `None` if it does not fit. Departures come before arrivals
    /// of the same moment; a packet that finds the line free never counts against the limit. [PROTOCOLS 1.3]
    #[inline]
    pub fn admit(&mut self, now: Time, busy_until: Time, bytes: u32) -> Option<Time> {
        if busy_until <= now {
            self.starts.clear();
            self.waiting_bytes = 0;
            return Some(now);
        }
        while let Some(&(start, b)) = self.starts.front() {
            if start > now {
                break;
            }
            self.waiting_bytes -= u64::from(b);
            self.starts.pop_front();
        }
        if !self.limit.admits(self.starts.len() as u64, self.waiting_bytes, bytes) {
            return None;
        }
        self.starts.push_back((busy_until, bytes));
        self.waiting_bytes += u64::from(bytes);
        Some(busy_until)
    }

    /// Packets and bytes that wait after the last admission.
    #[inline]
    pub fn load(&self) -> (u64, u64) {
        (self.starts.len() as u64, self.waiting_bytes)
    }

    /// Packets and bytes that wait at `now`; their time is part of `busy_until`.
    fn waiting(&self, now: Time) -> (u64, u64, Time) {
        let later = self.starts.iter().rev().take_while(|s| s.0 > now);
        let (n, b) = later.fold((0, 0), |(n, b), s| (n + 1, b + u64::from(s.1)));
        (n, b, 0)
    }
}

/// A link whose packets leave a queue discipline one by one.
pub(crate) struct Served {
    pub queue: Box<dyn QueueDiscipline>,
    pub line: Line,
    /// Number of the medium that it shares.
    pub medium: Option<u16>,
    pub opportunities: Option<Opportunities>,
    /// A packet that has been taken from the queue but not wholly sent, with the bytes that are left.
    transit: Option<(Parcel, u32)>,
}

impl Served {
    /// An idle link.
    pub fn new(spec: &LinkSpec, flows: &Flows, seed: u64) -> Self {
        Self {
            queue: queue::build(spec, flows, seed),
            line: Line::new(spec, seed),
            medium: None,
            opportunities: spec.opportunities_ns.as_deref().map(Opportunities::new),
            transit: None,
        }
    }

    /// Passes opportunities that nobody can use any more; to be called before a packet is queued.
    pub fn skip_opportunities(&mut self, now: Time) {
        if let Some(o) = self.opportunities.as_mut() {
            if self.transit.is_none() && self.queue.packets() == 0 {
                o.skip_to(now);
            }
        }
    }

    /// The next packet whose last byte leaves at or before `now`, and when that was. [Netravali 2015]
    fn use_opportunities(&mut self, now: Time, refused: &mut Vec<Refused>) -> Option<(Parcel, Time)> {
        let o = self.opportunities.as_mut()?;
        while o.next() <= now {
            let at = o.next();
            let taken = self.transit.take();
            let taken = taken.or_else(|| self.queue.dequeue(at, refused).map(|p| (p, p.packet.wire_bytes)));
            let Some((parcel, left)) = taken else {
                o.pass();
                continue;
            };
            match left - o.take(left) {
                0 => return Some((parcel, at)),
                left => self.transit = Some((parcel, left)),
            }
        }
        None
    }

    fn next_opportunity(&self) -> Time {
        match &self.opportunities {
            Some(o) if self.transit.is_some() || self.queue.packets() > 0 => o.next(),
            _ => NEVER,
        }
    }

    fn drained_at(&self) -> Time {
        let bytes = self.queue.bytes() + self.transit.as_ref().map_or(0, |t| u64::from(t.1));
        let more = bytes.saturating_sub(1) / u64::from(crate::opportunity::OPPORTUNITY_BYTES);
        self.opportunities.as_ref().map_or(0, |o| o.after(more as usize))
    }
}

/// What became of a packet that started.
pub(crate) struct Departure {
    pub packet: Packet,
    pub start: Time,
    /// Why it is lost.
    pub lost: Option<DropReason>,
    /// Arrivals at the far end, and whether a bit was changed: none, one, or two if it was duplicated.
    pub arrivals: [Option<(Time, bool)>; 2],
}

/// The line behind the queue: outages, loss, jitter, copies, changed bits. Each has its own random stream.
pub(crate) struct Line {
    loss: Option<Box<dyn LossModel>>,
    jitter: Option<Jitter>,
    duplicate: (f64, Stream),
    corrupt: (f64, Stream),
    outages: Vec<(Time, Time)>,
    /// Latest arrival at the far end: without reordering, none is earlier.
    pub last_arrival: Time,
    name: String,
    seed: u64,
    loss_changes: u32,
}

impl Line {
    fn new(spec: &LinkSpec, seed: u64) -> Self {
        let name = |what: &str| format!("links.{}.{what}", spec.name);
        let mut outages = spec.outages.clone();
        outages.sort_unstable();
        Self {
            loss: spec.loss.as_ref().map(|l| loss::build(l, seed, &name("loss"))),
            jitter: spec.jitter.as_ref().map(|j| Jitter::new(j, seed, &name("jitter"))),
            duplicate: (spec.duplicate, Stream::new(seed, &name("duplicate"))),
            corrupt: (spec.corrupt, Stream::new(seed, &name("corrupt"))),
            outages,
            last_arrival: Time::MIN,
            name: name("loss"),
            seed,
            loss_changes: 0,
        }
    }

    /// Replaces the loss by an independent one with a fresh stream.
    pub fn set_loss(&mut self, p: f64) {
        self.loss_changes += 1;
        let name = format!("{}.{}", self.name, self.loss_changes);
        self.loss = Some(loss::build(&crate::spec::LossSpec::Random { p }, self.seed, &name));
    }

    /// Whether a scheduled outage covers `now`.
    pub fn in_outage(&self, now: Time) -> bool {
        self.outages.iter().take_while(|o| o.0 <= now).any(|o| now < o.1)
    }

    /// Sends a packet that starts at `start` and ends at `end`. A packet that is lost occupies the line like any other;
    /// with opportunities, the moment that counts is the one of its last byte.
    fn cross(&mut self, start: Time, end: Time, delay_ns: Time, up: bool, parcel: Parcel) -> Departure {
        let lost = if !up || self.in_outage(start) {
            Some(DropReason::Outage)
        } else if self.loss.as_mut().is_some_and(|l| l.lose(start)) {
            Some(DropReason::Loss)
        } else {
            None
        };
        let mut departure = Departure { packet: parcel.packet, start, lost, arrivals: [None; 2] };
        if lost.is_none() {
            let copies = 1 + usize::from(self.duplicate.1.chance(self.duplicate.0));
            for arrival in &mut departure.arrivals[..copies] {
                let at = self.arrive(end, delay_ns);
                *arrival = Some((at, parcel.corrupted | self.corrupt.1.chance(self.corrupt.0)));
            }
        }
        departure
    }

    fn arrive(&mut self, end: Time, delay_ns: Time) -> Time {
        let extra = self.jitter.as_mut().map_or(0, |j| j.delay(end));
        let at = end.saturating_add(delay_ns).saturating_add(extra);
        if self.jitter.as_ref().is_some_and(Jitter::reorders) {
            return at;
        }
        self.last_arrival = self.last_arrival.max(at);
        self.last_arrival
    }
}
