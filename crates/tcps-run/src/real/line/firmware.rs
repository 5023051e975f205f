//! What runs at the far end of a line: the firmware as a process of this machine, or in QEMU.

#![expect(unsafe_code, reason = "a child process sets up its descriptors before its program")]

use super::port::Port;
use libc::c_int;
use std::{
    fs::File,
    io::{self, Read},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tcps_plan::{Attached, RunError};

/// The emulator of the Cortex-M.
const QEMU: &str = "qemu-system-arm";
/// Of what a process has said, so many bytes at the end are told.
const LAST_WORDS: usize = 300;
/// Reads of what it says before others have their turn.
const READS: usize = 16;
/// How long a process that has closed its line may take to end.
const ENDS: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(5);

/// A process that ends with its line.
#[derive(Debug)]
pub struct Firmware {
    child: Child,
    /// What it says on its standard error.
    says: File,
    /// The end of what it has said.
    words: Vec<u8>,
}

/// A line: its near end, whether it has a pace of its own, and the process at its far end if that is ours.
pub type Attachment = (Port, bool, Option<Firmware>);

/// Opens a line, and starts what is at its far end.
pub fn attach(attached: &Attached, rate_bps: f64) -> Result<Attachment, RunError> {
    match attached {
        Attached::Port { path } => Port::open(path, rate_bps).map(|(port, own)| (port, own, None)),
        Attached::Program { path } => {
            let (port, name) = Port::terminal()?;
            let firmware = Firmware::start(Command::new(path).arg(&name), &path.to_string_lossy(), "")?;
            Ok((port, false, Some(firmware)))
        }
        Attached::Qemu { path } => {
            let (port, firmware) = emulated(path)?;
            Ok((port, false, Some(firmware)))
        }
    }
}

/// QEMU with an image, its first serial port on a unix socket, which it inherits: no path, and nothing left over.
fn emulated(image: &Path) -> Result<(Port, Firmware), RunError> {
    let (near, far) = UnixStream::pair().map_err(|e| RunError::system("socket of a line", e))?;
    let far_fd = far.as_raw_fd();
    let mut command = Command::new(QEMU);
    command.args(["-M", "lm3s6965evb", "-nodefaults", "-display", "none", "-monitor", "none"]);
    command.arg("-chardev").arg(format!("socket,id=line,fd={far_fd}"));
    command.args(["-serial", "chardev:line", "-kernel"]).arg(image);
    // SAFETY: fcntl is a plain system call, which may be made between fork and exec; `far` is open until then.
    unsafe { command.pre_exec(move || done(libc::fcntl(far_fd, libc::F_SETFD, 0))) };
    let firmware = Firmware::start(&mut command, QEMU, "; on Debian: apt-get install qemu-system-arm")?;
    Ok((Port::socket(near)?, firmware))
}

fn done(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Firmware {
    /// Starts it; `remedy` follows the message if that fails.
    pub fn start(command: &mut Command, name: &str, remedy: &str) -> Result<Self, RunError> {
        let fail = |e: io::Error| RunError::world(format!("firmware {name} cannot be started: {e}{remedy}"));
        let (says, written) = pipe().map_err(fail)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(written);
        // SAFETY: plain system calls, which may be made between fork and exec. Who has ended by now sends no signal.
        unsafe {
            let parent = libc::getpid();
            command.pre_exec(move || {
                done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
                done(if libc::getppid() == parent { 0 } else { -1 })
            });
        }
        let child = command.spawn().map_err(fail)?;
        // The command keeps the far end of the pipe open until it is given another.
        command.stderr(Stdio::null());
        Ok(Self { child, says, words: Vec::new() })
    }

    /// What becomes readable when it says something on its standard error.
    pub fn fd(&self) -> RawFd {
        self.says.as_raw_fd()
    }

    /// Takes what it says, of which the end is kept; false if it can say nothing more.
    pub fn listen(&mut self) -> bool {
        let mut bytes = [0; 4096];
        for _ in 0..READS {
            match self.says.read(&mut bytes) {
                Ok(0) => return false,
                Ok(n) => {
                    self.words.extend_from_slice(&bytes[..n]);
                    self.words.drain(..self.words.len().saturating_sub(LAST_WORDS));
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return e.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }

    /// How it ended, in words, after taking what it says; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten();
        self.listen();
        let status = status?;
        let words = String::from_utf8_lossy(&self.words);
        Some(match words.trim() {
            "" => format!("it ended ({status})"),
            said => format!("it ended ({status}): {said}"),
        })
    }

    /// How it ended, if it does so soon: one that has closed its line is about to.
    pub fn ends(&mut self) -> Option<String> {
        let limit = Instant::now() + ENDS;
        loop {
            let ended = self.ended();
            if ended.is_some() || Instant::now() > limit {
                return ended;
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Firmware {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A pipe whose near end does not make a reader wait.
fn pipe() -> io::Result<(File, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: plain calls; the array has the room that the first one wants, and its descriptors are owned from there on.
    unsafe {
        done(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        let [near, far] = ends.map(|fd| OwnedFd::from_raw_fd(fd));
        done(libc::fcntl(near.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK))?;
        Ok((near.into(), far))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Firmware {
        Firmware::start(Command::new("/bin/sh").args(["-c", script]), "sh", "").unwrap()
    }

    #[test]
    fn of_what_a_process_says_the_end_is_kept_and_no_more() {
        let mut firmware = shell("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 3");
        let limit = Instant::now() + Duration::from_secs(60);
        let ended = loop {
            firmware.listen();
            assert!(firmware.words.capacity() <= 2 * (4096 + LAST_WORDS));
            match firmware.ended() {
                Some(ended) => break ended,
                None => assert!(Instant::now() < limit),
            }
            thread::sleep(Duration::from_millis(1));
        };
        assert!(ended.starts_with("it ended (exit status: 3): xxx") && ended.ends_with("the end"), "{ended}");
        assert!(ended.len() < LAST_WORDS + 40, "{}", ended.len());
        assert!(!firmware.listen(), "it can say nothing more");
    }

    #[test]
    fn one_that_runs_has_not_ended_and_one_that_cannot_be_started_is_told() {
        let mut firmware = shell("exec sleep 60");
        assert_eq!(firmware.ended(), None);
        assert!(firmware.listen());
        let remedy = "; apt-get install it";
        let told =
            Firmware::start(&mut Command::new("/no/such/program"), "it", remedy).unwrap_err().to_string();
        assert!(told.contains("firmware it cannot be started") && told.ends_with(remedy), "{told}");
    }
}
