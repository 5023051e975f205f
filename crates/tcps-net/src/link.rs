//! A unidirectional link: a queue, a line with a rate, and what may happen on the line.

use crate::{
    access::Access,
    ahead::Ahead,
    error::NetError,
    line::{Departure, LinkLine},
    opportunity::Opportunities,
    own::ForeignCode,
    packet::InFlight,
    queue::{self, drop_tail::NAME as DROP_TAIL, Flows, Limit, QueueDiscipline, Refused},
    turns::Turns,
    windows::Windows,
};
use tcps_core::{
    ids::VertexId,
    record::DropReason,
    time::{serialisation_ns, Time, NEVER},
};
use tcps_plan::net::Hops;
use tcps_plan::net::{LinkSpec, LinkStats, QueueState};

/// A link with its counters.
pub(crate) struct Link {
    pub from: VertexId,
    pub to: VertexId,
    pub rate_bps: f64,
    pub delay_ns: Time,
    pub up: bool,
    pub busy_until: Time,
    pub busy_total: Time,
    pub stats: LinkStats,
    pub hops: Hops,
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
    pub fn new(
        spec: &LinkSpec,
        flows: &Flows,
        seed: u64,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, NetError> {
        let rate_bps = spec.rate_bps.unwrap_or(f64::INFINITY);
        let calm = spec.medium.is_none()
            && spec.loss.is_none()
            && spec.jitter.is_none()
            && spec.duplicate == 0.0
            && spec.corrupt == 0.0
            && spec.outages.is_empty()
            && spec.slots.is_none()
            && !queue::is_timed(&spec.queue.discipline)
            && !spec.queue.discipline.is_code() // made once, at the start
            && spec.opportunities_ns.is_none()
            && spec.radio.is_none();
        let mode = match spec.queue.discipline.kind.as_str() {
            _ if calm && rate_bps.is_infinite() => Mode::Pure,
            DROP_TAIL if calm => {
                Mode::Ahead(Ahead::new(Limit::of(spec.queue.limit_bytes, spec.queue.limit_packets)))
            }
            _ => Mode::Served(Box::new(Served::new(spec, flows, seed, code)?)),
        };
        let stats = LinkStats { name: spec.name.clone(), ..LinkStats::default() };
        let (from, to, delay_ns) = (spec.from, spec.to, spec.delay_ns);
        Ok(Self {
            from,
            to,
            rate_bps,
            delay_ns,
            up: true,
            busy_until: 0,
            busy_total: 0,
            stats,
            hops: Hops::default(),
            mode,
        })
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

    /// What code of the user's did wrong in its queue and on its line.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        let served = match &self.mode {
            Mode::Served(s) => Some(s),
            _ => None,
        };
        served.into_iter().flat_map(|s| s.queue.failure().into_iter().chain(s.line.failures()))
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
        if served.turns.is_some() {
            let (in_flight, begun, at) = served.use_turns(now, refused)?;
            self.busy_total += served.turns.as_ref()?.mean_ns(in_flight.packet.wire_bytes);
            let departure = served.line.cross(at, at, self.delay_ns, self.up, in_flight);
            return Some(Departure { begun, ..departure });
        }
        if now < self.busy_until {
            return None;
        }
        let in_flight = served.next_in_flight(now, self.rate_bps, refused)?;
        let took = serialisation_ns(in_flight.packet.wire_bytes, self.rate_bps);
        self.busy_until = now.saturating_add(took);
        self.busy_total = self.busy_total.saturating_add(took);
        Some(served.line.cross(now, self.busy_until, self.delay_ns, self.up, in_flight))
    }

    /// When `begin` should be called next after `now`; `NEVER` if nothing waits.
    pub fn next_service(&self, now: Time) -> Time {
        match &self.mode {
            Mode::Served(s) if s.turns.is_some() => s.next_turn(),
            Mode::Served(s) if s.medium.is_none() && s.has_waiting() => {
                s.ready(self.busy_until.max(now), self.rate_bps)
            }
            _ => NEVER,
        }
    }

    /// What waits at `now`.
    pub fn queue(&self, now: Time) -> QueueState {
        let mut wait_ns = self.busy_until.saturating_sub(now).max(0);
        let (packets, bytes) = match &self.mode {
            Mode::Pure => (0, 0),
            Mode::Ahead(ahead) => ahead.waiting(now), // their time is part of `busy_until`
            Mode::Served(served) => {
                let (packets, bytes) = served.waiting();
                wait_ns = match &served.turns {
                    Some(_) if packets > 0 => served.drained_at().saturating_sub(now).max(0),
                    Some(_) => 0,
                    None => wait_ns.saturating_add(self.serialise(bytes.min(u64::from(u32::MAX)) as u32)),
                };
                (packets, bytes)
            }
        };
        QueueState { packets, bytes, wait_ns }
    }

    /// When a packet behind all that wait will have left, as far as that is known.
    pub fn drained_at(&self, now: Time) -> Time {
        now.saturating_add(self.queue(now).wait_ns)
    }

    /// Completes the counters at `now`: of packets whose times are known ahead, only those that have started count
    /// as carried.
    pub fn settle(&self, stats: &mut LinkStats, now: Time) {
        let queue = self.queue(now);
        (stats.waiting_packets, stats.waiting_bytes) = (queue.packets, queue.bytes);
        stats.packets = stats.offered_packets - stats.dropped_packets - stats.waiting_packets;
        stats.bytes = stats.offered_bytes - stats.dropped_bytes - stats.waiting_bytes;
        stats.busy_ns = self.busy_total - self.busy_until.saturating_sub(now).max(0);
        if let Mode::Served(served) = &self.mode {
            stats.marked = served.queue.marked();
            stats.jitter_ns = served.line.drawn().cloned().map(Box::new);
        }
    }
}

/// A link whose packets leave a queue discipline one by one.
pub(crate) struct Served {
    pub queue: Box<dyn QueueDiscipline>,
    pub line: LinkLine,
    /// Number of the medium that it shares.
    pub medium: Option<u16>,
    pub turns: Option<Box<dyn Turns>>,
    slots: Option<Windows>,
    /// A packet that has been taken from the queue but not wholly sent, with the bytes that are left, and when it was taken.
    transit: Option<(InFlight, u32, Time)>,
}

impl Served {
    /// An idle link.
    pub fn new(
        spec: &LinkSpec,
        flows: &Flows,
        seed: u64,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, NetError> {
        Ok(Self {
            queue: queue::build(spec, flows, seed, code)?,
            line: LinkLine::new(spec, seed, code)?,
            medium: None,
            turns: turns(spec),
            slots: spec.slots.as_ref().map(|s| Windows::new(s.cycle_ns, &s.open)),
            transit: None,
        })
    }

    fn has_waiting(&self) -> bool {
        self.queue.packets() > 0 || self.transit.is_some()
    }

    /// Packets that have not wholly left, and their bytes.
    fn waiting(&self) -> (u64, u64) {
        let transit = self.transit.as_ref().map(|t| u64::from(t.0.packet.wire_bytes));
        (self.queue.packets() + u64::from(transit.is_some()), self.queue.bytes() + transit.unwrap_or(0))
    }

    /// Whether nothing is before a packet of `bytes` that arrives at `now`, and it may start.
    pub fn is_free(&self, now: Time, bytes: u32, rate_bps: f64) -> bool {
        let fits = |w: &Windows| w.start(now, serialisation_ns(bytes, rate_bps)) == Some(now);
        !self.has_waiting() && self.turns.is_none() && self.slots.as_ref().is_none_or(fits)
    }

    /// When what waits may start, from `now` on.
    fn ready(&self, now: Time, rate_bps: f64) -> Time {
        let Some(slots) = &self.slots else { return self.queue.opens(now) };
        let length_ns = self.transit.as_ref().map_or(0, |t| serialisation_ns(t.1, rate_bps));
        slots.start(now, length_ns).unwrap_or(now)
    }

    /// The packet that starts at `now`. With slots, the next one is chosen when a slot is open; if it does not fit any
    /// more, it waits for the next slot, and one that fits into none is dropped.
    fn next_in_flight(&mut self, now: Time, rate_bps: f64, refused: &mut Vec<Refused>) -> Option<InFlight> {
        if self.ready(now, rate_bps) > now {
            return None;
        }
        let Some(slots) = &self.slots else { return self.queue.dequeue(now, refused) };
        loop {
            let held = self.transit.take().map(|t| t.0);
            let in_flight = held.or_else(|| self.queue.dequeue(now, refused))?;
            let bytes = in_flight.packet.wire_bytes;
            match slots.start(now, serialisation_ns(bytes, rate_bps)) {
                Some(start) if start <= now => return Some(in_flight),
                Some(_) => {
                    self.transit = Some((in_flight, bytes, now));
                    return None;
                }
                None => refused.push((in_flight.packet, DropReason::Managed)),
            }
        }
    }

    /// Passes turns that nobody can use any more; to be called before a packet is queued.
    pub fn skip_turns(&mut self, now: Time) {
        if let Some(o) = self.turns.as_mut() {
            if self.transit.is_none() && self.queue.packets() == 0 {
                o.skip_to(now);
            }
        }
    }

    /// The next packet whose last byte leaves at or before `now`, and when it was begun and over. [Netravali 2015]
    fn use_turns(&mut self, now: Time, refused: &mut Vec<Refused>) -> Option<(InFlight, Time, Time)> {
        let o = self.turns.as_mut()?;
        while o.next() <= now {
            let at = o.next();
            let taken = self.transit.take();
            let first = |p: InFlight| (p, p.packet.wire_bytes, at);
            let taken = taken.or_else(|| self.queue.dequeue(at, refused).map(first));
            let Some((in_flight, left, begun)) = taken else {
                o.pass();
                continue;
            };
            match left - o.take(left) {
                0 => return Some((in_flight, begun, at)),
                left => self.transit = Some((in_flight, left, begun)),
            }
        }
        None
    }

    fn next_turn(&self) -> Time {
        match &self.turns {
            Some(o) if self.transit.is_some() || self.queue.packets() > 0 => o.next(),
            _ => NEVER,
        }
    }

    fn drained_at(&self) -> Time {
        let bytes = self.queue.bytes() + self.transit.as_ref().map_or(0, |t| u64::from(t.1));
        self.turns.as_ref().map_or(0, |o| o.after((bytes.saturating_sub(1) / u64::from(o.bytes())) as usize))
    }
}

/// The turns of a link, if it has no constant rate.
fn turns(spec: &LinkSpec) -> Option<Box<dyn Turns>> {
    if let Some(moments) = spec.opportunities_ns.as_deref() {
        return Some(Box::new(Opportunities::new(moments)));
    }
    let nr = spec.radio.as_ref()?.nr()?;
    Some(Box::new(Access::new(nr, spec.rate_bps)))
}
