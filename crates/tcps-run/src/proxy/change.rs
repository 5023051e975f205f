//! Another network in the place of the present one, while packets are in flight.

use crate::assets::Disk;
use crate::{background::BusyNetwork, carrier::Carrier, emu::Layers};
use serde_json::Value;
use tcps_core::{
    ids::{LinkId, TrafficId},
    time::Time,
};
use tcps_plan::net::{LinkChange, NetworkSpec};
use tcps_plan::{Level, RunError};

/// The network of a proxy as it was last told.
pub(super) struct Changing {
    text: Value,
    names: Vec<String>,
    seed: u64,
    /// What is recorded of it.
    level: Option<Level>,
}

impl Changing {
    /// Its first network, for flows of these names.
    pub fn begin(
        spec: &NetworkSpec,
        text: Value,
        names: Vec<String>,
        seed: u64,
        level: Option<Level>,
    ) -> Result<(Self, Layers), RunError> {
        let changing = Self { text, names, seed, level };
        let network = changing.built(spec)?;
        Ok((changing, Layers::new(Carrier::Built(Box::new(network)))))
    }

    fn built(&self, spec: &NetworkSpec) -> Result<BusyNetwork, RunError> {
        BusyNetwork::recorded(spec, &self.names, self.seed, self.level.unwrap_or_default(), &mut Disk)
    }

    /// What the network is after an event.
    pub fn note(&mut self, text: Value) {
        self.text = text;
    }

    /// Another network from `now` on. Where only rates, delays and independent losses differ, the links of the present
    /// one change, and what waits in it sees the change.
    pub fn change(
        &mut self,
        layers: &mut Layers,
        now: Time,
        spec: &NetworkSpec,
        text: Value,
    ) -> Result<(), RunError> {
        if !steps(&self.text, &text).is_some_and(|steps| applied(layers, now, &steps)) {
            let mut network = self.built(spec)?;
            join(&mut network, spec, now);
            layers.push(Carrier::Built(Box::new(network)));
        }
        self.text = text;
        Ok(())
    }
}

/// Changes links of the present network, if it takes every change.
fn applied(layers: &mut Layers, now: Time, steps: &[(LinkId, LinkChange)]) -> bool {
    let Carrier::Built(network) = layers.present() else { return false };
    steps.iter().all(|(link, change)| network.network().check_link(*link, change).is_ok())
        && steps.iter().all(|(link, change)| network.change_link(now, *link, change).is_ok())
}

/// Takes a new network to `now`. Its background traffic begins there: what would have come before is left out.
fn join(network: &mut BusyNetwork, spec: &NetworkSpec, now: Time) {
    let begun = || TrafficId::each(&spec.traffic).filter(|(_, t)| t.start_ns < now);
    begun().for_each(|(i, _)| network.set_traffic(0, i, false));
    network.handle_timeout(now);
    let lasting = begun().filter(|(_, t)| t.stop_ns.is_none_or(|stop| now < stop));
    lasting.for_each(|(i, _)| network.set_traffic(now, i, true));
}

/// How links change from one network to another, if nothing else differs than rates, delays and independent losses.
fn steps(old: &Value, new: &Value) -> Option<Vec<(LinkId, LinkChange)>> {
    let (before, after) = (old.get("links")?.as_array()?, new.get("links")?.as_array()?);
    let bare = |network: &Value| {
        let mut network = network.clone();
        network.as_object_mut()?.remove("links");
        Some(network)
    };
    if before.len() != after.len() || bare(old) != bare(new) {
        return None;
    }
    let changes = LinkId::each(before).zip(after);
    changes.map(|((link, before), after)| Some((link, step(before, after)?))).collect()
}

/// The change of a link.
fn step(before: &Value, after: &Value) -> Option<LinkChange> {
    let rest = |link: &Value| {
        let mut link = link.as_object().cloned().unwrap_or_default();
        link.retain(|key, _| !["rate_bps", "delay_ns", "loss"].contains(&key.as_str()));
        link
    };
    if rest(before) != rest(after) {
        return None;
    }
    let number = |link: &Value, key: &str| link.get(key).and_then(Value::as_f64);
    let rate_bps = match (number(before, "rate_bps"), number(after, "rate_bps")) {
        (a, b) if a == b => None,
        (Some(_), Some(b)) => Some(b),
        _ => return None,
    };
    let (a, b) = (number(before, "delay_ns").unwrap_or(0.0), number(after, "delay_ns").unwrap_or(0.0));
    let loss = if before.get("loss") == after.get("loss") {
        None
    } else {
        independent(before)?;
        Some(independent(after)?)
    };
    Some(LinkChange { rate_bps, delay_ns: (a != b).then_some(b as Time), loss, ..LinkChange::default() })
}

/// The probability of a link's independent loss; nothing if its loss is of another kind.
fn independent(link: &Value) -> Option<f64> {
    match link.get("loss") {
        None => Some(0.0),
        Some(loss) if loss.get("kind").and_then(Value::as_str) == Some("random") => loss.get("p")?.as_f64(),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::{ids::VertexId, time::MS};
    use tcps_net::{NetEvent, Packet};

    fn text(delay_ms: i64, more: Value) -> Value {
        let mut link = json!({"name": "l", "from": 0, "to": 1, "delay_ns": delay_ms * MS});
        link.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"vertices": ["near", "far"], "links": [link]})
    }

    fn begun(text: &Value) -> (Changing, Layers) {
        let spec = serde_json::from_value(text.clone()).unwrap();
        Changing::begin(&spec, text.clone(), Vec::new(), 1, None).unwrap()
    }

    fn change((changing, layers): &mut (Changing, Layers), now: Time, text: &Value) {
        let spec = serde_json::from_value(text.clone()).unwrap();
        changing.change(layers, now, &spec, text.clone()).unwrap();
    }

    fn packet(payload: u32, now: Time) -> Packet {
        Packet {
            payload,
            class: 0,
            index: 0,
            dst: VertexId(1),
            dscp: 0,
            ecn: Default::default(),
            wire_bytes: 100,
            sent_ns: now,
        }
    }

    fn arrivals(layers: &mut Layers, until: Time) -> Vec<(u32, Time)> {
        let mut found = Vec::new();
        layers.advance(until, |e| {
            if let NetEvent::Arrived { at, packet, .. } = e {
                found.push((packet.payload, at));
            }
        });
        found
    }

    #[test]
    fn packets_under_way_finish_as_they_began_and_the_old_network_goes() {
        let mut begun = begun(&text(10, json!({})));
        begun.1.send(0, VertexId(0), packet(1, 0));
        // A queue makes it another link, not a change of this one.
        change(&mut begun, MS, &text(2, json!({"rate_bps": 1e9, "queue": {"limit_packets": 5}})));
        begun.1.send(MS, VertexId(0), packet(2, MS));
        assert_eq!(begun.1.depth(), 2);
        let found = arrivals(&mut begun.1, 20 * MS);
        assert_eq!(found, [(1, 10 * MS), (2, 3 * MS + 800)]);
        assert_eq!(begun.1.depth(), 1);
        assert_eq!(begun.1.accounts().0[0].packets, 2, "one before, one after");
    }

    #[test]
    fn where_only_numbers_differ_the_link_changes_and_what_waits_sees_it() {
        let slow = json!({"rate_bps": 8e5});
        let mut begun = begun(&text(0, slow));
        (0..3).for_each(|i| begun.1.send(0, VertexId(0), packet(i, 0)));
        // 100 B take 1 ms; from half a millisecond on they take 0.1 ms.
        change(&mut begun, MS / 2, &text(0, json!({"rate_bps": 8e6})));
        assert_eq!(begun.1.depth(), 1);
        assert_eq!(arrivals(&mut begun.1, 20 * MS), [(0, MS), (1, MS + MS / 10), (2, MS + MS / 5)]);
    }

    #[test]
    fn background_traffic_of_a_new_network_begins_with_it() {
        let traffic = json!([{"name": "t", "from": 0, "to": 1, "model": {"kind": "cbr", "rate_bps": 8e5, "packet_bytes": 100}}]);
        let mut begun = begun(&text(0, json!({})));
        let mut busy = text(0, json!({"rate_bps": 8e6}));
        busy["traffic"] = traffic;
        change(&mut begun, 1000 * MS, &busy);
        arrivals(&mut begun.1, 1010 * MS);
        // 100 B every millisecond, for 10 ms.
        let packets = begun.1.accounts().1[0].packets;
        assert!((9..=11).contains(&packets), "{packets}");
    }

    #[test]
    fn users_load_over_quic_where_the_text_says_so() {
        let link = |name: &str, from: u16| json!({"name": name, "from": from, "to": 1 - from, "delay_ns": MS, "rate_bps": 8e6});
        let counted = |transport: &str| {
            let users = json!({"kind": "users", "users": 1, "transport": transport, "congestion": "cubic", "mtu_bytes": 1500,
                               "buffer_bytes": 65_536});
            let text = json!({"vertices": ["near", "far"], "links": [link("there", 0), link("back", 1)],
                              "traffic": [{"name": "t", "from": 0, "to": 1, "model": users}]});
            let (spec, _) = crate::proxy::network(&text, 1).unwrap();
            let (_, mut layers) = Changing::begin(&spec, text, Vec::new(), 1, None).unwrap();
            arrivals(&mut layers, 1000 * MS);
            let stats = layers.accounts().1.remove(0);
            (stats.packets, stats.bytes)
        };
        let (over_tcp, over_quic) = (counted("tcp"), counted("quic"));
        assert!(over_quic != over_tcp && over_quic.1 > 500_000, "{over_tcp:?} {over_quic:?}");
    }

    #[test]
    fn a_loss_of_another_kind_is_another_network() {
        let burst = json!({"loss": {"kind": "gilbert-elliott", "p": 0.1, "r": 0.5, "loss_bad": 1.0}});
        assert!(steps(&text(1, json!({})), &text(1, burst)).is_none());
        let random = json!({"loss": {"kind": "random", "p": 0.1}});
        let found = steps(&text(1, json!({})), &text(2, random)).unwrap();
        let change = &found[0].1;
        assert_eq!((change.delay_ns, change.loss, change.rate_bps), (Some(2 * MS), Some(0.1), None));
    }
}
