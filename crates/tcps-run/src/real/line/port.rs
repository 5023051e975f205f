//! The near end of a serial line: a pseudo-terminal, a unix socket, or a serial port.

#![expect(unsafe_code, reason = "settings of serial lines are calls of the kernel")]

use libc::{c_int, speed_t};
use std::{
    ffi::CStr,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::{
            fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
            net::UnixStream,
        },
    },
    path::{Path, PathBuf},
};
use tcps_plan::RunError;

/// Speeds that a serial port can have, in bit/s, with what termios calls them.
const SPEEDS: [(u32, speed_t); 14] = [
    (9_600, libc::B9600),
    (19_200, libc::B19200),
    (38_400, libc::B38400),
    (57_600, libc::B57600),
    (115_200, libc::B115200),
    (230_400, libc::B230400),
    (460_800, libc::B460800),
    (500_000, libc::B500000),
    (921_600, libc::B921600),
    (1_000_000, libc::B1000000),
    (1_500_000, libc::B1500000),
    (2_000_000, libc::B2000000),
    (3_000_000, libc::B3000000),
    (4_000_000, libc::B4000000),
];
/// Numbers of the driver of the far ends of pseudo-terminals.
const PSEUDO_TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;
/// Longest name of a terminal.
const NAME: usize = 64;

/// An end that neither reads nor writes make wait.
#[derive(Debug)]
pub struct Port {
    file: File,
    /// What a write has not taken yet.
    rest: Vec<u8>,
    /// The far end of a terminal, open as long as nobody else has it: without one the near end reads as closed.
    keeper: Option<OwnedFd>,
}

fn failed(what: &str, path: &Path, e: io::Error) -> RunError {
    RunError::system(format!("{what} {}", path.display()), e)
}

/// What a line may be that cannot be opened.
fn unopened(path: &Path, e: &io::Error) -> RunError {
    RunError::world(format!(
        "line {}: {e}; allowed: a serial port that is there and that you may open (as a member of dialout), \
         or a unix socket at which a program listens",
        path.display()
    ))
}

impl Port {
    /// A pseudo-terminal, and the name of its far end.
    pub fn terminal() -> Result<(Self, PathBuf), RunError> {
        let fail = |e: io::Error| RunError::system("no pseudo-terminal", e);
        // SAFETY: plain calls; the descriptor is owned from here on, and the name lies in a buffer of the told length.
        let (near, name) = unsafe {
            let fd = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC | libc::O_NONBLOCK);
            if fd < 0 {
                return Err(fail(io::Error::last_os_error()));
            }
            let near = OwnedFd::from_raw_fd(fd);
            let mut name = [0; NAME];
            if libc::grantpt(fd) != 0
                || libc::unlockpt(fd) != 0
                || libc::ptsname_r(fd, name.as_mut_ptr(), NAME) != 0
            {
                return Err(fail(io::Error::last_os_error()));
            }
            (near, PathBuf::from(CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()))
        };
        let far = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(&name);
        let far = far.map_err(|e| failed("terminal", &name, e))?;
        raw(&far, None).map_err(|e| failed("terminal", &name, e))?;
        Ok((Self { file: near.into(), rest: Vec::new(), keeper: Some(far.into()) }, name))
    }

    /// A connected unix socket.
    pub fn socket(stream: UnixStream) -> Result<Self, RunError> {
        stream.set_nonblocking(true).map_err(|e| RunError::system("socket of a line", e))?;
        Ok(Self { file: OwnedFd::from(stream).into(), rest: Vec::new(), keeper: None })
    }

    /// A unix socket that somebody listens at, or a serial port at this rate; and whether it has a pace of its own.
    pub fn open(path: &Path, rate_bps: f64) -> Result<(Self, bool), RunError> {
        let kind = std::fs::metadata(path).map_err(|e| unopened(path, &e))?.file_type();
        if kind.is_socket() {
            let stream = UnixStream::connect(path).map_err(|e| unopened(path, &e))?;
            return Ok((Self::socket(stream)?, false));
        }
        let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        let file = file.map_err(|e| unopened(path, &e))?;
        let speed = speed(rate_bps).ok_or_else(|| {
            let known: Vec<String> = SPEEDS.iter().map(|s| s.0.to_string()).collect();
            RunError::config(format!(
                "line {}: found a rate of {rate_bps} bit/s; a serial port has {} bit/s",
                path.display(),
                known.join(", ")
            ))
        })?;
        raw(&file, Some(speed)).map_err(|e| failed("line", path, e))?;
        let own_pace = !is_pseudo(&file);
        Ok((Self { file, rest: Vec::new(), keeper: None }, own_pace))
    }

    /// The far end is somebody else's now.
    pub fn handed_over(&mut self) {
        self.keeper = None;
    }

    /// Its descriptor.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Reads what is there; 0 if nothing is. An error if the line is closed.
    pub fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.file.read(bytes) {
            Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            other => other,
        }
    }

    /// Writes; what is not taken at once goes before the next bytes. An error if the line is closed, or takes nothing.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.rest.extend_from_slice(bytes);
        while !self.rest.is_empty() {
            match self.file.write(&self.rest) {
                Ok(n) => drop(self.rest.drain(..n)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Bytes that a write has not taken.
    pub fn backlog(&self) -> usize {
        self.rest.len()
    }
}

/// Whether a terminal is the far end of a pseudo-terminal, which takes bytes as fast as they come.
fn is_pseudo(file: &File) -> bool {
    file.metadata().is_ok_and(|m| PSEUDO_TERMINALS.contains(&libc::major(m.rdev())))
}

/// What termios calls a rate.
fn speed(rate_bps: f64) -> Option<speed_t> {
    SPEEDS.iter().find(|s| f64::from(s.0) == rate_bps).map(|s| s.1)
}

/// Makes a terminal carry bytes as they are, at a speed.
fn raw(file: &File, speed: Option<speed_t>) -> io::Result<()> {
    let fd: c_int = file.as_raw_fd();
    // SAFETY: the structure is filled by the first call before it is read, and outlives all of them.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        if libc::tcgetattr(fd, &mut settings) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::cfmakeraw(&mut settings);
        settings.c_cflag |= libc::CLOCAL | libc::CREAD;
        if let Some(speed) = speed {
            libc::cfsetspeed(&mut settings, speed);
        }
        if libc::tcsetattr(fd, libc::TCSANOW, &settings) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_carries_every_byte_as_it_is() {
        let (mut near, name) = Port::terminal().unwrap();
        let mut far = OpenOptions::new().read(true).write(true).open(&name).unwrap();
        let all: Vec<u8> = (0..=255).collect();
        near.write(&all).unwrap();
        let mut got = [0; 256];
        far.read_exact(&mut got).unwrap();
        assert_eq!(got[..], all);
        far.write_all(&all).unwrap();
        let (mut back, mut n) = ([0; 256], 0);
        while n < 256 {
            n += near.read(&mut back[n..]).unwrap();
        }
        assert_eq!(back[..], all);
        assert_eq!(near.read(&mut back).unwrap(), 0, "nothing is there, and it is not closed");
        near.handed_over();
        drop(far);
        assert!(near.read(&mut back).is_err(), "closed");
    }

    #[test]
    fn a_port_that_is_not_there_or_has_no_such_rate_is_told() {
        let text = Port::open(Path::new("/dev/no-such-port"), 1e6).unwrap_err().to_string();
        assert!(text.contains("/dev/no-such-port"), "{text}");
        let (_near, name) = Port::terminal().unwrap();
        assert!(!Port::open(&name, 1e6).unwrap().1, "a pseudo-terminal has no pace of its own");
        let text = Port::open(&name, 123_456.0).unwrap_err().to_string();
        assert!(text.contains("123456") && text.contains("1000000"), "{text}");
    }
}
