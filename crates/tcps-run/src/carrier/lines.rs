//! Lines between this process and another one.

#![expect(unsafe_code, reason = "waiting is a call of the kernel")]

use libc::{pollfd, POLLIN};
use std::{
    io::{self, Read},
    os::fd::{AsRawFd, RawFd},
    process::ChildStdout,
    time::{Duration, Instant},
};

const CHUNK: usize = 1 << 16;

/// Lines that another process writes.
pub(super) struct Lines {
    output: ChildStdout,
    buffer: Vec<u8>,
    begin: usize,
    ended: bool,
}

impl Lines {
    pub fn new(output: ChildStdout) -> Self {
        Self { output, buffer: Vec::with_capacity(CHUNK), begin: 0, ended: false }
    }

    pub fn descriptor(&self) -> RawFd {
        self.output.as_raw_fd()
    }

    /// Whether the other side has closed its end and nothing is left to read.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The next line, waiting at most so long for it; nothing if none came or the other side has ended.
    pub fn next(&mut self, wait: Duration) -> Option<String> {
        let end = Instant::now() + wait;
        loop {
            if let Some(line) = self.take() {
                return Some(line);
            }
            let left = end.saturating_duration_since(Instant::now());
            if self.ended || !self.readable(left) {
                return None;
            }
            self.fill();
        }
    }

    fn take(&mut self) -> Option<String> {
        let length = self.buffer[self.begin..].iter().position(|b| *b == b'\n')?;
        let line = String::from_utf8_lossy(&self.buffer[self.begin..self.begin + length]).into_owned();
        self.begin += length + 1;
        if self.begin == self.buffer.len() || self.begin > CHUNK {
            self.buffer.drain(..self.begin);
            self.begin = 0;
        }
        Some(line)
    }

    fn readable(&self, wait: Duration) -> bool {
        let mut poll = pollfd { fd: self.descriptor(), events: POLLIN, revents: 0 };
        let ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one structure that outlives the call.
        unsafe { libc::poll(&mut poll, 1, ms) > 0 }
    }

    fn fill(&mut self) {
        let used = self.buffer.len();
        self.buffer.resize(used + CHUNK, 0);
        let read = match self.output.read(&mut self.buffer[used..]) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return self.buffer.truncate(used),
            Err(_) => 0,
        };
        self.buffer.truncate(used + read);
        self.ended = read == 0;
    }
}
