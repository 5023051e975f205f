//! Datagrams without a sample: reports, feedback on each packet, probes. What a controller goes by beside headers.
//!
//! ```text
//! packet came ─► reporter, arrivals ─► due ─► other side ─► hear ─► RateController
//! packet left ─► ledger ───────────────────────────────────┘
//! time ─► prober ─► probe ─► other side ─► hear ─► answer ─► hear ─► RateController
//! ```

use super::{
    arrivals::{self, Arrivals, Ledger},
    prober::Prober,
    receiver::Arrival,
    reporter::Reporter,
};
use crate::{
    congestion::Hears,
    params::{Params, Probing, Telling, TransportError},
};
use tcps_core::{
    rate::{Feedback, RateController, Report},
    time::Time,
};
use tcps_wire::{probe, report, rtcp::ccfb::Ccfb, Error};

/// A datagram to be sent.
#[derive(Debug)]
pub(super) enum Aside {
    Report(Report),
    Arrivals(Ccfb),
    Probe(probe::Repr),
}

impl Aside {
    /// Its length in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Report(_) => report::REPORT_BYTES,
            Self::Arrivals(ccfb) => arrivals::bytes(ccfb),
            Self::Probe(_) => probe::PROBE_BYTES,
        }
    }

    /// Appends it to `out`.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Report(report) => report::Repr(*report).emit(out),
            Self::Arrivals(ccfb) => ccfb.emit(out),
            Self::Probe(probe) => probe.emit(out),
        }
    }
}

/// Whether a datagram claims to be one of these: no telehaptic header begins so.
pub(super) fn is_aside(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| *first >= report::FIRST_BYTE)
}

/// What one end says and hears.
#[derive(Debug)]
pub(super) struct Asides {
    reporter: Option<Reporter>,
    arrivals: Option<Arrivals>,
    ledger: Option<Ledger>,
    prober: Option<Prober>,
}

impl Asides {
    /// What a controller needs at an end that packets leave from and arrive at, or not.
    pub(super) fn new(
        params: &Params<'_>,
        hears: Hears,
        leaves: bool,
        arrives: bool,
    ) -> Result<Self, TransportError> {
        let (Telling { feedback_ns }, Probing { probe_ns }) = (params.read()?, params.read()?);
        Ok(Self {
            reporter: (hears == Hears::Reports).then(Reporter::default),
            arrivals: (hears == Hears::Arrivals && arrives).then(|| Arrivals::new(feedback_ns)),
            ledger: (hears == Hears::Arrivals && leaves).then(Ledger::default),
            prober: (hears == Hears::RoundTrips).then(|| Prober::new(leaves.then_some(probe_ns))),
        })
    }

    /// The first thing happens at this end: everything counts from here.
    pub(super) fn begin(&mut self, now: Time) {
        self.reporter.iter_mut().for_each(|r| r.begin(now));
        self.arrivals.iter_mut().for_each(|a| a.begin(now));
        self.prober.iter_mut().for_each(|p| p.begin(now));
    }

    /// A packet has left whose first sample is `index`; the controller hears of one that is forgotten for it.
    pub(super) fn sent(
        &mut self,
        now: Time,
        index: u32,
        wire_bytes: u32,
        controller: &mut dyn RateController,
    ) {
        let forgotten = self.ledger.as_mut().and_then(|l| l.add(now, index, wire_bytes));
        forgotten.into_iter().for_each(|lost| controller.feedback(now, &Feedback::Arrival(lost)));
    }

    /// A packet has arrived.
    pub(super) fn arrived(&mut self, arrival: &Arrival, received_ns: Time) {
        if let Some(reporter) = &mut self.reporter {
            reporter.arrived(arrival);
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.arrived(arrival.index, arrival.fragments, received_ns);
        }
    }

    /// What is to be sent now.
    pub(super) fn due(&mut self, now: Time) -> [Option<Aside>; 3] {
        [
            self.reporter.as_mut().and_then(|r| r.due(now)).map(Aside::Report),
            self.arrivals.as_mut().and_then(|a| a.due(now)).map(Aside::Arrivals),
            self.prober.as_mut().and_then(|p| p.due(now)).map(Aside::Probe),
        ]
    }

    /// When `due` is wanted.
    pub(super) fn deadline(&self) -> Option<Time> {
        let report = self.reporter.as_ref().and_then(Reporter::deadline);
        let arrivals = self.arrivals.as_ref().and_then(Arrivals::deadline);
        let probe = self.prober.as_ref().and_then(Prober::deadline);
        [report, arrivals, probe].into_iter().flatten().min()
    }

    /// Reads a datagram for the controller; what is to be answered, if it is a probe.
    pub(super) fn receive(
        &mut self,
        now: Time,
        datagram: &[u8],
        controller: &mut dyn RateController,
    ) -> Result<Option<Aside>, Error> {
        match datagram.first() {
            Some(&(probe::ASKS | probe::ANSWERS)) => return self.probe(now, datagram, controller),
            // [RFC 8888 §3.1]
            Some(&arrivals::FIRST_BYTE) => {
                let ledger = self.ledger.as_mut().ok_or(Error::Unknown)?;
                ledger
                    .told(now, datagram, |arrival| controller.feedback(now, &Feedback::Arrival(arrival)))?;
            }
            _ => {
                let report = report::Repr::parse(&report::Packet::new_checked(datagram)?)?;
                controller.feedback(now, &Feedback::Report(report.0));
            }
        }
        Ok(None)
    }

    /// A probe is sent back; an answer is a round trip.
    // [Kokkonis 2015]
    fn probe(
        &mut self,
        now: Time,
        datagram: &[u8],
        controller: &mut dyn RateController,
    ) -> Result<Option<Aside>, Error> {
        let prober = self.prober.as_mut().ok_or(Error::Unknown)?;
        let probe = probe::Repr::parse(datagram)?;
        if !probe.answers {
            return Ok(Some(Aside::Probe(probe::Repr { answers: true, ..probe })));
        }
        let round_trip_ns = prober.answered(now, &probe).ok_or(Error::Contradiction)?;
        controller.feedback(now, &Feedback::RoundTrip(round_trip_ns));
        Ok(None)
    }
}
