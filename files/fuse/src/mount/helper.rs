//! Mounting by `fusermount3`, which passes the device over a pair of sockets.

use std::io::{IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use super::error::{MountError, UnmountError};
use super::options::MountOptions;

/// The set-user-id program of the package fuse3.
const HELPER: &str = "fusermount3";

/// Mounts, and receives the device.
pub(crate) fn mount(path: &Path, options: &MountOptions) -> Result<OwnedFd, MountError> {
    let no_helper = |source| MountError::NoHelper { source };
    let (ours, theirs) = UnixStream::pair().map_err(no_helper)?;
    let list = format!(
        "{},{},nosuid,nodev,fsname={},subtype={}",
        if options.read_only { "ro" } else { "rw" },
        options.common(),
        options.fs_name,
        options.subtype
    );
    // The socket is standard input, the one descriptor that a child inherits without further ado.
    let mut child = Command::new(HELPER)
        .arg("-o")
        .arg(list)
        .arg("--")
        .arg(path)
        .env("_FUSE_COMMFD", "0")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(no_helper)?;
    let device = receive(&ours);
    // The helper ends once it has sent the device or failed.
    let mut message = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut message);
    }
    let status = child.wait().map_err(no_helper)?;
    if !status.success() {
        let message = format!("{} ({status})", message.trim());
        return Err(MountError::HelperRefused { path: path.to_owned(), message });
    }
    let silent = |source| MountError::HelperSilent { path: path.to_owned(), source };
    let device = device.map_err(silent)?;
    let flags = rustix::fs::fcntl_getfl(&device).map_err(silent)?;
    rustix::fs::fcntl_setfl(&device, flags | OFlags::NONBLOCK).map_err(silent)?;
    Ok(device)
}

/// Receives one descriptor.
fn receive(socket: &UnixStream) -> Result<OwnedFd, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let buffers = &mut [IoSliceMut::new(&mut byte)];
    rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(socket, buffers, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    descriptors.flatten().next().ok_or(Errno::PROTO)
}

/// Removes a mount made by `fusermount3`.
pub(crate) fn unmount(path: &Path, lazy: bool) -> Result<(), UnmountError> {
    let output = Command::new(HELPER)
        .args(if lazy { &["-u", "-z", "--"][..] } else { &["-u", "--"] })
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| UnmountError::NoHelper { source })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let path = path.to_owned();
    // The message is the only indication of the reason: the helper always exits with 1.
    if message.contains("busy") {
        Err(UnmountError::Busy { path })
    } else if message.contains("not found in") || message.contains("Invalid argument") {
        Err(UnmountError::NotMounted { path })
    } else {
        Err(UnmountError::HelperRefused { path, message })
    }
}
