//! Errors of mounting, with the place of the fault and a remedy.

use std::path::PathBuf;

use rustix::io::Errno;

/// Reason why a mount failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// An option has a character that cannot be passed on.
    #[error("option {option} must not be empty or have commas, backslashes or control characters")]
    Option {
        /// Its name.
        option: &'static str,
    },
    /// The mount point cannot be used.
    #[error("mount point {path}: {source}; it must exist, and be accessible for this user")]
    MountPoint {
        /// The mount point.
        path: PathBuf,
        /// The system's error.
        source: Errno,
    },
    /// The system has no FUSE.
    #[error(
        "/dev/fuse: {source}; this system has no FUSE: load the kernel module `fuse`, or pass the device into the container"
    )]
    NoDevice {
        /// The system's error.
        source: Errno,
    },
    /// The user may not mount, and `fusermount3` was not to be used.
    #[error(
        "mounting at {path}: {source}; mount as root, in a user namespace with its own mounts (unshare -Urm), or by fusermount3"
    )]
    NotPermitted {
        /// The mount point.
        path: PathBuf,
        /// The system's error.
        source: Errno,
    },
    /// The system refuses for another reason.
    #[error("mount {path}: {source}")]
    Refused {
        /// The mount point.
        path: PathBuf,
        /// The system's error.
        source: Errno,
    },
    /// The user may not mount, and `fusermount3` is missing.
    #[error(
        "this user may not mount, and fusermount3 cannot be run: {source}; install the package fuse3, or mount as root"
    )]
    NoHelper {
        /// The system's error.
        source: std::io::Error,
    },
    /// `fusermount3` refused.
    #[error("fusermount3 refused to mount at {path}: {message}")]
    HelperRefused {
        /// The mount point.
        path: PathBuf,
        /// Its output.
        message: String,
    },
    /// `fusermount3` did not pass the device on.
    #[error("fusermount3 mounted at {path}, but did not return the device: {source}")]
    HelperSilent {
        /// The mount point.
        path: PathBuf,
        /// The system's error.
        source: Errno,
    },
}

/// Why something is still mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnmountError {
    /// Files or directories below are in use.
    #[error("{path} is in use: close its files and leave its directories, or unmount lazily")]
    Busy {
        /// The mount point.
        path: PathBuf,
    },
    /// The mount is not there, or another one is.
    #[error("{path} is not mounted")]
    NotMounted {
        /// The mount point.
        path: PathBuf,
    },
    /// The system refuses for another reason.
    #[error("unmount {path}: {source}")]
    Refused {
        /// The mount point.
        path: PathBuf,
        /// The system's error.
        source: Errno,
    },
    /// The user may not unmount, and `fusermount3` is missing.
    #[error(
        "this user may not unmount, and fusermount3 cannot be run: {source}; install the package fuse3"
    )]
    NoHelper {
        /// The system's error.
        source: std::io::Error,
    },
    /// `fusermount3` refused.
    #[error("fusermount3 refused to unmount {path}: {message}")]
    HelperRefused {
        /// The mount point.
        path: PathBuf,
        /// Its output.
        message: String,
    },
}
