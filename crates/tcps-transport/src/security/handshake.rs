//! The handshake: Noise NNpsk0 over X25519, two messages, which give each direction a fresh root for its keys.
//!
//! ```text
//! a ── hello:  psk, e ───► b
//! a ◄─ answer: e, ee ───── b      both have the roots; b sends nothing in the session before a record of a's has verified
//! ```
//! Only who has the pre-shared key makes a hello or an answer that the other accepts. Whoever learns that key later cannot read what
//! was sent before: the keys follow from ephemeral ones.

use snow::{
    params::{CipherChoice, DHChoice, HashChoice, NoiseParams},
    resolvers::{CryptoResolver, DefaultResolver},
    types::{Cipher, Dh, Hash, Random},
    Builder, HandshakeState,
};
use tcps_wire::secure::NOISE_BYTES;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";

/// A key or a draw of 32 bytes.
pub(super) type Bytes = [u8; 32];

/// What both sides know once a handshake is complete.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Roots {
    /// Root of the keys from side a to side b.
    pub(super) forward: Bytes,
    /// And back.
    pub(super) backward: Bytes,
    /// Number of the session.
    pub(super) session: u16,
}

/// snow's own algorithms in Rust, and one ephemeral key that was drawn elsewhere.
struct Drawn(Bytes);

impl CryptoResolver for Drawn {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.0))))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Gives its bytes once: a handshake draws one key.
struct Once(Option<Bytes>);

impl Random for Once {
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), snow::Error> {
        let drawn = self.0.take().filter(|drawn| drawn.len() == out.len()).ok_or(snow::Error::Rng)?;
        out.copy_from_slice(&drawn);
        Ok(())
    }
}

fn builder<'a>(psk: &'a Bytes, prologue: &'a [u8], drawn: Bytes) -> Result<Builder<'a>, snow::Error> {
    let params: NoiseParams = PATTERN.parse()?;
    Builder::with_resolver(params, Box::new(Drawn(drawn))).prologue(prologue)?.psk(0, psk)
}

/// The next message of a handshake.
fn write(state: &mut HandshakeState) -> Result<[u8; NOISE_BYTES], snow::Error> {
    let mut message = [0; NOISE_BYTES];
    state.write_message(&[], &mut message)?;
    Ok(message)
}

fn roots(state: &mut HandshakeState) -> Roots {
    let hash = state.get_handshake_hash();
    let session = u16::from_be_bytes([hash[0], hash[1]]);
    let (forward, backward) = state.dangerously_get_raw_split();
    Roots { forward, backward, session }
}

/// The handshake of side a until its answer comes.
pub(super) struct Initiator {
    state: HandshakeState,
    /// Its hello, which is sent until an answer comes.
    pub(super) hello: [u8; NOISE_BYTES],
}

impl Initiator {
    pub(super) fn new(psk: &Bytes, prologue: &[u8], drawn: Bytes) -> Option<Self> {
        let mut state = builder(psk, prologue, drawn).and_then(Builder::build_initiator).ok()?;
        let hello = write(&mut state).ok()?;
        Some(Self { state, hello })
    }

    /// The roots, if an answer is one to its hello; another one changes nothing.
    pub(super) fn take(&mut self, answer: &[u8]) -> Option<Roots> {
        self.state.read_message(answer, &mut []).ok()?;
        Some(roots(&mut self.state))
    }
}

/// Side b: the answer to a hello and the roots, if it verifies.
pub(super) fn answer(
    psk: &Bytes,
    prologue: &[u8],
    drawn: Bytes,
    hello: &[u8],
) -> Option<([u8; NOISE_BYTES], Roots)> {
    let mut state = builder(psk, prologue, drawn).and_then(Builder::build_responder).ok()?;
    state.read_message(hello, &mut []).ok()?;
    let answer = write(&mut state).ok()?;
    Some((answer, roots(&mut state)))
}
