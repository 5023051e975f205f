//! Paths by policy, ties, and paths chosen again while packets fly.

mod common;

use common::{arrivals, call_until, drops, link, network, packet, run};
use serde_json::json;
use tcps_core::{
    ids::{LinkId, VertexId},
    time::{MS, SECOND},
};
use tcps_net::{Network, Packet};
use tcps_plan::net::LinkChange;
use tcps_plan::net::{LinkSpec, NetworkSpec, Played, Routing, TrafficModel, TrafficSpec};

/// ```text
///        --- 0: 9 ms, fast ------------
///  v0 --|                              |--> v3        one hop, two hops over v1, two hops over v2
///        --- 1 --> v1 --- 2 -----------
///        --- 3 --> v2 --- 4 -----------
/// ```
fn fork(routing: Routing) -> NetworkSpec {
    let links = vec![
        link("direct", 0, 3, Some(1e6), 9 * MS),
        link("a1", 0, 1, Some(1e6), 2 * MS),
        link("a2", 1, 3, Some(1e6), 2 * MS),
        link("b1", 0, 2, Some(1e6), 2 * MS),
        link("b2", 2, 3, Some(1e6), 2 * MS),
    ];
    NetworkSpec { routing, ..network(links) }
}

fn way(net: &Network, from: u16, to: u16) -> Option<Vec<u16>> {
    Some(net.route(VertexId(from), VertexId(to))?.iter().map(|link| link.0).collect())
}

fn route(spec: &NetworkSpec) -> Option<Vec<u16>> {
    way(&Network::new(spec, &[], 1).ok()?, 0, 3)
}

fn entry(from: u16, to: u16, model: TrafficModel) -> TrafficSpec {
    let (from, to) = (VertexId(from), VertexId(to));
    TrafficSpec { name: format!("{from} {to}"), from, to, start_ns: 0, stop_ns: None, dscp: 0, model }
}

#[test]
fn each_policy_takes_its_own_path() {
    assert_eq!(route(&fork(Routing::Hops)), Some(vec![0]));
    assert_eq!(
        route(&fork(Routing::Delay)),
        Some(vec![1, 2]),
        "4 ms and two serialisations; the tie goes to a1"
    );
    let mut loaded = fork(Routing::Load);
    assert_eq!(route(&loaded), Some(vec![0]), "no load: fewest hops");
    for (from, to) in [(0, 3), (1, 3)] {
        let model = TrafficModel::source("cbr", json!({"rate_bps": 100e3, "packet_bytes": 50}));
        loaded.traffic.push(entry(from, to, model));
    }
    assert_eq!(route(&loaded), Some(vec![3, 4]), "the direct link and a2 are loaded");
}

/// A link for one code point carries those packets alone; they go where all go when it is no way for them.
#[test]
fn marked_packets_go_over_the_links_that_are_for_them() {
    let mut spec = fork(Routing::Hops);
    spec.links[0].dscp = Some(9);
    let mut net = Network::new(&spec, &[], 1).expect("valid");
    let marked = |n: u32, dscp: u8, at: i64| Packet { dscp, ..packet(n, 3, 125, at) };
    let sent = (0u32..).zip([0, 9, 9, 46]).map(|(n, dscp)| marked(n, dscp, 0));
    let events = run(&mut net, sent, SECOND);
    let mut got: Vec<(u32, i64)> = arrivals(&events).into_iter().map(|(p, at)| (p.payload, at)).collect();
    got.sort_unstable();
    // 1 ms a packet: 0 and 3 over a1 and a2, 1 and 2 over the direct link.
    assert_eq!(got, [(0, 6 * MS), (1, 10 * MS), (2, 11 * MS), (3, 7 * MS)]);
    assert_eq!(way(&net, 0, 3), Some(vec![1, 2]));
    net.change_link(SECOND, LinkId(0), &LinkChange { up: Some(false), ..LinkChange::default() })
        .expect("a link");
    net.reroute(SECOND);
    let events = run(&mut net, [marked(4, 9, SECOND)], 2 * SECOND);
    assert_eq!(arrivals(&events).len(), 1, "without it, the way of all");
    spec.links[0].dscp = Some(64);
    let refused = Network::new(&spec, &[], 1).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(refused.contains("from 0 to 63"), "{refused}");
}

/// Of equal ways a marked packet takes the link that is for it alone, wherever that is named; all others take the link that
/// is named first.
#[test]
fn of_equal_links_a_marked_packet_takes_its_own() {
    let own = |name| LinkSpec { dscp: Some(9), ..link(name, 0, 1, None, 0) };
    let all = |name| link(name, 0, 1, None, 0);
    for (mut links, its_own, of_all) in [
        (vec![all("a"), own("b"), own("c"), all("d")], 1, 0),
        (vec![own("a"), own("b"), all("c"), all("d")], 0, 2),
    ] {
        links.push(link("access", 2, 0, None, 0)); // only a delay, as they are
        for from in [0, 2] {
            let mut net = Network::new(&network(links.clone()), &[], 1).expect("valid");
            let mut taken = |dscp| {
                let before: Vec<_> = net.link_stats().iter().map(|l| l.offered_packets).collect();
                net.send(0, VertexId(from), Packet { dscp, ..packet(0, 1, 100, 0) });
                net.handle_timeout(0);
                net.link_stats().iter().zip(before).position(|(l, n)| l.offered_packets > n)
            };
            assert_eq!([9, 0, 46].map(&mut taken), [its_own, of_all, of_all].map(Some), "from {from}");
        }
    }
}

/// What is played loads its links by its bytes over its round, or over its own length if it is played once; users, of whom
/// nobody knows before what they take, load none.
#[test]
fn the_load_of_what_is_played_is_its_mean_rate() {
    let recording = [(0, 100), (10 * MS, 25)]; // 125 B in 10 ms: 100 kbit/s
    let frames = |loop_ns| Played::Frames { recording: 0, loop_ns, packet_bytes: 1500, overhead_bytes: 28 };
    let replay = |loop_ns| Played::Replay { recording: 0, loop_ns };
    let users = json!({"users": 1, "transport": "tcp", "congestion": "reno", "mtu_bytes": 1500, "buffer_bytes": 4096});
    let users = Played::Users(serde_json::from_value(users).expect("users"));
    for (played, kbps) in [
        (replay(None), 100.0),
        (frames(None), 100.0),
        (replay(Some(20 * MS)), 50.0),
        (frames(Some(20 * MS)), 50.0),
        (users, 0.0),
    ] {
        for (other_bps, way) in [(kbps * 1e3 - 10.0, vec![1, 2]), (kbps * 1e3 + 10.0, vec![0])] {
            if other_bps < 0.0 {
                continue; // nothing is less than no load
            }
            let mut loaded = fork(Routing::Load);
            loaded.recordings = vec![recording.to_vec().into()];
            let cbr =
                |rate_bps| TrafficModel::source("cbr", json!({"rate_bps": rate_bps, "packet_bytes": 50}));
            // The direct way, the first way round, and the second, which is full.
            let entries = [(3, TrafficModel::Played(played.clone())), (1, cbr(other_bps)), (2, cbr(1e9))];
            loaded.traffic = entries.into_iter().map(|(to, model)| entry(0, to, model)).collect();
            assert_eq!(route(&loaded), Some(way), "{played:?} beside {other_bps} bit/s");
        }
    }
}

#[test]
fn a_vertex_out_of_reach_has_no_route() {
    let net = Network::new(&fork(Routing::Hops), &[], 1).expect("valid");
    assert_eq!(way(&net, 3, 0), None);
    assert_eq!(way(&net, 0, 99), None);
    assert_eq!(way(&net, 2, 2), Some(vec![]));
}

/// Of equal ways each vertex is looked at once, or 40 forks in a row would take 2^40 looks.
#[test]
fn equal_ways_are_not_searched_again_and_again() {
    let forks = 40;
    let fork = |n: u16| {
        let (from, up, down, to) = (3 * n, 3 * n + 1, 3 * n + 2, 3 * n + 3);
        [(from, down), (from, up), (down, to), (up, to)]
            .map(|(a, b)| link(&format!("l{a}-{b}"), a, b, Some(1e6), MS))
    };
    for routing in [Routing::Hops, Routing::Delay] {
        let spec = NetworkSpec { routing, ..network((0..forks).flat_map(fork).collect()) };
        let net = Network::new(&spec, &[], 1).expect("a valid network");
        assert_eq!(way(&net, 0, 3 * forks).map(|links| links.len()), Some(2 * usize::from(forks)));
    }
}

/// Routes are those of links without their outages: one that begins at 0 takes packets until it ends.
#[test]
fn an_outage_from_the_first_moment_on_ends() {
    let mut spec = fork(Routing::Hops);
    spec.links[0].outages = vec![(0, 2 * MS)];
    let mut net = Network::new(&spec, &[], 1).expect("valid");
    assert_eq!(way(&net, 0, 3), Some(vec![0]));
    let sent = [0, 3 * MS].map(|at| packet((at / MS) as u32, 3, 100, at));
    let events = run(&mut net, sent, SECOND);
    let arrived: Vec<_> = arrivals(&events).iter().map(|(p, _)| p.payload).collect();
    assert_eq!((arrived, drops(&events).len()), (vec![3], 1));
}

/// With a link down, paths chosen again avoid it; packets already behind the fork go on as they were.
#[test]
fn rerouting_avoids_links_that_are_down() {
    let mut spec = fork(Routing::Delay);
    spec.links.iter_mut().for_each(|l| l.rate_bps = None); // all folded
    let mut net = Network::new(&spec, &[], 1).expect("valid");
    net.send(0, VertexId(0), packet(0, 3, 100, 0)); // will be on a2 at 3 ms
    net.send(2 * MS, VertexId(0), packet(1, 3, 100, 2 * MS)); // will be on a1
    net.change_link(3 * MS, LinkId(2), &LinkChange { up: Some(false), ..LinkChange::default() })
        .expect("valid");
    net.reroute(3 * MS);
    assert_eq!(way(&net, 0, 3), Some(vec![3, 4]));
    net.send(3 * MS, VertexId(0), packet(2, 3, 100, 3 * MS));
    let mut events = Vec::new();
    call_until(&mut net, SECOND, &mut events);
    let arrived: Vec<_> = arrivals(&events).iter().map(|(p, at)| (p.index, at / MS)).collect();
    assert_eq!(arrived, [(0, 4), (2, 7)]);
    assert_eq!(drops(&events).len(), 1, "packet 1 stands at v1, from where nothing leads on");
    net.change_link(SECOND, LinkId(2), &LinkChange { up: Some(true), ..LinkChange::default() })
        .expect("valid");
    net.reroute(SECOND);
    assert_eq!(way(&net, 0, 3), Some(vec![1, 2]));
}
