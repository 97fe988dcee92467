//! `apus fs status`: state of mounts and servers.

use std::path::Path;
use std::time::Duration;

use apus::introspection::Error;
use apus_fs::server_status;
use apus_fs::status::{self, ClientStatus, Role, Status, Statuses};
use apus_fs_core::wire::FileSystemStatus;
use clap::Args;
use serde_json::{Value, json};

use super::place::Place;
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Time for a server to respond.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Show mounts and servers: leases, changes that are not at the server yet, and clients that wait
/// for others
///
/// Without an argument it shows all mounts and servers of this user on this host. A path shows the
/// mount there, and HOST:PORT asks a server for its clients, HOST:PORT/NAME a server of several
/// directories.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus fs status
  apus fs status /mnt/shared
  apus fs status 10.0.0.1:4000 --json")]
pub(super) struct StatusArguments {
    /// Where a directory is mounted, or the address of a server
    #[arg(value_name = "PATH|HOST:PORT")]
    which: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Shows mounts and servers.
///
/// # Errors
///
/// The mount or server does not exist, or does not answer.
pub(super) fn run(arguments: &StatusArguments) -> Result<(), Failure> {
    let Some(which) = &arguments.which else { return show(arguments, &status::all()?) };
    let path = Path::new(which);
    if path.exists() || which.starts_with('/') || which.starts_with('.') {
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut all = status::all()?;
        all.found.retain(|one| one.role == Role::Mount && Path::new(&one.path) == path);
        if all.found.is_empty() {
            let mut problem = format!(
                "no process of this user has mounted a served directory at {}",
                path.display()
            );
            all.silent.iter().for_each(|silent| problem += &format!("\n{silent}"));
            return Err(Failure::Work(problem));
        }
        // They have not mounted this path.
        all.silent.clear();
        return show(arguments, &all);
    }
    let wrong = |problem| Failure::Argument { argument: "PATH|HOST:PORT".to_owned(), problem };
    let place = Place::parse(which).map_err(wrong)?;
    let found =
        place.server.resolve().map_err(|error| Failure::of(&format!("resolve {which}"), &error))?;
    let answer = server_status::ask(found[0], &place.export, TIMEOUT);
    let answer = answer.map_err(|error| Failure::Work(error.to_string()))?;
    if arguments.json {
        output::line(&server_json(which, &answer).to_string())
    } else {
        output::write(server_text(which, &answer))
    }
}

fn show(arguments: &StatusArguments, all: &Statuses) -> Result<(), Failure> {
    let Statuses { found, silent } = all;
    if arguments.json {
        let silent: Vec<_> = silent.iter().map(silent_json).collect();
        return output::line(&json!({ "processes": found, "silent": silent }).to_string());
    }
    if found.is_empty() {
        output::note("no process of this user serves or mounts a directory");
    }
    let silent = silent.iter().map(|error| format!("{error}\n"));
    output::write(found.iter().map(process_text).chain(silent).collect::<String>())
}

fn silent_json(error: &Error) -> Value {
    let pid = if let Error::Unresponsive { pid, .. } = error { Some(pid) } else { None };
    json!({ "pid": pid, "reason": error.to_string() })
}

fn process_text(status: &Status) -> String {
    let Status { pid, address, path, read_only, .. } = status;
    let path = printable(path.as_bytes());
    let mode = if *read_only { ", read-only" } else { "" };
    match (status.role, &status.mount) {
        (Role::Server, _) => {
            format!(
                "server {address} of {path} (process {pid}{mode}); `apus fs status {address}` shows its clients\n"
            )
        }
        (Role::Mount, None) => format!("mount {path} of {address} (process {pid}{mode})\n"),
        (Role::Mount, Some(mount)) => {
            format!("mount {path} of {address} (process {pid}{mode})\n{}", mount_text(mount))
        }
    }
}

fn mount_text(mount: &ClientStatus) -> String {
    let server = if mount.is_live { "responds" } else { "does not respond" };
    let mut text = format!("  server       {server}\n");
    text += &format!("  leases       {} shared, {} exclusive\n", mount.shared, mount.exclusive);
    text += &format!(
        "  cache        {} nodes, {} kB of files\n",
        mount.nodes,
        mount.cached_bytes / 1000
    );
    text += &match (mount.waiting_batches, mount.waiting_bytes) {
        (0, _) => "  log          everything is at the server\n".to_owned(),
        (batches, bytes) => {
            format!(
                "  log          {batches} batches with {} kB are not at the server\n",
                bytes / 1000
            )
        }
    };
    text += &format!("  operations   {}, {} waiting\n", mount.operations, mount.pending);
    text += &format!("  calls        {}, {} outstanding\n", mount.calls, mount.outstanding);
    text += &format!("  recalls      {}, {} outstanding\n", mount.recalls, mount.recalls_pending);
    if mount.batches_refused > 0 {
        text += &format!("  REFUSED      {} batches of changes\n", mount.batches_refused);
    }
    if mount.locks_lost > 0 {
        text += &format!("  LOCKS LOST   {}\n", mount.locks_lost);
    }
    text
}

fn server_text(address: &str, status: &FileSystemStatus) -> String {
    let mut text = format!("server {address}: {} clients\n", status.clients.len());
    for (name, shared, exclusive, applied) in &status.clients {
        let name = printable(name);
        text += &format!(
            "  {name}: {shared} shared and {exclusive} exclusive leases, {applied} batches applied\n"
        );
    }
    for (node, waiting, holder) in &status.waiting {
        let (waiting, holder) = (printable(waiting), printable(holder));
        text += &format!("  {waiting} waits for {holder} to give back node {}\n", node.ino);
    }
    text
}

fn server_json(address: &str, status: &FileSystemStatus) -> Value {
    let clients = status.clients.iter().map(|(name, shared, exclusive, applied)| {
        json!({ "name": lossy(name), "shared": shared, "exclusive": exclusive, "applied": applied })
    });
    let waiting = status.waiting.iter().map(|(node, waiting, holder)| {
        json!({ "node": node.ino.0, "client": lossy(waiting), "holder": lossy(holder) })
    });
    json!({
        "server": address,
        "clients": clients.collect::<Vec<_>>(),
        "waiting": waiting.collect::<Vec<_>>(),
    })
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Names come from other hosts: control characters in them must not reach the terminal.
fn printable(name: &[u8]) -> String {
    lossy(name).replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_hosts_are_printable() {
        let clients = vec![("a\u{1b}[2Jb:/mnt".into(), 1, 2, 3)];
        let text = server_text("x:1", &FileSystemStatus { clients, waiting: Vec::new() });
        assert_eq!(
            text,
            "server x:1: 1 clients\n  a?[2Jb:/mnt: 1 shared and 2 exclusive leases, 3 batches applied\n"
        );
    }
}
