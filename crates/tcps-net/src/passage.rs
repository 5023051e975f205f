//! What became of single packets at links, for drivers that ask for it: one entry for each that a link took.
//!
//! A link that knows its future (`Ahead`) tells of a packet when the next one finds it begun: until then a change of the link
//! can take it back.

use crate::packet::Packet;
use std::collections::{BTreeMap, VecDeque};
use tcps_core::{ids::LinkId, time::Time};

/// A packet of the driver's that a link took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it came to the link.
    pub entered_ns: Time,
    /// The packet.
    pub packet: Packet,
    /// Number of the link.
    pub link: LinkId,
    /// It waited for the line so long.
    pub queued_ns: Time,
    /// It took so long to be put on the line.
    pub serial_ns: Time,
}

impl Passage {
    /// A packet comes to a link that lets it through at once.
    pub(crate) fn new(entered_ns: Time, packet: Packet, link: usize) -> Self {
        Self { entered_ns, packet, link: LinkId(link as u16), queued_ns: 0, serial_ns: 0 }
    }
}

/// Those that have not been asked for.
#[derive(Debug, Default)]
pub(crate) struct Passages {
    told: VecDeque<Passage>,
    /// By link, what may still be taken back, in the order in which it begins.
    ahead: BTreeMap<LinkId, VecDeque<Passage>>,
}

impl Passages {
    /// The oldest.
    pub fn pop(&mut self) -> Option<Passage> {
        self.told.pop_front()
    }

    /// A link took a packet.
    pub fn push(&mut self, passage: Passage) {
        if !passage.packet.is_background() {
            self.told.push_back(passage);
        }
    }

    /// A link will take a packet that has come now.
    pub fn plan(&mut self, passage: Passage) {
        if !passage.packet.is_background() {
            self.ahead.entry(passage.link).or_default().push_back(passage);
        }
        self.begin(passage.link, passage.entered_ns);
    }

    /// What a link will have begun at a moment cannot be taken back.
    pub fn begin(&mut self, link: LinkId, until: Time) {
        let Some(ahead) = self.ahead.get_mut(&link) else { return };
        let begun = ahead.partition_point(|p| p.entered_ns + p.queued_ns <= until);
        self.told.extend(ahead.drain(..begun));
    }

    /// The same of all links.
    pub fn begin_all(&mut self, until: Time) {
        let links: Vec<LinkId> = self.ahead.keys().copied().collect();
        links.into_iter().for_each(|link| self.begin(link, until));
    }

    /// What has not begun is taken back and comes to the link anew: of those it is told how long they have waited.
    pub fn take_back(&mut self, link: LinkId, now: Time) {
        self.begin(link, now);
        for passage in self.ahead.remove(&link).into_iter().flatten() {
            let queued_ns = now - passage.entered_ns;
            self.told.push_back(Passage { queued_ns, serial_ns: 0, ..passage });
        }
    }
}
