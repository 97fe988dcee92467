//! `apus fs mount`: a served directory in the tree of files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use apus::security::Security;
use apus::{PollMode, Settings};
use apus_fs::mount::{MountSettings, Mounted};
use apus_fs_core::client::Lost;
use clap::Args;
use serde_json::json;

use super::daemon;
use super::options::{LostMode, OptionList};
use super::place::Place;
use crate::sealing::Sealing;
use crate::tracing::Tracing;
use apus_command_line::failure::Failure;
use apus_command_line::output;
use apus_command_line::signals;

/// Mount a served directory
///
/// Prints `mounted HOST:PORT at PATH` once the mount is usable, and serves it until it is unmounted
/// or until this command receives SIGINT (Ctrl-C) or SIGTERM. It ends when all changes are at the
/// server; a second signal ends it immediately.
///
/// Root mounts for all users, and the kernel checks their permissions. Other users need the package
/// fuse3, and mount for themselves. Programs that wait for the server can be interrupted and killed
/// at any time.
///
/// mount(8) and fstab use this command as well: `mount -t fuse.apus HOST:PORT PATH -o OPTIONS`.
/// docs/fs/mounting.md shows how.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus fs mount 10.0.0.1:4000 /mnt/shared
  apus fs mount 10.0.0.1:4000 /mnt/shared --daemon --lost error=30
  apus fs mount 10.0.0.1:4000/music /mnt/music -o ro,poll=block")]
pub(super) struct MountArguments {
    /// Address of the server, HOST:PORT, and the name of the directory if it serves several:
    /// HOST:PORT/NAME
    #[arg(value_name = "HOST:PORT", value_parser = Place::parse)]
    served: Place,
    /// Where to mount: an existing directory
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Refuse all changes
    #[arg(long)]
    read_only: bool,
    /// Behaviour while the server does not respond: `wait`, or `error=SECONDS`; operations then
    /// fail after that time with ETIMEDOUT (`error` alone: 30) [default: wait]
    #[arg(long, value_name = "MODE")]
    lost: Option<LostMode>,
    /// Folder for changes that can never reach the server: each loss becomes a directory in it,
    /// with what was written and a list of all changes [default: /var/lib/apus/lost-changes for
    /// root, ~/.local/state/apus/lost-changes for others]
    #[arg(long, value_name = "DIR")]
    lost_changes: Option<PathBuf>,
    /// How to wait for work: `spin`, `block`, or `hybrid=MICROSECONDS`, which spins for that time
    /// and then sleeps (`hybrid` alone: 50) [default: hybrid]
    #[arg(long, value_name = "MODE")]
    poll: Option<PollMode>,
    /// Return once the mount is usable, and serve it in the background; warnings go to syslog then
    #[arg(long)]
    daemon: bool,
    /// Options in the form of fstab, separated by commas: ro, lost=MODE, lost-changes=DIR,
    /// poll=MODE, sealed or sealed=FOLDER, allow_other, noallow_other
    #[arg(short = 'o', value_name = "OPTIONS")]
    options: Vec<OptionList>,
    #[command(flatten)]
    sealing: Sealing,
    #[command(flatten)]
    tracing: Tracing,
    /// Print a JSON object once the mount is usable
    #[arg(long)]
    json: bool,
    /// The process that --daemon starts
    #[arg(long, hide = true, conflicts_with = "daemon")]
    detached: bool,
    /// Check the options and mount nothing, as `mount --fake` does
    #[arg(long, hide = true)]
    fake: bool,
    /// Print nothing if it succeeds, as mount(8) does
    #[arg(long, hide = true)]
    quiet: bool,
}

/// Mounts, and serves the mount until it ends.
///
/// # Errors
///
/// The server does not respond or refuses, or the kernel does.
pub(super) fn run(arguments: &MountArguments) -> Result<(), Failure> {
    if arguments.fake {
        return Ok(());
    }
    if arguments.daemon {
        return daemon::start(&arguments.words()).and_then(|line| match line {
            _ if arguments.quiet => Ok(()),
            line => output::line(&line),
        });
    }
    arguments.tracing.begin()?;
    let settings = arguments.settings()?;
    let report = if arguments.detached { daemon::log() } else { Box::new(output::note) };
    let mounted =
        Mounted::new(&settings, report).map_err(|error| Failure::Work(error.to_string()))?;
    let stopper = mounted.stopper();
    signals::on_first(move || stopper.stop())
        .map_err(|error| Failure::of("catch signals", &error))?;
    output::line(&arguments.announcement(mounted.path()))?;
    if arguments.detached {
        daemon::detach().map_err(|error| Failure::of("continue in the background", &error))?;
    }
    mounted.run().map_err(|error| Failure::Work(error.to_string()))?;
    arguments.tracing.end()
}

impl MountArguments {
    fn settings(&self) -> Result<MountSettings, Failure> {
        let text = self.served.as_str();
        let found = self
            .served
            .server
            .resolve()
            .map_err(|error| Failure::of(&format!("resolve {text}"), &error))?;
        let mut settings = MountSettings::new(found[0], self.path.clone());
        text.clone_into(&mut settings.source);
        settings.export.clone_from(&self.served.export);
        for list in &self.options {
            settings.read_only |= list.read_only;
            settings.allow_other = list.allow_other.unwrap_or(settings.allow_other);
        }
        settings.read_only |= self.read_only;
        if let Some(folder) = self.lost_changes() {
            // A background mount runs in another directory.
            settings.lost_changes = std::path::absolute(folder)
                .map_err(|error| Failure::of(&format!("find {}", folder.display()), &error))?;
        }
        let lost = self.options.iter().rev().find_map(|list| list.lost).or(self.lost);
        settings.lost = lost.map_or(Lost::Wait, |mode| mode.0);
        settings.security = self.security()?;
        settings.poll =
            self.options.iter().rev().find_map(|list| list.poll).or(self.poll).unwrap_or_default();
        Ok(settings)
    }

    /// Returns the sealing of packets, from a flag or an fstab option.
    fn security(&self) -> Result<Option<Security>, Failure> {
        let mut settings = Settings::default();
        self.sealing.apply(&mut settings)?;
        if let Some(folder) = self.options.iter().rev().find_map(|list| list.sealed.as_ref()) {
            Sealing::with(folder.clone()).apply(&mut settings)?;
        }
        Ok(settings.security.map(Security::new))
    }

    fn lost_changes(&self) -> Option<&PathBuf> {
        let lists = self.options.iter().rev();
        lists.filter_map(|list| list.lost_changes.as_ref()).next().or(self.lost_changes.as_ref())
    }

    fn announcement(&self, path: &Path) -> String {
        let server = self.served.as_str();
        if self.json {
            json!({ "mounted": path.display().to_string(), "server": server }).to_string()
        } else {
            format!("mounted {server} at {}", path.display())
        }
    }

    /// Returns the arguments of the background process that serves the mount.
    fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = ["fs", "mount", self.served.as_str()].map(Into::into).into();
        words.push(self.path.clone().into());
        words.push("--detached".into());
        let flags = [(self.read_only, "--read-only"), (self.json, "--json")];
        words.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag.into()));
        if let Some(folder) = self.lost_changes() {
            words.extend(["--lost-changes".into(), folder.clone().into()]);
        }
        let mut options = Vec::new();
        let lost = self.options.iter().rev().find_map(|list| list.lost).or(self.lost);
        match lost.map(|mode| mode.0) {
            None => {}
            Some(Lost::Wait) => options.push("lost=wait".to_owned()),
            Some(Lost::Error(time)) => options.push(format!("lost=error={}", time.as_secs())),
        }
        let poll = self.options.iter().rev().find_map(|list| list.poll).or(self.poll);
        options.extend(poll.map(|poll| format!("poll={poll}")));
        let allow = self.options.iter().rev().find_map(|list| list.allow_other);
        options.extend(
            allow.map(|allow| if allow { "allow_other" } else { "noallow_other" }.to_owned()),
        );
        if self.options.iter().any(|list| list.read_only) {
            options.push("ro".to_owned());
        }
        let sealed = self.options.iter().rev().find_map(|list| list.sealed.as_ref());
        options.extend(sealed.map(|folder| format!("sealed={}", folder.display())));
        words.extend(self.sealing.word());
        if !options.is_empty() {
            words.extend(["-o".into(), options.join(",").into()]);
        }
        words
    }
}
