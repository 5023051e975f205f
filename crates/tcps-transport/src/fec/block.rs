//! Blocks on their way in: the received packets of each, and what parity recovers.

use super::code::Code;
use tcps_wire::{
    fec::{Repr, FIRST_PARITY, MAX_DATA, MAX_PARITY},
    Error,
};

/// Blocks that are kept.
const KEPT: usize = 64;

/// A block.
#[derive(Debug)]
struct Block {
    number: u32,
    size: Option<usize>,
    data: Vec<Option<Vec<u8>>>,
    parity: Vec<Option<Vec<u8>>>,
    done: bool,
}

/// The newest blocks.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    blocks: Vec<Option<Block>>,
}

impl Blocks {
    /// Takes in what came of a block; the datagrams that can be had from it now.
    pub(crate) fn add(&mut self, code: Code, repr: &Repr, body: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        self.blocks.resize_with(KEPT, || None);
        let slot = &mut self.blocks[repr.block as usize % KEPT];
        let block = match slot.take() {
            Some(b) if b.number == repr.block => b,
            Some(b) if (repr.block.wrapping_sub(b.number) as i32) < 0 => {
                *slot = Some(b);
                return Ok(Vec::new());
            }
            _ => Block::new(repr.block),
        };
        let block = slot.insert(block);
        block.take(repr, body)?;
        Ok(block.recover(code))
    }
}

impl Block {
    fn new(number: u32) -> Self {
        let data = vec![None; MAX_DATA.into()];
        Self { number, size: None, data, parity: vec![None; MAX_PARITY.into()], done: false }
    }

    fn take(&mut self, repr: &Repr, body: &[u8]) -> Result<(), Error> {
        if repr.data == 0 {
            self.data[usize::from(repr.place)] = Some(symbol(body));
            return Ok(());
        }
        let size = usize::from(repr.data);
        if self.size.is_some_and(|s| s != size) {
            return Err(Error::Contradiction);
        }
        self.size = Some(size);
        self.parity[usize::from(repr.place - FIRST_PARITY)] = Some(body.to_vec());
        Ok(())
    }

    // [Hudson 2001: repetition]
    fn recover(&mut self, code: Code) -> Vec<Vec<u8>> {
        let Some(size) = self.size.filter(|_| !self.done) else { return Vec::new() };
        let before: Vec<bool> = self.data[..size].iter().map(Option::is_some).collect();
        if before.iter().all(|b| *b) {
            self.done = true;
            return Vec::new();
        }
        if !code.fill(&mut self.data[..size], &self.parity) {
            return Vec::new();
        }
        self.done = true;
        let new = self.data[..size].iter().zip(before).filter(|(_, before)| !before);
        new.filter_map(|(s, _)| datagram(s.as_deref().unwrap_or(&[])).map(<[u8]>::to_vec)).collect()
    }
}

/// A datagram as a symbol: behind its length.
pub(crate) fn symbol(datagram: &[u8]) -> Vec<u8> {
    let mut out = (datagram.len() as u16).to_be_bytes().to_vec();
    out.extend_from_slice(datagram);
    out
}

/// The datagram in a symbol; `None` if its length is wrong.
fn datagram(symbol: &[u8]) -> Option<&[u8]> {
    let (length, rest) = symbol.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}
