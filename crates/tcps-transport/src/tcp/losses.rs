//! Whether an acknowledgement shows losses, and whether those that were supposed were none.
//!
//! ```text
//! probe answered ─► a loss that it repaired        end of what was lost ─► recovery is over, or was not needed
//! RACK ─► segments lost ─► recovery                stamps, duplicates, first copies ─► a reduction is taken back
//! ```

use super::{
    ack::{Ack, Found},
    recovery::Phase,
    sender::Sender,
    timer::Timer,
};
use tcps_core::time::Time;

/// What an acknowledgement shows to be lost.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub(super) count: u32,
    has_repeat: bool,
    /// The timer is set for what may be lost soon.
    pub(super) set_timer: bool,
}

impl Sender {
    /// Whether the probe of the tail has repaired a loss, which costs a reduction.
    // RFC 8985 §7.4
    pub(super) fn judge_probe(&mut self, ack: &Ack<'_>, found: &Found) {
        let Some((behind, is_repeat)) = self.probe.filter(|p| ack.position >= p.0) else { return };
        if !is_repeat || found.duplicated {
            self.probe = None;
        } else if ack.position > behind {
            self.probe = None;
            self.recover(|recovery, on| recovery.enter_reduced(on));
            self.recovery.finish_reduction(&mut self.window);
            self.recovery.end();
            self.recovery.settle(self.has_holes());
        } else if found.is_duplicate && !found.summary.sacked {
            self.probe = None;
        }
    }

    fn has_holes(&self) -> bool {
        self.board.sacked() + self.board.lost() + self.board.repeated() > 0
    }

    /// Loss recovery.
    // [RFC 8985 §6]
    pub(super) fn judge_losses(&mut self, now: Time, ack: &Ack<'_>, found: &Found) -> Losses {
        self.close_recovery(ack);
        let may_undo = self.recovery.can_undo() && self.recovery.answers_original(ack.echo_ns);
        match self.recovery.phase() {
            Phase::Recovery => {
                if found.has_advanced && may_undo {
                    // What was thought lost was only late.
                    self.rack.reordered(1);
                    if self.board.repeated() > 0 {
                        return Losses::default();
                    }
                    self.take_back();
                }
                if self.recovery.all_duplicated() {
                    self.recovery.undo(&mut self.window);
                    self.try_open(ack);
                }
                let losses = self.find_losses(now);
                if self.recovery.phase() != Phase::Recovery && self.board.lost() > 0 {
                    self.enter_recovery(ack.has_mark);
                }
                losses
            }
            Phase::Loss => {
                self.judge_timeout(ack, found, may_undo);
                let losses = self.find_losses(now);
                if self.recovery.phase() == Phase::Open || losses.has_repeat {
                    self.look_for_losses(ack);
                }
                losses
            }
            _ => {
                if self.recovery.phase() <= Phase::Disorder && self.recovery.all_duplicated() {
                    self.recovery.undo(&mut self.window);
                }
                let losses = self.find_losses(now);
                self.look_for_losses(ack);
                losses
            }
        }
    }

    /// Ends what is over with this acknowledgement.
    fn close_recovery(&mut self, ack: &Ack<'_>) {
        if self.recovery.phase() == Phase::Open {
            if self.board.repeated() == 0 {
                self.recovery.forget_repeats();
            }
        } else if self.acked >= self.recovery.high {
            match self.recovery.phase() {
                // The segment that tells the peer of the reduction is to be acknowledged too.
                Phase::Reduced if self.acked > self.recovery.high => {
                    self.recovery.finish_reduction(&mut self.window);
                    self.recovery.end();
                }
                Phase::Recovery => {
                    self.end_recovery(ack);
                    self.recovery.finish_reduction(&mut self.window);
                }
                _ => {}
            }
        }
    }

    fn end_recovery(&mut self, ack: &Ack<'_>) {
        let was_false = self.recovery.all_duplicated()
            || self.recovery.can_undo() && self.recovery.answers_original(ack.echo_ns);
        if was_false {
            self.recovery.undo(&mut self.window);
            self.rack.again();
        } else {
            self.rack.recovered();
        }
        self.recovery.end();
    }

    /// What is thought lost was not.
    fn take_back(&mut self) {
        self.board.forget_losses();
        self.recovery.undo(&mut self.window);
        self.rack.again();
        self.recovery.end();
        self.recovery.settle(self.has_holes());
    }

    /// After a time-out: whether it was false, and whether what it began is over.
    // [RFC 5682 §3.1]
    fn judge_timeout(&mut self, ack: &Ack<'_>, found: &Found, may_undo: bool) {
        let is_over = self.acked >= self.recovery.high;
        if found.has_advanced && (may_undo || self.recovery.all_duplicated()) {
            return self.take_back_timeout();
        }
        if self.recovery.is_testing {
            if found.summary.original {
                return self.take_back_timeout();
            }
            if self.sent_to > self.recovery.high {
                self.recovery.is_testing &= !(found.summary.sacked || found.is_duplicate);
            } else if found.has_advanced && !is_over {
                self.recovery.high = self.sent_to;
                if self.has_new() && self.allowed_to > self.sent_to {
                    self.new_first = true;
                    return;
                }
                self.recovery.is_testing = false;
            }
        }
        if is_over {
            self.end_recovery(ack);
        }
    }

    fn take_back_timeout(&mut self) {
        self.board.forget_losses();
        self.recovery.undo(&mut self.window);
        self.rack.again();
        self.recovery.end();
    }

    fn find_losses(&mut self, now: Time) -> Losses {
        let path = self.path();
        let (lost, repeated) = (self.board.lost(), self.board.repeated());
        let again_ns = self.rack.detect(now, &mut self.board, &path);
        if let Some(at) = again_ns {
            self.timer = Some(Timer::Reorder(at.max(now + 1)));
        }
        let repeats = repeated.saturating_sub(self.board.repeated());
        let count = self.board.lost().saturating_sub(lost) + repeats;
        Losses { count, has_repeat: repeats > 0, set_timer: again_ns.is_some() }
    }

    fn look_for_losses(&mut self, ack: &Ack<'_>) {
        if self.board.lost() > 0 {
            self.enter_recovery(ack.has_mark);
        } else {
            self.try_open(ack);
        }
    }

    /// Losses are repaired from now on.
    pub(super) fn enter_recovery(&mut self, by_mark: bool) {
        self.probe = None;
        self.tells_reduced |= self.ecn;
        self.recover(|recovery, on| recovery.enter(on, by_mark));
    }

    fn try_open(&mut self, ack: &Ack<'_>) {
        if self.board.repeated() == 0 {
            self.recovery.forget_repeats();
        }
        if ack.has_mark && self.recovery.phase() < Phase::Reduced {
            self.probe = None;
            self.tells_reduced = true;
            self.recover(|recovery, on| recovery.enter_reduced(on));
        }
        self.recovery.settle(self.has_holes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, in_flight};
    use super::*;
    use tcps_core::time::MS;

    /// The acknowledgement answers first copies, of which nothing new is learned about the others: without another look these would
    /// wait for a time-out.
    // [RFC 3522 §3.2] [RFC 8985 §6.2]
    #[test]
    fn with_a_reduction_that_is_taken_back_the_rest_is_looked_at_again() {
        let mut sender = in_flight(10);
        let blocks = &[(41, 71)];
        sender.acknowledge(46 * MS, &Ack { blocks, ..ack(1) });
        assert_eq!((sender.recovery.phase(), sender.board.lost()), (Phase::Recovery, 4));
        let repeats: Vec<_> = std::iter::from_fn(|| sender.next(46 * MS)).map(|s| s.start).collect();
        assert_eq!(repeats, [1, 11]);
        sender.acknowledge(48 * MS, &Ack { blocks, echo_ns: Some(MS), ..ack(21) });
        assert_eq!((sender.recovery.phase(), sender.board.lost()), (Phase::Disorder, 0));
        assert_eq!(sender.timer, Some(Timer::Reorder((3 + 40 + 10) * MS)), "a quarter of a round trip more");
        sender.expire(53 * MS);
        assert_eq!((sender.recovery.phase(), sender.board.lost()), (Phase::Recovery, 2));
    }
}
