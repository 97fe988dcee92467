//! The folder of the sockets of live processes: its place, its permissions, and stale sockets.

use crate::introspection::connection;
use apus_local::PeerPolicy;
use rustix::process::{Pid, geteuid, test_kill_process};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Number of sockets that one call of [`remove_stale`] checks. Chosen by us: a start must be quick,
/// and the next one continues.
const MAX_CHECKS: usize = 64;

/// Returns whether `uid` is this process's effective user, and not an id that stands for several
/// users.
fn is_own(uid: u32) -> bool {
    PeerPolicy::SameUser.allows(uid)
}

/// Returns the path of this user's folder, which may not exist.
pub(crate) fn path() -> PathBuf {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(path) = set("APUS_RUNTIME_DIR") {
        return path;
    }
    // `su` and `sudo` may leave the variable of another user.
    let is_own = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| is_own(found.uid()));
    match set("XDG_RUNTIME_DIR").filter(is_own) {
        Some(path) => path.join("apus"),
        None => PathBuf::from(format!("/tmp/apus-{}", geteuid().as_raw())),
    }
}

/// Returns the path of this user's folder, and creates it if necessary.
///
/// # Errors
///
/// It cannot be created, is no folder, belongs to another user, or is open to other users.
pub(crate) fn open() -> io::Result<PathBuf> {
    let path = path();
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if check(&path)? { Ok(path) } else { Err(untrusted(&path, OTHERS)) }
}

const OTHERS: &str = "belongs to another user";

fn untrusted(path: &Path, wrong: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {wrong}", path.display()))
}

/// Returns whether the folder belongs to this user. Root may read the folders of other users.
///
/// # Errors
///
/// It does not exist, is no folder, belongs to another user, or is open to other users.
pub(crate) fn check(path: &Path) -> io::Result<bool> {
    // Does not follow links: any user could have created one.
    let found = fs::symlink_metadata(path)?;
    let own = is_own(found.uid());
    let wrong = if !found.is_dir() {
        "is no folder"
    } else if !own && !geteuid().is_root() {
        OTHERS
    } else if found.mode() & 0o077 != 0 {
        "is open to other users; `chmod 700` closes it"
    } else {
        return Ok(own);
    };
    Err(untrusted(path, wrong))
}

/// Returns the path of a process's socket.
pub(crate) fn socket(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.sock"))
}

/// Returns the ids and sockets of all processes in the folder, dead ones included.
///
/// # Errors
///
/// The folder cannot be read.
pub(crate) fn sockets(folder: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(pid) = name.strip_suffix(".sock").and_then(|pid| pid.parse().ok()) {
            found.push((pid, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Removes the sockets of processes that were killed.
pub(crate) fn remove_stale(folder: &Path) {
    for (pid, path) in sockets(folder).unwrap_or_default().into_iter().take(MAX_CHECKS) {
        if !is_alive(pid) {
            remove_if_dead(&path);
        }
    }
}

/// Removes a socket that no process listens on.
pub(crate) fn remove_if_dead(path: &Path) {
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if connection::open(path).is_err_and(refused) {
        // Fails if another process has already removed it.
        let _ = fs::remove_file(path);
    }
}

/// Returns whether the process exists.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_a_closed_folder_of_the_same_user_is_trusted() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("apus");
        let mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        fs::create_dir(&folder).unwrap();
        mode(0o755);
        let error = check(&folder).unwrap_err();
        assert!(error.to_string().contains("chmod 700"), "{error}");
        mode(0o700);
        assert!(check(&folder).unwrap());
        let link = place.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(check(&link).unwrap_err().to_string().contains("no folder"));
        assert_eq!(check(&place.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn root_may_read_the_folders_of_other_users() {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
        if std::os::unix::fs::chown(place.path(), Some(12_345), None).is_err() {
            eprintln!("SKIPPED: only root can give a folder to another user");
            return;
        }
        assert!(!check(place.path()).unwrap(), "it belongs to another user");
    }

    #[test]
    fn sockets_of_dead_processes_are_removed_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        // No process can have this id.
        let (dead, live) =
            (socket(place.path(), u32::MAX), socket(place.path(), std::process::id()));
        drop(UnixListener::bind(&dead).unwrap());
        let _listens = UnixListener::bind(&live).unwrap();
        let other = place.path().join("notes.txt");
        fs::write(&other, "").unwrap();
        remove_stale(place.path());
        assert_eq!([&dead, &live, &other].map(|path| path.exists()), [false, true, true]);
    }
}
