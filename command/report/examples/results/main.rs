//! The page `docs/results/tables.md`: measures what its index lists, and writes it from the
//! results.
//!
//! ```text
//! cargo build --release
//! cargo run --release -p apus-report --example results -- measure target/release/apus-lab     # all tables; or NAME...
//! cargo run --release -p apus-report --example results -- write > docs/results/tables.md
//! ```
//!
//! `docs/results/index.json` lists the tables of the page: title, words, columns, ratios with their
//! goals, and the command of each result. `measure` runs these commands and stores their output,
//! with the command and the date, as `docs/results/NAME.json`. `write` runs nothing: the same files
//! give the same page, byte for byte, and a test of this crate compares the committed page with
//! them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::SystemTime;
use std::{env, fs};

use serde_json::{Value, json};

mod page;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let folder = page::folder();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write"] => page::render(&folder).map(|page| print!("{page}")),
        ["measure", apus, ref names @ ..] => measure(&folder, Path::new(apus), names),
        _ => Err("usage: `write`, or `measure PATH-OF-APUS [NAME...]`".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the commands of the named results, or of all results without names, and stores their
/// output.
///
/// A command that fails does not stop the others.
fn measure(folder: &Path, apus: &Path, names: &[&str]) -> Result<(), String> {
    let index = page::Index::read(folder)?;
    let known: Vec<_> = index.results().collect();
    if let Some(name) = names.iter().find(|name| known.iter().all(|one| one.name != **name)) {
        return Err(format!("index.json has no result `{name}`"));
    }
    let selected = known.iter().filter(|one| names.is_empty() || names.contains(&&*one.name));
    let mut failed = Vec::new();
    for one in selected {
        eprintln!("apus-lab {}", one.command);
        if let Err(error) = store(apus, &one.command, &page::file(folder, &one.name)) {
            eprintln!("{}: {error}", one.name);
            failed.push(one.name.clone());
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", failed.join(", "))) }
}

/// Runs one command and replaces the file of its result.
fn store(apus: &Path, command: &str, file: &PathBuf) -> Result<(), String> {
    let mut run = Command::new(apus);
    run.args(command.split_whitespace()).arg("--json").stderr(Stdio::inherit());
    let output = run.output().map_err(|error| format!("start {}: {error}", apus.display()))?;
    if !output.status.success() {
        return Err(format!("ended with {}", output.status));
    }
    let result: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("read its output: {error}"))?;
    let stored = json!({ "command": command, "date": today(), "result": result });
    let text = serde_json::to_string_pretty(&stored).expect("a value is written") + "\n";
    fs::write(file, text).map_err(|error| format!("write {}: {error}", file.display()))
}

/// Returns today's date (UTC), like `2026-11-22`.
fn today() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    page::date(since.as_secs() / 86_400)
}
