//! Keys of one direction: a chain of secrets, and what one of its keys seals and verifies.

use ring::{aead, hkdf, hmac};
use subtle::ConstantTimeEq;
use tcps_wire::secure::TAG_BYTES;

const NONCE_BYTES: usize = 12;

/// What seals payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// Encrypted and authenticated.
    Aead(&'static aead::Algorithm),
    /// Authenticated: HMAC-SHA-256 cut to 128 bits.
    // [RFC 4868 §2.7.2.1]
    Hmac,
}

/// The secrets of one direction, each from the one before it, so that an old key does not follow from a newer one.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    method: Method,
    secret: hkdf::Prk,
}

/// A length of bytes, as `ring` asks for one.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

// [RFC 5869 §A.1]
pub(super) fn expand(secret: &hkdf::Prk, info: &[u8], out: &mut [u8]) {
    // Only lengths above 255 hashes are refused.
    let _ = secret.expand(&[info], Length(out.len())).and_then(|okm| okm.fill(out));
}

impl Chain {
    pub(super) fn new(method: Method, root: &[u8; 32]) -> Self {
        Self { method, secret: hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, root) }
    }

    /// The key of its present secret.
    pub(super) fn key(&self) -> Option<Key> {
        let (mut bytes, mut iv) = ([0; 32], [0; NONCE_BYTES]);
        let length = match self.method {
            Method::Aead(algorithm) => algorithm.key_len(),
            Method::Hmac => bytes.len(),
        };
        expand(&self.secret, b"tcpsbed key", &mut bytes[..length]);
        expand(&self.secret, b"tcpsbed iv", &mut iv);
        Key::new(self.method, &bytes[..length], iv)
    }

    /// Goes to the next secret.
    pub(super) fn step(&mut self) {
        let mut next = [0; 32];
        expand(&self.secret, b"tcpsbed next", &mut next);
        self.secret = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &next);
    }
}

/// A key of one direction.
#[derive(Debug)]
pub(super) enum Key {
    Aead { key: Box<aead::LessSafeKey>, iv: [u8; NONCE_BYTES] },
    Hmac(hmac::Key),
}

impl Key {
    pub(super) fn new(method: Method, bytes: &[u8], iv: [u8; NONCE_BYTES]) -> Option<Self> {
        Some(match method {
            Method::Aead(algorithm) => {
                let key = aead::LessSafeKey::new(aead::UnboundKey::new(algorithm, bytes).ok()?);
                Self::Aead { key: Box::new(key), iv }
            }
            Method::Hmac => Self::Hmac(hmac::Key::new(hmac::HMAC_SHA256, bytes)),
        })
    }

    /// Seals the payload that stands behind `header` bytes in `datagram`, and appends the tag; false: it is too long.
    pub(super) fn seal(&self, number: u32, header: usize, datagram: &mut Vec<u8>) -> bool {
        match self {
            Self::Aead { key, iv } => {
                let (header, payload) = datagram.split_at_mut(header);
                let aad = aead::Aad::from(&*header);
                match key.seal_in_place_separate_tag(nonce(iv, number), aad, payload) {
                    Ok(tag) => datagram.extend_from_slice(tag.as_ref()),
                    Err(_) => return false,
                }
            }
            Self::Hmac(key) => {
                let tag = hmac::sign(key, datagram);
                datagram.extend_from_slice(&tag.as_ref()[..TAG_BYTES]);
            }
        }
        true
    }

    /// Whether a datagram with `header` bytes in front verifies; its payload is then in `payload`.
    pub(super) fn open(&self, number: u32, header: usize, datagram: &[u8], payload: &mut Vec<u8>) -> bool {
        payload.clear();
        let Some(end) = datagram.len().checked_sub(TAG_BYTES).filter(|end| *end >= header) else {
            return false;
        };
        match self {
            Self::Aead { key, iv } => {
                let (header, sealed) = datagram.split_at(header);
                payload.extend_from_slice(sealed);
                match key.open_in_place(nonce(iv, number), aead::Aad::from(header), payload) {
                    Ok(plain) => {
                        let length = plain.len();
                        payload.truncate(length);
                        true
                    }
                    Err(_) => {
                        payload.clear();
                        false
                    }
                }
            }
            Self::Hmac(key) => {
                let (signed, tag) = datagram.split_at(end);
                let own = hmac::sign(key, signed);
                let verifies: bool = own.as_ref()[..TAG_BYTES].ct_eq(tag).into();
                if verifies {
                    payload.extend_from_slice(&signed[header..]);
                }
                verifies
            }
        }
    }
}

/// The nonce of a record: its number under a key, in the last bytes of the key's own vector.
// [RFC 8446 §5.3]
fn nonce(iv: &[u8; NONCE_BYTES], number: u32) -> aead::Nonce {
    let mut bytes = *iv;
    for (byte, part) in bytes[NONCE_BYTES - 4..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= part;
    }
    aead::Nonce::assume_unique_for_key(bytes)
}
