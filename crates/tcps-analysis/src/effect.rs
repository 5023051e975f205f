//! What changes of links and attacks did: how many datagrams were sent and accepted, what they added to the delay of genuine
//! samples, and when a supervisor held.
//!
//! ```text
//!  event ─ from ─────────────── until ─►        until: the attack's end; of a link, the next event that changes it
//!           │ during: delays by flow │  outside of all of them: delays by flow
//! ```
//! In virtual time rows say which datagrams of an attacker were accepted. On sockets one was accepted if its sample enters the
//! component that it is for after it was sent; a replay whose number cannot be read, if a sample enters there again. A lie in a
//! sealed answer was believed if an exchange that lay within the attack was understood.

use super::{names, tally::Tally};
use serde::Serialize;
use std::collections::BTreeMap;
use tcps_core::{
    hook::State,
    ids::{ChannelId, FlowId, NodeId},
    record::{Kind, Record},
    sample::PointId,
    time::Time,
};
use tcps_plan::{
    attack::{ACCEPTED, FOLLOWED},
    is_forged,
    net::LinkChange,
    Action, Attack, AttackPlan, Plan,
};

/// Effects that are told at most, of the first events.
const MOST: usize = 64;
/// Samples, meanwhile and outside, below which no difference of their delays is told.
const LEAST: u64 = 20;
/// Datagrams of attackers whose fate is open, at most.
const MOST_OPEN: usize = 1 << 17;

/// `detail` of the row of a connection that is lost.
const LOST: u8 = 0;
/// Numbers that are remembered of what entered a component.
const NEWEST: usize = 1 << 16;

/// Delays of a flow's genuine samples.
#[derive(Debug, Serialize)]
pub struct DelayReport {
    /// The flow.
    pub flow: String,
    /// Samples that arrived meanwhile.
    pub n: u64,
    /// Their median and 99th percentile, ns.
    pub p50_ns: f64,
    /// See `p50_ns`.
    pub p99_ns: f64,
    /// What that is more than outside of all effects; none where too few samples arrived here or there.
    pub added_p50_ns: Option<f64>,
    /// See `added_p50_ns`.
    pub added_p99_ns: Option<f64>,
}

/// What an event did.
#[derive(Debug, Serialize)]
pub struct EffectReport {
    /// Name of the event.
    pub name: String,
    /// `link`, or the kind of the attack.
    pub kind: &'static str,
    /// The flow that is attacked.
    pub flow: Option<String>,
    /// The channel whose datagrams are attacked, and the component that they are for.
    pub channel: Option<String>,
    /// See `channel`.
    pub component: Option<String>,
    /// The node that they go to.
    pub node: Option<String>,
    /// When it began, seconds.
    pub from_s: f64,
    /// When it ended.
    pub until_s: f64,
    /// Datagrams that the attacker sent or changed.
    pub sent: u64,
    /// The same by the node that they went to.
    pub to: BTreeMap<String, u64>,
    /// Those that were accepted; none where rows cannot tell.
    pub accepted: Option<u64>,
    /// From its beginning until a supervisor held.
    pub hold_ms: Option<f64>,
    /// From its beginning until a supervisor stopped safely.
    pub safe_stop_ms: Option<f64>,
    /// Delays meanwhile, by flow.
    pub delays: Vec<DelayReport>,
}

#[derive(Debug)]
struct Effect {
    number: usize,
    name: String,
    kind: &'static str,
    flow: Option<FlowId>,
    /// Of a lie about the clock.
    offset_ns: u64,
    from: Time,
    until: Time,
    /// When the next one begins.
    next: Time,
    sent: u64,
    to: BTreeMap<NodeId, u64>,
    accepted: u64,
    /// Some of what was sent does not say of which sample it is.
    unknown: bool,
    /// Where its samples would enter, and those that entered there again.
    point: PointId,
    again: u64,
    /// Channels on its flow's path with the node behind each, and the node that it sends to.
    channels: Vec<(ChannelId, NodeId)>,
    node: NodeId,
    states: [Option<Time>; 2],
    during: BTreeMap<FlowId, Tally>,
}

/// Those of a run.
#[derive(Debug, Default)]
pub struct Effects {
    all: Vec<Effect>,
    outside: BTreeMap<FlowId, Tally>,
    /// What may still be accepted: flow, sample and where it would enter; which effect it is of.
    open: BTreeMap<(FlowId, u32, PointId), usize>,
    /// Answers about clocks that were changed, by client and number.
    lied: BTreeMap<(NodeId, u32), usize>,
    /// Samples that entered a component since a replay began, by flow and point: numbers of the newest, plus 1.
    entered: BTreeMap<(FlowId, PointId), Vec<u32>>,
    /// Datagrams of a flow that were changed, less those that have a number which nothing has.
    changed: BTreeMap<FlowId, u64>,
    /// The largest lie about the clock that a node was told.
    lies_ns: BTreeMap<NodeId, u64>,
}

impl Effects {
    /// Those of a plan's events.
    pub fn new(plan: &Plan) -> Self {
        let mut all = Vec::new();
        for (number, event) in plan.events.iter().enumerate() {
            let from = event.at_ns;
            let (kind, flow, until) = match &event.action {
                Action::Attack(a) => (a.what.name(), a.what.flow(), from.saturating_add(a.duration_ns)),
                Action::Link(change) if !restores(plan, change) => {
                    ("link", None, changed_again(plan, number, change))
                }
                _ => continue,
            };
            let (name, until) = (event.name.clone(), until.min(plan.duration_ns));
            all.push(Effect {
                number,
                name,
                kind,
                flow,
                from,
                until,
                next: plan.duration_ns,
                sent: 0,
                to: BTreeMap::new(),
                offset_ns: offset_ns(&event.action),
                accepted: 0,
                unknown: false,
                point: PointId::NONE,
                again: 0,
                channels: flow.map_or_else(Vec::new, |flow| channels(plan, flow)),
                node: NodeId::NONE,
                states: [None; 2],
                during: BTreeMap::new(),
            });
        }
        all.truncate(MOST);
        for i in 0..all.len() {
            let later = all.iter().map(|e| e.from).filter(|from| *from > all[i].from).min();
            all[i].next = later.unwrap_or(plan.duration_ns);
        }
        Self { all, ..Self::default() }
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A row of a sample; whether it is one that an attacker made, which is no sample of the flow.
    pub fn sample(&mut self, row: &Record) -> bool {
        if matches!(row.kind, Kind::Enter | Kind::Delivered) {
            let point = PointId(row.point);
            if let Some(at) = self.open.remove(&(row.flow, row.index, point)) {
                self.all[at].accepted += 1;
            }
            let replay = self
                .all
                .iter_mut()
                .rfind(|e| e.kind == "replay" && e.flow == Some(row.flow) && e.from <= row.time_ns);
            if let Some(replay) = replay {
                let newest = self.entered.entry((row.flow, point)).or_insert_with(|| vec![0; NEWEST]);
                let place = &mut newest[row.index as usize % NEWEST];
                replay.again += u64::from(*place == row.index.wrapping_add(1) && point == replay.point);
                *place = row.index.wrapping_add(1);
            }
        }
        is_forged(row.index)
    }

    /// A sample has a number that nothing has: whether that may be a datagram which an attacker changed.
    pub fn changed(&mut self, flow: FlowId) -> bool {
        let left = self.changed.get_mut(&flow).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }

    /// The largest lie about the clock that the node of a row was told until then.
    pub fn lies_ns(&self, row: &Record) -> u64 {
        self.lies_ns.get(&row.node).copied().unwrap_or_default()
    }

    /// A genuine sample came to its sink for the first time.
    pub fn arrived(&mut self, row: &Record) {
        let mut outside = true;
        for effect in self.all.iter_mut().filter(|e| (e.from..e.until).contains(&row.time_ns)) {
            outside = false;
            effect.during.entry(row.flow).or_default().add(row.value);
        }
        if outside {
            self.outside.entry(row.flow).or_default().add(row.value);
        }
    }

    /// A row that is no sample's.
    pub fn take(&mut self, row: &Record) {
        match row.kind {
            Kind::Attack => self.attacked(row),
            Kind::Sync => {
                if let Some(at) = self.lied.remove(&(row.node, row.index)) {
                    self.all[at].accepted += 1;
                }
                let trip_ns = 2 * Time::from(row.size);
                let within = |e: &&mut Effect| e.from <= row.time_ns - trip_ns && row.time_ns < e.until;
                let lies = self.all.iter_mut().filter(|e| e.kind == "clock-lie" && e.unknown);
                lies.filter(within).for_each(|e| e.accepted += 1);
            }
            Kind::Connection if row.detail == LOST => {
                let resets = self.all.iter_mut().filter(|e| e.kind == "reset" && e.sent > 0);
                let end = (ChannelId(row.point), row.node);
                let is_one = |e: &&mut Effect| e.node == row.node && e.channels.contains(&end);
                let during = |e: &&mut Effect| (e.from..e.next).contains(&row.time_ns);
                resets.filter(is_one).filter(during).for_each(|e| e.accepted += 1);
            }
            Kind::State => {
                let state = match State::from_u8(row.detail) {
                    Some(State::Hold) => 0,
                    Some(State::SafeStop) => 1,
                    _ => return,
                };
                let now = row.time_ns;
                for e in self
                    .all
                    .iter_mut()
                    .filter(|e| row.size != u32::from(row.detail) && (e.from..e.next).contains(&now))
                {
                    e.states[state].get_or_insert(now - e.from);
                }
            }
            _ => {}
        }
    }

    fn attacked(&mut self, row: &Record) {
        let found = self.all.iter().position(|e| e.number as i64 == row.value);
        let Some(at) = found else { return };
        let effect = &mut self.all[at];
        if row.detail == ACCEPTED {
            effect.accepted += 1;
            return;
        }
        effect.sent += 1;
        *effect.to.entry(row.node).or_default() += 1;
        match effect.kind {
            "tamper" => *self.changed.entry(row.flow).or_default() += 1,
            "clock-lie" => {
                let lie = self.lies_ns.entry(row.node).or_default();
                *lie = (*lie).max(effect.offset_ns);
            }
            _ => {}
        }
        (effect.point, effect.node) = (PointId(row.point), row.node);
        match effect.kind {
            "flood" | "reset" => {}
            _ if row.detail == FOLLOWED => {}
            _ if row.index == u32::MAX => effect.unknown = true,
            "clock-lie" => _ = self.lied.insert((row.node, row.index), at),
            _ => {
                self.open.insert((row.flow, row.index, effect.point), at);
                if self.open.len() > MOST_OPEN {
                    self.open.pop_first();
                }
            }
        }
    }

    /// What they did.
    pub fn report(self, plan: &Plan) -> Vec<EffectReport> {
        let Self { all, outside, .. } = self;
        let name = |flow: FlowId| plan.flows.get(flow.index()).map(|f| f.name.clone());
        let ms = |ns: Time| ns as f64 / 1e6;
        let delay = |(flow, during): (&FlowId, &Tally)| {
            let [p50_ns, p99_ns] = during.quantiles([0.5, 0.99]);
            let before = outside.get(flow).filter(|t| t.n().min(during.n()) >= LEAST);
            let before = before.map(|t| t.quantiles([0.5, 0.99]));
            let (added_p50_ns, added_p99_ns) = (before.map(|b| p50_ns - b[0]), before.map(|b| p99_ns - b[1]));
            let flow = name(*flow).unwrap_or_default();
            DelayReport { flow, n: during.n(), p50_ns, p99_ns, added_p50_ns, added_p99_ns }
        };
        let report = |e: &Effect| EffectReport {
            name: e.name.clone(),
            kind: e.kind,
            flow: e.flow.and_then(name),
            channel: e.channel().and_then(|c| plan.channels.get(c.index())).map(|c| c.name.clone()),
            component: (e.point != PointId::NONE).then(|| names::component(plan, e.point.owner())),
            node: (e.sent > 0 && e.to.len() == 1).then(|| names::node(plan, e.node)),
            from_s: e.from as f64 / 1e9,
            until_s: e.until as f64 / 1e9,
            sent: e.sent,
            to: e.to.iter().map(|(node, sent)| (names::node(plan, *node), *sent)).collect(),
            accepted: match e.kind {
                "link" => None,
                "replay" if e.unknown => Some(e.again),
                "tamper" if e.unknown => None,
                _ => Some(e.accepted),
            },
            hold_ms: e.states[0].map(ms),
            safe_stop_ms: e.states[1].map(ms),
            delays: e.during.iter().map(delay).collect(),
        };
        all.iter().map(report).collect()
    }
}

impl Effect {
    /// The channel whose datagrams are attacked.
    fn channel(&self) -> Option<ChannelId> {
        self.channels.iter().find(|(_, to)| *to == self.node).map(|(channel, _)| *channel)
    }
}

/// By how much an attack lies about the clock.
fn offset_ns(action: &Action) -> u64 {
    match action {
        Action::Attack(AttackPlan { what: Attack::ClockLie { offset_ns }, .. }) => offset_ns.unsigned_abs(),
        _ => 0,
    }
}

/// Whether a change only gives links back what they have in the plan: it ends an effect.
fn restores(plan: &Plan, change: &LinkChange) -> bool {
    change.links.iter().filter_map(|l| plan.network.links.get(l.index())).all(|link| {
        let loss = |p: f64| p == 0.0 && link.loss.is_none();
        change.up != Some(false)
            && change.jitter.is_none()
            && !change.has_limit()
            && change.rate_bps.is_none_or(|rate| Some(rate) == link.rate_bps)
            && change.delay_ns.is_none_or(|delay| delay == link.delay_ns)
            && change.duplicate.is_none_or(|p| p == link.duplicate)
            && change.loss.is_none_or(loss)
    })
}

/// The channels on a flow's path, each with the node behind it.
fn channels(plan: &Plan, flow: FlowId) -> Vec<(ChannelId, NodeId)> {
    let Some(flow) = plan.flows.get(flow.index()) else { return Vec::new() };
    let passes = flow.path.windows(2).filter_map(|w| Some((w[0].channel?, w[1].component)));
    passes.map(|(channel, to)| (channel, plan.components[to].node)).collect()
}

/// When a later event changes one of the same links.
fn changed_again(plan: &Plan, number: usize, change: &LinkChange) -> Time {
    let later = plan.events[number + 1..].iter().find(|e| match &e.action {
        Action::Link(other) => other.links.iter().any(|l| change.links.contains(l)),
        _ => false,
    });
    later.map_or(plan.duration_ns, |e| e.at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::time::MS;

    const FORGED: u32 = tcps_plan::attack::FIRST_FORGED;

    fn plan() -> Plan {
        let attack = |at: i64, what: serde_json::Value| {
            json!({"at_ns": at * MS, "name": "e", "action":
                {"kind": "attack", "link": 0, "duration_ns": 100 * MS, "what": what}})
        };
        let link = |at: i64, up: bool| json!({"at_ns": at * MS, "name": "l", "action": {"kind": "link", "links": [0], "up": up}});
        let flow = json!({"name": "k", "session": 0, "direction": "forward", "period_ns": MS, "codec": "f32",
            "source": {"kind": "generated", "bytes": 4}, "sink": {"kind": "count"}, "path": []});
        serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 2000 * MS, "sessions": ["a"], "components": [], "flows": [flow],
            "nodes": [{"name": "a"}, {"name": "b"}],
            "network": {"vertices": ["a", "b"], "links": [{"name": "l", "from": 0, "to": 1}]},
            "events": [
                attack(100, json!({"kind": "forge", "flow": 0, "period_ns": MS})),
                attack(300, json!({"kind": "replay", "flow": 0, "after_ns": MS, "share": 1.0})),
                attack(500, json!({"kind": "clock_lie", "offset_ns": 1})),
                attack(700, json!({"kind": "tamper", "flow": 0, "share": 1.0})),
                link(900, false), link(1000, true),
            ],
        }))
        .unwrap()
    }

    fn row(at_ms: i64, kind: Kind, index: u32) -> Record {
        Record { index, flow: FlowId(0), point: 2, ..Record::new(at_ms * MS, kind) }
    }

    fn attack(at_ms: i64, event: i64, index: u32) -> Record {
        Record { value: event, ..row(at_ms, Kind::Attack, index) }
    }

    #[test]
    fn what_enters_after_it_was_sent_was_accepted_and_nothing_else() {
        let plan = plan();
        let mut effects = Effects::new(&plan);
        effects.take(&attack(110, 0, FORGED));
        effects.take(&attack(111, 0, FORGED + 1));
        assert!(effects.sample(&row(115, Kind::Enter, FORGED)), "no sample of the flow");
        assert!(effects.sample(&row(116, Kind::Delivered, FORGED)), "counted once");
        assert!(!effects.sample(&row(310, Kind::Enter, 7)));
        effects.take(&attack(320, 1, 7));
        effects.take(&attack(321, 1, 8));
        assert!(!effects.sample(&row(325, Kind::Enter, 7)), "a genuine sample, twice");
        for at in [330, 331] {
            effects.sample(&row(at, Kind::Enter, 12)); // a copy that no attacker made
        }
        effects.take(&attack(710, 3, 9));
        effects.sample(&Record { point: 4, ..row(711, Kind::Enter, 9) });
        let found: Vec<_> = effects.report(&plan).iter().map(|e| (e.kind, e.sent, e.accepted)).collect();
        let expected = [
            ("forge", 2, Some(1)),
            ("replay", 2, Some(1)),
            ("clock-lie", 0, Some(0)),
            ("tamper", 1, Some(0)),
            ("link", 0, None),
        ];
        assert_eq!(found, expected, "the end of the cut is no effect");
    }

    #[test]
    fn where_rows_say_what_was_accepted_numbers_do_not() {
        let plan = plan();
        let mut effects = Effects::new(&plan);
        let sent = Record { detail: FOLLOWED, ..attack(710, 3, 9) };
        effects.take(&sent);
        effects.take(&Record { index: 10, ..sent });
        effects.sample(&row(712, Kind::Enter, 9)); // it was sent again
        effects.take(&Record { index: 10, detail: ACCEPTED, ..sent });
        let report = effects.report(&plan);
        assert_eq!((report[3].sent, report[3].accepted), (2, Some(1)));
    }

    #[test]
    fn replays_that_do_not_say_their_number_are_seen_by_what_enters_again() {
        let plan = plan();
        let mut effects = Effects::new(&plan);
        for (at, index) in [(305, 1), (306, 2)] {
            effects.sample(&row(at, Kind::Enter, index));
        }
        effects.take(&attack(320, 1, u32::MAX));
        effects.sample(&row(321, Kind::Enter, 3));
        effects.sample(&row(322, Kind::Enter, 2));
        effects.sample(&row(510, Kind::Enter, 3)); // late, when another attack has begun
        effects.take(&attack(710, 3, u32::MAX));
        let report = effects.report(&plan);
        assert_eq!((report[1].accepted, report[3].accepted), (Some(2), None));
    }

    #[test]
    fn a_lie_was_believed_where_its_number_or_an_exchange_within_the_attack_is() {
        let plan = plan();
        for (index, expected) in [(5, 1), (u32::MAX, 2)] {
            let mut effects = Effects::new(&plan);
            effects.take(&Record { node: NodeId(1), ..attack(510, 2, index) });
            let sync = |at, sequence, half_trip| Record {
                node: NodeId(1),
                size: half_trip * MS as u32,
                ..row(at, Kind::Sync, sequence)
            };
            effects.take(&sync(515, 4, 20));
            effects.take(&sync(516, 5, 5));
            effects.take(&sync(520, 6, 5));
            effects.take(&sync(601, 7, 5));
            assert_eq!(effects.report(&plan)[2].accepted, Some(expected), "{index}");
        }
    }

    #[test]
    fn a_change_that_gives_a_link_all_back_that_it_has_in_the_plan_restores_it() {
        let mut plan = plan();
        let link =
            json!({"name": "l", "from": 0, "to": 1, "rate_bps": 1e6, "delay_ns": 5, "duplicate": 0.25});
        plan.network.links[0] = serde_json::from_value(link).unwrap();
        let change = |mut what: serde_json::Value| {
            what["links"] = json!([0]);
            serde_json::from_value::<LinkChange>(what).unwrap()
        };
        let back = json!({"up": true, "rate_bps": 1e6, "delay_ns": 5, "loss": 0.0, "duplicate": 0.25});
        assert!(restores(&plan, &change(back.clone())));
        for (key, other) in [
            ("up", json!(false)),
            ("rate_bps", json!(2e6)),
            ("delay_ns", json!(6)),
            ("loss", json!(0.1)),
            ("duplicate", json!(0.5)),
            ("limit_packets", json!(9)),
            ("jitter", json!({"delay": {"kind": "constant", "span_ns": 5}})),
        ] {
            let mut what = back.clone();
            what[key] = other;
            assert!(!restores(&plan, &change(what)), "{key}");
        }
        plan.network.links[0].loss = Some(serde_json::from_value(json!({"kind": "independent"})).unwrap());
        assert!(!restores(&plan, &change(back)), "none in place of the link's own loss");
    }

    #[test]
    fn a_reset_was_accepted_where_the_connection_of_its_flow_was_lost_before_the_next_effect() {
        let mut plan = plan();
        let what = json!({"kind": "reset", "flow": 0, "fin": false, "period_ns": MS});
        let action = json!({"kind": "attack", "link": 0, "duration_ns": 10 * MS, "what": what});
        let event = json!({"at_ns": 100 * MS, "name": "r", "action": action});
        plan.events[0] = serde_json::from_value(event).unwrap();
        let component =
            |name: &str, node: u16| json!({"name": name, "kind": name, "session": 0, "node": node});
        plan.components =
            serde_json::from_value(json!([component("hand", 0), component("robot", 1)])).unwrap();
        let path = json!([{"component": 0, "channel": 4}, {"component": 1}]);
        plan.flows[0].path = serde_json::from_value(path).unwrap();
        let lost = |at_ms: i64| Record {
            point: 4,
            node: NodeId(1),
            detail: LOST,
            ..Record::new(at_ms * MS, Kind::Connection)
        };
        let accepted = |rows: &[Record]| {
            let mut effects = Effects::new(&plan);
            effects.take(&Record { node: NodeId(1), ..attack(105, 0, u32::MAX) });
            rows.iter().for_each(|row| effects.take(row));
            effects.report(&plan)[0].accepted
        };
        assert_eq!(accepted(&[lost(150), lost(299)]), Some(2));
        assert_eq!(accepted(&[lost(99), lost(300)]), Some(0), "before it, and since the next effect");
        assert_eq!(accepted(&[Record { detail: 1, ..lost(150) }]), Some(0), "it stands again");
        assert_eq!(accepted(&[Record { point: 3, ..lost(150) }]), Some(0), "another channel");
        assert_eq!(accepted(&[Record { node: NodeId(0), ..lost(150) }]), Some(0), "the other end");
    }

    #[test]
    fn delays_are_told_against_those_outside_and_states_from_the_beginning() {
        let plan = plan();
        let mut effects = Effects::new(&plan);
        for (at, delay) in [(50, 5), (150, 8), (1100, 5)] {
            effects.arrived(&Record { value: delay * MS, ..row(at, Kind::Delivered, 0) });
        }
        let state = |at, from: State, to: State| Record {
            size: from as u32,
            detail: to as u8,
            ..row(at, Kind::State, 0)
        };
        effects.take(&state(120, State::Normal, State::Hold));
        effects.take(&state(930, State::Hold, State::SafeStop));
        let report = effects.report(&plan);
        assert_eq!((report[0].hold_ms, report[0].safe_stop_ms), (Some(20.0), None));
        assert_eq!((report[4].from_s, report[4].until_s, report[4].safe_stop_ms), (0.9, 1.0, Some(30.0)));
        let [delay] = &report[0].delays[..] else { panic!("{report:?}") };
        assert_eq!((delay.n, delay.added_p50_ns), (1, None), "too few to tell");
    }

    #[test]
    fn what_an_effect_adds_is_the_difference_of_the_same_quantile() {
        let plan = plan();
        let mut effects = Effects::new(&plan);
        for k in 1..=100 {
            effects.arrived(&Record { value: k, ..row(50, Kind::Delivered, 0) });
            effects.arrived(&Record { value: 1000 + 2 * k, ..row(150, Kind::Delivered, 0) });
        }
        let report = effects.report(&plan);
        let [delay] = &report[0].delays[..] else { panic!("{report:?}") };
        assert_eq!((delay.p50_ns, delay.p99_ns), (1100.0, 1198.0));
        assert_eq!((delay.added_p50_ns, delay.added_p99_ns), (Some(1100.0 - 50.0), Some(1198.0 - 99.0)));
    }
}
