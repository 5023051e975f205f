//! Security of a channel: an endpoint around the endpoint of any transport of datagrams.
//!
//! ```text
//!  sample ──► transport ──► datagram ──► seal ──► record ═ net ═ record ──► verify ──► datagram ──► transport ──► sample
//!                                          └────── association: handshake, keys, windows ──────┘ └─► drop, count
//! ```
//! **Whom it stops.** Who can read, change, hold back, repeat and make datagrams, and does not know the key. What does not verify
//! never reaches the transport. Not stopped: whoever has the key, or the rights of the user of a node; loss and delay of what is
//! held back; the sizes and times of datagrams, which all can see; a flood that fills the line or the processor.
//!
//! **Keys.** Both sides have a pre-shared key of 32 bytes. A handshake (`handshake`, Noise NNpsk0) proves it and gives fresh roots:
//! each run, and each restart of a side, has keys of its own, and who learns the pre-shared key later reads nothing of what was
//! sent before. Name of the channel, method and version go into the handshake, so that a record fits one channel only; each
//! direction has keys of its own. The sender changes its key after some records or some time, by a step that cannot be taken
//! back (`keys`). It announces the change with the first record of the new key: the receiver follows, keeps the old key for
//! what is late, and nothing waits.
//!
//! **Records.** A record has the number of its key (8 bits), session and its own number in its header (`tcps_wire::secure`), which
//! is authenticated. The nonce is the number, under a vector that belongs to the key; numbers end with the key, long before 32
//! bits do. A window of 1,984 numbers for each key (`replay`) bears reordering and lets each record through once.
//!
//! **SRTP.** With `srtp` the payloads are RTP and RTCP, and go as SRTP and SRTCP (`srtp`) in place of records. Their master keys
//! follow from the roots of the handshake, as those of DTLS-SRTP (RFC 5764) do from its own. Messages of the association and the
//! record that confirms a session stay what they are: their first bytes tell them from RTP (RFC 7983). Keys change with sessions
//! only, since a source may send 2^48 packets under one.
//!
//! **TLS** is listed here and stands elsewhere: in the transports of streams (`tls`).
//!
//! **Loss.** Side a says hello at once and again after 0.5, 1, 2 … ms, up to each second: its own timer, since nothing is known
//! of the round trip. (From 5 ms on, 99 % are complete within five round trips at 20 % loss.) Repeated hellos have the same bytes, and side b repeats its answer. An empty record then confirms the
//! session: until it has verified a record of a's, b sends nothing in it. Meanwhile the newest 64 datagrams wait at each side;
//! those that do not find room are dropped as `unkeyed`.
//!
//! **Restarts.** A side that began anew cannot read the old session. If nothing has verified for a second, what does not verify
//! makes side a say hello, and side b ask for it; nobody has to believe the request, since it leads to a handshake or to nothing.
//! The old session stays valid until a record of the new one has verified.
//!
//! **Randomness** is an argument (`Secret`): drawn from the seed in virtual time, from the system on sockets. The seed of
//! `ChannelContext` is not read here.

mod association;
mod endpoint;
mod handshake;
mod keys;
mod record;
mod replay;
mod secret;
mod srtp;
#[cfg(test)]
mod tests;

pub use association::{Association, Opened};
pub use secret::{Random, Secret, KEY_BYTES};
pub use srtp::{Profile, Srtp};

use crate::channel::{ChannelContext, Side};
use association::Protection;
use endpoint::Secured;
use keys::Method;
use record::Limits;
use ring::aead;
use serde_json::Value;
use tcps_core::{
    endpoint::Endpoint,
    ids::FlowId,
    param::{self, Draws, Entry, Fault, Named, Params as _},
    params,
    time::Time,
};
use tcps_wire::secure::VERSION;

params! {
    /// Of encryption.
    struct Encrypted {
        cipher: String = Choice(&["chacha20-poly1305", "aes-128-gcm", "aes-256-gcm"]), "aes-128-gcm", ANY, "cipher";
    }
}
params! {
    /// Of SRTP.
    struct Media {
        cipher: String = Choice(&[Profile::Aes128Gcm.name(), Profile::Aes256Gcm.name(), Profile::Aes128CmHmacSha1.name()]), Profile::Aes128Gcm.name(), ANY, "cipher; the last one is that of RFC 3711, with tags of 10 B";
    }
}
params! {
    /// Of the pre-shared key.
    struct KeyFile {
        key_file: Option<String> = Text, ABSENT, ANY, "file with the pre-shared key, which only you may read (`tcpsbed key FILE` makes one); default a new key for each run";
    }
}
params! {
    /// Of changes of keys.
    struct Rekeying {
        rekey_after_packets: u32 = Packets, "1048576 packets", 64.0..=8_388_608.0, "packets in one direction after which their key changes; of packets that come later than so many others, some may be lost";
        rekey_every_ns: Time = Ns, "60 s", 1e6..=1e15, "time after which it changes";
    }
}

impl Rekeying {
    fn limits(&self) -> Limits {
        Limits { packets: self.rekey_after_packets, time_ns: self.rekey_every_ns }
    }
}

/// What a method protects.
enum Protects {
    /// Datagrams of any transport, by this.
    Datagrams(fn(&Value) -> Result<Protection, Fault>),
    /// A connection, inside the transport (`tls`).
    Connection,
}

/// The methods.
const METHODS: &[&Entry<Protects>] = &[
    &Entry {
        id: 1,
        name: "aead",
        doc: "datagrams are encrypted and authenticated",
        params: &[Encrypted::TABLE, KeyFile::TABLE, Rekeying::TABLE],
        draws: Draws::Yes,
        make: Protects::Datagrams(|params| {
            let method = Method::Aead(match Encrypted::read(params)?.cipher.as_str() {
                "chacha20-poly1305" => &aead::CHACHA20_POLY1305,
                "aes-256-gcm" => &aead::AES_256_GCM,
                _ => &aead::AES_128_GCM,
            });
            Ok(Protection { method, limits: Rekeying::read(params)?.limits(), profile: None })
        }),
    },
    &Entry {
        id: 2,
        name: "hmac",
        doc: "datagrams are authenticated (HMAC-SHA-256, cut to 128 bits) and can be read by all",
        params: &[KeyFile::TABLE, Rekeying::TABLE],
        draws: Draws::Yes,
        make: Protects::Datagrams(|params| {
            let limits = Rekeying::read(params)?.limits();
            Ok(Protection { method: Method::Hmac, limits, profile: None })
        }),
    },
    &Entry {
        id: 3,
        name: "srtp",
        doc: "RTP goes as SRTP and RTCP as SRTCP, encrypted and authenticated (RFC 3711, RFC 7714); for the transport `rtp`",
        params: &[Media::TABLE, KeyFile::TABLE],
        draws: Draws::Yes,
        make: Protects::Datagrams(|params| {
            let Media { cipher } = Media::read(params)?;
            let profile = Profile::ALL.into_iter().find(|profile| profile.name() == cipher);
            let method = Method::Aead(&aead::AES_128_GCM);
            Ok(Protection { method, limits: Rekeying::standard().limits(), profile })
        }),
    },
    &Entry {
        id: 4,
        name: "tls",
        doc: "TLS 1.3 in the connection of the transport, with keys of both sides; for the transports `tcp` and `quic`",
        params: &[KeyFile::TABLE],
        draws: Draws::Yes,
        make: Protects::Connection,
    },
];

/// All methods with their parameters, as JSON.
pub fn described() -> Value {
    param::described(METHODS)
}

/// The parameters of a method, checked and with their defaults.
pub fn checked(named: &Named) -> Result<Value, Fault> {
    named.of(METHODS).map(|(_, params)| params)
}

/// Whether a method is inside the transport, and nothing stands around it.
pub fn is_inside(named: &Named) -> bool {
    named.of(METHODS).is_ok_and(|(entry, _)| matches!(entry.make, Protects::Connection))
}

/// One side of an association, whose name both sides must agree on.
pub fn association(named: &Named, name: &str, side: Side, secret: Secret) -> Result<Association, Fault> {
    let (entry, params) = named.of(METHODS)?;
    let Protects::Datagrams(make) = &entry.make else {
        let allowed: Vec<_> = METHODS
            .iter()
            .filter(|method| matches!(method.make, Protects::Datagrams(_)))
            .map(|method| format!("{:?}", method.name))
            .collect();
        let found = format!("{:?}, which seals no datagrams", entry.name);
        return Err(Fault::new("", found, allowed.join(", ")));
    };
    let protection = make(&params)?;
    let cipher = params.get("cipher").and_then(Value::as_str).unwrap_or_default();
    let prologue = format!("tcpsbed {VERSION} {} {cipher} {name}", entry.name).into_bytes();
    Ok(Association::new(side, protection, prologue, secret))
}

/// The endpoint of a channel with security around it.
pub fn secured(
    inner: Box<dyn Endpoint>,
    named: &Named,
    side: Side,
    channel: &ChannelContext,
    secret: Secret,
) -> Result<Box<dyn Endpoint>, Fault> {
    let mut association = association(named, &channel.name, side, secret)?;
    if side == Side::A {
        association.want_keys(channel.start_ns);
    }
    let leaves = channel.flows.iter().find(|f| f.to != side);
    let flow = leaves.or(channel.flows.first()).map_or(FlowId::NONE, |f| f.flow);
    Ok(Box::new(Secured::new(inner, association, flow)))
}
