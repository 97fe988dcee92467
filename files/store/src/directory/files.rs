//! Reaches the backing files of nodes, without following any symbolic link and without leaving the
//! export.
//!
//! A node is reached from its directory by one name, and its directory by a descriptor that is
//! cached or opened in the same way. The file found must have the node's identity. Devices and
//! pipes are never opened, only referred to.

use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use apus_fs_core::wire::{Errno, Ino, Name, NodeKind};
use lru::LruCache;
use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::fail_point::FailPoint;
use super::identity::{Status, errno, status_at, status_of};
use super::state::StateFolder;
use super::table::{LOST, Node, ORPHANS, REPLAY, Table};

const EACCES: i32 = 13;

/// A file that is open for access to its contents.
#[derive(Clone, Debug)]
struct OpenFile {
    file: Arc<OwnedFd>,
    is_writable: bool,
}

/// Descriptors of the export.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) state: StateFolder,
    /// Notices every change before it is made.
    pub(crate) fail_point: FailPoint,
    /// Whether files get the owners given in records.
    pub(crate) sets_owners: bool,
    device: (u32, u32),
    directories: LruCache<Ino, Arc<OwnedFd>>,
    open: LruCache<Ino, OpenFile>,
}

impl Files {
    pub(crate) fn new(
        state: StateFolder,
        directories: NonZeroUsize,
        open: NonZeroUsize,
        fail_point: FailPoint,
    ) -> Result<Self, Errno> {
        let device = status_of(&state.root)?.device;
        Ok(Self {
            state,
            fail_point,
            sets_owners: rustix::process::geteuid().is_root(),
            device,
            directories: LruCache::new(directories),
            open: LruCache::new(open),
        })
    }

    /// Returns the status of a name, or `EXDEV` if it belongs to another file system.
    pub(crate) fn status_at(&self, directory: &OwnedFd, name: &Name) -> Result<Status, Errno> {
        let status = status_at(directory, name.as_bytes())?;
        if status.is_mount || status.device != self.device { Err(Errno::XDEV) } else { Ok(status) }
    }

    /// Returns a descriptor of a directory, which can be neither read nor written.
    pub(crate) fn directory(&mut self, table: &Table, ino: Ino) -> Result<Arc<OwnedFd>, Errno> {
        // Directories on the path, from the target upwards.
        let mut way: Vec<(Ino, &Node, &Name)> = Vec::new();
        let mut at = ino;
        let mut directory = loop {
            if let Some(cached) = self.cached_directory(at)? {
                break cached;
            }
            let node = table.node(at).filter(|node| node.kind == NodeKind::Directory);
            let node = node.ok_or(Errno::STALE)?;
            let (parent, name) = node.places.first().ok_or(Errno::STALE)?;
            // Names that other processes moved meanwhile might form a circle.
            if way.len() > 4096 {
                return Err(Errno::STALE);
            }
            way.push((at, node, name));
            at = *parent;
        };
        for (at, node, name) in way.into_iter().rev() {
            let next = Self::open_path(&directory, name)?;
            self.verify(&next, node)?;
            directory = Arc::new(next);
            self.directories.put(at, directory.clone());
        }
        Ok(directory)
    }

    fn cached_directory(&mut self, ino: Ino) -> Result<Option<Arc<OwnedFd>>, Errno> {
        if let Some(cached) = self.directories.get(&ino) {
            return Ok(Some(cached.clone()));
        }
        let own = match ino {
            Ino::ROOT => &self.state.root,
            ORPHANS => &self.state.orphans,
            REPLAY => &self.state.replay,
            LOST => &self.state.lost,
            _ => return Ok(None),
        };
        let own = Arc::new(own.try_clone().map_err(|_| Errno(24))?);
        self.directories.put(ino, own.clone());
        Ok(Some(own))
    }

    fn verify(&self, file: &OwnedFd, node: &Node) -> Result<Status, Errno> {
        let status = status_of(file)?;
        let is_it = node.identity.is_none_or(|identity| identity == status.identity)
            && status.device == self.device
            && node.kind == status.attributes.kind;
        if is_it { Ok(status) } else { Err(Errno::STALE) }
    }

    /// Opens a name as a reference (`O_PATH`): links are not followed, and the file is not opened
    /// for reading or writing.
    pub(crate) fn open_path(directory: &OwnedFd, name: &Name) -> Result<OwnedFd, Errno> {
        // With both flags, the last component may be a link, which is not followed;
        // RESOLVE_NO_SYMLINKS permits that.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_XDEV;
        rustix::fs::openat2(directory, name.as_bytes(), flags, Mode::empty(), resolve).map_err(
            |error| match error {
                rustix::io::Errno::NOENT => Errno::STALE,
                other => errno(other),
            },
        )
    }

    /// Returns the status of a node.
    pub(crate) fn status(&mut self, table: &Table, ino: Ino) -> Result<Status, Errno> {
        let node = table.node(ino).ok_or(Errno::STALE)?;
        if node.kind == NodeKind::Directory {
            let directory = self.directory(table, ino)?;
            return status_of(&directory);
        }
        if let Some(open) = self.open.get(&ino) {
            return status_of(&open.file);
        }
        let mut failure = Errno::STALE;
        for (parent, name) in &node.places {
            let directory = self.directory(table, *parent);
            match directory.and_then(|directory| self.status_at(&directory, name)) {
                Ok(status) if node.identity.is_none_or(|is| is == status.identity) => {
                    return Ok(status);
                }
                Ok(_) | Err(Errno::NOENT) => {}
                Err(other) => failure = other,
            }
        }
        Err(failure)
    }

    /// Returns a descriptor that refers to a node.
    pub(crate) fn reach(&mut self, table: &Table, ino: Ino) -> Result<Arc<OwnedFd>, Errno> {
        let node = table.node(ino).ok_or(Errno::STALE)?;
        if node.kind == NodeKind::Directory {
            return self.directory(table, ino);
        }
        if let Some(open) = self.open.get(&ino) {
            return Ok(open.file.clone());
        }
        let mut failure = Errno::STALE;
        for (parent, name) in &node.places {
            let directory = self.directory(table, *parent);
            let opened = directory.and_then(|directory| Self::open_path(&directory, name));
            match opened.and_then(|file| self.verify(&file, node).map(|_| file)) {
                Ok(file) => return Ok(Arc::new(file)),
                Err(other) => failure = other,
            }
        }
        Err(failure)
    }

    /// Returns a descriptor of a regular file's contents.
    pub(crate) fn contents(
        &mut self,
        table: &Table,
        ino: Ino,
        writable: bool,
    ) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(open) = self.open.get(&ino).filter(|open| open.is_writable || !writable) {
            return Ok(open.file.clone());
        }
        // A descriptor that only reads must not serve to reach the file: it is replaced.
        let file = self.reach(table, ino)?;
        let status = status_of(&file)?;
        if status.attributes.kind != NodeKind::File {
            return Err(Errno::INVAL);
        }
        let access = if writable { OFlags::RDWR } else { OFlags::RDONLY };
        let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let open = || rustix::fs::open(proc_path(&file), flags, Mode::empty());
        let opened = match open() {
            // The server runs as an ordinary user who owns the file: its mode concerns the clients'
            // users, and is checked by clients.
            Err(error) if error.raw_os_error() == EACCES => {
                let mode = status.attributes.mode;
                rustix::fs::chmod(proc_path(&file), mode_of(mode | 0o600)).map_err(errno)?;
                let opened = open();
                rustix::fs::chmod(proc_path(&file), mode_of(mode)).map_err(errno)?;
                opened
            }
            opened => opened,
        };
        let file = Arc::new(opened.map_err(errno)?);
        self.keep(ino, file.clone(), writable);
        Ok(file)
    }

    /// Returns the descriptor of a file's contents that is kept, if there is one.
    pub(crate) fn opened(&mut self, ino: Ino) -> Option<Arc<OwnedFd>> {
        self.open.get(&ino).map(|open| open.file.clone())
    }

    /// Keeps a descriptor of a file's contents.
    pub(crate) fn keep(&mut self, ino: Ino, file: Arc<OwnedFd>, is_writable: bool) {
        self.open.put(ino, OpenFile { file, is_writable });
    }

    /// Closes a file for writing: Linux refuses to execute a program that is open for writing.
    pub(crate) fn close_program(&mut self, ino: Ino) {
        if self.open.peek(&ino).is_some_and(|open| open.is_writable) {
            self.open.pop(&ino);
        }
    }

    /// Closes all descriptors of nodes.
    pub(crate) fn forget_all(&mut self) {
        self.directories.clear();
        self.open.clear();
    }

    /// Closes the descriptors of a deleted node.
    pub(crate) fn forget(&mut self, ino: Ino) {
        self.directories.pop(&ino);
        self.open.pop(&ino);
    }
}

/// Returns a path to the file behind a descriptor, for system calls that take no descriptor.
pub(crate) fn proc_path(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Converts permission bits for system calls.
pub(crate) fn mode_of(mode: u16) -> Mode {
    Mode::from_raw_mode(u32::from(mode) & 0o7777)
}
