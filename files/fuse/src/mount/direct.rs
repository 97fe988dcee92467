//! Mounting by mount(2).

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::process::{getegid, geteuid};

use super::error::MountError;
use super::options::MountOptions;

/// The device of the protocol.
const DEVICE: &str = "/dev/fuse";

/// Opens the device and mounts it.
pub(crate) fn mount(path: &Path, options: &MountOptions) -> Result<OwnedFd, MountError> {
    let place = || path.to_owned();
    let root = rustix::fs::stat(path)
        .map_err(|source| MountError::MountPoint { path: place(), source })?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let device = rustix::fs::open(DEVICE, flags, Mode::empty()).map_err(|source| match source {
        Errno::ACCESS | Errno::PERM => MountError::NotPermitted { path: place(), source },
        _ => MountError::NoDevice { source },
    })?;
    let data = format!(
        "fd={},rootmode={:o},user_id={},group_id={},{}",
        device.as_raw_fd(),
        root.st_mode & 0o170_000,
        geteuid().as_raw(),
        getegid().as_raw(),
        options.common()
    );
    let data = CString::new(data).map_err(|_| MountError::Option { option: "fs_name" })?;
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    flags.set(MountFlags::RDONLY, options.read_only);
    let kind = format!("fuse.{}", options.subtype);
    match rustix::mount::mount(options.fs_name.as_str(), path, kind.as_str(), flags, Some(&*data)) {
        Ok(()) => Ok(device),
        Err(source @ (Errno::PERM | Errno::ACCESS)) => {
            Err(MountError::NotPermitted { path: place(), source })
        }
        Err(Errno::NODEV) => Err(MountError::NoDevice { source: Errno::NODEV }),
        Err(source) => Err(MountError::Refused { path: place(), source }),
    }
}
