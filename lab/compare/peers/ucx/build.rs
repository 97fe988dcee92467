//! Builds `src/side.c` with the UCX of the system.

fn main() {
    println!("cargo:rerun-if-changed=src/side.c");
    let library = pkg_config::probe_library("ucx").expect("UCX is installed");
    cc::Build::new()
        .opt_level(3)
        .includes(library.include_paths)
        .file("src/side.c")
        .compile("side");
}
