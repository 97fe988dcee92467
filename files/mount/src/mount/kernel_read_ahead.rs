//! The kernel's own read-ahead of a mount.
//!
//! The kernel uses the smaller of the file system's offer and its own limit, 128 KiB. Root can
//! raise the limit of one mount in sysfs. It determines the length of a sequential reader's
//! requests, not the amount in flight, which the client core controls (`read_ahead.rs` there).

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The limit in KiB. Rationale: long enough that requests cost little compared with their bytes; a
/// program that has mapped a file reads this amount around each page that it touches.
const LIMIT: &str = "512";

/// Raises the limit of a mount. Has no effect if that is not permitted.
pub(super) fn raise(path: &Path) {
    // Not stat(2): it could send a request to the file system, which serves none yet.
    let Ok(mounts) = fs::read("/proc/self/mountinfo") else { return };
    let Some(device) = device(&mounts, path) else { return };
    let limit = format!("/sys/class/bdi/{device}/read_ahead_kb");
    // A mount of a user has no such right, and works with shorter requests.
    let _ = fs::write(limit, LIMIT);
}

/// Returns the number of the device that is mounted at a path, on top of others. Source:
/// proc_pid_mountinfo(5).
fn device<'a>(mounts: &'a [u8], path: &Path) -> Option<&'a str> {
    let path = escape(path.as_os_str().as_bytes());
    let mut mounts = mounts.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        Some((fields.next()?, fields.nth(1)?))
    });
    let (device, _) = mounts.rfind(|(_, mounted)| *mounted == path)?;
    let device = str::from_utf8(device).ok()?;
    let is_number = device.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    is_number.then_some(device)
}

/// Writes a path as the kernel does there.
fn escape(path: &[u8]) -> Vec<u8> {
    let escaped = |byte: &u8| match byte {
        b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
        byte => vec![*byte],
    };
    path.iter().flat_map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_on_top_is_found() {
        let mounts = b"22 1 0:5 / /mnt/a rw - fuse.apus x rw\n\
            23 1 0:6 / /mnt/a\\040b rw - fuse.apus x rw\n\
            24 1 0:7 / /mnt/a rw shared:1 - fuse.apus x rw\n\
            short\n";
        assert_eq!(device(mounts, Path::new("/mnt/a")), Some("0:7"));
        assert_eq!(device(mounts, Path::new("/mnt/a b")), Some("0:6"));
        assert_eq!(device(mounts, Path::new("/mnt")), None);
    }
}
