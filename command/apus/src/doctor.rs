//! `apus doctor`: checks of this host and of the path to a peer.

use std::net::SocketAddr;

use apus_doctor::doctor::{self, DoctorOptions, Listener, PORT};
use apus_measure::process::Stop;
use clap::Args;
use serde_json::json;

use crate::address::Address;
use crate::sealing::Sealing;
use apus_command_line::configuration::Configuration;
use apus_command_line::failure::Failure;
use apus_command_line::{output, signals};

/// Check this host and the path to a peer, and say what to change and why
///
/// Checks buffers, offloads, interfaces, clocks, frequencies and idle states, cores and the other
/// programs on them, and limits. Each finding is an error (messages are lost), a warning (messages
/// are slower than necessary), a note, or ok. It comes with its cost on this host, where that can
/// be measured within a second, and with the commands that fix it. Nothing is changed. With
/// --sealed, or a --config with a table [security], keys are checked, too: permissions, pairs and
/// dates. With --config the values of the file are judged instead of the defaults.
///
/// With an address, it also sends probes to the peer and checks whether traffic classes, full
/// packets and bursts arrive, and whether the packets of a burst arrive merged. The peer should run
/// `apus doctor --listen`; an apus service works as well, but reveals less.
///
/// Exit status: 0 if every finding is a note or ok, 1 if one is worse or the check failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus doctor
  apus doctor 10.0.0.2:4001
  apus doctor --sealed
  apus doctor --config apus.toml
  apus doctor --listen 0.0.0.0:4001
  apus doctor 10.0.0.2:4001 --threads 4 --poll spin --json")]
pub(crate) struct DoctorArguments {
    /// Address of the peer, HOST:PORT: `apus doctor --listen` there, or an apus service
    #[arg(value_name = "ADDR", value_parser = Address::parse_remote)]
    peer: Option<Address>,
    /// Answer the probes of other hosts until interrupted, on ADDR or on 0.0.0.0:4001. Prints
    /// `listening on ADDR` once it is ready
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = default_listen(),
          value_parser = Address::parse_local, conflicts_with_all = ["peer", "threads", "poll"])]
    listen: Option<Address>,
    #[command(flatten)]
    options: DoctorOptions,
    #[command(flatten)]
    configuration: Configuration,
    #[command(flatten)]
    sealing: Sealing,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

fn default_listen() -> String {
    format!("0.0.0.0:{PORT}")
}

/// Checks this host, or answers the probes of another host.
///
/// # Errors
///
/// [`Failure::Found`] if a finding is an error or a warning, or if the check failed.
pub(crate) fn run(arguments: &DoctorArguments) -> Result<(), Failure> {
    let DoctorArguments { peer, listen, options, configuration, sealing, json } = arguments;
    if let Some(address) = listen {
        return answer_probes(first(address)?, *json);
    }
    let peer = peer.as_ref().map(first).transpose()?;
    let mut settings = configuration.read()?;
    sealing.apply(&mut settings)?;
    let options = DoctorOptions { peer, settings, ..options.clone() };
    let report = doctor::run(&options)?;
    if *json { output::line(&report.outcome.json()) } else { output::write(report.to_string()) }?;
    if report.has_faults() { Err(Failure::Found(1)) } else { Ok(()) }
}

/// Returns the preferred IP address.
fn first(address: &Address) -> Result<SocketAddr, Failure> {
    let found = address.resolve().map_err(|error| Failure::of(address.as_str(), &error))?;
    Ok(found[0])
}

/// Answers probes until it is interrupted.
fn answer_probes(address: SocketAddr, json: bool) -> Result<(), Failure> {
    let stop = Stop::default();
    let stop_at_signal = stop.clone();
    signals::on_first(move || stop_at_signal.ask())
        .map_err(|error| Failure::of("catch signals", &error))?;
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
    output::note(&format!("answered {answered} probes"));
    Ok(())
}
