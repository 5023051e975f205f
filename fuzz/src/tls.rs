//! TLS below the samples: two ends of `tcp` with TLS, and somebody between them who ends the TCP of both and has the bytes of their
//! records in hand: hands them on in pieces, changes them, takes some away, and puts raw bytes among them.

use crate::script::Script;
use serde_json::Value;
use tcps_core::{
    endpoint::{Ecn, Endpoint, Input, Output},
    ids::FlowId,
    sample::Meta,
    time::{Time, MS},
};
use tcps_transport::{
    endpoint,
    tcp::{Congestion, Settings, Stack},
    ChannelContext, Side, TlsSecret,
};

const SIDES: [Side; 2] = [Side::A, Side::B];
const SETTINGS: Settings = Settings {
    congestion: Congestion::None,
    no_delay: true,
    send_buffer_bytes: 1 << 18,
    receive_buffer_bytes: 1 << 18,
    mtu_bytes: 1_200,
    ecn: false,
};

struct Between {
    ends: [Box<dyn Endpoint>; 2],
    /// Each is the other side of the connection of an end.
    stacks: [Stack; 2],
    /// What came from an end and has not been handed on.
    bytes: [Vec<u8>; 2],
    /// Lengths of the samples of an end, and how many have arrived at the other.
    sent: [Vec<usize>; 2],
    arrived: [u32; 2],
    now: Time,
}

/// Raw bytes in the stream, before, in and behind the handshake: what arrives is what was sent, in order, or nothing.
pub fn tls_record(data: &[u8]) {
    let mut script = Script(data);
    let flows = ChannelContext::of(&[(0, Side::B, "kinematic"), (1, Side::A, "haptic")]);
    let context = ChannelContext { tls: Some(TlsSecret::Seeded), ..flows };
    let mut play = Between {
        ends: SIDES.map(|side| endpoint("tcp", &Value::Null, side, &context).expect("good parameters")),
        stacks: SIDES.map(|side| Stack::new(&SETTINGS, if side == Side::A { Side::B } else { Side::A }, 1)),
        bytes: [vec![], vec![]],
        sent: [vec![], vec![]],
        arrived: [0; 2],
        now: 0,
    };
    play.run();
    while let Some(step) = script.next() {
        let end = usize::from(step >> 7);
        match step % 8 {
            0 => play.now += script.number::<1>() as Time * 10 * MS,
            1 => play.sample(end, script.number::<2>() as usize % 6_000),
            2 => {
                let n = script.number::<1>() as usize;
                play.bytes[end].extend(script.take(n));
            }
            3 => {
                let n = (script.number::<1>() as usize).min(play.bytes[end].len());
                play.bytes[end].drain(..n);
            }
            4 => {
                let (bit, all) = (script.number::<2>() as usize, 8 * play.bytes[end].len().max(1));
                let byte = play.bytes[end].get_mut(bit % all / 8);
                byte.into_iter().for_each(|byte| *byte ^= 1 << (bit % 8));
            }
            5 => play.stacks[end].abort(play.now),
            _ => play.hand_on(end, 32 * script.number::<1>() as usize),
        }
        play.run();
    }
}

impl Between {
    fn sample(&mut self, end: usize, length: usize) {
        let index = self.sent[end].len() as u32;
        let meta = Meta { flow: FlowId(end as u16), index, origin_ns: 9, echo: None };
        self.sent[end].push(length);
        self.ends[end].handle_input(self.now, Input::Sample { meta, bytes: &vec![index as u8; length] });
    }

    fn hand_on(&mut self, end: usize, n: usize) {
        let bytes = &mut self.bytes[end];
        let took = self.stacks[1 - end].write(&bytes[..n.min(bytes.len())]);
        bytes.drain(..took);
    }

    /// Lets each end and the stack that it talks to come to rest.
    fn run(&mut self) {
        for (at, stack) in self.stacks.iter_mut().enumerate().filter(|(_, stack)| stack.is_closed()) {
            match at {
                0 => stack.listen(self.now),
                _ => stack.connect(self.now),
            }
        }
        for at in 0..2 {
            self.ends[at].handle_input(self.now, Input::Timeout);
            for _ in 0..1_000 {
                let before = self.drain(at);
                let mut packet = Vec::new();
                self.stacks[at].poll(self.now);
                let after = self.stacks[at].pop(&mut packet).is_some();
                if after {
                    self.ends[at].handle_input(self.now, Input::datagram(&packet, self.now));
                }
                if !before && !after {
                    break;
                }
            }
            let due = self.ends[at].poll_timeout();
            assert!(due.is_none_or(|t| t > self.now), "end {at} would be called again at once");
        }
    }

    /// Takes what an end wants done; false if there is nothing.
    fn drain(&mut self, at: usize) -> bool {
        let (mut buf, mut any) = (Vec::new(), false);
        while let Some(output) = self.ends[at].poll_output(&mut buf) {
            any = true;
            match output {
                Output::Transmit(_) => {
                    self.stacks[at].receive_inside(self.now, &buf, Ecn::NotCapable);
                    let bytes = &mut self.bytes[at];
                    self.stacks[at].read(|part| bytes.extend(part));
                }
                Output::Deliver(d) => {
                    let index = d.meta.index;
                    assert!(index >= self.arrived[at], "sample {index} arrives again, or late");
                    self.arrived[at] = index + 1;
                    let same = self.sent[1 - at].get(index as usize) == Some(&buf.len());
                    assert!(same && buf.iter().all(|b| *b == index as u8), "sample {index} is forged");
                }
                Output::Record(_) => {}
            }
        }
        any
    }
}
