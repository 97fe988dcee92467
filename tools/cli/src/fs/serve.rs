//! `apus fs serve`: a directory as a service that runs until it is interrupted.

use std::path::PathBuf;

use apus::{Endpoint, PollMode};
use apus_fs::serve::{Export, Service};
use apus_fs::trust::{Network, Trust};
use apus_fs_core::server::{Server, ServerSettings};
use apus_fs_store::{DirectoryOptions, DirectoryStore};
use clap::Args;
use serde_json::json;

use crate::address::Address;
use crate::driver::bind_failure;
use crate::failure::Failure;
use crate::output;
use crate::signals;

/// The folder in an exported directory that the store keeps for itself.
const STORE: &str = ".apus-fs";

/// Serve a directory
///
/// Prints `listening on ADDR` once it accepts requests, and serves until it receives SIGINT (Ctrl-C) or SIGTERM; a second
/// signal ends it immediately, which loses nothing. Every change is written to a log in DIR/.apus-fs and made durable before
/// a client learns that it is.
///
/// Packets are not encrypted: a machine that can read or forge them can read and change the files. So clients are served only
/// on this host, and in networks that --trust names. A server that an ordinary user runs has that user's rights; started by root,
/// it serves files of all users, and believes its clients who their users are.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus fs serve /srv/shared
  apus fs serve /srv/shared --listen 10.0.0.1:4000 --trust 10.0.0.0/24
  apus fs serve /srv/music --listen [::]:4000 --read-only --trust 10.0.0.0/8 --trust fd00::/8
  apus fs serve /srv/drop --squash 65534")]
pub(super) struct Arguments {
    /// Directory to serve
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Address to listen on, HOST:PORT. Port 0 picks a free one. `[::]:4000` listens on all addresses of the host
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4000", value_parser = Address::parse_local)]
    listen: Address,
    /// Refuse all changes
    #[arg(long)]
    read_only: bool,
    /// Give everything that is created to this user and the group of the same number; owners cannot be changed then
    #[arg(long, value_name = "UID")]
    squash: Option<u32>,
    /// Serve clients in this network, such as 10.0.0.0/8 or fd00::/8, without encryption; may be repeated
    #[arg(long, value_name = "NET")]
    trust: Vec<Network>,
    /// How to wait for requests: `spin`, `block`, or `hybrid=MICROSECONDS`, which spins for that time and then sleeps
    /// (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t)]
    poll: PollMode,
    /// Print the address as a JSON object
    #[arg(long)]
    json: bool,
}

/// Serves until it is interrupted.
///
/// # Errors
///
/// The directory cannot be served, the address cannot be bound, or the disk fails.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let directory =
        std::fs::canonicalize(&arguments.directory).map_err(|error| Failure::Argument {
            argument: "DIR".to_owned(),
            problem: format!("{}: {error}", arguments.directory.display()),
        })?;
    // No client has leases of a directory that was never served.
    let grace = directory.join(STORE).exists();
    let settings = ServerSettings {
        read_only: arguments.read_only,
        squash: arguments.squash,
        grace,
        ..ServerSettings::default()
    };
    let store = DirectoryStore::open(&directory, DirectoryOptions::default())
        .map_err(|error| Failure::of("open the directory", &error))?;
    let server = Server::new(store, settings, apus_fs::boot_time())
        .map_err(|error| Failure::of("open the directory", &error))?;
    let endpoint = Endpoint::builder().poll_mode(arguments.poll).bind(arguments.listen.as_str());
    let endpoint = endpoint.map_err(|error| {
        bind_failure(&error, "`apus fs serve DIR --listen 127.0.0.1:0` listens on any free port.")
    })?;
    let address = endpoint.local_addr();
    let export =
        Export { directory: directory.display().to_string(), read_only: arguments.read_only };
    let trust = Trust::new(arguments.trust.clone());
    let service =
        Service::new(endpoint, server, export, trust, arguments.poll, Box::new(output::note));
    let service = service.map_err(|error| Failure::Work(error.to_string()))?;
    let stopper = service.stopper();
    signals::on_first(move || stopper.stop())
        .map_err(|error| Failure::of("catch signals", &error))?;
    if arguments.json {
        output::line(&json!({ "listening": address }).to_string())?;
    } else {
        output::line(&format!("listening on {address}"))?;
    }
    let store = service.run().map_err(|error| Failure::Work(error.to_string()))?;
    store.close().map_err(|error| Failure::of("end the log", &error))
}
