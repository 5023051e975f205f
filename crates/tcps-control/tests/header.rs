//! The C header says what the Rust structures are.

use std::mem::size_of;

use tcps_core::hook::{HookIn, HookOut};

const HEADER: &str = include_str!("../include/tcps_hook.h");

/// Fields of a structure in the header, in order.
fn fields(name: &str) -> Vec<String> {
    let end = HEADER.find(&format!("}} {name};")).expect("the structure");
    let start = HEADER[..end].rfind("typedef struct {").expect("its beginning");
    let lines = HEADER[start..end].lines().skip(1);
    lines.filter_map(|line| Some(line.split_once(';')?.0.split([' ', '*']).next_back()?.to_owned())).collect()
}

/// The names in the header stand in the order of their offsets in Rust; the header itself asserts the sizes.
#[test]
fn the_structures_have_the_layout_that_the_header_asserts() {
    for (name, layout) in [("tcps_in", HookIn::LAYOUT), ("tcps_out", HookOut::LAYOUT)] {
        assert!(layout.windows(2).all(|pair| pair[0].1 < pair[1].1), "{name}");
        assert_eq!(fields(name), layout.iter().map(|(field, _)| *field).collect::<Vec<_>>());
    }
    if size_of::<usize>() == 8 {
        assert!(HEADER.contains(
            "sizeof(tcps_in) == 72 && offsetof(tcps_in, x) == 40 && offsetof(tcps_in, allowed_bps) == 64"
        ));
        assert!(HEADER.contains("sizeof(tcps_out) == 32 && offsetof(tcps_out, y) == 16"));
        assert_eq!((size_of::<HookIn>(), HookIn::LAYOUT[10]), (72, ("x", 40)));
        assert_eq!(
            HookIn::LAYOUT.last(),
            Some(&("allowed_bps", 64)),
            "what hooks were built with stays where it is"
        );
        assert_eq!((size_of::<HookOut>(), HookOut::LAYOUT[4]), (32, ("y", 16)));
    }
}
