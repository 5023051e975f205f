//! One end of an RTP session over UDP, to talk with other programs: sends frames of a file, receives, and prints
//! what it counted as JSON. RTP is on the given port, RTCP on the next one.
//!
//! `rtp_peer FLOW send|receive LOCAL-PORT PEER-PORT SECONDS PERIOD-MS [FRAMES [PARAMETERS [LOSE]]]`, where FLOW is
//! `audio` or `video`, FRAMES a file of frames, each behind its length (32 bits, network order; `-` for silence),
//! PARAMETERS more of the transport, as JSON, and every LOSE-th RTP packet is lost on its way out.

use serde_json::{json, Map, Value};
use std::{
    error::Error,
    io::ErrorKind,
    net::UdpSocket,
    num::NonZeroU64,
    time::{Duration, Instant},
};
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::FlowId,
    sample::Meta,
    time::Time,
};
use tcps_transport::{rtp::Rtp, ChannelContext, Side};
use tcps_wire::{
    rtcp::{report::Report, Packets},
    rtp::is_rtcp,
};

/// The two sockets, which take from any port of the peer, and what came and went.
struct Peer {
    endpoint: Rtp,
    sockets: [UdpSocket; 2],
    peer: u16,
    begin: Instant,
    delivered: u64,
    bytes: u64,
    blocks: u64,
    lost_at_peer: i32,
    /// When the peer's newest sender report left: the middle of its NTP time.
    sender_report: Option<u32>,
    /// Report blocks of ours that name it.
    answered: u64,
    packets: u64,
    lose_every: Option<u64>,
}

impl Peer {
    fn now(&self) -> Time {
        self.begin.elapsed().as_nanos() as Time
    }

    fn pump(&mut self) {
        let mut buf = Vec::new();
        while let Some(output) = self.endpoint.poll_output(&mut buf) {
            match output {
                Output::Transmit(_) => self.transmit(&buf),
                Output::Deliver(_) => {
                    self.delivered += 1;
                    self.bytes += buf.len() as u64;
                }
                Output::Record(_) => {}
            }
        }
    }

    fn transmit(&mut self, bytes: &[u8]) {
        let i = usize::from(is_rtcp(bytes));
        if i == 1 {
            let blocks = reports(bytes).flat_map(|r| r.blocks);
            self.answered += blocks.filter(|b| Some(b.last_sr) == self.sender_report).count() as u64;
        } else {
            self.packets += 1;
            if self.lose_every.is_some_and(|n| self.packets.is_multiple_of(n)) {
                return;
            }
        }
        // A peer that is not there yet or any more answers with an error of the socket.
        drop(self.sockets[i].send_to(bytes, ("127.0.0.1", self.peer + i as u16)));
    }

    fn receive(&mut self) -> std::io::Result<()> {
        let mut buf = [0; 65_536];
        for i in 0..2 {
            loop {
                let n = match self.sockets[i].recv(&mut buf) {
                    Ok(n) => n,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::ConnectionRefused => continue,
                    Err(e) => return Err(e),
                };
                let bytes = &buf[..n];
                self.note_reports(bytes);
                let now = self.now();
                self.endpoint.handle_input(now, Input::datagram(bytes, now));
                self.pump();
            }
        }
        Ok(())
    }

    /// What the peer says that it lost, and when it last said what it sent.
    fn note_reports(&mut self, bytes: &[u8]) {
        for report in reports(bytes) {
            self.sender_report = report.sender.map(|s| (s.ntp >> 16) as u32).or(self.sender_report);
            for block in report.blocks {
                self.blocks += 1;
                self.lost_at_peer = block.lost;
            }
        }
    }
}

/// The reports in a datagram.
fn reports(bytes: &[u8]) -> impl Iterator<Item = Report> + '_ {
    let packets = is_rtcp(bytes).then(|| Packets::compound(bytes).ok()).flatten();
    packets.into_iter().flatten().filter_map(|p| Report::parse(&p).ok())
}

fn frames(path: Option<String>) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let Some(path) = path.filter(|path| path != "-") else { return Ok(vec![vec![0xff; 160]]) };
    let bytes = std::fs::read(path)?;
    let (mut rest, mut frames) = (&bytes[..], Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        frames.push(after.get(..length).ok_or("the frames end early")?.to_vec());
        rest = &after[length..];
    }
    Ok(frames)
}

impl Peer {
    /// Sends a frame each period, or only answers, until the end; then this side leaves. How many it sent.
    fn talk(
        &mut self,
        end: Duration,
        frames: Option<&[Vec<u8>]>,
        period_ns: Time,
    ) -> Result<u32, Box<dyn Error>> {
        let mut index = 0u32;
        while self.begin.elapsed() < end {
            let now = self.now();
            let origin_ns = Time::from(index) * period_ns;
            if let Some(frames) = frames.filter(|_| now >= origin_ns) {
                let meta = Meta { flow: FlowId(0), index, origin_ns, echo: None };
                let bytes = &frames[index as usize % frames.len()];
                self.endpoint.handle_input(now, Input::Sample { meta, bytes });
                index += 1;
            }
            if self.endpoint.poll_timeout().is_some_and(|t| t <= now) {
                self.endpoint.handle_input(now, Input::Timeout);
            }
            self.pump();
            self.receive()?;
            std::thread::sleep(Duration::from_micros(500));
        }
        // What is on its way comes, then this side leaves.
        for _ in 0..100 {
            self.receive()?;
            std::thread::sleep(Duration::from_millis(3));
        }
        let now = self.now();
        self.endpoint.leave(now);
        self.pump();
        Ok(index)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("an argument is missing");
    let (flow, role) = (next()?, next()?);
    let (local, peer): (u16, u16) = (next()?.parse()?, next()?.parse()?);
    let seconds: f64 = next()?.parse()?;
    let period_ns = next()?.parse::<Time>()? * 1_000_000;
    let frames = frames(arguments.next())?;
    let more: Map<String, Value> =
        arguments.next().map_or(Ok(Map::new()), |text| serde_json::from_str(&text))?;
    let lose_every = arguments.next().map(|n| n.parse::<NonZeroU64>()).transpose()?.map(NonZeroU64::get);
    let socket = |offset: u16| {
        let socket = UdpSocket::bind(("127.0.0.1", local + offset))?;
        socket.set_nonblocking(true)?;
        Ok::<_, std::io::Error>(socket)
    };
    let mut ctx = ChannelContext::of(&[(0, Side::B, &flow)]);
    ctx.flows[0].period_ns = period_ns;
    let side = if role == "send" { Side::A } else { Side::B };
    let mut params = json!({"extended": true, "identity": flow == "audio", "mtu_bytes": 1200});
    more.into_iter().for_each(|(key, value)| params[key] = value);
    let endpoint = Rtp::new(&params, side, &ctx)?;
    let sockets = [socket(0)?, socket(1)?];
    let begin = Instant::now();
    let mut p = Peer {
        endpoint,
        sockets,
        peer,
        begin,
        delivered: 0,
        bytes: 0,
        blocks: 0,
        lost_at_peer: 0,
        sender_report: None,
        answered: 0,
        packets: 0,
        lose_every,
    };
    let sent =
        p.talk(Duration::from_secs_f64(seconds), (role == "send").then_some(&frames[..]), period_ns)?;
    let s = p.endpoint.stats();
    let counted = json!({
        "sent": sent, "delivered": p.delivered, "bytes": p.bytes, "malformed": s.malformed, "lost": s.lost,
        "incomplete": s.incomplete, "reports": s.reports, "blocks": p.blocks, "lost_at_peer": p.lost_at_peer,
        "answered": p.answered, "rtt_ns": s.rtt_ns, "jitter_ns": s.jitter_ns,
    });
    println!("{counted}");
    Ok(())
}
