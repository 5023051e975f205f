//! Parsers: what is accepted comes out again as the same bytes, or has all its parts inside them.

use tcps_wire::{
    bundle as bundle_format, clock as clock_format, echo as echo_format, format, header as header_format,
    ip as ip_format, reply, stream as stream_format, Format,
};

/// The sample header.
pub fn header(data: &[u8]) {
    let Ok(packet) = header_format::Packet::new_checked(data) else { return };
    let (payload, trailer) = (packet.payload().len(), packet.trailer().len());
    assert_eq!(payload + trailer, data.len() - header_format::HEADER_BYTES);
    let Ok(repr) = header_format::Repr::parse(&packet) else { return };
    assert_eq!(format(data), Some(Format::Sample));
    assert_eq!((payload, trailer > 0), (repr.payload_bytes(), repr.has_echo));
    assert!(repr.offset() + payload <= repr.length as usize);
    let mut out = Vec::new();
    repr.emit(&mut out);
    assert_eq!(out, data[..header_format::HEADER_BYTES]);
}

/// The echo trailer and the reply.
pub fn echo(data: &[u8]) {
    if let Ok(repr) = reply::Repr::parse(data) {
        let mut out = Vec::new();
        repr.emit(&mut out);
        assert_eq!((out.as_slice(), format(data)), (data, Some(Format::Reply)));
    }
    let Ok(packet) = echo_format::Packet::new_checked(data) else { return };
    let mut out = Vec::new();
    echo_format::emit_count(packet.count(), &mut out);
    for i in 0..packet.count() {
        let Ok(tag) = echo_format::Repr::parse(&packet, i.into()) else { return };
        tag.emit(&mut out);
    }
    assert_eq!(out, data);
    assert!(echo_format::Repr::parse(&packet, packet.count().into()).is_err());
}

/// The clock exchange.
pub fn clock(data: &[u8]) {
    let Ok(repr) = clock_format::Repr::parse(data) else { return };
    let mut out = Vec::new();
    repr.emit(&mut out);
    assert_eq!((out.as_slice(), format(data)), (data, Some(Format::Clock)));
}

/// IP packets: parts lie inside the packet.
pub fn ip(data: &[u8]) {
    let Ok(packet) = ip_format::Packet::new_checked(data) else { return };
    assert_eq!(packet.source().is_ipv4(), packet.destination().is_ipv4());
    assert!(packet.dscp() < 64);
    assert!(packet.udp().is_none_or(|udp| udp.payload.end <= data.len()));
}

/// Numbered datagrams.
pub fn stream(data: &[u8]) {
    let Ok(packet) = stream_format::Packet::new_checked(data) else { return };
    let Ok(repr) = stream_format::Repr::parse(&packet) else { return };
    let mut out = Vec::new();
    repr.emit(&mut out);
    match repr {
        stream_format::Repr::Data { .. } => out.extend_from_slice(packet.body()),
        stream_format::Repr::Request { count } => {
            (0..count.into()).for_each(|i| out.extend_from_slice(&packet.requested(i).to_be_bytes()));
        }
        _ => {}
    }
    assert_eq!(out, data);
}

/// Datagrams of runs.
pub fn bundle(data: &[u8]) {
    let Ok(runs) = bundle_format::Runs::new_checked(data) else { return };
    let mut out = data[..bundle_format::PREFIX_BYTES].to_vec();
    for run in runs {
        let Ok(run) = run else { return };
        let samples: Vec<_> = (0..run.repr.count).map(|i| run.sample(i)).collect();
        // Moments at the end of time are all the same, and a tag may name another sample than the first.
        if run.repr.echo.is_some() || samples.iter().any(|s| s.0 == i64::MAX) {
            return;
        }
        run.repr.emit(samples.iter().skip(1).map(|s| s.0), &mut out);
        samples.iter().for_each(|s| out.extend_from_slice(s.1));
    }
    assert_eq!(out, data);
}
