//! Real TLS 1.3 (rustls with ring) with raw public keys (RFC 7250).
//!
//! On sockets both sides have a secret that no scenario says. Each derives the keys of both from it, proves its own and accepts that
//! of the other alone. In virtual time there is none: then only the server proves itself, by a key that follows from the seed.
//! Ephemeral keys and randoms come from the machine, so that no two runs have the same bytes.

use crate::channel::Shared;
use quinn_proto::{
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
    rustls::{
        self,
        client::{
            danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
            AlwaysResolvesClientRawPublicKeys,
        },
        crypto::{
            ring::{default_provider, sign::any_eddsa_type},
            verify_tls13_signature_with_raw_key, CryptoProvider, WebPkiSupportedAlgorithms,
        },
        pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
        server::{
            danger::{ClientCertVerified, ClientCertVerifier},
            AlwaysResolvesServerRawPublicKeys,
        },
        sign::CertifiedKey,
        CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, SignatureScheme,
    },
};
use ring::hmac;
use std::sync::Arc;
use tcps_core::seed::Stream;

/// What stands before the 32 bytes of an Ed25519 key (RFC 8410 §7).
const PKCS8_HEAD: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// The keys of both sides; side A has none in virtual time.
pub(super) struct Identities {
    a: Option<CertifiedKey>,
    b: CertifiedKey,
}

impl Identities {
    /// From what both sides share, or else from the seed.
    pub(super) fn new(shared: Option<Shared>, seeded: &mut Stream) -> Result<Self, Error> {
        let of = |side: &[u8]| shared.map(|Shared(secret)| derived(&secret, side));
        let mut drawn = [0; 32];
        drawn.chunks_mut(8).for_each(|c| c.copy_from_slice(&seeded.bits().to_le_bytes()));
        Ok(Self { a: of(b"a").map(|a| key(&a)).transpose()?, b: key(&of(b"b").unwrap_or(drawn))? })
    }
}

/// The secret of a side.
fn derived(shared: &[u8; 32], side: &[u8]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, shared));
    context.update(b"tcpsbed quic ");
    context.update(side);
    let mut out = [0; 32];
    out.copy_from_slice(context.sign().as_ref());
    out
}

fn key(secret: &[u8; 32]) -> Result<CertifiedKey, Error> {
    let der = [&PKCS8_HEAD[..], secret].concat();
    let signing = any_eddsa_type(&PrivatePkcs8KeyDer::from(der))?;
    let public = signing.public_key().ok_or(Error::General("no public key".into()))?;
    Ok(CertifiedKey::new(vec![CertificateDer::from(public.as_ref().to_vec())], signing))
}

/// Accepts one key.
fn verifier(key: &CertifiedKey, provider: &CryptoProvider) -> Result<Arc<KnownKey>, Error> {
    let known = key.end_entity_cert()?.clone().into_owned();
    Ok(Arc::new(KnownKey { known, algorithms: provider.signature_verification_algorithms }))
}

/// TLS of side A, which knows the key of side B.
pub(super) fn client(keys: Identities) -> Result<QuicClientConfig, Error> {
    let provider = Arc::new(default_provider());
    let verifier = verifier(&keys.b, &provider)?;
    let builder = builder_versions(rustls::ClientConfig::builder_with_provider(provider))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match keys.a {
        Some(own) => {
            builder.with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::new(own))))
        }
        None => builder.with_no_client_auth(),
    };
    QuicClientConfig::try_from(config).map_err(|e| Error::General(e.to_string()))
}

/// TLS of side B, which knows the key of side A where that has one.
pub(super) fn server(keys: Identities) -> Result<QuicServerConfig, Error> {
    let provider: Arc<CryptoProvider> = Arc::new(default_provider());
    let known = keys.a.as_ref().map(|a| verifier(a, &provider)).transpose()?;
    let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::new(keys.b));
    let builder = builder_versions(rustls::ServerConfig::builder_with_provider(provider))?;
    let builder = match known {
        Some(known) => builder.with_client_cert_verifier(known),
        None => builder.with_no_client_auth(),
    };
    let config = builder.with_cert_resolver(Arc::new(resolver));
    QuicServerConfig::try_from(config).map_err(|e| Error::General(e.to_string()))
}

fn builder_versions<S: rustls::ConfigSide>(
    builder: rustls::ConfigBuilder<S, rustls::WantsVersions>,
) -> Result<rustls::ConfigBuilder<S, rustls::WantsVerifier>, Error> {
    builder.with_protocol_versions(&[&rustls::version::TLS13])
}

/// Accepts one public key.
// [RFC 7250 §4]
#[derive(Debug)]
struct KnownKey {
    known: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl KnownKey {
    fn is_known(&self, key: &CertificateDer<'_>) -> Result<(), Error> {
        (*key == self.known).then_some(()).ok_or(CertificateError::UnknownIssuer.into())
    }

    fn refuse_old() -> Error {
        PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into()
    }

    fn verify(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }
}

impl ServerCertVerifier for KnownKey {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _further: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.is_known(key).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Self::refuse_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for KnownKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _further: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.is_known(key).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Self::refuse_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
