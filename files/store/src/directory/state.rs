//! The store's own directory, `.apus-fs`: lock, secret, snapshot, log, and directories for nodes
//! without a name.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::error::{OpenError, failed};
use super::frame::Mount;
use super::names::STATE;
use apus_fs_core::store::StoreError;

/// Names of the directories in it.
const DIRECTORIES: [&str; 3] = ["orphans", "replay", "lost"];

/// The store's own directory, locked.
#[derive(Debug)]
pub(crate) struct StateFolder {
    /// The exported directory.
    pub(crate) root: OwnedFd,
    /// The directory itself.
    pub(crate) directory: OwnedFd,
    pub(crate) orphans: OwnedFd,
    pub(crate) replay: OwnedFd,
    pub(crate) lost: OwnedFd,
    /// For messages.
    pub(crate) path: PathBuf,
    /// Held while the store is open.
    _lock: OwnedFd,
}

impl StateFolder {
    /// Opens the directory, creates missing files in it, and locks it.
    pub(crate) fn open(export: &Path) -> Result<Self, OpenError> {
        let path = export.join(".apus-fs");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root =
            rustix::fs::open(export, flags, Mode::empty()).map_err(failed("open", export))?;
        let directory = open_directory(&root, STATE, &path)?;
        let lock_path = path.join("lock");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = rustix::fs::openat(&directory, "lock", flags, Mode::RUSR | Mode::WUSR)
            .map_err(failed("open", &lock_path))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(OpenError::InUse { path: lock_path.display().to_string() });
            }
            Err(error) => return Err(failed("lock", &lock_path)(error).into()),
        }
        let [orphans, replay, lost] =
            DIRECTORIES.map(|name| open_directory(&directory, name.as_bytes(), &path.join(name)));
        let (orphans, replay, lost) = (orphans?, replay?, lost?);
        Ok(Self { root, directory, orphans, replay, lost, path, _lock: lock })
    }

    /// Identifies the current mount of the file system; `None` if it cannot be determined.
    pub(crate) fn mount(&self) -> Option<Mount> {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        let boot = u128::from_str_radix(&digits, 16).ok()?.to_le_bytes();
        let wanted = StatxFlags::MNT_ID;
        let statx = rustix::fs::statx(&self.root, "", AtFlags::EMPTY_PATH, wanted).ok()?;
        let is_known = statx.stx_mask & wanted.bits() != 0;
        is_known.then_some(Mount { boot, id: statx.stx_mnt_id })
    }

    /// Returns the secret; draws it when the directory is served for the first time.
    pub(crate) fn secret(&self) -> Result<[u8; 16], OpenError> {
        let path = self.path.join("secret");
        if let Some(bytes) = self.read("secret")? {
            return bytes[..].try_into().map_err(|_| OpenError::Damaged {
                path: path.display().to_string(),
                position: bytes.len() as u64,
            });
        }
        let mut secret = [0; 16];
        rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())
            .map_err(failed("draw", &path))?;
        self.replace("secret", &[&secret])?;
        Ok(secret)
    }

    /// Returns the contents of a file; `None` if it does not exist.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = match rustix::fs::openat(&self.directory, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            file => file.map_err(failed("open", &path))?,
        };
        let mut bytes = Vec::new();
        File::from(file).read_to_end(&mut bytes).map_err(failed("read", &path))?;
        Ok(Some(bytes))
    }

    /// Replaces a file as a whole, durably.
    pub(crate) fn replace(&self, name: &str, contents: &[&[u8]]) -> Result<(), StoreError> {
        let path = self.path.join(name);
        let new = format!("{name}.new");
        let write = || -> io::Result<()> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            let file = rustix::fs::openat(&self.directory, &*new, flags | OFlags::NOFOLLOW, mode)?;
            let mut file = File::from(file);
            contents.iter().try_for_each(|bytes| file.write_all(bytes))?;
            file.sync_all()?;
            rustix::fs::renameat(&self.directory, &*new, &self.directory, name)?;
            Ok(())
        };
        write().map_err(failed("write", &path))?;
        self.sync()
    }

    /// Makes the names in the directory durable.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.directory, ".", flags, Mode::empty())
            .and_then(rustix::fs::fsync)
            .map_err(failed("fsync", &self.path))
    }

    /// Makes everything in the export durable.
    pub(crate) fn sync_export(&self) -> Result<(), StoreError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.directory, ".", flags, Mode::empty())
            .and_then(rustix::fs::syncfs)
            .map_err(failed("syncfs", &self.path))
    }

    /// Returns the numbers of the segments of the log, in ascending order.
    pub(crate) fn segments(&self) -> Result<Vec<u64>, StoreError> {
        let names = super::listing::names(&self.directory)
            .map_err(|errno| io::Error::from_raw_os_error(errno.0.into()))
            .map_err(failed("list", &self.path))?;
        let number = |name: &[u8]| str::from_utf8(name.strip_prefix(b"log.")?).ok()?.parse().ok();
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Removes a segment of the log.
    pub(crate) fn remove_segment(&self, number: u64) -> Result<(), StoreError> {
        let name = segment_name(number);
        rustix::fs::unlinkat(&self.directory, &*name, AtFlags::empty())
            .map_err(failed("remove", &self.path.join(name)))
    }
}

/// Returns the name of the segment whose first frame has this number.
pub(crate) fn segment_name(number: u64) -> String {
    format!("log.{number}")
}

/// Opens a directory, which is created if it is missing; no other user may enter it.
fn open_directory(parent: &OwnedFd, name: &[u8], path: &Path) -> Result<OwnedFd, StoreError> {
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(failed("create", path)(error)),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty()).map_err(failed("open", path))
}
