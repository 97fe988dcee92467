//! What keeps this host, or the path to a peer, from carrying messages fast?

use std::net::SocketAddr;
use std::path::PathBuf;

use apus::Poll;
use apus_lab::doctor::{self, Listener, Options, PORT};
use apus_lab::process::Stop;
use clap::Args;
use serde_json::json;

use crate::address::Address;
use crate::failure::Failure;
use crate::{output, signals};

/// Check this host, and the path to a peer, and say what to change and why
///
/// Buffers, offloads, interfaces, clocks, frequencies and idle states, cores and who else uses them, limits. Each finding is
/// an error (messages are lost), a warning (they are slower than they have to be), a note, or ok; it comes with what it
/// costs here, where that can be measured within a second, and with the commands that mend it. Nothing is changed.
///
/// With an address it sends probes there: do traffic classes, full packets and bursts arrive, and do they arrive together?
/// The peer runs `apus doctor --listen`; an apus service will do, but tells less.
///
/// Exit status: 0 if nothing is worse than a note, 1 if something is, or the examination failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus doctor
  apus doctor 10.0.0.2:4001
  apus doctor --listen 0.0.0.0:4001
  apus doctor 10.0.0.2:4001 --threads 4 --poll spin --json")]
pub(crate) struct Arguments {
    /// The other end of a path: HOST:PORT of `apus doctor --listen`, or of an apus service
    #[arg(value_name = "ADDR", value_parser = Address::to_call)]
    peer: Option<Address>,
    /// Answer doctors on other hosts instead, until interrupted; ADDR is 0.0.0.0:4001 if it is not said. Prints `listening
    /// on ADDR` once it can be asked
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = default_listen(),
          value_parser = Address::to_serve, conflicts_with_all = ["peer", "threads", "poll"])]
    listen: Option<Address>,
    /// Threads of the application that wait for messages at the same time: 1 to 1024
    #[arg(long, value_name = "THREADS", default_value_t = Options::default().threads, allow_negative_numbers = true)]
    threads: usize,
    /// How they wait: `spin`, `block`, or `hybrid=MICROSECONDS`
    #[arg(long, value_name = "MODE", default_value_t = Poll::default())]
    poll: Poll,
    /// Read files below this folder in place of the system's own in /proc and /sys
    #[arg(long, value_name = "FOLDER", hide = true)]
    root: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

fn default_listen() -> String {
    format!("0.0.0.0:{PORT}")
}

/// Examines, or answers who does.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { peer, listen, threads, poll, root, json } = arguments;
    if let Some(address) = listen {
        return answer(first(address)?, *json);
    }
    let peer = peer.as_ref().map(first).transpose()?;
    let options = Options { peer, threads: *threads, poll: *poll, root: root.clone() };
    let report = doctor::run(&options)?;
    if *json { output::line(&report.outcome.json()) } else { output::write(report.to_string()) }?;
    if report.has_faults() { Err(Failure::Found(1)) } else { Ok(()) }
}

fn first(address: &Address) -> Result<SocketAddr, Failure> {
    let found = address.resolve().map_err(|error| Failure::of(address.as_str(), &error))?;
    Ok(found[0])
}

/// Answers until somebody interrupts it.
fn answer(address: SocketAddr, json: bool) -> Result<(), Failure> {
    let stop = Stop::default();
    let asked = stop.clone();
    signals::at_first(move || asked.ask()).map_err(|error| Failure::of("catch signals", &error))?;
    let listener = Listener::open(address)?;
    let address = listener.address()?;
    output::line(&if json {
        json!({ "listening": address }).to_string()
    } else {
        format!("listening on {address}")
    })?;
    let answered = listener.serve(&stop)?;
    if json {
        return output::line(&json!({ "answered": answered }).to_string());
    }
    output::note(&format!("answered {answered} questions"));
    Ok(())
}
