//! RTP: its formats, and the endpoints that take datagrams from anybody.

use crate::script::Script;
use serde_json::json;
use tcps_core::{
    endpoint::{Input, Output},
    ids::FlowId,
    sample::Meta,
    time::Time,
};
use tcps_transport::{endpoint, ChannelContext, Side};
use tcps_wire::{
    rtcp::{bye, ccfb, feedback, report, sdes, xr, Packets},
    rtp::{extension::Elements, flexfec, red, ulpfec, Packet},
};

/// RTP packets with all that rides in them, and RTCP: what is accepted has its parts inside the bytes.
pub fn rtcp(data: &[u8]) {
    if let Ok(packet) = Packet::new_checked(data) {
        let extension = packet.extension();
        let elements = extension.and_then(|(profile, data)| Elements::new(profile, data));
        assert!(elements.into_iter().flatten().map(|e| e.data.len()).sum::<usize>() <= data.len());
        let blocks = red::parse(packet.payload()).unwrap_or_default();
        assert!(blocks.iter().map(|b| b.data.len()).sum::<usize>() <= packet.payload().len());
        let _ = (ulpfec::Repr::parse(packet.payload()), flexfec::Repr::parse(packet.payload()));
    }
    for packet in Packets::reduced(data).into_iter().flatten() {
        let reports = report::Report::parse(&packet).map_or(0, |r| r.blocks.len());
        assert!(reports <= report::MAX_BLOCKS);
        let _ = (sdes::parse(&packet), bye::Bye::parse(&packet), bye::App::parse(&packet));
        let _ = (ccfb::Ccfb::parse(&packet), xr::parse(&packet));
        let nacked = feedback::Feedback::parse(&packet).map_or(0, |f| f.nacked().count());
        assert!(nacked <= 17 * data.len());
    }
}

/// Datagrams from anybody at an RTP endpoint.
pub fn rtp(data: &[u8]) {
    let mut script = Script(data);
    let choice = script.number::<1>() as usize;
    let kind = ["none", "rfc2198", "ulpfec", "flexfec"][choice % 4];
    let params = json!({"redundancy": kind, "extended": true, "feedback_ns": 50_000_000, "congestion": "gcc", "nack": choice / 4 % 3});
    bombard("rtp", &params, script);
}

/// Datagrams from anybody at an endpoint with a block code, or with copies. Not more than 2 of these: all that wait may be
/// due together.
pub fn fec(data: &[u8]) {
    let mut script = Script(data);
    let choice = script.number::<1>() as usize;
    if choice / 2 % 2 == 0 {
        let code = ["xor", "reed_solomon"][choice % 2];
        bombard("parity", &json!({"code": code}), script);
    } else {
        let spacing_ns = [15_000_000, 0][choice % 2];
        bombard("repeat", &json!({"copies": choice / 4 % 3, "spacing_ns": spacing_ns}), script);
    }
}

/// Each datagram is refused, or counted, or has its effect; no sample comes for a flow that does not come here.
fn bombard(transport: &str, params: &serde_json::Value, mut script: Script<'_>) {
    let context =
        ChannelContext::of(&[(1, Side::B, "kinematic"), (2, Side::B, "video"), (3, Side::A, "haptic")]);
    let mut endpoint = endpoint(transport, params, Side::B, &context).expect("good parameters");
    let (mut buf, mut now): (Vec<u8>, Time) = (Vec::new(), 0);
    while let Some(step) = script.next() {
        match step % 4 {
            0 => now += script.number::<4>() as Time,
            1 => endpoint.handle_input(now, Input::Timeout),
            _ if step >= 0xf0 => {
                let meta = Meta { flow: FlowId(3), index: step.into(), origin_ns: now, echo: None };
                endpoint.handle_input(now, Input::Sample { meta, bytes: b"force" });
            }
            _ => {
                let n = script.number::<1>() as usize;
                endpoint.handle_input(now, Input::datagram(script.take(n), now));
            }
        }
        let mut outputs = 0;
        while let Some(output) = endpoint.poll_output(&mut buf) {
            if let Output::Deliver(d) = output {
                assert!(matches!(d.meta.flow.0, 1 | 2));
            }
            outputs += 1;
            assert!(outputs < 10_000, "it never ends");
        }
    }
}
