//! What an association is given: a pre-shared key, and where its ephemeral keys come from.

use crate::channel::Side;
use tcps_core::seed::Stream;

/// Length of a pre-shared key in bytes.
pub const KEY_BYTES: usize = 32;

/// Where ephemeral keys come from.
pub trait Random: Send {
    /// 32 random bytes; `None`: there are none now.
    fn draw(&mut self) -> Option<[u8; KEY_BYTES]>;
}

/// What one side of an association knows and draws.
pub struct Secret {
    /// The pre-shared key.
    pub key: [u8; KEY_BYTES],
    /// Where its ephemeral keys come from.
    pub random: Box<dyn Random>,
}

impl Secret {
    /// That of virtual time: all of it follows from the scenario's seed and the name of the channel.
    pub fn seeded(seed: u64, name: &str, side: Side) -> Self {
        let key = draw(&mut Stream::new(seed, &format!("security.{name}.key")));
        let random = Box::new(Seeded(Stream::new(seed, &format!("security.{name}.{side:?}"))));
        Self { key, random }
    }
}

struct Seeded(Stream);

impl Random for Seeded {
    fn draw(&mut self) -> Option<[u8; KEY_BYTES]> {
        Some(draw(&mut self.0))
    }
}

fn draw(stream: &mut Stream) -> [u8; KEY_BYTES] {
    let mut out = [0; KEY_BYTES];
    out.chunks_mut(8).for_each(|c| c.copy_from_slice(&stream.bits().to_le_bytes()));
    out
}
