//! The handshake: Noise NNpsk0 over X25519, two messages, which give each direction a fresh root for its keys.
//!
//! ```text
//! a ── hello:  psk, e ───► b
//! a ◄─ answer: e, ee ───── b      both have the roots; b sends nothing in the session before a record of a's has verified
//! ```
//! Only who has the pre-shared key makes a hello or an answer that the other accepts. Whoever learns that key later cannot read what
//! was sent before: the keys follow from ephemeral ones.
//!
//! Behind each message stands a code, made by the pre-shared key over channel, hello and message: what a stranger makes, and a
//! repeated answer to another hello, cost a hash and no multiplication on the curve.

use ring::hmac;
use snow::{
    params::{CipherChoice, DHChoice, HashChoice, NoiseParams},
    resolvers::{CryptoResolver, DefaultResolver},
    types::{Cipher, Dh, Hash, Random},
    Builder, HandshakeState,
};
use subtle::ConstantTimeEq;
use tcps_wire::secure::{HANDSHAKE_BYTES, NOISE_BYTES, TAG_BYTES};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";

/// A key or a draw of 32 bytes.
pub(super) type Bytes = [u8; 32];

/// A hello or an answer with its code.
pub(super) type Message = [u8; HANDSHAKE_BYTES];

/// Makes and checks the codes of messages of a channel.
pub(super) struct Guard(hmac::Key);

impl Guard {
    pub(super) fn new(psk: &Bytes, prologue: &[u8]) -> Self {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, psk));
        context.update(b"tcpsbed guard");
        context.update(prologue);
        Self(hmac::Key::new(hmac::HMAC_SHA256, context.sign().as_ref()))
    }

    /// The code of a message to that hello, which is empty for a hello itself.
    fn code(&self, hello: &[u8], noise: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(hello);
        context.update(noise);
        context.sign()
    }

    fn guarded(&self, hello: &[u8], noise: &[u8; NOISE_BYTES]) -> Message {
        let mut message = [0; HANDSHAKE_BYTES];
        message[..NOISE_BYTES].copy_from_slice(noise);
        message[NOISE_BYTES..].copy_from_slice(&self.code(hello, noise).as_ref()[..TAG_BYTES]);
        message
    }

    /// The message of Noise, if its code is right.
    fn checked<'m>(&self, hello: &[u8], message: &'m [u8]) -> Option<&'m [u8]> {
        let (noise, code) = message.split_at_checked(NOISE_BYTES)?;
        let own = self.code(hello, noise);
        bool::from(own.as_ref()[..TAG_BYTES].ct_eq(code)).then_some(noise)
    }

    /// Whether a hello is of somebody with the key.
    pub(super) fn admits(&self, hello: &[u8]) -> bool {
        self.checked(&[], hello).is_some()
    }

    /// Whether a message is an answer to that hello, of somebody with the key.
    pub(super) fn answers(&self, hello: &[u8], answer: &[u8]) -> bool {
        self.checked(hello, answer).is_some()
    }
}

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
    pub(super) hello: Message,
}

impl Initiator {
    pub(super) fn new(guard: &Guard, psk: &Bytes, prologue: &[u8], drawn: Bytes) -> Option<Self> {
        let mut state = builder(psk, prologue, drawn).and_then(Builder::build_initiator).ok()?;
        let hello = guard.guarded(&[], &write(&mut state).ok()?);
        Some(Self { state, hello })
    }

    /// The roots, if an answer is one to its hello; another one changes nothing.
    pub(super) fn take(&mut self, guard: &Guard, answer: &[u8]) -> Option<Roots> {
        let noise = guard.checked(&self.hello, answer)?;
        self.state.read_message(noise, &mut []).ok()?;
        Some(roots(&mut self.state))
    }
}

/// Side b: the answer to a hello and the roots, if it verifies.
pub(super) fn answer(
    guard: &Guard,
    psk: &Bytes,
    prologue: &[u8],
    drawn: Bytes,
    hello: &[u8],
) -> Option<(Message, Roots)> {
    let noise = guard.checked(&[], hello)?;
    let mut state = builder(psk, prologue, drawn).and_then(Builder::build_responder).ok()?;
    state.read_message(noise, &mut []).ok()?;
    let answer = write(&mut state).ok()?;
    Some((guard.guarded(hello, &answer), roots(&mut state)))
}
