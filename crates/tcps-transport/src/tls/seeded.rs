//! Randomness of TLS in virtual time: drawn from a stream of the seed, for rustls, which asks a static for it.
//!
//! The endpoint lends its stream to the thread for as long as it calls rustls.

use curve25519_dalek::MontgomeryPoint;
use rustls::{
    crypto::{ActiveKeyExchange, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup},
    Error, NamedGroup, PeerMisbehaved,
};
use std::cell::RefCell;
use tcps_core::seed::Stream;

thread_local! {
    static LENT: RefCell<Option<Stream>> = const { RefCell::new(None) };
}

/// Where an endpoint's randomness comes from.
#[derive(Debug)]
pub(crate) struct Chance(Option<Stream>);

impl Chance {
    /// From the system: rustls draws it by itself.
    pub(super) fn of_the_system() -> Self {
        Self(None)
    }

    /// From the seed.
    pub(super) fn seeded(stream: Stream) -> Self {
        Self(Some(stream))
    }

    /// Calls what calls rustls.
    pub(crate) fn lend<R>(&mut self, call: impl FnOnce() -> R) -> R {
        LENT.set(self.0.take());
        let result = call();
        self.0 = LENT.take();
        result
    }
}

/// Fills bytes from a stream.
pub(super) fn fill(stream: &mut Stream, out: &mut [u8]) {
    for part in out.chunks_mut(8) {
        part.copy_from_slice(&stream.bits().to_le_bytes()[..part.len()]);
    }
}

/// Draws from what is lent.
#[derive(Debug)]
pub(super) struct Seeded;

impl SecureRandom for Seeded {
    fn fill(&self, out: &mut [u8]) -> Result<(), GetRandomFailed> {
        LENT.with_borrow_mut(|stream| stream.as_mut().map(|stream| fill(stream, out))).ok_or(GetRandomFailed)
    }
}

impl SupportedKxGroup for Seeded {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut secret = [0; 32];
        SecureRandom::fill(self, &mut secret)?;
        Ok(Box::new(Exchange { secret, public: MontgomeryPoint::mul_base_clamped(secret).to_bytes() }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// X25519 with a drawn secret.
// [RFC 7748 §5]
struct Exchange {
    secret: [u8; 32],
    public: [u8; 32],
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer: [u8; 32] = peer.try_into().map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
        let shared = MontgomeryPoint(peer).mul_clamped(self.secret).to_bytes();
        // [RFC 8446 §7.4.2]
        if shared == [0; 32] {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        Ok(SharedSecret::from(&shared[..]))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::ring::kx_group;

    // [RFC 7748 §5] [RFC 8446 §7.4.2]
    #[test]
    fn both_ends_of_an_exchange_agree_also_where_one_is_the_systems() {
        let mut chance = Chance::seeded(Stream::new(1, "tls"));
        let mut start = || chance.lend(|| SupportedKxGroup::start(&Seeded)).unwrap();
        for other in [start(), kx_group::X25519.start().unwrap()] {
            let own = start();
            let [ours, theirs] = [own.pub_key(), other.pub_key()].map(<[u8]>::to_vec);
            let secrets = [own.complete(&theirs), other.complete(&ours)].map(Result::unwrap);
            assert_eq!(secrets[0].secret_bytes(), secrets[1].secret_bytes());
        }
        assert!(start().complete(&[0; 32]).is_err(), "a point of small order");
        assert!(start().complete(&[9; 31]).is_err());
    }

    #[test]
    fn nothing_is_drawn_from_a_stream_that_is_not_lent() {
        let mut chance = Chance::seeded(Stream::new(1, "tls"));
        let mut draw = |out: &mut [u8]| chance.lend(|| SecureRandom::fill(&Seeded, out)).is_ok();
        let (mut one, mut two) = ([0; 11], [0; 11]);
        assert!(draw(&mut one) && draw(&mut two) && one != two);
        assert!(SecureRandom::fill(&Seeded, &mut one).is_err());
        assert!(Chance::of_the_system().lend(|| SecureRandom::fill(&Seeded, &mut one)).is_err());
    }
}
