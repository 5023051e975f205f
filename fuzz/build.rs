//! Compiles the firmware's core into the fuzz targets; what C leaves undefined, and the ends of its arrays, stop a run.

fn main() {
    let core = "../firmware/core";
    cc::Build::new()
        .files([format!("{core}/frame.c"), format!("{core}/board.c"), "src/board.c".into()])
        .include(core)
        .flag("-std=c11")
        .flag_if_supported("-fsanitize=undefined")
        .flag_if_supported("-fsanitize=bounds-strict")
        .flag_if_supported("-fsanitize-undefined-trap-on-error")
        .warnings_into_errors(true)
        .compile("firmware");
    for file in ["frame.c", "frame.h", "board.c", "board.h"] {
        println!("cargo:rerun-if-changed={core}/{file}");
    }
    println!("cargo:rerun-if-changed=src/board.c");
}
