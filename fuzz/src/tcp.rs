//! TCP below its endpoint: packets from anybody, and two ends with somebody between them who forges what fits.

use crate::script::Script;
use tcps_core::time::Time;
use tcps_transport::{
    tcp::{Congestion, Settings, Stack},
    Side,
};
use tcps_wire::tcp::{Blocks, Ecn, Ends, Flags, Repr};

const ENDS: [Ends; 2] = [
    Ends { from: ([192, 0, 2, 2], 7), to: ([192, 0, 2, 1], 7) },
    Ends { from: ([192, 0, 2, 1], 7), to: ([192, 0, 2, 2], 7) },
];

/// A packet: refused, or read as what writes the same again, but for blocks that find no room: options are written aligned.
pub fn segment(data: &[u8]) {
    let mut script = Script(data);
    let end = usize::from(script.next().unwrap_or(0) & 1);
    let mut packet = script.0.to_vec();
    let _ = Repr::parse(&packet, &ENDS[end]);
    if packet.len() >= 40 {
        frame(&mut packet, &ENDS[end]);
    }
    let Ok((mut repr, content)) = Repr::parse(&packet, &ENDS[end]) else { return };
    let mut again = Vec::new();
    repr.emit(&ENDS[end], [content, &[]], &mut again);
    let (written, body) = Repr::parse(&again, &ENDS[end]).expect("what is written is read");
    assert!(repr.options.sack.as_slice().starts_with(written.options.sack.as_slice()));
    repr.options.sack = written.options.sack;
    assert_eq!((written, body), (repr, content));
}

/// Makes bytes a packet between `ends` with good checksums, whatever else they say.
fn frame(packet: &mut [u8], ends: &Ends) {
    let length = packet.len() as u16;
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[6..8].copy_from_slice(&[0x40, 0]);
    packet[9] = 6;
    packet[12..16].copy_from_slice(&ends.from.0);
    packet[16..20].copy_from_slice(&ends.to.0);
    packet[20..22].copy_from_slice(&ends.from.1.to_be_bytes());
    packet[22..24].copy_from_slice(&ends.to.1.to_be_bytes());
    packet[10..12].fill(0);
    packet[36..38].fill(0);
    let ip = !sum(0, &packet[..20]);
    packet[10..12].copy_from_slice(&ip.to_be_bytes());
    let pseudo = u32::from(sum(6 + u32::from(length) - 20, &packet[12..20]));
    let tcp = !sum(pseudo, &packet[20..]);
    packet[36..38].copy_from_slice(&tcp.to_be_bytes());
}

fn sum(begin: u32, bytes: &[u8]) -> u16 {
    let word = |w: &[u8]| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0));
    let mut sum = begin + bytes.chunks(2).map(word).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

const MTU_BYTES: usize = 300;

struct Play {
    ends: [Stack; 2],
    /// Packets in flight, with the end that they go to.
    flight: Vec<(usize, Vec<u8>)>,
    now: Time,
    /// Bytes written and read, by the end that wrote them.
    written: [u64; 2],
    read: [u64; 2],
    forged: bool,
}

/// Two ends over a network that loses, repeats and reorders, and forged segments. Without these what is read is what was
/// written, and in any case no timer runs in the past and no packet is too long.
pub fn tcp_any(data: &[u8]) {
    let mut script = Script(data);
    let shape = script.next().unwrap_or(0);
    let settings = Settings {
        congestion: [Congestion::Reno, Congestion::Cubic, Congestion::None][usize::from(shape % 3)],
        no_delay: shape & 8 == 0,
        send_buffer_bytes: 30_000,
        receive_buffer_bytes: 4_096 << (shape >> 6),
        mtu_bytes: MTU_BYTES,
        ecn: shape & 16 != 0,
    };
    let seed = u64::from(shape);
    let ends = [Stack::new(&settings, Side::A, seed), Stack::new(&settings, Side::B, seed + 1)];
    let mut play = Play { ends, flight: vec![], now: 0, written: [0; 2], read: [0; 2], forged: false };
    play.ends[1].listen(0);
    play.ends[0].connect(0);
    play.collect();
    while let Some(step) = script.next() {
        let (end, place) = (usize::from(step >> 7), script.number::<1>() as usize);
        match step % 8 {
            0 => play.wait(place as Time * 2_000_000),
            1 => play.wait(script.number::<4>() as Time * 100),
            2 => play.write(end, place * 40),
            3 if !play.flight.is_empty() => drop(play.flight.remove(place % play.flight.len())),
            4 if place % 16 == 0 => play.ends[end].close(play.now),
            4 => play.repeat(place),
            5 => play.forge(end, &mut script),
            _ => (0..=place % 8).for_each(|_| play.pass(if step & 8 == 0 { 0 } else { place })),
        }
        play.collect();
    }
}

fn content(position: u64) -> u8 {
    (position % 251) as u8
}

impl Play {
    fn collect(&mut self) {
        for end in 0..2 {
            self.ends[end].poll(self.now);
            let mut packet = Vec::new();
            while self.ends[end].pop(&mut packet).is_some() {
                assert!(packet.len() <= MTU_BYTES, "{} bytes are more than the path takes", packet.len());
                if self.flight.len() < 256 {
                    self.flight.push((1 - end, std::mem::take(&mut packet)));
                }
                packet.clear();
            }
            let wake_ns = self.ends[end].wake_ns();
            assert!(wake_ns.is_none_or(|t| t > self.now), "end {end} would be called again at once");
        }
    }

    fn wait(&mut self, span_ns: Time) {
        self.now += span_ns;
        self.collect();
    }

    fn write(&mut self, end: usize, bytes: usize) {
        let bytes: Vec<u8> = (0..bytes as u64).map(|i| content(self.written[end] + i)).collect();
        self.written[end] += self.ends[end].write(&bytes) as u64;
    }

    fn repeat(&mut self, place: usize) {
        if !self.flight.is_empty() {
            let (to, packet) = self.flight[place % self.flight.len()].clone();
            self.arrive(to, &packet);
        }
    }

    fn pass(&mut self, place: usize) {
        if !self.flight.is_empty() {
            let (to, packet) = self.flight.remove(place % self.flight.len());
            self.arrive(to, &packet);
            self.collect();
        }
    }

    fn arrive(&mut self, to: usize, packet: &[u8]) {
        self.ends[to].receive(self.now, packet);
        let (read, forged) = (&mut self.read[1 - to], self.forged);
        self.ends[to].read(|part| {
            let same = part.iter().enumerate().all(|(i, b)| *b == content(*read + i as u64));
            assert!(forged || same, "what is read is not what was written");
            *read += part.len() as u64;
        });
        assert!(self.forged || self.read[1 - to] <= self.written[1 - to]);
    }

    /// A segment like one in flight, with other numbers.
    fn forge(&mut self, to: usize, script: &mut Script<'_>) {
        self.forged = true;
        let like = self.flight.iter().rev().find(|f| f.0 == to);
        let known = like.and_then(|f| Repr::parse(&f.1, &ENDS[to]).ok().map(|found| found.0));
        let mut repr = known.unwrap_or_default();
        let near = |script: &mut Script<'_>| (script.number::<2>() as u16 as i16) as i32;
        let change = script.next().unwrap_or(0);
        if change & 1 != 0 {
            repr.sequence = repr.sequence.wrapping_add_signed(near(script));
        }
        if change & 2 != 0 {
            repr.acknowledgement = repr.acknowledgement.wrapping_add_signed(near(script));
        }
        if change & 4 != 0 {
            repr.flags = Flags(script.next().unwrap_or(0));
        }
        if change & 8 != 0 {
            repr.window = script.number::<2>() as u16;
        }
        if change & 16 != 0 {
            repr.options.sack = Blocks::default();
            for _ in 0..3 {
                let first = repr.acknowledgement.wrapping_add_signed(near(script));
                repr.options.sack.push(first, first.wrapping_add_signed(near(script)));
            }
        }
        if change & 32 != 0 {
            repr.options.stamps = repr
                .options
                .stamps
                .map(|s| (s.0.wrapping_add_signed(near(script)), s.1.wrapping_add_signed(near(script))));
        }
        if change & 64 != 0 {
            repr.ecn = Ecn::Met;
        }
        let bytes = vec![0xee; script.number::<1>() as usize];
        let mut packet = Vec::new();
        repr.emit(&ENDS[to], [&bytes, &[]], &mut packet);
        self.arrive(to, &packet);
    }
}
