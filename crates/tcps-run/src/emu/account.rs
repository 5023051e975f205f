//! Set against delivered, for packets that go one path: what the network said, and what was done.

use super::{rates::Rates, Datagram};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use tcps_core::{
    ids::VertexId,
    record::DropReason,
    report::histogram,
    time::{Time, SECOND},
};
use tcps_plan::report::{Emulated, Recent, Spread};

/// Length of the window of the live table.
const WINDOW: Time = SECOND;

/// A packet that the network let out.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    /// When it came in, by the clock of its port.
    pub arrived: Time,
    /// When it entered the network: then, or later.
    pub entered: Time,
    /// When the network let it out.
    pub set: Time,
    /// When it had gone out; absent: the kernel would not take it.
    pub sent: Option<Time>,
    /// Its bytes, without headers.
    pub bytes: usize,
    /// Size that rates are told of.
    pub rated_bytes: u32,
    /// Size that links count.
    pub wire_bytes: u32,
}

/// What is counted of the packets that go one way.
pub struct Account {
    counted: Emulated,
    set: Histogram<u64>,
    delivered: Histogram<u64>,
    error: Histogram<u64>,
    rates: Rates,
    live: Option<Box<Live>>,
}

impl Account {
    /// Nothing yet; with a window of the last second if it is shown `live`.
    pub fn new(live: bool) -> Self {
        Self {
            counted: Emulated::default(),
            set: histogram(),
            delivered: histogram(),
            error: histogram(),
            rates: Rates::default(),
            live: live.then(Box::default),
        }
    }

    /// A packet came in.
    pub fn came(&mut self, bytes: usize) {
        self.counted.packets += 1;
        self.counted.bytes += bytes as u64;
    }

    /// The network made a copy of a packet.
    pub fn copied(&mut self) {
        self.counted.copies += 1;
    }

    /// The network lost a packet.
    pub fn lost(&mut self, reason: DropReason) {
        self.counted.lost += 1;
        *self.counted.drops.entry(reason.name()).or_default() += 1;
        self.live.iter_mut().for_each(|l| l.now.lost += 1);
    }

    /// The network let a packet out, and it went or did not go.
    pub fn left(&mut self, d: Delivery) {
        self.rates.let_out(d.set, d.rated_bytes, d.wire_bytes);
        let Some(sent) = d.sent else {
            self.rates.refused(d.wire_bytes);
            self.counted.unsent += 1;
            return;
        };
        let (set_ns, delivered_ns) = (d.set - d.entered, sent - d.arrived);
        self.counted.delivered += 1;
        self.counted.delivered_bytes += d.bytes as u64;
        self.rates.handed_on(d.set, delivered_ns - set_ns, d.wire_bytes);
        let _ = self.set.record(set_ns.max(0) as u64);
        let _ = self.delivered.record(delivered_ns.max(0) as u64);
        let _ = self.error.record((delivered_ns - set_ns).max(0) as u64);
        if let Some(Live { now, .. }) = self.live.as_deref_mut() {
            now.packets += 1;
            now.bytes += d.bytes as u64;
            let _ = now.delays.record(delivered_ns.max(0) as u64);
        }
    }

    /// The bytes of a lost segment came out so long after its loss.
    pub fn repaired(&mut self, waited_ns: Time) {
        let longest = self.counted.longest_repair_ns.get_or_insert(waited_ns);
        *longest = (*longest).max(waited_ns);
    }

    /// Packets whose fate is known; those in flight at the end are neither lost nor delivered.
    pub fn decided(&self) -> u64 {
        self.counted.lost + self.counted.unsent + self.counted.delivered
    }

    /// What is told of all its time, with the spreads if it is the `whole`.
    pub fn told(&self, whole: bool) -> Emulated {
        let share = |n: u64| n as f64 / self.decided().max(1) as f64;
        let of = |h: &Histogram<u64>| if whole { Spread::of(h) } else { Spread::default() };
        Emulated {
            inside: (self.counted.packets + self.counted.copies).saturating_sub(self.decided()),
            set_loss: share(self.counted.lost),
            delivered_loss: share(self.counted.lost + self.counted.unsent),
            set_delay_ns: of(&self.set),
            delivered_delay_ns: of(&self.delivered),
            error_ns: of(&self.error),
            set_rate_bps: self.rates.set_bps(),
            delivered_rate_bps: self.rates.delivered_bps(),
            wire_rate_bps: self.rates.wire_bps(),
            released_ns: self.rates.span(),
            ..self.counted.clone()
        }
    }

    /// Begins another window when it is time to.
    pub fn turn(&mut self, now: Time) {
        self.live.iter_mut().for_each(|l| l.turn(now));
    }

    /// What is told of the last window.
    pub fn recent(&self) -> Recent {
        self.live.as_ref().map_or_else(Recent::default, |l| l.last.clone())
    }
}

/// The window that is being filled, and the last one.
#[derive(Default)]
struct Live {
    now: Window,
    /// Found once: the loop shows it many times.
    last: Recent,
}

/// What came in a span of time, which begins when it is first looked at.
struct Window {
    begun: Option<Time>,
    packets: u64,
    bytes: u64,
    lost: u64,
    delays: Histogram<u64>,
}

impl Default for Window {
    fn default() -> Self {
        Self { begun: None, packets: 0, bytes: 0, lost: 0, delays: histogram() }
    }
}

impl Live {
    fn turn(&mut self, now: Time) {
        let w = &mut self.now;
        let span = now - *w.begun.get_or_insert(now);
        if span >= WINDOW {
            let seconds = span as f64 / 1e9;
            self.last = Recent {
                rate_pps: w.packets as f64 / seconds,
                rate_bps: w.bytes as f64 * 8.0 / seconds,
                recent_delay_ns: Spread::of(&w.delays),
                recent_lost: w.lost,
            };
            (w.begun, w.packets, w.bytes, w.lost) = (Some(now), 0, 0, 0);
            w.delays.reset();
        }
    }
}

/// A path of packets: its door, the vertices that it leads from and to, and a service; 0: all packets.
pub type Path = (u16, VertexId, VertexId, u16);

/// The accounts of a packet: that of its door, and that of its service where those are told apart.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counted {
    all: u32,
    service: Option<u32>,
}

/// The accounts of all paths.
pub struct Accounts {
    numbers: BTreeMap<Path, u32>,
    all: Vec<Account>,
    live: bool,
}

impl Accounts {
    /// Of doors, in a direction, that there are from the start, so that nothing is made while packets wait; that of a service is
    /// made with its first packet. Those of a `live` table have a window of the last second.
    pub fn new(doors: impl IntoIterator<Item = (u16, VertexId, VertexId)>, live: bool) -> Self {
        let mut accounts = Self { numbers: BTreeMap::new(), all: Vec::new(), live };
        doors.into_iter().for_each(|(door, from, to)| _ = accounts.number((door, from, to, 0)));
        accounts
    }

    /// The number of a path's account, which is made if there is none.
    fn number(&mut self, path: Path) -> u32 {
        *self.numbers.entry(path).or_insert_with(|| {
            self.all.push(Account::new(self.live));
            self.all.len() as u32 - 1
        })
    }

    /// The accounts of a datagram.
    pub fn of(&mut self, d: &Datagram) -> Counted {
        let service = (d.service > 0).then(|| self.number((d.door, d.from, d.to, d.service)));
        Counted { all: self.number((d.door, d.from, d.to, 0)), service }
    }

    /// Notes something in all accounts of a packet.
    pub fn note(&mut self, counted: Counted, change: impl Fn(&mut Account)) {
        [Some(counted.all), counted.service]
            .into_iter()
            .flatten()
            .for_each(|n| change(&mut self.all[n as usize]));
    }

    /// Begins other windows when it is time to.
    pub fn turn(&mut self, now: Time) {
        self.all.iter_mut().for_each(|a| a.turn(now));
    }

    /// All paths in order, with their accounts.
    pub fn iter(&self) -> impl Iterator<Item = (Path, &Account)> {
        self.numbers.iter().map(|(path, number)| (*path, &self.all[*number as usize]))
    }

    /// Packets that the kernel would not take.
    pub fn unsent(&self) -> u64 {
        self.iter().filter(|((.., service), _)| *service == 0).map(|(_, a)| a.counted.unsent).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    /// A packet of 125 bytes that is set to take so long, and takes so much longer.
    fn packet(arrived: Time, set_ns: Time, late_ns: Time) -> Delivery {
        let set = arrived + set_ns;
        Delivery {
            arrived,
            entered: arrived,
            set,
            sent: Some(set + late_ns),
            bytes: 125,
            rated_bytes: 125,
            wire_bytes: 179,
        }
    }

    #[test]
    fn the_window_shows_the_last_second_and_the_end_everything() {
        let mut account = Account::new(true);
        account.turn(SECOND);
        assert_eq!(account.recent().rate_pps, 0.0, "it begins now, not at 0");
        (0..10).for_each(|_| account.left(packet(SECOND, 5 * MS, 1000)));
        account.lost(DropReason::Loss);
        account.turn(2 * SECOND);
        let first = account.recent();
        assert_eq!((first.rate_pps, first.rate_bps, first.recent_lost), (10.0, 10_000.0, 1));
        (0..4).for_each(|_| account.left(packet(2 * SECOND, MS, 1000)));
        account.turn(3 * SECOND);
        let second = account.recent();
        assert_eq!((second.rate_pps, second.recent_lost), (4.0, 0));
        let whole = account.told(true);
        assert_eq!((whole.lost, whole.delivered, whole.drops["loss"]), (1, 14, 1));
        assert!((whole.set_loss - 1.0 / 15.0).abs() < 1e-9 && whole.set_loss == whole.delivered_loss);
    }

    #[test]
    fn what_came_in_and_its_copies_are_out_lost_unsent_or_inside() {
        let mut account = Account::new(false);
        (0..10).for_each(|_| account.came(125));
        account.copied();
        (0..6).for_each(|_| account.left(packet(0, MS, 0)));
        account.left(Delivery { sent: None, ..packet(0, MS, 0) });
        account.lost(DropReason::Loss);
        let told = account.told(true);
        assert_eq!((told.packets, told.copies, told.delivered, told.unsent, told.lost), (10, 1, 6, 1, 1));
        assert_eq!(told.inside, 3);
    }

    #[test]
    fn a_loop_that_falls_behind_delivers_at_a_smaller_rate_than_is_set() {
        let mut account = Account::new(false);
        (0..2000).for_each(|n| account.left(packet(n * MS, 5 * MS, n * MS / 10)));
        let told = account.told(true);
        let (set, delivered) = (told.set_rate_bps.unwrap(), told.delivered_rate_bps.unwrap());
        assert!((set - 1e6).abs() < 1.0 && (delivered - 1e6 / 1.1).abs() < 1.0, "{set} {delivered}");
        account.left(Delivery { sent: None, ..packet(2000 * MS, 5 * MS, 0) });
        let told = account.told(true);
        assert_eq!(told.set_rate_bps.map(f64::round), Some(1e6), "it was let out");
        assert_eq!((told.unsent, told.set_loss, told.delivered_loss), (1, 0.0, 1.0 / 2001.0));
        assert_eq!(Account::new(false).told(true).set_rate_bps, None);
    }

    #[test]
    fn paths_are_counted_apart() {
        let [a, b] = [0, 1].map(VertexId);
        let mut accounts = Accounts::new([(0, a, b), (0, b, a)], false);
        for (door, service) in [(1, 0), (0, 2)] {
            let counted = accounts.of(&Datagram { door, from: b, to: a, service, ..Datagram::default() });
            accounts.note(counted, |account| account.came(7));
            let refused = Delivery { sent: None, ..packet(0, MS, 0) };
            accounts.note(counted, |account| account.left(refused));
        }
        let told: Vec<_> = accounts.iter().map(|(path, a)| (path, a.told(false).packets)).collect();
        let apart = [((0, a, b, 0), 0), ((0, b, a, 0), 1), ((0, b, a, 2), 1), ((1, b, a, 0), 1)];
        assert_eq!((told, accounts.unsent()), (apart.to_vec(), 2), "a service is part of its door");
    }
}
