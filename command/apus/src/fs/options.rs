//! The option list of `-o`, as in fstab and on the command line of mount(8).

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use apus::PollMode;
use apus_fs_core::client::Lost;

use crate::sealing::USUAL;

/// Time that operations wait for a lost server with `lost=error`, in seconds. Chosen by us: longer
/// than a server restart.
const LOST_TIME: u64 = 30;

/// Options of mount(8) that are always in effect, or that concern only mount(8) and systemd.
const WITHOUT_EFFECT: &[&str] = &[
    "_netdev",
    "async",
    "atime",
    "auto",
    "default_permissions",
    "defaults",
    "diratime",
    "exec",
    "group",
    "lazytime",
    "noatime",
    "noauto",
    "nodev",
    "nodiratime",
    "nofail",
    "nolazytime",
    "norelatime",
    "nostrictatime",
    "nosuid",
    "nouser",
    "owner",
    "relatime",
    "strictatime",
    "user",
    "users",
];

/// Behaviour while the server does not respond, as written: `wait`, `error` or `error=SECONDS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LostMode(pub(super) Lost);

impl FromStr for LostMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lost = match text.split_once('=') {
            None if text == "wait" => Some(Lost::Wait),
            None if text == "error" => Some(Lost::Error(Duration::from_secs(LOST_TIME))),
            Some(("error", seconds)) => {
                let seconds = seconds.parse().ok().filter(|seconds| (1..=86_400).contains(seconds));
                seconds.map(|seconds| Lost::Error(Duration::from_secs(seconds)))
            }
            _ => None,
        };
        let problem =
            "it is `wait`, `error`, or `error=SECONDS` with 1 to 86400 seconds; try `error=30`";
        lost.map(Self).ok_or_else(|| problem.to_owned())
    }
}

/// Options of a list; `None` for an option missing from the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OptionList {
    pub(super) read_only: bool,
    pub(super) lost: Option<LostMode>,
    pub(super) lost_changes: Option<PathBuf>,
    pub(super) poll: Option<PollMode>,
    pub(super) allow_other: Option<bool>,
    /// The folder of keys.
    pub(super) sealed: Option<PathBuf>,
}

impl FromStr for OptionList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            list.add(option).map_err(|problem| format!("`{option}`: {problem}"))?;
        }
        Ok(list)
    }
}

impl OptionList {
    fn add(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        match (name, value) {
            ("ro", None) => self.read_only = true,
            ("rw", None) => self.read_only = false,
            ("lost", Some(value)) => self.lost = Some(value.parse()?),
            ("lost-changes", Some(value)) if !value.is_empty() => {
                self.lost_changes = Some(value.into());
            }
            ("poll", Some(value)) => {
                let poll: Result<PollMode, _> = value.parse();
                self.poll = Some(poll.map_err(|error| error.to_string())?);
            }
            ("sealed", folder) => self.sealed = Some(folder.unwrap_or(USUAL).into()),
            ("allow_other", None) => self.allow_other = Some(true),
            ("noallow_other", None) => self.allow_other = Some(false),
            ("comment", Some(_)) => {}
            (name, None) if WITHOUT_EFFECT.contains(&name) => {}
            (name, _) if name.starts_with("x-") || name.starts_with("X-") => {}
            _ => {
                return Err("there is no such option; there are ro, rw, lost=wait, lost=error=SECONDS, \
                            lost-changes=DIR, poll=MODE, sealed, allow_other and noallow_other, and the usual ones of fstab"
                    .to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_fstab_are_understood() {
        let list: OptionList =
            "defaults,_netdev,x-systemd.automount,ro,lost=error=5,poll=block".parse().unwrap();
        assert!(list.read_only);
        assert_eq!(list.lost, Some(LostMode(Lost::Error(Duration::from_secs(5)))));
        assert_eq!((list.poll, list.allow_other), (Some(PollMode::Block), None));
        assert_eq!("".parse(), Ok(OptionList::default()));
        assert!(!"ro,rw".parse::<OptionList>().unwrap().read_only);
    }

    /// Silently ignoring a restrictive option would mislead.
    #[test]
    fn what_is_not_done_is_refused() {
        for text in
            ["noexec", "sync", "remount", "lost", "lost=never", "lost=error=0", "poll=x", "ro=1"]
        {
            let error = text.parse::<OptionList>().unwrap_err();
            assert!(error.starts_with(&format!("`{text}`")), "{error}");
        }
    }
}
