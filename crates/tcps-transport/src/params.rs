//! Parameters of a transport or a playout policy, checked by the tables of their entries.

use crate::channel::{ChannelContext, Side};
use serde_json::{Map, Value};
use std::{cell::RefCell, fmt, ops::RangeInclusive};
use tcps_core::{
    endpoint::Endpoint,
    param::{self, Entry, Fault},
    params,
    rate::RateController,
    time::Time,
};
use tcps_wire::telehaptic::MOST_FRAGMENTS;

/// Makes one side of a channel.
pub(crate) type Make = fn(&Params<'_>, Side, &ChannelContext) -> Result<Box<dyn Endpoint>, TransportError>;

/// The methods of security that seal datagrams, whatever is in them.
pub(crate) const AROUND: &[&str] = &["aead", "hmac"];
/// Those of RTP.
pub(crate) const MEDIA: &[&str] = &["aead", "hmac", "srtp"];
/// The method within a connection.
pub(crate) const WITHIN: &[&str] = &["tls"];

/// What stands behind the name of a transport.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transport {
    pub(crate) make: Make,
    /// Whether datagrams begin with the plain header, so that a packet's flow and sample can be read.
    pub(crate) has_plain_header: bool,
    /// Bytes of headers that are there on sockets only because the transport's own IP packets ride in UDP (design: streams).
    pub(crate) encapsulation_bytes: u32,
    /// Whether its datagrams mean something each by itself, and not only within a connection.
    pub(crate) sends_datagrams: bool,
    /// The methods of security that its channel may have.
    pub(crate) security: &'static [&'static str],
}

impl Transport {
    /// One with a header of its own.
    pub(crate) const fn of(make: Make) -> Self {
        let security = AROUND;
        Self { make, has_plain_header: false, encapsulation_bytes: 0, sends_datagrams: true, security }
    }

    /// One with the plain header.
    pub(crate) const fn plain(make: Make) -> Self {
        Self { has_plain_header: true, ..Self::of(make) }
    }
}

/// Bounds of the number of samples in a packet.
pub(crate) const SAMPLES: RangeInclusive<f64> = 1.0..=MOST_FRAGMENTS as f64;
/// Bounds of a span that may be none.
pub(crate) const MINUTE: RangeInclusive<f64> = 0.0..=60e9;
/// Bounds of a period.
pub(crate) const PERIOD: RangeInclusive<f64> = 1e6..=1e9;
/// Bounds of a datagram.
pub(crate) const MTU: RangeInclusive<f64> = 300.0..=65_507.0;
/// Bounds of room for bytes.
pub(crate) const ROOM: RangeInclusive<f64> = 1e3..=1e8;

params! {
    /// How long datagrams are.
    pub(crate) struct Mtu {
        mtu_bytes: u32 = Bytes, "1200 B", MTU, "most bytes of a datagram";
    }
}
params! {
    /// Sound and picture beside haptic samples.
    pub(crate) struct Media {
        media_bytes: u32 = Bytes, "58 B", 1.0..=65_307.0, "bytes of sound and picture in a fragment, at most mtu less 200 B";
    }
}
params! {
    /// How a telehaptic packet is made.
    pub(crate) struct Packing {
        strict_two_subheaders: bool = Flag, "false", ANY, "whether sound and picture have a sub-header each on the wire; not beside overhead";
        multiplexer: Option<String> = Choice(&["strict", "first-come"]), ABSENT, ANY, "what goes first: sound, or what arrived first; default `\"strict\"`, for `hoip` `\"first-come\"`";
    }
}
params! {
    /// Of receivers that tell of each packet.
    pub(crate) struct Telling {
        feedback_ns: Time = Ns, "20 ms", PERIOD, "time between feedback on each packet";
    }
}
params! {
    /// Of probes.
    pub(crate) struct Probing {
        probe_ns: Time = Ns, "10 ms", 1e6..=10e9, "time between probes";
    }
}
params! {
    /// What is accounted for headers.
    pub(crate) struct Overhead {
        overhead_bytes: Option<u32> = Bytes, ABSENT, 0.0..=65_535.0, "bytes counted for all headers of a packet, in place of the true ones";
    }
}

/// Why there is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportError {
    /// No transport has this name.
    UnknownTransport {
        /// The name.
        found: String,
        /// The names that are known.
        known: Vec<&'static str>,
    },
    /// The transport has no such parameter.
    UnknownParameter {
        /// The transport.
        transport: &'static str,
        /// The parameter.
        found: String,
        /// The parameters that it has.
        allowed: Vec<&'static str>,
    },
    /// The flows of the channel are not what the transport is for.
    Channel {
        /// The transport.
        transport: &'static str,
        /// The channel.
        channel: String,
        /// What it carries.
        found: String,
        /// What it may carry.
        needed: &'static str,
    },
    /// A parameter, or all of them, cannot have this value.
    BadParameter {
        /// The transport.
        transport: &'static str,
        /// The parameter.
        key: String,
        /// Its value.
        found: String,
        /// What it may be.
        allowed: String,
    },
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTransport { found, known } => {
                write!(f, "transport {found:?} is not known; known: {}", known.join(", "))
            }
            Self::UnknownParameter { transport, found, allowed } => {
                let owner = Owner(transport);
                write!(
                    f,
                    "{owner}: found {found:?}, which is not a parameter; allowed: {}",
                    allowed.join(", ")
                )
            }
            Self::Channel { transport, channel, found, needed } => {
                write!(f, "transport {transport} on channel {channel}: found {found}; allowed: {needed}")
            }
            Self::BadParameter { transport, key, found, allowed } => {
                let verb = if key == ALL { "are" } else { "is" };
                write!(f, "{}: {key} {verb} {found}; allowed: {allowed}", Owner(transport))
            }
        }
    }
}

impl std::error::Error for TransportError {}

impl TransportError {
    /// What of it a parameter is to blame for.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            Self::BadParameter { key, found, allowed, .. } => {
                let key = if key == ALL { "" } else { key };
                Some(Fault::new(key, found, allowed.as_str()))
            }
            Self::UnknownParameter { found, allowed, .. } => {
                Some(Fault::new(found, "an unknown key", format!("no key, or {}", allowed.join(", "))))
            }
            _ => None,
        }
    }
}

/// Who has parameters: a transport, or playout.
struct Owner<'a>(&'a str);

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            PLAYOUT => f.write_str(PLAYOUT),
            transport => write!(f, "transport {transport}"),
        }
    }
}

const ALL: &str = "parameters";
/// What owns the parameters of a playout policy.
pub(crate) const PLAYOUT: &str = "playout";

/// The parameters as the plan gives them: an object, or null for none.
#[derive(Debug)]
pub(crate) struct Params<'a> {
    transport: &'static str,
    value: &'a Value,
    controller: RefCell<Option<Box<dyn RateController>>>,
}

impl<'a> Params<'a> {
    pub(crate) fn new(transport: &'static str, value: &'a Value) -> Self {
        Self { transport, value, controller: RefCell::new(None) }
    }

    /// With a rate controller that has been made elsewhere, from the code that the parameters name.
    pub(crate) fn led(self, controller: Option<Box<dyn RateController>>) -> Self {
        Self { controller: RefCell::new(controller), ..self }
    }

    /// Whether it has one.
    pub(crate) fn is_led(&self) -> bool {
        self.controller.borrow().is_some()
    }

    /// That controller, once.
    pub(crate) fn controller(&self) -> Option<Box<dyn RateController>> {
        self.controller.borrow_mut().take()
    }

    /// Refuses every key that an entry does not have.
    pub(crate) fn known<M>(self, entry: &Entry<M>) -> Result<Self, TransportError> {
        let stray = self.map()?.keys().find(|key| !entry.params().any(|p| p.key == *key)).cloned();
        let (transport, allowed) = (self.transport, entry.params().map(|p| p.key).collect());
        match stray {
            None => Ok(self),
            Some(found) => Err(TransportError::UnknownParameter { transport, found, allowed }),
        }
    }

    /// The parameters of a table, checked and with their defaults.
    pub(crate) fn read<S: param::Params>(&self) -> Result<S, TransportError> {
        let own = |key: &str| S::TABLE.iter().any(|p| p.key == key);
        let given = self.map()?.into_iter().filter(|(key, _)| own(key)).collect();
        let fault = |Fault { key, found, allowed }| TransportError::BadParameter {
            transport: self.transport,
            key,
            found,
            allowed,
        };
        S::of(&Value::Object(given)).map_err(fault)
    }

    fn map(&self) -> Result<Map<String, Value>, TransportError> {
        match self.value {
            Value::Null => Ok(Map::new()),
            Value::Object(map) => Ok(map.clone()),
            other => Err(self.bad(ALL, other, "an object".into())),
        }
    }

    /// The text of a key.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.value.get(key)?.as_str()
    }

    /// Whether the key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.value.get(key).is_some()
    }

    /// Refuses the value of a key.
    pub(crate) fn refuse(&self, key: &'static str, allowed: &str) -> TransportError {
        self.bad(key, self.value.get(key).unwrap_or(&Value::Null), allowed.into())
    }

    /// A parameter whose value led to nothing.
    pub(crate) fn failed(&self, key: &'static str, found: &str, why: &dyn fmt::Display) -> TransportError {
        let (transport, found) = (self.transport, format!("{found} ({why})"));
        TransportError::BadParameter { transport, key: key.into(), found, allowed: "another one".into() }
    }

    fn bad(&self, key: &'static str, found: &Value, allowed: String) -> TransportError {
        let (transport, key, found) = (self.transport, key.into(), found.to_string());
        TransportError::BadParameter { transport, key, found, allowed }
    }
}
