//! A half-duplex medium (hub): one transmission at a time over all links that share it.

use tcps_core::{ids::LinkId, time::Time};

/// The links on a medium, and whose turn is next. Waiting links take turns, one packet each.
#[derive(Debug, Default)]
pub(crate) struct Medium {
    pub links: Vec<LinkId>,
    pub busy_until: Time,
    turn: usize,
}

impl Medium {
    /// The next waiting link in turn; the turn moves behind it.
    pub fn grant(&mut self, waits: impl Fn(LinkId) -> bool) -> Option<LinkId> {
        let n = self.links.len();
        let i = (0..n).map(|k| (self.turn + k) % n).find(|&i| waits(self.links[i]))?;
        self.turn = (i + 1) % n;
        Some(self.links[i])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_links_take_turns() {
        let mut m = Medium { links: [4, 5, 6].map(LinkId).to_vec(), ..Medium::default() };
        let order: Vec<_> = (0..4).filter_map(|_| m.grant(|l| l.0 != 5)).collect();
        assert_eq!(order, [4, 6, 4, 6].map(LinkId));
        assert_eq!(m.grant(|_| false), None);
    }
}
