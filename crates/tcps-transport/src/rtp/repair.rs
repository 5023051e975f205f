//! Lost packets out of parity: what came lately is kept, and a parity packet that lacks one of its packets gives it.

use std::collections::VecDeque;
use tcps_wire::{
    rtp::{flexfec, parity::Parity, ulpfec},
    Error,
};

/// Packets that are kept.
pub(super) const KEPT: usize = 256;
/// Parity packets that wait for all but one of their packets.
const WAITING: usize = 64;

/// The memory of one source.
#[derive(Debug)]
pub(crate) struct Repair {
    kept: Vec<Option<(u16, Vec<u8>)>>,
    waiting: VecDeque<(Vec<u16>, Parity)>,
}

impl Repair {
    pub(crate) fn new() -> Self {
        Self { kept: vec![None; KEPT], waiting: VecDeque::new() }
    }

    /// Keeps a packet.
    pub(crate) fn keep(&mut self, sequence: u16, packet: &[u8]) {
        self.kept[usize::from(sequence) % KEPT] = Some((sequence, packet.to_vec()));
    }

    /// Takes the payload of a ULPFEC packet in.
    // [RFC 5109 §9.1]
    pub(crate) fn ulpfec(&mut self, payload: &[u8]) -> Result<(), Error> {
        let repr = ulpfec::Repr::parse(payload)?;
        let sequences = repr.sequences().collect();
        self.wait(sequences, repr.parity);
        Ok(())
    }

    /// Takes the payload of a FlexFEC repair packet in.
    // [RFC 8627 §6.3]
    pub(crate) fn flexfec(&mut self, payload: &[u8]) -> Result<(), Error> {
        let repr = flexfec::Repr::parse(payload)?;
        let sequences = repr.sequences().collect();
        self.wait(sequences, repr.parity);
        Ok(())
    }

    fn wait(&mut self, sequences: Vec<u16>, parity: Parity) {
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((sequences, parity));
    }

    /// A lost packet of the source `ssrc` that can be had now; it is kept as if it had come.
    // [RFC 5109 §9.2] [RFC 8627 §6.3]
    pub(crate) fn recover(&mut self, ssrc: u32) -> Option<Vec<u8>> {
        let mut at = 0;
        while let Some((sequences, _)) = self.waiting.get(at) {
            let mut missing = sequences.iter().filter(|n| self.packet(**n).is_none());
            let (one, more) = (missing.next().copied(), missing.next());
            if more.is_some() {
                at += 1;
                continue;
            }
            let (sequences, mut parity) = self.waiting.remove(at)?;
            let Some(lost) = one else { continue };
            let had = sequences.iter().filter_map(|n| self.packet(*n));
            had.for_each(|p| {
                let _ = parity.add(p);
            });
            let mut packet = Vec::new();
            if parity.recover(lost, ssrc, &mut packet).is_ok() {
                self.keep(lost, &packet);
                return Some(packet);
            }
        }
        None
    }

    fn packet(&self, sequence: u16) -> Option<&[u8]> {
        let kept = self.kept[usize::from(sequence) % KEPT].as_ref()?;
        (kept.0 == sequence).then_some(&kept.1[..])
    }
}
