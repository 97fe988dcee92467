//! How does a tree of files get to another host, one command for each file?
//!
//! ```sh
//! cargo run --release -p apus --example tree-sync
//! ```
//!
//! A command has a head (path, mode, time of the last change) and the file's content, and waits for its reply. That is how
//! network file systems and synchronisers work, and where a TCP connection can be a thousand times slower than it has to
//! be: whoever writes the head and then the content in two calls waits for a delayed acknowledgement between them
//! (`apus lab small-writes` shows why). Here the same tree is synchronised in four ways, side by side. They take turns in
//! several rounds, each of which begins with another one, since what a file system does meanwhile moves the times more than
//! the network does; but for `tcp split`, which is so slow that once is enough:
//!
//! - `apus`: one call with two slices, over UDP as between hosts;
//! - `apus, same host`: the same through shared memory, which endpoints of one host take by themselves;
//! - `tcp gathered`: one `writev` of both;
//! - `tcp split`: two writes.
//!
//! | file | question |
//! |---|---|
//! | `command` | what does a command look like |
//! | `store` | what does a server do with it |
//! | `over_apus`, `over_tcp` | how do commands and replies travel |
//! | `tree` | where do files come from, and are two trees equal |

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

use command::Command;
use tree::Tree;

/// Synchronises a tree of files with a server, one command for each file: over apus, and over TCP in two ways
#[derive(Debug, Parser)]
#[command(name = "tree-sync")]
struct Arguments {
    /// Files in the tree: 1 to 100000
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    files: u32,

    /// Rounds in which the ways take turns: 1 to 1000
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,
}

/// What went wrong, whoever it was.
type Failure = Box<dyn Error + Send + Sync>;

/// How long each command took, with its reply.
type Times = Vec<Duration>;

/// The upper one of the two in the middle, if their number is even.
fn median(mut times: Times) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// What was seen of one way, an element for each round.
#[derive(Debug, Default)]
struct Seen {
    /// The whole tree.
    all: Times,
    /// The median of its files.
    file: Times,
}

/// How commands travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Apus,
    ApusSameHost,
    TcpGathered,
    TcpSplit,
}

impl Way {
    /// The slowest comes last.
    const ALL: [Self; 4] = [Self::Apus, Self::ApusSameHost, Self::TcpGathered, Self::TcpSplit];

    /// Brings all files of `from` to a server that writes them to `to`, and gives the time that each took.
    fn synchronise(self, from: &Tree, to: &Path) -> Result<Times, Failure> {
        let mut progress = Progress::of(self, from.files.len());
        // As a client does it: reads a file, sends its command, waits for the reply.
        let push = |send: &mut dyn FnMut(Command) -> Result<(), Failure>| {
            let mut times = Vec::with_capacity(from.files.len());
            for path in &from.files {
                let began = Instant::now();
                send(Command::of_file(&from.root, path)?)?;
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

impl fmt::Display for Way {
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
    match run(&Arguments::parse(), &mut std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes a tree, synchronises it in every way, and compares. Nothing is left behind.
fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let source = tree::make(&folder.path().join("source"), arguments.files)?;
    let bytes: u64 = source.bytes()?;
    writeln!(
        out,
        "{} files, {:.1} MB: one command for each, and each waits for its reply\n",
        source.files.len(),
        bytes as f64 / 1e6
    )?;
    let seen = take_turns(&source, folder.path(), arguments.runs as usize)?;
    folder.close()?;
    report(&seen, out)
}

/// All ways, by their numbers.
type Everything = [Seen; Way::ALL.len()];

fn take_turns(source: &Tree, below: &Path, rounds: usize) -> Result<Everything, Failure> {
    let mut seen = Everything::default();
    for round in 0..rounds {
        for turn in 0..Way::ALL.len() {
            let way = Way::ALL[(round + turn) % Way::ALL.len()];
            if way == Way::TcpSplit && round > 0 {
                continue;
            }
            let target = tempfile::tempdir_in(below)?;
            let took = way.synchronise(source, target.path())?;
            tree::compare(source, &Tree::read(target.path())?)
                .map_err(|difference| format!("{way}: {difference}"))?;
            seen[way as usize].all.push(took.iter().sum());
            seen[way as usize].file.push(median(took));
        }
    }
    Ok(seen)
}

fn report(seen: &Everything, out: &mut impl Write) -> Result<(), Failure> {
    for (way, seen) in Way::ALL.iter().zip(seen) {
        writeln!(out, "{way:<16}{seen}   equal")?;
    }
    let all = |way| seen[way as usize].all.clone();
    let of = |way| median(all(way)).as_secs_f64();
    // Inside each round, as the rounds differ.
    let rounds = all(Way::Apus).into_iter().zip(all(Way::TcpGathered));
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
        of(Way::TcpSplit) / of(Way::TcpGathered),
        of(Way::TcpSplit) / of(Way::Apus)
    )?;
    Ok(())
}

impl fmt::Display for Seen {
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

/// How far it is, on a terminal, for what takes longer than two seconds.
struct Progress {
    way: Way,
    done: usize,
    all: usize,
    began: Instant,
    shown: bool,
}

impl Progress {
    fn of(way: Way, all: usize) -> Self {
        Self { way, done: 0, all, began: Instant::now(), shown: false }
    }

    fn step(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(20)
            && self.began.elapsed() > Duration::from_secs(2)
            && stderr().is_terminal()
        {
            self.shown = true;
            eprint!("\r{}: {} of {}", self.way, self.done, self.all);
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
    fn every_way_brings_the_same_tree() {
        let folder = tempfile::tempdir().unwrap();
        let source = tree::make(&folder.path().join("source"), 12).unwrap();
        for way in Way::ALL {
            let target = folder.path().join(way.to_string());
            way.synchronise(&source, &target).unwrap();
            tree::compare(&source, &Tree::read(&target).unwrap()).unwrap();
        }
    }

    #[test]
    fn the_times_are_told_and_that_the_trees_are_equal() {
        let mut out = Vec::new();
        run(&Arguments { files: 5, runs: 2 }, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("5 files, "), "{text}");
        for way in Way::ALL {
            let line = text.lines().find(|line| line.starts_with(&format!("{way:<16}"))).unwrap();
            assert!(line.ends_with("equal"), "{line}");
        }
        assert!(text.contains("all trees are equal to the source"), "{text}");
    }

    /// A way that loses something would be noticed.
    #[test]
    fn what_the_server_refuses_is_an_error_of_the_client() {
        let folder = tempfile::tempdir().unwrap();
        let source = tree::make(&folder.path().join("source"), 1).unwrap();
        let not_a_folder = folder.path().join("file");
        std::fs::write(&not_a_folder, "in the way").unwrap();
        for way in Way::ALL {
            let error = way.synchronise(&source, &not_a_folder).unwrap_err().to_string();
            assert!(error.contains("the server refused"), "{way}: {error}");
        }
    }
}
