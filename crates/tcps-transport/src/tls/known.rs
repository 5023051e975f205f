//! Accepts one public key and no other (RFC 7250).

use rustls::{
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{verify_tls13_signature_with_raw_key, CryptoProvider, WebPkiSupportedAlgorithms},
    pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
    sign::CertifiedKey,
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, SignatureScheme,
};

/// Accepts one public key.
// [RFC 7250 §4]
#[derive(Debug)]
pub(super) struct KnownKey {
    known: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl KnownKey {
    pub(super) fn new(key: &CertifiedKey, provider: &CryptoProvider) -> Result<Self, Error> {
        let known = key.end_entity_cert()?.clone().into_owned();
        Ok(Self { known, algorithms: provider.signature_verification_algorithms })
    }

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

/// What both kinds of a peer's key have in common.
macro_rules! by_one_key {
    () => {
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
    };
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

    by_one_key!();
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

    by_one_key!();
}
