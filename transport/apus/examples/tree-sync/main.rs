//! Copies a tree of files to a server, one command per file, over apus and over TCP.
//!
//! ```sh
//! cargo run --release -p apus --example tree-sync
//! ```
//!
//! A command has a head (path, mode, time of the last change) and the file's content. The client
//! waits for each reply, as network file systems and synchronisers do. Over TCP this can be a
//! thousand times slower than necessary: a client that writes head and content in two calls waits
//! for a delayed acknowledgement between them (`apus-lab lab small-writes` shows why). The example
//! copies the same tree with four methods:
//!
//! - `apus`: one call with two slices, over UDP as between hosts;
//! - `apus, same host`: one call with two slices through shared memory, which endpoints of one host
//!   use by default;
//! - `tcp gathered`: one `writev` of both;
//! - `tcp split`: two writes.
//!
//! The methods alternate in several rounds, and each round starts with another method, since the
//! file system varies more than the network. `tcp split` is so slow that it runs once.
//!
//! | file | contents |
//! |---|---|
//! | `command` | encoding of a command |
//! | `store` | the server's side: creates files |
//! | `over_apus`, `over_tcp` | transport of commands and replies |
//! | `tree` | creation and comparison of trees |

mod command;
mod over_apus;
mod over_tcp;
mod store;
mod tree;

use std::error::Error;
use std::fmt;
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use command::FileCommand;
use tree::Tree;

/// Synchronises a tree of files with a server, one command for each file: over apus, and over TCP
/// in two ways
#[derive(Debug, Parser)]
#[command(name = "tree-sync")]
struct SyncArguments {
    /// Files in the tree: 1 to 100000
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    files: u32,

    /// Rounds in which the methods alternate: 1 to 1000
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,
}

/// Any error of the example.
type Failure = Box<dyn Error + Send + Sync>;

/// Durations of commands, from sending to the reply.
type Times = Vec<Duration>;

/// Returns the median; of an even number, the upper one of the middle two.
fn median(mut times: Times) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The durations of one method, with an element per round.
#[derive(Debug, Default)]
struct Durations {
    /// Durations of the whole tree.
    all: Times,
    /// Medians of its files.
    file: Times,
}

/// A method to transport commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Apus,
    ApusSameHost,
    TcpGathered,
    TcpSplit,
}

impl Method {
    /// All methods, the slowest last.
    const ALL: [Self; 4] = [Self::Apus, Self::ApusSameHost, Self::TcpGathered, Self::TcpSplit];

    /// Copies all files of `from` to a server that writes them to `to`. Returns the duration for
    /// each file.
    fn synchronise(self, from: &Tree, to: &Path) -> Result<Times, Failure> {
        let mut progress = Progress::of(self, from.files.len());
        // The client's loop: read a file, send its command, wait for the reply.
        let push = |send: &mut dyn FnMut(FileCommand) -> Result<(), Failure>| {
            let mut times = Vec::with_capacity(from.files.len());
            for path in &from.files {
                let began = Instant::now();
                send(FileCommand::of_file(&from.root, path)?)?;
                times.push(began.elapsed());
                progress.step();
            }
            Ok(times)
        };
        match self {
            Self::Apus => over_apus::run(to, false, push),
            Self::ApusSameHost => over_apus::run(to, true, push),
            Self::TcpGathered => over_tcp::run(to, over_tcp::Writes::Gathered, push),
            Self::TcpSplit => over_tcp::run(to, over_tcp::Writes::Split, push),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Apus => "apus",
            Self::ApusSameHost => "apus, same host",
            Self::TcpGathered => "tcp gathered",
            Self::TcpSplit => "tcp split",
        })
    }
}

fn main() -> ExitCode {
    match run(&SyncArguments::parse(), &mut std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Creates a tree, copies it with every method, and compares the results. All files are temporary.
fn run(arguments: &SyncArguments, out: &mut impl Write) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let source = tree::make(&folder.path().join("source"), arguments.files)?;
    let bytes: u64 = source.bytes()?;
    writeln!(
        out,
        "{} files, {:.1} MB: one command for each, and each waits for its reply\n",
        source.files.len(),
        bytes as f64 / 1e6
    )?;
    let results = measure(&source, folder.path(), arguments.runs as usize)?;
    folder.close()?;
    report(&results, out)
}

/// The durations of all methods, indexed by [`Method`].
type Results = [Durations; Method::ALL.len()];

fn measure(source: &Tree, below: &Path, rounds: usize) -> Result<Results, Failure> {
    let mut results = Results::default();
    for round in 0..rounds {
        for turn in 0..Method::ALL.len() {
            let method = Method::ALL[(round + turn) % Method::ALL.len()];
            if method == Method::TcpSplit && round > 0 {
                continue;
            }
            let target = tempfile::tempdir_in(below)?;
            let took = method.synchronise(source, target.path())?;
            tree::compare(source, &Tree::read(target.path())?)
                .map_err(|difference| format!("{method}: {difference}"))?;
            results[method as usize].all.push(took.iter().sum());
            results[method as usize].file.push(median(took));
        }
    }
    Ok(results)
}

fn report(results: &Results, out: &mut impl Write) -> Result<(), Failure> {
    for (method, results) in Method::ALL.iter().zip(results) {
        writeln!(out, "{method:<16}{results}   equal")?;
    }
    let all = |method| results[method as usize].all.clone();
    let of = |method| median(all(method)).as_secs_f64();
    // Ratios within each round, since rounds differ.
    let rounds = all(Method::Apus).into_iter().zip(all(Method::TcpGathered));
    let mut ratios: Vec<f64> =
        rounds.map(|(apus, tcp)| apus.as_secs_f64() / tcp.as_secs_f64()).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    writeln!(
        out,
        "\nall trees are equal to the source in paths, contents, modes and times\n\
         apus takes {:.2} ({:.2} to {:.2}) times as long as tcp gathered\n\
         tcp split takes {:.1} times as long as tcp gathered, and {:.1} times as long as apus",
        ratios[ratios.len() / 2],
        ratios[0],
        ratios[ratios.len() - 1],
        of(Method::TcpSplit) / of(Method::TcpGathered),
        of(Method::TcpSplit) / of(Method::Apus)
    )?;
    Ok(())
}

impl fmt::Display for Durations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: Option<&Duration>| time.copied().unwrap_or_default().as_secs_f64();
        let (least, most) = (seconds(self.all.iter().min()), seconds(self.all.iter().max()));
        let all = median(self.all.clone()).as_secs_f64();
        let file = median(self.file.clone()).as_secs_f64() * 1e6;
        write!(
            formatter,
            "{all:>9.3} s ({least:.3} to {most:.3})   median of a file {file:>9.1} us"
        )
    }
}

/// Progress on a terminal, for methods that take longer than two seconds.
struct Progress {
    method: Method,
    done: usize,
    all: usize,
    began: Instant,
    shown: bool,
}

impl Progress {
    fn of(method: Method, all: usize) -> Self {
        Self { method, done: 0, all, began: Instant::now(), shown: false }
    }

    fn step(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(20)
            && self.began.elapsed() > Duration::from_secs(2)
            && stderr().is_terminal()
        {
            self.shown = true;
            eprint!("\r{}: {} of {}", self.method, self.done, self.all);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_copies_the_same_tree() {
        let folder = tempfile::tempdir().unwrap();
        let source = tree::make(&folder.path().join("source"), 12).unwrap();
        for method in Method::ALL {
            let target = folder.path().join(method.to_string());
            method.synchronise(&source, &target).unwrap();
            tree::compare(&source, &Tree::read(&target).unwrap()).unwrap();
        }
    }

    #[test]
    fn the_report_has_times_and_says_that_the_trees_are_equal() {
        let mut out = Vec::new();
        let arguments = ["tree-sync", "--files", "20", "--runs", "2"];
        run(&SyncArguments::try_parse_from(arguments).unwrap(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("20 files, "), "{text}");
        for method in Method::ALL {
            let line =
                text.lines().find(|line| line.starts_with(&format!("{method:<16}"))).unwrap();
            assert!(line.ends_with("equal"), "{line}");
        }
        assert!(text.contains("all trees are equal to the source"), "{text}");
    }

    /// A file that is not written would be noticed.
    #[test]
    fn a_refusal_of_the_server_is_an_error_of_the_client() {
        let folder = tempfile::tempdir().unwrap();
        let source = tree::make(&folder.path().join("source"), 1).unwrap();
        let not_a_folder = folder.path().join("file");
        std::fs::write(&not_a_folder, "in the way").unwrap();
        for method in Method::ALL {
            let error = method.synchronise(&source, &not_a_folder).unwrap_err().to_string();
            assert!(error.contains("the server refused"), "{method}: {error}");
        }
    }
}
