//! TLS of one side over streams of bytes, one connection after another.
//!
//! ```text
//!  seal ──► records that wait ──► flush ──► stream
//!  receive ◄────────────────────────────── stream
//! ```
//! What does not verify ends the connection: an alert that says why waits to be sent, and nothing behind it is read.

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
/// After this time a handshake is given up: who changes a length makes both sides wait for the rest of a message.
const PATIENCE_NS: Time = 20 * SECOND;

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

/// TLS of one side.
pub(crate) struct TlsStream {
    config: Config,
    chance: Chance,
    connection: Option<Connection>,
    begun_ns: Time,
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
            Side::A => Config::A(Arc::new(identity.client()?)),
            Side::B => Config::B(Arc::new(identity.server()?)),
        };
        Ok(Self {
            config,
            chance,
            connection: None,
            begun_ns: 0,
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

    /// When the handshake is given up; none: there is none, or it is complete.
    pub(crate) fn gives_up_ns(&self) -> Option<Time> {
        let waits = self.connection.as_ref().is_some_and(|c| c.is_handshaking());
        waits.then(|| self.begun_ns.saturating_add(PATIENCE_NS))
    }

    /// Counts a handshake that was given up.
    pub(crate) fn give_up(&mut self) {
        self.stats.expired_handshakes += 1;
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

    /// Seals bytes: one record for each 16 KiB that there are.
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
        (self.connection, self.gone) = (None, 0);
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
