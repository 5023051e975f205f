//! What runs at the far end of a line: the firmware as a process of this machine, or in QEMU.

use super::port::Port;
use crate::{error::RunError, plan::Attached};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::{
        fd::{FromRawFd, OwnedFd},
        unix::{net::UnixListener, process::CommandExt},
    },
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

/// Of what a process has said, so many bytes at the end are told.
const LAST_WORDS: u64 = 300;

/// A process that ends with its line.
#[derive(Debug)]
pub struct Firmware {
    child: Child,
    /// What it says on its standard error, which nobody reads unless it ends.
    said: File,
}

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
        let fail = |e: io::Error| RunError::new(format!("firmware {name} cannot be started: {e}{remedy}"));
        let said = memory().map_err(fail)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone().map_err(fail)?);
        // SAFETY: prctl is a plain system call, which may be made between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        let child = command.spawn().map_err(fail)?;
        Ok(Self { child, said })
    }

    /// How it ended, in words; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(Some(status)) => Some(format!("it ended ({status}){}", self.last_words())),
            _ => None,
        }
    }

    fn last_words(&mut self) -> String {
        let mut words = Vec::new();
        let length = self.said.metadata().map_or(0, |m| m.len());
        let from = SeekFrom::Start(length.saturating_sub(LAST_WORDS));
        let read = self.said.seek(from).and_then(|_| self.said.read_to_end(&mut words));
        let words = String::from_utf8_lossy(&words);
        match (read, words.trim()) {
            (Ok(_), said) if !said.is_empty() => format!(": {said}"),
            _ => String::new(),
        }
    }
}

impl Drop for Firmware {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file without a name.
fn memory() -> io::Result<File> {
    // SAFETY: the name is a constant, and the descriptor is owned from here on.
    unsafe {
        match libc::memfd_create(c"firmware".as_ptr(), libc::MFD_CLOEXEC) {
            fd if fd < 0 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd).into()),
        }
    }
}
