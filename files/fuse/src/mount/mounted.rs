//! A mount, from mounting to unmounting.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use super::error::{MountError, UnmountError};
use super::identity::MountIdentity;
use super::options::{MountMethod, MountOptions};
use super::{direct, helper};

/// Way of unmounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmount {
    /// Only if no file is in use. The kernel may need replies of the file system for that, so the
    /// serving thread must not call this.
    IfUnused,
    /// The mount disappears from its path at once, and ends when its files are closed.
    Lazy,
}

/// A mounted file system; dropping it detaches it lazily (MOUNT-1).
#[derive(Debug)]
pub struct Mount {
    path: PathBuf,
    identity: Option<MountIdentity>,
    mounted: bool,
}

impl Mount {
    /// Mounts at `path` and returns the device, which is non-blocking and not inherited by programs
    /// that are executed.
    ///
    /// Until the device is read, every access to the mount waits.
    ///
    /// # Errors
    ///
    /// [`MountError`]; no mount is left then.
    pub fn new(path: &Path, options: &MountOptions) -> Result<(Self, OwnedFd), MountError> {
        options.check()?;
        // The process may change its working directory before it unmounts.
        let path = std::path::absolute(path)
            .and_then(std::fs::canonicalize)
            .map_err(|error| mount_point(path, &error))?;
        let device = match options.method {
            MountMethod::Direct => direct::mount(&path, options),
            MountMethod::Helper => helper::mount(&path, options),
            MountMethod::Auto => match direct::mount(&path, options) {
                Err(MountError::NotPermitted { .. }) => helper::mount(&path, options),
                other => other,
            },
        }?;
        let identity = MountIdentity::of(&path).ok();
        Ok((Self { path, identity, mounted: true }, device))
    }

    /// Returns the mount point, as an absolute path without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts.
    ///
    /// # Errors
    ///
    /// [`UnmountError`], with the mount, which still exists unless the error is
    /// [`UnmountError::NotMounted`].
    pub fn unmount(mut self, how: Unmount) -> Result<(), (Self, UnmountError)> {
        match self.end(how) {
            Ok(()) => Ok(()),
            Err(error) => Err((self, error)),
        }
    }

    /// Leaves the mount to [`unmount`], or to the end of the connection, when this is dropped.
    pub fn leak(mut self) {
        self.mounted = false;
    }

    fn end(&mut self, how: Unmount) -> Result<(), UnmountError> {
        if !self.is_ours() {
            self.mounted = false;
            return Err(UnmountError::NotMounted { path: self.path.clone() });
        }
        unmount(&self.path, how)?;
        self.mounted = false;
        Ok(())
    }

    /// Returns whether the path still leads to this mount.
    fn is_ours(&self) -> bool {
        match (self.identity, MountIdentity::of(&self.path)) {
            (Some(mounted), Ok(found)) => mounted == found,
            // The connection was aborted, or other users have no access: assume that it is this
            // mount.
            _ => true,
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.mounted {
            // A failure cannot be handled here; `unmount` reports it.
            let _ = self.end(Unmount::Lazy);
        }
    }
}

/// Removes the mount at `path`: by umount2(2) and, if that is not permitted, by `fusermount3`.
///
/// # Errors
///
/// [`UnmountError`].
pub fn unmount(path: &Path, how: Unmount) -> Result<(), UnmountError> {
    let lazy = how == Unmount::Lazy;
    let mut flags = UnmountFlags::NOFOLLOW;
    flags.set(UnmountFlags::DETACH, lazy);
    match rustix::mount::unmount(path, flags) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => helper::unmount(path, lazy),
        Err(Errno::BUSY) => Err(UnmountError::Busy { path: path.to_owned() }),
        Err(Errno::INVAL | Errno::NOENT) => Err(UnmountError::NotMounted { path: path.to_owned() }),
        Err(source) => Err(UnmountError::Refused { path: path.to_owned(), source }),
    }
}

fn mount_point(path: &Path, error: &std::io::Error) -> MountError {
    let source = Errno::from_io_error(error).unwrap_or(Errno::INVAL);
    MountError::MountPoint { path: path.to_owned(), source }
}
