//! An attacker at the start of a link: hears what passes, changes it, and sends datagrams of its own. It has no keys.
//!
//! ```text
//!  node ──► hear ─┬─► network ──► node        hear: remembers, changes a bit, lies about clocks
//!                 └─ attacker ─► shot ─► network, at the start of the link
//! ```
//! Without I/O, the same in virtual time and in the emulator. It hears a datagram as it enters the network, before any loss. What
//! it sends says that it comes from the node that the flow's samples come from. A forged sample has a number that no source
//! reaches, so that rows tell what became of it.

use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::{ChannelId, FlowId, LinkId, NodeId, VertexId, NONE},
    record::{Kind, Record},
    sample::{Meta, PointId},
    seed::Stream,
    size::LINK_BYTES,
    time::{NodeClock, Time, NEVER, SECOND},
};
use tcps_net::Network;
use tcps_node::{channel_flows, sample_codec};
use tcps_plan::{
    attack::FIRST_FORGED, Action, Attack, AttackPlan, Codec, FlowPlan, Plan, RunError, SourcePlan,
    OVERHEAD_BYTES,
};
use tcps_transport::{sends_datagrams, ChannelContext, Side};
use tcps_wire::{
    clock::{self, CLOCK_BYTES},
    secure::{self, MESSAGE_BYTES, RECORD_BYTES, TAG_BYTES},
    tcp::{Ends, Flags, Options, Repr},
};

/// Sample number of a datagram that does not say it.
pub const UNKNOWN: u32 = u32::MAX;
/// Datagrams that are remembered at most, to be sent again.
const MOST_HEARD: usize = 1 << 16;
/// Values of a forged sample at most, where nothing says how many a sample has there.
const MOST_VALUES: usize = 256;
/// How much of what it missed an attacker makes up where the machine comes late to it.
const MOST_LATE: Time = 10_000_000;
/// The transport whose datagrams are IP packets.
const TCP: &str = "tcp";
/// The one whose datagrams are what the stream of that carries.
const FRAMES: &str = "kernel-tcp";
/// How the header of a record of TLS with data begins.
const TLS_DATA: [u8; 3] = [23, 3, 3];
/// Where the checksum of its segments is.
const CHECKSUM: usize = 20 + 16;

/// The links from one vertex to another.
pub type Route<'a> = &'a dyn Fn(VertexId, VertexId) -> Option<Vec<LinkId>>;

/// A datagram that enters the network.
#[derive(Debug, Clone, Copy)]
pub struct Passing {
    pub from: NodeId,
    pub to: NodeId,
    /// Its channel, or `NONE`.
    pub channel: ChannelId,
    /// The flow that it is sent for, or `NONE`.
    pub flow: FlowId,
    /// The (first) sample in it, or `UNKNOWN`.
    pub index: u32,
    pub wire_bytes: u32,
    pub dscp: u8,
}

/// A datagram of the attacker's.
#[derive(Debug)]
pub struct Shot {
    /// Where it enters the network.
    pub at: VertexId,
    /// What it pretends to be.
    pub passing: Passing,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The row that says so.
    pub row: Record,
}

/// Refuses attacks that a run would refuse. Those in a network with code of the user's, which is not run here, are not judged.
pub fn check(plan: &Plan) -> Result<(), RunError> {
    let names: Vec<_> = plan.flows.iter().map(|f| f.name.clone()).collect();
    let Ok(network) = Network::new(&plan.network, &names, plan.seed) else { return Ok(()) };
    Attacker::new(plan, &|from, to| network.route(from, to)).map(drop)
}

/// All attacks of a run.
#[derive(Default)]
pub struct Attacker {
    attacks: Vec<Running>,
    forged: u32,
    shots: VecDeque<Shot>,
    /// About datagrams that it changed.
    rows: VecDeque<Record>,
}

struct Running {
    number: u32,
    plan: AttackPlan,
    at: VertexId,
    target: Target,
    /// Before it begins, `NEVER`; then when it does something next.
    next: Time,
    from: Time,
    until: Time,
    stream: Stream,
    forger: Option<Forger>,
    heard: VecDeque<(Time, Passing, Vec<u8>)>,
    /// The newest record of the channel, of which everybody can read the header.
    record: Option<secure::Record>,
    /// The segment that would follow the newest one of the connection, and its ends.
    segment: Option<(Ends, Repr)>,
}

/// What it is about.
enum Target {
    /// The samples of a flow between two nodes.
    Flow { passing: Passing, point: PointId, disguise: Disguise },
    /// Answers of clock exchanges between these nodes.
    Clocks(BTreeSet<(NodeId, NodeId)>),
}

/// What a forged datagram of a flow is made to look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disguise {
    None,
    /// A sealed record.
    Record,
    /// An SRTP packet, whose header is in the clear.
    Media,
    /// A TCP segment, whose checksum fits; with TLS, of a record.
    Segment {
        sealed: bool,
    },
}

impl Disguise {
    fn is_segment(self) -> bool {
        matches!(self, Self::Segment { .. })
    }
}

/// What makes datagrams of a transport: one of its own endpoints.
struct Forger {
    endpoint: Box<dyn Endpoint>,
    clock: NodeClock,
    codec: Codec,
    values: Vec<f64>,
    bytes: Vec<u8>,
}

impl Attacker {
    /// That of a plan, whose network leads packets along `route`.
    pub fn new(plan: &Plan, route: Route<'_>) -> Result<Self, RunError> {
        let mut attacker = Self::default();
        for (number, event) in plan.events.iter().enumerate() {
            if let Action::Attack(attack) = &event.action {
                attacker.add(plan, number as u32, attack, route).map_err(|e| within(&event.name, e))?;
            }
        }
        Ok(attacker)
    }

    fn add(
        &mut self,
        plan: &Plan,
        number: u32,
        attack: &AttackPlan,
        route: Route<'_>,
    ) -> Result<(), RunError> {
        let target = match attack.what.flow() {
            Some(flow) => aim(plan, &plan.flows[flow], flow, attack.link, route)?,
            None => Target::Clocks(clocks(plan, attack.link, route)?),
        };
        let forger = match (&attack.what, &target) {
            (Attack::Forge { values, .. }, Target::Flow { passing, .. }) => {
                suit(plan, passing, values)?;
                Some(Forger::new(plan, passing, values)?)
            }
            _ => None,
        };
        if let (Attack::Reset { .. }, Target::Flow { passing, disguise, .. }) = (&attack.what, &target) {
            if !disguise.is_segment() {
                let transport = &plan.channels[passing.channel].transport;
                return Err(RunError::config(format!(
                    "attack.kind: found \"reset\" on the transport {transport}; allowed: tcp"
                )));
            }
        }
        self.attacks.push(Running {
            number,
            plan: attack.clone(),
            at: plan.network.links[attack.link].from,
            target,
            next: NEVER,
            from: NEVER,
            until: NEVER,
            stream: Stream::new(plan.seed, &format!("events.{number}.attack")),
            forger,
            heard: VecDeque::new(),
            record: None,
            segment: None,
        });
        Ok(())
    }

    /// Begins an attack, which may be one that was asked for during the run.
    pub fn begin(
        &mut self,
        now: Time,
        plan: &Plan,
        (number, name): (u32, &str),
        attack: &AttackPlan,
        route: Route<'_>,
    ) -> Result<(), RunError> {
        if !self.attacks.iter().any(|a| a.number == number) {
            self.add(plan, number, attack, route).map_err(|e| within(name, e))?;
        }
        for a in self.attacks.iter_mut().filter(|a| a.number == number) {
            (a.from, a.until) = (now, now.saturating_add(a.plan.duration_ns));
            if matches!(a.plan.what, Attack::Forge { .. } | Attack::Flood { .. } | Attack::Reset { .. }) {
                a.next = now;
            }
        }
        Ok(())
    }

    /// Whether there is nothing to do, ever.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.attacks.is_empty()
    }

    /// When it does something of its own.
    pub fn next(&self) -> Time {
        self.attacks.iter().map(|a| a.next).min().unwrap_or(NEVER)
    }

    /// A datagram enters the network: it is remembered, or changed.
    pub fn hear(&mut self, now: Time, passing: &Passing, bytes: &mut [u8]) {
        for a in &mut self.attacks {
            let begun = (a.from..a.until).contains(&now);
            match &a.target {
                Target::Clocks(pairs) => {
                    if let Attack::ClockLie { offset_ns } = a.plan.what {
                        let is_one =
                            passing.channel == ChannelId::NONE && pairs.contains(&(passing.from, passing.to));
                        let sequence = if begun && is_one { lie(bytes, offset_ns) } else { None };
                        if let Some(index) = sequence {
                            self.rows.push_back(a.row(now, &Passing { index, ..*passing }, PointId::NONE));
                        }
                    }
                }
                Target::Flow { passing: target, point, disguise } => {
                    let between = (passing.channel, passing.from) == (target.channel, target.from);
                    // A segment has samples of any flow.
                    let is_other = passing.flow != target.flow && passing.flow != FlowId::NONE;
                    if !between || (is_other && !disguise.is_segment()) {
                        continue;
                    }
                    if disguise.is_segment() {
                        a.segment = following_segment(bytes).or(a.segment);
                    }
                    let passing = Passing { flow: target.flow, ..*passing };
                    if let Ok(secure::Repr::Record(record)) = secure::Repr::parse(bytes) {
                        a.record = Some(record);
                    }
                    match a.plan.what {
                        Attack::Replay { after_ns, share, .. } if begun && a.stream.chance(share) => {
                            if a.heard.len() < MOST_HEARD {
                                a.heard.push_back((now.saturating_add(after_ns), passing, bytes.to_vec()));
                            }
                            a.next = a.heard.front().map_or(NEVER, |h| h.0);
                        }
                        Attack::Tamper { share, .. } if begun && a.stream.chance(share) => {
                            // Behind headers, before trailers.
                            let headers = if disguise.is_segment() { segment_headers(bytes) } else { 0 };
                            let within = headers + (bytes.len() - headers) * 2 / 3;
                            if within < bytes.len() {
                                flip(bytes, within, 1 << a.stream.below(8), disguise.is_segment());
                                self.rows.push_back(a.row(now, &passing, *point));
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// The row of a datagram that it changed.
    pub fn poll_row(&mut self) -> Option<Record> {
        self.rows.pop_front()
    }

    /// What it sends now.
    pub fn poll_shot(&mut self, now: Time) -> Option<Shot> {
        while self.shots.is_empty() {
            let due = self.attacks.iter_mut().filter(|a| a.next <= now);
            due.min_by_key(|a| (a.next, a.number))?.shoot(now, &mut self.forged, &mut self.shots);
        }
        self.shots.pop_front()
    }
}

impl Running {
    fn row(&self, now: Time, passing: &Passing, point: PointId) -> Record {
        Record {
            value: i64::from(self.number),
            index: passing.index,
            size: passing.wire_bytes,
            flow: passing.flow,
            point: point.0,
            node: passing.to,
            ..Record::new(now, Kind::Attack)
        }
    }

    fn shoot(&mut self, now: Time, forged: &mut u32, shots: &mut VecDeque<Shot>) {
        let Target::Flow { passing, point, disguise } = &self.target else { return };
        let (passing, point, disguise) = (*passing, *point, *disguise);
        let period_ns = match self.plan.what {
            Attack::Forge { period_ns, .. } => {
                let index = FIRST_FORGED.wrapping_add(*forged);
                *forged += 1;
                self.forge(now, Passing { index, ..passing }, point, disguise, shots);
                period_ns
            }
            Attack::Flood { rate_bps, bytes, .. } => {
                let wire_bytes = bytes + OVERHEAD_BYTES;
                let bytes: Vec<u8> = (0..bytes).map(|_| self.stream.bits() as u8).collect();
                let passing = Passing { index: UNKNOWN, wire_bytes, ..passing };
                let row = self.row(now, &passing, PointId::NONE);
                shots.push_back(Shot { at: self.at, passing, bytes, row });
                (f64::from(wire_bytes) * 8.0 * SECOND as f64 / rate_bps) as Time
            }
            Attack::Reset { period_ns, fin, .. } => {
                let flags = if fin { Flags::FIN } else { Flags::RST };
                if let Some(bytes) = self.in_a_segment(flags, &[]) {
                    let wire_bytes = bytes.len() as u32 + LINK_BYTES;
                    let passing = Passing { index: UNKNOWN, wire_bytes, ..passing };
                    let row = self.row(now, &passing, PointId::NONE);
                    shots.push_back(Shot { at: self.at, passing, bytes, row });
                }
                period_ns
            }
            _ => {
                if let Some((_, passing, bytes)) = self.heard.pop_front() {
                    let row = self.row(now, &passing, point);
                    shots.push_back(Shot { at: self.at, passing, bytes, row });
                }
                self.next = self.heard.front().map_or(NEVER, |h| h.0);
                return;
            }
        };
        let next = following(self.next, now, period_ns);
        self.next = if next < self.until { next } else { NEVER };
    }

    /// Gives a sample to the endpoint and sends what comes out, in the form of the channel's security.
    fn forge(
        &mut self,
        now: Time,
        passing: Passing,
        point: PointId,
        disguise: Disguise,
        shots: &mut VecDeque<Shot>,
    ) {
        let Some(forger) = &mut self.forger else { return };
        if forger.values.is_empty() {
            forger.bytes.iter_mut().for_each(|b| *b = self.stream.bits() as u8);
        } else {
            sample_codec::encode(forger.codec, &forger.values, &mut forger.bytes);
        }
        let at = forger.clock.read(now);
        let meta = Meta { flow: passing.flow, index: passing.index, origin_ns: at, echo: None };
        forger.endpoint.handle_input(at, Input::Sample { meta, bytes: &forger.bytes });
        let mut datagrams = Vec::new();
        let mut buffer = Vec::new();
        while let Some(output) = forger.endpoint.poll_output(&mut buffer) {
            if let Output::Transmit(t) = output {
                datagrams.push((t.wire_bytes, std::mem::take(&mut buffer)));
            }
        }
        for (mut wire_bytes, mut bytes) in datagrams {
            match disguise {
                Disguise::None => {}
                Disguise::Record => bytes = self.in_a_record(&bytes),
                Disguise::Media => self.guess_tag(&mut bytes),
                Disguise::Segment { sealed } => {
                    if sealed {
                        self.guess_tag(&mut bytes);
                        let length = (bytes.len() as u16).to_be_bytes();
                        bytes.splice(0..0, [&TLS_DATA[..], &length].concat());
                    }
                    let Some(segment) = self.in_a_segment(Flags::PSH, &bytes) else { continue };
                    bytes = segment;
                }
            }
            if disguise != Disguise::None {
                let around = if disguise.is_segment() { LINK_BYTES } else { OVERHEAD_BYTES };
                wire_bytes = bytes.len() as u32 + around;
            }
            let passing = Passing { wire_bytes, ..passing };
            let row = self.row(now, &passing, point);
            shots.push_back(Shot { at: self.at, passing, bytes, row });
        }
    }

    fn guess_tag(&mut self, bytes: &mut Vec<u8>) {
        bytes.extend((0..TAG_BYTES).map(|_| self.stream.bits() as u8));
    }

    /// The segment that follows the newest one of the connection; none before one was heard.
    fn in_a_segment(&mut self, flags: Flags, content: &[u8]) -> Option<Vec<u8>> {
        let (ends, segment) = self.segment.as_mut()?;
        let mut bytes = Vec::new();
        Repr { flags: flags.with(Flags::ACK, true), ..*segment }.emit(ends, [content, &[]], &mut bytes);
        segment.sequence = segment.sequence.wrapping_add(content.len() as u32);
        Some(bytes)
    }

    /// A record that follows the newest one, with a tag that is guessed.
    fn in_a_record(&mut self, payload: &[u8]) -> Vec<u8> {
        let newest = self.record.unwrap_or_default();
        let record = secure::Record { asks: false, number: newest.number.wrapping_add(1), ..newest };
        self.record = Some(record);
        let mut bytes = record.to_bytes().to_vec();
        bytes.extend_from_slice(payload);
        self.guess_tag(&mut bytes);
        bytes
    }
}

/// When the next of a series is due, without those that were due long before.
fn following(due: Time, now: Time, period_ns: Time) -> Time {
    due.max(now - MOST_LATE).saturating_add(period_ns.max(1))
}

impl Forger {
    fn new(plan: &Plan, passing: &Passing, values: &[f64]) -> Result<Self, RunError> {
        let (flow, channel) = (&plan.flows[passing.flow], &plan.channels[passing.channel]);
        let side = if channel.a == passing.from { Side::A } else { Side::B };
        let is_tcp = channel.transport == TCP;
        if !(is_tcp || sends_datagrams(&channel.transport)) || channel.transport.contains(':') {
            return Err(RunError::config(format!(
                "attack.kind: found \"forge\" on the transport {}; allowed: tcp, or a built-in transport of datagrams, \
                 such as udp",
                channel.transport
            )));
        }
        let flows = channel_flows(plan, passing.channel);
        let clock = plan.nodes[passing.from].clock;
        let (name, seed, start_ns) = ("attacker".into(), plan.seed, clock.read(0));
        let context = ChannelContext { name, seed, start_ns, flows, tls: None };
        let (name, params) =
            if is_tcp { (FRAMES, &Value::Null) } else { (channel.transport.as_str(), &channel.params) };
        let endpoint = tcps_transport::endpoint(name, params, side, &context);
        let endpoint = endpoint.map_err(|e| RunError::of(&e, e.fault()))?;
        Ok(Self {
            endpoint,
            clock,
            codec: flow.codec,
            values: values.to_vec(),
            bytes: vec![0; sample_bytes(flow)],
        })
    }
}

/// What the sender of a segment would send next, and between which ends; none of a segment that opens or ends a connection.
fn following_segment(packet: &[u8]) -> Option<(Ends, Repr)> {
    let address = |at: usize| packet.get(at..at + 4)?.try_into().ok();
    let port = |at: usize| packet.get(at..at + 2)?.try_into().map(u16::from_be_bytes).ok();
    let ends = Ends { from: (address(12)?, port(20)?), to: (address(16)?, port(22)?) };
    let (segment, content) = Repr::parse(packet, &ends).ok()?;
    let options = Options { stamps: segment.options.stamps, ..Options::default() };
    let sequence = segment.sequence.wrapping_add(content.len() as u32);
    (segment.flags.0 & !Flags::PSH.0 == Flags::ACK.0).then_some((ends, Repr { sequence, options, ..segment }))
}

/// Bytes of the headers of IP and TCP; all of them, if there is nothing else.
fn segment_headers(bytes: &[u8]) -> usize {
    let words = bytes.get(20 + 12).map_or(usize::MAX, |b| usize::from(b >> 4));
    (20_usize.saturating_add(words.saturating_mul(4))).min(bytes.len())
}

/// Changes bits of a byte, and the checksum of the segment with it.
// RFC 1624 §3
fn flip(bytes: &mut [u8], at: usize, bits: u8, is_segment: bool) {
    let word =
        |bytes: &[u8], at: usize| bytes.get(at..at + 2).map_or(0, |w| u32::from(w[0]) << 8 | u32::from(w[1]));
    let before = word(bytes, at & !1);
    bytes[at] ^= bits;
    if is_segment && bytes.len() > CHECKSUM + 2 {
        let sum = (!word(bytes, CHECKSUM) & 0xffff) + (!before & 0xffff) + word(bytes, at & !1);
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(!folded as u16).to_be_bytes());
    }
}

/// Bytes of a flow's samples, as far as its source says.
fn sample_bytes(flow: &FlowPlan) -> usize {
    let value = if flow.codec == Codec::F64 { 8 } else { 4 };
    match &flow.source {
        SourcePlan::Generated { bytes } => *bytes as usize,
        SourcePlan::Values { columns, .. } => value * *columns as usize,
        SourcePlan::Sizes { bytes } => bytes.first().map_or(value, |b| *b as usize),
        SourcePlan::Frames { offsets, .. } => offsets.get(1).map_or(value, |b| *b as usize),
        SourcePlan::Robot => 3 * value,
    }
}

/// Refuses values that no sample of the flow holds where it is attacked.
fn suit(plan: &Plan, passing: &Passing, values: &[f64]) -> Result<(), RunError> {
    let flow = &plan.flows[passing.flow];
    let refused = |allowed: String| {
        let (n, name) = (values.len(), &flow.name);
        let are = if n == 1 { "value" } else { "values" };
        Err(RunError::config(format!(
            "attack.values: found {n} {are} for the flow {name}; allowed: {allowed}"
        )))
    };
    if values.is_empty() {
        return Ok(());
    }
    let value = match flow.codec {
        Codec::F32 => 4,
        Codec::F64 => 8,
        Codec::Raw => return refused("none: its samples are bytes, no values".into()),
    };
    let crossed = flow.path.iter().position(|v| v.channel == Some(passing.channel)).unwrap_or(0);
    let by_code = flow.path[..=crossed].iter().flat_map(|v| &v.steps).any(|s| s.run.is_some());
    match &flow.source {
        SourcePlan::Generated { .. } | SourcePlan::Values { .. } if !by_code => {
            match sample_bytes(flow) / value {
                n if n == values.len() => Ok(()),
                n => refused(format!("{n}, as many as its samples have there")),
            }
        }
        _ if values.len() > MOST_VALUES => refused(format!("at most {MOST_VALUES}")),
        _ => Ok(()),
    }
}

/// The pair of nodes on a flow's path whose datagrams pass a link.
fn aim(
    plan: &Plan,
    flow: &FlowPlan,
    number: FlowId,
    link: LinkId,
    route: Route<'_>,
) -> Result<Target, RunError> {
    let mut passed = BTreeSet::new();
    for w in flow.path.windows(2) {
        let Some(channel) = w[0].channel else { continue };
        let [from, to] = [&w[0], &w[1]].map(|v| plan.components[v.component].node);
        let links = route(from.into(), to.into()).unwrap_or_default();
        if links.contains(&link) {
            let c = &plan.channels[channel];
            let passing = Passing {
                from,
                to,
                channel,
                flow: number,
                index: UNKNOWN,
                wire_bytes: 0,
                dscp: c.dscp.unwrap_or(flow.dscp),
            };
            let point = PointId::entry(w[1].component);
            let disguise = match c.security.as_ref().map(|method| method.kind.as_str()) {
                kind if c.transport == TCP => Disguise::Segment { sealed: kind.is_some() },
                None => Disguise::None,
                Some("srtp") => Disguise::Media,
                Some(_) => Disguise::Record,
            };
            return Ok(Target::Flow { passing, point, disguise });
        }
        passed.extend(links);
    }
    let known: Vec<_> = passed.iter().map(|l| plan.network.links[*l].name.as_str()).collect();
    Err(RunError::config(format!(
        "attack.link: found {:?}, which the flow {} does not pass; allowed: {}",
        plan.network.links[link].name,
        flow.name,
        if known.is_empty() { "none: the flow passes no link".into() } else { known.join(", ") },
    )))
}

/// The pairs of nodes whose answers of clock exchanges pass a link.
fn clocks(plan: &Plan, link: LinkId, route: Route<'_>) -> Result<BTreeSet<(NodeId, NodeId)>, RunError> {
    let Some(sync) = &plan.sync else {
        return Err(RunError::config(
            "attack.kind: found \"clock-lie\", but no clocks are synchronised; allowed: measure.sync beside it",
        ));
    };
    let clients = NodeId::each(&plan.nodes).map(|(node, _)| (sync.reference, node));
    let passes = |&(from, to): &(NodeId, NodeId)| {
        from != to && route(from.into(), to.into()).is_some_and(|links| links.contains(&link))
    };
    let pairs: BTreeSet<_> = clients.filter(passes).collect();
    if pairs.is_empty() {
        return Err(RunError::config(format!(
            "attack.link: found {:?}, which no answer of the clock reference {} passes; allowed: a link from there to \
             another node",
            plan.network.links[link].name, plan.nodes[sync.reference].name,
        )));
    }
    Ok(pairs)
}

/// Adds to both stamps of the reference in an answer, and gives its number; in a sealed one it changes bits where they are, and the
/// number is `UNKNOWN`. Nothing: it is no answer.
fn lie(bytes: &mut [u8], offset_ns: Time) -> Option<u32> {
    const STAMPS: usize = 20;
    if let Ok(repr) = clock::Repr::parse(bytes) {
        let clock::Repr::Response { sequence, t1_ns, t2_ns, t3_ns } = repr else { return None };
        let [t2_ns, t3_ns] = [t2_ns, t3_ns].map(|t| t.saturating_add(offset_ns));
        let mut changed = Vec::with_capacity(CLOCK_BYTES);
        clock::Repr::Response { sequence, t1_ns, t2_ns, t3_ns }.emit(&mut changed);
        bytes.copy_from_slice(&changed);
        return Some(sequence);
    }
    let (session, sealed) = secure::parse_aside(bytes).ok()?;
    if session != NONE || sealed.len() != RECORD_BYTES + CLOCK_BYTES + TAG_BYTES {
        return None;
    }
    let stamps = bytes.iter_mut().skip(MESSAGE_BYTES + RECORD_BYTES + STAMPS);
    stamps.zip(offset_ns.to_be_bytes()).for_each(|(byte, by)| *byte ^= by);
    Some(UNKNOWN)
}

/// Where packets of the network are not those of channels, nobody can attack them.
pub fn refused(name: &str) -> RunError {
    let found = "found an attack, for which the emulator would have to take IP packets apart; allowed: --world virtual or real";
    within(name, RunError::config(found))
}

/// Refuses the first attack of a plan.
pub fn refuse(plan: &Plan) -> Result<(), RunError> {
    let attack = plan.events.iter().find(|e| matches!(e.action, Action::Attack(_)));
    attack.map_or(Ok(()), |event| Err(refused(&event.name)))
}

fn within(name: &str, e: RunError) -> RunError {
    e.within(format!("events.{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::{MS, US};

    #[test]
    fn a_series_is_kept_in_time_and_little_of_it_is_made_up_after_a_stall() {
        let all = |from: Time, now: Time| {
            std::iter::successors(Some(from), |due| Some(following(*due, now, US)))
                .take_while(|due| *due <= now)
                .count()
        };
        assert_eq!(all(0, 0), 1);
        assert_eq!(all(0, 5 * MS), 5_001);
        assert_eq!(all(0, SECOND), 10_001, "what a second of it would be: 1,000,001");
    }
}
