//! TLS of one side over streams of bytes, one connection after another.
//!
//! ```text
//!  seal ──► records that wait ──► flush ──► stream
//!  receive ◄────────────────────────────── stream
//! ```
//! What does not verify ends the connection: an alert that says why waits to be sent, and nothing behind it is read. The header of
//! a record is in the clear, so anybody can forge one: what promises more than a record may hold is refused at once, and what stays
//! incomplete is given up.

use super::{identity::Identity, seeded::Chance};
use crate::channel::{ChannelContext, Side, TlsSecret};
use rustls::{
    pki_types::ServerName, ClientConfig, ClientConnection, Connection, Error, ServerConfig, ServerConnection,
};
use std::{
    io::{BufRead, Write},
    sync::Arc,
};
use tcps_core::{
    endpoint::SecurityStats,
    time::{Time, SECOND},
};

/// The name that side A asks for; no key is chosen by it.
const NAME: &str = "tcpsbed";
/// Most bytes of samples in a record, so that a segment of TCP holds it: what is behind a forged header waits for no more.
const RECORD_BYTES: usize = 1024;
/// Bytes before the content of a record, and those that sealing adds behind it: the type, and a tag.
// [RFC 8446 §5.2]
const HEADER_BYTES: usize = 5;
const SEAL_BYTES: usize = 1 + 16;
/// Most bytes of a record before the handshake is complete: other implementations say more in their hello, such as shares of keys
/// against quantum computers.
const HELLO_BYTES: usize = 4096;
/// Times that an acknowledgement is waited for, without doublings: in a handshake five repeats of one message fit into them, and what
/// is before and behind it; in a record, six repeats of its rest, and twice as long an outage.
const HANDSHAKE_TIMEOUTS: Time = 48;
const RECORD_TIMEOUTS: Time = 128;
/// Bounds of the patience with a handshake.
const PATIENCE_NS: [Time; 2] = [5 * SECOND, 20 * SECOND];

/// How long a handshake may take where an acknowledgement is waited for so long: who changes a length, or falls silent, makes this
/// side wait for the rest of a message.
pub(crate) fn patience_ns(timeout_ns: Time) -> Time {
    timeout_ns.saturating_mul(HANDSHAKE_TIMEOUTS).clamp(PATIENCE_NS[0], PATIENCE_NS[1])
}

/// What connections are made of.
enum Config {
    A(Arc<ClientConfig>),
    B(Arc<ServerConfig>),
}

/// Why a stream cannot be read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its bytes did not verify.
    Here,
    /// The other side says so of those that it got.
    There,
}

/// Where a stream is within its records.
// [RFC 8446 §5.1]
#[derive(Debug, Default)]
struct Place {
    header: [u8; HEADER_BYTES],
    /// Bytes of the header that have come, and of the content that have not.
    come: usize,
    rest: usize,
    since_ns: Time,
}

impl Place {
    /// Goes on to the end of the record, or of the bytes: how many of them. Of a record whose content is longer than `most`, to the
    /// end of its header.
    fn advance(&mut self, now: Time, bytes: &[u8], most: usize) -> usize {
        let mut took = 0;
        if self.rest == 0 {
            if self.come == 0 {
                self.since_ns = now;
            }
            took = bytes.len().min(HEADER_BYTES - self.come);
            self.header[self.come..self.come + took].copy_from_slice(&bytes[..took]);
            self.come += took;
            if self.come < HEADER_BYTES {
                return took;
            }
            self.come = 0;
            self.rest = usize::from(u16::from_be_bytes([self.header[3], self.header[4]]));
            if self.rest > most {
                return took;
            }
        }
        let content = self.rest.min(bytes.len() - took);
        self.rest -= content;
        took + content
    }

    /// Since when a record is incomplete.
    fn open_ns(&self) -> Option<Time> {
        (self.come > 0 || self.rest > 0).then_some(self.since_ns)
    }
}

/// TLS of one side.
pub(crate) struct TlsStream {
    config: Config,
    chance: Chance,
    connection: Option<Connection>,
    begun_ns: Time,
    place: Place,
    /// Records that wait for room in the stream, and how much of them has gone.
    waiting: Vec<u8>,
    gone: usize,
    stats: SecurityStats,
}

impl TlsStream {
    /// That of a side of a channel for a transport, without a connection.
    pub(crate) fn new(
        secret: TlsSecret,
        transport: &str,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, Error> {
        let (identity, chance) = Identity::new(secret, transport, side, ctx)?;
        let config = match side {
            Side::A => {
                let mut config = identity.client()?;
                config.max_fragment_size = Some(HEADER_BYTES + RECORD_BYTES);
                Config::A(Arc::new(config))
            }
            Side::B => {
                let mut config = identity.server()?;
                config.max_fragment_size = Some(HEADER_BYTES + RECORD_BYTES);
                Config::B(Arc::new(config))
            }
        };
        Ok(Self {
            config,
            chance,
            connection: None,
            begun_ns: 0,
            place: Place::default(),
            waiting: Vec::new(),
            gone: 0,
            stats: SecurityStats::default(),
        })
    }

    /// Begins a handshake, unless one has begun: the stream stands.
    pub(crate) fn begin(&mut self, now: Time) {
        if self.connection.is_some() {
            return;
        }
        let config = &self.config;
        let made = self.chance.lend(|| match config {
            Config::A(config) => {
                let name = ServerName::try_from(NAME).map_err(|_| Error::General("no name".into()))?;
                ClientConnection::new(config.clone(), name).map(Connection::from)
            }
            Config::B(config) => ServerConnection::new(config.clone()).map(Connection::from),
        });
        // The configuration was checked when it was made; without randomness of the system there is no connection.
        self.connection = made.ok();
        self.begun_ns = now;
        if let Some(connection) = &mut self.connection {
            connection.set_buffer_limit(None);
        }
        self.stats.added_bytes += self.collect();
    }

    /// Whether the handshake is complete.
    pub(crate) fn is_ready(&self) -> bool {
        self.connection.as_ref().is_some_and(|c| !c.is_handshaking())
    }

    /// When what has begun is given up: the handshake, or a record that is not complete. An acknowledgement of TCP is waited for
    /// `timeout_ns`, without doublings.
    pub(crate) fn gives_up_ns(&self, timeout_ns: Time) -> Option<Time> {
        if self.connection.as_ref()?.is_handshaking() {
            return Some(self.begun_ns.saturating_add(patience_ns(timeout_ns)));
        }
        let record_ns = timeout_ns.saturating_mul(RECORD_TIMEOUTS);
        self.place.open_ns().map(|since| since.saturating_add(record_ns))
    }

    /// Gives it up: a handshake is counted, a record does not verify.
    pub(crate) fn give_up(&mut self) -> Option<Refused> {
        if self.is_ready() {
            return Some(self.break_off());
        }
        self.stats.expired_handshakes += 1;
        None
    }

    /// Takes bytes of the stream; what they open goes to `plain`.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        mut bytes: &[u8],
        mut plain: impl FnMut(&[u8]),
    ) -> Result<(), Refused> {
        self.begin(now);
        while !bytes.is_empty() {
            let most = if self.is_ready() { RECORD_BYTES + SEAL_BYTES } else { HELLO_BYTES };
            let (part, behind) = bytes.split_at(self.place.advance(now, bytes, most));
            self.read(now, part, &mut plain)?;
            // [RFC 8446 §5.2]
            if self.place.rest > most {
                return Err(self.break_off());
            }
            bytes = behind;
        }
        Ok(())
    }

    /// Takes bytes of one record.
    fn read(&mut self, now: Time, mut bytes: &[u8], mut plain: impl FnMut(&[u8])) -> Result<(), Refused> {
        while !bytes.is_empty() {
            let Some(connection) = &mut self.connection else { return Err(Refused::Here) };
            let is_new = connection.is_handshaking();
            // Its buffers are emptied each time: without room there is a message that is longer than all that are allowed.
            if !connection.read_tls(&mut bytes).is_ok_and(|taken| taken > 0) {
                self.stats.refused_connections += 1;
                return Err(Refused::Here);
            }
            let result = self.chance.lend(|| connection.process_new_packets());
            while let Ok(part) = connection.reader().fill_buf().map(<[u8]>::to_vec) {
                if part.is_empty() {
                    break;
                }
                plain(&part);
                connection.reader().consume(part.len());
            }
            if is_new && !connection.is_handshaking() {
                self.stats.sessions += 1;
                self.stats.handshake_ns.get_or_insert(now - self.begun_ns);
            }
            self.stats.added_bytes += self.collect();
            if let Err(error) = result {
                return Err(self.count(&error, is_new));
            }
        }
        Ok(())
    }

    /// Ends the connection at a record whose rest is not waited for: what stands in its place does not verify, so that the other side
    /// is told as after any change.
    fn break_off(&mut self) -> Refused {
        let Place { come, rest, .. } = self.place;
        let rest = vec![0; if rest > 0 { rest } else { HEADER_BYTES - come }];
        self.read(self.begun_ns, &rest, |_| {}).err().unwrap_or_else(|| {
            self.stats.refused_connections += 1;
            Refused::Here
        })
    }

    fn count(&mut self, error: &Error, is_new: bool) -> Refused {
        if matches!(error, Error::AlertReceived(_)) {
            // Only keys of both sides prove whose it is.
            let count = if is_new { &mut self.stats.unproven_alerts } else { &mut self.stats.alerts };
            *count += 1;
            return Refused::There;
        }
        self.stats.refused_connections += 1;
        match error {
            Error::InvalidMessage(_) if is_new => self.stats.unsealed += 1,
            _ if is_new => self.stats.refused_handshakes += 1,
            _ => {}
        }
        Refused::Here
    }

    /// Seals bytes: one record for each KiB that there is.
    // [RFC 8446 §5.1]
    pub(crate) fn seal(&mut self, bytes: &[u8]) {
        let Some(connection) = &mut self.connection else { return };
        // Its buffer has no limit, and is emptied each time.
        let _ = connection.writer().write_all(bytes);
        let sealed = self.collect();
        self.stats.added_bytes += sealed.saturating_sub(bytes.len() as u64);
    }

    /// Gives what waits to `write`, which tells how many bytes it took; true if nothing is left.
    pub(crate) fn flush(&mut self, mut write: impl FnMut(&[u8]) -> usize) -> bool {
        while self.gone < self.waiting.len() {
            let took = write(&self.waiting[self.gone..]);
            if took == 0 {
                return false;
            }
            self.gone += took;
        }
        self.waiting.clear();
        self.gone = 0;
        true
    }

    /// Bytes of records that wait for room.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting.len() - self.gone
    }

    /// The stream is lost.
    pub(crate) fn forget(&mut self) {
        (self.connection, self.gone, self.place) = (None, 0, Place::default());
        self.waiting.clear();
    }

    /// What was counted.
    pub(crate) fn stats(&self) -> SecurityStats {
        self.stats
    }

    /// Takes over what the connection wants sent; how many bytes.
    fn collect(&mut self) -> u64 {
        let before = self.waiting.len();
        if let Some(connection) = &mut self.connection {
            while connection.wants_write() && connection.write_tls(&mut self.waiting).is_ok_and(|n| n > 0) {}
        }
        (self.waiting.len() - before) as u64
    }
}

impl std::fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsStream").field("is_ready", &self.is_ready()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flushed(end: &mut TlsStream) -> Vec<u8> {
        let mut sent = Vec::new();
        let is_all = end.flush(|bytes| {
            sent.extend_from_slice(bytes);
            bytes.len()
        });
        assert!(is_all && end.waiting_bytes() == 0);
        sent
    }

    /// Both sides of a connection.
    struct Ends {
        sides: [TlsStream; 2],
        /// Bytes that each has put on the wire.
        sent: [u64; 2],
    }

    impl Ends {
        fn new() -> Self {
            let ctx = ChannelContext::of(&[(1, Side::B, "kinematic")]);
            let side = |side| TlsStream::new(TlsSecret::Seeded, "tcp", side, &ctx).unwrap();
            Self { sides: [Side::A, Side::B].map(side), sent: [0; 2] }
        }

        /// Begins a connection, and carries its handshake.
        fn connect(&mut self) {
            self.sides[0].begin(0);
            for from in [0, 1, 0] {
                let bytes = flushed(&mut self.sides[from]);
                self.sent[from] += bytes.len() as u64;
                assert_eq!(self.sides[1 - from].receive(0, &bytes, |_| panic!("no sample")), Ok(()));
            }
            assert!(self.sides.iter().all(TlsStream::is_ready));
        }
    }

    /// What TLS costs is reported beside the samples: whatever is on the wire is one or the other.
    #[test]
    fn of_the_bytes_on_the_wire_all_but_the_samples_are_counted_as_added_over_all_connections() {
        let mut ends = Ends::new();
        let mut sealed = [0; 2];
        for length in [1, 100 * RECORD_BYTES + 1] {
            ends.connect();
            for from in [0, 1] {
                let sample = vec![7; length];
                ends.sides[from].seal(&sample);
                let bytes = flushed(&mut ends.sides[from]);
                ends.sent[from] += bytes.len() as u64;
                sealed[from] += length as u64;
                let mut plain = Vec::new();
                let received = ends.sides[1 - from].receive(0, &bytes, |part| plain.extend_from_slice(part));
                assert_eq!((received, plain), (Ok(()), sample));
            }
            ends.sides.iter_mut().for_each(TlsStream::forget);
        }
        assert_eq!(format!("{:?}", ends.sides[0]), "TlsStream { is_ready: false, .. }", "no key is shown");
        for side in [0, 1] {
            assert_eq!(ends.sides[side].stats().added_bytes, ends.sent[side] - sealed[side], "{side}");
        }
    }

    /// A full stream takes a part of what waits. The rest, and an alert that comes to wait behind it, follow once.
    #[test]
    fn behind_a_record_that_has_gone_in_part_an_alert_waits_and_counts_its_own_bytes_only() {
        let mut ends = Ends::new();
        ends.connect();
        let [a, b] = &mut ends.sides;
        let added = a.stats().added_bytes;
        a.seal(&[7; 100]);
        let mut sent = Vec::new();
        let is_all = a.flush(|bytes| {
            let room = bytes.len().min(50 - sent.len());
            sent.extend_from_slice(&bytes[..room]);
            room
        });
        assert!(!is_all);
        assert_eq!((a.waiting_bytes(), a.stats().added_bytes - added), (122 - 50, 22));
        let forged = [&[23, 3, 3, 0, 20][..], &[0; 20]].concat();
        assert_eq!(a.receive(0, &forged, |_| panic!("it does not verify")), Err(Refused::Here));
        assert_eq!((a.waiting_bytes(), a.stats().added_bytes - added), (122 - 50 + 24, 22 + 24));
        sent.extend(flushed(a));
        let mut plain = Vec::new();
        let received = b.receive(0, &sent, |part| plain.extend_from_slice(part));
        assert_eq!((received, plain), (Err(Refused::There), vec![7; 100]));
        assert_eq!((b.stats().alerts, b.stats().unproven_alerts), (1, 0), "keys prove whose alert it is");
    }

    /// Otherwise the first record that comes in two segments would end a connection that has stood for long.
    #[test]
    fn the_patience_with_a_record_begins_with_its_own_first_byte() {
        let mut ends = Ends::new();
        ends.connect();
        let [a, b] = &mut ends.sides;
        for (begin, cut) in [(3_600 * SECOND, 2), (7_200 * SECOND, HEADER_BYTES), (9_000 * SECOND, 60)] {
            a.seal(&[7; 100]);
            let record = flushed(a);
            assert_eq!(b.gives_up_ns(SECOND), None);
            for (late_ns, part) in [(0, 0..cut), (SECOND, cut..cut + 1)] {
                assert_eq!(b.receive(begin + late_ns, &record[part], |_| panic!("in part")), Ok(()));
                assert_eq!(b.gives_up_ns(SECOND), Some(begin + 128 * SECOND), "{cut} B first");
            }
            let mut plain = Vec::new();
            let rest =
                b.receive(begin + 2 * SECOND, &record[cut + 1..], |part| plain.extend_from_slice(part));
            assert_eq!((rest, plain), (Ok(()), vec![7; 100]));
        }
    }

    /// Longer where acknowledgements take long, but a stranger who falls silent holds up a side for 20 s at most.
    #[test]
    fn the_patience_with_a_handshake_follows_the_network_between_5_and_20_seconds() {
        let found = [0, SECOND / 10, SECOND / 5, SECOND, Time::MAX].map(patience_ns);
        assert_eq!(found, [5_000, 5_000, 9_600, 20_000, 20_000].map(|ms| ms * SECOND / 1_000));
    }

    /// Another implementation may say that it is done.
    // [RFC 8446 §6.1]
    #[test]
    fn what_stands_behind_the_end_of_a_connection_is_refused_and_not_waited_for() {
        let mut ends = Ends::new();
        ends.connect();
        let [a, b] = &mut ends.sides;
        a.connection.as_mut().unwrap().send_close_notify();
        a.collect();
        assert_eq!(b.receive(0, &flushed(a), |_| panic!("no sample")), Ok(()));
        let more = [&[23, 3, 3, 0, 20][..], &[0; 20]].concat();
        assert_eq!(b.receive(0, &more, |_| panic!("no sample")), Err(Refused::Here));
        assert_eq!(b.stats().refused_connections, 1);
    }

    /// Zeros in place of its content continue a message that is not complete, and are no reason for TLS to end the connection.
    // [RFC 8446 §5.1]
    #[test]
    fn a_message_of_a_handshake_that_goes_on_in_a_record_that_is_too_long_is_counted() {
        let [_, mut b] = Ends::new().sides;
        let hello_of_60_000 = [22, 3, 1, 0, 4, 1, 0, 0xea, 0x60];
        assert_eq!(b.receive(0, &hello_of_60_000, |_| panic!("no sample")), Ok(()));
        let [high, low] = (HELLO_BYTES as u16 + 1).to_be_bytes();
        assert_eq!(b.receive(0, &[22, 3, 3, high, low], |_| panic!("no sample")), Err(Refused::Here));
        assert_eq!(b.stats().refused_connections, 1);
    }
}
