//! What runs at the far end of a line: the firmware as a process of this machine, or in QEMU.

use super::port::Port;
use crate::{error::RunError, plan::Attached};
use std::{
    io,
    os::unix::{net::UnixListener, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The emulator of the Cortex-M.
const QEMU: &str = "qemu-system-arm";
/// How long QEMU may take to join the line.
const JOIN: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

/// A process that ends with its line.
#[derive(Debug)]
pub struct Firmware(Child);

/// A line: its near end, whether it has a pace of its own, and the process at its far end if that is ours.
pub type Attachment = (Port, bool, Option<Firmware>);

/// Opens a line, and starts what is at its far end. `socket` is the path of a unix socket that is not there yet.
pub fn attach(attached: &Attached, rate_bps: f64, socket: &Path) -> Result<Attachment, RunError> {
    match attached {
        Attached::Port { path } => Port::open(path, rate_bps).map(|(port, own)| (port, own, None)),
        Attached::Program { path } => {
            let (port, name) = Port::terminal()?;
            let firmware = Firmware::start(Command::new(path).arg(&name), &path.to_string_lossy(), "")?;
            Ok((port, false, Some(firmware)))
        }
        Attached::Qemu { path } => {
            let (port, firmware) = emulated(path, socket)?;
            Ok((port, false, Some(firmware)))
        }
    }
}

/// QEMU with an image, its first serial port on a unix socket.
fn emulated(image: &Path, socket: &Path) -> Result<(Port, Firmware), RunError> {
    let fail = |e: io::Error| RunError::new(format!("socket of a line {}: {e}", socket.display()));
    let listener = UnixListener::bind(socket).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    let mut command = Command::new(QEMU);
    command.args(["-M", "lm3s6965evb", "-nodefaults", "-display", "none", "-monitor", "none"]);
    command.arg("-chardev").arg(format!("socket,id=line,path={}", socket.display()));
    command.args(["-serial", "chardev:line", "-kernel"]).arg(image);
    let mut firmware = Firmware::start(&mut command, QEMU, "; on Debian: apt-get install qemu-system-arm")?;
    let limit = Instant::now() + JOIN;
    let joined = loop {
        match listener.accept() {
            Ok((stream, _)) => break Port::socket(stream),
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => break Err(fail(e)),
            Err(_) => {}
        }
        if let Some(end) = firmware.ended() {
            break Err(RunError::new(format!("{QEMU} with {}: {end}", image.display())));
        }
        if Instant::now() > limit {
            break Err(RunError::new(format!("{QEMU} did not join its line within {} s", JOIN.as_secs())));
        }
        thread::sleep(LOOK);
    };
    let _ = std::fs::remove_file(socket);
    Ok((joined?, firmware))
}

impl Firmware {
    fn start(command: &mut Command, name: &str, remedy: &str) -> Result<Self, RunError> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // SAFETY: prctl is a plain system call, which may be made between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        let child = command.spawn();
        child.map(Self).map_err(|e| RunError::new(format!("firmware {name} cannot be started: {e}{remedy}")))
    }

    /// How it ended, in words; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        match self.0.try_wait() {
            Ok(Some(status)) => Some(format!("it ended ({status})")),
            _ => None,
        }
    }
}

impl Drop for Firmware {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
