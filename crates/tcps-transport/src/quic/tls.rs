//! Real TLS 1.3 (rustls with ring) with a raw public key (RFC 7250) that both sides derive from the seed.
//!
//! The server proves that it has the key; the client accepts that key alone. Ephemeral keys and randoms come from
//! the machine, so that no two runs have the same bytes.

use quinn_proto::{
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
    rustls::{
        self,
        client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        crypto::{
            ring::{default_provider, sign::any_eddsa_type},
            verify_tls13_signature_with_raw_key, CryptoProvider, WebPkiSupportedAlgorithms,
        },
        pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
        server::AlwaysResolvesServerRawPublicKeys,
        sign::CertifiedKey,
        CertificateError, DigitallySignedStruct, Error, PeerMisbehaved, SignatureScheme,
    },
};
use std::sync::Arc;
use tcps_core::seed::Stream;

/// What stands before the 32 bytes of an Ed25519 key (RFC 8410 §7).
const PKCS8_HEAD: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// The key of a channel: that of its server.
fn key(keys: &mut Stream) -> Result<CertifiedKey, Error> {
    let mut der = PKCS8_HEAD.to_vec();
    (0..4).for_each(|_| der.extend_from_slice(&keys.bits().to_le_bytes()));
    let signing = any_eddsa_type(&PrivatePkcs8KeyDer::from(der))?;
    let public = signing.public_key().ok_or(Error::General("no public key".into()))?;
    Ok(CertifiedKey::new(vec![CertificateDer::from(public.as_ref().to_vec())], signing))
}

/// TLS of side A, which knows the key of side B.
pub(super) fn client(keys: &mut Stream) -> Result<QuicClientConfig, Error> {
    let provider = Arc::new(default_provider());
    let key = key(keys)?;
    let known = key.end_entity_cert()?.clone().into_owned();
    let verifier = KnownKey { known, algorithms: provider.signature_verification_algorithms };
    let config = builder_versions(rustls::ClientConfig::builder_with_provider(provider))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    QuicClientConfig::try_from(config).map_err(|e| Error::General(e.to_string()))
}

/// TLS of side B.
pub(super) fn server(keys: &mut Stream) -> Result<QuicServerConfig, Error> {
    let provider: Arc<CryptoProvider> = Arc::new(default_provider());
    let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::new(key(keys)?));
    let config = builder_versions(rustls::ServerConfig::builder_with_provider(provider))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
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

impl ServerCertVerifier for KnownKey {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _further: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match *key == self.known {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
