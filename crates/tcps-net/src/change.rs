//! Events: links change, paths are chosen again. Packets keep what has begun and get what is new for the rest.
//!
//! Pure and ahead links know the future of their packets. Before a change, that future is taken back: every packet is
//! put where it is now, on the link that it is passing, or back into the queue if it has not started.

use crate::{
    check,
    error::NetError,
    link::{Mode, Served},
    network::Network,
    own::NoCode,
    packet::{InFlight, Spent},
    passage::Passage,
    queue::Limit,
    topology::Routes,
};
use std::cmp::Reverse;
use tcps_core::{ids::LinkId, time::Time};
use tcps_plan::net::Hop;
use tcps_plan::net::LinkChange;

impl Network {
    /// Changes a link from `now` on. An error names the key; then nothing has changed.
    pub fn change_link(&mut self, now: Time, link: LinkId, change: &LinkChange) -> Result<(), NetError> {
        self.check_link(link, change)?;
        let l = link.index();
        if change.is_none() {
            return Ok(());
        }
        let served = match self.links[l].mode {
            Mode::Served(_) => None,
            _ => Some(Box::new(Served::new(&self.spec.links[l], &self.flows, self.seed, &mut NoCode)?)),
        };
        let now = self.move_to(now);
        if let Some(served) = served {
            self.take_back(now, Some((l, served)));
        }
        let applied = self.apply(l, change);
        self.serve_link(l, now);
        applied
    }

    /// Whether [`change_link`](Self::change_link) would take a change; why not.
    pub fn check_link(&self, link: LinkId, change: &LinkChange) -> Result<(), NetError> {
        let spec = self.spec.links.get(link.index());
        let spec = spec.ok_or_else(|| NetError::new("links", "number", link, "the number of a link"))?;
        check::change(spec, change)
    }

    /// Chooses all paths again, over links that are up. Packets on a link reach its end, and go on from there.
    pub fn reroute(&mut self, now: Time) {
        let now = self.move_to(now);
        self.routes = Routes::new(&self.spec, &self.links, |link| link.is_up(now));
        self.take_back(now, None);
    }

    fn apply(&mut self, l: usize, change: &LinkChange) -> Result<(), NetError> {
        let link = &mut self.links[l];
        link.rate_bps = change.rate_bps.unwrap_or(link.rate_bps);
        link.delay_ns = change.delay_ns.unwrap_or(link.delay_ns);
        link.up = change.up.unwrap_or(link.up);
        let rate_bps = link.rate_bps;
        if let Some(served) = link.served() {
            served.queue.set_rate(rate_bps);
            if change.has_limit() {
                served.queue.set_limit(Limit::of(change.limit_bytes, change.limit_packets));
            }
            if let Some(p) = change.loss {
                served.line.set_loss(p);
            }
            if let Some(p) = change.duplicate {
                served.line.set_duplicate(p);
            }
            if let Some(jitter) = &change.jitter {
                served.line.set_jitter(jitter)?;
            }
        }
        Ok(())
    }

    /// Undoes all folding and, if given, puts the served part of a changed link in its place; then folds what can be folded.
    fn take_back(&mut self, now: Time, changed: Option<(usize, Box<Served>)>) {
        let mut flying = self.unfold(now);
        self.pipes.clear();
        self.pipe_of.clear();
        self.agenda.clear_from(self.links.len() + self.media.len());
        if let Some((l, served)) = changed {
            flying = self.requeue(l, served, now, flying);
        }
        for (l, in_flight) in flying {
            self.launch(l, in_flight);
        }
    }

    /// All packets in flight, with the link that each is passing and the moment of its end, in the order of these moments.
    /// Those that arrive together stay in the order in which a link took them. The counters of folded links keep what has
    /// entered them.
    fn unfold(&mut self, now: Time) -> Vec<(usize, InFlight)> {
        let mut flying = Vec::new();
        let pipes = std::mem::take(&mut self.pipes);
        for pipe in &pipes {
            let counts: Vec<_> = self.folded_counts(pipe, now.saturating_sub(1)).collect();
            for (link, (packets, bytes)) in counts {
                let stats = &mut self.links[link].stats;
                stats.offered_packets += packets;
                stats.offered_bytes += bytes;
            }
            for in_flight in &pipe.packets {
                let (mut l, mut at) = (pipe.link, in_flight.at - pipe.extra);
                for &next in &pipe.path {
                    if at >= now {
                        break;
                    }
                    l = next;
                    if let Some(passages) = &mut self.passages {
                        passages.push(Passage::new(at, in_flight.packet, next.index()));
                    }
                    at += self.links[next].delay_ns;
                }
                let age = self.launched.wrapping_sub(in_flight.number);
                flying.push(((at, l, pipe.link, Reverse(age)), InFlight { at, ..*in_flight }));
            }
        }
        flying.sort_by_key(|(order, _)| *order);
        flying.into_iter().map(|((_, l, ..), in_flight)| (l.index(), in_flight)).collect()
    }

    /// Turns link `l` into a served one. Packets on it that have not started go into its queue; the rest is returned.
    fn requeue(
        &mut self,
        l: usize,
        mut served: Box<Served>,
        now: Time,
        flying: Vec<(usize, InFlight)>,
    ) -> Vec<(usize, InFlight)> {
        if let Some(passages) = &mut self.passages {
            passages.take_back(LinkId(l as u16), now);
        }
        let link = &mut self.links[l];
        let ahead = matches!(link.mode, Mode::Ahead(_));
        let start = |p: &InFlight| p.at - link.delay_ns - link.serialise(p.packet.wire_bytes);
        let waits = |e: &(usize, InFlight)| ahead && e.0 == l && start(&e.1) > now;
        let (waiting, rest): (Vec<_>, Vec<_>) = flying.into_iter().partition(waits);
        let mut waiting: Vec<_> = waiting.into_iter().map(|(_, p)| (start(&p), p)).collect();
        waiting.sort_by_key(|w| w.0);
        if let Some(&(begun_until, _)) = waiting.first() {
            link.busy_total -= link.busy_until - begun_until;
            link.busy_until = begun_until;
        }
        for (start, in_flight) in waiting {
            let (queued_ns, serial_ns) = (start - now, link.serialise(in_flight.packet.wire_bytes));
            let Spent { queued_ns: queued, serial_ns: serial, again_ns } = in_flight.spent;
            let spent = Spent { queued_ns: queued - queued_ns, serial_ns: serial - serial_ns, again_ns };
            let propagated_ns = -link.delay_ns;
            let hop = Hop { queued_ns: -queued_ns, serial_ns: -serial_ns, propagated_ns, ..Hop::default() };
            if self.followed.takes(in_flight.packet.index) {
                link.hops.add(in_flight.packet.class, -1, &hop);
            }
            served.queue.enqueue(InFlight { at: now, spent, ..in_flight }, true, &mut Vec::new());
        }
        let last = rest.iter().filter(|e| e.0 == l).map(|e| e.1.at).max();
        served.line.last_arrival = last.unwrap_or(Time::MIN);
        link.mode = Mode::Served(served);
        rest
    }
}
