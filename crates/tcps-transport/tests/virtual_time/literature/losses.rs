//! What each does where datagrams are lost.

use super::*;

/// [RFC 4588] Retransmission on request: plain UDP loses what the network loses; here nearly everything comes,
/// the lost samples between 1.5 and 2.5 round trips after they were made, at the price of the requests.
#[test]
fn nack_mends_losses_a_round_trip_later() {
    let lossy = Conditions { loss: 0.1, ..RTT };
    let (plain, nack) = (run("udp", Value::Null, lossy), run("nack", Value::Null, lossy));
    assert!(plain.lost() > 200, "{}", plain.lost());
    assert!(nack.lost() < 30, "{}", nack.lost());
    let late: Vec<Time> = nack.delays_ns.values().copied().filter(|d| *d > 20 * MS).collect();
    assert!(late.len() > 200 && late.iter().all(|d| (45 * MS..110 * MS).contains(d)), "{late:?}");
    assert!(!nack.pair.server.transmitted.is_empty() && plain.pair.server.transmitted.is_empty());
    assert!(nack.bytes > plain.bytes * 105 / 100);
}

/// [model: coarse copy] A coarser copy: a lost sample is replaced two samples later, wrong by less than 0.4 %, for 11 B and
/// the sequence a packet more; nothing is asked for.
#[test]
fn a_coarse_copy_replaces_a_lost_sample() {
    let lossy = Conditions { loss: 0.1, ..RTT };
    let (plain, coarse) = (run("udp", Value::Null, lossy), run("coarse-copy", Value::Null, lossy));
    assert!(plain.lost() > 200 && coarse.lost() < 60, "{} {}", plain.lost(), coarse.lost());
    let mut restored = 0;
    for (delivery, bytes) in &coarse.pair.server.delivered {
        for (got, sent) in bytes.chunks(4).zip(force(delivery.meta.index).chunks(4)) {
            let value = |b: &[u8]| f32::from_be_bytes(b.try_into().unwrap());
            assert!((value(got) / value(sent) - 1.0).abs() < 0.004, "{got:?} for {sent:?}");
        }
        restored += usize::from(*bytes != force(delivery.meta.index));
    }
    assert!(restored > 200, "{restored}");
    assert!(coarse.pair.server.transmitted.is_empty());
    assert_eq!(coarse.bytes, plain.bytes + 3000 * 4 + 2998 * 11);
}

/// [Dodeller 2004] Smoothed SCTP: delay is evened out to the smallest plus 20 ms, and every tenth sample survives a loss
/// that plain UDP does not mend.
#[test]
fn smoothed_sctp_evens_out_the_delay_and_keeps_its_keys() {
    let rough = Conditions { loss: 0.1, jitter_ns: 3 * MS, ..RTT };
    let (plain, smooth) = (run("udp", Value::Null, rough), run("smoothed-sctp", Value::Null, rough));
    let spread = |run: &Run| {
        let mut all: Vec<Time> = run.delays_ns.values().copied().collect();
        all.sort_unstable();
        all[all.len() * 9 / 10] - all[all.len() / 10]
    };
    assert!(spread(&plain) > 5 * MS, "{}", spread(&plain));
    assert!(spread(&smooth) <= 2 * MS, "{}", spread(&smooth));
    let keys = |run: &Run| run.delays_ns.keys().filter(|i| *i % 10 == 0).count();
    assert!(keys(&plain) < 290, "{}", keys(&plain));
    assert!(keys(&smooth) >= 299, "{}", keys(&smooth));
    assert!(smooth.lost() > 150, "the others are not sent again: {}", smooth.lost());
}

/// [Ping 2005] IRTP: losses halve the rate, the newest sample replaces those that wait, crucial ones come.
#[test]
fn irtp_slows_down_at_losses_and_keeps_its_crucial_samples() {
    let clean = run("irtp", Value::Null, RTT);
    assert!(clean.given_up() < 10 && clean.lost() == 0, "{} {}", clean.given_up(), clean.lost());
    let lossy = Conditions { loss: 0.05, ..RTT };
    let (plain, irtp) = (run("udp", Value::Null, lossy), run("irtp", Value::Null, lossy));
    assert!(irtp.given_up() > 1000, "{}", irtp.given_up());
    assert!(irtp.bytes < plain.bytes * 3 / 4, "{} {}", irtp.bytes, plain.bytes);
    let crucial = irtp.delays_ns.keys().filter(|i| *i % 10 == 0).count();
    assert!(crucial >= 299, "{crucial}");
}

/// [Ping 2005] The network's copies of datagrams, and keys that were sent again, do not hide that others were lost.
#[test]
fn irtp_sees_losses_behind_copies() {
    let copied = Conditions { loss: 0.05, duplication: 1.0, ..RTT };
    let irtp = run("irtp", json!({"key_every": 2, "tries": 10}), copied);
    assert!(irtp.given_up() > 1000, "{}", irtp.given_up());
}

/// [Dodeller 2004] A key that is never acknowledged is given up, and counted.
#[test]
fn keys_that_are_given_up_are_counted() {
    for name in ["smoothed-sctp", "irtp"] {
        let silent = run(name, json!({"key_every": 10}), Conditions { loss: 1.0, ..RTT });
        let stats = silent.pair.client.endpoint.stats();
        assert!(stats.unanswered >= 270, "{name}, of 300, 30 of which still wait: {stats:?}");
    }
}

/// [Lee 2007] Loss-triggered merging: where a tenth is lost for seconds, k grows to 4 and the packets of no merging
/// become fewer; contact, when it is made, leaves at once.
#[test]
fn loss_triggered_merging_sends_fewer_packets_where_much_is_lost() {
    let lossy = Conditions { loss: 0.1, ..RTT };
    let still = |name| {
        let mut pair = pair(name, Value::Null, lossy);
        for index in 0..6000u32 {
            pair.run_until(Time::from(index) * MS);
            let contact = index == 5502;
            pair.send(
                meta(1, index, pair.time),
                &[if contact { 2.0f32 } else { 1.0 }; 3].map(f32::to_be_bytes).concat(),
            );
            if contact && name == "loss-triggered" {
                let before = pair.client.transmitted.last().unwrap();
                assert!(before.index + 4 > index, "its packet has left");
            }
        }
        pair
    };
    let (plain, merged) = (still("no-merge"), still("loss-triggered"));
    let late = |pair: &Pair<Boxed, Boxed>| pair.client.transmitted.iter().filter(|t| t.index >= 5000).count();
    assert_eq!(late(&plain), 1000);
    assert!((250..255).contains(&late(&merged)), "{}", late(&merged));
    assert_eq!(merged.client.endpoint.0.merging(), 4);
    let clean = run("loss-triggered", Value::Null, RTT);
    assert!(clean.pair.client.transmitted.len() >= 3000, "nothing lost, nothing merged");
}
