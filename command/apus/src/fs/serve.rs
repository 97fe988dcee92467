//! `apus fs serve`: a directory as a service that runs until it is interrupted.

use std::path::PathBuf;

use apus::{Endpoint, PollMode, Settings};
use apus_fs::serve::Service;
use apus_fs::trust::Network;
use clap::Args;
use serde_json::json;

use super::exports::{self, Entry};
use crate::address::Address;
use crate::sealing::Sealing;
use crate::tracing::Tracing;
use apus_command_line::driver::bind_failure;
use apus_command_line::failure::Failure;
use apus_command_line::output;
use apus_command_line::signals;

/// Serve a directory
///
/// Prints `listening on ADDR` once it accepts requests, and serves until it receives SIGINT
/// (Ctrl-C) or SIGTERM; a second signal ends it immediately, which loses nothing. Every change is
/// written to a log in DIR/.apus-fs and made durable before a client learns that it is.
///
/// Without --sealed packets are not encrypted: a machine that can read or forge them can read and
/// change the files. So clients are served only on this host, and in networks that --trust names;
/// with --sealed it restricts them further.
///
/// A server that root runs acts as each client's user: on this host as the user that the kernel
/// names, for other hosts as any user that they name, except root. Only root of this host makes
/// devices and set-id programs. A server that an ordinary user runs serves that user, root, and the
/// networks that --trust names, with that user's rights.
///
/// A file for --exports has a table in TOML for each directory. Only `directory` is required, and
/// nothing is writable unless it says so:
/// `[music] directory = "/srv/music", writable = true, squash = 65534, trust = ["10.0.0.0/8"]`, one
/// setting on each line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus fs serve /srv/shared
  apus fs serve /srv/shared --listen 10.0.0.1:4000 --trust 10.0.0.0/24
  apus fs serve /srv/music --listen [::]:4000 --read-only --trust 10.0.0.0/8 --trust fd00::/8
  apus fs serve /srv/shared --listen 10.0.0.1:4000 --trust 10.0.0.0/24 --sealed
  apus fs serve /srv/drop --squash 65534
  apus fs serve --exports /etc/apus/exports.toml --listen [::]:4000")]
pub(super) struct FsServeArguments {
    /// Directory to serve
    #[arg(value_name = "DIR", required_unless_present = "exports")]
    directory: Option<PathBuf>,
    /// Serve the directories that this file lists, under names: clients mount HOST:PORT/NAME
    #[arg(long, value_name = "FILE", conflicts_with_all = ["directory", "read_only", "squash", "trust", "trust_root"])]
    exports: Option<PathBuf>,
    /// Address to listen on, HOST:PORT. Port 0 picks a free one. `[::]:4000` listens on all
    /// addresses of the host
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4000", value_parser = Address::parse_local)]
    listen: Address,
    /// Refuse all changes
    #[arg(long)]
    read_only: bool,
    /// Act as this user and the group of the same number for all clients
    #[arg(long, value_name = "UID")]
    squash: Option<u32>,
    /// Treat root of other hosts as root of this one: it reads and changes everything, and makes
    /// devices and set-id programs
    #[arg(long)]
    trust_root: bool,
    /// Serve clients in this network, such as 10.0.0.0/8 or fd00::/8, without encryption; may be
    /// repeated
    #[arg(long, value_name = "NET")]
    trust: Vec<Network>,
    /// How to wait for requests: `spin`, `block`, or `hybrid=MICROSECONDS`, which spins for that
    /// time and then sleeps (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t)]
    poll: PollMode,
    #[command(flatten)]
    sealing: Sealing,
    #[command(flatten)]
    tracing: Tracing,
    /// Print the address as a JSON object
    #[arg(long)]
    json: bool,
}

/// Serves until it is interrupted.
///
/// # Errors
///
/// The directory cannot be served, the address cannot be bound, or the disk fails.
pub(super) fn run(arguments: &FsServeArguments) -> Result<(), Failure> {
    arguments.tracing.begin()?;
    let exports = match (&arguments.exports, &arguments.directory) {
        (Some(file), _) => exports::open(file)?,
        (None, Some(directory)) => {
            let mut entry = Entry::new(directory.clone(), !arguments.read_only, arguments.squash);
            entry.trust_root = arguments.trust_root;
            entry
                .resolve()
                .map_err(|problem| Failure::Argument { argument: "DIR".to_owned(), problem })?;
            vec![entry.open(0, "", arguments.trust.clone())?]
        }
        // clap requires one of them.
        (None, None) => Vec::new(),
    };
    let poll = apus_fs::endpoint_poll_mode(arguments.poll);
    let mut settings = Settings::default();
    arguments.sealing.apply(&mut settings)?;
    let builder = Endpoint::builder().settings(&settings).poll_mode(poll);
    let endpoint = builder.bind(arguments.listen.as_str());
    let endpoint = endpoint.map_err(|error| {
        bind_failure(&error, "`apus fs serve DIR --listen 127.0.0.1:0` listens on any free port.")
    })?;
    let address = endpoint.local_addr();
    let service = Service::new(endpoint, exports, arguments.poll, Box::new(output::note));
    let service = service.map_err(|error| Failure::Work(error.to_string()))?;
    let stopper = service.stopper();
    signals::on_first(move || stopper.stop())
        .map_err(|error| Failure::of("catch signals", &error))?;
    if arguments.json {
        output::line(&json!({ "listening": address }).to_string())?;
    } else {
        output::line(&format!("listening on {address}"))?;
    }
    for store in service.run().map_err(|error| Failure::Work(error.to_string()))? {
        store.close().map_err(|error| Failure::of("end the log", &error))?;
    }
    arguments.tracing.end()
}
