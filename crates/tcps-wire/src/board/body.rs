//! What a frame says: its number, and one of seven contents.

use super::frame::{MAX_BODY, MIN_BODY};
use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};

/// Version of these bodies.
pub const VERSION: u8 = 1;
/// Longest payload of a sample.
pub const MAX_PAYLOAD: usize = 236;
/// Most channels of a board.
pub const MAX_CHANNELS: usize = 8;
/// Most values of a safe output that a greeting holds beside the roles of all channels.
pub const MAX_SAFE_VALUES: usize = (MAX_BODY - ROLES_AT - MAX_CHANNELS) / 4;

const ROLES_AT: usize = 12;
const COUNTS: usize = 9;

const HELLO: u8 = 0x01;
const SAMPLE: u8 = 0x02;
const QUERY: u8 = 0x03;
const READY: u8 = 0x81;
const ANSWER: u8 = 0x82;
const SAFE: u8 = 0x83;
const TOLD: u8 = 0x84;

/// What a board does with the samples of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// Bytes go on as they are.
    Relay = 0,
    /// A reading of the hand: a value that is no number is replaced by the last that was.
    Capture = 1,
    /// Set points of actuators, for which the watchdog waits: a value that is no number changes nothing.
    Drive = 2,
    /// A reading of forces: a value that is no number becomes 0.
    Sense = 3,
}

/// What a board has counted since power-on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Good frames.
    pub frames: u32,
    /// Damaged frames.
    pub no_crc: u32,
    /// Torn frames.
    pub no_cobs: u32,
    /// Stretches without a zero that are longer than any frame.
    pub too_long: u32,
    /// Frames with a kind, channel or length that there is not.
    pub unknown: u32,
    /// Frames that were numbered and never came.
    pub missing: u32,
    /// Values that are no numbers.
    pub refused: u32,
    /// Times that the watchdog went to the safe output.
    pub barked: u32,
    /// Bytes for which there was no room.
    pub overflown: u32,
}

impl Counts {
    fn to_array(self) -> [u32; COUNTS] {
        let Self { frames, no_crc, no_cobs, too_long, unknown, missing, refused, barked, overflown } = self;
        [frames, no_crc, no_cobs, too_long, unknown, missing, refused, barked, overflown]
    }

    fn from_array(a: [u32; COUNTS]) -> Self {
        let [frames, no_crc, no_cobs, too_long, unknown, missing, refused, barked, overflown] = a;
        Self { frames, no_crc, no_cobs, too_long, unknown, missing, refused, barked, overflown }
    }
}

/// The content of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repr<'a> {
    /// To the board: a host begins.
    Hello {
        /// Whether the safe output is that of `safe_values` (0 where those end); else outputs stay.
        to_values: bool,
        /// Silence of the drive after which the watchdog acts, ms; 0: never.
        watchdog_ms: u16,
        /// Least time from a sample's entry to its exit.
        work_us: u32,
        /// What each channel is for, as numbers of `Role`.
        roles: &'a [u8],
        /// Values of the safe output, 4 bytes each.
        safe_values: &'a [u8],
    },
    /// To the board: a sample.
    Sample {
        /// Its channel.
        channel: u8,
        /// Its bytes.
        payload: &'a [u8],
    },
    /// To the board: tell your counts.
    Query,
    /// From the board: it has understood a HELLO.
    Ready {
        /// The number of the HELLO.
        of: u16,
        /// When, by the board's clock.
        at_us: u32,
    },
    /// From the board: a sample is through.
    Answer {
        /// Its channel.
        channel: u8,
        /// The number of its frame.
        of: u16,
        /// When it entered, by the board's clock.
        entry_us: u32,
        /// From its entry to its exit.
        work_ns: u32,
        /// Its bytes, as the board gives them out.
        payload: &'a [u8],
    },
    /// From the board: the watchdog has gone to the safe output.
    Safe {
        /// The channel that was silent.
        channel: u8,
        /// When, by the board's clock.
        at_us: u32,
        /// What the outputs are now, 4 bytes each.
        values: &'a [u8],
    },
    /// From the board: its counts.
    Counts(Counts),
}

impl<'a> Repr<'a> {
    /// Number and content of a body.
    pub fn parse(body: &'a [u8]) -> Result<(u16, Self), Error> {
        if body.len() < MIN_BODY {
            return Err(Error::Truncated);
        }
        if body.len() > MAX_BODY {
            return Err(Error::TooLong);
        }
        let fixed = |n: usize| match body.len() {
            l if l < n => Err(Error::Truncated),
            l if l > n => Err(Error::TooLong),
            _ => Ok(()),
        };
        let repr = match u8_at(body, 0) {
            HELLO => Self::hello(body)?,
            SAMPLE => Self::Sample { channel: channel(body)?, payload: payload(body, 4)? },
            QUERY => fixed(3).map(|()| Self::Query)?,
            READY => {
                fixed(10)?;
                version(body)?;
                Self::Ready { of: u16_at(body, 4), at_us: u32_at(body, 6) }
            }
            ANSWER => Self::Answer {
                channel: channel(body)?,
                payload: payload(body, 14)?,
                of: u16_at(body, 4),
                entry_us: u32_at(body, 6),
                work_ns: u32_at(body, 10),
            },
            SAFE => Self::Safe { channel: channel(body)?, values: payload(body, 8)?, at_us: u32_at(body, 4) },
            TOLD => {
                fixed(3 + 4 * COUNTS)?;
                Self::Counts(Counts::from_array(std::array::from_fn(|i| u32_at(body, 3 + 4 * i))))
            }
            _ => return Err(Error::Unknown),
        };
        Ok((u16_at(body, 1), repr))
    }

    fn hello(body: &'a [u8]) -> Result<Self, Error> {
        version(body)?;
        let roles = body.get(ROLES_AT..ROLES_AT + usize::from(u8_at(body, 11))).ok_or(Error::Truncated)?;
        let safe_values = payload(body, ROLES_AT + roles.len())?;
        if roles.len() > MAX_CHANNELS {
            return Err(Error::TooLong);
        }
        if u8_at(body, 4) > 1 || roles.iter().any(|&r| r > Role::Sense as u8) {
            return Err(Error::Unknown);
        }
        if safe_values.len() % 4 != 0 {
            return Err(Error::Contradiction);
        }
        Ok(Self::Hello {
            to_values: u8_at(body, 4) == 1,
            watchdog_ms: u16_at(body, 5),
            work_us: u32_at(body, 7),
            roles,
            safe_values,
        })
    }

    /// Replaces `body` by the body with this content.
    pub fn emit(&self, sequence: u16, body: &mut Vec<u8>) {
        body.clear();
        body.push(self.kind());
        body.extend_from_slice(&sequence.to_be_bytes());
        match self {
            Self::Hello { to_values, watchdog_ms, work_us, roles, safe_values } => {
                body.extend_from_slice(&[VERSION, u8::from(*to_values)]);
                body.extend_from_slice(&watchdog_ms.to_be_bytes());
                body.extend_from_slice(&work_us.to_be_bytes());
                body.push(roles.len() as u8);
                body.extend_from_slice(roles);
                body.extend_from_slice(safe_values);
            }
            Self::Sample { channel, payload } => {
                body.push(*channel);
                body.extend_from_slice(payload);
            }
            Self::Query => {}
            Self::Ready { of, at_us } => {
                body.push(VERSION);
                body.extend_from_slice(&of.to_be_bytes());
                body.extend_from_slice(&at_us.to_be_bytes());
            }
            Self::Answer { channel, of, entry_us, work_ns, payload } => {
                body.push(*channel);
                body.extend_from_slice(&of.to_be_bytes());
                body.extend_from_slice(&entry_us.to_be_bytes());
                body.extend_from_slice(&work_ns.to_be_bytes());
                body.extend_from_slice(payload);
            }
            Self::Safe { channel, at_us, values } => {
                body.push(*channel);
                body.extend_from_slice(&at_us.to_be_bytes());
                body.extend_from_slice(values);
            }
            Self::Counts(counts) => {
                counts.to_array().iter().for_each(|c| body.extend_from_slice(&c.to_be_bytes()));
            }
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => HELLO,
            Self::Sample { .. } => SAMPLE,
            Self::Query => QUERY,
            Self::Ready { .. } => READY,
            Self::Answer { .. } => ANSWER,
            Self::Safe { .. } => SAFE,
            Self::Counts(_) => TOLD,
        }
    }
}

fn channel(body: &[u8]) -> Result<u8, Error> {
    match body.get(3) {
        Some(&c) if usize::from(c) < MAX_CHANNELS => Ok(c),
        Some(_) => Err(Error::Unknown),
        None => Err(Error::Truncated),
    }
}

fn version(body: &[u8]) -> Result<(), Error> {
    if u8_at(body, 3) == VERSION {
        Ok(())
    } else {
        Err(Error::Unknown)
    }
}

fn payload(body: &[u8], from: usize) -> Result<&[u8], Error> {
    let payload = body.get(from..).ok_or(Error::Truncated)?;
    if payload.len() > MAX_PAYLOAD {
        return Err(Error::TooLong);
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_say_what_cannot_be_are_refused() {
        let refused = |body: &[u8]| Repr::parse(body).err();
        assert_eq!(refused(&[HELLO, 0]), Some(Error::Truncated));
        assert_eq!(refused(&[9, 0, 0]), Some(Error::Unknown));
        assert_eq!(refused(&[QUERY, 0, 0, 0]), Some(Error::TooLong));
        assert_eq!(refused(&[SAMPLE, 0, 0, 8]), Some(Error::Unknown), "there is no ninth channel");
        assert_eq!(refused(&[SAMPLE, 0, 0]), Some(Error::Truncated));
        assert_eq!(refused(&[ANSWER, 0, 0, 0, 0, 0]), Some(Error::Truncated));
        let hello = |version, channels, role| [HELLO, 0, 0, version, 0, 0, 1, 0, 0, 0, 0, channels, role];
        assert!(Repr::parse(&hello(VERSION, 1, 3)).is_ok());
        assert_eq!(refused(&hello(VERSION + 1, 1, 3)), Some(Error::Unknown));
        assert_eq!(refused(&hello(VERSION, 2, 3)), Some(Error::Truncated));
        assert_eq!(refused(&hello(VERSION, 1, 4)), Some(Error::Unknown));
        assert_eq!(refused(&hello(VERSION, 0, 3)), Some(Error::Contradiction), "a value has 4 bytes");
    }
}
