//! Every transport, by its id: datagrams from anybody, and samples through a network that does everything wrong.

use crate::script::Script;
use serde_json::Value;
use std::collections::BTreeSet;
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::{FlowId, NodeId},
    sample::{Echo, Meta, PointId},
    time::Time,
};
use tcps_transport::{by_id, endpoint, ChannelContext, Side};

/// An endpoint, if it needs no parameters.
fn make(name: &str, side: Side) -> Option<Box<dyn Endpoint>> {
    let flows = [(1, Side::B, "haptic"), (2, Side::B, "video"), (3, Side::A, "kinematic")];
    endpoint(name, &Value::Null, side, &ChannelContext::of(&flows)).ok()
}

/// A sender and a receiver, and datagrams between them that are lost, repeated, changed, or made up. As long as none is
/// changed or made up no sample comes twice; none of a flow that does not come here ever does, and no endpoint asks to be
/// called again at once. The first byte is the id of the transport, which stays as it is: a new one needs no target. (The
/// kernel's TCP gives its endpoint each frame once: it has a target of its own.)
pub fn transport(data: &[u8]) {
    let Some((&id, data)) = data.split_first() else { return };
    let Some(name) = by_id(id.into()).filter(|name| *name != "kernel-tcp") else { return };
    let (Some(a), Some(b)) = (make(name, Side::A), make(name, Side::B)) else { return };
    let (mut script, mut buf, mut now, mut index) = (Script(data), Vec::new(), 0 as Time, 0u32);
    let mut ends = [a, b];
    let mut flight: [Vec<Vec<u8>>; 2] = Default::default();
    let (mut had, mut forged) = (BTreeSet::new(), false);
    while let Some(step) = script.next() {
        let to = usize::from(step >> 7);
        match step % 6 {
            0 => now += script.number::<3>() as Time,
            1 => ends.iter_mut().for_each(|e| e.handle_input(now, Input::Timeout)),
            2 => {
                let shape = script.number::<2>() as u16;
                let echo =
                    Echo { target: PointId(shape), sequence: index, reply_to: NodeId(3), injected_ns: -1 };
                let echo = (shape % 3 == 0).then_some(echo);
                let meta = Meta { flow: FlowId(1 + shape % 2), index, origin_ns: now, echo };
                let bytes = vec![shape as u8; usize::from(shape % 4000)];
                ends[0].handle_input(now, Input::Sample { meta, bytes: &bytes });
                index = index.wrapping_add(1 + u32::from(shape % 5 == 0));
            }
            3 => {
                let n = script.number::<1>() as usize;
                let bytes = script.take(n);
                forged = true;
                ends[to].handle_input(now, Input::datagram(bytes, now));
            }
            _ if !flight[to].is_empty() => {
                let at = script.number::<1>() as usize % flight[to].len();
                let mut bytes =
                    if step & 64 == 0 { flight[to].swap_remove(at) } else { flight[to][at].clone() };
                if step & 32 != 0 {
                    let place = script.number::<1>() as usize;
                    let value = script.number::<1>() as u8;
                    bytes.get_mut(place).into_iter().for_each(|b| *b ^= value);
                    forged |= value != 0;
                }
                ends[to].handle_input(now, Input::datagram(&bytes, now));
            }
            _ => {}
        }
        for from in 0..2 {
            while let Some(output) = ends[from].poll_output(&mut buf) {
                match output {
                    Output::Transmit(_) if flight[1 - from].len() < 64 => flight[1 - from].push(buf.clone()),
                    Output::Deliver(d) => {
                        assert!(if from == 1 { matches!(d.meta.flow.0, 1 | 2) } else { d.meta.flow.0 == 3 });
                        let is_new = had.insert((d.meta.flow, d.meta.index, d.meta.origin_ns));
                        assert!(is_new || forged, "{name}: sample {} came twice", d.meta.index);
                    }
                    _ => {}
                }
            }
            if step % 6 == 1 {
                assert!(
                    ends[from].poll_timeout().is_none_or(|t| t > now),
                    "{name} would be called again at once"
                );
            }
        }
    }
}
