//! A user: asks a server for objects over a connection, both ends of which are here.
//!
//! ```text
//!  rest ─► connect ─► ask ─► load ─┬─► (parse) ─► next object
//!    ▲                             └─► page is there: close
//!    └──────── think ◄─────────────────────┘
//! ```

use super::{connection::Connection, quic::Quic, tcp::Tcp};
use tcps_core::{
    seed::Stream,
    time::{Time, SECOND},
};
use tcps_net::pages::{Pages, Transfer};
use tcps_plan::net::{ConnectionSpec, UsersSpec};
use tcps_transport::TransportError;

/// A transfer without end.
const ENDLESS: Transfer = Transfer { request_bytes: 1, answer_bytes: u64::MAX };

/// A user and his server.
pub(super) struct User {
    connection: Box<dyn Connection>,
    pages: Option<Pages>,
    connection_per_object: bool,
    /// Number of the connection.
    pub(super) number: u32,
    pub(super) phase: Phase,
    transfer: Transfer,
    /// Bytes of the request not yet written and not yet heard, of the answer not yet written and not yet there.
    to_ask: u64,
    to_hear: u64,
    to_answer: u64,
    awaited: u64,
    /// Whether this is the page's main object.
    is_main: bool,
}

/// What a user does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Phase {
    /// Nothing, for as long as he is stopped.
    Resting,
    /// Reads, until the crowd's think clock shows this (s).
    Thinking(f64),
    /// Parses the main object until this moment.
    Parsing(Time),
    /// Loads an object.
    Loading,
}

impl User {
    pub(super) fn new(spec: &UsersSpec, name: &str, seed: u64) -> Result<Self, TransportError> {
        Ok(Self {
            connection: connection(spec, name, seed)?,
            pages: spec.pages.as_ref().map(|p| Pages::new(p, Stream::new(seed, &format!("{name}.pages")))),
            connection_per_object: spec.connection_per_object,
            number: 0,
            phase: Phase::Resting,
            transfer: ENDLESS,
            to_ask: 0,
            to_hear: 0,
            to_answer: 0,
            awaited: 0,
            is_main: true,
        })
    }

    /// Seconds until the first page: any part of a time to read; none before a transfer without end.
    pub(super) fn first_think_s(&mut self, chance: f64) -> f64 {
        self.pages.as_mut().map_or(0.0, |p| p.think_s() * chance)
    }

    /// Begins a page.
    pub(super) fn begin(&mut self, now: Time) {
        self.is_main = true;
        let transfer = self.pages.as_mut().map_or(ENDLESS, Pages::begin);
        self.connect(now);
        self.ask(transfer);
    }

    /// Goes on after the main object has been parsed.
    pub(super) fn go_on(&mut self, now: Time) {
        match self.pages.as_mut().and_then(Pages::embedded) {
            Some(transfer) => {
                if self.connection_per_object {
                    self.connect(now);
                }
                self.ask(transfer);
            }
            None => self.phase = Phase::Resting,
        }
    }

    fn connect(&mut self, now: Time) {
        self.number = self.number.wrapping_add(1);
        self.connection.open(now);
    }

    /// The connection is given up: another one, and what was asked for again.
    fn reconnect(&mut self, now: Time) {
        self.connect(now);
        if self.phase == Phase::Loading {
            self.ask(self.transfer);
        }
    }

    fn ask(&mut self, transfer: Transfer) {
        self.transfer = transfer;
        (self.to_ask, self.to_hear) = (transfer.request_bytes, transfer.request_bytes);
        (self.to_answer, self.awaited) = (0, transfer.answer_bytes);
        self.phase = Phase::Loading;
    }

    /// Drops everything without a word.
    pub(super) fn rest(&mut self, now: Time) {
        self.phase = Phase::Resting;
        self.number = self.number.wrapping_add(1);
        self.connection.forget(now);
    }

    /// A packet has arrived at one of the ends.
    pub(super) fn receive(&mut self, now: Time, to_client: bool, packet: &[u8]) {
        self.connection.receive(now, to_client, packet);
    }

    /// Moves bytes and timers. True if the page is there: then the user thinks.
    pub(super) fn work(&mut self, now: Time) -> bool {
        if self.connection.is_lost(now) {
            self.reconnect(now);
        }
        self.to_ask -= self.connection.write(now, false, self.to_ask);
        let heard = self.connection.read(false);
        if self.to_hear > 0 {
            self.to_hear = self.to_hear.saturating_sub(heard);
            if self.to_hear == 0 {
                self.to_answer = self.transfer.answer_bytes;
            }
        }
        self.to_answer -= self.connection.write(now, true, self.to_answer);
        self.awaited = self.awaited.saturating_sub(self.connection.read(true));
        let loaded = self.phase == Phase::Loading && self.awaited == 0;
        let over = loaded && self.next_object(now);
        self.connection.poll(now);
        over
    }

    /// What follows an object; true if the page is there.
    fn next_object(&mut self, now: Time) -> bool {
        let main = std::mem::replace(&mut self.is_main, false);
        let parse_ns = self.pages.as_mut().filter(|_| main).map_or(0, Pages::parse_ns);
        let more = self.pages.as_ref().is_some_and(Pages::has_more);
        if !more || self.connection_per_object {
            self.connection.close(now);
        }
        if more {
            self.phase = Phase::Parsing(now.saturating_add(parse_ns));
        }
        !more
    }

    /// Seconds of reading after a page.
    pub(super) fn think_s(&mut self) -> f64 {
        self.pages.as_mut().map_or(0.0, Pages::think_s)
    }

    /// When a timer of the connection runs out.
    pub(super) fn timer_ns(&self) -> Option<Time> {
        self.connection.wake_ns()
    }

    /// Bytes that a packet takes on the wire besides those of `pop`.
    pub(super) fn below_bytes(&self) -> u32 {
        self.connection.below_bytes()
    }

    /// The next packet that an end wants sent, in `out`, which is empty before; tells whether it goes to the client.
    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> Option<bool> {
        self.connection.pop(out)
    }
}

/// The longest that a thought may take, about a year.
pub(super) const LONGEST_S: f64 = 365.0 * 86_400.0;

/// A span in seconds as nanoseconds, rounded up.
pub(super) fn span_ns(seconds: f64) -> Time {
    (seconds.clamp(0.0, LONGEST_S) * SECOND as f64).ceil() as Time
}

/// The connection of a user called `name`, not yet open.
fn connection(spec: &UsersSpec, name: &str, seed: u64) -> Result<Box<dyn Connection>, TransportError> {
    Ok(match spec.transport {
        ConnectionSpec::Quic => Box::new(Quic::new(spec, name, seed)?),
        ConnectionSpec::Tcp => Box::new(Tcp::new(spec, name, seed)),
    })
}
