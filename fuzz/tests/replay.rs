//! Every target over its seeds and over random changes of them, without libFuzzer.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread::{self, available_parallelism},
};
use tcps_fuzz::TARGETS;

const CHANGES: u32 = 2_000;

/// Xorshift: always the same changes.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len() + 1);
        match self.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, self.below(256) as u8),
            2 => bytes.extend_from_slice(&other[self.below(other.len())..]),
            3 => drop(bytes.splice(at..at, [0xff, 0xff, 0xff, 0xff])),
            _ if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            _ => {}
        }
        bytes.truncate(4096);
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|p| fs::read(p).unwrap()).collect()
}

#[test]
fn seeds_and_random_changes_of_them_find_nothing() {
    let next = AtomicUsize::new(0);
    let all = || {
        while let Some((name, target)) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
            replay(name, *target);
        }
    };
    let cores = available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(all))));
}

fn replay(name: &str, target: fn(&[u8])) {
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    seeds.iter().for_each(|seed| target(seed));
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for _ in 0..CHANGES {
        let mut bytes = seeds[chance.below(seeds.len())].clone();
        let other = seeds[chance.below(seeds.len())].clone();
        for _ in 0..1 + chance.below(4) {
            chance.change(&mut bytes, &other);
        }
        target(&bytes);
    }
}

/// A target that nobody starts finds nothing.
#[test]
fn every_target_has_its_program() {
    for (name, _) in TARGETS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz_targets/{name}.rs"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(&format!("tcps_fuzz::{name}(")), "{}", path.display());
    }
}
