//! Packets in flight: into the pipe behind a link, past the pure links that are folded into it, and out at its end.

use crate::{
    network::{traffic_of, Network},
    packet::InFlight,
    passage::Passage,
    pipe::Pipe,
};
use std::collections::VecDeque;
use tcps_core::{
    ids::{LinkId, VertexId},
    time::Time,
};

impl Network {
    /// Puts a packet that arrives at the end of link `l` at `in_flight.at` into flight, past the pure links behind.
    #[inline]
    pub(crate) fn launch(&mut self, l: usize, mut in_flight: InFlight) {
        let (dst, background) = (in_flight.packet.dst, in_flight.packet.is_background());
        let known = self.pipe_of.get(LinkId(l as u16), dst, background);
        let id = known.unwrap_or_else(|| self.open_pipe(LinkId(l as u16), dst, background));
        let pipe = &mut self.pipes[id];
        in_flight.number = self.launched;
        self.launched = self.launched.wrapping_add(1);
        in_flight.at = in_flight.at.saturating_add(pipe.extra);
        let (at, head) = (in_flight.at, pipe.push(in_flight));
        if pipe.quiet {
            self.count_quiet(id);
        } else if head {
            self.agenda.set(self.links.len() + self.media.len() + id, at);
        }
    }

    /// Counts what has arrived of packets that nobody waits for.
    #[inline]
    fn count_quiet(&mut self, id: usize) {
        let pipe = &mut self.pipes[id];
        while pipe.packets.front().is_some_and(|p| p.at <= self.now) {
            if let Some(in_flight) = pipe.packets.pop_front() {
                if let Some(t) = traffic_of(&mut self.traffic, &in_flight.packet) {
                    t.arrive(in_flight.damaged_by);
                }
            }
        }
    }

    /// The head of a pipe arrives.
    pub(crate) fn flow_out(&mut self, id: usize, now: Time) {
        let pipe = &mut self.pipes[id];
        let (end, in_flight) = (pipe.end, pipe.packets.pop_front());
        let agenda_id = self.links.len() + self.media.len() + id;
        match pipe.packets.front() {
            Some(next) => self.agenda.set(agenda_id, next.at),
            None => self.agenda.clear(agenda_id),
        }
        if let Some(in_flight) = in_flight {
            if self.passages.is_some() {
                self.pass_folded(id, &in_flight);
            }
            self.enter(now, end, in_flight);
        }
    }

    /// A packet has passed the folded links of a pipe.
    fn pass_folded(&mut self, id: usize, in_flight: &InFlight) {
        let Self { passages: Some(passages), pipes, links, .. } = self else { return };
        let mut at = in_flight.at - pipes[id].extra;
        for &link in &pipes[id].path {
            passages.push(Passage::new(at, in_flight.packet, link.index()));
            at += links[link].delay_ns;
        }
    }

    /// The pipe behind link `l` for a destination: made at its first packet, shared by destinations with one path.
    fn open_pipe(&mut self, link: LinkId, dst: VertexId, background: bool) -> usize {
        let (path, extra, end) = self.fold(self.links[link].to, dst);
        let quiet = background && end == dst;
        let id = self.pipe_of.share(link, dst, background, (&path, quiet), self.pipes.len());
        if id == self.pipes.len() {
            let (packets, pushed) = (VecDeque::new(), (0, 0));
            self.pipes.push(Pipe { link, path, extra, end, quiet, packets, pushed });
        }
        id
    }

    /// The pure links that a packet at `v` for `dst` passes without stopping, their delay, and where it stops.
    fn fold(&self, mut v: VertexId, dst: VertexId) -> (Vec<LinkId>, Time, VertexId) {
        let (mut path, mut extra) = (Vec::new(), 0);
        while v != dst && self.routes.are_alike() && path.len() < self.links.len() {
            let next = self.routes.next(v, dst, 0);
            match self.links.get(next.index()) {
                Some(link) if link.is_pure() => {
                    path.push(next);
                    extra += link.delay_ns;
                    v = link.to;
                }
                _ => break,
            }
        }
        (path, extra, v)
    }

    /// Packets and bytes that have entered each folded link of a pipe by `now`.
    pub(crate) fn folded_counts<'a>(
        &'a self,
        pipe: &'a Pipe,
        now: Time,
    ) -> impl Iterator<Item = (LinkId, (u64, u64))> + 'a {
        let mut before_end = pipe.extra;
        pipe.path.iter().map(move |&link| {
            let (packets, bytes) = pipe.not_entered(now, before_end);
            before_end -= self.links[link].delay_ns;
            (link, (pipe.pushed.0 - packets, pipe.pushed.1 - bytes))
        })
    }
}
