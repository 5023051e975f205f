//! Samples in a stream of bytes: each behind the header of `tcps-wire`, with its echo command behind it.
//!
//! ```text
//!  │ header (24) │ sample │ [echo trailer (20)] │ header │ ...
//! ```
//! The header says how long the sample is and whether an echo command follows. A sample is in one piece.

use crate::udp::{tag, MAX_SAMPLE_BYTES};
use tcps_core::sample::Meta;
use tcps_wire::{
    echo,
    header::{Packet, Repr, HEADER_BYTES},
    Error,
};

/// Bytes that a sample takes in the stream.
pub(crate) fn framed_bytes(meta: &Meta, sample: &[u8]) -> usize {
    HEADER_BYTES + sample.len() + trailer_bytes(meta.echo.is_some())
}

fn trailer_bytes(has_echo: bool) -> usize {
    if has_echo {
        echo::trailer_bytes(1)
    } else {
        0
    }
}

/// Appends a sample of at most `MAX_SAMPLE_BYTES` to the stream.
// [Polachan 2022: echoes]
pub(crate) fn frame(meta: &Meta, sample: &[u8], mut put: impl FnMut(&[u8])) {
    let repr = Repr::whole(meta, sample.len(), meta.echo.is_some());
    let mut head = Vec::with_capacity(HEADER_BYTES);
    repr.emit(&mut head);
    put(&head);
    put(sample);
    if let Some(echo) = meta.echo {
        let mut trailer = Vec::with_capacity(echo::trailer_bytes(1));
        echo::emit_count(1, &mut trailer);
        echo::Repr { sample: 0, echo }.emit(&mut trailer);
        put(&trailer);
    }
}

/// Finds the frames in the bytes of a stream.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    start: usize,
}

impl Frames {
    /// Adds bytes in the order of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start * 2 >= self.bytes.len() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next frame that is complete, by its header. After an error the rest of the stream cannot be read.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, Error> {
        let begin = self.start;
        let Some(end) = frame_end(&self.bytes[begin..])? else { return Ok(None) };
        self.start += end;
        Ok(Some(&self.bytes[begin..begin + end]))
    }

    /// Whether part of a frame is there.
    pub fn has_part(&self) -> bool {
        self.start < self.bytes.len()
    }
}

/// Finds the samples in the bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct Reader(Frames);

impl Reader {
    /// Adds bytes in the order of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// The next sample that is complete. After an error the rest of the stream cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<(Meta, &[u8])>, Error> {
        self.0.next_frame()?.map(parse).transpose()
    }

    /// Whether part of a sample is there.
    pub(crate) fn has_part(&self) -> bool {
        self.0.has_part()
    }
}

/// The sample of a whole frame.
pub(crate) fn parse(frame: &[u8]) -> Result<(Meta, &[u8]), Error> {
    let packet = Packet::new_checked(frame)?;
    let repr = Repr::parse(&packet)?;
    let echo = if repr.has_echo { Some(tag(packet.trailer())?) } else { None };
    let meta = Meta { flow: repr.flow, index: repr.index, origin_ns: repr.origin_ns, echo };
    Ok((meta, &frame[HEADER_BYTES..HEADER_BYTES + repr.length as usize]))
}

/// Refuses bytes that are not one frame and nothing else.
pub(crate) fn whole_frame(bytes: &[u8]) -> Result<(), Error> {
    match frame_end(bytes)? {
        Some(end) if end == bytes.len() => Ok(()),
        Some(_) => Err(Error::TooLong),
        None => Err(Error::Truncated),
    }
}

/// Where the first frame ends, if it is all there; an error if it cannot be one.
fn frame_end(bytes: &[u8]) -> Result<Option<usize>, Error> {
    let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let head = Packet::new_checked(head)?;
    if head.version() != tcps_wire::header::VERSION || head.flags() > 1 || head.fragments() != 1 {
        return Err(Error::Unknown);
    }
    if head.length() as usize > MAX_SAMPLE_BYTES {
        return Err(Error::TooLong);
    }
    let end = HEADER_BYTES + head.length() as usize + trailer_bytes(head.flags() == 1);
    Ok((bytes.len() >= end).then_some(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tcps_core::{
        ids::{FlowId, NodeId},
        sample::{Echo, PointId},
    };

    /// Every third sample carries an echo command.
    fn meta(index: u32) -> Meta {
        let echo = Echo { target: PointId(7), sequence: index, reply_to: NodeId(2), injected_ns: -5 };
        Meta { flow: FlowId(3), index, origin_ns: 9, echo: index.is_multiple_of(3).then_some(echo) }
    }

    proptest! {
        // [Polachan 2022: echoes]
        #[test]
        fn samples_come_out_whole_however_the_stream_is_cut(
            sizes in proptest::collection::vec(0usize..300, 1..20),
            cuts in proptest::collection::vec(1usize..200, 1..20),
        ) {
            let mut stream = Vec::new();
            for (i, size) in sizes.iter().enumerate() {
                let (meta, before) = (meta(i as u32), stream.len());
                frame(&meta, &vec![i as u8; *size], |b| stream.extend_from_slice(b));
                prop_assert_eq!(stream.len() - before, framed_bytes(&meta, &vec![0; *size]));
            }
            let (mut reader, mut got, mut at) = (Reader::default(), Vec::new(), 0);
            for cut in cuts.iter().cycle() {
                let end = (at + cut).min(stream.len());
                reader.push(&stream[at..end]);
                while let Some((meta, bytes)) = reader.next().unwrap() {
                    got.push((meta, bytes.to_vec()));
                }
                at = end;
                if at == stream.len() { break }
            }
            let sent: Vec<_> =
                sizes.iter().enumerate().map(|(i, n)| (meta(i as u32), vec![i as u8; *n])).collect();
            prop_assert_eq!(got, sent);
            prop_assert!(!reader.has_part());
        }
    }

    #[test]
    fn what_cannot_be_a_frame_is_refused_at_its_header() {
        let mut good = Vec::new();
        frame(&meta(1), b"ab", |b| good.extend_from_slice(b));
        for (at, value, error) in [
            (0, 2, Error::Unknown),
            (1, 2, Error::Unknown),
            (16, 0xff, Error::TooLong),
            (21, 1, Error::Contradiction),
            (23, 2, Error::Unknown),
        ] {
            let mut reader = Reader::default();
            let mut bytes = good.clone();
            bytes[at] = value;
            reader.push(&bytes);
            assert_eq!(reader.next().err(), Some(error), "byte {at}");
        }
    }
}
