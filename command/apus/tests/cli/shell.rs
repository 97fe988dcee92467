//! The command in a shell: completions and man pages, pipes closed early, full disks.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::harness::{Service, apus, run, text};

/// Commands that completions and man pages must contain.
const COMMANDS: [&str; 12] = [
    "serve",
    "call",
    "fs",
    "decode",
    "keys",
    "trace",
    "doctor",
    "tune",
    "metrics",
    "top",
    "completions",
    "man",
];

#[test]
fn completions_know_every_command_and_nothing_hidden() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let script = text(&output.stdout);
        for word in COMMANDS.iter().chain(&["timeline", "receivers", "keep-going"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains(apus_measure::process::AGENT), "{shell}");
    }
}

#[test]
fn man_pages_are_written_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("not/there/yet");
    let output = apus().arg("man").arg(&pages).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for command in COMMANDS {
        let page = fs::read_to_string(pages.join(format!("apus-{command}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains("Examples:"), "{command}: {page}");
    }
    assert!(pages.join("apus-trace-rtt.1").exists());
    let first = fs::read_to_string(pages.join("apus.1")).unwrap();
    assert_eq!(text(&run(["man"]).stdout), first);
}

#[test]
fn man_pages_that_cannot_be_written_are_an_error() {
    let output = run(["man", "/dev/null/pages"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/dev/null/pages"));
}

#[test]
fn a_closed_output_is_no_error() {
    let service = Service::start(&[]);
    let mut child = apus()
        .args(["call", &service.address(), "--count", "10000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // The reading end is closed now.
    let output = child.wait_with_output().unwrap();
    assert!(line.starts_with("reply 1 from"), "{line}");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn a_full_disk_is_an_error() {
    for words in [&["man"][..], &["--help"], &["completions", "bash"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = apus().args(words).stdout(full).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(text(&output.stderr).contains("No space left on device"), "{words:?}");
    }
}

#[test]
fn the_agent_command_is_hidden() {
    let output = run([apus_measure::process::AGENT]);
    assert_eq!(output.status.code(), Some(1), "the agent receives no task");
    assert!(!text(&run(["--help"]).stdout).contains(apus_measure::process::AGENT));
}
