//! What a specification may say. Everything else in this crate relies on it.

use crate::{
    error::NetError,
    loss,
    own::NoCode,
    queue::{self, Flows},
    traffic,
};
use std::{collections::BTreeSet, fmt::Display};
use tcps_core::{dist::Dist, time::Time};
use tcps_plan::net::{
    AccessSpec, JitterSpec, LinkChange, LinkSpec, NetworkSpec, NrSpec, Played, RadioSpec, SlotSpec,
    TrafficModel, TrafficSpec, UsersSpec, TRAFFIC_BASE,
};

/// Longest span, about eleven days: sums of spans stay far from the end of time.
const MAX_SPAN_NS: Time = 1_000_000_000_000_000;
/// Largest rate, 1 Tbit/s.
const MAX_BPS: f64 = 1e12;

/// Collects the place for messages.
struct At(String);

impl At {
    fn need(&self, ok: bool, key: &str, found: impl Display, remedy: &str) -> Result<(), NetError> {
        match ok {
            true => Ok(()),
            false => Err(NetError::new(self.0.clone(), key, found, remedy)),
        }
    }

    fn span(&self, key: &str, ns: Time) -> Result<(), NetError> {
        self.need((0..=MAX_SPAN_NS).contains(&ns), key, format!("{ns} ns"), "give a span from 0 to 11 days")
    }

    fn positive_span(&self, key: &str, ns: Time) -> Result<(), NetError> {
        self.need(
            (1..=MAX_SPAN_NS).contains(&ns),
            key,
            format!("{ns} ns"),
            "give a span above 0, up to 11 days",
        )
    }

    fn probability(&self, key: &str, p: f64) -> Result<(), NetError> {
        self.need((0.0..=1.0).contains(&p), key, p, "give a probability from 0 to 1")
    }

    fn line_rate(&self, bps: f64) -> Result<(), NetError> {
        let ok = bps >= 1.0 && (bps <= MAX_BPS || bps.is_infinite());
        self.need(
            ok,
            "rate_bps",
            bps,
            "give a rate from 1 bit/s to 1 Tbit/s, or none for an infinitely fast link",
        )
    }
}

/// Checks a whole network.
pub(crate) fn network(spec: &NetworkSpec, flows: &Flows) -> Result<(), NetError> {
    let at = At("network".into());
    let room = usize::from(TRAFFIC_BASE);
    at.need(spec.vertices.len() < room, "vertices", spec.vertices.len(), "have fewer than 32768")?;
    at.need(spec.links.len() < room, "links", spec.links.len(), "have fewer than 32768")?;
    at.need(spec.traffic.len() < room, "traffic", spec.traffic.len(), "have fewer than 32768")?;
    let mut names = BTreeSet::new();
    for l in &spec.links {
        let at = At(format!("links.{}", l.name));
        at.need(names.insert(&l.name), "name", &l.name, "give every link a name of its own")?;
        link(&at, l, spec.vertices.len(), flows)?;
    }
    spec.traffic.iter().try_for_each(|t| entry(t, spec))
}

fn link(at: &At, l: &LinkSpec, vertices: usize, flows: &Flows) -> Result<(), NetError> {
    let known = |v: u16| usize::from(v) < vertices;
    at.need(known(l.from), "from", l.from, "give the number of a vertex")?;
    at.need(known(l.to), "to", l.to, "give the number of a vertex")?;
    at.need(l.from != l.to, "to", l.to, "let the link end at another vertex")?;
    l.rate_bps.map_or(Ok(()), |r| at.line_rate(r))?;
    at.span("delay_ns", l.delay_ns)?;
    let dscp = l.dscp.unwrap_or(0);
    at.need(dscp < 64, "dscp", dscp, "give a code point from 0 to 63")?;
    at.probability("duplicate", l.duplicate)?;
    at.probability("corrupt", l.corrupt)?;
    for o in &l.outages {
        at.need(
            o.0 <= o.1,
            "outages",
            format!("{} to {} ns", o.0, o.1),
            "let an outage end after it begins",
        )?;
    }
    l.loss
        .as_ref()
        .map_or(Ok(()), |m| loss::checked(m).map(drop))
        .map_err(|f| NetError::of(&at.0, "loss", f))?;
    l.jitter.as_ref().map_or(Ok(()), |j| jitter(at, j))?;
    l.opportunities_ns.as_ref().map_or(Ok(()), |o| opportunities(at, l, o))?;
    l.radio.as_ref().map_or(Ok(()), |r| radio(at, l, r))?;
    l.slots.as_ref().map_or(Ok(()), |s| slots(at, l, s))?;
    if queue::is_timed(&l.queue.discipline) {
        own_line(at, l, "queue.gates")?;
        at.need(l.slots.is_none(), "queue.gates", "slots beside it", "use one of slots and gates")?;
    }
    match l.queue.discipline.is_code() {
        true => Ok(()), // said when it is made
        false => queue::build(l, flows, 0, &mut NoCode).map(drop),
    }
}

fn radio(at: &At, l: &LinkSpec, radio: &RadioSpec) -> Result<(), NetError> {
    let RadioSpec::Nr(nr) = radio else {
        let found = if matches!(radio, RadioSpec::Wifi {}) { "Wi-Fi" } else { "LTE" };
        return at.need(false, "radio", found, "run it over ns-3, or give the link a radio of kind \"nr\"");
    };
    at.need(l.medium.is_none(), "medium", "a radio link", "remove the medium or the radio")?;
    at.need(
        l.opportunities_ns.is_none(),
        "radio",
        "a trace of opportunities",
        "remove the trace or the radio",
    )?;
    let timed = l.slots.is_some() || queue::is_timed(&l.queue.discipline);
    at.need(!timed, "radio", "slots or gates of a wire", "remove them or the radio")?;
    at.positive_span("radio.slot_ns", nr.slot_ns)?;
    at.span("radio.processing_ns", nr.processing_ns)?;
    at.span("radio.again_ns", nr.again_ns)?;
    at.probability("radio.block_error", nr.block_error)?;
    let most = nr.retransmissions;
    at.need(most <= 64, "radio.retransmissions", most, "give at most 64")?;
    pattern(at, nr)?;
    match nr.access {
        AccessSpec::Request { period_ns, grant_ns } => {
            at.positive_span("radio.access.period_ns", period_ns)?;
            at.span("radio.access.grant_ns", grant_ns)
        }
        AccessSpec::Configured { period_ns } => configured(at, nr, period_ns),
    }
}

fn pattern(at: &At, nr: &NrSpec) -> Result<(), NetError> {
    let letters = (1..=1024).contains(&nr.pattern.len()) && nr.pattern.bytes().all(|c| b"DUSF".contains(&c));
    at.need(letters, "radio.pattern", &nr.pattern, "give 1 to 1024 letters of D, U, S and F")?;
    let both = ["D", "U"].iter().all(|c| nr.pattern.contains([c.as_bytes()[0] as char, 'F']));
    at.need(both, "radio.pattern", &nr.pattern, "give both directions a slot")
}

/// Slots of a configured period are looked for one by one: a period has few.
fn configured(at: &At, nr: &NrSpec, period_ns: Time) -> Result<(), NetError> {
    let key = "radio.access.period_ns";
    at.positive_span(key, period_ns)?;
    let (slots, found) = (period_ns / nr.slot_ns, format!("{period_ns} ns"));
    at.need(
        (1..=256).contains(&slots) && period_ns % nr.slot_ns == 0,
        key,
        found,
        "give 1 to 256 whole slots",
    )
}

fn opportunities(at: &At, l: &LinkSpec, moments: &[Time]) -> Result<(), NetError> {
    let key = "opportunities_ns";
    let ordered = moments.windows(2).all(|w| w[0] <= w[1]) && moments.first().is_some_and(|&m| m >= 0);
    at.need(ordered, key, format!("{} moments", moments.len()), "give moments from 0 on, in order")?;
    let last = moments.last().copied().unwrap_or(0);
    at.need(
        (1..=MAX_SPAN_NS).contains(&last),
        key,
        format!("last {last} ns"),
        "let the last moment be above 0",
    )?;
    at.need(l.medium.is_none(), "medium", "a trace of opportunities", "remove the medium or the trace")?;
    at.need(
        l.rate_bps.is_none(),
        "rate_bps",
        "a rate and a trace of opportunities",
        "remove the rate or the trace",
    )
}

/// What opens and closes needs a line of its own, which nothing else opens and closes.
fn own_line(at: &At, l: &LinkSpec, key: &str) -> Result<(), NetError> {
    let remedy = "use one of medium, trace, slots and gates";
    at.need(l.medium.is_none() && l.opportunities_ns.is_none(), key, "a medium or a trace beside it", remedy)
}

fn slots(at: &At, l: &LinkSpec, slots: &SlotSpec) -> Result<(), NetError> {
    own_line(at, l, "slots")?;
    at.positive_span("slots.cycle_ns", slots.cycle_ns)?;
    let mut last = 0;
    for &(from, to) in &slots.open {
        let ok = last <= from && from < to && to <= slots.cycle_ns;
        at.need(ok, "slots.open", format!("{from} to {to} ns"), "give windows in order, within the cycle")?;
        last = to;
    }
    at.need(!slots.open.is_empty(), "slots.open", "no window", "give at least one")
}

fn jitter(at: &At, jitter: &JitterSpec) -> Result<(), NetError> {
    let key = "jitter.delay";
    let span = |x: f64| (0.0..=MAX_SPAN_NS as f64).contains(&x);
    let spans = |ns: &[i64]| !ns.is_empty() && ns.iter().all(|&x| (0..=MAX_SPAN_NS).contains(&x));
    let ok = match &jitter.delay {
        Dist::Constant { ns } => spans(&[*ns]),
        Dist::Uniform { low_ns, high_ns } => low_ns <= high_ns && spans(&[*low_ns, *high_ns]),
        Dist::Normal { mean_ns, sd_ns } => mean_ns.abs() <= MAX_SPAN_NS as f64 && span(*sd_ns),
        Dist::Exponential { mean_ns, shift_ns } => span(*mean_ns) && spans(&[*shift_ns]),
        Dist::Gumbel { mode_ns, scale_ns } => mode_ns.abs() <= MAX_SPAN_NS as f64 && span(*scale_ns),
        Dist::Pareto { scale_ns, shape } => span(*scale_ns) && *shape > 0.0,
        Dist::Trace { ns } => spans(ns),
        Dist::Empirical { quantiles_ns } => spans(quantiles_ns),
        Dist::Histogram { edges_ns, counts } => {
            let rising = edges_ns.windows(2).all(|w| w[0] < w[1]);
            spans(edges_ns) && rising && edges_ns.len() == counts.len() + 1 && counts.iter().any(|&c| c > 0)
        }
    };
    at.need(
        ok,
        key,
        format!("{:?}", jitter.delay),
        "give spans from 0 to 11 days, low before high, no empty list",
    )
}

fn users(at: &At, tcp: &UsersSpec, links: &[LinkSpec]) -> Result<(), NetError> {
    at.need((1..=1000).contains(&tcp.users), "users", tcp.users, "give 1 to 1000 users")?;
    let mtu = (300..=65_507).contains(&tcp.mtu_bytes);
    at.need(mtu, "mtu_bytes", tcp.mtu_bytes, "give 300 to 65507 bytes")?;
    let buffer = (4_096..=100_000_000).contains(&tcp.buffer_bytes);
    at.need(buffer, "buffer_bytes", tcp.buffer_bytes, "give 4096 to 100 million bytes")?;
    if let Some(drive) = &tcp.drive {
        let link = links.get(usize::from(drive.link));
        at.need(link.is_some(), "drive.link", drive.link, "give the number of a link")?;
        let rated = link.is_some_and(|l| l.rate_bps.is_some());
        at.need(rated, "drive.link", drive.link, "give a link with a rate")?;
        let share = drive.utilisation > 0.0 && drive.utilisation <= 1.0;
        at.need(share, "drive.utilisation", drive.utilisation, "give a share above 0, up to 1")?;
        at.need(tcp.pages.is_some(), "drive", "found with endless transfers", "drive users with pages")?;
    }
    let Some(p) = &tcp.pages else { return Ok(()) };
    for (key, law) in [
        ("pages.request", &p.request),
        ("pages.main", &p.main),
        ("pages.embedded", &p.embedded),
        ("pages.object", &p.object),
        ("pages.parse", &p.parse),
        ("pages.think", &p.think),
    ] {
        at.need(law.fault().is_none(), key, format!("{law:?}"), law.fault().unwrap_or_default())?;
    }
    Ok(())
}

fn entry(t: &TrafficSpec, spec: &NetworkSpec) -> Result<(), NetError> {
    let at = At(format!("traffic.{}", t.name));
    let known = |v: u16| usize::from(v) < spec.vertices.len();
    at.need(known(t.from), "from", t.from, "give the number of a vertex")?;
    at.need(known(t.to), "to", t.to, "give the number of a vertex")?;
    at.span("start_ns", t.start_ns)?;
    match &t.model {
        TrafficModel::Source(source) if source.is_code() => Ok(()), // said when it is made
        TrafficModel::Source(_) => traffic::build(spec, t, 0, &mut NoCode).map(drop),
        TrafficModel::Played(Played::Replay { recording, loop_ns }) => {
            replay(&at, spec, *recording, *loop_ns)
        }
        TrafficModel::Played(Played::Frames { recording, loop_ns, packet_bytes, overhead_bytes }) => {
            let remedy = "give more than the headers, up to 65535 bytes";
            let holds = packet_bytes > overhead_bytes && *packet_bytes <= 65535;
            at.need(holds, "packet_bytes", packet_bytes, remedy)?;
            replay(&at, spec, *recording, *loop_ns)
        }
        TrafficModel::Played(Played::Users(tcp)) => users(&at, tcp, &spec.links),
    }
}

fn replay(at: &At, spec: &NetworkSpec, number: u16, loop_ns: Option<Time>) -> Result<(), NetError> {
    let packets = spec.recordings.get(usize::from(number));
    at.need(packets.is_some(), "recording", number, "give the number of a recording")?;
    let packets = packets.map_or(&[][..], |r| r);
    let ordered = packets.windows(2).all(|w| w[0].0 <= w[1].0) && packets.first().is_none_or(|p| p.0 >= 0);
    at.need(ordered, "packets", "moments out of order", "sort the packets by time, from 0 on")?;
    let last = packets.last().map_or(0, |p| p.0);
    at.span("packets", last)?;
    let Some(round) = loop_ns else { return Ok(()) };
    at.positive_span("loop_ns", round)?;
    at.need(round >= last, "loop_ns", format!("{round} ns"), "let a round be as long as the recording")
}

/// Checks the change of a link.
pub(crate) fn change(link: &LinkSpec, change: &LinkChange) -> Result<(), NetError> {
    let at = At(format!("links.{}", link.name));
    if let Some(bps) = change.rate_bps {
        at.line_rate(bps)?;
        let traced = link.opportunities_ns.is_some() || link.radio.is_some();
        at.need(
            !traced,
            "rate_bps",
            bps,
            "the link follows a trace of opportunities or the slots of a radio, which stay as they are",
        )?;
    }
    change.delay_ns.map_or(Ok(()), |d| at.span("delay_ns", d))?;
    change.loss.map_or(Ok(()), |p| at.probability("loss", p))
}
