//! Transport `irtp`: crucial samples are sent until acknowledged, the others at a rate that follows losses, the newest
//! replacing those that wait (after Ping 2005).
//!
//! ```text
//! window   +1 packet a round trip, halved at a loss, at most once a round trip       rate = window / round trip
//! sample   crucial ──► at once        other ──► at once if the rate allows, else it waits and the next one replaces it
//! receiver acknowledges crucial datagrams, reports every 20 ms how many it has had: each once, and none that was
//! sent again, which would hide that the first was lost
//! ```

use super::keys::{Keyed, Keys, AGAIN};
use crate::{
    channel::{ChannelContext, Side},
    numbered::Heard,
    params::{Mtu, Overhead, Params, Transport, TransportError, PERIOD},
};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    params,
    record::Kind,
    sample::Meta,
    time::{Time, SECOND},
};
use tcps_wire::{stream::Repr, Error};

/// The window is never smaller, in packets.
const LEAST_WINDOW: f64 = 1.0;
/// The window is never larger than what the nominal rate of the flows needs, so many times.
const MOST_WINDOW: f64 = 2.0;
/// Packets that may leave at once after a pause.
const DEPTH: f64 = 4.0;

params! {
    /// What it tells.
    pub(crate) struct Given {
        report_ns: Time = Ns, "20 ms", PERIOD, "time between the receiver's reports";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 4,
    name: "irtp",
    doc: "retransmits key samples; sends the others at a rate of one window per round-trip time, and halves it after a loss (after Ping 2005)",
    params: &[Mtu::TABLE, Overhead::TABLE, Keys::TABLE, Given::TABLE],
    draws: Draws::No,
    make: Transport::of(|params, side, ctx| Ok(Box::new(Irtp::from_params(params, side, ctx)?))),
};

/// An endpoint of the transport.
#[derive(Debug)]
pub(crate) struct Irtp {
    keyed: Keyed,
    rate: Aimd,
    waiting: Vec<Sample>,
    had: u32,
    arrivals: Arrivals,
    report_ns: Time,
    next_report_ns: Option<Time>,
}

/// A sample that waits for the rate to allow it.
#[derive(Debug)]
struct Sample {
    meta: Meta,
    bytes: Vec<u8>,
    waits: bool,
}

impl Irtp {
    /// `key_every`: every so many samples one is crucial; `tries`: how often it is sent again at most; `report_ns`: time
    /// between reports.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let nominal =
            ctx.flows.iter().filter(|f| f.to != side).map(|f| 1.0 / f.period_ns.max(1) as f64).sum();
        Ok(Self {
            keyed: Keyed::from_params(params, side, ctx)?,
            rate: Aimd::new(nominal),
            waiting: Vec::new(),
            had: 0,
            arrivals: Arrivals::default(),
            report_ns: params.read::<Given>()?.report_ns,
            next_report_ns: None,
        })
    }

    fn send(&mut self, now: Time, meta: &Meta, sample: &[u8]) {
        let crucial = self.keyed.is_key(meta);
        self.rate.refill(now);
        if crucial {
            self.supersede(now, meta.flow);
            self.transmit(now, meta, sample, true);
        } else if self.rate.allows() && !self.waiting.iter().any(|w| w.waits && w.meta.flow == meta.flow) {
            self.transmit(now, meta, sample, false);
        } else {
            self.supersede(now, meta.flow);
            self.wait(meta, sample);
            self.release(now);
        }
    }

    fn transmit(&mut self, now: Time, meta: &Meta, sample: &[u8], crucial: bool) {
        let Self { keyed, rate, .. } = self;
        keyed.send(now, meta, sample, crucial, || rate.spend());
    }

    /// What waits of a flow is out of date.
    // [Ping 2005]
    fn supersede(&mut self, now: Time, flow: FlowId) {
        for old in self.waiting.iter_mut().filter(|w| w.waits && w.meta.flow == flow) {
            old.waits = false;
            self.keyed.stream.given_up(now, Kind::Suppressed, &old.meta);
        }
    }

    fn wait(&mut self, meta: &Meta, sample: &[u8]) {
        let at = match self.waiting.iter().position(|w| w.meta.flow == meta.flow) {
            Some(at) => at,
            None => {
                self.waiting.push(Sample { meta: *meta, bytes: Vec::new(), waits: false });
                self.waiting.len() - 1
            }
        };
        let place = &mut self.waiting[at];
        (place.meta, place.waits) = (*meta, true);
        place.bytes.clear();
        place.bytes.extend_from_slice(sample);
    }

    /// Sends what waits as far as the rate allows.
    fn release(&mut self, now: Time) {
        self.rate.refill(now);
        while self.rate.allows() {
            let oldest = (0..self.waiting.len()).filter(|&i| self.waiting[i].waits);
            let Some(at) = oldest.min_by_key(|&i| self.waiting[i].meta.origin_ns) else { return };
            self.waiting[at].waits = false;
            let (meta, bytes) = (self.waiting[at].meta, std::mem::take(&mut self.waiting[at].bytes));
            self.transmit(now, &meta, &bytes, false);
            self.waiting[at].bytes = bytes;
        }
    }

    fn receive(&mut self, now: Time, bytes: &[u8], received_ns: Time) -> Result<(), Error> {
        match self.keyed.receive(now, bytes)? {
            Heard::Data { class, sequence, whole } => {
                self.count(now, sequence, class);
                if let Some(meta) = whole {
                    self.keyed.stream.deliver(meta, received_ns);
                }
            }
            Heard::Ack { .. } => {}
            Heard::Report { newest, had } => {
                self.rate.report(now, newest, had, self.keyed.round_trip_ns());
                self.release(now);
            }
            Heard::Request { .. } => return Err(Error::Unknown),
        }
        Ok(())
    }

    fn count(&mut self, now: Time, sequence: u16, class: u8) {
        if class & AGAIN == 0 && self.arrivals.is_new(sequence) {
            self.had = self.had.wrapping_add(1);
        }
        // There is nothing to report as long as all that came was sent again.
        if self.arrivals.newest.is_some() {
            self.next_report_ns.get_or_insert(now + self.report_ns);
        }
    }

    fn report(&mut self, now: Time) {
        if let Some(newest) = self.arrivals.newest.filter(|_| self.next_report_ns.is_some_and(|t| t <= now)) {
            self.next_report_ns = None;
            self.keyed.stream.say(Repr::Report { newest, had: self.had }, &[]);
        }
    }
}

/// Which of the newest datagrams have come: a copy counts once.
#[derive(Debug, Default)]
struct Arrivals {
    newest: Option<u16>,
    /// Bit i: the datagram i before the newest has come.
    had: u128,
}

impl Arrivals {
    /// Whether a datagram comes for the first time; one too old to tell counts as a copy.
    fn is_new(&mut self, sequence: u16) -> bool {
        let newest = *self.newest.get_or_insert(sequence.wrapping_sub(1));
        let ahead = i32::from(sequence.wrapping_sub(newest) as i16);
        if ahead > 0 {
            self.newest = Some(sequence);
            self.had = self.had.checked_shl(ahead.unsigned_abs()).unwrap_or(0) | 1;
            return true;
        }
        let bit = 1u128.checked_shl(ahead.unsigned_abs()).unwrap_or(0);
        let new = bit != 0 && self.had & bit == 0;
        self.had |= bit;
        new
    }
}

/// Additive increase, multiplicative decrease of a window of packets.
#[derive(Debug)]
struct Aimd {
    /// Packets a nanosecond that the flows make.
    nominal: f64,
    window: f64,
    round_trip_ns: Option<f64>,
    credit: f64,
    refilled_ns: Time,
    last: Option<(u16, u32)>,
    grown_ns: Time,
    cut_ns: Time,
}

impl Aimd {
    fn new(nominal: f64) -> Self {
        let (credit, cut_ns) = (DEPTH, Time::MIN / 2);
        Self {
            nominal,
            window: 0.0,
            round_trip_ns: None,
            credit,
            refilled_ns: 0,
            last: None,
            grown_ns: 0,
            cut_ns,
        }
    }

    /// Without a round trip nothing is held back.
    fn allows(&self) -> bool {
        self.round_trip_ns.is_none() || self.credit >= 1.0
    }

    fn spend(&mut self) {
        self.credit -= 1.0;
    }

    fn refill(&mut self, now: Time) {
        let gone = (now - self.refilled_ns).max(0) as f64;
        self.refilled_ns = now;
        self.credit = (self.credit + gone * self.rate()).clamp(-DEPTH, DEPTH);
    }

    /// Packets a nanosecond.
    fn rate(&self) -> f64 {
        self.round_trip_ns.map_or(self.nominal, |round_trip| self.window / round_trip)
    }

    /// When a packet may leave.
    fn next(&self) -> Time {
        let short = (1.0 - self.credit).max(0.0);
        self.refilled_ns + ((short / self.rate().max(1e-12)) as Time).clamp(1, SECOND)
    }

    /// The receiver has said how much it has had.
    // [Ping 2005] +1 packet a round trip, halved on a loss event
    fn report(&mut self, now: Time, newest: u16, had: u32, round_trip_ns: Option<Time>) {
        self.refill(now);
        let Some(round_trip) = round_trip_ns.map(|t| t.max(1) as f64) else { return };
        if self.round_trip_ns.is_none() {
            self.window = self.nominal * round_trip;
            self.grown_ns = now;
        }
        self.round_trip_ns = Some(round_trip);
        let Some((newest_before, had_before)) = self.last.replace((newest, had)) else { return };
        let sent = newest.wrapping_sub(newest_before) as i16;
        let arrived = had.wrapping_sub(had_before) as i32;
        let elapsed = (now - self.grown_ns).max(0) as f64;
        self.grown_ns = now;
        if sent > 0 && i32::from(sent) > arrived {
            if (now - self.cut_ns) as f64 > round_trip {
                self.window /= 2.0;
                self.cut_ns = now;
            }
        } else {
            self.window += elapsed / round_trip;
        }
        let most = (self.nominal * round_trip * MOST_WINDOW).max(LEAST_WINDOW);
        self.window = self.window.clamp(LEAST_WINDOW, most);
    }
}

impl Endpoint for Irtp {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Sample { meta, bytes } => self.send(now, &meta, bytes),
            Input::Datagram { bytes, received_ns, .. } => {
                if self.receive(now, bytes, received_ns).is_err() {
                    self.keyed.stream.stats.malformed += 1;
                }
            }
            Input::Timeout => {
                self.keyed.expire(now);
                self.report(now);
                self.release(now);
            }
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.keyed.stream.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        let release = self.waiting.iter().any(|w| w.waits).then(|| self.rate.next());
        let all = [self.keyed.poll_timeout(), self.next_report_ns, release];
        all.into_iter().flatten().min()
    }

    fn stats(&self) -> EndpointStats {
        self.keyed.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tcps_core::time::MS;

    // [Ping 2005]
    #[test]
    fn a_copy_does_not_count_as_an_arrival_and_a_late_one_does() {
        let mut arrivals = Arrivals::default();
        let new = [65_534u16, 65_534, 1, 65_535, 65_535, 0, 0, 400, 1, 390].map(|n| arrivals.is_new(n));
        assert_eq!(new, [true, false, true, true, false, true, false, true, false, true]);
        assert_eq!(arrivals.newest, Some(400));
    }

    /// A flow of 1 kHz over a round trip of 30 ms needs a window of 30 packets.
    // [Ping 2005]
    #[test]
    fn the_window_grows_by_a_packet_a_round_trip_up_to_twice_the_need_and_a_loss_halves_it() {
        let mut aimd = Aimd::new(1e-6);
        let (mut now, mut newest, mut had) = (0, 0u16, 0);
        let mut window = |ms: Time, lost: u16| {
            now += ms * MS;
            newest += ms as u16;
            had += u32::from(ms as u16 - lost);
            aimd.report(now, newest, had, Some(30 * MS));
            (aimd.rate() * 30e6 * 100.0).round() / 100.0
        };
        assert_eq!([window(0, 0), window(30, 0), window(30, 0)], [30.0, 31.0, 32.0]);
        assert_eq!(
            [window(15, 1), window(30, 1), window(1, 1)],
            [16.0, 16.0, 8.0],
            "at most once a round trip"
        );
        for _ in 0..10 {
            window(31, 1);
        }
        assert_eq!([window(31, 1), window(30, 0)], [1.0, 2.0], "never below one packet");
        for _ in 0..10 {
            window(300, 0);
        }
        assert_eq!(window(300, 0), 60.0, "more would only fill a queue");
    }

    /// After a pause a few packets leave at once, and none later than the rate asks for.
    // [Ping 2005]
    #[test]
    fn four_packets_may_leave_at_once_and_then_one_with_each_share_of_the_window() {
        let mut aimd = Aimd::new(1e-6);
        (0..9).for_each(|_| aimd.spend());
        assert!(aimd.allows(), "nothing is held back before a round trip is known");
        aimd.report(20 * MS, 0, 0, Some(30 * MS));
        let mut burst = |now: Time| {
            aimd.refill(now);
            let left = (0..9).take_while(|_| aimd.allows().then(|| aimd.spend()).is_some()).count();
            (left, aimd.next() - now)
        };
        assert_eq!(burst(SECOND), (4, MS));
        assert_eq!(burst(SECOND + MS / 4), (0, MS * 3 / 4), "30 packets in 30 ms");
        assert_eq!([burst(SECOND + 3 * MS).0, burst(SECOND + 4 * MS).0], [3, 1]);
    }

    // [Ping 2005]
    #[test]
    fn the_newest_sample_of_each_flow_waits_for_the_rate() {
        let context = ChannelContext::of(&[(1, Side::B, "haptic"), (2, Side::B, "kinematic")]);
        let mut irtp = Irtp::from_params(&Params::new("irtp", &Value::Null), Side::A, &context).unwrap();
        let send = |irtp: &mut Irtp, flow: u16, index: u32| {
            let meta = Meta { flow: FlowId(flow), index, origin_ns: Time::from(index), echo: None };
            irtp.handle_input(0, Input::Sample { meta, bytes: &[7; 12] });
        };
        // The first of a flow is crucial.
        [1, 2].iter().for_each(|flow| send(&mut irtp, *flow, 0));
        (irtp.rate.round_trip_ns, irtp.rate.window, irtp.rate.credit) = (Some(30e6), 1.0, 0.0);
        [(1, 1), (2, 1), (1, 2)].iter().for_each(|(flow, index)| send(&mut irtp, *flow, *index));
        irtp.handle_input(SECOND, Input::Timeout);
        let (mut sent, mut left_out, mut buf) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(output) = irtp.poll_output(&mut buf) {
            match output {
                Output::Transmit(t) if t.index > 0 => sent.push((t.flow.0, t.index)),
                Output::Record(row) => left_out.push((row.flow.0, row.index)),
                _ => {}
            }
        }
        assert_eq!((sent, left_out), (vec![(2, 1), (1, 2)], vec![(1, 1)]));
    }
}
