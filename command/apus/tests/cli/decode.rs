//! `apus decode` of files, pipes and damaged captures.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;

use crate::harness::{apus, object, run, text};
use serde_json::json;

fn story() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/cmd/decode.in/story.pcap").into()
}

#[test]
fn json_is_one_object_with_a_line_for_each_packet() {
    let path = story();
    let output = run(["decode", path.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let all = object(&output);
    assert_eq!((&all["experiment"], &all["notes"]), (&json!("decode"), &json!([])));
    let packets = all["packets"].as_array().unwrap();
    let lines = text(&output.stdout);
    assert_eq!(lines.lines().filter(|line| line.contains("\"words\":")).count(), packets.len());
    let rows = all["rows"].as_array().unwrap().iter();
    let counted: u64 = rows.map(|row| row["packets"].as_u64().unwrap()).sum();
    assert_eq!(counted, packets.len() as u64);
    // Request and response refer to each other.
    let rpc = &all["rpcs"][0];
    let of = |number: &serde_json::Value| {
        packets.iter().find(|packet| packet["packet"] == *number).unwrap()
    };
    assert_eq!(of(&rpc["request_in"])["response_in"], rpc["response_in"]);
    assert_eq!(of(&rpc["response_in"])["request_in"], rpc["request_in"]);
}

#[test]
fn a_pipe_is_decoded_while_it_is_written() {
    let capture = fs::read(story()).unwrap();
    let mut child =
        apus().args(["decode", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Header and first record. Their line is printed before further input is written.
    let first = 24 + 16 + 14 + 28 + 56 + 64;
    stdin.write_all(&capture[..first]).unwrap();
    let line = lines.next().unwrap().unwrap();
    assert!(line.ends_with("DATA rpc 100 request 0..64 of 64 [complete]"), "{line}");
    stdin.write_all(&capture[first..]).unwrap();
    drop(stdin);
    assert!(lines.map(Result::unwrap).any(|line| line.contains("(request in 1, 30.0 µs before)")));
    assert!(child.wait().unwrap().success());
}

#[test]
fn packets_before_the_damage_are_printed_and_the_damage_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.pcap");
    let capture = fs::read(story()).unwrap();
    fs::write(&path, &capture[..capture.len() - 1]).unwrap();
    let name = path.to_str().unwrap();
    let whole = text(&run(["decode", story().to_str().unwrap()]).stdout);
    let output = run(["decode", name]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    assert_eq!(shown.lines().count() + 1, whole.lines().count());
    assert!(
        text(&output.stderr).contains("cut.pcap: the capture is cut off in the record at byte ")
    );
    for more in [&["--json"][..], &["--summary", "--json"]] {
        let output = run(["decode", name].iter().chain(more));
        assert_eq!(output.status.code(), Some(1));
        let notes = object(&output)["notes"].clone();
        assert!(notes[0].as_str().unwrap().contains("is cut off in the record"), "{notes}");
    }
}

#[test]
fn a_closed_output_is_no_failure() {
    let mut child = apus()
        .args(["decode", "-"])
        .stdin(File::open(story()).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}
