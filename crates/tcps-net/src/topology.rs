//! Paths through the graph of links.

use crate::link::Link;
use crate::own::NoCode;
use crate::traffic;
use std::{
    cell::OnceCell,
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};
use tcps_core::{
    ids::{LinkId, VertexId, NONE},
    time::Time,
};
use tcps_plan::net::{NetworkSpec, Played, Routing, TrafficModel, TrafficSpec};

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

/// A link into a vertex: rank, where it comes from, cost.
type Incoming = (u16, VertexId, u64);

/// The ways of packets with one mark.
#[derive(Debug)]
struct Table {
    mark: Option<u8>,
    /// Links into each vertex.
    into: Vec<Vec<Incoming>>,
    /// By vertex what it hangs on: asked for with every packet, so it is kept where little memory is touched.
    hung: Vec<Option<(VertexId, LinkId)>>,
    /// By destination: the link that leads there from each vertex; none of those behind one that they hang on.
    next: Vec<OnceCell<Box<[LinkId]>>>,
}

impl Routes {
    /// Paths over some of the links.
    pub fn new(spec: &NetworkSpec, links: &[Link], is_up: impl Fn(&Link) -> bool) -> Self {
        let up: Vec<bool> = links.iter().map(is_up).collect();
        let mut views: Vec<LinkView> = links.iter().map(view).collect();
        if spec.routing == Routing::Load {
            let plain = Self::by(&Hops, spec, links, &views, &up);
            for t in &spec.traffic {
                for l in plain.path(t.from, t.to, t.dscp, links).unwrap_or_default() {
                    views[l].load_bps += mean_rate_bps(spec, t);
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
                into[link.to].push((rank, link.from, policy.cost(&views[i])));
            }
            routes.tables.push(Table::new(mark, into));
        }
        routes
    }

    /// Whether all packets for a vertex go the same way.
    pub fn are_alike(&self) -> bool {
        self.tables.len() <= 1
    }

    /// The link that leads packets with this code point from `v` towards `dst`, or `LinkId::NONE`.
    #[inline]
    pub fn next(&self, v: VertexId, dst: VertexId, dscp: u8) -> LinkId {
        let marked = self.tables.iter().skip(1).find(|table| table.mark == Some(dscp));
        let Some(table) = marked.or(self.tables.first()) else { return LinkId::NONE };
        table.next(v, dst)
    }

    /// How many searches for ways there have been.
    #[cfg(test)]
    fn searches(&self) -> usize {
        self.tables.iter().flat_map(|t| &t.next).filter(|next| next.get().is_some()).count()
    }

    /// All links of packets with this code point from one vertex to another.
    pub fn path(&self, from: VertexId, to: VertexId, dscp: u8, links: &[Link]) -> Option<Vec<LinkId>> {
        let (mut path, mut v) = (Vec::new(), from);
        while v != to {
            let link = self.next(v, to, dscp);
            if link == LinkId::NONE || path.len() > links.len() {
                return None;
            }
            path.push(link);
            v = links[link].to;
        }
        Some(path)
    }
}

impl Table {
    fn new(mark: Option<u8>, into: Vec<Vec<Incoming>>) -> Self {
        let hung = into.iter().map(|links| Self::hangs_on(links)).collect();
        Self { mark, hung, next: vec![OnceCell::new(); into.len()], into }
    }

    #[inline]
    fn next(&self, v: VertexId, dst: VertexId) -> LinkId {
        match self.hung.get(dst.index()).copied().flatten() {
            Some((gate, last)) if v == gate => last,
            Some((gate, _)) if v != dst => self.search(v, gate),
            Some(_) => LinkId::NONE,
            None => self.search(v, dst),
        }
    }

    /// The vertex that all ways pass just before one with these links into it, and the link from there: most nodes hang on
    /// one link, and then the ways to all nodes at a router are those to the router.
    fn hangs_on(links: &[Incoming]) -> Option<(VertexId, LinkId)> {
        match *links {
            [(rank, gate, _)] => Some((gate, LinkId(rank & !SHARED))),
            _ => None,
        }
    }

    #[inline]
    fn search(&self, v: VertexId, dst: VertexId) -> LinkId {
        let Some(next) = self.next.get(dst.index()) else { return LinkId::NONE };
        let next = next.get_or_init(|| towards(dst, &self.into));
        next.get(v.index()).copied().unwrap_or(LinkId::NONE)
    }
}

/// Shortest paths from everywhere to one vertex (Dijkstra), by (cost, hops, rank of the link).
fn towards(dst: VertexId, into: &[Vec<Incoming>]) -> Box<[LinkId]> {
    let mut best = vec![(u64::MAX, u32::MAX, NONE); into.len()];
    let mut open = BinaryHeap::from([Reverse((0u64, 0u32, dst))]);
    best[dst] = (0, 0, NONE);
    while let Some(Reverse((cost, hops, v))) = open.pop() {
        if (cost, hops) != (best[v].0, best[v].1) {
            continue;
        }
        for &(rank, from, link_cost) in &into[v] {
            let way = (cost.saturating_add(link_cost), hops + 1, rank);
            if way < best[from] {
                best[from] = way;
                open.push(Reverse((way.0, way.1, from)));
            }
        }
    }
    best.iter().map(|b| LinkId(if b.2 == NONE { NONE } else { b.2 & !SHARED })).collect()
}

fn view(link: &Link) -> LinkView {
    LinkView { delay_ns: link.delay_ns, rate_bps: link.rate_bps, load_bps: 0.0 }
}

/// Mean rate of a traffic entry.
fn mean_rate_bps(spec: &NetworkSpec, entry: &TrafficSpec) -> f64 {
    match &entry.model {
        TrafficModel::Source(_) => {
            traffic::build(spec, entry, 0, &mut NoCode).map_or(0.0, |source| source.mean_rate_bps())
        }
        // What users will take is not known beforehand.
        TrafficModel::Played(Played::Users(_)) => 0.0,
        TrafficModel::Played(
            Played::Replay { recording, loop_ns } | Played::Frames { recording, loop_ns, .. },
        ) => {
            let packets = spec.recordings.get(usize::from(*recording)).map_or(&[][..], |r| r);
            let span = loop_ns.unwrap_or_else(|| packets.last().map_or(0, |p| p.0)).max(1);
            packets.iter().map(|p| f64::from(p.1)).sum::<f64>() * 8e9 / span as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(vertices: u16, links: &[(u16, u16, u64)]) -> Table {
        let mut into = vec![Vec::new(); usize::from(vertices)];
        for (i, &(from, to, cost)) in links.iter().enumerate().filter(|(_, l)| l.0 != l.1) {
            into[VertexId(to)].push((i as u16 | SHARED, VertexId(from), cost));
        }
        Table::new(None, into)
    }

    proptest! {
        /// Ways to what hangs on one link are those that a search for it would find.
        #[test]
        fn ways_to_what_hangs_on_a_link_are_those_of_a_search(
            links in prop::collection::vec((0u16..9, 0u16..9, 0u64..3), 0..20),
        ) {
            let table = table(9, &links);
            for dst in (0..9).map(VertexId) {
                let searched = towards(dst, &table.into);
                for v in (0..9).map(VertexId) {
                    prop_assert_eq!(table.next(v, dst), searched[v.index()], "from {} to {}", v, dst);
                }
            }
        }
    }

    /// A search goes over all links: ways to four times as many nodes at two routers are no more of them.
    #[test]
    fn searches_are_for_routers_not_for_the_nodes_at_them() {
        let searches = |pairs: u16| {
            let (left, right) = (2 * pairs, 2 * pairs + 1);
            let ends = |i| [(i, left), (left, i), (pairs + i, right), (right, pairs + i)];
            let links = (0..pairs).flat_map(ends).chain([(left, right), (right, left)]);
            let links: Vec<_> = links.map(|(from, to)| (from, to, 1)).collect();
            let routes = Routes { tables: vec![table(2 * pairs + 2, &links)] };
            for i in 0..pairs {
                let way = [i, left, right].map(|v| routes.next(VertexId(v), VertexId(pairs + i), 0));
                assert_eq!(way, [4 * i, 4 * pairs, 4 * i + 3].map(LinkId));
            }
            routes.searches()
        };
        assert_eq!([10, 40].map(searches), [1, 1]);
    }
}
