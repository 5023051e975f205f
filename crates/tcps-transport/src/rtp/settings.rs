//! Parameters of the `rtp` transport.

use super::{congestion::Limits, repair::KEPT, timing::Profile};
use crate::{
    congestion::{self, Pacing},
    params::{Mtu, Overhead, Params, TransportError},
};
use tcps_core::{
    param::{Param, Unit},
    params,
    rate::RateController,
    time::{Time, MS},
};

/// Protection against loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redundancy {
    /// None.
    None,
    /// Each packet repeats the sample `distance` before (RFC 2198).
    Red {
        /// Samples back.
        distance: usize,
    },
    /// A parity packet after every `columns` packets, in the same stream (RFC 5109).
    Ulpfec {
        /// Packets that one protects.
        columns: u16,
    },
    /// Parity of rows of `columns` packets and, if `rows > 1`, of the columns of `rows` rows, in a stream of its
    /// own (RFC 8627).
    Flexfec {
        /// Packets in a row.
        columns: u8,
        /// Rows; 1 for row parity alone.
        rows: u8,
    },
}

/// Parameters of the `rtp` transport.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) mtu_bytes: usize,
    pub(crate) overhead_bytes: Option<u32>,
    pub(crate) identity: bool,
    pub(crate) stop_and_wait: bool,
    pub(crate) motion_every: Option<u32>,
    pub(crate) redundancy: Redundancy,
    pub(crate) profile: Profile,
    pub(crate) bandwidth_bps: u32,
    pub(crate) feedback_ns: Option<Time>,
    /// Of a rate that is derived from feedback.
    pub(crate) limits: Option<Limits>,
    pub(crate) extended: bool,
    pub(crate) nack: Option<Nack>,
}

/// Asking for what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nack {
    /// How often a packet is asked for at most.
    pub(crate) tries: u32,
    /// How long a gap may come from reordering.
    pub(crate) reorder_ns: Time,
}

params! {
    /// Of RTP and RTCP.
    pub(crate) struct Given {
        identity: bool = Flag, "true", ANY, "whether a header extension carries number and origin of a sample";
        mode: String = Choice(&["stream", "stop_and_wait"]), "stream", ANY, "whether each packet waits for the echo of the previous one";
        motion_every: Option<u32> = Count, ABSENT, 1.0..=8000.0, "for multimodal samples: every n-th packet has the first 12 B";
        redundancy: String = Choice(&["none", "rfc2198", "ulpfec", "flexfec"]), "none", ANY, "older payloads in newer packets, or XOR parity";
        distance: Option<u32> = Count, ABSENT, 1.0..=15.0, "with `rfc2198`: age of the older payload, in samples; default `1` with `rfc2198`";
        columns: Option<u32> = Count, ABSENT, 1.0..=48.0, "with `ulpfec` or `flexfec`: number of packets after which parity is sent; default `4` with parity";
        rows: Option<u32> = Count, ABSENT, 1.0..=48.0, "with `flexfec`: number of rows; more than one adds parity of columns; default `1` with `flexfec`";
        profile: String = Choice(&["avpf", "avp", "avp_reduced"]), "avpf", ANY, "when reports are sent";
        report_ns: Option<Time> = Ns, ABSENT, 10e6..=60e9, "with `avpf`: mean time between reports; default `\"500 ms\"` with `avpf`";
        bandwidth_bps: f64 = Bps, "1 Mbit/s", 8e3..=4e9, "bandwidth of the session; reports take at most 5 %";
        feedback_ns: Option<Time> = Ns, ABSENT, 1e6..=10e9, "time between feedback on each packet (RFC 8888)";
        least_bps: Option<f64> = Bps, ABSENT, 1e3..=4e9, "with `congestion`: the lowest rate; default `\"100 kbit/s\"` with `congestion`";
        extended: bool = Flag, "false", ANY, "whether reports carry reference times and summaries (RFC 3611)";
        nack: u32 = Count, "0", 0.0..=10.0, "most requests for a missing packet";
        reorder_ns: Option<Time> = Ns, ABSENT, 0.0..=1e9, "with `nack`: how long a gap may be due to reordering; default `\"1 ms\"` with `nack`";
    }
}

/// What makes a rate of feedback: no `Given`, since it may be code.
pub(crate) const CONGESTION: &[Param] = &[Param {
    key: "congestion",
    unit: Unit::Text,
    min: f64::NEG_INFINITY,
    max: f64::INFINITY,
    default: "none",
    doc: "with feedback: none, a rate controller by name, or a class in Python with params beside it",
}];

impl Settings {
    /// Reads and checks them.
    pub(crate) fn from_params(params: &Params<'_>) -> Result<Self, TransportError> {
        let given: Given = params.read()?;
        let stop_and_wait = given.mode == "stop_and_wait";
        let redundancy = redundancy(params, &given)?;
        if stop_and_wait && matches!(redundancy, Redundancy::Ulpfec { .. } | Redundancy::Flexfec { .. }) {
            return Err(params.refuse("redundancy", "none or rfc2198 with mode stop_and_wait"));
        }
        Ok(Self {
            mtu_bytes: params.read::<Mtu>()?.mtu_bytes as usize,
            overhead_bytes: params.read::<Overhead>()?.overhead_bytes,
            identity: given.identity,
            stop_and_wait,
            motion_every: given.motion_every,
            redundancy,
            profile: profile(params, &given)?,
            bandwidth_bps: given.bandwidth_bps as u32,
            feedback_ns: given.feedback_ns,
            limits: limits(params, &given)?,
            extended: given.extended,
            nack: nack(params, &given)?,
        })
    }
}

fn redundancy(params: &Params<'_>, given: &Given) -> Result<Redundancy, TransportError> {
    let kind = given.redundancy.as_str();
    let of = |key, number: Option<u32>, kinds: &[&str]| match number {
        Some(_) if !kinds.contains(&kind) => {
            Err(params.refuse(key, &format!("with redundancy = {}", kinds.join(" or "))))
        }
        number => Ok(number),
    };
    let distance = of("distance", given.distance, &["rfc2198"])?.unwrap_or(1);
    let columns = of("columns", given.columns, &["ulpfec", "flexfec"])?.unwrap_or(4);
    let rows = of("rows", given.rows, &["flexfec"])?.unwrap_or(1);
    if (columns * rows) as usize > KEPT {
        return Err(params.refuse("columns", "at most 256 packets in columns times rows"));
    }
    Ok(match kind {
        "rfc2198" => Redundancy::Red { distance: distance as usize },
        "ulpfec" => Redundancy::Ulpfec { columns: columns as u16 },
        "flexfec" => Redundancy::Flexfec { columns: columns as u8, rows: rows as u8 },
        _ => Redundancy::None,
    })
}

// [RFC 4588] retransmission on request
fn nack(params: &Params<'_>, given: &Given) -> Result<Option<Nack>, TransportError> {
    match (Some(given.nack).filter(|n| *n > 0), given.reorder_ns) {
        (None, Some(_)) => Err(params.refuse("reorder_ns", "with nack, which asks for what is missing")),
        (tries, _) => Ok(tries.map(|tries| Nack { tries, reorder_ns: given.reorder_ns.unwrap_or(MS) })),
    }
}

// [RFC 8888 §3.1] [draft-ietf-rmcat-gcc-02]
fn limits(params: &Params<'_>, given: &Given) -> Result<Option<Limits>, TransportError> {
    let Given { bandwidth_bps: most_bps, least_bps, feedback_ns, .. } = *given;
    if least_bps.is_some_and(|least_bps| least_bps > most_bps) {
        return Err(params.refuse("least_bps", "a rate up to the bandwidth"));
    }
    let rule = rule(params)?;
    for (entry, pacing) in congestion::pacing().filter(|(entry, _)| !rule.is(entry.name)) {
        if let Some(param) = pacing.params.iter().find(|p| params.has(p.key)) {
            return Err(params.refuse(param.key, &format!("with congestion = {}", entry.name)));
        }
    }
    match (rule, feedback_ns) {
        (Rule::None, _) if least_bps.is_some() => {
            Err(params.refuse("least_bps", &format!("with congestion = {}", rules(" or "))))
        }
        (Rule::None, _) => Ok(None),
        (_, Some(feedback_ns)) => {
            let least_bps = least_bps.unwrap_or(100e3_f64.min(most_bps));
            Ok(Some(Limits { range_bps: [least_bps, most_bps], feedback_ns }))
        }
        (Rule::BuiltIn(name, _), None) => {
            let allowed = format!("{name} with feedback, which reports each packet");
            Err(params.refuse("congestion", &allowed))
        }
        (Rule::Own, None) => {
            Err(params.refuse("feedback_ns", "a time, because congestion needs feedback on each packet"))
        }
    }
}

/// What derives a rate.
#[derive(Debug, Clone, Copy)]
enum Rule {
    None,
    BuiltIn(&'static str, Pacing),
    Own,
}

impl Rule {
    fn is(&self, name: &str) -> bool {
        matches!(self, Self::BuiltIn(own, _) if *own == name)
    }
}

/// The names of the built-in ones.
fn rules(between: &str) -> String {
    congestion::pacing().map(|(entry, _)| entry.name).collect::<Vec<_>>().join(between)
}

fn rule(params: &Params<'_>) -> Result<Rule, TransportError> {
    if params.is_led() {
        return Ok(Rule::Own);
    }
    let Some(name) = params.text("congestion").filter(|name| *name != "none") else { return Ok(Rule::None) };
    match congestion::pacing().find(|(entry, _)| entry.name == name) {
        Some((entry, pacing)) => Ok(Rule::BuiltIn(entry.name, pacing)),
        None => {
            let allowed = format!("none, {}, or a class such as \"./mine.py:Mine\"", rules(", "));
            Err(params.refuse("congestion", &allowed))
        }
    }
}

/// What derives a rate from feedback on each packet, if anything does.
pub(crate) fn controller(params: &Params<'_>) -> Result<Option<Box<dyn RateController>>, TransportError> {
    match rule(params)? {
        Rule::None => Ok(None),
        Rule::BuiltIn(_, pacing) => (pacing.make)(params).map(Some),
        Rule::Own => Ok(params.controller()),
    }
}

fn profile(params: &Params<'_>, given: &Given) -> Result<Profile, TransportError> {
    match (given.profile.as_str(), given.report_ns) {
        ("avp" | "avp_reduced", Some(_)) => Err(params.refuse("report_ns", "with profile = avpf")),
        ("avp", None) => Ok(Profile::Avp { reduced: false }),
        ("avp_reduced", None) => Ok(Profile::Avp { reduced: true }),
        (_, report_ns) => Ok(Profile::Avpf { report_ns: report_ns.unwrap_or(500 * MS) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};
    use tcps_core::time::SECOND;

    fn read(params: &Value) -> Result<Settings, String> {
        Settings::from_params(&Params::new("rtp", params)).map_err(|e| e.to_string())
    }

    /// A key that something else would leave without effect is refused, and says beside what it has one.
    #[test]
    fn what_would_do_nothing_is_refused() {
        let parity = "with redundancy = ulpfec or flexfec";
        let table = [
            (json!({"distance": 2}), "distance", "with redundancy = rfc2198"),
            (json!({"distance": 2, "redundancy": "none"}), "distance", "with redundancy = rfc2198"),
            (json!({"distance": 2, "redundancy": "flexfec"}), "distance", "with redundancy = rfc2198"),
            (json!({"columns": 3}), "columns", parity),
            (json!({"columns": 3, "redundancy": "rfc2198"}), "columns", parity),
            (json!({"rows": 3, "redundancy": "none"}), "rows", "with redundancy = flexfec"),
            (json!({"rows": 3, "redundancy": "ulpfec"}), "rows", "with redundancy = flexfec"),
            (json!({"report_ns": SECOND, "profile": "avp"}), "report_ns", "with profile = avpf"),
            (json!({"report_ns": SECOND, "profile": "avp_reduced"}), "report_ns", "with profile = avpf"),
            (json!({"reorder_ns": MS}), "reorder_ns", "with nack, which asks for what is missing"),
            (json!({"least_bps": 9_000}), "least_bps", "with congestion = gcc"),
            (json!({"target_ns": MS}), "target_ns", "with congestion = gcc"),
        ];
        for (params, key, allowed) in table {
            let found = &params[key];
            let says = format!("transport rtp: {key} is {found}; allowed: {allowed}");
            assert_eq!(read(&params).err(), Some(says), "{params}");
        }
    }

    #[test]
    fn what_has_an_effect_is_taken() {
        let redundancy = |params: Value| read(&params).unwrap().redundancy;
        let red = json!({"redundancy": "rfc2198", "distance": 2});
        assert_eq!(redundancy(red), Redundancy::Red { distance: 2 });
        let ulpfec = json!({"redundancy": "ulpfec", "columns": 3});
        assert_eq!(redundancy(ulpfec), Redundancy::Ulpfec { columns: 3 });
        let flexfec = json!({"redundancy": "flexfec", "columns": 3, "rows": 2});
        assert_eq!(redundancy(flexfec), Redundancy::Flexfec { columns: 3, rows: 2 });
        for params in [json!({"report_ns": SECOND}), json!({"report_ns": SECOND, "profile": "avpf"})] {
            assert_eq!(read(&params).unwrap().profile, Profile::Avpf { report_ns: SECOND });
        }
    }
}
