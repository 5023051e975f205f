//! What the targets share: fuzzed bytes as a script of steps, and an endpoint that plays it.

use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    sample::{Echo, Meta},
    time::Time,
};

/// Most steps of a script.
const STEPS: usize = 256;
/// Most outputs that one input may cause: a script holds at most 64 KiB, so more would be a loop.
const OUTPUTS: usize = 1 << 17;

/// Reads numbers and pieces off the front of fuzzed bytes; gives zeros at their end.
#[derive(Debug)]
pub struct Script<'a>(pub &'a [u8]);

impl<'a> Script<'a> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.piece(1).first().copied().unwrap_or(0)
    }

    /// The next two bytes as a number.
    pub fn short(&mut self) -> u16 {
        u16::from(self.byte()) << 8 | u16::from(self.byte())
    }

    /// A signed number of nanoseconds of any size: seven bits, shifted.
    pub fn span(&mut self) -> Time {
        let (value, shift) = (i64::from(self.byte() as i8), self.byte() % 57);
        value << shift
    }

    /// At most `n` bytes.
    pub fn piece(&mut self, n: usize) -> &'a [u8] {
        let (piece, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        piece
    }
}

/// Plays a script to an endpoint: datagrams (of strangers, or its own handed back), samples and time-outs, in time
/// that never goes back. After each step it takes all outputs and looks at the deadline.
pub fn play(endpoint: &mut dyn Endpoint, script: &mut Script<'_>, flows: &[u16]) {
    let (mut now, mut index) = (0, 0);
    let mut returned: Vec<Vec<u8>> = Vec::new();
    for _ in 0..STEPS {
        if script.0.is_empty() {
            return;
        }
        match script.byte() % 5 {
            0 => now += script.span().saturating_abs().min(1 << 50),
            1 => {
                let size = usize::from(script.byte());
                let bytes = script.piece(size);
                let received_ns = now + script.span();
                endpoint.handle_input(now, Input::Datagram { bytes, received_ns });
            }
            2 => {
                if let Some(bytes) = returned.pop() {
                    endpoint.handle_input(now, Input::Datagram { bytes: &bytes, received_ns: now });
                }
            }
            3 => {
                index += 1;
                let flow = flows[usize::from(script.byte()) % flows.len()];
                let echo = (script.byte() % 2 == 1)
                    .then_some(Echo { target: 3, sequence: index, reply_to: 0, injected_ns: now });
                let size = usize::from(script.short());
                let meta = Meta { flow, index, origin_ns: now, echo };
                endpoint.handle_input(now, Input::Sample { meta, bytes: &vec![7; size] });
            }
            _ => endpoint.handle_input(now, Input::Timeout),
        }
        take_all(endpoint, &mut returned);
    }
}

fn take_all(endpoint: &mut dyn Endpoint, returned: &mut Vec<Vec<u8>>) {
    let mut buffer = Vec::new();
    for _ in 0..OUTPUTS {
        buffer.clear();
        match endpoint.poll_output(&mut buffer) {
            None => {
                let _ = endpoint.poll_timeout();
                return;
            }
            Some(Output::Transmit(_)) if returned.len() < 64 => returned.push(buffer.clone()),
            Some(_) => {}
        }
    }
    panic!("an endpoint that never stops talking");
}
