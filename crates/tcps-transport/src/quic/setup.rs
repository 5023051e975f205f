//! Parameters of a QUIC endpoint, and the configuration of quinn-proto that they make. Everything random is seeded, but on
//! sockets with TLS: there all of it is the system's, connection numbers and reset tokens included.

use super::{
    counted::{Counted, Counts},
    null::{NullCrypto, SeedKey},
};
use crate::{
    channel::{ChannelContext, Side, TlsSecret},
    params::{Params, TransportError, ROOM},
    tls::{Chance, Identity},
};
use quinn_proto::{
    congestion::{CubicConfig, NewRenoConfig},
    crypto::{
        self,
        rustls::{QuicClientConfig, QuicServerConfig},
    },
    ClientConfig, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, NoneTokenStore,
    ServerConfig, TransportConfig, ValidationTokenConfig, VarInt,
};
use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};
use tcps_core::{
    params,
    seed::Stream,
    time::{Time, MS, SECOND},
};

/// Name of the transport.
pub(super) const NAME: &str = "quic";
/// Silence that ends a connection.
pub(super) const IDLE_NS: Time = 10 * SECOND;

/// How samples become frames of QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A stream for each flow: order within a flow, none between flows.
    StreamPerFlow,
    /// A stream for each sample: no sample waits for another.
    StreamPerSample,
    /// Unreliable datagrams (RFC 9221): nothing is sent again.
    Datagram,
}

/// What the parameters say.
pub(super) struct Setup {
    pub(super) mode: Mode,
    pub(super) queue_bytes: usize,
    pub(super) mtu_bytes: u16,
    pub(super) endpoint: Endpoint,
    /// What side A asks with.
    pub(super) client: Option<ClientConfig>,
    /// What its sessions count.
    pub(super) counts: Arc<Counts>,
    /// Where the randomness of TLS comes from.
    pub(super) chance: Option<Chance>,
}

params! {
    /// Of a connection.
    pub(crate) struct Given {
        mode: String = Choice(&["stream-per-flow", "stream-per-sample", "datagram"]), "stream-per-flow", ANY, "what waits for a lost packet: its flow, only its sample, or nothing";
        congestion: String = Choice(&["cubic", "newreno"]), "cubic", ANY, "congestion control";
        queue_bytes: usize = Bytes, "262144 B", ROOM, "bytes of each flow that wait for the connection";
        mtu_bytes: u16 = Bytes, "1200 B", 1200.0..=65_507.0, "most bytes of a datagram";
    }
}

impl Setup {
    pub(super) fn new(params: &Params<'_>, side: Side, ctx: &ChannelContext) -> Result<Self, TransportError> {
        let Given { mode, congestion, queue_bytes, mtu_bytes } = params.read()?;
        let mode = match mode.as_str() {
            "stream-per-sample" => Mode::StreamPerSample,
            "datagram" => Mode::Datagram,
            _ => Mode::StreamPerFlow,
        };
        let transport = Arc::new(transport(congestion == "newreno", mtu_bytes, queue_bytes));
        let failed = |e: &dyn fmt::Display| params.failed("security", "tls", e);
        let made = ctx.tls.map(|secret| Identity::new(secret, NAME, side, ctx)).transpose();
        let (identity, chance) = made.map_err(|e| failed(&e))?.unzip();
        let counts = Arc::<Counts>::default();
        let mut random = Stream::new(ctx.seed, &format!("channels.{}.quic.{side:?}", ctx.name));
        let is_seeded = !matches!(ctx.tls, Some(TlsSecret::Shared(_)));
        let mut config = if is_seeded { seeded(&mut random) } else { EndpointConfig::default() };
        // The range of `mtu_bytes` is within what is allowed.
        let _ = config.grease_quic_bit(false).max_udp_payload_size(mtu_bytes);
        let (server, client) = match side {
            Side::A => {
                let crypto: Arc<dyn crypto::ClientConfig> = match identity {
                    Some(identity) => {
                        let config = identity.client().map_err(|e| failed(&e))?;
                        Arc::new(QuicClientConfig::try_from(config).map_err(|e| failed(&e))?)
                    }
                    None => Arc::new(NullCrypto),
                };
                let mut client =
                    ClientConfig::new(Arc::new(Counted { inner: crypto, counts: counts.clone() }));
                if is_seeded {
                    let cids = Mutex::new(Cids(Stream::new(random.bits(), "initial")));
                    client.initial_dst_cid_provider(Arc::new(move || next(&cids)));
                }
                client.transport_config(transport).token_store(Arc::new(NoneTokenStore));
                (None, Some(client))
            }
            Side::B => {
                let crypto: Arc<dyn crypto::ServerConfig> = match identity {
                    Some(identity) => {
                        let config = identity.server().map_err(|e| failed(&e))?;
                        Arc::new(QuicServerConfig::try_from(config).map_err(|e| failed(&e))?)
                    }
                    None => Arc::new(NullCrypto),
                };
                let crypto = Arc::new(Counted { inner: crypto, counts: counts.clone() });
                let mut server = match is_seeded {
                    true => ServerConfig::new(crypto, Arc::new(SeedKey(random.bits()))),
                    false => ServerConfig::with_crypto(crypto),
                };
                let mut tokens = ValidationTokenConfig::default();
                tokens.sent(0);
                server.transport_config(transport).validation_token_config(tokens).migration(false);
                (Some(Arc::new(server)), None)
            }
        };
        let endpoint = Endpoint::new(Arc::new(config), server, false, None);
        Ok(Self { mode, queue_bytes, mtu_bytes, endpoint, client, counts, chance })
    }
}

/// A connection number, whoever holds the lock.
fn next(cids: &Mutex<Cids>) -> ConnectionId {
    match cids.lock() {
        Ok(mut cids) => cids.generate_cid(),
        Err(poisoned) => poisoned.into_inner().generate_cid(),
    }
}

fn transport(newreno: bool, mtu_bytes: u16, queue_bytes: usize) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .initial_mtu(mtu_bytes)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .allow_spin(false)
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(4_096))
        .datagram_receive_buffer_size(Some(1 << 20))
        .datagram_send_buffer_size(queue_bytes)
        .max_idle_timeout(Some(VarInt::from_u32((IDLE_NS / MS) as u32).into()))
        .keep_alive_interval(Some(Duration::from_secs(3)));
    // [RFC 9002 §7.2]
    let datagram = u64::from(mtu_bytes);
    let window = (10 * datagram).min((2 * datagram).max(14_720));
    let (mut reno, mut cubic) = (NewRenoConfig::default(), CubicConfig::default());
    match newreno {
        true => config.congestion_controller_factory(Arc::new(reno.initial_window(window).clone())),
        false => config.congestion_controller_factory(Arc::new(cubic.initial_window(window).clone())),
    };
    config
}

fn seeded(random: &mut Stream) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(SeedKey(random.bits())));
    let cids = random.bits();
    let mut seed = [0; 32];
    seed.chunks_mut(8).for_each(|c| c.copy_from_slice(&random.bits().to_le_bytes()));
    config.rng_seed(Some(seed));
    config.cid_generator(move || Box::new(Cids(Stream::new(cids, "cids"))));
    config
}

/// Connection numbers of 8 bytes out of a seed.
struct Cids(Stream);

impl ConnectionIdGenerator for Cids {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.bits().to_le_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
