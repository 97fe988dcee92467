//! The recorder: records the operations of applications, object by object.

use std::collections::{BTreeMap, BTreeSet};

use apus_fs_core::wire::{Errno, Ino, LockKind, LockOwner, LockRange};
use bytes::Bytes;

use crate::Violation;
use crate::checker::append::Append;
use crate::checker::lock::Hold;
use crate::checker::prefix::PrivateAction;
use crate::history::{Event, FileAction, Happening, Moment, MountId, NameAction, ObjectHistory};

/// Everything that the checkers read.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    last: u64,
    pub(super) names: Vec<Event<NameAction>>,
    pub(super) files: BTreeMap<Ino, Vec<Event<FileAction>>>,
    /// Nodes that were seen to be directories.
    pub(super) directories: BTreeSet<Ino>,
    syncs: Vec<(MountId, Moment)>,
    losses: Vec<(MountId, Moment, Option<Moment>)>,
    appends: Vec<(MountId, Bytes, Option<Moment>)>,
    pub(super) holds: Vec<Hold>,
    /// Operations that failed for reasons outside POSIX.
    troubles: Vec<(MountId, String)>,
    pub(super) privates: BTreeMap<MountId, Private>,
}

/// Operations of a mount in its private directory.
#[derive(Debug, Default)]
pub(super) struct Private {
    pub(super) actions: Vec<PrivateAction>,
    pub(super) synced: usize,
}

impl Recorder {
    /// Returns the next moment.
    pub(super) fn moment(&mut self) -> Moment {
        self.last += 1;
        Moment(self.last)
    }

    pub(super) fn name(
        &mut self,
        mount: MountId,
        invoked: Moment,
        returned: Option<Moment>,
        action: NameAction,
    ) {
        self.names.push(Event { mount, invoked, returned, action });
    }

    pub(super) fn file(
        &mut self,
        file: Ino,
        mount: MountId,
        invoked: Moment,
        returned: Option<Moment>,
        action: FileAction,
    ) {
        self.files.entry(file).or_default().push(Event { mount, invoked, returned, action });
    }

    /// Notes that all that a mount did until now is at the server.
    pub(super) fn sync(&mut self, mount: MountId, at: Moment) {
        self.syncs.push((mount, at));
    }

    /// Notes that a mount may have lost something at some moment from then on, or until another
    /// moment.
    pub(super) fn lose(&mut self, mount: MountId, from: Moment, until: Option<Moment>) {
        self.losses.push((mount, from, until));
        for hold in &mut self.holds {
            if hold.mount == mount && hold.until.is_none_or(|end| end > from) {
                hold.until = Some(hold.from.max(from));
            }
        }
    }

    /// Notes that a mount could not take all its locks again after a restart of the server. When
    /// each was lost is not known.
    pub(super) fn lose_locks(&mut self, mount: MountId) {
        for hold in self.holds.iter_mut().filter(|hold| hold.mount == mount) {
            hold.until = Some(hold.from);
        }
    }

    pub(super) fn has_lost(&self, mount: MountId) -> bool {
        self.losses.iter().any(|(other, ..)| *other == mount)
    }

    /// Notes that a lock is held, and returns its number.
    pub(super) fn hold(
        &mut self,
        file: Ino,
        mount: MountId,
        owner: LockOwner,
        kind: LockKind,
        range: LockRange,
        from: Moment,
    ) -> usize {
        // Locks of `fcntl` and `flock` ignore each other: as if they were on different files.
        let file = file.0 ^ u64::from(owner.is_flock) << 62;
        let owner = owner.owner;
        self.holds.push(Hold { file, mount, owner, kind, range, from, until: None });
        self.holds.len() - 1
    }

    pub(super) fn release(&mut self, hold: usize, at: Moment) {
        let hold = &mut self.holds[hold];
        hold.until = Some(hold.until.map_or(at, |end| end.min(at)));
    }

    /// Notes an append to the file that is only appended to, and returns its number.
    pub(super) fn append(&mut self, mount: MountId, data: Bytes) -> usize {
        self.appends.push((mount, data, None));
        self.appends.len() - 1
    }

    pub(super) fn appended(&mut self, append: usize, at: Moment) {
        self.appends[append].2 = Some(at);
    }

    pub(super) fn trouble(&mut self, mount: MountId, what: &str, errno: Errno) {
        self.troubles.push((mount, format!("{what}: error {}", errno.0)));
    }

    /// Checks that operations failed only where changes were lost.
    pub(super) fn check_troubles(&mut self) -> Result<(), Violation> {
        let troubles = std::mem::take(&mut self.troubles);
        match troubles.iter().find(|(mount, _)| !self.has_lost(*mount)) {
            None => Ok(()),
            Some((mount, what)) => {
                let what = format!("{mount}: {what}");
                Err(Violation::new("no operation fails without a cause", what))
            }
        }
    }

    /// Returns all appends, with those that must be in the file.
    pub(super) fn owed_appends(&self) -> Vec<Append> {
        let owed = |mount: MountId, returned: Option<Moment>| {
            returned.is_some_and(|returned| {
                // A sync after a loss does not cover earlier operations: the loss was reported to
                // another sync.
                let is_lost = |at: &Moment| {
                    self.losses.iter().any(|(lost, from, _)| *lost == mount && from < at)
                };
                let synced = self
                    .syncs
                    .iter()
                    .any(|(other, at)| *other == mount && *at > returned && !is_lost(at));
                synced || !self.has_lost(mount)
            })
        };
        let appends = self.appends.iter();
        appends
            .map(|(mount, data, returned)| Append {
                mount: *mount,
                data: data.clone(),
                is_owed: owed(*mount, *returned),
            })
            .collect()
    }

    /// Returns the history of one object: its actions, and the events of the mounts involved.
    pub(super) fn history<A: Clone>(&self, actions: &[Event<A>]) -> ObjectHistory<A> {
        let mounts: BTreeSet<MountId> = actions.iter().map(|event| event.mount).collect();
        let mut history: ObjectHistory<A> = actions
            .iter()
            .map(|event| Event {
                mount: event.mount,
                invoked: event.invoked,
                returned: event.returned,
                action: Happening::Action(event.action.clone()),
            })
            .collect();
        for (mount, at) in self.syncs.iter().filter(|(mount, _)| mounts.contains(mount)) {
            let (invoked, returned) = (*at, Some(*at));
            history.push(Event { mount: *mount, invoked, returned, action: Happening::Synced });
        }
        for (mount, from, until) in self.losses.iter().filter(|(lost, ..)| mounts.contains(lost)) {
            let (invoked, returned) = (*from, *until);
            history.push(Event { mount: *mount, invoked, returned, action: Happening::Lost });
        }
        history
    }
}
