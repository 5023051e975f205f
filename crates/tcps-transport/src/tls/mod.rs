//! TLS 1.3 (rustls with ring) between the two sides of a channel: over the stream of `tcp`, and inside `quic`.
//!
//! ```text
//!           what both sides share ──► key of side a, key of side b (Ed25519, RFC 7250)
//!  frame ──► record (5 + content + 1 + 16 B) ──► stream ═══ stream ──► record ──► verify ──► frame
//!                                                             alert, end of the connection ◄─┘
//! ```
//! **Identities.** Both sides derive the keys of both from one secret, prove their own and accept that of the other alone. On
//! sockets the secret is new in each run and comes with the keys of the other methods; no scenario says it. In virtual time it
//! follows from the seed.
//!
//! **Randomness.** On sockets ephemeral keys and randoms are the system's. In virtual time they are drawn from the seed (`seeded`):
//! it is the same TLS with the same bytes at every run, and protects nothing. Both offer X25519 alone, so that messages are as
//! long on both clocks.
//!
//! There is no resumption, so no ticket, and no data before the handshake is complete.

mod identity;
mod known;
mod seeded;
mod stream;

pub(crate) use identity::Identity;
pub(crate) use seeded::Chance;
pub(crate) use stream::{patience_ns, Refused, TlsStream};
