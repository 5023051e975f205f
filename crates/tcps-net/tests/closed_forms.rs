//! Queues, loss and jitter against formulas; every check is shown to refuse a wrong constant.

mod common;

use common::{arrivals, check, link, network, one_link, packet, run, Estimate};
use serde_json::{json, Value};
use tcps_core::{dist::Dist, model::LossModel, param::Named, seed::Stream, time::Time};
use tcps_net::{
    loss,
    traffic::{poisson::Poisson, Arrivals, SOURCES},
    Network,
};
use tcps_plan::net::{DelaySpec, JitterSpec, LinkSpec, QueueSpec};

const RATE_BPS: f64 = 8e6; // 1000 bytes take 1 ms
const SERVICE_NS: f64 = 1e6;

/// Waits of Poisson arrivals at utilisation `rho`, in service times.
fn waits(rho: f64, exponential_size: bool) -> Estimate {
    let mut net = Network::new(&one_link(RATE_BPS, QueueSpec::default()), &[], 1).expect("a valid network");
    let mut source = Poisson::new(rho * RATE_BPS, 1000, exponential_size, Stream::new(1, "waits"));
    let packets = (0..400_000).filter_map(|n| source.next().map(|(at, bytes)| packet(n, 1, bytes, at)));
    let events = run(&mut net, packets.collect::<Vec<_>>(), Time::MAX / 4);
    let wait = |(p, at): &(tcps_net::Packet, Time)| {
        let service = tcps_core::time::serialisation_ns(p.wire_bytes, RATE_BPS);
        (at - p.sent_ns - service) as f64 / SERVICE_NS
    };
    Estimate::of(&arrivals(&events).iter().map(wait).collect::<Vec<_>>())
}

/// Pollaczek-Khinchine for constant service: W = rho / (2 (1 - rho)) service times.
#[test]
fn md1_waits_are_those_of_pollaczek_and_khinchine() {
    let simulated = waits(0.8, false);
    assert!(check(simulated, 0.8 / (2.0 * 0.2)), "{simulated:?}");
    assert!(!check(simulated, 0.8 / 0.2), "the wait of M/M/1 must be refused");
    assert!(!check(simulated, 1.1 * 0.8 / (2.0 * 0.2)), "10 % too much must be refused");
}

/// W = rho / (1 - rho) mean service times.
#[test]
fn mm1_waits_are_twice_as_long() {
    let simulated = waits(0.7, true);
    assert!(check(simulated, 0.7 / 0.3), "{simulated:?}");
    assert!(!check(simulated, 0.7 / (2.0 * 0.3)), "the wait of M/D/1 must be refused");
}

/// Lost (1) or not (0) for many packets.
fn losses(spec: &Named) -> Vec<f64> {
    let mut model: Box<dyn LossModel> = loss::build(spec, Stream::new(1, "links.l.loss")).unwrap();
    (0..1_000_000).map(|_| f64::from(u8::from(model.lose(0)))).collect()
}

#[test]
fn independent_loss_has_its_probability() {
    let simulated = Estimate::of(&losses(&Named::new("random", json!({"p": 0.03}))));
    assert!(check(simulated, 0.03), "{simulated:?}");
    assert!(!check(simulated, 0.033));
}

/// Stationary loss p / (p + r) and mean burst 1 / r when only the bad state loses. [Gilbert 1960]
#[test]
fn gilbert_losses_come_in_bursts_of_the_expected_length() {
    let lost = losses(&Named::new(
        "gilbert-elliott",
        json!({"p": 0.02, "r": 0.25, "loss_good": 0.0, "loss_bad": 1.0}),
    ));
    let bursts: Vec<f64> =
        lost.split(|&l| l == 0.0).filter(|b| !b.is_empty()).map(|b| b.len() as f64).collect();
    let (share, length) = (Estimate::of(&lost), Estimate::of(&bursts));
    assert!(check(share, 0.02 / 0.27), "{share:?}");
    assert!(!check(share, 0.02 / 0.25));
    assert!(check(length, 4.0), "{length:?}");
    assert!(!check(length, 1.0 / 0.98), "the burst length of independent loss must be refused");
}

/// With losses in both states the stationary loss is their weighted mean. [Elliott 1963]
#[test]
fn elliott_losses_in_both_states_add_up() {
    let (p, r, loss_good, loss_bad) = (0.05, 0.2, 0.01, 0.6);
    let simulated = Estimate::of(&losses(&Named::new(
        "gilbert-elliott",
        json!({"p": p, "r": r, "loss_good": loss_good, "loss_bad": loss_bad}),
    )));
    assert!(check(simulated, (r * loss_good + p * loss_bad) / (p + r)), "{simulated:?}");
    assert!(!check(simulated, p * loss_bad / (p + r)), "forgetting the good state must be refused");
}

const MEAN_JITTER_MS: f64 = 5.0;

/// Delays in ms of packets every millisecond over a link with exponential jitter, and whether any overtook.
fn jittered(reorder: bool) -> (Estimate, bool) {
    let delay = Dist::new("exponential", json!({"mean_ns": (MEAN_JITTER_MS * 1e6) as Time}));
    let jitter = JitterSpec { delay: DelaySpec::Model(delay.expect("a delay")), reorder };
    let spec = network(vec![LinkSpec { jitter: Some(jitter), ..link("l", 0, 1, None, 0) }]);
    let mut net = Network::new(&spec, &[], 1).expect("a valid network");
    let packets = (0..300_000).map(|n| packet(n, 1, 100, Time::from(n) * 1_000_000));
    let arrived = arrivals(&run(&mut net, packets, Time::MAX / 4));
    let overtaken = arrived.windows(2).any(|w| w[0].0.index > w[1].0.index);
    let delays: Vec<f64> = arrived.iter().map(|(p, at)| (at - p.sent_ns) as f64 / 1e6).collect();
    (Estimate::of(&delays), overtaken)
}

/// With the order kept, delays follow D(n) = max(D(n-1) - 1 ms, J(n)), so P(D <= x) is the product of
/// F(x + k ms) over all k, and the mean is the integral of its complement.
fn mean_of_ordered_jitter_ms() -> f64 {
    let within =
        |x: f64| (0..400).map(|k| 1.0 - libm::exp(-(x + f64::from(k)) / MEAN_JITTER_MS)).product::<f64>();
    (0..20_000).map(|i| (1.0 - within((f64::from(i) + 0.5) * 0.01)) * 0.01).sum()
}

#[test]
fn jitter_that_reorders_has_the_mean_of_its_distribution() {
    let (simulated, overtaken) = jittered(true);
    assert!(overtaken);
    assert!(check(simulated, MEAN_JITTER_MS), "{simulated:?}");
    assert!(!check(simulated, mean_of_ordered_jitter_ms()));
}

#[test]
fn keeping_the_order_raises_the_mean_as_predicted() {
    let (simulated, overtaken) = jittered(false);
    assert!(!overtaken);
    assert!(check(simulated, mean_of_ordered_jitter_ms()), "{simulated:?}");
    assert!(!check(simulated, MEAN_JITTER_MS), "the mean of the distribution must be refused");
}

/// Rate in kbit/s of a source over many packets, the mean rate that it states, and the mean size of its packets.
fn rates_of(kind: &str, params: Value) -> (f64, f64, f64) {
    let (entry, params) = Named::new(kind, params).of(SOURCES).unwrap();
    let mut source = (entry.make)(&params, Stream::new(1, kind)).unwrap();
    let packets: Vec<(Time, u32)> = (0..400_001).filter_map(|_| source.next()).collect();
    let bytes: u64 = packets[..400_000].iter().map(|p| u64::from(p.1)).sum();
    let rate_kbps = bytes as f64 * 8e6 / packets[400_000].0 as f64;
    (rate_kbps, source.mean_rate_bps() / 1e3, bytes as f64 / 400e3)
}

/// The VBR models of the dumbbell: the mean is 400 kbit/s, and for a rate drawn per packet the harmonic mean.
/// [Gokhale 2017: dumbbell]
#[test]
fn vbr_models_have_their_mean_rates() {
    let harmonic = 160.0 / libm::log(1.5);
    for (vary, expected, tolerance) in [
        ("constant", 400.0, 1e-9),
        ("per-packet", harmonic, 1e-3),
        ("piecewise", 400.0, 2e-3),
        ("size", 400.0, 1e-3),
    ] {
        let params = json!({"rate_bps": 400e3, "packet_bytes": 50, "vary": vary, "piecewise_ns": 10_000_000});
        let (rate, stated, _) = rates_of("vbr", params);
        assert!(common::check_exact(rate, expected, tolerance), "{rate} for {expected}");
        assert!(!common::check_exact(rate, expected * 1.01, tolerance));
        assert!(common::check_exact(stated, expected, 1e-9), "{stated} for {expected}");
    }
}

/// What varies is what is named, and nothing else: gaps from packet to packet, gaps from piece to piece, or sizes.
#[test]
fn vbr_varies_what_it_says() {
    for (vary, gaps, sizes) in [
        ("constant", 1..=1, 1..=1),
        ("per-packet", 50..=99, 1..=1),
        ("piecewise", 9..=25, 1..=1), // a gap may lie across the end of a piece
        ("size", 1..=1, 50..=100),
    ] {
        // A packet every millisecond in the mean, 100 of them; pieces of 10 ms.
        let params = json!({"rate_bps": 8e6, "packet_bytes": 1000, "vary": vary, "piecewise_ns": 10_000_000});
        let (entry, params) = Named::new("vbr", params).of(SOURCES).unwrap();
        let mut source = (entry.make)(&params, Stream::new(1, "vary")).unwrap();
        let packets: Vec<_> = std::iter::from_fn(|| source.next()).take(100).collect();
        let changes = |values: Vec<Time>| 1 + values.windows(2).filter(|w| (w[0] - w[1]).abs() > 1).count();
        let found = (
            changes(packets.windows(2).map(|w| w[1].0 - w[0].0).collect()),
            packets.iter().map(|p| p.1).collect::<std::collections::BTreeSet<_>>().len(),
        );
        assert!(gaps.contains(&found.0) && sizes.contains(&found.1), "{vary}: {found:?}");
    }
}

/// A source at rate 0 sends nothing at all, and no load is expected of it, whatever varies.
#[test]
fn a_source_at_rate_zero_is_silent() {
    let vbr = ["constant", "per-packet", "size", "piecewise"].map(|vary| ("vbr", json!({"vary": vary})));
    for (kind, mut params) in vbr.into_iter().chain([("cbr", json!({})), ("poisson", json!({}))]) {
        params["rate_bps"] = json!(0.0);
        let (entry, params) = Named::new(kind, params).of(SOURCES).unwrap();
        let mut source = (entry.make)(&params, Stream::new(1, kind)).unwrap();
        assert_eq!((source.next(), source.mean_rate_bps()), (None, 0.0), "{kind} {params}");
    }
}

/// Sizes are rounded, and none is below a byte: small packets have their mean, too.
#[test]
fn poisson_arrivals_have_their_mean_rate_and_size() {
    for size in ["constant", "exponential"] {
        let params = json!({"rate_bps": 400e3, "packet_bytes": 50, "size": size});
        let (rate, stated, bytes) = rates_of("poisson", params);
        assert!(common::check_exact(rate, 400.0, 1e-2) && stated == 400.0, "{size}: {rate}, {stated}");
        assert!(common::check_exact(bytes, 50.0, 5e-3), "{size}: {bytes}");
        assert!(!common::check_exact(bytes - 1.0, 50.0, 5e-3), "sizes rounded down must be refused");
    }
}

/// Constant sizes are all the same (M/D/1), exponential ones have the spread of their mean (M/M/1): waits differ by a factor
/// of two, so a scenario must get those that it names.
#[test]
fn poisson_packets_have_the_spread_of_their_kind() {
    for (size, expected) in [("constant", 0.0), ("exponential", 1000.0 * 1000.0)] {
        let params = json!({"rate_bps": 8e6, "packet_bytes": 1000, "size": size});
        let (entry, params) = Named::new("poisson", params).of(SOURCES).unwrap();
        let mut source = (entry.make)(&params, Stream::new(1, "sizes")).unwrap();
        let spread = |(_, bytes): (Time, u32)| {
            let off = f64::from(bytes) - 1000.0;
            off * off
        };
        let spreads: Vec<_> = std::iter::from_fn(|| source.next()).map(spread).take(300_000).collect();
        let variance = spreads.iter().sum::<f64>() / spreads.len() as f64;
        assert!(common::check_exact(variance, expected, 0.02), "{size}: {variance}");
    }
}
