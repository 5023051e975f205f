//! Every transport against datagrams that are cut, out of order, replayed, a year old or of the year to come: counted and
//! survived, and the session goes on.

use crate::{
    boxed::boxed,
    pair::Boxed,
    session::{content, meta},
};
use serde_json::{json, Value};
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    time::{Time, MS, SECOND},
};
use tcps_transport::{names, ChannelContext, Side};

const YEAR: Time = 365 * 24 * 3600 * SECOND;
const LATENCY: Time = 5 * MS;
/// They throw a packet away that they have had, and tell nobody.
const SILENT: [&str; 2] = ["quic", "kernel-tcp"];
/// They connect when the run begins: a session that began in another year has no packets, or those of no connection.
const UNDATED: [&str; 3] = ["tcp", "quic", "kernel-tcp"];
/// They leave samples out by what they hear of delays, for ten seconds after a lie.
const SPARING: [&str; 2] = ["etp", "pahcp"];

/// Two ends and what is between them. Flow 1 goes to b, flow 2 back, a sample each a millisecond.
struct Line {
    ends: [Boxed; 2],
    /// When it arrives, where, and what it is.
    flight: Vec<(Time, usize, Vec<u8>)>,
    /// All that arrived at b.
    log: Vec<Vec<u8>>,
    delivered: [u32; 2],
    records: [u64; 2],
    now: Time,
    sent: u32,
}

impl Line {
    fn new(name: &str, begin: Time) -> Self {
        let params = if name == "timetable-k" { json!({"at_ms": [0], "k": [2]}) } else { Value::Null };
        let ctx = ChannelContext::of(&[(1, Side::B, "haptic"), (2, Side::A, "kinematic")]);
        let ends = [Side::A, Side::B].map(|side| boxed(name, &params, side, &ctx));
        Self {
            ends,
            flight: Vec::new(),
            log: Vec::new(),
            delivered: [0; 2],
            records: [0; 2],
            now: begin,
            sent: 0,
        }
    }

    fn drain(&mut self, end: usize) {
        let mut buf = Vec::new();
        while let Some(output) = self.ends[end].poll_output(&mut buf) {
            match output {
                Output::Transmit(_) => self.flight.push((self.now + LATENCY, 1 - end, buf.clone())),
                Output::Deliver(_) => self.delivered[end] += 1,
                Output::Record(_) => self.records[end] += 1,
            }
        }
    }

    fn take(&mut self, end: usize, bytes: &[u8]) {
        self.ends[end].handle_input(self.now, Input::datagram(bytes, self.now));
        self.drain(end);
    }

    fn run(&mut self, milliseconds: u32) {
        for _ in 0..milliseconds {
            for end in 0..2 {
                if self.ends[end].poll_timeout().is_some_and(|t| t <= self.now) {
                    self.ends[end].handle_input(self.now, Input::Timeout);
                    self.drain(end);
                }
                let bytes = content(self.sent, if end == 0 { 12 } else { 24 });
                let meta = meta(1 + end as u16, self.sent, self.now);
                self.ends[end].handle_input(self.now, Input::Sample { meta, bytes: &bytes });
                self.drain(end);
            }
            self.sent += 1;
            let (due, later): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.flight).into_iter().partition(|f| f.0 <= self.now);
            self.flight = later;
            for (_, to, bytes) in due {
                self.take(to, &bytes);
                if to == 1 {
                    self.log.push(bytes);
                }
            }
            self.now += MS;
        }
    }
}

/// What arrived in a session of its own that began at some moment.
fn session_at(name: &str, begin: Time) -> Vec<Vec<u8>> {
    let mut line = Line::new(name, begin);
    line.run(200);
    line.log
}

/// What is wrong with a transport under attack; nothing if all is well.
fn attacked(name: &str) -> Option<String> {
    let mut line = Line::new(name, 0);
    line.run(400);
    let had: Vec<_> = line.log.iter().rev().take(50).cloned().collect();
    let before = line.ends[1].stats();
    for bytes in &had {
        [1, bytes.len() / 2, bytes.len() - 1].iter().for_each(|n| line.take(1, &bytes[..*n]));
    }
    let cut = line.ends[1].stats();
    had.iter().for_each(|bytes| line.take(1, bytes));
    let again = line.ends[1].stats();
    // A number or time that is ahead of all is that of something new; of which half of its range a year is, hangs on the header.
    let told = |line: &Line| {
        let stats = line.ends[1].stats();
        stats.duplicates + stats.malformed + u64::from(line.delivered[1]) + line.records[1]
    };
    let misdated = [-YEAR, YEAR].map(|begin| {
        let before = told(&line);
        session_at(name, begin).iter().for_each(|bytes| line.take(1, bytes));
        told(&line) - before
    });
    let begun = line.delivered;
    line.run(1000);
    let more = [0, 1].map(|end| line.delivered[end] - begun[end]);
    let counted = again.duplicates + again.malformed > cut.duplicates + cut.malformed;
    let least = if SPARING.contains(&name) { 50 } else { 900 };
    let well = [
        (begun[1] > 300, "it delivers before"),
        (cut.malformed > before.malformed, "what is cut is counted"),
        (counted || SILENT.contains(&name), "what comes again, in the wrong order, is counted"),
        (
            misdated.iter().all(|n| *n > 0) || UNDATED.contains(&name),
            "what is a year old, and what is of the year to come, is counted, told of in a record, or new",
        ),
        (more.iter().all(|n| *n > least), "the session goes on"),
    ];
    let wrong: Vec<_> = well.iter().filter(|w| !w.0).map(|w| w.1).collect();
    (!wrong.is_empty()).then(|| format!("{name}: not so: {}; {more:?} of 1000 since then", wrong.join(", ")))
}

#[test]
fn cut_replayed_reordered_and_misdated_datagrams_are_survived_by_every_transport() {
    let wrong: Vec<_> = names().into_iter().filter_map(attacked).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
