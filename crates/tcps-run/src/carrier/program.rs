//! The other program at work: what it is told, line by line, and what it says.

use super::{lines::Lines, told::JsonLine};
use crate::threads;
use serde::Deserialize;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, BufWriter, Read, Write},
    os::fd::RawFd,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    thread::JoinHandle,
    time::Duration,
};
use tcps_core::time::{Time, MS};
use tcps_plan::RunError;

/// Which program simulates the network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignSpec {
    /// The program's file.
    pub program: PathBuf,
    /// What the program is called in messages.
    pub name: String,
    /// Links and traffic of the plan as JSON, in its own numbering.
    pub network: Value,
    /// On the machine's clock: how late it may be before the run ends.
    pub most_lag_ns: Time,
}

/// A process that speaks lines.
pub(super) struct Program {
    name: String,
    child: Child,
    input: BufWriter<ChildStdin>,
    lines: Lines,
    /// Reads all that it says on stderr, so that it never waits for a reader, and keeps the last line.
    last_line: Option<JoinHandle<String>>,
    most_lag_ns: Time,
    failure: Option<String>,
}

impl Program {
    /// Starts it.
    pub fn launch(spec: &ForeignSpec) -> Result<Self, RunError> {
        let started = Command::new(&spec.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child =
            started.map_err(|e| RunError::system(format!("{}: {}", spec.name, spec.program.display()), e))?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(RunError::world(format!("{}: no pipe to it", spec.name)));
        };
        let mut program = Self {
            name: spec.name.clone(),
            child,
            input: BufWriter::new(input),
            lines: Lines::new(output),
            last_line: None,
            most_lag_ns: spec.most_lag_ns,
            failure: None,
        };
        program.last_line = Some(threads::start(move || last_line(errors))?);
        Ok(program)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why it does not go on.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Notes what it did wrong.
    pub fn fail(&mut self, what: &str) {
        self.failure = Some(format!("{} {what}", self.name));
    }

    /// The descriptor that tells when it has something to say.
    pub fn descriptor(&self) -> RawFd {
        self.lines.descriptor()
    }

    /// Writes a line; a program that is gone is noticed by its silence.
    pub fn send(&mut self, line: &Value) {
        let _ = writeln!(self.input, "{line}");
    }

    /// Hands over what was written.
    pub fn flush(&mut self) {
        let _ = self.input.flush();
    }

    /// The next line; nothing if none came in time, or if the program has failed.
    pub fn receive(&mut self, wait: Duration) -> Option<JsonLine> {
        if self.failure.is_some() {
            return None;
        }
        let Some(text) = self.lines.next(wait) else {
            if self.lines.ended() {
                let why = self.last_output();
                self.failure = Some(why);
            } else if wait > Duration::ZERO {
                self.failure = Some(format!("{}: no answer for {} s", self.name, wait.as_secs()));
            }
            return None;
        };
        match serde_json::from_str::<JsonLine>(&text) {
            Ok(JsonLine { failed: Some(why), .. }) => self.failure = Some(format!("{}: {why}", self.name)),
            Ok(JsonLine { overload_ns: Some(late), at, .. }) => self.failure = Some(self.overload(late, at)),
            Ok(line) => return Some(line),
            Err(e) => self.failure = Some(format!("{} said {text:?}: {e}", self.name)),
        }
        None
    }

    fn overload(&self, late_ns: Time, at: Time) -> String {
        format!(
            "{} was {:.1} ms behind the clock at {:.3} s (allowed: {:.0} ms): this machine cannot simulate this network \
             in real time; a smaller network, less traffic, or the virtual world",
            self.name,
            late_ns as f64 / MS as f64,
            at as f64 / 1e9,
            self.most_lag_ns as f64 / MS as f64,
        )
    }

    /// What an ended program has said last.
    fn last_output(&mut self) -> String {
        // Without a word its status says what there is to say.
        let said = self.last_line.take().and_then(|t| t.join().ok()).unwrap_or_default();
        let last = if said.is_empty() { "no word" } else { &said };
        let status = self.child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
        format!("{} ended ({status}): {last}", self.name)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It ends with its input; one that does not is ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last line that is not empty, once there are no more.
fn last_line(errors: impl Read) -> String {
    let (mut errors, mut line, mut last) = (BufReader::new(errors), Vec::new(), String::new());
    while errors.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            last = text.trim().into();
        }
        line.clear();
    }
    last
}
