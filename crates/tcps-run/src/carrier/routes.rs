//! Paths of the built-in network, for networks that other programs build.

use serde_json::{json, Value};
use tcps_core::ids::{LinkId, VertexId};
use tcps_net::Network;
use tcps_plan::{
    net::{QueueSpec, TrafficModel, TrafficSpec},
    Plan, RunError,
};

/// The numbers of the links from one vertex to another, for each of these pairs; none where no way leads there.
pub fn ways(plan: &Plan, pairs: &[(VertexId, VertexId)]) -> Result<Vec<Option<Vec<LinkId>>>, RunError> {
    let network = network(plan)?;
    Ok(pairs.iter().map(|(from, to)| network.route(*from, *to)).collect())
}

/// The number of the next link from every vertex towards every vertex, as the built-in network chooses it; 65535 where none
/// leads there.
pub fn routes(plan: &Plan) -> Result<Value, RunError> {
    let network = network(plan)?;
    let vertices = || VertexId::each(&plan.network.vertices).map(|(v, _)| v);
    let first = |v, d| network.route(v, d).and_then(|path| path.first().copied()).unwrap_or(LinkId::NONE);
    let table: Vec<Vec<LinkId>> = vertices().map(|v| vertices().map(|d| first(v, d)).collect()).collect();
    Ok(json!(table))
}

fn network(plan: &Plan) -> Result<Network, RunError> {
    let mut spec = plan.network.clone();
    for link in &mut spec.links {
        link.radio = None;
        link.queue = QueueSpec::default();
    }
    let own = |t: &TrafficSpec| matches!(&t.model, TrafficModel::Source(source) if source.is_code());
    spec.traffic.retain(|t| !own(t)); // its rate is not known
    let names: Vec<String> = plan.flows.iter().map(|f| f.name.clone()).collect();
    Network::new(&spec, &names, plan.seed).map_err(RunError::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_those_of_the_built_in_network() {
        let plan: Plan = serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a"], "components": [], "flows": [],
            "nodes": [{"name": "a"}, {"name": "b"}],
            "network": {"vertices": ["a", "b", "r"], "links": [
                {"name": "l1", "from": 0, "to": 2, "rate_bps": 8e6}, {"name": "l2", "from": 2, "to": 1},
            ]},
        }))
        .unwrap();
        assert_eq!(
            routes(&plan).unwrap(),
            json!([
                [LinkId::NONE, 0, 0],
                [LinkId::NONE, LinkId::NONE, LinkId::NONE],
                [LinkId::NONE, 1, LinkId::NONE]
            ])
        );
        let [a, b] = [0, 1].map(VertexId);
        let found = ways(&plan, &[(a, b), (b, a)]).unwrap();
        assert_eq!(found, [Some(vec![LinkId(0), LinkId(1)]), None]);
    }
}
