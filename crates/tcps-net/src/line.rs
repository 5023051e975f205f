//! The line behind a queue: outages, loss, jitter, copies, changed bits. Each has its own random stream.

use crate::{
    access::Harq,
    error::NetError,
    jitter::Jitter,
    loss::{self, RandomLoss},
    own::{ForeignCode, NoCode, OwnLoss},
    packet::{InFlight, Packet},
};
use hdrhistogram::Histogram;
use tcps_core::{model::LossModel, record::DropReason, report::histogram, seed::Stream, time::Time};
use tcps_plan::net::{JitterSpec, LinkSpec};

/// What became of a packet that started.
pub(crate) struct Departure {
    pub in_flight: InFlight,
    pub start: Time,
    /// When its first byte was put on the line.
    pub begun: Time,
    /// Why it is lost.
    pub lost: Option<DropReason>,
    /// Arrivals at the far end, and whether a bit was changed here: none, one, or two if it was duplicated.
    pub arrivals: [Option<(Time, bool)>; 2],
    /// When it was wholly on the line, and how long it took to send it again.
    pub end: Time,
    pub again_ns: Time,
}

/// A line and its random streams.
pub(crate) struct LinkLine {
    loss: Option<Box<dyn LossModel>>,
    /// That of the user's, in place of it.
    own: Option<OwnLoss>,
    jitter: Option<Jitter>,
    /// The extra delays that it drew.
    drawn: Option<Box<Histogram<u64>>>,
    /// What code of the user's did wrong before another jitter took its place.
    failed: Option<String>,
    /// Retransmissions of a radio link, and what a packet takes there besides its wait.
    harq: Option<Harq>,
    radio_ns: Time,
    duplicate: (f64, Stream),
    corrupt: (f64, Stream),
    outages: Vec<(Time, Time)>,
    /// Latest arrival at the far end: without reordering, none is earlier.
    pub last_arrival: Time,
    name: String,
    seed: u64,
    changes: u32,
}

impl LinkLine {
    pub fn new(spec: &LinkSpec, seed: u64, code: &mut dyn ForeignCode) -> Result<Self, NetError> {
        let name = |what: &str| format!("links.{}.{what}", spec.name);
        let (own, built_in) = spec.loss.iter().partition::<Vec<_>, _>(|l| l.is_code());
        let loss = built_in.first().map(|l| loss::build(l, Stream::new(seed, &name("loss"))));
        let place = format!("links.{}", spec.name);
        let fault = |fault| NetError::of(&place, "loss", fault);
        let own = own.first().map(|l| Ok(OwnLoss::new(code.loss(l, &spec.name, seed)?, &l.kind, &spec.name)));
        let unloaded = |key: &'static str| {
            let place = &place;
            move |e| NetError::code(place, key, e)
        };
        let own = own.transpose().map_err(unloaded("loss"))?;
        let jitter = spec.jitter.as_ref().map(|j| Jitter::new(j, &spec.name, seed, code));
        Ok(Self {
            loss: loss.transpose().map_err(fault)?,
            own,
            jitter: jitter.transpose().map_err(unloaded("jitter"))?,
            drawn: None,
            failed: None,
            harq: Harq::of(spec, seed),
            radio_ns: spec.radio.as_ref().and_then(|r| r.nr()).map_or(0, |nr| nr.slot_ns + nr.processing_ns),
            duplicate: (spec.duplicate, Stream::new(seed, &name("duplicate"))),
            corrupt: (spec.corrupt, Stream::new(seed, &name("corrupt"))),
            outages: spec.outages.clone(),
            last_arrival: Time::MIN,
            name: spec.name.clone(),
            seed,
            changes: 0,
        })
    }

    /// What code of the user's did wrong.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        let loss = self.own.as_ref().and_then(OwnLoss::failure);
        let jitter = self.jitter.as_ref().and_then(Jitter::failure);
        loss.into_iter().chain(self.failed.clone()).chain(jitter)
    }

    /// The extra delays that it drew, of all settings that its jitter had.
    pub fn drawn(&self) -> Option<&Histogram<u64>> {
        self.drawn.as_deref()
    }

    /// Replaces the loss by an independent one with a fresh stream.
    pub fn set_loss(&mut self, p: f64) {
        self.changes += 1;
        let name = format!("links.{}.loss.{}", self.name, self.changes);
        self.own.iter_mut().for_each(OwnLoss::end);
        self.loss = Some(Box::new(RandomLoss { p, stream: Stream::new(self.seed, &name) }));
    }

    /// Replaces the extra delay by one of a built-in model with a fresh stream.
    pub fn set_jitter(&mut self, spec: &JitterSpec) -> Result<(), NetError> {
        self.changes += 1;
        let name = format!("{}.{}", self.name, self.changes);
        let next = Jitter::new(spec, &name, self.seed, &mut NoCode);
        let next = next.map_err(|e| NetError::code(format!("links.{}", self.name), "jitter", e))?;
        self.failed = self.failed.take().or_else(|| self.jitter.as_ref().and_then(Jitter::failure));
        self.jitter = Some(next);
        Ok(())
    }

    /// Another probability that a packet is delivered twice, from the same stream.
    pub fn set_duplicate(&mut self, p: f64) {
        self.duplicate.0 = p;
    }

    /// Whether a scheduled outage covers `now`.
    pub fn in_outage(&self, now: Time) -> bool {
        self.outages.iter().take_while(|o| o.0 <= now).any(|o| now < o.1)
    }

    /// Sends a packet that starts at `start` and ends at `end`. A packet that is lost occupies the line like any other;
    /// with opportunities, the moment that counts is the one of its last byte.
    pub fn cross(
        &mut self,
        start: Time,
        end: Time,
        delay_ns: Time,
        up: bool,
        in_flight: InFlight,
    ) -> Departure {
        let again_ns = self.harq.as_mut().map_or(Some(0), Harq::delay);
        let lost = if !up || self.in_outage(start) {
            Some(DropReason::Outage)
        } else if again_ns.is_none()
            || self.loss.as_mut().is_some_and(|l| l.lose(start))
            || self.own.as_mut().is_some_and(|l| l.lose(start, &in_flight.packet))
        {
            Some(DropReason::Loss)
        } else {
            None
        };
        let mut departure = Departure {
            in_flight,
            start,
            begun: start,
            lost,
            arrivals: [None; 2],
            end,
            again_ns: again_ns.unwrap_or(0),
        };
        if lost.is_none() {
            let copies = 1 + usize::from(self.duplicate.1.chance(self.duplicate.0));
            for arrival in &mut departure.arrivals[..copies] {
                let delay_ns = delay_ns + self.radio_ns + again_ns.unwrap_or(0);
                let at = self.arrive(end, delay_ns, &in_flight.packet);
                *arrival = Some((at, self.corrupt.1.chance(self.corrupt.0)));
            }
        }
        departure
    }

    fn arrive(&mut self, end: Time, delay_ns: Time, packet: &Packet) -> Time {
        let extra = self.jitter.as_mut().map_or(0, |j| {
            let extra = j.delay(end, packet);
            let drawn = self.drawn.get_or_insert_with(|| Box::new(histogram()));
            let _ = drawn.record(extra.max(0) as u64);
            extra
        });
        let at = end.saturating_add(delay_ns).saturating_add(extra);
        if self.jitter.as_ref().is_some_and(Jitter::reorders) {
            return at;
        }
        self.last_arrival = self.last_arrival.max(at);
        self.last_arrival
    }
}
