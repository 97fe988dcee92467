//! The header in the repository equals the one that cbindgen generates from the sources.

use std::fs;
use std::path::Path;

/// If set, the header is written instead of compared.
const WRITE: &str = "APUS_WRITE_HEADER";

#[test]
fn the_header_is_what_cbindgen_makes_of_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = root.join("include/apus.h");
    let statuses = root.join("../bindings/src/status.rs");
    if !statuses.exists() {
        eprintln!("SKIPPED: no ../bindings; this is not a checkout of the workspace");
        return;
    }
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    // cbindgen follows the modules of `lib.rs`.
    let sources = cbindgen::Builder::new().with_src(statuses).with_src(root.join("src/lib.rs"));
    let builder = sources.with_config(config);
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    if std::env::var_os(WRITE).is_some() {
        fs::write(&header, made).unwrap();
        return;
    }
    let kept = fs::read_to_string(&header).unwrap();
    assert!(kept == made, "include/apus.h is not up to date: run this test with {WRITE}=1");
}

/// Each function of the header is defined in the sources, and the other way round.
#[test]
fn the_header_has_every_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = fs::read_to_string(root.join("include/apus.h")).unwrap();
    let mut functions = 0;
    for file in fs::read_dir(root.join("src")).unwrap() {
        let source = fs::read_to_string(file.unwrap().path()).unwrap();
        for rest in source.split("extern \"C\" fn ").skip(1) {
            let name = rest.split('(').next().unwrap();
            assert!(header.contains(&format!("{name}(")), "the header has no {name}");
            functions += 1;
        }
    }
    assert!(functions > 15, "{functions} functions");
}
