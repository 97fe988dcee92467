//! `apus fs umount`: ends a mount, and waits until its changes are at the server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use apus_fs::status::{self, Role};
use apus_fuse::Unmount;
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Time before the command tells a person why it is still waiting.
const PATIENCE: Duration = Duration::from_secs(2);

/// Unmount a served directory
///
/// Returns when all changes are at the server, if the mount is one of this user.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus fs umount /mnt/shared
  apus fs umount /mnt/shared --lazy")]
pub(super) struct UmountArguments {
    /// Where it is mounted
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Remove the mount from its path although files are in use; it ends when they are closed
    #[arg(long)]
    lazy: bool,
}

/// Unmounts.
///
/// # Errors
///
/// The path is not a mount point, or the mount is in use.
pub(super) fn run(arguments: &UmountArguments) -> Result<(), Failure> {
    let path = absolute(&arguments.path)?;
    // Before the end of the mount: afterwards another process could have its process id.
    let process = serving_process(&path).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let how = if arguments.lazy { Unmount::Lazy } else { Unmount::IfUnused };
    apus_fuse::unmount(&path, how).map_err(|error| Failure::Work(error.to_string()))?;
    let Some(process) = process.filter(|_| !arguments.lazy) else { return Ok(()) };
    let patience = Timespec::try_from(PATIENCE).ok();
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    if wait(&mut ended, patience.as_ref())? {
        return Ok(());
    }
    output::note("changes are not at the server yet; this command ends when they are");
    wait(&mut ended, None).map(drop)
}

/// Returns whether the process has ended within `time`.
fn wait(ended: &mut [PollFd<'_>], time: Option<&Timespec>) -> Result<bool, Failure> {
    let ready = rustix::io::retry_on_intr(|| poll(ended, time));
    ready
        .map(|ready| ready > 0)
        .map_err(|error| Failure::of("wait for the mount's process", &error))
}

/// Returns a path without symbolic links, even if the file system there no longer answers.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let whole = || std::path::absolute(path);
    let found = std::fs::canonicalize(path).or_else(|_| {
        let whole = whole()?;
        match (whole.parent(), whole.file_name()) {
            (Some(parent), Some(name)) => Ok(std::fs::canonicalize(parent)?.join(name)),
            _ => Ok(whole),
        }
    });
    found.map_err(|error: std::io::Error| Failure::of(&path.display().to_string(), &error))
}

/// Returns the process that serves a mount, if it belongs to this user.
fn serving_process(path: &Path) -> Option<Pid> {
    let all = status::all().unwrap_or_default();
    let mount =
        all.found.iter().find(|one| one.role == Role::Mount && Path::new(&one.path) == path)?;
    Pid::from_raw(i32::try_from(mount.pid).ok()?)
}
