//! Keys of SRTP and SRTCP, and what one of them does to a packet.
//!
//! ```text
//! AES-GCM   SRTP  header | sealed payload | tag            SRTCP  header | sealed | tag | E, index
//! AES-CM    SRTP  header | payload ^ keystream | tag       SRTCP  header | ^ keystream | E, index | tag
//! ```

use aes::{Aes128, Aes256};
use ctr::{
    cipher::{InnerIvInit, KeyIvInit, StreamCipher},
    Ctr128BE,
};
use ring::{aead, hmac};
use subtle::ConstantTimeEq;
use tcps_wire::srtcp::{Word, HEADER_BYTES, WORD_BYTES};

/// Bytes of a block of AES.
const BLOCK_BYTES: usize = 16;
/// Bytes of the salt from which keys are derived.
const SALT_BYTES: usize = 14;
/// Bytes of a key of HMAC-SHA1, and of its code in a packet.
const AUTH_BYTES: usize = 20;
const CODE_BYTES: usize = 10;
const GCM_SALT_BYTES: usize = 12;

/// How packets are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// `AEAD_AES_128_GCM` of RFC 7714.
    Aes128Gcm,
    /// `AEAD_AES_256_GCM` of RFC 7714.
    Aes256Gcm,
    /// `AES_CM_128_HMAC_SHA1_80` of RFC 3711.
    Aes128CmHmacSha1,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::Aes128CmHmacSha1];

    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "aes-128-gcm",
            Self::Aes256Gcm => "aes-256-gcm",
            Self::Aes128CmHmacSha1 => "aes-128-cm-hmac-sha1-80",
        }
    }

    const fn key_bytes(self) -> usize {
        match self {
            Self::Aes256Gcm => 32,
            _ => 16,
        }
    }

    const fn salt_bytes(self) -> usize {
        match self {
            Self::Aes128CmHmacSha1 => SALT_BYTES,
            _ => GCM_SALT_BYTES,
        }
    }

    /// Length of a master key with the master salt behind it.
    // [RFC 5764 §4.2] [RFC 7714 §12]
    pub const fn master_bytes(self) -> usize {
        self.key_bytes() + self.salt_bytes()
    }
}

/// RTP or RTCP: each has keys of its own. The number is the label of its first key.
// [RFC 3711 §4.3]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Media = 0,
    Control = 3,
}

/// Bytes that follow from a master key, the salt and a label. Keys are derived once: the derivation rate is 0.
// [RFC 3711 §4.3]
pub(super) fn derive(master: &[u8], salt: &[u8; SALT_BYTES], label: u8, out: &mut [u8]) {
    let mut iv = [0; BLOCK_BYTES];
    iv[..SALT_BYTES].copy_from_slice(salt);
    iv[7] ^= label;
    out.fill(0);
    // Refused are keys of another length only.
    if let Ok(mut stream) = Ctr128BE::<Aes256>::new_from_slices(master, &iv) {
        stream.apply_keystream(out);
    } else if let Ok(mut stream) = Ctr128BE::<Aes128>::new_from_slices(master, &iv) {
        stream.apply_keystream(out);
    }
}

/// Which packet of which source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) kind: Kind,
    pub(super) ssrc: u32,
    /// Its number: 48 bits of RTP, 31 bits of RTCP.
    pub(super) index: u64,
}

impl Place {
    /// Where source and number stand under a salt, which ends with them.
    // [RFC 3711 §4.1.1] [RFC 7714 §8.1] [RFC 7714 §9.1]
    fn under<const N: usize>(self, salt: [u8; N]) -> [u8; N] {
        let mut iv = salt;
        let bytes = (u128::from(self.ssrc) << 48 | u128::from(self.index)).to_be_bytes();
        iv.iter_mut().rev().zip(bytes.iter().rev()).take(10).for_each(|(byte, part)| *byte ^= part);
        iv
    }

    /// What is authenticated behind the packet: rollover counter of RTP, word of RTCP.
    // [RFC 3711 §4.2] [RFC 3711 §3.4]
    fn tail(self) -> [u8; WORD_BYTES] {
        match self.kind {
            Kind::Media => ((self.index >> 16) as u32).to_be_bytes(),
            Kind::Control => Word { encrypted: true, index: self.index as u32 }.to_bytes(),
        }
    }

    fn word_bytes(self) -> usize {
        if self.kind == Kind::Control {
            WORD_BYTES
        } else {
            0
        }
    }
}

/// Seals and opens packets of a kind by the keys of a direction.
#[derive(Debug)]
pub(super) enum Transform {
    Gcm { key: Box<aead::LessSafeKey>, salt: [u8; GCM_SALT_BYTES] },
    Cm { cipher: Box<Aes128>, salt: [u8; SALT_BYTES], auth: hmac::Key },
}

impl Transform {
    /// From a master key with its salt; `None`: their length is another profile's.
    pub(super) fn derived(profile: Profile, kind: Kind, master: &[u8]) -> Option<Self> {
        let (master, given) = master.split_at_checked(profile.key_bytes())?;
        if given.len() != profile.salt_bytes() {
            return None;
        }
        let mut salt = [0; SALT_BYTES]; // a shorter one has zeros behind it [RFC 7714 §11]
        salt[..given.len()].copy_from_slice(given);
        let first = kind as u8;
        let (mut key, mut auth, mut own) = ([0; 32], [0; AUTH_BYTES], [0; SALT_BYTES]);
        let key = &mut key[..profile.key_bytes()];
        derive(master, &salt, first, key);
        derive(master, &salt, first + 1, &mut auth);
        derive(master, &salt, first + 2, &mut own[..given.len()]);
        Self::new(profile, key, &auth, &own[..given.len()])
    }

    /// From the keys of a session.
    pub(super) fn new(profile: Profile, key: &[u8], auth: &[u8], salt: &[u8]) -> Option<Self> {
        let algorithm = match profile {
            Profile::Aes128Gcm => &aead::AES_128_GCM,
            Profile::Aes256Gcm => &aead::AES_256_GCM,
            Profile::Aes128CmHmacSha1 => {
                let cipher = Box::new(<Aes128 as ctr::cipher::KeyInit>::new_from_slice(key).ok()?);
                let auth = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, auth);
                return Some(Self::Cm { cipher, salt: salt.try_into().ok()?, auth });
            }
        };
        let key = Box::new(aead::LessSafeKey::new(aead::UnboundKey::new(algorithm, key).ok()?));
        Some(Self::Gcm { key, salt: salt.try_into().ok()? })
    }

    /// Bytes behind the word of an RTCP packet.
    pub(super) fn behind_word(&self) -> usize {
        match self {
            Self::Gcm { .. } => 0,
            Self::Cm { .. } => CODE_BYTES,
        }
    }

    /// Seals what stands behind `header` bytes of a packet, and appends the rest; false: it is too long.
    // [RFC 7714 §8.2] [RFC 7714 §9.2]
    pub(super) fn seal(&self, place: Place, header: usize, packet: &mut Vec<u8>) -> bool {
        let tail = place.tail();
        match self {
            Self::Gcm { key, salt } => {
                let (head, payload) = packet.split_at_mut(header);
                let joined = joined(head, tail);
                let aad = aead::Aad::from(if place.kind == Kind::Control { &joined } else { &*head });
                let nonce = aead::Nonce::assume_unique_for_key(place.under(*salt));
                let Ok(tag) = key.seal_in_place_separate_tag(nonce, aad, payload) else { return false };
                packet.extend_from_slice(tag.as_ref());
                packet.extend_from_slice(&tail[..place.word_bytes()]);
            }
            Self::Cm { cipher, salt, auth } => {
                keystream(cipher, *salt, place, &mut packet[header..]);
                packet.extend_from_slice(&tail[..place.word_bytes()]);
                let code = code(auth, packet, &tail[place.word_bytes()..]);
                packet.extend_from_slice(&code.as_ref()[..CODE_BYTES]);
            }
        }
        true
    }

    /// Whether a packet verifies; it is then in `opened`, as it was before it was sealed.
    pub(super) fn open(&self, place: Place, header: usize, packet: &[u8], opened: &mut Vec<u8>) -> bool {
        opened.clear();
        let tail = place.tail();
        match self {
            Self::Gcm { key, salt } => {
                let Some(end) = packet.len().checked_sub(place.word_bytes()).filter(|end| *end >= header)
                else {
                    return false;
                };
                let head = &packet[..header];
                let joined = joined(head, tail);
                let aad = aead::Aad::from(if place.kind == Kind::Control { &joined } else { head });
                let nonce = aead::Nonce::assume_unique_for_key(place.under(*salt));
                opened.extend_from_slice(&packet[..end]);
                let plain = key.open_in_place(nonce, aad, &mut opened[header..]).map(|plain| plain.len());
                opened.truncate(plain.map_or(0, |length| header + length));
                plain.is_ok()
            }
            Self::Cm { cipher, salt, auth } => {
                let whole = header + place.word_bytes();
                let Some(end) = packet.len().checked_sub(CODE_BYTES).filter(|end| *end >= whole) else {
                    return false;
                };
                let (signed, given) = packet.split_at(end);
                let own = code(auth, signed, &tail[place.word_bytes()..]);
                let verifies: bool = own.as_ref()[..CODE_BYTES].ct_eq(given).into();
                if verifies {
                    opened.extend_from_slice(&signed[..end - place.word_bytes()]);
                    keystream(cipher, *salt, place, &mut opened[header..]);
                }
                verifies
            }
        }
    }
}

/// The header of an RTCP packet and its word.
fn joined(head: &[u8], word: [u8; WORD_BYTES]) -> [u8; HEADER_BYTES + WORD_BYTES] {
    let mut joined = [0; HEADER_BYTES + WORD_BYTES];
    let (front, back) = joined.split_at_mut(HEADER_BYTES);
    front.iter_mut().zip(head).for_each(|(to, from)| *to = *from);
    back.copy_from_slice(&word);
    joined
}

fn code(auth: &hmac::Key, packet: &[u8], tail: &[u8]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(auth);
    context.update(packet);
    context.update(tail);
    context.sign()
}

// [RFC 3711 §4.1.1]
fn keystream(cipher: &Aes128, salt: [u8; SALT_BYTES], place: Place, bytes: &mut [u8]) {
    let mut iv = [0; BLOCK_BYTES];
    iv[..SALT_BYTES].copy_from_slice(&place.under(salt));
    let core = ctr::CtrCore::<Aes128, ctr::flavors::Ctr128BE>::inner_iv_init(cipher.clone(), &iv.into());
    Ctr128BE::<Aes128>::from_core(core).apply_keystream(bytes);
}
