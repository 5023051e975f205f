//! A program that knows nothing of us behind an emulated network: two network namespaces, an emulator between them.
//!
//! ```text
//!  PID namespace ┬─ this process (its first one: with it, everything in here ends)
//!                ├─ near  10.77.0.1 ── COMMAND ──┐ TUN
//!                │                               ├─ tcps-net, real clock
//!                └─ far   10.77.0.2 ── COMMAND ──┘ TUN,  or ports that reach the network outside
//! ```
//! Without root everything happens in a user namespace, in which the commands see themselves as root. Nothing has a name
//! and nothing is persistent: the kernel removes it all with the last process.

#![expect(unsafe_code, reason = "namespaces and processes are calls of the kernel")]

use super::{
    beside::{Beside, Lateness},
    between, control, network,
    passage::passage,
    shared::Shared,
    DoorKind, DoorPlan, Outcome, Settings,
};
use crate::{
    emu::{lock, Lines, Service, TcpDoor, UdpDoors},
    os::{namespace, owner::owner},
    threads,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    io,
    net::{IpAddr, Ipv4Addr, TcpListener},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, ExitStatus},
    sync::{
        atomic::Ordering,
        mpsc::{channel, Sender},
        Arc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tcps_core::time::Time;
use tcps_plan::net::NetworkSpec;
use tcps_plan::{RunError, Waiting};
use tcps_wire::ip::Transport;

/// Address of the near side.
pub const NEAR_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
/// Address of the far side.
pub const FAR_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
/// How long the far command may take to end once the near one has.
const GRACE: Duration = Duration::from_secs(1);

/// Time between two looks for the programs of new services, and the most looks for each.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: u32 = 20;

/// What is run in namespaces.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inside {
    /// The emulator; its doors are the devices.
    pub proxy: Settings,
    /// The command of the near side, with its arguments.
    pub near: Vec<String>,
    /// That of the far side.
    #[serde(default)]
    pub far: Vec<String>,
    /// Ports of the far side that lead out to the network of the caller; they listen at its address.
    #[serde(default)]
    pub reach: Vec<DoorPlan>,
    /// A Unix socket where others may look at the network and change it; absent: none.
    pub control: Option<PathBuf>,
}

/// How it went.
pub struct Ended {
    /// Exit status of the near command, as shells have it: 128 and the number of the signal that killed it.
    pub status: i32,
    /// What the emulator did.
    pub outcome: Outcome,
    /// What the kernel counted of TCP in the namespaces; without one that does not say.
    pub tcp: Vec<Segments>,
    /// How late this machine woke a program meanwhile.
    pub late: Option<Lateness>,
}

/// Segments of TCP that a namespace has sent, as its kernel counts them (`Tcp` in /proc/net/snmp, RFC 4022).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Segments {
    side: &'static str,
    /// All but those that were sent again (`OutSegs`).
    sent: u64,
    /// Those that were sent again (`RetransSegs`).
    retransmitted: u64,
}

impl Segments {
    /// Reads the table of the namespace of the calling thread.
    fn of_this_thread(side: &'static str) -> Option<Self> {
        Self::read(side, &fs::read_to_string("/proc/thread-self/net/snmp").ok()?)
    }

    fn read(side: &'static str, table: &str) -> Option<Self> {
        let mut rows = table.lines().filter_map(|line| line.strip_prefix("Tcp: ")).map(str::split_whitespace);
        let found: HashMap<_, _> = rows.next()?.zip(rows.next()?).collect();
        let count = |name| found.get(name)?.parse().ok();
        Some(Self { side, sent: count("OutSegs")?, retransmitted: count("RetransSegs")? })
    }
}

/// Moves this process, which must have one thread, into namespaces whose first process is its only child, and goes on
/// there: `inside` runs in the child, its result is the exit status that this returns in the parent.
pub fn isolated(inside: impl FnOnce() -> i32) -> Result<i32, RunError> {
    die_with_parent();
    // SAFETY: plain system calls without arguments that could be wrong.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let wanted = libc::CLONE_NEWPID | if user == 0 { 0 } else { libc::CLONE_NEWUSER };
    // SAFETY: a plain system call; the caller has one thread.
    if unsafe { libc::unshare(wanted) } != 0 {
        return Err(refused(&io::Error::last_os_error()));
    }
    if user != 0 {
        map_to_root(user, group).map_err(|e| refused(&e))?;
    }
    // SAFETY: this process has one thread, so the child may do everything.
    match unsafe { libc::fork() } {
        -1 => Err(refused(&io::Error::last_os_error())),
        0 => {
            die_with_parent();
            std::process::exit(inside());
        }
        child => wait_for(child).map_err(|e| RunError::system("the process in the namespaces", e)),
    }
}

fn refused(error: &io::Error) -> RunError {
    RunError::world(format!(
        "no namespaces of our own ({error}); it needs root, or a kernel that lets users make them (sysctl -w \
         kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0)"
    ))
}

fn map_to_root(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

fn die_with_parent() {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Waits for a child while Ctrl-C is for the commands: they decide what comes of it.
fn wait_for(child: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: plain system calls; `status` outlives them.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGQUIT, libc::SIG_IGN);
        while libc::waitpid(child, &raw mut status, 0) < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
    Ok(code(ExitStatus::from_raw(status)))
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

impl Inside {
    /// Runs the commands until the near one has ended.
    pub fn run(&self) -> Result<Ended, RunError> {
        network(&self.proxy.network, self.proxy.seed)?;
        let (far, near) =
            (Namespace::open(FAR_IP, self.reach.clone())?, Namespace::open(NEAR_IP, Vec::new())?);
        let (shared, orders) = Shared::begin();
        let shared = Arc::new(shared);
        let thread = between(&self.proxy, [near.device, far.device], (&shared, orders))?;
        if let Some(path) = &self.control {
            control::serve(path, self.proxy.seed, &shared)?;
        }
        let naming = name_programs(&shared, [near.place.clone(), far.place.clone()])?;
        let reach = Reach::open(far.udp, far.tcp, &self.reach)?;
        let beside = Beside::begin()?;
        let mut server = match self.far.is_empty() {
            true => None,
            false => Some(far.place.spawn(&self.far, shared.start)?),
        };
        let status = near
            .place
            .spawn(&self.near, shared.start)
            .and_then(|mut child| child.wait().map_err(|e| RunError::system(&self.near[0], e)));
        let mut notes = Vec::new();
        if let Some(server) = &mut server {
            notes.extend(end(server, &self.far[0]));
        }
        let late = beside.seen();
        let tcp = [near.place.count("near"), far.place.count("far")].into_iter().flatten().collect();
        reach.close();
        shared.stop.store(true, Ordering::Relaxed);
        let _ = naming.join();
        let outcome = thread.join().map_err(|_| RunError::bug("the emulator's loop died"));
        let mut outcome = outcome?;
        outcome.errors.append(&mut notes);
        Ok(Ended { status: code(status?), outcome, tcp, late })
    }
}

/// Ends the far command; what went wrong with it before, in words.
fn end(server: &mut Child, name: &str) -> Option<String> {
    if let Ok(Some(status)) = server.try_wait() {
        return (!status.success())
            .then(|| format!("far command {name} ended before the near one: {status}"));
    }
    // SAFETY: the child has not been waited for, so its number is its own.
    unsafe { libc::kill(server.id() as libc::pid_t, libc::SIGTERM) };
    let begun = Instant::now();
    while begun.elapsed() < GRACE && matches!(server.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = server.kill();
    let _ = server.wait();
    None
}

/// A network namespace and what was made in it.
struct Namespace {
    device: File,
    udp: Option<UdpDoors>,
    tcp: Vec<TcpListener>,
    place: Place,
}

/// The way to the thread that lives in a namespace: what it starts lives there too.
#[derive(Clone)]
struct Place(Sender<Order>);

/// What is asked of that thread, and who wants the answer.
enum Order {
    /// A command is to be started.
    Start(Box<Command>, Sender<io::Result<Child>>),
    /// What the kernel has counted of this side.
    Count(&'static str, Sender<Option<Segments>>),
    /// The program that listens at a port, by TCP or not.
    Owner(bool, u16, Sender<Option<String>>),
}

impl Namespace {
    /// A namespace with an address, and sockets in it that lead out.
    fn open(ip: IpAddr, reach: Vec<DoorPlan>) -> Result<Self, RunError> {
        let (to_caller, from_place) = channel();
        let (commands, orders) = channel::<Order>();
        threads::start(move || {
            let made = make(ip, &reach);
            let failed = made.is_err();
            if to_caller.send(made).is_err() || failed {
                return;
            }
            for order in orders {
                match order {
                    Order::Start(mut command, answer) => drop(answer.send(command.spawn())),
                    Order::Count(side, answer) => drop(answer.send(Segments::of_this_thread(side))),
                    Order::Owner(tcp, port, answer) => drop(answer.send(owner(tcp, port))),
                }
            }
        })?;
        let made = from_place.recv().map_err(|_| RunError::bug("a namespace's thread died"))?;
        let (device, udp, tcp) = made?;
        Ok(Self { device, udp, tcp, place: Place(commands) })
    }
}

type Made = (File, Option<UdpDoors>, Vec<TcpListener>);

/// Makes the namespace of the calling thread.
fn make(ip: IpAddr, reach: &[DoorPlan]) -> Result<Made, RunError> {
    let device = namespace::alone(ip)?;
    namespace::route_all().map_err(|e| RunError::system("no route to the emulated network", e))?;
    let udp: Vec<&DoorPlan> = reach.iter().filter(|d| d.kind == DoorKind::Udp).collect();
    let udp = if udp.is_empty() { None } else { Some(UdpDoors::bind(&udp)?) };
    let tcp = reach.iter().filter(|d| d.kind == DoorKind::Tcp);
    Ok((device, udp, tcp.map(TcpDoor::listen).collect::<Result<_, _>>()?))
}

impl Place {
    /// Starts a command in the namespace, which finds the network's start in its environment.
    fn spawn(&self, words: &[String], start: Time) -> Result<Child, RunError> {
        let (name, arguments) = words.split_first().ok_or_else(|| RunError::config("no command"))?;
        let mut command = Command::new(name);
        command
            .args(arguments)
            .env("TCPSBED_NEAR", NEAR_IP.to_string())
            .env("TCPSBED_FAR", FAR_IP.to_string())
            .env("TCPSBED_START_NS", start.to_string());
        let (to_caller, answer) = channel();
        let gone = || RunError::bug("a namespace's thread died");
        self.0.send(Order::Start(Box::new(command), to_caller)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?.map_err(|e| unstarted(name, &e))
    }

    /// The program that listens at a port in the namespace.
    fn owner(&self, tcp: bool, port: u16) -> Option<String> {
        let (to_caller, answer) = channel();
        self.0.send(Order::Owner(tcp, port, to_caller)).ok()?;
        answer.recv().ok()?
    }

    /// What the kernel has counted of TCP in the namespace.
    fn count(&self, side: &'static str) -> Option<Segments> {
        let (to_caller, answer) = channel();
        self.0.send(Order::Count(side, to_caller)).ok()?;
        answer.recv().ok()?
    }
}

/// Looks who listens at the ports of new services until the network stops, in a thread of its own: packets do not wait.
fn name_programs(shared: &Arc<Shared>, places: [Place; 2]) -> Result<JoinHandle<()>, RunError> {
    let shared = shared.clone();
    threads::start(move || {
        let mut looked = BTreeMap::<Service, u32>::new();
        while !shared.stopped() {
            let unnamed: Vec<Service> =
                lock(&shared.programs).iter().filter(|(_, name)| name.is_none()).map(|(s, _)| *s).collect();
            for service in unnamed {
                let Service::Port(transport, port) = service else { continue };
                let looks = looked.entry(service).or_default();
                *looks += 1;
                if *looks > LOOKS {
                    continue;
                }
                let mut found: Vec<String> = places
                    .iter()
                    .filter_map(|place| place.owner(transport == Transport::Tcp, port))
                    .collect();
                found.dedup();
                if !found.is_empty() {
                    lock(&shared.programs).insert(service, Some(found.join(", ")));
                }
            }
            std::thread::sleep(LOOK);
        }
    })
}

/// Why a command did not start, and which one can.
fn unstarted(name: &str, why: &io::Error) -> RunError {
    let remedy = match why.kind() {
        io::ErrorKind::NotFound => "; allowed: a program that is in PATH, or its path",
        io::ErrorKind::PermissionDenied => "; allowed: a file that you may execute (chmod +x)",
        _ => "",
    };
    RunError::world(format!("{name}: {why}{remedy}"))
}

/// The ports of the far side that lead out: they listen in its namespace, and go on from that of the caller.
struct Reach {
    shared: Arc<Shared>,
    datagrams: Option<JoinHandle<Outcome>>,
    streams: Vec<TcpDoor>,
}

impl Reach {
    fn open(udp: Option<UdpDoors>, tcp: Vec<TcpListener>, plans: &[DoorPlan]) -> Result<Self, RunError> {
        let of = |kind: DoorKind| plans.iter().filter(move |d| d.kind == kind);
        let (shared, orders) = Shared::begin();
        let shared = Arc::new(shared);
        let settings = Settings {
            network: json!({"vertices": ["near", "far"]}),
            seed: 0,
            doors: Vec::new(),
            waiting: Waiting::Timer,
            spin_ns: 0,
            realtime: false,
            capture: None,
            record: None,
        };
        let start = |doors: UdpDoors| {
            let names = of(DoorKind::Udp).map(|d| d.name.clone()).collect();
            let (network, own) = (NetworkSpec::default(), (&shared, orders));
            threads::start(passage(&settings, &network, Box::new(doors), names, own)?)
        };
        let datagrams = udp.map(start).transpose()?;
        let lines = Lines::direct();
        let over = |(listener, plan)| TcpDoor::over(listener, plan, &lines, None);
        let streams = tcp.into_iter().zip(of(DoorKind::Tcp)).map(over).collect::<Result<_, _>>()?;
        Ok(Self { shared, datagrams, streams })
    }

    fn close(self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.streams.into_iter().for_each(TcpDoor::abandon);
        let _ = self.datagrams.map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str) -> String {
        let why = Command::new(name).spawn().unwrap_err();
        unstarted(name, &why).found
    }

    #[test]
    fn segments_that_were_sent_again_are_found_by_the_name_of_their_column() {
        let table =
            "Ip: Forwarding\nIp: 1\nTcp: MaxConn OutSegs RetransSegs\nTcp: -1 120 7\nUdp: InErrors\nUdp: 3\n";
        let found = Segments { side: "near", sent: 120, retransmitted: 7 };
        assert_eq!(Segments::read("near", table), Some(found));
        assert_eq!(Segments::read("near", "Tcp: OutSegs\nTcp: 120\n"), None);
        assert!(Segments::of_this_thread("far").is_some(), "as this kernel writes it");
    }

    #[test]
    fn a_command_that_does_not_start_says_which_one_can() {
        assert!(said("tcps-no-such-program").ends_with("; allowed: a program that is in PATH, or its path"));
        let file = std::env::temp_dir().join(format!("tcps-plain-file-{}", std::process::id()));
        fs::write(&file, "words").unwrap();
        let plain = said(file.to_str().unwrap());
        fs::remove_file(&file).unwrap();
        assert!(plain.ends_with("; allowed: a file that you may execute (chmod +x)"), "{plain}");
        let other = said("/dev/null/program");
        assert!(other.starts_with("/dev/null/program: ") && !other.contains("allowed"), "{other}");
    }
}
