//! A crypto session of quinn-proto, whichever it is, and what it lets through and refuses, counted.

use bytes::BytesMut;
use quinn_proto::{
    crypto::{
        ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey,
        ServerConfig, Session, UnsupportedVersion,
    },
    transport_parameters::TransportParameters,
    ConnectError, ConnectionId, Side, TransportError,
};
use std::{
    any::Any,
    sync::{
        atomic::{AtomicU64, Ordering},
        Arc,
    },
};

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the sessions of an endpoint have counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Packets that verified.
    pub(super) opened: Count,
    /// Packets that did not.
    pub(super) refused: Count,
    /// Handshakes that were given up here, since a message did not verify.
    pub(super) refused_handshakes: Count,
    /// Bytes of messages of handshakes.
    pub(super) handshake_bytes: Count,
    /// Changes of the keys of both directions.
    pub(super) key_changes: Count,
}

/// Makes sessions that count.
pub(super) struct Counted<C: ?Sized> {
    pub(super) inner: Arc<C>,
    pub(super) counts: Arc<Counts>,
}

impl<C: ?Sized> Counted<C> {
    fn session(&self, inner: Box<dyn Session>) -> Box<dyn Session> {
        Box::new(CountedSession { inner, counts: self.counts.clone(), has_keys: false })
    }
}

impl ClientConfig for Counted<dyn ClientConfig> {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let session = self.inner.clone().start_session(version, server_name, params)?;
        Ok(self.session(session))
    }
}

impl ServerConfig for Counted<dyn ServerConfig> {
    fn initial_keys(&self, version: u32, cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(counted(self.inner.initial_keys(version, cid)?, &self.counts))
    }

    fn retry_tag(&self, version: u32, cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        self.session(self.inner.clone().start_session(version, params))
    }
}

struct CountedSession {
    inner: Box<dyn Session>,
    counts: Arc<Counts>,
    /// Whether it has given the keys that follow the first ones: the further ones are changes.
    has_keys: bool,
}

impl Session for CountedSession {
    fn initial_keys(&self, cid: &ConnectionId, side: Side) -> Keys {
        counted(self.inner.initial_keys(cid, side), &self.counts)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let result = self.inner.read_handshake(bytes);
        self.counts.refused_handshakes.add(u64::from(result.is_err()));
        result
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let before = out.len();
        let keys = self.inner.write_handshake(out);
        self.counts.handshake_bytes.add((out.len() - before) as u64);
        keys.map(|keys| counted(keys, &self.counts))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        // They are asked for one change ahead.
        let is_change = std::mem::replace(&mut self.has_keys, true);
        self.counts.key_changes.add(2 * u64::from(is_change));
        Some(counted_packets(keys, &self.counts))
    }

    fn is_valid_retry(&self, cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

fn counted(keys: Keys, counts: &Arc<Counts>) -> Keys {
    Keys { packet: counted_packets(keys.packet, counts), ..keys }
}

fn counted_packets(keys: KeyPair<Box<dyn PacketKey>>, counts: &Arc<Counts>) -> KeyPair<Box<dyn PacketKey>> {
    let remote = CountedKey { inner: keys.remote, counts: counts.clone() };
    KeyPair { remote: Box::new(remote), ..keys }
}

/// The key of packets that arrive.
struct CountedKey {
    inner: Box<dyn PacketKey>,
    counts: Arc<Counts>,
}

impl PacketKey for CountedKey {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        self.inner.encrypt(packet, buf, header_len);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let result = self.inner.decrypt(packet, header, payload);
        let count = if result.is_ok() { &self.counts.opened } else { &self.counts.refused };
        count.add(1);
        result
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}
