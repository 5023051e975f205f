//! A crypto session that hides nothing: the handshake of QUIC with its transport parameters, and packets in the clear
//! with a tag of 16 bytes, as long as that of a real cipher. The same bytes whenever it runs.
//!
//! ```text
//! client  Initial: hello, parameters ──────────►
//!         ◄─────────── Initial: hello, parameters │ Handshake: parameters
//! client  Handshake: finished ─────────────────►
//! ```
//! The tag finds damage; it keeps nobody from making a packet (design: streams).

use bytes::BytesMut;
use quinn_proto::{
    crypto::{
        AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
        KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
    },
    transport_parameters::TransportParameters,
    ConnectError, ConnectionId, Side, TransportError, TransportErrorCode,
};
use std::{any::Any, sync::Arc};

const TAG_BYTES: usize = 16;
/// The largest hello that is read.
const MOST_HELLO_BYTES: usize = 4_096;

/// Makes sessions of either side.
#[derive(Debug, Default)]
pub(super) struct NullCrypto;

impl NullCrypto {
    fn session(&self, side: Side, params: &TransportParameters) -> Box<dyn Session> {
        let mut hello = vec![0, 0];
        params.write(&mut hello);
        let length = (hello.len() - 2) as u16;
        hello[..2].copy_from_slice(&length.to_be_bytes());
        Box::new(NullSession {
            side,
            hello,
            read: Vec::new(),
            peer: None,
            step: Step::Nothing,
            finished: false,
        })
    }
}

fn keys() -> Keys {
    let packet = || Box::new(NullKey) as Box<dyn PacketKey>;
    let header = || Box::new(NullHeader) as Box<dyn HeaderKey>;
    Keys {
        header: KeyPair { local: header(), remote: header() },
        packet: KeyPair { local: packet(), remote: packet() },
    }
}

impl ClientConfig for NullCrypto {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.session(Side::Client, params))
    }
}

impl ServerConfig for NullCrypto {
    fn initial_keys(&self, _version: u32, _cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        tag(0, cid, packet)
    }

    fn start_session(self: Arc<Self>, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
        self.session(Side::Server, params)
    }
}

/// One side's handshake.
struct NullSession {
    side: Side,
    hello: Vec<u8>,
    read: Vec<u8>,
    peer: Option<TransportParameters>,
    step: Step,
    finished: bool,
}

/// What a side has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    /// The client's hello, or the server's, which leads to the keys of the handshake.
    Hello,
    /// Keys of the handshake (client), or all that the server has to say.
    Keys,
    /// The byte that ends the client's handshake.
    Finished,
}

/// The byte that ends a handshake.
const FINISHED: u8 = 1;

impl NullSession {
    /// Reads the peer's hello once all of it is there; nothing may follow it before it has been answered.
    fn read_hello(&mut self) -> Result<(), TransportError> {
        let Some((length, rest)) = self.read.split_first_chunk::<2>() else { return Ok(()) };
        let length = usize::from(u16::from_be_bytes(*length));
        match rest.len() {
            n if n < length => return Ok(()),
            n if n > length => return Err(violation("bytes behind the hello")),
            _ => {}
        }
        let params = TransportParameters::read(self.side, &mut &rest[..]);
        self.peer = Some(params.map_err(|_| violation("the hello holds no transport parameters"))?);
        self.read.clear();
        Ok(())
    }
}

fn violation(reason: &str) -> TransportError {
    TransportError { code: TransportErrorCode::PROTOCOL_VIOLATION, frame: None, reason: reason.into() }
}

// [RFC 9001 §4]
impl Session for NullSession {
    fn initial_keys(&self, _cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        !self.finished
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.read.extend_from_slice(bytes);
        match self.peer {
            _ if self.read.len() > MOST_HELLO_BYTES => Err(violation("the hello is too long")),
            None => self.read_hello().map(|()| false),
            Some(_) if self.step == Step::Keys && self.read == [FINISHED] => {
                self.finished = true;
                self.read.clear();
                Ok(false)
            }
            Some(_) => Err(violation("no end of a handshake")),
        }
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let knows_peer = self.peer.is_some();
        let (step, bytes, has_keys): (_, &[u8], _) = match (self.side, self.step) {
            (Side::Client, Step::Nothing) => (Step::Hello, &self.hello, false),
            (Side::Client, Step::Hello) if knows_peer => (Step::Keys, &[], true),
            (Side::Client, Step::Keys) if self.finished => (Step::Finished, &[FINISHED], true),
            (Side::Server, Step::Nothing) if knows_peer => (Step::Hello, &self.hello, true),
            (Side::Server, Step::Hello) => (Step::Keys, &[FINISHED], true),
            _ => return None,
        };
        out.extend_from_slice(bytes);
        self.step = step;
        has_keys.then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys().packet)
    }

    fn is_valid_retry(&self, cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some((body, found)) = payload.split_last_chunk::<TAG_BYTES>() else { return false };
        *found == tag(0, cid, &[header, body].concat())
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// Packets in the clear with a tag.
struct NullKey;

impl PacketKey for NullKey {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let (header, rest) = buf.split_at_mut(header_len);
        if let Some((payload, room)) = rest.split_last_chunk_mut::<TAG_BYTES>() {
            *room = tag(packet, header, payload);
        }
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        match payload.split_last_chunk::<TAG_BYTES>() {
            Some((body, found)) if *found == tag(packet, header, body) => {
                payload.truncate(payload.len() - TAG_BYTES);
                Ok(())
            }
            _ => Err(CryptoError),
        }
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Two sums over packet number, header and payload, 8 bytes at a time (FNV-1a on words).
fn tag(packet: u64, header: &[u8], payload: &[u8]) -> [u8; TAG_BYTES] {
    let mut sums = [0xcbf2_9ce4_8422_2325 ^ packet, 0x9e37_79b9_7f4a_7c15 ^ (header.len() as u64)];
    for part in [header, payload] {
        for word in part.chunks(8) {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            let word = u64::from_le_bytes(bytes);
            sums[0] = (sums[0] ^ word).wrapping_mul(0x0100_0000_01b3);
            sums[1] = (sums[1].rotate_left(29) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
        }
    }
    let mut tag = [0; TAG_BYTES];
    tag[..8].copy_from_slice(&(sums[0] ^ sums[0] >> 32).to_le_bytes());
    tag[8..].copy_from_slice(&(sums[1] ^ sums[1] >> 29).to_le_bytes());
    tag
}

/// Headers in the clear.
struct NullHeader;

impl HeaderKey for NullHeader {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG_BYTES
    }
}

/// Signs reset tokens and seals address tokens with the run's seed.
pub(super) struct SeedKey(pub(super) u64);

impl HmacKey for SeedKey {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        for (i, room) in (0..).zip(signature.chunks_mut(TAG_BYTES)) {
            room.copy_from_slice(&tag(self.0.wrapping_add(i), &[], data)[..room.len()]);
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = [0; 32];
        self.sign(data, &mut expected);
        (signature == expected).then_some(()).ok_or(CryptoError)
    }
}

impl HandshakeTokenKey for SeedKey {
    fn aead_from_hkdf(&self, _random: &[u8]) -> Box<dyn AeadKey> {
        Box::new(SeedKey(self.0))
    }
}

impl AeadKey for SeedKey {
    fn seal(&self, data: &mut Vec<u8>, additional: &[u8]) -> Result<(), CryptoError> {
        let tag = tag(self.0, additional, data);
        data.extend_from_slice(&tag);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], additional: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        match data.split_last_chunk_mut::<TAG_BYTES>() {
            Some((body, found)) if *found == tag(self.0, additional, body) => Ok(body),
            _ => Err(CryptoError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_bit_and_another_number_make_the_tag_wrong() {
        let key = NullKey;
        let mut packet = b"header: and a payload of some bytes".to_vec();
        packet.extend_from_slice(&[0; TAG_BYTES]);
        key.encrypt(7, &mut packet, 7);
        let opens =
            |number, bytes: &[u8]| key.decrypt(number, &bytes[..7], &mut BytesMut::from(&bytes[7..])).is_ok();
        assert!(opens(7, &packet));
        assert!(!opens(8, &packet));
        for bit in 0..packet.len() * 8 {
            packet[bit / 8] ^= 1 << (bit % 8);
            assert!(!opens(7, &packet), "bit {bit}");
            packet[bit / 8] ^= 1 << (bit % 8);
        }
    }

    // [RFC 9001 §4]
    #[test]
    fn a_handshake_that_is_none_is_refused() {
        let params = TransportParameters::read(Side::Server, &mut &[][..]).unwrap();
        let session = |side| NullCrypto.session(side, &params);
        let mut hello = Vec::new();
        assert!(session(Side::Client).write_handshake(&mut hello).is_none());
        let mut server = session(Side::Server);
        assert!(
            server.read_handshake(&hello).is_ok() && server.transport_parameters().is_ok_and(|p| p.is_some())
        );
        assert!(server.read_handshake(&[FINISHED]).is_err(), "before the server has answered");
        for bad in [&[0, 1, 0xff][..], &[&hello[..], &[1]].concat(), &[0xff; 5000]] {
            assert!(session(Side::Server).read_handshake(bad).is_err());
        }
    }

    /// Whoever takes the connection for made before sends samples that the other side cannot read yet.
    // [RFC 9001 §4.1.1]
    #[test]
    fn a_side_is_in_its_handshake_until_it_has_read_the_end_of_the_other_one() {
        let params = TransportParameters::read(Side::Server, &mut &[][..]).unwrap();
        let mut ends = [Side::Client, Side::Server].map(|side| NullCrypto.session(side, &params));
        let mut say = |from: usize| {
            let mut bytes = Vec::new();
            let has_keys = ends[from].write_handshake(&mut bytes).is_some();
            if !bytes.is_empty() {
                ends[1 - from].read_handshake(&bytes).unwrap();
            }
            (bytes.len() > 1, has_keys, [ends[0].is_handshaking(), ends[1].is_handshaking()])
        };
        assert_eq!(say(0), (true, false, [true, true]), "hello");
        assert_eq!(say(1), (true, true, [true, true]), "hello, and the keys of the handshake");
        assert_eq!(say(0), (false, true, [true, true]), "the same keys");
        assert_eq!(say(1), (false, true, [false, true]), "all that the server says");
        assert_eq!(say(0), (false, true, [false, false]), "the client has got it");
    }

    #[test]
    fn a_signature_is_of_its_seed_and_of_its_data() {
        let sign = |seed, data: &[u8]| {
            let mut signature = [0; 32];
            SeedKey(seed).sign(data, &mut signature);
            signature
        };
        assert!(SeedKey(7).verify(b"token", &sign(7, b"token")).is_ok());
        for other in [sign(8, b"token"), sign(7, b"taken"), [0; 32]] {
            assert!(SeedKey(7).verify(b"token", &other).is_err());
        }
    }
}
