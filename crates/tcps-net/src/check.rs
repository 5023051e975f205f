//! What a specification may say. Everything else in this crate relies on it.

use crate::{
    error::NetError,
    loss,
    own::NoCode,
    queue::{self, Flows},
    traffic,
};
use std::{collections::BTreeSet, fmt::Display};
use tcps_core::{
    ids::VertexId,
    param::{Fault, Unit},
    time::Time,
};
use tcps_plan::net::{
    AccessSpec, ConnectionSpec, LinkChange, LinkSpec, NetworkSpec, NrSpec, Played, RadioSpec, SlotSpec,
    TrafficModel, TrafficSpec, UsersSpec, TRAFFIC_BASE,
};

/// Longest span, about eleven days: sums of spans stay far from the end of time.
const MAX_SPAN_NS: Time = 1_000_000_000_000_000;
/// Largest rate, 1 Tbit/s.
const MAX_BPS: f64 = 1e12;
/// Most users of a traffic entry.
pub const MOST_USERS: u16 = 1000;

/// Collects the place for messages.
struct At(String);

impl At {
    fn need(&self, ok: bool, key: &str, found: impl Display, allowed: &str) -> Result<(), NetError> {
        match ok {
            true => Ok(()),
            false => Err(NetError::new(self.0.clone(), key, found, allowed)),
        }
    }

    fn span(&self, key: &str, ns: Time) -> Result<(), NetError> {
        self.need((0..=MAX_SPAN_NS).contains(&ns), key, shown(ns), "a span from 0 to 11 days")
    }

    fn positive_span(&self, key: &str, ns: Time) -> Result<(), NetError> {
        self.need((1..=MAX_SPAN_NS).contains(&ns), key, shown(ns), "a span above 0, up to 11 days")
    }

    fn probability(&self, key: &str, p: f64) -> Result<(), NetError> {
        self.need((0.0..=1.0).contains(&p), key, p, "a probability from 0 to 1")
    }

    fn line_rate(&self, bps: f64) -> Result<(), NetError> {
        let ok = bps >= 1.0 && (bps <= MAX_BPS || bps.is_infinite());
        let allowed = "a rate from 1 bit/s to 1 Tbit/s, or none for an infinitely fast link";
        self.need(ok, "rate_bps", Unit::Bps.shown(bps), allowed)
    }

    /// Spans that follow one another, up to `end`.
    fn spans(&self, key: &str, spans: &[(Time, Time)], end: Time, allowed: &str) -> Result<(), NetError> {
        let mut last = 0;
        for &(from, to) in spans {
            let ok = last <= from && from < to && to <= end;
            self.need(ok, key, format_args!("{} to {}", shown(from), shown(to)), allowed)?;
            last = to;
        }
        Ok(())
    }
}

fn shown(ns: Time) -> String {
    Unit::Ns.shown(ns as f64)
}

/// Checks a whole network.
pub(crate) fn network(spec: &NetworkSpec, flows: &Flows) -> Result<(), NetError> {
    let at = At("network".into());
    let room = usize::from(TRAFFIC_BASE);
    at.need(spec.vertices.len() < room, "vertices", spec.vertices.len(), "fewer than 32768")?;
    at.need(spec.links.len() < room, "links", spec.links.len(), "fewer than 32768")?;
    at.need(spec.traffic.len() < room, "traffic", spec.traffic.len(), "fewer than 32768")?;
    let mut names = BTreeSet::new();
    for l in &spec.links {
        let at = At(format!("links.{}", l.name));
        at.need(names.insert(&l.name), "name", &l.name, "a name that no other link has")?;
        link(&at, l, spec.vertices.len(), flows)?;
    }
    spec.traffic.iter().try_for_each(|t| entry(t, spec))
}

fn link(at: &At, l: &LinkSpec, vertices: usize, flows: &Flows) -> Result<(), NetError> {
    let known = |v: VertexId| v.index() < vertices;
    at.need(known(l.from), "from", l.from, "the number of a vertex")?;
    at.need(known(l.to), "to", l.to, "the number of a vertex")?;
    at.need(l.from != l.to, "to", l.to, "another vertex than `from`")?;
    let found = match l.radio {
        None | Some(RadioSpec::Nr(_)) => "",
        Some(RadioSpec::Wifi {}) => "Wi-Fi",
        Some(_) => "LTE",
    };
    at.need(found.is_empty(), "radio", found, "a radio of kind \"nr\", or a run over ns-3")?;
    settings(l)?;
    match l.queue.discipline.is_code() {
        true => Ok(()), // said when it is made
        false => queue::build(l, flows, 0, &mut NoCode).map(drop),
    }
}

/// Checks a link, wherever it leads, but for its queue.
pub fn settings(l: &LinkSpec) -> Result<(), NetError> {
    let at = &At(format!("links.{}", l.name));
    own_line(at, l)?;
    l.rate_bps.map_or(Ok(()), |r| at.line_rate(r))?;
    at.span("delay_ns", l.delay_ns)?;
    let dscp = l.dscp.unwrap_or(0);
    at.need(dscp < 64, "dscp", dscp, "a code point from 0 to 63")?;
    at.probability("duplicate", l.duplicate)?;
    at.probability("corrupt", l.corrupt)?;
    let allowed = "spans [from, to] in order, such as [[\"1 s\", \"2 s\"], [\"5 s\", \"6 s\"]]";
    at.spans("outages", &l.outages, Time::MAX, allowed)?;
    l.loss
        .as_ref()
        .filter(|m| !m.is_code()) // said when it is made
        .map_or(Ok(()), |m| loss::checked(m).map(drop))
        .map_err(|f| NetError::of(&at.0, "loss", f))?;
    l.opportunities_ns.as_ref().map_or(Ok(()), |o| opportunities(at, o))?;
    l.slots.as_ref().map_or(Ok(()), |s| slots(at, s))?;
    match &l.radio {
        Some(RadioSpec::Nr(nr)) => radio(at, nr),
        _ => Ok(()),
    }
}

/// What opens and closes needs a line of its own, which nothing else opens and closes, and a trace says its rate.
fn own_line(at: &At, l: &LinkSpec) -> Result<(), NetError> {
    let trace = l.opportunities_ns.is_some();
    let there = [
        ("queue.gates", "gates", queue::is_timed(&l.queue.discipline)),
        ("slots", "slots", l.slots.is_some()),
        ("trace", "trace", trace),
        ("radio", "radio", l.radio.is_some()),
        ("medium", "medium", l.medium.is_some()),
    ];
    let mut there = there.iter().filter(|t| t.2);
    if let (Some((key, one, _)), Some((_, other, _))) = (there.next(), there.next()) {
        return at.need(
            false,
            key,
            format_args!("both {one} and {other}"),
            "only one of these keys: queue.gates, slots, trace, radio, medium",
        );
    }
    let allowed = "only one of them: a trace gives the rate";
    at.need(!trace || l.rate_bps.is_none(), "trace", "both rate and trace", allowed)
}

fn radio(at: &At, nr: &NrSpec) -> Result<(), NetError> {
    at.positive_span("radio.slot_ns", nr.slot_ns)?;
    at.span("radio.processing_ns", nr.processing_ns)?;
    at.span("radio.again_ns", nr.again_ns)?;
    at.probability("radio.block_error", nr.block_error)?;
    let most = nr.retransmissions;
    at.need(most <= 64, "radio.retransmissions", most, "a whole number from 0 to 64, such as 3")?;
    pattern(at, nr)?;
    match nr.access {
        AccessSpec::Request { period_ns, grant_ns } => {
            at.positive_span("radio.request_ns", period_ns)?;
            at.span("radio.grant_ns", grant_ns)
        }
        AccessSpec::Configured { period_ns } => configured(at, nr, period_ns),
    }
}

fn pattern(at: &At, nr: &NrSpec) -> Result<(), NetError> {
    let allowed = "1 to 1024 letters D (downlink), U (uplink), S (neither) and F (both), with slots for both directions, \
                   such as \"DDDSU\"";
    let letters = (1..=1024).contains(&nr.pattern.len()) && nr.pattern.bytes().all(|c| b"DUSF".contains(&c));
    at.need(letters, "radio.pattern", format!("{:?}", nr.pattern), allowed)?;
    [('D', "a downlink"), ('U', "an uplink")].iter().try_for_each(|(letter, direction)| {
        let has = nr.pattern.contains([*letter, 'F']);
        at.need(has, "radio.pattern", format!("{:?}, without {direction} slot", nr.pattern), allowed)
    })
}

/// Slots of a configured period are looked for one by one: a period has few.
fn configured(at: &At, nr: &NrSpec, period_ns: Time) -> Result<(), NetError> {
    let key = "radio.configured_ns";
    at.positive_span(key, period_ns)?;
    let whole = (1..=256).contains(&(period_ns / nr.slot_ns)) && period_ns % nr.slot_ns == 0;
    let allowed =
        format!("1 to 256 whole slots of {}, such as \"{}\"", shown(nr.slot_ns), shown(5 * nr.slot_ns));
    at.need(whole, key, shown(period_ns), &allowed)
}

fn opportunities(at: &At, moments: &[Time]) -> Result<(), NetError> {
    let key = "trace";
    let ordered = moments.windows(2).all(|w| w[0] <= w[1]) && moments.first().is_some_and(|&m| m >= 0);
    at.need(ordered, key, format!("{} moments", moments.len()), "moments from 0 on, in order")?;
    let last = moments.last().copied().unwrap_or(0);
    let ends = (1..=MAX_SPAN_NS).contains(&last);
    at.need(ends, key, format_args!("a last moment at {}", shown(last)), "one above 0, up to 11 days")
}

fn slots(at: &At, slots: &SlotSpec) -> Result<(), NetError> {
    at.positive_span("slots.cycle_ns", slots.cycle_ns)?;
    let allowed = "windows [from, to] in order and within the cycle, such as [[\"0 ms\", \"0.5 ms\"]]";
    at.need(!slots.open.is_empty(), "slots.open", "no window", allowed)?;
    at.spans("slots.open", &slots.open, slots.cycle_ns, allowed)
}

/// Checks users, whichever link they are to fill.
pub fn users(tcp: &UsersSpec) -> Result<(), Fault> {
    // QUIC's datagrams are of 1200 B, UDP and IPv4 take 28 B. [RFC 9000 §14]
    let least_mtu = if tcp.transport == ConnectionSpec::Quic { 1_228 } else { 300 };
    for (key, found, least, most, unit) in [
        ("users", u32::from(tcp.users), 1, u32::from(MOST_USERS), ""),
        ("mtu_bytes", tcp.mtu_bytes, least_mtu, 65_507, " B"),
        ("buffer_bytes", tcp.buffer_bytes, 4_096, 100_000_000, " B"),
    ] {
        if !(least..=most).contains(&found) {
            return Err(Fault::new(key, format!("{found}{unit}"), format!("{least}{unit} to {most}{unit}")));
        }
    }
    if let Some(drive) = &tcp.drive {
        let (share, key) = (drive.utilisation, "utilisation");
        if !(share > 0.0 && share <= 1.0) {
            return Err(Fault::new(key, Unit::Share.shown(share), "a share above 0 %, up to 100 %"));
        }
        if tcp.pages.is_none() {
            return Err(Fault::new(key, "endless transfers", "users with pages, such as kind = \"web\""));
        }
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
        if let Some(fault) = law.fault() {
            return Err(Fault::new(key, format!("{law:?}"), fault));
        }
    }
    Ok(())
}

fn entry(t: &TrafficSpec, spec: &NetworkSpec) -> Result<(), NetError> {
    let at = At(format!("traffic.{}", t.name));
    let known = |v: VertexId| v.index() < spec.vertices.len();
    at.need(known(t.from), "from", t.from, "the number of a vertex")?;
    at.need(known(t.to), "to", t.to, "the number of a vertex")?;
    at.span("start_ns", t.start_ns)?;
    match &t.model {
        TrafficModel::Source(source) if source.is_code() => Ok(()), // said when it is made
        TrafficModel::Source(_) => traffic::build(spec, t, 0, &mut NoCode).map(drop),
        TrafficModel::Played(Played::Replay { recording, loop_ns }) => {
            replay(&at, spec, *recording, *loop_ns)
        }
        TrafficModel::Played(Played::Frames { recording, loop_ns, packet_bytes, overhead_bytes }) => {
            let allowed = "more than the headers, up to 65535 bytes";
            let holds = packet_bytes > overhead_bytes && *packet_bytes <= 65535;
            at.need(holds, "packet_bytes", packet_bytes, allowed)?;
            replay(&at, spec, *recording, *loop_ns)
        }
        TrafficModel::Played(Played::Users(tcp)) => {
            users(tcp).map_err(|fault| NetError::at(at.0.clone(), fault))?;
            let Some(drive) = &tcp.drive else { return Ok(()) };
            let rated = spec.links.get(drive.link.index()).is_some_and(|l| l.rate_bps.is_some());
            at.need(rated, "drive.link", drive.link, "the number of a link with a rate")
        }
    }
}

fn replay(at: &At, spec: &NetworkSpec, number: u16, loop_ns: Option<Time>) -> Result<(), NetError> {
    let packets = spec.recordings.get(usize::from(number));
    at.need(packets.is_some(), "recording", number, "the number of a recording")?;
    let packets = packets.map_or(&[][..], |r| r);
    let ordered = packets.windows(2).all(|w| w[0].0 <= w[1].0) && packets.first().is_none_or(|p| p.0 >= 0);
    at.need(ordered, "packets", "moments out of order", "packets in order of time, from 0 on")?;
    let last = packets.last().map_or(0, |p| p.0);
    at.span("packets", last)?;
    let Some(round) = loop_ns else { return Ok(()) };
    at.positive_span("loop_ns", round)?;
    at.need(round >= last, "loop_ns", shown(round), "a round as long as the recording")
}

/// Checks the change of a link.
pub(crate) fn change(link: &LinkSpec, change: &LinkChange) -> Result<(), NetError> {
    let at = At(format!("links.{}", link.name));
    if let Some(bps) = change.rate_bps {
        at.line_rate(bps)?;
        let traced = link.opportunities_ns.is_some() || link.radio.is_some();
        let allowed = "no rate at a link that follows a trace or the slots of a radio";
        at.need(!traced, "rate_bps", Unit::Bps.shown(bps), allowed)?;
    }
    change.delay_ns.map_or(Ok(()), |d| at.span("delay_ns", d))?;
    let code = change.jitter.as_ref().is_some_and(|j| j.delay.code().is_some());
    at.need(!code, "jitter", "code of your own", "a built-in delay model: code is loaded at the start only")?;
    change.duplicate.map_or(Ok(()), |p| at.probability("duplicate", p))?;
    change.loss.map_or(Ok(()), |p| at.probability("loss", p))
}
