//! Links that are served packet by packet, on their own line or on a shared medium.

use crate::{
    line::Departure,
    link::Mode,
    network::Network,
    packet::{InFlight, NetEvent, Spent},
    passage::Passage,
};
use tcps_core::{
    ids::LinkId,
    time::{Time, NEVER},
};
use tcps_plan::net::Hop;

impl Network {
    /// A packet comes to the queue of a served link. Returns when the link will have taken it, if anybody may ask.
    pub(crate) fn queue_up(&mut self, l: usize, in_flight: InFlight) -> Time {
        let (now, busy, rate_bps) = (in_flight.at, self.links[l].busy_until, self.links[l].rate_bps);
        let Some(medium) = self.links[l].served().map(|s| s.medium) else { return now };
        let caller = medium.map_or(l, |m| self.links.len() + usize::from(m));
        if self.agenda.time_of(caller) <= now {
            self.work(caller, now); // departures come before arrivals of the same moment
        }
        let line_free = medium.map_or(busy, |m| self.media[usize::from(m)].busy_until) <= now;
        let Some(served) = self.links[l].served() else { return now };
        served.skip_turns(now);
        let waited = served.queue.packets();
        let line_idle = line_free && served.is_free(now, in_flight.packet.wire_bytes, rate_bps);
        served.queue.enqueue(in_flight, line_idle, &mut self.refused);
        let joined = served.queue.packets() > waited;
        self.report_refused(l, now);
        self.work(caller, now);
        let link = &mut self.links[l];
        if let Mode::Served(served) = &link.mode {
            link.stats.waits(served.queue.packets(), served.queue.bytes());
        }
        match joined && !in_flight.packet.is_background() {
            true => link.drained_at(now),
            false => now,
        }
    }

    /// Sends what can start on a served link of its own line.
    pub(crate) fn serve_link(&mut self, l: usize, now: Time) {
        if let Some(m) = self.links[l].served().and_then(|s| s.medium) {
            return self.serve_medium(usize::from(m), now);
        }
        while let Some(departure) = self.links[l].begin(now, &mut self.refused) {
            self.depart(l, departure);
        }
        self.report_refused(l, now);
        match self.links[l].next_service(now) {
            NEVER => self.agenda.clear(l),
            at => self.agenda.set(l, at),
        }
    }

    /// Sends what can start on a medium: one transmission at a time, waiting links in turn.
    pub(crate) fn serve_medium(&mut self, m: usize, now: Time) {
        while self.media[m].busy_until <= now {
            let links = &self.links;
            let Some(l) = self.media[m].grant(|l| links[l].has_waiting()) else { break };
            let l = usize::from(l);
            if let Some(departure) = self.links[l].begin(now, &mut self.refused) {
                self.media[m].busy_until = self.links[l].busy_until;
                self.depart(l, departure);
            }
            self.report_refused(l, now);
        }
        let waiting = self.media[m].links.iter().any(|&l| self.links[l].has_waiting());
        match waiting {
            true => self.agenda.set(self.links.len() + m, self.media[m].busy_until),
            false => self.agenda.clear(self.links.len() + m),
        }
    }

    fn report_refused(&mut self, l: usize, now: Time) {
        for i in 0..self.refused.len() {
            let (packet, reason) = self.refused[i];
            self.report_drop(now, packet, LinkId(l as u16), reason);
        }
        self.refused.clear();
    }

    fn depart(&mut self, l: usize, departure: Departure) {
        let Departure { in_flight, start, begun, lost, arrivals, end, again_ns } = departure;
        let packet = in_flight.packet;
        if let Some(reason) = lost {
            return self.report_drop(start, packet, LinkId(l as u16), reason);
        }
        if arrivals[1].is_some() {
            self.links[l].stats.duplicated += 1;
            if !packet.is_background() {
                self.events.push_back(NetEvent::Duplicated { at: start, packet });
            }
        }
        let (queued_ns, serial_ns) = (begun - in_flight.at, end - begun);
        let spent = Spent {
            queued_ns: in_flight.spent.queued_ns + queued_ns,
            serial_ns: in_flight.spent.serial_ns + serial_ns,
            again_ns: in_flight.spent.again_ns + again_ns,
        };
        for (at, corrupted) in arrivals.into_iter().flatten() {
            let link = &mut self.links[l];
            link.stats.corrupted += u64::from(corrupted);
            let propagated_ns = at.saturating_sub(end) - again_ns;
            let hop = Hop { queued_ns, serial_ns, propagated_ns, again_ns, ..Hop::default() };
            self.account(l, &packet, &hop);
            if let Some(passages) = &mut self.passages {
                passages.push(Passage { queued_ns, serial_ns, ..Passage::new(in_flight.at, packet, l) });
            }
            let damaged_by = in_flight.damaged_by.or(corrupted.then_some(LinkId(l as u16)));
            self.launch(l, InFlight { damaged_by, spent, at, ..in_flight });
        }
    }
}
