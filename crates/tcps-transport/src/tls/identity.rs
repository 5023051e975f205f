//! What each side proves itself with, and the configurations of rustls that follow from it.

use super::{
    known::KnownKey,
    seeded::{self, Chance, Seeded},
};
use crate::channel::{ChannelContext, Side, TlsSecret};
use ring::hmac;
use rustls::{
    client::{AlwaysResolvesClientRawPublicKeys, Resumption},
    crypto::{
        ring::{default_provider, kx_group, sign::any_eddsa_type},
        CryptoProvider,
    },
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
    server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage},
    sign::CertifiedKey,
    version::TLS13,
    ClientConfig, Error, ServerConfig,
};
use std::sync::Arc;
use tcps_core::seed::Stream;

/// What stands before the 32 bytes of an Ed25519 key (RFC 8410 §7).
const PKCS8_HEAD: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// What one side of a channel proves itself with and accepts.
pub(crate) struct Identity {
    own: CertifiedKey,
    peer: CertifiedKey,
    provider: CryptoProvider,
}

impl Identity {
    /// That of `side` of a channel for a transport, and where its randomness comes from.
    pub(crate) fn new(
        secret: TlsSecret,
        transport: &str,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<(Self, Chance), Error> {
        let stream = |what: &str| Stream::new(ctx.seed, &format!("channels.{}.tls.{what}", ctx.name));
        let mut provider = default_provider();
        let (secret, chance) = match secret {
            TlsSecret::Shared(secret) => {
                provider.kx_groups = vec![kx_group::X25519];
                (secret, Chance::of_the_system())
            }
            TlsSecret::Seeded => {
                provider.kx_groups = vec![&Seeded];
                provider.secure_random = &Seeded;
                let mut secret = [0; 32];
                seeded::fill(&mut stream("keys"), &mut secret);
                (secret, Chance::seeded(stream(&format!("{side:?}"))))
            }
        };
        let [own, peer] = [side, side.other()].map(|of| key(&derived(&secret, transport, of)));
        Ok((Self { own: own?, peer: peer?, provider }, chance))
    }

    /// For side A.
    pub(crate) fn client(self) -> Result<ClientConfig, Error> {
        let known = KnownKey::new(&self.peer, &self.provider)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(self.provider))
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(known))
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::new(self.own))));
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    /// For side B.
    pub(crate) fn server(self) -> Result<ServerConfig, Error> {
        let known = KnownKey::new(&self.peer, &self.provider)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(self.provider))
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(Arc::new(known))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(self.own))));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

/// The secret of a side.
fn derived(shared: &[u8; 32], transport: &str, side: Side) -> [u8; 32] {
    let side = if side == Side::A { "a" } else { "b" };
    let tag = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, shared),
        format!("tcpsbed {transport} {side}").as_bytes(),
    );
    let mut out = [0; 32];
    out.copy_from_slice(tag.as_ref());
    out
}

fn key(secret: &[u8; 32]) -> Result<CertifiedKey, Error> {
    let der = [&PKCS8_HEAD[..], secret].concat();
    let signing = any_eddsa_type(&PrivatePkcs8KeyDer::from(der))?;
    let public = signing.public_key().ok_or(Error::General("no public key".into()))?;
    Ok(CertifiedKey::new(vec![CertificateDer::from(public.as_ref().to_vec())], signing))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python's `hmac` makes the same of `tcpsbed tcp a` and the others: by this another program takes the part of a side.
    #[test]
    fn the_secret_of_a_side_follows_from_what_is_shared_transport_and_side() {
        for (transport, side, answer) in [
            ("tcp", Side::A, "67d851003c85ba91351726f8b2de879db2205ca2f3ae290b20f2da97727ad3ac"),
            ("tcp", Side::B, "bfbf0c09de679d66b90469b4862243f1e960727b25d394171307c3371860229a"),
            ("quic", Side::A, "ba7fca701b9451cf50af8c183199fea6e27cf2de85f69633300a227ce5e22a1f"),
        ] {
            let found: String =
                derived(&[7; 32], transport, side).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, answer, "{transport} {side:?}");
        }
    }
}
