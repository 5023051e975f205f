//! The mutant that this process runs with, by its number in the environment.

use std::{
    env, fs,
    io::Write as _,
    sync::{
        atomic::{AtomicBool, Ordering},
        OnceLock,
    },
};

static MUTANT: OnceLock<Option<u32>> = OnceLock::new();
static REACHED: [AtomicBool; 4096] = [const { AtomicBool::new(false) }; 4096];

/// Whether mutant `id` is on. The first time that one is asked for, its number goes to the file `TCPSBED_MUTANTS_REACHED`.
pub fn is(id: u32) -> bool {
    if !REACHED[id as usize].swap(true, Ordering::Relaxed) {
        if let Some(file) = env::var_os("TCPSBED_MUTANTS_REACHED") {
            let file = fs::OpenOptions::new().append(true).create(true).open(file);
            let _ = file.and_then(|mut file| file.write_all(format!("{id}\n").as_bytes()));
        }
    }
    *MUTANT.get_or_init(|| env::var("TCPSBED_MUTANT").ok()?.parse().ok()) == Some(id)
}
