//! Paths through the graph of links.

use crate::{
    link::Link,
    spec::{NetworkSpec, Routing, TrafficModel, VbrModel},
};
use std::{
    cell::OnceCell,
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};
use tcps_core::time::Time;

/// No link.
pub const NO_LINK: u16 = u16::MAX;
/// Bit of a link's rank: it is for other packets too, and comes after those that are for this code point alone.
const SHARED: u16 = 0x8000;
/// Size of the packet that the delay policy thinks of.
const DELAY_PACKET_BYTES: u32 = 100;

/// What a routing policy may look at.
#[derive(Debug, Clone, Copy)]
pub struct LinkView {
    /// Propagation.
    pub delay_ns: Time,
    /// Rate; infinite for pure delays.
    pub rate_bps: f64,
    /// Background traffic offered to it along paths of fewest hops.
    pub load_bps: f64,
}

/// A routing policy: paths have the smallest sum of costs, then the fewest hops; ties go to the link named first.
pub trait RoutingPolicy {
    /// The cost of a link.
    fn cost(&self, link: &LinkView) -> u64;
}

/// Fewest hops.
pub struct Hops;

impl RoutingPolicy for Hops {
    fn cost(&self, _link: &LinkView) -> u64 {
        0
    }
}

/// Smallest sum of propagation and serialisation of a 100-byte packet.
pub struct Delay;

impl RoutingPolicy for Delay {
    fn cost(&self, link: &LinkView) -> u64 {
        let serialisation = tcps_core::time::serialisation_ns(DELAY_PACKET_BYTES, link.rate_bps);
        link.delay_ns.saturating_add(serialisation).max(0) as u64
    }
}

/// Smallest sum of offered background load over rate (in parts per billion).
pub struct Load;

impl RoutingPolicy for Load {
    fn cost(&self, link: &LinkView) -> u64 {
        (link.load_bps / link.rate_bps * 1e9) as u64
    }
}

/// The policy of a specification.
pub fn policy(routing: Routing) -> &'static dyn RoutingPolicy {
    match routing {
        Routing::Hops => &Hops,
        Routing::Delay => &Delay,
        Routing::Load => &Load,
    }
}

/// The next link from every vertex to every vertex that is ever asked for: most are no destination.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// For all packets, then for those of each code point that some link is for.
    tables: Vec<Table>,
}

/// The ways of packets with one mark.
#[derive(Debug)]
struct Table {
    mark: Option<u8>,
    /// Links into each vertex: rank, where they come from, cost.
    into: Vec<Vec<(u16, usize, u64)>>,
    /// By destination: the link that leads there from each vertex.
    next: Vec<OnceCell<Box<[u16]>>>,
}

impl Routes {
    /// Paths over the links that are up at `now`.
    pub fn new(spec: &NetworkSpec, links: &[Link], now: Time) -> Self {
        let up: Vec<bool> = links.iter().map(|l| l.is_up(now)).collect();
        let mut views: Vec<LinkView> = links.iter().map(view).collect();
        if spec.routing == Routing::Load {
            let plain = Self::by(&Hops, spec, links, &views, &up);
            for t in &spec.traffic {
                for l in plain.path(t.from, t.to, t.dscp, links).unwrap_or_default() {
                    views[usize::from(l)].load_bps += mean_rate_bps(spec, &t.model);
                }
            }
        }
        Self::by(policy(spec.routing), spec, links, &views, &up)
    }

    fn by(
        policy: &dyn RoutingPolicy,
        spec: &NetworkSpec,
        links: &[Link],
        views: &[LinkView],
        up: &[bool],
    ) -> Self {
        let vertices = spec.vertices.len();
        let marks: BTreeSet<u8> = spec.links.iter().filter_map(|l| l.dscp).collect();
        let mut routes = Self::default();
        for mark in std::iter::once(None).chain(marks.into_iter().map(Some)) {
            let open = |i: usize| up[i] && spec.links[i].dscp.is_none_or(|dscp| Some(dscp) == mark);
            let mut into = vec![Vec::new(); vertices];
            for (i, link) in links.iter().enumerate().filter(|(i, _)| open(*i)) {
                let own = mark.is_some() && spec.links[i].dscp == mark;
                let rank = i as u16 | if own { 0 } else { SHARED };
                into[usize::from(link.to)].push((rank, usize::from(link.from), policy.cost(&views[i])));
            }
            routes.tables.push(Table { mark, into, next: vec![OnceCell::new(); vertices] });
        }
        routes
    }

    /// Whether all packets for a vertex go the same way.
    pub fn are_alike(&self) -> bool {
        self.tables.len() <= 1
    }

    /// The link that leads packets with this code point from `v` towards `dst`, or `NO_LINK`.
    #[inline]
    pub fn next(&self, v: u16, dst: u16, dscp: u8) -> u16 {
        let marked = self.tables.iter().skip(1).find(|table| table.mark == Some(dscp));
        let Some(table) = marked.or(self.tables.first()) else { return NO_LINK };
        let Some(next) = table.next.get(usize::from(dst)) else { return NO_LINK };
        let next = next.get_or_init(|| towards(usize::from(dst), &table.into));
        next.get(usize::from(v)).copied().unwrap_or(NO_LINK)
    }

    /// All links of packets with this code point from one vertex to another.
    pub fn path(&self, from: u16, to: u16, dscp: u8, links: &[Link]) -> Option<Vec<u16>> {
        let (mut path, mut v) = (Vec::new(), from);
        while v != to {
            let link = self.next(v, to, dscp);
            if link == NO_LINK || path.len() > links.len() {
                return None;
            }
            path.push(link);
            v = links[usize::from(link)].to;
        }
        Some(path)
    }
}

/// Shortest paths from everywhere to one vertex (Dijkstra), by (cost, hops, rank of the link).
fn towards(dst: usize, into: &[Vec<(u16, usize, u64)>]) -> Box<[u16]> {
    let mut best = vec![(u64::MAX, u32::MAX, NO_LINK); into.len()];
    let mut open = BinaryHeap::from([Reverse((0u64, 0u32, dst))]);
    best[dst] = (0, 0, NO_LINK);
    while let Some(Reverse((cost, hops, v))) = open.pop() {
        if (cost, hops) != (best[v].0, best[v].1) {
            continue;
        }
        for &(rank, from, link_cost) in &into[v] {
            let way = (cost.saturating_add(link_cost), hops + 1, rank);
            if from != dst && way < best[from] {
                best[from] = way;
                open.push(Reverse((way.0, way.1, from)));
            }
        }
    }
    best.iter().map(|b| if b.2 == NO_LINK { NO_LINK } else { b.2 & !SHARED }).collect()
}

fn view(link: &Link) -> LinkView {
    LinkView { delay_ns: link.delay_ns, rate_bps: link.rate_bps, load_bps: 0.0 }
}

/// Mean rate of a traffic model.
pub fn mean_rate_bps(spec: &NetworkSpec, model: &TrafficModel) -> f64 {
    match model {
        TrafficModel::Cbr { rate_bps, .. } | TrafficModel::Poisson { rate_bps, .. } => *rate_bps,
        TrafficModel::Vbr { low_bps, high_bps, vary: VbrModel::PerPacket, .. } if high_bps > low_bps => {
            (high_bps - low_bps) / libm::log(high_bps / low_bps)
        }
        TrafficModel::Vbr { low_bps, high_bps, .. } => (low_bps + high_bps) / 2.0,
        // What users will take is not known beforehand.
        TrafficModel::Users(_) => 0.0,
        TrafficModel::Replay { recording, loop_ns } | TrafficModel::Frames { recording, loop_ns, .. } => {
            let packets = spec.recordings.get(usize::from(*recording)).map_or(&[][..], |r| r);
            let span = loop_ns.unwrap_or_else(|| packets.last().map_or(0, |p| p.0)).max(1);
            packets.iter().map(|p| f64::from(p.1)).sum::<f64>() * 8e9 / span as f64
        }
    }
}
