//! Networks in layers: a new one takes what comes from now on, an old one keeps what is in flight until it is empty.

use crate::carrier::{Carrier, ForeignSelf};
use std::os::fd::RawFd;
use tcps_core::{
    ids::{TrafficId, VertexId},
    time::{Time, NEVER},
};
use tcps_net::{NetEvent, Packet, Passage};
use tcps_plan::net::{Hops, LinkStats, TrafficStats};

/// A network with the number of packets that are in flight in it.
struct Layer {
    network: Carrier,
    open: u64,
}

/// The present network and those before it that are not yet empty.
pub struct Layers {
    present: Layer,
    before: Vec<Layer>,
    /// Entries of background traffic that are still to be stopped, and when: at the end of a run, though its engine goes on.
    stopping: Option<(u16, Time)>,
    /// Whether they have been.
    stopped: bool,
    /// What the links of networks that are empty by now have counted.
    gone: Vec<LinkStats>,
}

impl Layers {
    /// With one network.
    pub fn new(network: Carrier) -> Self {
        Self {
            present: Layer { network, open: 0 },
            before: Vec::new(),
            stopping: None,
            stopped: false,
            gone: Vec::new(),
        }
    }

    /// With so many entries of background traffic that stop at a moment.
    pub fn stopping(self, traffic: u16, at: Time) -> Self {
        Self { stopping: (traffic > 0).then_some((traffic, at)), ..self }
    }

    /// Whether background traffic has been stopped for good.
    pub fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// The present network.
    pub fn present(&mut self) -> &mut Carrier {
        &mut self.present.network
    }

    /// Puts another network in the place of the present one.
    pub fn push(&mut self, network: Carrier) {
        let old = std::mem::replace(&mut self.present, Layer { network, open: 0 });
        self.before.push(old);
    }

    /// How many networks there are.
    #[cfg(test)]
    pub fn depth(&self) -> usize {
        1 + self.before.len()
    }

    /// See [`Carrier::start`].
    pub fn start(&mut self, start_ns: Time) {
        self.present.network.start(start_ns);
    }

    /// See [`Carrier::descriptor`].
    pub fn descriptor(&self) -> Option<RawFd> {
        self.present.network.descriptor()
    }

    /// See [`Carrier::listen`].
    pub fn listen(&mut self) {
        self.present.network.listen();
    }

    /// See [`Carrier::failure`].
    pub fn failure(&self) -> Option<&str> {
        self.present.network.failure()
    }

    /// See [`Carrier::failures`].
    pub fn failures(&self) -> Vec<String> {
        self.present.network.failures()
    }

    /// See [`Carrier::accounts`]; a link has counted what those of its name before it have, too.
    pub fn accounts(&mut self) -> (Vec<LinkStats>, Vec<TrafficStats>) {
        let (mut links, traffic) = self.present.network.accounts();
        let before = self.before.iter_mut().flat_map(|l| l.network.accounts().0);
        self.gone.iter().cloned().chain(before).for_each(|gone| add(&mut links, &gone));
        (links, traffic)
    }

    /// See [`Carrier::hops`].
    pub fn hops(&self) -> Vec<Hops> {
        self.present.network.hops()
    }

    /// See [`Carrier::itself`].
    pub fn itself(&self) -> Option<&ForeignSelf> {
        self.present.network.itself()
    }

    /// When something may happen.
    pub fn poll_timeout(&self) -> Time {
        let all = self.before.iter().chain([&self.present]);
        all.filter_map(|l| l.network.poll_timeout()).min().unwrap_or(NEVER)
    }

    /// What became of a packet at a link, in any of them.
    pub fn poll_passage(&mut self) -> Option<Passage> {
        self.before.iter_mut().chain([&mut self.present]).find_map(|l| l.network.poll_passage())
    }

    /// A packet enters the present network.
    pub fn send(&mut self, now: Time, from: VertexId, packet: Packet) {
        self.present.open += 1;
        self.present.network.send(now, from, packet);
    }

    /// Does what is due in all networks until `until`, and hands over what comes of it.
    pub fn advance(&mut self, until: Time, mut take: impl FnMut(NetEvent)) {
        if let Some((traffic, end)) = self.stopping.filter(|(_, end)| *end <= until) {
            (self.stopping, self.stopped) = (None, true);
            self.reach(end, &mut take);
            (0..traffic).map(TrafficId).for_each(|t| self.present.network.set_traffic(end, t, false));
        }
        self.reach(until, &mut take);
    }

    fn reach(&mut self, until: Time, take: &mut impl FnMut(NetEvent)) {
        self.before.iter_mut().for_each(|l| l.reach(until, take));
        self.present.reach(until, take);
        let Self { before, gone, .. } = self;
        before.retain_mut(|l| {
            if l.open == 0 {
                gone.extend(l.network.accounts().0);
            }
            l.open > 0
        });
    }
}

/// Adds what a link has counted to that of its name.
fn add(links: &mut [LinkStats], gone: &LinkStats) {
    let Some(link) = links.iter_mut().find(|link| link.name == gone.name) else { return };
    link.packets += gone.packets;
    link.bytes += gone.bytes;
    link.dropped_packets += gone.dropped_packets;
    link.dropped_bytes += gone.dropped_bytes;
    link.drops.iter_mut().zip(gone.drops).for_each(|(all, more)| *all += more);
    link.max_queue_bytes = link.max_queue_bytes.max(gone.max_queue_bytes);
    link.max_queue_packets = link.max_queue_packets.max(gone.max_queue_packets);
    link.busy_ns += gone.busy_ns;
    link.duplicated += gone.duplicated;
    link.corrupted += gone.corrupted;
    link.marked += gone.marked;
    if let Some(more) = &gone.jitter_ns {
        match &mut link.jitter_ns {
            Some(all) => _ = all.add(&**more), // of the same bounds, so nothing can fail
            none => *none = Some(more.clone()),
        }
    }
}

impl Layer {
    fn reach(&mut self, until: Time, take: &mut impl FnMut(NetEvent)) {
        while let Some(t) = self.network.poll_timeout().filter(|t| *t <= until) {
            self.network.handle_timeout(t);
            self.drain(take);
        }
        // Background traffic does not ask to be called.
        self.network.handle_timeout(until);
        self.drain(take);
    }

    fn drain(&mut self, take: &mut impl FnMut(NetEvent)) {
        while let Some(event) = self.network.poll_event() {
            match event {
                NetEvent::Duplicated { .. } => self.open += 1,
                _ => self.open = self.open.saturating_sub(1),
            }
            take(event);
        }
    }
}
