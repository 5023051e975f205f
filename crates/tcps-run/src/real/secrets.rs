//! Keys on sockets: pre-shared ones from who starts the run, by the control; randomness from the system.

use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt};
use tcps_core::ids::ChannelId;
use tcps_node::secrets::Secrets;
use tcps_plan::RunError;
use tcps_transport::{
    security::{Random, Secret, KEY_BYTES},
    Side, TlsSecret,
};

/// What stands for the key of what travels outside channels.
const ASIDES: &str = "asides";

/// Pre-shared keys in hexadecimal digits, by the number of their channel or `asides`.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct PreShared(BTreeMap<String, String>);

impl fmt::Debug for PreShared {
    /// Whose they are; they themselves go into no message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Secrets for PreShared {
    fn secret(&mut self, channel: Option<ChannelId>, name: &str, _: Side) -> Result<Secret, RunError> {
        let whose = channel.map_or(ASIDES.to_owned(), |c| c.to_string());
        Ok(Secret { key: self.key(&whose, name)?, random: Box::new(System(SystemRandom::new())) })
    }

    fn tls(&self, channel: ChannelId, name: &str) -> Result<TlsSecret, RunError> {
        self.key(&channel.to_string(), name).map(TlsSecret::Shared)
    }
}

impl PreShared {
    fn key(&self, whose: &str, name: &str) -> Result<[u8; KEY_BYTES], RunError> {
        let found = self.0.get(whose).and_then(|text| key(text));
        found.ok_or_else(|| RunError::bug(format!("no pre-shared key of {name}")))
    }
}

/// A key of 64 hexadecimal digits.
fn key(text: &str) -> Option<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    if text.len() != 2 * KEY_BYTES || !text.is_ascii() {
        return None;
    }
    for (i, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(key)
}

struct System(SystemRandom);

impl Random for System {
    fn draw(&mut self) -> Option<[u8; KEY_BYTES]> {
        let mut out = [0; KEY_BYTES];
        self.0.fill(&mut out).ok().map(|()| out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};
    use tcps_core::{endpoint::Input, param::Named};
    use tcps_transport::{endpoint, security, ChannelContext};

    fn given() -> PreShared {
        serde_json::from_value(json!({"0": "a1".repeat(32), "asides": "b2".repeat(32)})).unwrap()
    }

    fn hello(seed: u64, secret: Secret) -> Vec<u8> {
        let context = ChannelContext { seed, ..ChannelContext::of(&[(1, Side::B, "kinematic")]) };
        let inner = endpoint("udp", &Value::Null, Side::A, &context).unwrap();
        let named = Named::new("aead", Value::Null);
        let mut secured = security::secured(inner, &named, Side::A, &context, secret).unwrap();
        let mut buf = Vec::new();
        secured.handle_input(0, Input::Timeout);
        assert!(secured.poll_output(&mut buf).is_some());
        buf
    }

    /// Draws the same whatever the seed is.
    struct Fixed;

    impl Random for Fixed {
        fn draw(&mut self) -> Option<[u8; KEY_BYTES]> {
            Some([7; KEY_BYTES])
        }
    }

    #[test]
    fn the_seed_of_the_scenario_reaches_no_key_on_sockets() {
        let secret = || given().secret(Some(ChannelId(0)), "c", Side::A).unwrap();
        assert_ne!(hello(1, secret()), hello(1, secret()), "the system draws anew");
        let fixed = || Secret { key: [1; KEY_BYTES], random: Box::new(Fixed) };
        assert_eq!(hello(1, fixed()), hello(2, fixed()), "nothing but key and draw decides");
        assert_ne!(hello(1, fixed()), hello(1, Secret { key: [2; KEY_BYTES], ..fixed() }));
        let seeded = |seed| hello(seed, Secret::seeded(seed, "c", Side::A));
        assert_eq!((seeded(1) == seeded(1), seeded(1) == seeded(2)), (true, false), "virtual time repeats");
    }

    #[test]
    fn every_channel_has_its_own_key_and_no_message_shows_one() {
        let secret = |channel| given().secret(channel, "c", Side::A).map(|s| s.key);
        assert_eq!(secret(Some(ChannelId(0))), Ok([0xa1; 32]));
        assert_eq!(secret(None), Ok([0xb2; 32]));
        let tls = [0, 1].map(|channel| given().tls(ChannelId(channel), "c").ok());
        assert_eq!(tls, [Some(TlsSecret::Shared([0xa1; 32])), None]);
        assert!(secret(Some(ChannelId(1))).unwrap_err().to_string().contains("no pre-shared key of c"));
        assert_eq!(format!("{:?}", given()), "{\"0\", \"asides\"}");
        assert_eq!([key("a1"), key(&"x".repeat(64)), key(&"é".repeat(32))], [None; 3]);
    }
}
