//! Rows to disk: a writer thread hashes and appends, so that the run does not wait for the disk.

use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender},
    thread::JoinHandle,
};
use tcps_core::record::{Record, RECORD_BYTES};
use tcps_plan::RunError;

const CHUNK: usize = 32_768 * RECORD_BYTES;
const IN_FLIGHT: usize = 8;

/// The canonical stream of rows with its SHA-256.
#[derive(Debug)]
pub struct Recorder {
    chunk: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    written: Receiver<()>,
    writer: JoinHandle<std::io::Result<[u8; 32]>>,
    rows: u64,
    failed: bool,
    path: Option<PathBuf>,
}

/// What a finished stream was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Number of rows.
    pub rows: u64,
    /// SHA-256 of the stream in hexadecimal.
    pub sha256: String,
}

impl Recorder {
    /// Writes to `path`, or only hashes.
    pub fn new(path: Option<&Path>) -> Result<Self, RunError> {
        let file = match path {
            Some(p) => Some(
                File::create(p)
                    .map_err(|e| RunError::system(format!("{} cannot be written", p.display()), e))?,
            ),
            None => None,
        };
        let (full, chunks) = sync_channel::<Vec<u8>>(IN_FLIGHT);
        let (back, empty) = sync_channel::<Vec<u8>>(IN_FLIGHT);
        let (tell, written) = channel();
        let writer = crate::threads::start(move || write(file, &chunks, &back, &tell))?;
        let chunk = Vec::with_capacity(CHUNK);
        Ok(Self { chunk, full, empty, written, writer, rows: 0, failed: false, path: path.map(Into::into) })
    }

    /// Appends a row.
    #[inline]
    pub fn push(&mut self, row: &Record) {
        self.chunk.extend_from_slice(&row.to_bytes());
        self.rows += 1;
        if self.chunk.len() >= CHUNK {
            self.hand_over();
        }
    }

    /// Returns when all rows so far are in the file.
    pub fn flush(&mut self) {
        if !self.chunk.is_empty() {
            self.hand_over();
        }
        // A chunk without rows is answered. A writer that has gone answers nothing.
        self.failed |= self.full.send(Vec::new()).is_err() || self.written.recv().is_err();
    }

    /// Whether rows cannot be written any more: `finish` says why.
    #[inline]
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Ends the stream.
    pub fn finish(mut self) -> Result<Recorded, RunError> {
        self.hand_over();
        let Self { full, writer, rows, path, .. } = self;
        drop(full);
        let digest = match writer.join() {
            Ok(result) => result.map_err(|e| {
                let place = path.map(|p| format!("{}: ", p.display())).unwrap_or_default();
                RunError::system(format!("{place}records cannot be written"), e)
            })?,
            Err(_) => return Err(RunError::bug("the record writer stopped")),
        };
        Ok(Recorded { rows, sha256: digest.iter().map(|b| format!("{b:02x}")).collect() })
    }

    fn hand_over(&mut self) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK));
        // A writer that cannot write has gone.
        self.failed |= self.full.send(std::mem::replace(&mut self.chunk, next)).is_err();
    }
}

fn write(
    file: Option<File>,
    chunks: &Receiver<Vec<u8>>,
    back: &SyncSender<Vec<u8>>,
    written: &Sender<()>,
) -> std::io::Result<[u8; 32]> {
    let mut file = file;
    let mut hash = Sha256::new();
    while let Ok(mut chunk) = chunks.recv() {
        if chunk.is_empty() {
            let _ = written.send(());
            continue;
        }
        hash.update(&chunk);
        if let Some(f) = file.as_mut() {
            f.write_all(&chunk)?;
        }
        chunk.clear();
        let _ = back.try_send(chunk);
    }
    Ok(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileTypeExt;
    use tcps_core::record::Kind;

    #[test]
    fn the_hash_is_that_of_the_file() {
        let path = std::env::temp_dir().join(format!("tcps-recorder-{}", std::process::id()));
        let mut r = Recorder::new(Some(&path)).unwrap();
        for i in 0..100_000 {
            r.push(&Record::new(i, Kind::Sent));
        }
        r.flush();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 100_000 * RECORD_BYTES as u64);
        let done = r.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((done.rows, bytes.len()), (100_000, 100_000 * RECORD_BYTES));
        let want: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(done.sha256, want);
    }

    #[test]
    fn a_full_disk_is_noticed_while_rows_come_and_named_at_the_end() {
        let full = Path::new("/dev/full");
        if !std::fs::metadata(full).is_ok_and(|m| m.file_type().is_char_device()) {
            return eprintln!("skipped: /dev/full is no device here");
        }
        let mut r = Recorder::new(Some(full)).unwrap();
        let pushed =
            (0..100_000_000).take_while(|&i| (r.push(&Record::new(i, Kind::Sent)), !r.failed()).1).count();
        assert!(pushed <= CHUNK / RECORD_BYTES * (IN_FLIGHT + 3), "{pushed} rows into a full disk");
        let e = r.finish().unwrap_err();
        assert!(e.found.starts_with("/dev/full: ") && e.to_string().contains("No space left"), "{e}");
    }

    #[test]
    fn a_path_that_cannot_be_written_is_named() {
        let e = Recorder::new(Some(Path::new("/nonexistent/records.bin"))).unwrap_err();
        assert!(e.found.contains("/nonexistent/records.bin"));
    }
}
