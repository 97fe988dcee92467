//! `file`.

use crate::program::{ExampleServer, failure, output};
use std::fs;

#[test]
fn a_file_of_64_megabytes_comes_back_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let [served, original, copy] =
        ["served", "original", "copy"].map(|name| folder.path().join(name));
    fs::create_dir(&served).unwrap();
    let content: Vec<u8> = (0..64_000_000_u32).map(|at| (at ^ (at >> 11)) as u8).collect();
    fs::write(&original, &content).unwrap();
    let [served, original_name, copy_name] =
        [&served, &original, &copy].map(|path| path.to_str().unwrap());

    let server = ExampleServer::start("file", &["serve", "127.0.0.1:0", served]);
    let put = output("file", &["put", &server.address, original_name]);
    assert!(put.starts_with("put 64000000 bytes in "), "{put}");
    let got = output("file", &["get", &server.address, "original", copy_name]);
    assert!(got.starts_with("got 64000000 bytes in "), "{got}");
    assert!(fs::read(&copy).unwrap() == content, "the copy differs");

    let missing = failure("file", &["get", &server.address, "other", copy_name]);
    assert!(missing.contains("No such file"), "{missing}");
    let outside = failure("file", &["get", &server.address, "../original", copy_name]);
    assert!(outside.contains("invalid"), "{outside}");
}
