//! The network: links, pipes, media and sources, called in the order of (time, object).

use crate::{
    check,
    error::NetError,
    link::{Link, Mode},
    medium::Medium,
    own::{ForeignCode, NoCode},
    packet::{InFlight, NetEvent, Packet},
    passage::{Passage, Passages},
    pipe::{Pipe, PipeOf},
    queue::{Flows, Refused},
    topology::Routes,
    traffic::Source,
};
use std::collections::{BTreeMap, VecDeque};
use tcps_core::{
    agenda::Agenda,
    ids::{LinkId, TrafficId, VertexId},
    record::DropReason,
    split::Choice,
    time::{Time, NEVER},
};
use tcps_plan::net::{
    traffic_of_class, Hop, Hops, LinkSpec, LinkStats, NetworkSpec, QueueState, TrafficStats,
};

/// A network in virtual time.
///
/// At one moment, transmitters are called before packets in flight, those before background traffic. A driver's
/// `send` comes where the driver calls it, after everything of earlier moments.
pub struct Network {
    pub(crate) spec: NetworkSpec,
    pub(crate) flows: Flows,
    pub(crate) seed: u64,
    pub(crate) links: Vec<Link>,
    pub(crate) media: Vec<Medium>,
    pub(crate) pipes: Vec<Pipe>,
    pub(crate) pipe_of: PipeOf,
    pub(crate) routes: Routes,
    /// Links, then media, then pipes.
    pub(crate) agenda: Agenda,
    sources: Vec<Source>,
    source_agenda: Agenda,
    pub(crate) traffic: Vec<TrafficStats>,
    pub(crate) events: VecDeque<NetEvent>,
    pub(crate) refused: Vec<Refused>,
    pub(crate) now: Time,
    /// Packets that links have put into flight, modulo 2^32.
    pub(crate) launched: u32,
    /// The packets that links account for.
    pub(crate) followed: Choice,
    /// What became of single packets at links, if somebody wants to know.
    pub(crate) passages: Option<Box<Passages>>,
}

impl Network {
    /// A network at time 0. Every random object draws from a stream of its own, named after it.
    pub fn new(spec: &NetworkSpec, flow_names: &[String], seed: u64) -> Result<Self, NetError> {
        Self::with(spec, flow_names, seed, &mut NoCode)
    }

    /// The same with code of the user's.
    pub fn with(
        spec: &NetworkSpec,
        flow_names: &[String],
        seed: u64,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, NetError> {
        let flows = Flows::new(flow_names, spec.traffic.iter().map(|t| t.name.clone()).collect());
        check::network(spec, &flows)?;
        let mut net = Self {
            links: spec.links.iter().map(|l| Link::new(l, &flows, seed, code)).collect::<Result<_, _>>()?,
            media: Vec::new(),
            pipes: Vec::new(),
            pipe_of: PipeOf::default(),
            routes: Routes::default(),
            agenda: Agenda::default(),
            sources: TrafficId::each(&spec.traffic)
                .map(|(i, _)| Source::new(spec, i, seed, code))
                .collect::<Result<_, _>>()?,
            source_agenda: Agenda::default(),
            traffic: spec
                .traffic
                .iter()
                .map(|t| TrafficStats { name: t.name.clone(), ..Default::default() })
                .collect(),
            events: VecDeque::new(),
            refused: Vec::new(),
            spec: spec.clone(),
            flows,
            seed,
            now: Time::MIN,
            launched: 0,
            followed: Choice::default(),
            passages: None,
        };
        net.share_media(&spec.links);
        net.routes = Routes::new(spec, &net.links, |_| true);
        for i in 0..net.sources.len() {
            net.schedule_source(i);
        }
        Ok(net)
    }

    fn share_media(&mut self, specs: &[LinkSpec]) {
        let mut known = BTreeMap::new();
        for (i, spec) in specs.iter().enumerate() {
            let Some(name) = &spec.medium else { continue };
            let m = *known.entry(name).or_insert_with(|| {
                self.media.push(Medium::default());
                self.media.len() - 1
            });
            self.media[m].links.push(LinkId(i as u16));
            if let Some(served) = self.links[i].served() {
                served.medium = Some(m as u16);
            }
        }
    }

    /// Sends a packet from a vertex. Returns when the first link will have taken it, as far as that is known: the
    /// end of its transmission behind what waits now; `now` if nothing serialises, or if it was dropped.
    pub fn send(&mut self, now: Time, from: VertexId, packet: Packet) -> Time {
        let now = self.move_to(now);
        if let Some(t) = traffic_of(&mut self.traffic, &packet) {
            t.packets += 1;
            t.bytes += u64::from(packet.wire_bytes);
        }
        self.enter(now, from, InFlight::new(packet, now))
    }

    /// Lets links account for packets of these samples only.
    pub fn follow(&mut self, samples: Choice) {
        self.followed = samples;
    }

    /// Keeps what becomes of single packets at links, to be polled.
    pub fn keep_passages(&mut self) {
        self.passages.get_or_insert_default();
    }

    /// What became of a packet at a link; in the order in which it is certain.
    pub fn poll_passage(&mut self) -> Option<Passage> {
        self.passages.as_mut()?.pop()
    }

    /// Makes certain what has begun at the last call with a time; to be called at the end.
    pub fn settle_passages(&mut self) {
        if let Some(passages) = &mut self.passages {
            passages.begin_all(self.now);
        }
    }

    /// A link has taken a packet.
    #[inline(always)] // of most packets nothing is to be told: what there would be is then not put together
    pub(crate) fn account(&mut self, l: usize, packet: &Packet, hop: &Hop) {
        if self.followed.takes(packet.index) {
            self.links[l].hops.add(packet.class, 1, hop);
        }
    }

    /// What code of the user's did wrong so far.
    pub fn failures(&self) -> Vec<String> {
        let links = self.links.iter().flat_map(Link::failures);
        links.chain(self.sources.iter().filter_map(Source::failure)).collect()
    }

    /// When something may happen that the driver can see. Background traffic does not ask to be called: it is
    /// caught up with at the next call of any method with a time.
    pub fn poll_timeout(&self) -> Option<Time> {
        let at = self.agenda.first().0;
        (at != NEVER).then_some(at)
    }

    /// Does all work that is due at or before `now`, which must not lie beyond the end of the run: traffic is endless.
    pub fn handle_timeout(&mut self, now: Time) {
        self.run_before(now.saturating_add(1));
        self.now = self.now.max(now);
    }

    /// The next arrival or drop of a driver's packet.
    pub fn poll_event(&mut self) -> Option<NetEvent> {
        self.events.pop_front()
    }

    /// Stops or starts a traffic entry, whose clock runs on meanwhile. Unknown entries are ignored.
    pub fn set_traffic(&mut self, now: Time, traffic: TrafficId, running: bool) {
        let now = self.move_to(now);
        let Some(source) = self.sources.get_mut(traffic.index()) else { return };
        if running && !source.running {
            source.skip_to(now);
        }
        source.running = running;
        self.schedule_source(traffic.index());
    }

    /// What waits at a link at `now`, all work before and at `now` done.
    pub fn queue(&mut self, now: Time, link: LinkId) -> QueueState {
        self.handle_timeout(now);
        self.links.get(link.index()).map_or_else(QueueState::default, |l| l.queue(self.now))
    }

    /// Counters of all links at the moment of the last call with a time.
    pub fn link_stats(&self) -> Vec<LinkStats> {
        let mut all: Vec<_> = self.links.iter().map(|l| l.stats.clone()).collect();
        for pipe in &self.pipes {
            for (link, (packets, bytes)) in self.folded_counts(pipe, self.now) {
                all[link].offered_packets += packets;
                all[link].offered_bytes += bytes;
            }
        }
        for (stats, link) in all.iter_mut().zip(&self.links) {
            link.settle(stats, self.now);
        }
        all
    }

    /// Where the time of packets went at each link, by flow; links that are passed without stopping have none.
    pub fn hops(&self) -> Vec<Hops> {
        self.links.iter().map(|l| l.hops.clone()).collect()
    }

    /// Counters of all traffic entries at the moment of the last call with a time.
    pub fn traffic_stats(&self) -> Vec<TrafficStats> {
        let mut all = self.traffic.clone();
        for pipe in self.pipes.iter().filter(|p| p.quiet) {
            for in_flight in pipe.packets.iter().take(pipe.due(self.now)) {
                if let Some(t) = traffic_of(&mut all, &in_flight.packet) {
                    t.arrive(in_flight.damaged_by);
                }
            }
        }
        all
    }

    /// The links from one vertex to another, as packets without a mark are routed now.
    pub fn route(&self, from: VertexId, to: VertexId) -> Option<Vec<LinkId>> {
        self.routes.path(from, to, 0, &self.links)
    }

    /// Does everything before `now`, and returns `now`, or the latest moment seen if that is later.
    pub(crate) fn move_to(&mut self, now: Time) -> Time {
        let now = now.max(self.now);
        self.run_before(now);
        self.now = now;
        now
    }

    fn run_before(&mut self, limit: Time) {
        loop {
            let (at, id) = self.agenda.first();
            let (source_at, source) = self.source_agenda.first();
            if source_at < at {
                if source_at >= limit {
                    break;
                }
                self.now = self.now.max(source_at);
                self.emit(source as usize, source_at);
            } else {
                if at >= limit {
                    break;
                }
                self.now = self.now.max(at);
                self.work(id as usize, at);
            }
        }
    }

    pub(crate) fn work(&mut self, id: usize, now: Time) {
        let (links, media) = (self.links.len(), self.media.len());
        if id >= links + media {
            self.flow_out(id - links - media, now);
        } else if id >= links {
            self.serve_medium(id - links, now);
        } else {
            self.serve_link(id, now);
        }
    }

    fn schedule_source(&mut self, i: usize) {
        match self.sources[i].next() {
            NEVER => self.source_agenda.clear(i),
            at => self.source_agenda.set(i, at),
        }
    }

    fn emit(&mut self, i: usize, now: Time) {
        let source = &mut self.sources[i];
        let (from, packet) = (source.from, source.take());
        self.schedule_source(i);
        let stats = &mut self.traffic[i];
        stats.packets += 1;
        stats.bytes += u64::from(packet.wire_bytes);
        self.enter(now, from, InFlight::new(packet, now));
    }

    /// A packet is at vertex `v`: deliver it, or give it to the next link.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, v: VertexId, in_flight: InFlight) -> Time {
        let packet = &in_flight.packet;
        if v == packet.dst || self.links.is_empty() {
            self.deliver(now, in_flight);
            return now;
        }
        match self.routes.next(v, packet.dst, packet.dscp) {
            LinkId::NONE => {
                self.report_drop(now, in_flight.packet, LinkId::NONE, DropReason::NoRoute);
                now
            }
            link => self.arrive(link.index(), now, in_flight),
        }
    }

    /// The receiver drops what arrives with a wrong checksum. [RFC 768]
    fn deliver(&mut self, at: Time, in_flight: InFlight) {
        let InFlight { packet, damaged_by, spent, .. } = in_flight;
        if let Some(t) = traffic_of(&mut self.traffic, &packet) {
            t.arrive(damaged_by);
        }
        if packet.is_background() {
            return;
        }
        self.events.push_back(match damaged_by {
            None => NetEvent::Arrived { at, packet, spent },
            Some(link) => NetEvent::Dropped { at, packet, link, reason: DropReason::Corrupt },
        });
    }

    pub(crate) fn report_drop(&mut self, at: Time, packet: Packet, link: LinkId, reason: DropReason) {
        if let Some(l) = self.links.get_mut(link.index()) {
            l.stats.drop(packet.wire_bytes, reason);
        }
        if !packet.is_background() {
            self.events.push_back(NetEvent::Dropped { at, packet, link, reason });
        }
        if let Some(t) = traffic_of(&mut self.traffic, &packet) {
            t.dropped_packets += 1;
        }
    }

    /// A packet comes to a link. Returns when the link will have taken it.
    #[inline]
    fn arrive(&mut self, l: usize, now: Time, mut in_flight: InFlight) -> Time {
        let link = &mut self.links[l];
        let bytes = in_flight.packet.wire_bytes;
        link.stats.offer(bytes);
        let (queued_ns, serial_ns) = match &mut link.mode {
            Mode::Pure => (0, 0),
            Mode::Ahead(ahead) => {
                let Some(start) = ahead.admit(now, link.busy_until, bytes) else {
                    self.report_drop(now, in_flight.packet, LinkId(l as u16), DropReason::Full);
                    return now;
                };
                let (packets, bytes) = ahead.load();
                let took = link.serialise(in_flight.packet.wire_bytes);
                link.stats.waits(packets, bytes);
                link.busy_total += took;
                link.busy_until = start.saturating_add(took);
                (start - now, took)
            }
            Mode::Served(_) => return self.queue_up(l, in_flight),
        };
        let taken = now.max(link.busy_until);
        let begun = now.saturating_add(queued_ns).saturating_add(serial_ns);
        in_flight.spent.queued_ns += queued_ns;
        in_flight.spent.serial_ns += serial_ns;
        in_flight.at = begun.saturating_add(link.delay_ns);
        let hop = Hop { queued_ns, serial_ns, propagated_ns: link.delay_ns, ..Hop::default() };
        self.account(l, &in_flight.packet, &hop);
        if let Some(passages) = &mut self.passages {
            let passage = Passage { queued_ns, serial_ns, ..Passage::new(now, in_flight.packet, l) };
            passages.plan(passage);
        }
        self.launch(l, in_flight);
        taken
    }
}

/// The counters of a background packet's entry.
pub(crate) fn traffic_of<'a>(
    traffic: &'a mut [TrafficStats],
    packet: &Packet,
) -> Option<&'a mut TrafficStats> {
    traffic.get_mut(traffic_of_class(packet.class)?.index())
}
