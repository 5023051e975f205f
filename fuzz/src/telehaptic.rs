//! The telehaptic packet, its report, and the endpoint: against anybody, and against itself over a bad network.

use crate::script::Script;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::{FlowId, NodeId},
    sample::{Echo, Meta, PointId},
    time::{Time, MS},
};
use tcps_transport::{endpoint, ChannelContext, Side};
use tcps_wire::{format, probe, report, telehaptic as wire, Format};

fn make(name: &str, params: &Value, side: Side) -> Box<dyn Endpoint> {
    let flows =
        [(0, Side::B, "haptic"), (1, Side::B, "audio"), (2, Side::B, "video"), (3, Side::A, "kinematic")];
    endpoint(name, params, side, &ChannelContext::of(&flows)).expect("good parameters")
}

/// The packet: parts lie inside it, and header and trailer come out as they were. The report and the probe: as they were.
pub fn telehaptic(data: &[u8]) {
    if let Ok(repr) = probe::Repr::parse(data) {
        let mut out = Vec::new();
        repr.emit(&mut out);
        assert_eq!(out, data);
    }
    if let Ok(packet) = report::Packet::new_checked(data) {
        let _ = report::Repr::parse(&packet).map(|r| r.emit(&mut Vec::new()));
    }
    let Ok(packet) = wire::Packet::new_checked(data) else { return };
    assert_eq!(format(data), Some(Format::Telehaptic));
    let mut out = Vec::new();
    wire::Repr::parse(&packet).emit(&mut out);
    assert_eq!(out, data[..packet.head_bytes()]);
    let samples: usize = (0..8).map(|i| packet.sample(i).len()).sum();
    assert_eq!(samples + packet.audio().len() + packet.video().len(), packet.payload_bytes());
    let Some(trailer) = packet.trailer() else { return };
    assert_eq!(packet.head_bytes() + packet.payload_bytes() + trailer.length(), data.len());
    let echoes: Vec<_> = (0..trailer.echoes()).map_while(|i| trailer.echo(i)).collect();
    let positions: Vec<_> = (0..).map_while(|i| trailer.position(i)).collect();
    let frames: Vec<_> = (0..).map_while(|i| trailer.frame(i)).collect();
    out.clear();
    wire::trailer::emit(&echoes, &positions, &frames, &mut out);
    if echoes.len() == trailer.echoes() {
        assert_eq!(out, data[data.len() - trailer.length()..]);
    }
}

/// Every telehaptic transport. A new one comes last: the first byte of a kept input is a place in this list.
const NAMES: [&str; 18] = [
    "no-merge",
    "fixed-k",
    "dpm",
    "dpm-holdup",
    "dpm-g",
    "rtcp-report",
    "dpm-q",
    "loss-triggered",
    "nafcah",
    "napas",
    "etp",
    "pahcp",
    "admux",
    "scream",
    "gcc",
    "dpm-multistep",
    "hoip",
    "timetable-k",
];

/// Parameters, for those that are nothing without.
fn parameters(name: &str) -> Value {
    match name {
        "timetable-k" => json!({"at_ms": [0, 10, 30], "k": [1, 7, 2]}),
        _ => Value::Null,
    }
}

/// Datagrams from anybody, samples, time-outs and jumps of time, for each controller: nothing is delivered from a
/// refused datagram, and no deadline lies in the past.
pub fn telehaptic_any(data: &[u8]) {
    let (mut script, mut buf, mut now) = (Script(data), Vec::new(), 0);
    let name = NAMES[script.number::<1>() as usize % NAMES.len()];
    let mut end = make(name, &parameters(name), Side::B);
    let mut index = 0;
    while let Some(step) = script.next() {
        let before = end.stats();
        let mut delivered = 0;
        match step % 4 {
            0 => now += script.number::<4>() as Time,
            1 => {
                end.handle_input(now, Input::Timeout);
                assert!(end.poll_timeout().is_none_or(|t| t > now), "it would be called again at once");
            }
            2 => {
                let meta = Meta { flow: FlowId(3), index, origin_ns: now, echo: None };
                end.handle_input(now, Input::Sample { meta, bytes: &[7; 24] });
                index += 1;
            }
            _ => {
                let n = script.number::<1>() as usize;
                end.handle_input(now, Input::datagram(script.take(n), now));
            }
        }
        while let Some(output) = end.poll_output(&mut buf) {
            if let Output::Deliver(d) = output {
                assert!(d.meta.flow.0 < 3 && buf.len() <= 16_000_000);
                delivered += 1;
            }
        }
        assert!(end.stats().malformed == before.malformed || delivered == 0);
    }
}

/// A session through a network that loses, repeats and reorders: nothing twice, everything as it was.
pub fn telehaptic_pair(data: &[u8]) {
    let mut script = Script(data);
    let params = json!({"k": 1 + script.number::<1>() % 7, "media_bytes": 1 + script.number::<1>()});
    let (mut sender, mut receiver) = (make("fixed-k", &params, Side::A), make("fixed-k", &params, Side::B));
    let (mut sent, mut got) = (BTreeMap::new(), BTreeMap::new());
    let (mut flight, mut buf) = (Vec::<Vec<u8>>::new(), Vec::new());
    let (mut now, mut next) = (script.number::<4>() as Time * MS, [0u32; 3]);
    while let Some(step) = script.next() {
        let place = script.number::<1>() as usize;
        match step % 4 {
            0 => {
                let flow = u16::from(step / 4 % 3);
                let index = next[usize::from(flow)];
                next[usize::from(flow)] += 1;
                now += if flow == 0 { MS + Time::from(step / 64) } else { 0 };
                let (meta, bytes) = sample(&mut script, flow, index, now);
                sender.handle_input(now, Input::Sample { meta, bytes: &bytes });
                while let Some(output) = sender.poll_output(&mut buf) {
                    if matches!(output, Output::Transmit(_)) {
                        flight.push(buf.clone());
                    }
                }
                sent.insert((flow, index), (meta, bytes));
            }
            1 if !flight.is_empty() => drop(flight.swap_remove(place % flight.len())),
            2 if !flight.is_empty() => receive(receiver.as_mut(), &flight[place % flight.len()], &mut got),
            _ if !flight.is_empty() => {
                let datagram = flight.swap_remove(place % flight.len());
                receive(receiver.as_mut(), &datagram, &mut got);
            }
            _ => {}
        }
    }
    assert!(got.iter().all(|(key, sample)| sent.get(key) == Some(sample)));
}

fn sample(script: &mut Script<'_>, flow: u16, index: u32, origin_ns: Time) -> (Meta, Vec<u8>) {
    let shape = script.number::<2>();
    let echo = Echo { target: PointId(shape as u16), sequence: index, reply_to: NodeId(3), injected_ns: -1 };
    let size = if flow == 0 { shape % 60 } else { 1 + shape % 900 };
    let bytes = (0..size).map(|i| (i as u32 ^ index) as u8).collect();
    (Meta { flow: FlowId(flow), index, origin_ns, echo: (shape % 3 == 0).then_some(echo) }, bytes)
}

fn receive(receiver: &mut dyn Endpoint, datagram: &[u8], got: &mut BTreeMap<(u16, u32), (Meta, Vec<u8>)>) {
    let mut buf = Vec::new();
    receiver.handle_input(0, Input::datagram(datagram, 0));
    while let Some(output) = receiver.poll_output(&mut buf) {
        if let Output::Deliver(d) = output {
            let old = got.insert((d.meta.flow.0, d.meta.index), (d.meta, buf.clone()));
            assert!(old.is_none(), "sample {} of flow {} came twice", d.meta.index, d.meta.flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NAMES;
    use std::collections::BTreeSet;
    use tcps_transport::{is_telehaptic, names};

    #[test]
    fn no_telehaptic_transport_is_left_out() {
        let of_ours = |name: &&str| is_telehaptic(name) && *name != "telehaptic"; // whose controller is the user's
        let known: BTreeSet<_> = names().into_iter().filter(of_ours).collect();
        assert_eq!(BTreeSet::from(NAMES), known);
    }
}
