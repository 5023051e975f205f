//! A network namespace for a node, with one interface: a device whose other end the emulator holds.
//!
//! ```text
//!  node's namespace: sockets ── tcps0 (10.77.0.1/16) ══ descriptor ══► emulator ◄══ tcps0 of the next node
//! ```
//! The namespace has no name and the device is not persistent: both are gone when node and emulator are, however
//! they end.

#![expect(unsafe_code, reason = "namespaces and devices are calls of the kernel")]

use super::handover;
use crate::addresses::{address, hardware};
use std::{
    ffi::CString,
    fs::{self, File, OpenOptions},
    io,
    mem::zeroed,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    os::{
        fd::{AsRawFd, RawFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
    time::{Duration, Instant},
};
use tcps_core::ids::NodeId;
use tcps_plan::{Plan, RunError};

/// Name of the device in every node's namespace.
const DEVICE: &str = "tcps0";
const CLONE_DEVICE: &str = "/dev/net/tun";
/// An entry that stays.
const ATF_COM_PERM: libc::c_int = 0x02 | 0x04;
/// Longest time until an IPv6 address can be used.
const USABLE: Duration = Duration::from_secs(2);

/// Moves this thread, and those it starts from now on, into a network namespace of its own, and hands the other end
/// of its device to the emulator, or the program behind it, that listens at `taps`.
pub fn enter(plan: &Plan, node: NodeId, taps: &Path) -> Result<(), RunError> {
    let real = &plan.real;
    let kind = if real.frames { libc::IFF_TAP } else { libc::IFF_TUN };
    let device = isolated(address(real, node), kind).map_err(|e| {
        RunError::world(format!("real.network = \"namespaces\": {e}, real.network = \"gates\" does not"))
    })?;
    if real.frames {
        let others =
            (0..plan.nodes.len() as u16).map(NodeId).filter(|n| *n != node).map(|n| address(real, n));
        introduce(DEVICE, node, others)
            .map_err(|e| refused("address for the TAP device", "CAP_NET_ADMIN", &e))?;
    }
    handover::send(taps, node, device.as_raw_fd())
        .map_err(|e| RunError::system("the device of the node cannot be handed over", e))
}

/// Gives a device of this thread's namespace the hardware address of its node, and tells the kernel that all others are
/// behind the gateway.
fn introduce(device: &str, node: NodeId, others: impl Iterator<Item = IpAddr>) -> io::Result<()> {
    let control = UdpSocket::bind(("0.0.0.0", 0))?;
    let mut request = request_for(device);
    request.ifr_ifru.ifru_hwaddr = ethernet(hardware(Some(node)));
    ioctl(control.as_raw_fd(), libc::SIOCSIFHWADDR, &mut request)?;
    for other in others {
        // SAFETY: all-zero bytes are valid for this plain C structure.
        let mut entry: libc::arpreq = unsafe { zeroed() };
        let IpAddr::V4(ip) = other else { return Err(io::Error::from(io::ErrorKind::Unsupported)) };
        entry.arp_pa.sa_family = libc::AF_INET as u16;
        // Two bytes of port come before the address.
        entry.arp_pa.sa_data[2..6].iter_mut().zip(ip.octets()).for_each(|(to, from)| *to = from as _);
        entry.arp_ha = ethernet(hardware(None));
        entry.arp_flags = ATF_COM_PERM;
        entry.arp_dev.iter_mut().zip(device.bytes()).for_each(|(to, from)| *to = from as _);
        ioctl(control.as_raw_fd(), libc::SIOCSARP, &mut entry)?;
    }
    Ok(())
}

fn ethernet(hardware: [u8; 6]) -> libc::sockaddr {
    let mut address = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: [0; 14] };
    address.sa_data.iter_mut().zip(hardware).for_each(|(to, from)| *to = from as _);
    address
}

/// Moves this thread, and those that it starts from now on, into a network namespace of its own; the other end of its
/// only device.
pub fn alone(ip: IpAddr) -> Result<File, RunError> {
    isolated(ip, libc::IFF_TUN)
}

fn isolated(ip: IpAddr, kind: libc::c_int) -> Result<File, RunError> {
    // SAFETY: a plain system call; sockets and threads are made after it.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(refused("network namespace", "root (CAP_SYS_ADMIN)", &io::Error::last_os_error()));
    }
    let device = attached(DEVICE, kind)
        .map_err(|e| refused(CLONE_DEVICE, "the module `tun`, the device file and CAP_NET_ADMIN", &e))?;
    configure(ip).map_err(|e| refused("address for the device", "CAP_NET_ADMIN", &e))?;
    Ok(device)
}

fn refused(what: &str, needs: &str, error: &io::Error) -> RunError {
    RunError::world(format!("no {what} ({error}); it needs {needs}"))
}

/// Sends everything that this thread's namespace knows no other way for, multicast too, to its device (IPv4).
pub fn route_all() -> io::Result<()> {
    let control = UdpSocket::bind(("0.0.0.0", 0))?;
    let name = CString::new(DEVICE)?;
    // SAFETY: all-zero bytes are valid for this plain C structure.
    let mut route: libc::rtentry = unsafe { zeroed() };
    let any = libc::sockaddr { sa_family: libc::AF_INET as u16, sa_data: [0; 14] };
    (route.rt_dst, route.rt_genmask) = (any, any);
    route.rt_flags = libc::RTF_UP;
    route.rt_dev = name.as_ptr().cast_mut();
    ioctl(control.as_raw_fd(), libc::SIOCADDRT, &mut route)
}

/// Packets that the kernel dropped at this namespace's device, in either direction.
pub fn drops() -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let row = table.lines().find_map(|l| l.trim_start().strip_prefix(DEVICE)?.strip_prefix(':'));
    let columns: Vec<u64> =
        row.unwrap_or_default().split_whitespace().filter_map(|c| c.parse().ok()).collect();
    // Receive and transmit have eight columns each; `drop` is the fourth.
    [3, 11].iter().filter_map(|&i| columns.get(i)).sum()
}

/// The other end of a TAP device of this thread's namespace, which is made if it is not there.
pub fn tap(name: &str) -> io::Result<File> {
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    attached(name, libc::IFF_TAP)
}

fn attached(name: &str, kind: libc::c_int) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(CLONE_DEVICE)?;
    let mut request = request_for(name);
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as i16;
    ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request)?;
    Ok(file)
}

/// Gives the device its address and sets it and the loopback interface up. Its MTU is the kernel's default, 1500.
fn configure(ip: IpAddr) -> io::Result<()> {
    // Neither the unused version of IP nor addresses made up by the kernel should send packets of their own.
    let (setting, value) = if ip.is_ipv6() { ("addr_gen_mode", "1") } else { ("disable_ipv6", "1") };
    // Where the kernel has no IPv6, there is nothing to be quiet.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{DEVICE}/{setting}"), value);
    let control = UdpSocket::bind((if ip.is_ipv6() { "::" } else { "0.0.0.0" }, 0))?;
    let fd = control.as_raw_fd();
    match ip {
        IpAddr::V4(ip) => {
            set_v4(fd, libc::SIOCSIFADDR, ip)?;
            set_v4(fd, libc::SIOCSIFNETMASK, Ipv4Addr::new(255, 255, 0, 0))?;
        }
        IpAddr::V6(ip) => set_v6(fd, ip)?,
    }
    for name in [DEVICE, "lo"] {
        let mut up = request_for(name);
        ioctl(fd, libc::SIOCGIFFLAGS, &mut up)?;
        // SAFETY: the kernel has filled in the flags.
        up.ifr_ifru.ifru_flags = unsafe { up.ifr_ifru.ifru_flags } | libc::IFF_UP as i16;
        ioctl(fd, libc::SIOCSIFFLAGS, &mut up)?;
    }
    usable(ip)
}

fn set_v4(fd: RawFd, what: libc::Ioctl, ip: Ipv4Addr) -> io::Result<()> {
    let mut request = request();
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from(ip).to_be() },
        sin_zero: [0; 8],
    };
    // SAFETY: both structures are 16 bytes of plain data.
    request.ifr_ifru.ifru_addr = unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(address) };
    ioctl(fd, what, &mut request)
}

fn set_v6(fd: RawFd, ip: Ipv6Addr) -> io::Result<()> {
    let mut index = request();
    ioctl(fd, libc::SIOCGIFINDEX, &mut index)?;
    let mut request = libc::in6_ifreq {
        ifr6_addr: libc::in6_addr { s6_addr: ip.octets() },
        ifr6_prefixlen: 64,
        // SAFETY: the kernel has filled in the index.
        ifr6_ifindex: unsafe { index.ifr_ifru.ifru_ifindex },
    };
    ioctl(fd, libc::SIOCSIFADDR, &mut request)
}

/// Waits until sockets can be bound to an address: the kernel checks a new IPv6 address first, in the background.
fn usable(ip: IpAddr) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match UdpSocket::bind((ip, 0)) {
            Ok(_) => return Ok(()),
            Err(e) if begun.elapsed() > USABLE => return Err(e),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn request() -> libc::ifreq {
    request_for(DEVICE)
}

fn request_for(name: &str) -> libc::ifreq {
    // SAFETY: all-zero bytes are valid for this plain C structure.
    let mut request: libc::ifreq = unsafe { zeroed() };
    request.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
    request
}

fn ioctl<T>(fd: RawFd, what: libc::Ioctl, request: &mut T) -> io::Result<()> {
    // SAFETY: each caller hands over the structure that the kernel expects for `what`; it outlives the call.
    match unsafe { libc::ioctl(fd, what, std::ptr::from_mut(request)) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
