//! A side of a `tcp` channel with TLS over a TCP connection of the kernel's, for comparison with other programs.
//!
//! `tls_peer SIDE SECRET ADDRESS`: `a` connects, `b` waits for one connection and prints where. SECRET is what both sides share, in
//! hexadecimal digits. It sends the samples 0 to 9 of 10, 110 … 910 bytes and prints each sample that arrives, and what its
//! security has counted once the other side has ended, or after five seconds.
//!
//! ```text
//!  endpoint ══ IP packets ══ stack ── bytes ── socket ══ the other program
//! ```

use serde_json::Value;
use std::{
    error::Error,
    io::{ErrorKind, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    time::{Duration, Instant},
};
use tcps_core::{
    endpoint::{Ecn, Input, Output},
    ids::FlowId,
    sample::Meta,
    time::Time,
};
use tcps_transport::{
    endpoint,
    tcp::{Congestion, Settings, Stack},
    ChannelContext, Side, TlsSecret,
};

fn main() -> Result<(), Box<dyn Error>> {
    let [side, secret, address] = [1, 2, 3].map(|n| std::env::args().nth(n).unwrap_or_default());
    let digit = |at| u8::from_str_radix(secret.get(at..at + 2).unwrap_or("?"), 16);
    let secret: Vec<u8> = (0..64).step_by(2).map(digit).collect::<Result<_, _>>()?;
    let (side, mut socket) = match side.as_str() {
        "a" => (Side::A, TcpStream::connect(address)?),
        _ => {
            let listener = TcpListener::bind(address)?;
            println!("{}", listener.local_addr()?);
            (Side::B, listener.accept()?.0)
        }
    };
    socket.set_nonblocking(true)?;
    let tls = TlsSecret::Shared(secret.try_into().map_err(|_| "a secret of 32 bytes")?);
    let context =
        ChannelContext { tls: Some(tls), ..ChannelContext::of(&[(0, Side::A, "x"), (0, Side::B, "x")]) };
    let settings = Settings {
        congestion: Congestion::None,
        no_delay: true,
        send_buffer_bytes: 1 << 18,
        receive_buffer_bytes: 1 << 18,
        mtu_bytes: 1_200,
        ecn: false,
    };
    let mut end = endpoint("tcp", &Value::Null, side, &context)?;
    let mut stack = Stack::new(&settings, side.other(), 1);
    let begun = Instant::now();
    let now = || begun.elapsed().as_nanos() as Time;
    match side {
        Side::A => stack.listen(0),
        Side::B => stack.connect(0),
    }
    for index in 0..10 {
        let meta = Meta { flow: FlowId(0), index, origin_ns: 0, echo: None };
        end.handle_input(0, Input::Sample { meta, bytes: &vec![index as u8; 10 + 100 * index as usize] });
    }
    let (mut buf, mut arrived, mut leaving) = (Vec::new(), Vec::new(), Vec::new());
    let mut chunk = [0; 4_096];
    let mut is_over = false;
    while now() < 5_000_000_000 && !(is_over && arrived.is_empty()) {
        end.handle_input(now(), Input::Timeout);
        while let Some(output) = end.poll_output(&mut buf) {
            match output {
                Output::Transmit(_) => {
                    stack.receive_inside(now(), &buf, Ecn::NotCapable);
                    stack.read(|part| leaving.extend_from_slice(part));
                }
                Output::Deliver(d) => {
                    let same = buf.iter().all(|b| *b == d.meta.index as u8);
                    println!("sample {} {} {same}", d.meta.index, buf.len());
                }
                Output::Record(_) => {}
            }
        }
        socket.write_all(&std::mem::take(&mut leaving))?;
        match socket.read(&mut chunk) {
            Ok(0) => is_over = true,
            Ok(n) => arrived.extend_from_slice(&chunk[..n]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
            Err(_) => is_over = true,
        }
        let took = stack.write(&arrived);
        arrived.drain(..took);
        stack.poll(now());
        while stack.pop(&mut buf).is_some() {
            end.handle_input(now(), Input::datagram(&std::mem::take(&mut buf), now()));
        }
    }
    let counted = end.stats().security.ok_or("no security")?;
    println!(
        "sessions {} refused {} alerts {}",
        counted.sessions, counted.refused_connections, counted.alerts
    );
    Ok(())
}
