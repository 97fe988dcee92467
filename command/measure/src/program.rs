//! Programs: searches `PATH`, the folders of administrators' programs, and the folder of this
//! program.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Folders of administrators' programs, which an ordinary user's `PATH` may lack.
const SBIN: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Returns the path of a system program such as `ethtool`; `None` if it is not installed.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    find_in(name, &env::var_os("PATH").unwrap_or_default(), &SBIN)
}

/// Returns the path of another program of apus, next to this program or in `PATH`; `None` if it is
/// not installed.
#[must_use]
pub fn beside(name: &str) -> Option<PathBuf> {
    let beside = env::current_exe().ok().map(|this| this.with_file_name(name));
    beside.filter(|file| is_program(file)).or_else(|| find(name))
}

fn find_in(name: &str, path: &OsStr, sbin: &[&str]) -> Option<PathBuf> {
    let folders = env::split_paths(path).chain(sbin.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_program_is_found_in_the_administrators_folders() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tc");
        fs::write(&file, "#!/bin/sh\n").unwrap();
        let sbin = [folder.path().to_str().unwrap()];
        let nowhere = OsStr::new("/no/such/folder");
        assert_eq!(find_in("tc", nowhere, &sbin), None, "it cannot be executed");
        fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_in("tc", nowhere, &sbin), Some(file.clone()));
        assert_eq!(find_in("tc", folder.path().as_os_str(), &[]), Some(file));
    }
}
