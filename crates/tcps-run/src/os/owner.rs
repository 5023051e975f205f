//! The program that listens at a port of the calling thread's network namespace, as /proc tells it.

use std::{fs, path::Path};

/// State of a TCP socket that listens (`TCP_LISTEN` of the kernel), in hexadecimal.
const LISTENS: &str = "0A";

/// The name of the program that listens at a port; nothing if no process of this namespace that may be looked into does.
pub fn owner(tcp: bool, port: u16) -> Option<String> {
    let tables = if tcp { ["tcp", "tcp6"] } else { ["udp", "udp6"] };
    let table = |name| fs::read_to_string(Path::new("/proc/thread-self/net").join(name)).ok();
    let sockets: Vec<String> =
        tables.into_iter().filter_map(table).flat_map(|text| listening(&text, tcp, port)).collect();
    if sockets.is_empty() {
        return None;
    }
    let here = fs::read_link("/proc/thread-self/ns/net").ok()?;
    let processes = fs::read_dir("/proc").ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let found = processes
        .filter(|process| fs::read_link(process.join("ns/net")).is_ok_and(|place| place == here))
        .find(|process| holds(process, &sockets))?;
    program(&fs::read(found.join("cmdline")).ok()?)
}

/// The sockets that a table of the kernel has at a port, as links of descriptors name them.
fn listening(table: &str, tcp: bool, port: u16) -> Vec<String> {
    let of = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (columns.get(1)?, columns.get(3)?, columns.get(9)?);
        let at = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        (at == port && (!tcp || *state == LISTENS)).then(|| format!("socket:[{inode}]"))
    };
    table.lines().skip(1).filter_map(of).collect()
}

fn holds(process: &Path, sockets: &[String]) -> bool {
    let Ok(open) = fs::read_dir(process.join("fd")) else { return false };
    let links = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.into_iter().any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

/// What a command line is called: the script or module of an interpreter of Python, else the program.
fn program(command: &[u8]) -> Option<String> {
    let mut words = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let name = |word: &[u8]| {
        let word = String::from_utf8_lossy(word);
        word.rsplit('/').next().map(|name| name.chars().filter(|c| !c.is_control()).take(32).collect())
    };
    let first: String = name(words.next()?)?;
    let second = words.next().filter(|_| first.starts_with("python"));
    match second {
        Some(b"-m") => words.next().and_then(name),
        Some(script) if !script.starts_with(b"-") => name(script),
        _ => Some(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn this_program_listens_at_its_ports_and_nobody_at_one_that_is_closed() {
        let own = program(&fs::read("/proc/self/cmdline").unwrap());
        let (udp, tcp) = (UdpSocket::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let [udp_port, tcp_port] = [udp.local_addr(), tcp.local_addr()].map(|at| at.unwrap().port());
        assert_eq!((owner(false, udp_port), owner(true, tcp_port)), (own.clone(), own));
        drop(udp);
        assert_eq!(owner(false, udp_port), None);
    }

    #[test]
    fn a_script_is_called_by_its_own_name() {
        let called = |words: &[&str]| program(words.join("\0").as_bytes());
        assert_eq!(called(&["/usr/bin/iperf3", "-s"]).as_deref(), Some("iperf3"));
        assert_eq!(called(&["python3", "/opt/arm/video.py", "x"]).as_deref(), Some("video.py"));
        assert_eq!(called(&["python3.12", "-m", "http.server"]).as_deref(), Some("http.server"));
        assert_eq!(called(&["python3", "-c", "import time"]).as_deref(), Some("python3"));
        assert_eq!(called(&[""]), None);
    }
}
