//! A capture of our own writing, read by Wireshark's `tshark` through our dissector.

use std::{
    fs,
    io::Write,
    net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6},
    path::{Path as File, PathBuf},
    process::Command,
};
use tcps_core::{
    ids::{FlowId, NodeId},
    rate::Report,
    sample::{Echo, EchoReply, PointId},
};
use tcps_wire::{
    clock, echo, header,
    pcapng::{interface, packet, section_header, Path, Seen},
    reply, report,
    telehaptic::{self, trailer},
};

fn v4(port: u16) -> Path {
    let source = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), port);
    Path::V4 { source, target: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), port) }
}

fn v6(port: u16) -> Path {
    let at = |last| SocketAddrV6::new(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last), port, 0, 0);
    Path::V6 { source: at(1), target: at(2) }
}

fn sample(fragment: u16, echoes: &[echo::Repr]) -> Vec<u8> {
    let has_echo = !echoes.is_empty();
    let repr = header::Repr {
        flow: FlowId(2),
        index: 70_000,
        origin_ns: -5,
        length: 11,
        fragment,
        fragments: 3,
        has_echo,
    };
    let mut out = Vec::new();
    repr.emit(&mut out);
    out.extend_from_slice(&b"abcdefghijk"[repr.offset()..][..repr.payload_bytes()]);
    if has_echo {
        echo::emit_count(echoes.len() as u8, &mut out);
        echoes.iter().for_each(|e| e.emit(&mut out));
    }
    out
}

fn tag(sample: u8, sequence: u32) -> echo::Repr {
    echo::Repr {
        sample,
        echo: Echo { target: PointId(0x8007), sequence, reply_to: NodeId(3), injected_ns: 1_000_000_000 },
    }
}

fn reply_datagram() -> Vec<u8> {
    let mut out = Vec::new();
    let (point, flow) = (PointId(10), FlowId(2));
    reply::Repr(EchoReply { point, flow, sequence: 9, injected_ns: -1, reached_ns: 77 }).emit(&mut out);
    out
}

fn clock_datagram() -> Vec<u8> {
    let mut out = Vec::new();
    clock::Repr::Response { sequence: 4, t1_ns: -100, t2_ns: 200, t3_ns: 300 }.emit(&mut out);
    out
}

fn telehaptic_datagram() -> Vec<u8> {
    let sub = |frame, bytes, part| Some(telehaptic::SubHeader { frame, bytes, part });
    let repr = telehaptic::Repr {
        fragments: 2,
        repeated: true,
        delay_us: Some(29_535),
        timestamp_ms: 65_538,
        audio: sub(256, 3, 2),
        video: sub(7, 4, 0),
        has_trailer: true,
    };
    let mut out = Vec::new();
    repr.emit(&mut out);
    out.extend_from_slice(b"hahbAAAVVVV");
    let position = trailer::Position { sample: 0, index: 65_538, origin_ns: -2 };
    let start = trailer::FrameStart { video: true, at: 0, index: 7, length: 2000, origin_ns: 9 };
    trailer::emit(&[tag(1, 8)], &[position], &[start], &mut out);
    out
}

fn report_datagram() -> Vec<u8> {
    let mut out = Vec::new();
    let report = Report { mean_delay_ns: 29_541_000, loss: 0.25, jitter_ns: 12_000 };
    report::Repr(report).emit(&mut out);
    out
}

/// These fields of every packet, as tshark reads them; `None`, said aloud, where there is no tshark.
fn tshark(name: &str, packets: &[(Path, Vec<u8>)], fields: &str) -> Option<Vec<String>> {
    let mut out = Vec::new();
    section_header(&mut out, "tcpsbed");
    interface(&mut out, "l1.forward");
    for (i, (path, datagram)) in packets.iter().enumerate() {
        packet(&mut out, 0, 1_500_000_000 + i as i64, path, 46 << 2, datagram, Seen::Somewhere).unwrap();
    }
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, out).unwrap();
    let script = File::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tcpsbed/data/tcpsbed.lua");
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&file).arg("-X").arg(format!("lua_script:{}", script.display()));
    command.args(["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]);
    command.args(["-T", "fields", "-E", "separator=|"]);
    command.args(fields.split_whitespace().flat_map(|f| ["-e", f]));
    let Ok(run) = command.output() else {
        // Not `eprintln!`, which the harness hides when the test passes.
        std::io::stderr().write_all(format!("SKIPPED {name}: no tshark\n").as_bytes()).unwrap();
        return None;
    };
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && !errors.contains("Lua"), "{errors}");
    Some(String::from_utf8_lossy(&run.stdout).lines().map(str::to_string).collect())
}

#[test]
fn frames_and_checksums_are_good_and_times_are_to_the_nanosecond() {
    let packets = [(v4(47_000), sample(0, &[])), (v6(47_999), sample(1, &[]))];
    let fields = "frame.time_epoch frame.interface_name ip.checksum.status udp.checksum.status \
                  ip.dsfield.dscp ipv6.tclass.dscp udp.dstport";
    let Some(lines) = tshark("frames.pcapng", &packets, fields) else { return };
    let expected = ["1.500000000|l1.forward|1|1|46||47000", "1.500000001|l1.forward||1||46|47999"];
    assert_eq!(lines, expected);
}

/// Compares fields of a fragment, a fragment with two echo commands, a reply and a clock exchange.
fn check(name: &str, fields: &str, expected: [&str; 4]) {
    let packets = [
        (v4(47_000), sample(0, &[])),
        (v6(47_000), sample(2, &[tag(0, 8), tag(1, 9)])),
        (v4(47_000), reply_datagram()),
        (v4(47_000), clock_datagram()),
    ];
    if let Some(lines) = tshark(name, &packets, fields) {
        assert_eq!(lines, expected);
    }
}

#[test]
fn every_field_of_the_header_is_decoded() {
    let fields = "_ws.col.Protocol tcpsbed.version tcpsbed.flags.echo tcpsbed.flow tcpsbed.index \
                  tcpsbed.origin_ns tcpsbed.length tcpsbed.fragment tcpsbed.fragments tcpsbed.offset \
                  tcpsbed.payload";
    let first = "tcpsbed|1|0|2|70000|-5|11|0|3|0|61626364";
    let last = "tcpsbed|1|1|2|70000|-5|11|2|3|8|696a6b";
    check("header.pcapng", fields, [first, last, "tcpsbed||||||||||", "tcpsbed||||||||||"]);
}

#[test]
fn every_field_of_the_echo_trailer_is_decoded_and_the_packet_list_says_what_is_what() {
    let fields = "tcpsbed.echo.count tcpsbed.echo.sample tcpsbed.echo.target tcpsbed.echo.sequence \
                  tcpsbed.echo.reply_to tcpsbed.echo.injected_ns _ws.col.Info";
    let expected = [
        "||||||flow 2 sample 70000 (1 of 3)",
        "2|0,1|32775,32775|8,9|3,3|1000000000,1000000000|flow 2 sample 70000 (3 of 3) echo",
        "||||||echo reply 9 from point 10",
        "||||||clock response 4",
    ];
    check("echo.pcapng", fields, expected);
}

#[test]
fn every_field_of_replies_and_clock_exchanges_is_decoded() {
    let reply = "tcpsbed.reply.point tcpsbed.reply.flow tcpsbed.reply.sequence tcpsbed.reply.injected_ns \
                 tcpsbed.reply.reached_ns";
    check("reply.pcapng", reply, ["||||", "||||", "10|2|9|-1|77", "||||"]);
    let clock = "tcpsbed.clock.mode tcpsbed.clock.sequence tcpsbed.clock.t1_ns tcpsbed.clock.t2_ns \
                 tcpsbed.clock.t3_ns";
    check("clock.pcapng", clock, ["||||", "||||", "||||", "2|4|-100|200|300"]);
}

#[test]
fn other_ports_are_taken_by_form_and_malformed_ones_on_ours_are_shown_as_such() {
    let mut cut = sample(0, &[]);
    cut.pop();
    let mut telehaptic = telehaptic_datagram();
    let packets = [
        (v4(5_000), reply_datagram()),
        (v4(5_000), sample(2, &[tag(0, 1)])),
        (v4(5_000), cut.clone()),
        (v4(47_500), cut),
        (v4(47_500), vec![0x03; 40]),
        (v4(5_000), telehaptic.clone()),
        (v4(47_500), telehaptic.split_off(1)),
    ];
    let fields = "_ws.col.Protocol _ws.col.Info tcpsbed.malformed";
    let Some(lines) = tshark("form.pcapng", &packets, fields) else { return };
    assert_eq!(lines[0], "tcpsbed|echo reply 9 from point 10|");
    assert_eq!(lines[1], "tcpsbed|flow 2 sample 70000 (3 of 3) echo|");
    assert!(lines[2].starts_with("UDP|"), "{}", lines[2]);
    assert!(lines[3].starts_with("tcpsbed|malformed: too short for its payload|"), "{}", lines[3]);
    assert!(lines[4].starts_with("tcpsbed|malformed: unknown first byte|"), "{}", lines[4]);
    assert!(lines[5].starts_with("UDP|"), "{}", lines[5]);
    assert!(lines[6].starts_with("tcpsbed|malformed: "), "{}", lines[6]);
}

// [Gokhale 2017: header]
#[test]
fn every_field_of_telehaptic_packets_and_reports_is_decoded() {
    let packets = [(v4(47_000), telehaptic_datagram()), (v4(47_000), report_datagram())];
    let fields = "tcpsbed.telehaptic.media tcpsbed.telehaptic.k tcpsbed.telehaptic.repeated \
                  tcpsbed.telehaptic.trailer tcpsbed.telehaptic.delay_us tcpsbed.telehaptic.time_ms \
                  tcpsbed.telehaptic.frame tcpsbed.telehaptic.bytes tcpsbed.telehaptic.part tcpsbed.payload \
                  tcpsbed.echo.sample tcpsbed.position.index tcpsbed.position.origin_ns tcpsbed.start.video \
                  tcpsbed.start.length tcpsbed.views.loss tcpsbed.views.jitter_us tcpsbed.views.delay_us";
    let Some(lines) = tshark("telehaptic.pcapng", &packets, fields) else { return };
    let first = "3|2|1|1|29535|65538|256,7|3,4|2,0|6861686241414156565656|1|65538|-2|1|2000|||";
    assert_eq!(lines, [first, "|||||||||||||||64|12|29541"]);
}
