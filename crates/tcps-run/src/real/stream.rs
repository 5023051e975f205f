//! TCP of the kernel under a channel: one connection at a time, and a bounded queue of frames in front of it.
//!
//! ```text
//! side a   Down ──ask──► Asked ──► Up        side b   Down ──accept──► Up
//!           ▲───── 1 s ─────┴───────┘                   ▲── a lost one ─┘
//! ```
//! Sockets of a channel are behind one descriptor (epoll), so that a loop waits for them as for any other. A stream of
//! bytes has no kernel stamps: a frame has come when it was read. [design: kernel's TCP]

use super::tcp_socket::{asked, bound, held_bytes, set_dscp, told, TcpInfo};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::{
    cell::Cell,
    io::{self, ErrorKind, Read, Write},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsRawFd, OwnedFd, RawFd},
};
use tcps_core::{
    endpoint::EndpointStats,
    ids::{ChannelId, FlowId},
    record::Record,
    time::{Time, MS, SECOND},
};
use tcps_plan::RunError;
use tcps_transport::{kernel_tcp::Settings, Backlog, Frames, Side, Standing};

/// How long side a waits before it asks again.
const RETRY_NS: Time = SECOND;
/// Time between looks at what the kernel tells of a connection.
const LOOK_NS: Time = 20 * MS;
const CHUNK: usize = 1 << 16;

/// One side of a channel over the kernel's TCP.
pub(super) struct Stream {
    channel: ChannelId,
    settings: Settings,
    epoll: Epoll,
    address: SocketAddr,
    peer: Option<SocketAddr>,
    /// Side b has one.
    listener: Option<TcpListener>,
    /// Side a's first socket, until it asks.
    socket: Option<OwnedFd>,
    line: LineState,
    /// Whether the line waits for room to send.
    waits: bool,
    dscp: u8,
    backlog: Backlog,
    /// Bytes that the connection has taken.
    written: i64,
    frames: Frames,
    chunk: Vec<u8>,
    /// From here on a connection that ends is no loss: the other side may have come to its end.
    end_ns: Time,
    look_ns: Time,
    /// Since when something is unacknowledged.
    unacknowledged_ns: Option<Time>,
    stats: EndpointStats,
    standing: Standing,
    rows: Vec<Record>,
}

/// The connection.
enum LineState {
    /// There is none; side a asks at this moment.
    Down(Time),
    /// Asked for.
    Asked(TcpStream),
    /// It stands.
    Up(TcpStream),
}

impl Stream {
    /// A side of a channel at an address of this machine; a run ends at `end_ns`.
    pub fn prepare(
        channel: ChannelId,
        side: Side,
        ip: IpAddr,
        settings: Settings,
        end_ns: Time,
    ) -> Result<Self, RunError> {
        let fail = |e: io::Error| RunError::system(format!("no TCP socket on {ip}"), e);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|e| fail(e.into()))?;
        let listener = TcpListener::from(bound((ip, 0).into(), &settings)?);
        let address = listener.local_addr().map_err(fail)?;
        let (listener, socket) = match side {
            Side::A => (None, Some(OwnedFd::from(listener))),
            Side::B => (Some(listener), None),
        };
        if let Some(l) = &listener {
            nix::sys::socket::listen(l, nix::sys::socket::Backlog::MAXALLOWABLE)
                .map_err(|e| fail(e.into()))?;
            epoll.add(l, EpollEvent::new(EpollFlags::EPOLLIN, 0)).map_err(|e| fail(e.into()))?;
        }
        Ok(Self {
            channel,
            backlog: Backlog::new(settings.queue_bytes),
            settings,
            epoll,
            address,
            peer: None,
            listener,
            socket,
            line: LineState::Down(0),
            waits: false,
            dscp: 0,
            written: 0,
            frames: Frames::default(),
            chunk: vec![0; CHUNK],
            end_ns,
            look_ns: 0,
            unacknowledged_ns: None,
            stats: EndpointStats::default(),
            standing: Standing::default(),
            rows: Vec::new(),
        })
    }

    /// Number of its channel.
    pub fn channel(&self) -> ChannelId {
        self.channel
    }

    /// Where it can be reached.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The only address that it talks to.
    pub fn join(&mut self, peer: SocketAddr) {
        self.peer = Some(peer);
    }

    /// What to wait for.
    pub fn fd(&self) -> RawFd {
        self.epoll.0.as_raw_fd()
    }

    /// Gives a frame to the connection, or to the queue in front of it; without room there it is refused.
    pub fn send(&mut self, now: Time, frame: &[u8], (flow, index): (FlowId, u32), dscp: u8) {
        if !self.backlog.push_frame(flow, index, frame) {
            self.stats.refused += 1;
        }
        if let (LineState::Up(line), Some(peer)) = (&self.line, self.peer) {
            if dscp != self.dscp {
                set_dscp(line, peer.ip(), dscp);
                self.dscp = dscp;
            }
        }
        self.flush(now);
    }

    /// Does what the kernel is ready for.
    pub fn work(&mut self, now: Time) {
        self.accept(now);
        self.settle(now);
        self.read(now);
        self.flush(now);
    }

    /// The next frame that has come, in `frame`; a stream that cannot be read any further is lost.
    pub fn next(&mut self, now: Time, frame: &mut Vec<u8>) -> bool {
        frame.clear();
        match self.frames.next_frame() {
            Ok(Some(found)) => frame.extend_from_slice(found),
            Ok(None) => return false,
            Err(_) => {
                self.stats.malformed += 1;
                self.lose(now);
                return false;
            }
        }
        true
    }

    /// Asks for a connection when it is time, and looks at the one that stands; rows that came of it, in turn.
    pub fn tend(&mut self, now: Time) -> std::vec::Drain<'_, Record> {
        match &self.line {
            LineState::Down(at) if *at <= now && now < self.end_ns && self.listener.is_none() => {
                self.ask(now)
            }
            LineState::Up(line) if self.look_ns <= now => {
                let told = told(line);
                self.look_ns = now + LOOK_NS;
                self.standing.acknowledged(acknowledged(line, self.written));
                told.into_iter().for_each(|t| self.look(now, t));
            }
            _ => {}
        }
        self.rows.drain(..)
    }

    /// Adds what its connections counted to what the endpoint did.
    pub fn add_to(&self, stats: &mut EndpointStats) {
        let standing = if let LineState::Up(line) = &self.line { told(line) } else { None };
        stats.malformed += self.stats.malformed;
        stats.incomplete += self.stats.incomplete;
        stats.refused += self.stats.refused;
        stats.retransmits += self.stats.retransmits + standing.map_or(0, |t| t.retransmits);
        stats.rtt_ns = standing.map(|t| t.rtt_ns).or(self.stats.rtt_ns);
        stats.connections = Some(self.standing.stats());
    }

    fn ask(&mut self, now: Time) {
        let Some(peer) = self.peer else { return };
        let socket = self.socket.take().map_or_else(|| bound(self.address, &self.settings), Ok);
        let line = socket.ok().and_then(|s| asked(s, peer).ok());
        let watched = line.filter(|line| self.watch(line, EpollFlags::EPOLLOUT));
        self.line = watched.map_or(LineState::Down(now + RETRY_NS), LineState::Asked);
    }

    fn accept(&mut self, now: Time) {
        let Some(Ok((line, from))) = self.listener.as_ref().map(TcpListener::accept) else { return };
        if Some(from) != self.peer || line.set_nonblocking(true).is_err() {
            self.standing.stranger();
            return;
        }
        // The peer asks again only if it has lost the one before.
        self.lose(now);
        if self.watch(&line, EpollFlags::EPOLLIN) {
            self.stand(now, line);
        }
    }

    /// Whether what was asked for stands, or has failed.
    fn settle(&mut self, now: Time) {
        let LineState::Asked(line) = &self.line else { return };
        let failed = !matches!(line.take_error(), Ok(None));
        if !failed && line.peer_addr().is_err() {
            return;
        }
        if let LineState::Asked(line) = std::mem::replace(&mut self.line, LineState::Down(now + RETRY_NS)) {
            if !failed && self.interest(&line, false) {
                self.stand(now, line);
            }
        }
    }

    fn stand(&mut self, now: Time, line: TcpStream) {
        self.line = LineState::Up(line);
        (self.waits, self.dscp, self.look_ns, self.unacknowledged_ns) = (false, 0, now, None);
        self.written = 0;
        let row = self.standing.stands(now);
        self.rows(row);
        self.flush(now);
    }

    /// Writes what there is room for. A connection that takes nothing any more is lost only when all that it brought is
    /// read.
    fn flush(&mut self, now: Time) {
        let LineState::Up(line) = &mut self.line else { return };
        let (mut broken, written) = (false, Cell::new(self.written));
        let mut write = |bytes: &[u8]| match line.write(bytes) {
            Ok(n) => {
                written.set(written.get() + n as i64);
                n
            }
            Err(e) => {
                broken |= !passes(&e);
                0
            }
        };
        while let Some(sample) = self.backlog.oldest() {
            if !self.backlog.drain_frame(&mut write) {
                break;
            }
            self.standing.sent_to(written.get(), sample);
        }
        self.written = written.get();
        if broken {
            // One that was reset is closed already; in either case reading comes to an end.
            let _ = line.shutdown(Shutdown::Both);
        }
        let waits = !self.backlog.is_empty();
        if waits != self.waits && !self.watch_room(waits) {
            self.lose(now);
        }
    }

    fn watch_room(&mut self, waits: bool) -> bool {
        self.waits = waits;
        match &self.line {
            LineState::Up(line) => self.interest(line, waits),
            _ => true,
        }
    }

    fn read(&mut self, now: Time) {
        let LineState::Up(line) = &mut self.line else { return };
        match line.read(&mut self.chunk) {
            Ok(n) if n > 0 => self.frames.push(&self.chunk[..n]),
            Err(e) if passes(&e) => {}
            _ => self.lose(now),
        }
    }

    fn watch(&self, line: &TcpStream, flags: EpollFlags) -> bool {
        self.epoll.add(line, EpollEvent::new(flags, 0)).is_ok()
    }

    fn interest(&self, line: &TcpStream, room: bool) -> bool {
        let flags = if room { EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT } else { EpollFlags::EPOLLIN };
        self.epoll.modify(line, &mut EpollEvent::new(flags, 0)).is_ok()
    }

    /// Follows the silence of a connection; one that has ended is noted with its length.
    fn look(&mut self, now: Time, told: TcpInfo) {
        self.stats.rtt_ns = Some(told.rtt_ns);
        if told.unacknowledged == 0 {
            self.unacknowledged_ns = None;
        }
        let since = (told.unacknowledged > 0).then(|| *self.unacknowledged_ns.get_or_insert(now));
        let silence = since.map_or(0, |t| (now - t).min(told.silent_ns));
        let row = self.standing.silent(now, silence);
        self.rows(row);
    }

    /// The connection has gone, and with it what was in flight: samples that were not yet whole.
    fn lose(&mut self, now: Time) {
        let LineState::Up(line) = std::mem::replace(&mut self.line, LineState::Down(now + RETRY_NS)) else {
            return;
        };
        self.stats.retransmits += told(&line).map_or(0, |t| t.retransmits);
        self.stats.incomplete += u64::from(self.frames.has_part());
        self.frames = Frames::default();
        self.standing.acknowledged(acknowledged(&line, self.written));
        let part = self.backlog.forget_part();
        let rows = if now < self.end_ns {
            self.standing.lose(now, part)
        } else {
            self.standing.silent(now, 0).into_iter().collect()
        };
        self.rows(rows);
    }

    fn rows(&mut self, rows: impl IntoIterator<Item = Record>) {
        let point = self.channel.0;
        self.rows.extend(rows.into_iter().map(|row| Record { point, ..row }));
    }
}

/// How many of the bytes that a connection has taken are acknowledged.
fn acknowledged(line: &TcpStream, written: i64) -> i64 {
    held_bytes(line).map_or(0, |held| written - i64::from(held))
}

/// Whether a connection goes on after this.
fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
