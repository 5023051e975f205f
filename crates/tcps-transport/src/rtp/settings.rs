//! Parameters of the `rtp` transport.

use super::{congestion::Limits, repair::KEPT, timing::Profile};
use crate::{
    congestion::gcc,
    params::{Params, TransportError},
};
use tcps_core::{
    rate::RateController,
    time::{Time, MS, SECOND},
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

impl Settings {
    /// Reads and checks them.
    pub(crate) fn from_params(params: &Params<'_>) -> Result<Self, TransportError> {
        params.allow(&[
            "mtu_bytes",
            "overhead_bytes",
            "identity",
            "mode",
            "motion_every",
            "redundancy",
            "distance",
            "columns",
            "rows",
            "profile",
            "report_ns",
            "bandwidth_bps",
            "feedback_ns",
            "congestion",
            "least_bps",
            "target_ns",
            "extended",
            "nack",
            "reorder_ns",
        ])?;
        let stop_and_wait = params.choice("mode", &["stream", "stop_and_wait"])? == Some("stop_and_wait");
        let redundancy = redundancy(params)?;
        if stop_and_wait && matches!(redundancy, Redundancy::Ulpfec { .. } | Redundancy::Flexfec { .. }) {
            return Err(params.refuse("redundancy", "none or rfc2198 with mode stop_and_wait"));
        }
        Ok(Self {
            mtu_bytes: params.integer("mtu_bytes", 300..=65_507)?.unwrap_or(1200) as usize,
            overhead_bytes: params.integer("overhead_bytes", 0..=65_535)?,
            identity: params.boolean("identity")?.unwrap_or(true),
            stop_and_wait,
            motion_every: params.integer("motion_every", 1..=8_000)?,
            redundancy,
            profile: profile(params)?,
            bandwidth_bps: bandwidth_bps(params)?,
            feedback_ns: params.span_ns("feedback_ns", MS..=10 * SECOND)?,
            limits: limits(params)?,
            extended: params.boolean("extended")?.unwrap_or(false),
            nack: nack(params)?,
        })
    }
}

fn redundancy(params: &Params<'_>) -> Result<Redundancy, TransportError> {
    let kind = params.choice("redundancy", &["none", "rfc2198", "ulpfec", "flexfec"])?;
    let of = |key, range, kinds: &[&str]| match params.integer(key, range)? {
        Some(_) if !kinds.contains(&kind.unwrap_or("none")) => {
            Err(params.refuse(key, &format!("with redundancy = {}", kinds.join(" or "))))
        }
        number => Ok(number),
    };
    let distance = of("distance", 1..=15, &["rfc2198"])?.unwrap_or(1);
    let columns = of("columns", 1..=48, &["ulpfec", "flexfec"])?.unwrap_or(4);
    let rows = of("rows", 1..=48, &["flexfec"])?.unwrap_or(1);
    if (columns * rows) as usize > KEPT {
        return Err(params.refuse("columns", "at most 256 packets in columns times rows"));
    }
    Ok(match kind {
        Some("rfc2198") => Redundancy::Red { distance: distance as usize },
        Some("ulpfec") => Redundancy::Ulpfec { columns: columns as u16 },
        Some("flexfec") => Redundancy::Flexfec { columns: columns as u8, rows: rows as u8 },
        _ => Redundancy::None,
    })
}

// [RFC 4588] retransmission on request
fn nack(params: &Params<'_>) -> Result<Option<Nack>, TransportError> {
    let reorder_ns = params.span_ns("reorder_ns", 0..=SECOND)?;
    let tries = params.integer("nack", 0..=10)?.filter(|n| *n > 0);
    match (tries, reorder_ns) {
        (None, Some(_)) => Err(params.refuse("reorder_ns", "with nack, which asks for what is missing")),
        (tries, _) => Ok(tries.map(|tries| Nack { tries, reorder_ns: reorder_ns.unwrap_or(MS) })),
    }
}

fn bandwidth_bps(params: &Params<'_>) -> Result<u32, TransportError> {
    Ok(params.integer("bandwidth_bps", 8_000..=4_000_000_000)?.unwrap_or(1_000_000))
}

// [RFC 8888 §3.1] [draft-ietf-rmcat-gcc-02]
fn limits(params: &Params<'_>) -> Result<Option<Limits>, TransportError> {
    let most_bps = bandwidth_bps(params)?;
    let least_bps = params.integer("least_bps", 1_000..=most_bps)?;
    let target_ns = params.span_ns("target_ns", MS..=SECOND)?;
    let feedback_ns = params.span_ns("feedback_ns", MS..=10 * SECOND)?;
    let rule = rule(params)?;
    if target_ns.is_some() && rule != Rule::Gcc {
        return Err(params.refuse("target_ns", "with congestion = gcc"));
    }
    match (rule, feedback_ns) {
        (Rule::None, _) if least_bps.is_some() => Err(params.refuse("least_bps", "with congestion = gcc")),
        (Rule::None, _) => Ok(None),
        (_, Some(feedback_ns)) => {
            let least_bps = least_bps.unwrap_or(100_000.min(most_bps));
            Ok(Some(Limits { range_bps: [least_bps.into(), most_bps.into()], feedback_ns }))
        }
        (Rule::Gcc, None) => {
            Err(params.refuse("congestion", "gcc with feedback, which tells of each packet"))
        }
        (Rule::Own, None) => Err(params
            .refuse("feedback_ns", "a time, with congestion, which goes by what is told of each packet")),
    }
}

/// What derives a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    None,
    Gcc,
    Own,
}

fn rule(params: &Params<'_>) -> Result<Rule, TransportError> {
    if params.is_led() {
        return Ok(Rule::Own);
    }
    let is_known = |text: &str| ["none", "gcc"].contains(&text);
    let name = params.text("congestion", is_known, "none, gcc, or a class such as \"./mine.py:Mine\"")?;
    Ok(if name == Some("gcc") { Rule::Gcc } else { Rule::None })
}

/// What derives a rate from feedback on each packet, if anything does.
pub(crate) fn controller(params: &Params<'_>) -> Result<Option<Box<dyn RateController>>, TransportError> {
    Ok(match rule(params)? {
        Rule::None => None,
        Rule::Gcc => Some(gcc::flows(params.span_ns("target_ns", MS..=SECOND)?)),
        Rule::Own => params.controller(),
    })
}

fn profile(params: &Params<'_>) -> Result<Profile, TransportError> {
    let report_ns = params.span_ns("report_ns", 10 * MS..=60 * SECOND)?;
    match (params.choice("profile", &["avp", "avp_reduced", "avpf"])?, report_ns) {
        (Some("avp" | "avp_reduced"), Some(_)) => Err(params.refuse("report_ns", "with profile = avpf")),
        (Some("avp"), None) => Ok(Profile::Avp { reduced: false }),
        (Some("avp_reduced"), None) => Ok(Profile::Avp { reduced: true }),
        (_, report_ns) => Ok(Profile::Avpf { report_ns: report_ns.unwrap_or(500 * MS) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

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
