//! Applications: draw operations on a few names, so that clients conflict, and on a private
//! directory.

use std::collections::{BTreeMap, BTreeSet};

use apus_fs_core::client::Reply;
use apus_fs_core::wire::{Errno, Ino, LockKind, LockOwner, LockRange, Name, NodeKind};
use bytes::Bytes;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::intent::Intent;
use super::record::node;
use super::recorder::Recorder;
use crate::checker::prefix::PrivateAction;
use crate::history::{Moment, MountId, RenameMode};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const OWN_NAMES: [&str; 3] = ["p", "q", "r"];

/// Files that one application has open.
const MOST_OPEN: usize = 4;

/// Role of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Works in a directory that only its mount uses, and appends to the log.
    Owner,
    /// Works on names and files that all mounts use.
    Sharer,
    /// Reads the board again and again. It rarely needs the server, so it continues where sharers
    /// wait, and would see stale data.
    Reader,
}

/// Files that exist from the start, with names that no operation moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planted {
    /// It is only appended to, and locks are taken on it.
    pub(super) log: Ino,
    /// Sharers change it, and keep it open.
    pub(super) board: Ino,
}

/// An operation that has not returned.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) intent: Intent,
    pub(super) invoked: Moment,
    /// Number of an append.
    append: Option<usize>,
    /// Actions in the own directory before a sync.
    actions: usize,
}

/// One thread of an application.
#[derive(Debug)]
pub(super) struct Application {
    mount: MountId,
    thread: u64,
    role: Role,
    planted: Planted,
    is_harsh: bool,
    pub(super) current: Option<Current>,
    next: Option<Intent>,
    directories: Vec<Ino>,
    opened: Vec<Ino>,
    /// Files that were created without a name. They never get one: the model of names does not
    /// include them.
    temporary: BTreeSet<Ino>,
    listing: Option<Moment>,
    hold: Option<usize>,
    /// Locks that it has released.
    locks: u64,
    /// The directory that only this mount uses. Only the first thread has one.
    own: Option<Ino>,
    own_files: BTreeMap<String, Ino>,
    unsynced: u32,
    last: u64,
    pub(super) is_closing: bool,
    pub(super) is_done: bool,
}

/// Returns whether a name is used for directories as long as they are not moved.
fn is_directory_name(at: &(Ino, Name)) -> bool {
    NAMES[..2].iter().any(|text| text.as_bytes() == at.1.as_bytes())
}

fn name(text: &str) -> Name {
    Name::new(text.to_owned()).expect("a good name")
}

impl Application {
    pub(super) fn new(
        mount: MountId,
        (thread, role): (u64, Role),
        planted: Planted,
        is_harsh: bool,
    ) -> Self {
        Self {
            mount,
            thread,
            role,
            planted,
            is_harsh,
            current: None,
            next: None,
            directories: vec![Ino::ROOT],
            opened: Vec::new(),
            temporary: BTreeSet::new(),
            listing: None,
            hold: None,
            locks: 0,
            own: None,
            own_files: BTreeMap::new(),
            unsynced: 0,
            last: 0,
            is_closing: false,
            is_done: false,
        }
    }

    /// Returns the name of a mount's own directory.
    pub(super) fn own_name(mount: MountId) -> Name {
        name(&format!("own-{}", mount.0))
    }

    /// Returns whether an intent concerns only the own directory, whose history is checked
    /// otherwise.
    pub(super) fn is_private(&self, intent: &Intent) -> bool {
        let is_own =
            |ino: &Ino| Some(*ino) == self.own || self.own_files.values().any(|own| own == ino);
        match intent {
            Intent::Create { at, .. } | Intent::Remove { at, .. } => is_own(&at.0),
            Intent::Rename { from, .. } => is_own(&from.0),
            Intent::Write { file, .. } | Intent::Truncate { file, .. } => is_own(file),
            _ => false,
        }
    }

    /// Starts the next operation, if any is due.
    pub(super) fn begin(
        &mut self,
        random: &mut Pcg64Mcg,
        recorder: &mut Recorder,
    ) -> Option<&Intent> {
        let intent = match self.next.take() {
            Some(intent) => Some(intent),
            None if self.is_closing => self.closing_intent(),
            None => Some(match self.role {
                Role::Owner => self.own_intent(random, recorder),
                Role::Sharer => self.shared_intent(random),
                Role::Reader => self.reader_intent(random),
            }),
        };
        let Some(intent) = intent else {
            self.is_done = true;
            return None;
        };
        let append = match &intent {
            Intent::Append { file, data } if *file == self.planted.log => {
                Some(recorder.append(self.mount, data.clone()))
            }
            _ => None,
        };
        let invoked = recorder.moment();
        if let Intent::Lock { kind: LockKind::Unlock, .. } = intent
            && let Some(hold) = self.hold.take()
        {
            recorder.release(hold, invoked);
        }
        if let Intent::OpenDirectory(_) = intent {
            self.listing = Some(invoked);
        }
        let invoked = match (&intent, self.listing) {
            (Intent::ReadDirectory { .. }, Some(opened)) => opened,
            _ => invoked,
        };
        let actions = recorder.privates.entry(self.mount).or_default().actions.len();
        self.current = Some(Current { intent, invoked, append, actions });
        self.current.as_ref().map(|current| &current.intent)
    }

    /// Takes the result of an operation.
    pub(super) fn end(
        &mut self,
        current: &Current,
        result: &Result<Reply, Errno>,
        returned: Moment,
        recorder: &mut Recorder,
    ) {
        let Ok(reply) = result else {
            self.forget(&current.intent);
            if *result == Err(Errno::INTR)
                && matches!(current.intent, Intent::Lock { kind: LockKind::Unlock, .. })
            {
                // A program that was interrupted while it unlocked has to do it again.
                self.next = Some(self.unlock());
            }
            return;
        };
        match &current.intent {
            Intent::LookUp(_) => {
                if let Reply::Entry(entry) = reply {
                    self.find(entry.node, entry.attributes.kind, recorder);
                }
            }
            Intent::Create { at, is_directory } => {
                let Some(ino) = node(reply) else { return };
                if *at == (Ino::ROOT, Self::own_name(self.mount)) {
                    self.own = Some(ino);
                    recorder.directories.insert(ino);
                } else if Some(at.0) == self.own {
                    self.own_files.insert(String::from_utf8_lossy(at.1.as_bytes()).into(), ino);
                } else if *is_directory {
                    self.find(ino, NodeKind::Directory, recorder);
                } else {
                    self.opened.push(ino);
                }
            }
            Intent::CreateTemporary(_) => {
                self.opened.extend(node(reply));
                self.temporary.extend(node(reply));
            }
            Intent::Lock { kind: LockKind::Unlock, .. } => self.locks += 1,
            Intent::OpenDirectory(directory) => {
                if let Reply::Opened { handle, .. } = reply {
                    let (directory, handle) = (*directory, *handle);
                    self.next = Some(Intent::ReadDirectory { directory, handle });
                }
            }
            Intent::ReadDirectory { handle, .. } => {
                self.next = Some(Intent::ReleaseDirectory { handle: *handle });
            }
            Intent::Open(file) => self.opened.push(*file),
            Intent::Append { .. } => {
                if let Some(append) = current.append {
                    recorder.appended(append, returned);
                }
            }
            Intent::Sync(_) => {
                recorder.sync(self.mount, current.invoked);
                // An action that the first thread has not finished is not owed to a sync of another
                // thread.
                if self.role == Role::Owner
                    && let Some(private) = recorder.privates.get_mut(&self.mount)
                {
                    private.synced = private.synced.max(current.actions);
                }
            }
            Intent::Lock { file, owner, kind, range, .. } => {
                let hold = recorder.hold(*file, self.mount, *owner, *kind, *range, returned);
                self.hold = Some(hold);
            }
            _ => {}
        }
    }

    /// Returns whether an operation uses a file that this application has open: it exists even if
    /// its names are removed (FS-4).
    pub(super) fn uses_opening(&self, intent: &Intent) -> bool {
        match intent {
            Intent::Read { file, .. }
            | Intent::Write { file, .. }
            | Intent::Append { file, .. }
            | Intent::Truncate { file, .. }
            | Intent::Sync(file)
            | Intent::Size(file) => self.opened.contains(file),
            _ => false,
        }
    }

    /// Forgets the node of a failed operation: it may no longer exist.
    fn forget(&mut self, intent: &Intent) {
        match intent {
            Intent::Open(file)
            | Intent::Read { file, .. }
            | Intent::Write { file, .. }
            | Intent::Append { file, .. }
            | Intent::Truncate { file, .. }
            | Intent::Sync(file)
            | Intent::Size(file)
            | Intent::Link { node: file, .. } => self.opened.retain(|open| open != file),
            Intent::OpenDirectory(directory)
            | Intent::LookUp((directory, _))
            | Intent::CreateTemporary(directory)
            | Intent::Create { at: (directory, _), .. } => {
                self.directories.retain(|known| known != directory || *known == Ino::ROOT);
            }
            _ => {}
        }
    }

    fn find(&mut self, ino: Ino, kind: NodeKind, recorder: &mut Recorder) {
        match kind {
            NodeKind::Directory => {
                recorder.directories.insert(ino);
                if !self.directories.contains(&ino) {
                    self.directories.push(ino);
                }
                if self.directories.len() > 4 {
                    self.directories.remove(1);
                }
            }
            NodeKind::File if !self.opened.contains(&ino) => self.next = Some(Intent::Open(ino)),
            _ => {}
        }
    }

    fn closing_intent(&mut self) -> Option<Intent> {
        if self.hold.is_some() {
            return Some(self.unlock());
        }
        (self.role == Role::Owner && std::mem::replace(&mut self.unsynced, 0) > 0)
            .then_some(Intent::Sync(self.planted.log))
    }

    fn unlock(&self) -> Intent {
        let range = LockRange { start: 0, end: u64::MAX };
        let kind = LockKind::Unlock;
        let owner = self.lock_owner();
        Intent::Lock { file: self.planted.log, owner, kind, range, wait: false }
    }

    /// The owner of the lock that it has, or is to have: of `fcntl` or, with an odd number of locks
    /// before, of `flock`.
    fn lock_owner(&self) -> LockOwner {
        LockOwner { owner: self.thread + 1, is_flock: self.locks % 2 == 1 }
    }

    /// Draws an operation on shared names.
    fn shared_intent(&mut self, random: &mut Pcg64Mcg) -> Intent {
        let Planted { log, board } = self.planted;
        for (file, text) in [(log, "log"), (board, "board")] {
            if !self.opened.contains(&file) {
                return Intent::LookUp((Ino::ROOT, name(text)));
            }
        }
        if self.opened.len() > MOST_OPEN
            && let Some(other) = self.opened.iter().position(|ino| *ino != log && *ino != board)
        {
            return Intent::Release(self.opened.remove(other));
        }
        if self.hold.is_some() && random.random_ratio(1, 3) {
            return self.unlock();
        }
        let file = self.opened[random.random_range(0..self.opened.len())];
        let directory = self.directories[random.random_range(0..self.directories.len())];
        let at = self.place(random);
        let is_directory = random.random_ratio(1, 2) && (self.is_harsh || is_directory_name(&at));
        match random.random_range(0..30) {
            0..=3 => Intent::LookUp(at),
            4..=7 => Intent::Create { at, is_directory },
            8..=9 => Intent::Remove { at, is_directory: is_directory && self.is_harsh },
            10..=12 => {
                let modes = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
                let mode = modes[random.random_range(usize::from(!self.is_harsh)..3)];
                Intent::Rename { to: self.rename_to(&at, random), from: at, mode }
            }
            13..=14 => Intent::OpenDirectory(directory),
            15 if file != log
                && file != board
                && !self.temporary.contains(&file)
                && self.is_harsh =>
            {
                Intent::Link { node: file, at }
            }
            16..=17 => Intent::Read { file, offset: 0, length: 4096 },
            18..=19 => {
                let (offset, length) = (random.random_range(0..40), random.random_range(1..20));
                Intent::Read { file, offset, length }
            }
            20..=21 => Intent::Size(file),
            22 if is_directory => Intent::CreateTemporary(directory),
            22 => Intent::Sync(file),
            23 if self.hold.is_none() => Intent::Lock {
                file: log,
                owner: self.lock_owner(),
                kind: if is_directory { LockKind::Read } else { LockKind::Write },
                range: LockRange { start: 0, end: random.random_range(0..2) * 9 },
                wait: random.random_ratio(2, 3),
            },
            24..=25 if file != log => Intent::Append { file, data: self.bytes() },
            26..=28 if file != log => {
                Intent::Write { file, offset: random.random_range(0..40), data: self.bytes() }
            }
            29 if file != log => Intent::Truncate { file, size: random.random_range(0..60) },
            _ => Intent::LookUp(at),
        }
    }

    /// Draws a read of the board.
    fn reader_intent(&mut self, random: &mut Pcg64Mcg) -> Intent {
        let file = self.planted.board;
        if !self.opened.contains(&file) {
            return Intent::LookUp((Ino::ROOT, name("board")));
        }
        match random.random_range(0..8) {
            0..=1 => Intent::Read { file, offset: 0, length: 4096 },
            2..=4 => {
                let (offset, length) = (random.random_range(0..40), random.random_range(1..20));
                Intent::Read { file, offset, length }
            }
            5..=6 => Intent::Size(file),
            _ => Intent::LookUp((Ino::ROOT, name("board"))),
        }
    }

    /// Draws where a name moves. Kernels refuse a rename of a directory into itself; without them,
    /// directories keep their places.
    fn rename_to(&self, from: &(Ino, Name), random: &mut Pcg64Mcg) -> (Ino, Name) {
        let mut to = self.place(random);
        if !self.is_harsh {
            let may_be_directory = is_directory_name(from);
            let names = if may_be_directory { &NAMES[..2] } else { &NAMES[2..] };
            to.1 = name(names[random.random_range(0..names.len())]);
            if may_be_directory {
                to.0 = from.0;
            }
        }
        to
    }

    fn place(&self, random: &mut Pcg64Mcg) -> (Ino, Name) {
        let directory = self.directories[random.random_range(0..self.directories.len())];
        (directory, name(NAMES[random.random_range(0..NAMES.len())]))
    }

    /// Returns bytes that no other operation writes.
    fn bytes(&mut self) -> Bytes {
        self.last += 1;
        format!("<{}.{}.{}>", self.mount.0, self.thread, self.last).into()
    }

    /// Draws an operation in the own directory, or an append to the log.
    fn own_intent(&mut self, random: &mut Pcg64Mcg, recorder: &mut Recorder) -> Intent {
        let Some(own) = self.own else {
            let at = (Ino::ROOT, Self::own_name(self.mount));
            return Intent::Create { at, is_directory: true };
        };
        let log = self.planted.log;
        if !self.opened.contains(&log) {
            return Intent::LookUp((Ino::ROOT, name("log")));
        }
        self.unsynced += 1;
        match random.random_range(0..12) {
            0 => return Intent::Sync(own),
            1 => return Intent::Append { file: log, data: self.bytes() },
            2 => return Intent::Read { file: log, offset: 0, length: 1 << 20 },
            _ => {}
        }
        let text = OWN_NAMES[random.random_range(0..OWN_NAMES.len())].to_owned();
        let other = OWN_NAMES[random.random_range(0..OWN_NAMES.len())].to_owned();
        let data = self.bytes();
        let private = recorder.privates.entry(self.mount).or_default();
        let Some(file) = self.own_files.get(&text).copied() else {
            private.actions.push(PrivateAction::Create { name: text.clone() });
            return Intent::Create { at: (own, name(&text)), is_directory: false };
        };
        match random.random_range(0..6) {
            0..=2 => {
                let offset = random.random_range(0..50);
                private.actions.push(PrivateAction::Write {
                    name: text,
                    offset,
                    data: data.clone(),
                });
                Intent::Write { file, offset: offset as u64, data }
            }
            3 => {
                let size = random.random_range(0..50);
                private.actions.push(PrivateAction::Truncate { name: text, size });
                Intent::Truncate { file, size: size as u64 }
            }
            4 if text != other => {
                self.own_files.remove(&text);
                if let Some(replaced) = self.own_files.insert(other.clone(), file) {
                    self.next = Some(Intent::Release(replaced));
                }
                let (from, to) = ((own, name(&text)), (own, name(&other)));
                private.actions.push(PrivateAction::Rename { from: text, to: other });
                Intent::Rename { from, to, mode: RenameMode::Replace }
            }
            _ => {
                self.own_files.remove(&text);
                let at = (own, name(&text));
                private.actions.push(PrivateAction::Remove { name: text });
                let (release, remove) =
                    (Intent::Release(file), Intent::Remove { at, is_directory: false });
                // A file that is closed when it is removed may never leave the client
                // (`cancellation.rs` of the core).
                let is_closed = random.random_ratio(1, 2);
                let (first, next) = if is_closed { (release, remove) } else { (remove, release) };
                self.next = Some(next);
                first
            }
        }
    }
}
