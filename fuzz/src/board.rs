//! Frames on a serial line: our reader and the firmware's find the same in any bytes, and what the firmware writes is right.

#![expect(unsafe_code, reason = "calls firmware in C")]

use tcps_wire::board::{write, Read, Reader, Repr};

extern "C" {
    fn firmware_reads(line: *const u8, length: usize, bytes: *mut u8, room: usize) -> usize;
    fn firmware_writes(line: *const u8, length: usize, bytes: *mut u8, room: usize) -> usize;
}

/// A function of the firmware's, and room for what it gives out.
fn called(function: unsafe extern "C" fn(*const u8, usize, *mut u8, usize) -> usize, line: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 64 * line.len() + 1024];
    // SAFETY: both lengths are those of the slices, and the function keeps neither of them.
    let n = unsafe { function(line.as_ptr(), line.len(), out.as_mut_ptr(), out.len()) };
    out.truncate(n);
    out
}

/// The frames of a line: numbers of the firmware's events, and bodies.
fn reads(line: &[u8]) -> Vec<u8> {
    let mut reader = Reader::default();
    let mut out = Vec::new();
    for &byte in line {
        match reader.take(byte) {
            None => {}
            Some(Read::Body(body)) => {
                out.extend_from_slice(&[1, body.len() as u8]);
                out.extend_from_slice(body);
            }
            Some(Read::NoCobs) => out.push(2),
            Some(Read::NoCrc) => out.push(3),
            Some(Read::TooLong) => out.push(5),
        }
    }
    out
}

/// A serial line to a board.
pub fn board(data: &[u8]) {
    // The firmware tells a frame that is too short from one that is torn; we count both as torn.
    let theirs = called(firmware_reads, data);
    let mut ours = reads(data).into_iter();
    let mut at = 0;
    while at < theirs.len() {
        let event = if theirs[at] == 4 { 2 } else { theirs[at] };
        assert_eq!(ours.next(), Some(event));
        at += 1;
        if event == 1 {
            let n = usize::from(theirs[at]) + 1;
            assert!(ours.by_ref().take(n).eq(theirs[at..at + n].iter().copied()));
            at += n;
        }
    }
    assert_eq!(ours.next(), None);
    answers(&called(firmware_writes, data));
    // The same bytes as a body.
    if let Ok((sequence, repr)) = Repr::parse(data) {
        let (mut body, mut line) = (Vec::new(), Vec::new());
        repr.emit(sequence, &mut body);
        assert_eq!(body, data);
        write(&body, &mut line);
        assert_eq!(reads(&line)[2..], body);
        answers(&called(firmware_writes, &line));
    }
}

/// All that a board writes are whole frames from a board, numbered one after the other.
fn answers(line: &[u8]) {
    let (mut reader, mut next) = (Reader::default(), 0u16);
    for &byte in line {
        match reader.take(byte) {
            None => {}
            Some(Read::Body(body)) => {
                let Ok((sequence, repr)) = Repr::parse(body) else { panic!("{body:?}") };
                assert!(!matches!(repr, Repr::Hello { .. } | Repr::Sample { .. } | Repr::Query));
                assert_eq!(sequence, next);
                next = next.wrapping_add(1);
            }
            Some(other) => panic!("{other:?}"),
        }
    }
    assert!(line.is_empty() || line.ends_with(&[0]));
}
