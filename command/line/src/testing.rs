//! Helpers for the tests of both programs.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{self, Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use crate::definitions::examples;
use crate::failure::Failure;

/// Checks that the definitions of a program are consistent, and that each command and argument has
/// a help text and valid examples. The first example is printed when the arguments are wrong, so
/// it must parse.
///
/// # Panics
///
/// A definition is inconsistent, or a help text or valid example is missing.
pub fn check_definitions<T>(
    definitions: &clap::Command,
    parse: impl Fn(Vec<OsString>) -> Result<T, Failure>,
) {
    definitions.clone().debug_assert();
    let program = definitions.get_name();
    let mut commands = vec![definitions];
    while let Some(command) = commands.pop() {
        let name = command.get_name();
        assert!(command.get_about().is_some(), "`{name}` has no help text");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{name} {}: no help text", argument.get_id());
        }
        let examples = examples(command, program);
        assert!(!examples.is_empty(), "`{name}` has no example");
        for example in examples {
            // The shell handles redirections.
            let line = example.split(" > ").next().unwrap_or_default();
            let words = shlex::split(line).unwrap_or_default().into_iter().map(OsString::from);
            if let Err(failure) = parse(words.collect()) {
                panic!("{example}: {failure:?}");
            }
        }
        commands.extend(command.get_subcommands());
    }
}

/// Parses standard output, all of which must be one JSON object.
///
/// # Panics
///
/// Standard output is not one JSON object.
#[must_use]
pub fn object(output: &Output) -> Value {
    let text = text(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the output of a process as text.
///
/// # Panics
///
/// It is not UTF-8.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns a PATH with a script that replaces a program of the system. The script is written to
/// `folder`.
///
/// # Panics
///
/// It cannot be written.
#[must_use]
pub fn with_fake(folder: &Path, program: &str, script: &str) -> String {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    // A separate process writes the script. A file cannot be executed while any process has it open
    // for writing, and a child started concurrently by another thread of this test would inherit
    // the open file.
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\"";
    let mut writer = Command::new("sh");
    let written = writer.args(["-c", write]).arg(bin.join(program)).arg(script).status();
    assert!(written.unwrap().success());
    format!("{}:{}", bin.display(), env::var("PATH").unwrap())
}

/// Returns the message in `stderr` if it reports that this machine lacks a prerequisite of the
/// test.
#[must_use]
pub fn skip_reason(stderr: &str) -> Option<&str> {
    let reasons = [
        "is not installed",
        "may not create network namespaces",
        "has no queueing",
        "may not have threads at real-time priority",
        "this takes two cores",
    ];
    reasons.iter().any(|reason| stderr.contains(reason)).then_some(stderr)
}

/// Busy processes, two for each core, that run until this value is dropped. They also end with the
/// test process, however it ends.
#[derive(Debug)]
pub struct ForeignLoad(Vec<Child>);

impl ForeignLoad {
    /// Starts the processes.
    ///
    /// # Panics
    ///
    /// No shell is available.
    #[must_use]
    pub fn on_every_core() -> Self {
        let cores = thread::available_parallelism().unwrap().get();
        let spin = "while kill -0 \"$0\"; do :; done 2> /dev/null";
        let parent = process::id().to_string();
        let child = |_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", spin, &parent]).stdin(Stdio::null()).stdout(Stdio::null());
            shell.spawn().unwrap()
        };
        Self((0..2 * cores).map(child).collect())
    }
}

impl Drop for ForeignLoad {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
