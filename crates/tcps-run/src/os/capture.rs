//! Datagrams of a loop as a capture: what it sent, at the send call, and what it received, at the kernel's stamp.
//!
//! ```text
//!  loop ── blocks of 32 KiB ──► writer thread ──► a file for each loop ── merge ──► packets.pcapng
//! ```
//! The loop never waits for the disk: where the writer does not keep up, packets are left out and counted. A node that
//! is killed loses its last 32 KiB, or the last tenth of a second.

use super::merge::{Item, Merge};
use crate::pcapng::{beginning, Datagram};
use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    sync::mpsc::{sync_channel, SyncSender},
    thread::JoinHandle,
};
use tcps_core::{
    ids::NodeId,
    time::{Time, MS},
};
use tcps_plan::{Plan, RunError};
use tcps_wire::pcapng::{Block, Seen};

/// Bytes that are handed to the writer at once.
const PART: usize = 32 << 10;
/// Parts that may wait for the writer: 8 MiB, what a busy node handles at once when it goes on after a stop of some seconds.
const WAITING: usize = 256;
/// Longest time that a packet waits in the loop, if another follows.
const LONGEST: Time = 100 * MS;

/// A capture that a loop makes.
#[derive(Debug)]
pub struct Capture {
    part: Vec<u8>,
    packets: u64,
    handed_ns: Time,
    left_out: u64,
    to_writer: SyncSender<Vec<u8>>,
    writer: JoinHandle<io::Result<()>>,
}

impl Capture {
    /// Begins the file of a loop.
    pub fn create(path: &Path, plan: &Plan) -> Result<Self, RunError> {
        Self::begin(path, &beginning(plan))
    }

    /// Begins a file with these blocks.
    pub fn begin(path: &Path, beginning: &[u8]) -> Result<Self, RunError> {
        let fail = |e: io::Error| RunError::system(path.display(), e);
        let mut file = File::create(path).map_err(fail)?;
        file.write_all(beginning).map_err(fail)?;
        let (to_writer, parts) = sync_channel::<Vec<u8>>(WAITING);
        let writer = crate::threads::start(move || parts.iter().try_for_each(|part| file.write_all(&part)))?;
        let part = Vec::with_capacity(2 * PART);
        Ok(Self { part, packets: 0, handed_ns: 0, left_out: 0, to_writer, writer })
    }

    /// A datagram that node `at` sent or received at this moment of the run.
    pub fn packet(&mut self, time_ns: Time, datagram: &Datagram<'_>, at: NodeId, seen: Seen) {
        self.block(time_ns, |part| datagram.append(part, time_ns, at, seen));
    }

    /// A packet of this moment, as the block that `append` makes of it.
    pub fn block(&mut self, time_ns: Time, append: impl FnOnce(&mut Vec<u8>)) {
        append(&mut self.part);
        self.packets += 1;
        if self.part.len() >= PART || time_ns - self.handed_ns > LONGEST {
            self.hand_over();
            // Stamps of what was received lie before those of what was sent; time does not go back.
            self.handed_ns = self.handed_ns.max(time_ns);
        }
    }

    fn hand_over(&mut self) {
        let part = std::mem::replace(&mut self.part, Vec::with_capacity(2 * PART));
        let packets = std::mem::take(&mut self.packets);
        if self.to_writer.try_send(part).is_err() {
            self.left_out += packets;
        }
    }

    /// Ends the file; what went wrong, in words.
    pub fn finish(self) -> Option<String> {
        let Self { part, packets, mut left_out, to_writer, writer, .. } = self;
        left_out += if to_writer.send(part).is_ok() { 0 } else { packets };
        drop(to_writer);
        match writer.join() {
            Ok(Ok(())) if left_out == 0 => None,
            Ok(Ok(())) => Some(format!("the capture was written too slowly: {left_out} packets are missing")),
            Ok(Err(e)) => {
                Some(format!("the capture could not be written: {e}; {left_out} packets are missing"))
            }
            Err(_) => Some("the writer of the capture died".into()),
        }
    }
}

/// Merges captures of loops into one in the order of time; returns the number of packets. A capture that ends in the
/// middle of a block, because its node was killed, ends before it.
pub fn merge(parts: &[PathBuf], into: &Path) -> io::Result<u64> {
    let mut out = BufWriter::new(File::create(into)?);
    let mut streams = Vec::new();
    for part in parts {
        let mut blocks = Blocks { file: BufReader::with_capacity(1 << 16, File::open(part)?), first: None };
        let beginning = blocks.beginning()?;
        // All loops know the same nodes: the first beginning is that of all.
        if streams.is_empty() {
            out.write_all(&beginning)?;
        }
        streams.push(blocks);
    }
    let mut packets = 0;
    for block in Merge::new(streams)? {
        out.write_all(&block?)?;
        packets += 1;
    }
    out.flush()?;
    Ok(packets)
}

/// The packets of a capture with their moments.
struct Blocks {
    file: BufReader<File>,
    first: Option<(Time, Vec<u8>)>,
}

impl Blocks {
    /// Everything before the first packet.
    fn beginning(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(block) = self.block()? {
            match Block::new(&block).packet_time_ns() {
                Some(time_ns) => {
                    self.first = Some((time_ns, block));
                    break;
                }
                None => bytes.extend(block),
            }
        }
        Ok(bytes)
    }

    /// The next whole block.
    fn block(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut head = [0; 8];
        if !filled(&mut self.file, &mut head)? {
            return Ok(None);
        }
        let Some(length) = Block::new(&head).length().filter(|n| (12..=1 << 20).contains(n)) else {
            return Ok(None);
        };
        let mut block = vec![0; length];
        block[..8].copy_from_slice(&head);
        Ok(filled(&mut self.file, &mut block[8..])?.then_some(block))
    }
}

impl Iterator for Blocks {
    type Item = Item<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        loop {
            match self.block() {
                Ok(Some(block)) => match Block::new(&block).packet_time_ns() {
                    Some(time_ns) => return Some(Ok((time_ns, block))),
                    None => continue,
                },
                Ok(None) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }
}

/// Fills a buffer; false if the file ends before.
fn filled(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;
    use tcps_core::ids::ChannelId;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tcps-capture-{name}-{}", std::process::id()))
    }

    fn plan() -> Plan {
        serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a"], "nodes": [{"name": "left"}, {"name": "right"}],
            "components": [], "flows": [],
        }))
        .unwrap()
    }

    fn captured(name: &str, at: NodeId, moments: &[(Time, Seen)]) -> PathBuf {
        let path = place(name);
        let mut capture = Capture::create(&path, &plan()).unwrap();
        for &(time_ns, seen) in moments {
            let datagram = Datagram {
                from: NodeId(0),
                to: NodeId(1),
                channel: ChannelId(0),
                dscp: 46,
                ecn: Default::default(),
                bytes: &time_ns.to_be_bytes(),
            };
            capture.packet(time_ns, &datagram, at, seen);
        }
        assert_eq!(capture.finish(), None);
        path
    }

    fn moments(path: &Path) -> Vec<Time> {
        let mut blocks = Blocks { file: BufReader::new(File::open(path).unwrap()), first: None };
        assert_eq!(blocks.beginning().unwrap(), beginning(&plan()));
        blocks.map(|b| b.unwrap().0).collect()
    }

    #[test]
    fn captures_of_two_loops_become_one_in_the_order_of_time() {
        let left =
            captured("left", NodeId(0), &[(1, Seen::Leaving), (7, Seen::Leaving), (500 * MS, Seen::Leaving)]);
        // A kernel stamp lies before what the loop has done since.
        let right = captured("right", NodeId(1), &[(9, Seen::Leaving), (2, Seen::Coming), (8, Seen::Coming)]);
        let whole = place("whole");
        assert_eq!(merge(&[left.clone(), right.clone()], &whole).unwrap(), 6);
        assert_eq!(moments(&whole), [1, 2, 7, 8, 9, 500 * MS]);
        [left, right, whole].iter().for_each(|p| fs::remove_file(p).unwrap());
    }

    #[test]
    fn a_capture_that_was_torn_ends_before_the_torn_block() {
        let torn = captured("torn", NodeId(0), &[(1, Seen::Leaving), (2, Seen::Leaving)]);
        let bytes = fs::read(&torn).unwrap();
        let whole = place("mended");
        for missing in 1..40 {
            fs::write(&torn, &bytes[..bytes.len() - missing]).unwrap();
            assert_eq!(merge(std::slice::from_ref(&torn), &whole).unwrap(), 1, "{missing} bytes missing");
        }
        [torn, whole].iter().for_each(|p| fs::remove_file(p).unwrap());
    }
}
