//! The plain `udp` transport: against anybody, and against itself over a bad network.

use crate::script::Script;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::{FlowId, NodeId},
    sample::{Echo, Meta, PointId},
    time::Time,
};
use tcps_transport::{endpoint, udp::MAX_SAMPLE_BYTES, ChannelContext, Side};

fn make(params: &Value, side: Side) -> Box<dyn Endpoint> {
    let context = ChannelContext::of(&[(1, Side::B, "kinematic"), (2, Side::B, "video")]);
    endpoint("udp", params, side, &context).expect("good parameters")
}

/// Datagrams from anybody, time-outs and jumps of time. Each datagram is refused, or counted, or delivers at
/// most once.
pub fn udp(data: &[u8]) {
    let (mut script, mut buf, mut now) = (Script(data), Vec::new(), 0);
    let mut receiver = make(&Value::Null, Side::B);
    while let Some(step) = script.next() {
        let before = receiver.stats();
        let mut delivered = 0;
        match step % 4 {
            0 => now += script.number::<4>() as Time,
            1 => {
                receiver.handle_input(now, Input::Timeout);
                assert!(receiver.poll_timeout().is_none_or(|t| t > now), "it would be called again at once");
            }
            _ => {
                let n = script.number::<1>() as usize;
                receiver.handle_input(now, Input::datagram(script.take(n), now));
            }
        }
        while let Some(output) = receiver.poll_output(&mut buf) {
            match output {
                Output::Deliver(d) => {
                    assert!(matches!(d.meta.flow.0, 1 | 2) && buf.len() <= MAX_SAMPLE_BYTES);
                    delivered += 1;
                }
                Output::Record(_) => assert_eq!(receiver.stats().duplicates, before.duplicates + 1),
                Output::Transmit(_) => panic!("an answer to a datagram"),
            }
        }
        let refused = receiver.stats().malformed - before.malformed;
        assert!(refused + delivered <= 1);
    }
}

/// Samples through a network that loses, repeats and reorders: none twice, each as it was.
pub fn udp_pair(data: &[u8]) {
    let mut script = Script(data);
    let params = json!({"mtu_bytes": 300 + script.number::<2>() % 2000});
    let (mut sender, mut receiver) = (make(&params, Side::A), make(&params, Side::B));
    let (mut sent, mut got) = (BTreeMap::new(), BTreeMap::new());
    let (mut flight, mut buf, mut index) = (Vec::<Vec<u8>>::new(), Vec::new(), script.number::<4>() as u32);
    while let Some(step) = script.next() {
        let place = script.number::<1>() as usize;
        match step % 4 {
            0 => {
                let (meta, bytes) = sample(&mut script, index);
                sender.handle_input(0, Input::Sample { meta, bytes: &bytes });
                while sender.poll_output(&mut buf).is_some() {
                    flight.push(buf.clone());
                }
                sent.insert(index, (meta, bytes));
                index = index.wrapping_add(1);
            }
            1 if !flight.is_empty() => drop(flight.swap_remove(place % flight.len())),
            2 if !flight.is_empty() => receive(receiver.as_mut(), &flight[place % flight.len()], &mut got),
            3 if !flight.is_empty() => {
                let datagram = flight.swap_remove(place % flight.len());
                receive(receiver.as_mut(), &datagram, &mut got);
            }
            _ => {}
        }
    }
    assert_eq!(receiver.stats().malformed, 0);
    assert!(got.iter().all(|(index, sample)| sent.get(index) == Some(sample)));
}

fn sample(script: &mut Script<'_>, index: u32) -> (Meta, Vec<u8>) {
    let shape = script.number::<2>();
    let echo = Echo { target: PointId(shape as u16), sequence: index, reply_to: NodeId(3), injected_ns: -1 };
    let echo = (shape % 3 == 0).then_some(echo);
    let bytes = (0..shape % 8000).map(|i| (i as u32 ^ index) as u8).collect();
    (Meta { flow: FlowId(1), index, origin_ns: 9, echo }, bytes)
}

fn receive(receiver: &mut dyn Endpoint, datagram: &[u8], got: &mut BTreeMap<u32, (Meta, Vec<u8>)>) {
    let mut buf = Vec::new();
    receiver.handle_input(0, Input::datagram(datagram, 0));
    while let Some(output) = receiver.poll_output(&mut buf) {
        if let Output::Deliver(d) = output {
            let old = got.insert(d.meta.index, (d.meta, buf.clone()));
            assert!(old.is_none(), "sample {} came twice", d.meta.index);
        }
    }
}
