//! Two ends of a TCP connection, and a hand on the wire between them.

use std::collections::BTreeMap;
use tcps_core::time::{Time, MS};
use tcps_transport::{
    tcp::{Congestion, Settings, Stack},
    Side,
};
use tcps_wire::tcp::{Ends, Repr};

pub const A: [u8; 4] = [192, 0, 2, 1];
pub const B: [u8; 4] = [192, 0, 2, 2];
pub const LATENCY_NS: Time = 15 * MS;
pub const SEGMENT: u64 = 1448;

/// A packet that was sent.
#[derive(Debug, Clone)]
pub struct Seen {
    pub at: Time,
    pub from_a: bool,
    pub segment: Repr,
    pub bytes: u64,
}

pub type Fate<'a> = Box<dyn FnMut(&Seen, usize) -> Vec<Time> + 'a>;

/// Two ends, 15 ms apart, and a hand on the wire: it says for each packet after which delays it arrives.
pub struct Wire<'a> {
    pub ends: [Stack; 2],
    pub now: Time,
    pub mtu_bytes: usize,
    pub flight: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    pub seen: Vec<Seen>,
    pub fate: Fate<'a>,
    pub marks: bool,
    /// Bytes that A has written.
    pub written: u64,
    /// Bytes that B has read, and whether it reads; what A has read.
    pub got: Vec<u8>,
    pub reads: bool,
    pub got_back: Vec<u8>,
}

pub fn settings(congestion: Congestion) -> Settings {
    let buffer = 1 << 20;
    Settings {
        congestion,
        no_delay: true,
        send_buffer_bytes: buffer,
        receive_buffer_bytes: buffer,
        mtu_bytes: 1500,
        ecn: false,
    }
}

pub fn parse(from_a: bool, packet: &[u8]) -> (Repr, u64) {
    let (from, to) = if from_a { (A, B) } else { (B, A) };
    let (segment, content) = Repr::parse(packet, &Ends { from: (from, 7), to: (to, 7) }).unwrap();
    (segment, content.len() as u64)
}

impl<'a> Wire<'a> {
    pub fn of(settings: &Settings, seed: u64, fate: impl FnMut(&Seen, usize) -> Vec<Time> + 'a) -> Self {
        let mut ends = [Stack::new(settings, Side::A, seed), Stack::new(settings, Side::B, seed + 1)];
        ends[1].listen(0);
        ends[0].connect(0);
        let (flight, seen, got, fate) = (BTreeMap::new(), vec![], vec![], Box::new(fate));
        let mtu_bytes = settings.mtu_bytes;
        Self {
            ends,
            now: 0,
            mtu_bytes,
            flight,
            seen,
            fate,
            marks: false,
            written: 0,
            got,
            reads: true,
            got_back: vec![],
        }
    }

    pub fn new(fate: impl FnMut(&Seen, usize) -> Vec<Time> + 'a) -> Self {
        Self::of(&settings(Congestion::Reno), 1, fate)
    }

    pub fn collect(&mut self, end: usize) {
        let mut packet = Vec::new();
        while self.ends[end].pop(&mut packet).is_some() {
            assert!(packet.len() <= self.mtu_bytes, "{} bytes", packet.len());
            let (segment, bytes) = parse(end == 0, &packet);
            let seen = Seen { at: self.now, from_a: end == 0, segment, bytes };
            let number = self.seen.iter().filter(|s| s.from_a && s.bytes > 0).count();
            for delay_ns in (self.fate)(&seen, number) {
                let key = (self.now + LATENCY_NS + delay_ns, self.seen.len() as u64);
                self.flight.insert(key, (1 - end, packet.clone()));
            }
            self.seen.push(seen);
            packet.clear();
        }
    }

    pub fn run_until(&mut self, end: Time) {
        loop {
            for side in 0..2 {
                self.ends[side].poll(self.now);
                self.collect(side);
            }
            let wakes = self.ends.iter().filter_map(Stack::wake_ns);
            let next = self.flight.keys().map(|k| k.0).chain(wakes).min();
            let Some(next) = next.filter(|t| *t <= end) else { break };
            assert!(next > self.now || self.flight.keys().any(|k| k.0 <= next), "it makes headway");
            self.now = next.max(self.now);
            while let Some(entry) = self.flight.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, mut packet) = entry.remove();
                if self.marks && to == 1 {
                    mark(&mut packet);
                }
                assert!(self.ends[to].receive(self.now, &packet));
                self.collect(to);
                let got = if to == 1 { &mut self.got } else { &mut self.got_back };
                if to == 0 || self.reads {
                    self.ends[to].read(|part| got.extend_from_slice(part));
                }
            }
        }
        self.now = end;
    }

    pub fn write(&mut self, segments: u64) {
        let (start, end) = (self.written, self.written + segments * SEGMENT);
        let bytes: Vec<u8> = (start..end).map(|i| (i % 251) as u8).collect();
        assert_eq!(self.ends[0].write(&bytes), bytes.len());
        self.written = end;
    }

    /// Data of A as segment numbers, with their times in ms, from a moment on.
    pub fn data(&self, from: Time) -> Vec<(i64, u64)> {
        let first = self.seen[0].segment.sequence.wrapping_add(1);
        let all = self.seen.iter().filter(|s| s.from_a && s.bytes > 0 && s.at >= from);
        all.map(|s| (s.at / MS, u64::from(s.segment.sequence.wrapping_sub(first)) / SEGMENT)).collect()
    }

    /// The most segments of data that A sends in a round trip, from a moment on.
    pub fn most_in_a_round(&self, from: Time) -> usize {
        let data = self.data(from);
        let within = |start: i64| data.iter().filter(|d| (start..start + 30).contains(&d.0)).count();
        data.iter().map(|d| within(d.0)).max().unwrap_or(0)
    }

    pub fn assert_whole(&self, segments: u64) {
        let sent: Vec<u8> = (0..segments * SEGMENT).map(|i| (i % 251) as u8).collect();
        assert!(self.got == sent, "{} of {} bytes", self.got.len(), sent.len());
    }
}

/// Marks a packet that may be marked. [RFC 3168 §5]
pub fn mark(packet: &mut [u8]) {
    if packet[1] & 3 == 2 {
        packet[1] |= 3;
        packet[10..12].fill(0);
        let mut sum: u32 = packet[..20].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

pub fn all(_: &Seen, _: usize) -> Vec<Time> {
    vec![0]
}

/// Loses the first copies of those data segments, by number.
pub fn losing(numbers: &[usize]) -> impl FnMut(&Seen, usize) -> Vec<Time> + '_ {
    move |seen, number| {
        let is_lost = seen.from_a && seen.bytes > 0 && numbers.contains(&number);
        if is_lost {
            vec![]
        } else {
            vec![0]
        }
    }
}
