//! Telehaptic packet: merged haptic samples, sound and picture, and the delay of the way back.
//!
//! ```text
//!  bit 0     3     6 7 8                            32
//!     +-----+-----+-+-+-----------------------------+
//!     |  M  |  k  |D|X|  notification delay, us     |  M  0 haptic only, 1 + audio, 2 + video, 3 + both
//!     +-----+-----+-+-+-----------------------------+  k  fragments merged, 1 to 7
//!     |  time of the earliest sample, ms            |  D  the delay has been told before
//!     +---------------------------------------------+  X  a trailer follows the payload
//!     | frame number 16 | bytes here 16 | part 8 |  per medium, audio first
//!     | k haptic samples, oldest first | audio bytes | video bytes | trailer
//! ```
//! A time in milliseconds is all that the published header says of a sample; what a receiver needs beside it to
//! know numbers, exact times and the length of frames rides in the [`trailer`].

pub mod trailer;

use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};

/// Length of the haptic header in bytes.
pub const HEADER_BYTES: usize = 8;
/// Length of a sub-header for audio or video in bytes.
pub const SUB_HEADER_BYTES: usize = 5;
/// Most fragments in a packet.
pub const MOST_FRAGMENTS: u8 = 7;
/// Bytes of sound and picture in a fragment, unless a scenario says otherwise. [Gokhale 2017: streams]
pub const MEDIA_BYTES: usize = 58;
/// Notification delay of a sender that has measured none yet.
pub const NO_DELAY: u32 = 0xff_ffff;

const AUDIO: u8 = 1;
const VIDEO: u8 = 2;

/// What a sub-header says of the bytes of one medium in a packet.
// [Gokhale 2017: header]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubHeader {
    /// Number of the frame that the first byte belongs to, modulo 65536.
    pub frame: u16,
    /// Bytes of this medium in the packet.
    pub bytes: u16,
    /// Which packet of that frame this is, from 0, modulo 256.
    pub part: u8,
}

/// A view of a datagram whose sizes agree.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
    haptic_end: usize,
    audio_end: usize,
    video_end: usize,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// The view, if header, sub-headers, payload and trailer fit the bytes exactly.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let bytes = buffer.as_ref();
        if bytes.len() < HEADER_BYTES {
            return Err(Error::Truncated);
        }
        let (media, fragments) = (u8_at(bytes, 0) >> 5, u8_at(bytes, 0) >> 2 & 7);
        if media > AUDIO | VIDEO || fragments == 0 {
            return Err(Error::Unknown);
        }
        let mut packet = Self { buffer, haptic_end: 0, audio_end: 0, video_end: 0 };
        let bytes = packet.buffer.as_ref();
        let behind =
            if packet.has_trailer() { trailer::length(bytes.get(HEADER_BYTES..).unwrap_or(&[]))? } else { 0 };
        let size = |s: Option<SubHeader>| s.map_or(0, |s| usize::from(s.bytes));
        let (audio, video) = (size(packet.audio_header()), size(packet.video_header()));
        let need = packet.head_bytes() + audio + video + behind;
        let haptic = bytes.len().checked_sub(need).ok_or(Error::Truncated)?;
        if haptic % usize::from(fragments) != 0 {
            return Err(Error::Contradiction);
        }
        packet.haptic_end = packet.head_bytes() + haptic;
        packet.audio_end = packet.haptic_end + audio;
        packet.video_end = packet.audio_end + video;
        Ok(packet)
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.as_ref()
    }

    fn media(&self) -> u8 {
        u8_at(self.bytes(), 0) >> 5
    }

    /// Fragments merged in the packet, 1 to 7.
    pub fn fragments(&self) -> u8 {
        u8_at(self.bytes(), 0) >> 2 & 7
    }

    /// Whether the notification delay has been told before.
    pub fn repeated(&self) -> bool {
        u8_at(self.bytes(), 0) & 2 != 0
    }

    /// Whether a trailer follows the payload.
    pub fn has_trailer(&self) -> bool {
        u8_at(self.bytes(), 0) & 1 != 0
    }

    /// Delay of the last packet on the way back in microseconds, if there was one.
    pub fn delay_us(&self) -> Option<u32> {
        Some(u32_at(self.bytes(), 0) & NO_DELAY).filter(|d| *d != NO_DELAY)
    }

    /// When the earliest sample was made, in milliseconds of the sender's clock, modulo 2^32.
    pub fn timestamp_ms(&self) -> u32 {
        u32_at(self.bytes(), 4)
    }

    /// Sub-headers in the packet.
    pub fn sub_headers(&self) -> usize {
        self.media().count_ones() as usize
    }

    /// Bytes of header and sub-headers.
    pub fn head_bytes(&self) -> usize {
        HEADER_BYTES + self.sub_headers() * SUB_HEADER_BYTES
    }

    /// The sub-header of audio, if any is in the packet.
    pub fn audio_header(&self) -> Option<SubHeader> {
        (self.media() & AUDIO != 0).then(|| self.sub_header(HEADER_BYTES))
    }

    /// The sub-header of video, if any is in the packet.
    pub fn video_header(&self) -> Option<SubHeader> {
        let at = HEADER_BYTES + if self.media() & AUDIO != 0 { SUB_HEADER_BYTES } else { 0 };
        (self.media() & VIDEO != 0).then(|| self.sub_header(at))
    }

    fn sub_header(&self, at: usize) -> SubHeader {
        let b = self.bytes();
        SubHeader { frame: u16_at(b, at), bytes: u16_at(b, at + 2), part: u8_at(b, at + 4) }
    }

    /// Haptic sample `i`, the oldest first; empty if there is none.
    pub fn sample(&self, i: usize) -> &[u8] {
        let start = self.head_bytes();
        let size = (self.haptic_end - start) / usize::from(self.fragments().max(1));
        let at = start + i.min(7) * size;
        self.bytes().get(at..(at + size).min(self.haptic_end)).unwrap_or(&[])
    }

    /// The audio bytes.
    pub fn audio(&self) -> &[u8] {
        self.bytes().get(self.haptic_end..self.audio_end).unwrap_or(&[])
    }

    /// The video bytes.
    pub fn video(&self) -> &[u8] {
        self.bytes().get(self.audio_end..self.video_end).unwrap_or(&[])
    }

    /// Bytes of samples and frames.
    pub fn payload_bytes(&self) -> usize {
        self.video_end - self.head_bytes()
    }

    /// The trailer, if there is one.
    pub fn trailer(&self) -> Option<trailer::Packet<&[u8]>> {
        self.has_trailer().then(|| trailer::Packet::behind(self.bytes(), self.video_end))
    }
}

/// The content of header and sub-headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Fragments merged in the packet, 1 to 7.
    pub fragments: u8,
    /// Whether the notification delay has been told before.
    pub repeated: bool,
    /// Delay of the last packet on the way back in microseconds, below `NO_DELAY`.
    pub delay_us: Option<u32>,
    /// When the earliest sample was made, in milliseconds of the sender's clock, modulo 2^32.
    pub timestamp_ms: u32,
    /// Audio in the packet.
    pub audio: Option<SubHeader>,
    /// Video in the packet.
    pub video: Option<SubHeader>,
    /// Whether a trailer follows the payload.
    pub has_trailer: bool,
}

impl Repr {
    /// The content of a view.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self {
            fragments: packet.fragments(),
            repeated: packet.repeated(),
            delay_us: packet.delay_us(),
            timestamp_ms: packet.timestamp_ms(),
            audio: packet.audio_header(),
            video: packet.video_header(),
            has_trailer: packet.has_trailer(),
        }
    }

    /// Appends header and sub-headers to `out`; payload and trailer are the caller's.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let audio = if self.audio.is_some() { AUDIO } else { 0 };
        let video = if self.video.is_some() { VIDEO } else { 0 };
        let flags = u8::from(self.repeated) << 1 | u8::from(self.has_trailer);
        let first = (audio | video) << 5 | (self.fragments & 7) << 2 | flags;
        let delay = self.delay_us.map_or(NO_DELAY, |d| d.min(NO_DELAY - 1));
        out.extend_from_slice(&(u32::from(first) << 24 | delay).to_be_bytes());
        out.extend_from_slice(&self.timestamp_ms.to_be_bytes());
        for sub in [self.audio, self.video].into_iter().flatten() {
            out.extend_from_slice(&sub.frame.to_be_bytes());
            out.extend_from_slice(&sub.bytes.to_be_bytes());
            out.push(sub.part);
        }
    }
}

/// What links account for above the transport: header, payload, echo commands, and one sub-header however many
/// there are, unless `strict` counts all. Positions and frames in the trailer are not counted: they are what the
/// testbed needs to measure, not what the protocol needs to work.
// [Gokhale 2017: header]
pub fn accounted_bytes(payload_bytes: usize, sub_headers: usize, echoes: usize, strict: bool) -> usize {
    let counted = if strict { sub_headers } else { sub_headers.min(1) };
    let echo_bytes = if echoes > 0 { crate::echo::trailer_bytes(echoes) } else { 0 };
    HEADER_BYTES + counted * SUB_HEADER_BYTES + payload_bytes + echo_bytes
}

#[cfg(test)]
#[allow(clippy::unusual_byte_groupings)] // the groups are the fields
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two fragments with the end of an audio frame and a part of a video frame.
    const GOLDEN: [u8; 29] = [
        0b011_010_1_0, // M = 3, k = 2, D, no X
        0x00,
        0x73,
        0x5f, // 29.535 ms
        0x00,
        0x01,
        0x00,
        0x02, // made at 65538 ms
        0x01,
        0x00,
        0x00,
        0x03,
        0x02, // audio frame 256, 3 bytes, third part
        0x00,
        0x07,
        0x00,
        0x04,
        0x00, // video frame 7, 4 bytes, first part
        b'h',
        b'a',
        b'h',
        b'b', // two samples of 2 bytes
        b'A',
        b'A',
        b'A',
        b'V',
        b'V',
        b'V',
        b'V',
    ];

    fn golden() -> Repr {
        Repr {
            fragments: 2,
            repeated: true,
            delay_us: Some(29_535),
            timestamp_ms: 65_538,
            audio: Some(SubHeader { frame: 256, bytes: 3, part: 2 }),
            video: Some(SubHeader { frame: 7, bytes: 4, part: 0 }),
            has_trailer: false,
        }
    }

    // [Gokhale 2017: header]
    #[test]
    fn the_golden_packet_is_read_and_written_bit_by_bit() {
        let packet = Packet::new_checked(&GOLDEN).unwrap();
        assert_eq!(Repr::parse(&packet), golden());
        assert_eq!(
            (packet.sample(0), packet.sample(1), packet.sample(2)),
            (&b"ha"[..], &b"hb"[..], &b""[..])
        );
        assert_eq!((packet.audio(), packet.video()), (&b"AAA"[..], &b"VVVV"[..]));
        assert_eq!((packet.payload_bytes(), packet.head_bytes()), (11, 18));
        let mut out = Vec::new();
        golden().emit(&mut out);
        assert_eq!(out, GOLDEN[..18]);
    }

    // [Gokhale 2017: header]
    #[test]
    fn a_packet_without_media_has_8_bytes_of_header_and_one_with_media_13() {
        let mut out = Vec::new();
        let plain = Repr { audio: None, video: None, delay_us: None, repeated: false, ..golden() };
        plain.emit(&mut out);
        assert_eq!(out, [0b000_010_0_0, 0xff, 0xff, 0xff, 0, 1, 0, 2]);
        assert_eq!(Packet::new_checked(&out).unwrap().delay_us(), None);
        assert_eq!(accounted_bytes(24, 0, 0, false) + 54, 86, "forward packet");
        assert_eq!(accounted_bytes(70, 1, 0, false) + 54, 137, "backward packet");
        assert_eq!(accounted_bytes(280, 2, 0, false) + 54, 347, "four fragments, one sub-header counted");
        assert_eq!(accounted_bytes(280, 2, 0, true) + 54, 352, "both counted");
        assert_eq!(accounted_bytes(24, 0, 1, false), 8 + 24 + 20, "an echo command");
    }

    #[test]
    fn each_wrong_field_has_its_error() {
        let with = |at: usize, value: u8| {
            let mut bytes = GOLDEN;
            bytes[at] = value;
            Packet::new_checked(bytes).map(|_| ())
        };
        assert_eq!(with(0, 0b100_010_0_0), Err(Error::Unknown), "M = 4");
        assert_eq!(with(0, 0b011_000_0_0), Err(Error::Unknown), "k = 0");
        assert_eq!(with(0, 0b011_011_0_0), Err(Error::Contradiction), "4 bytes are not 3 samples");
        assert_eq!(with(11, 8), Err(Error::Truncated), "more audio than there are bytes");
        assert_eq!(with(0, 0b011_010_0_1), Err(Error::Truncated), "no room for the trailer it announces");
        assert_eq!(Packet::new_checked(&GOLDEN[..7]).err(), Some(Error::Truncated));
    }

    fn sub(bytes: usize) -> impl Strategy<Value = Option<SubHeader>> {
        proptest::option::of((any::<u16>(), any::<u8>()))
            .prop_map(move |s| s.map(|(frame, part)| SubHeader { frame, bytes: bytes as u16, part }))
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            fragments in 1u8..=7, repeated: bool, delay_us in proptest::option::of(0..NO_DELAY),
            timestamp_ms: u32, audio in sub(9), video in sub(300), size in 0usize..40,
        ) {
            let repr = Repr { fragments, repeated, delay_us, timestamp_ms, audio, video, has_trailer: false };
            let mut out = Vec::new();
            repr.emit(&mut out);
            let media = audio.map_or(0, |_| 9) + video.map_or(0, |_| 300);
            out.resize(out.len() + size * usize::from(fragments) + media, 3);
            let packet = Packet::new_checked(&out).unwrap();
            prop_assert_eq!(Repr::parse(&packet), repr);
            prop_assert_eq!(packet.sample(usize::from(fragments) - 1).len(), size);
            prop_assert_eq!(packet.audio().len() + packet.video().len(), media);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            if let Ok(packet) = Packet::new_checked(&bytes) {
                let all: usize = (0..8).map(|i| packet.sample(i).len()).sum();
                prop_assert_eq!(all + packet.audio().len() + packet.video().len(), packet.payload_bytes());
                let trailer = packet.trailer().map_or(0, |t| t.length());
                prop_assert_eq!(packet.head_bytes() + packet.payload_bytes() + trailer, bytes.len());
            }
        }
    }
}
