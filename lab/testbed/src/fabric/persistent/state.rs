//! State files of persistent fabrics, locked by their owners.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::fabric::error::FabricError;
use crate::fabric::identity::Process;
use crate::fabric::layout::Layout;
use apus_measure::error::{Doing, Error};

/// Name of a persistent fabric: 1 to 32 letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FabricName(String);

/// Contents of a state file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FabricState {
    /// Killing this process removes the fabric.
    pub(super) owner: Process,
    pub(super) layout: Layout,
}

/// State of the fabric with a given name.
#[derive(Debug)]
pub(super) enum Lookup {
    /// It exists.
    Up(Box<FabricState>),
    /// Its owner is creating it.
    Starting,
    /// Its owner has ended.
    Stale,
    /// It has no state file.
    Absent,
}

/// State file of a fabric, locked until this value is dropped.
#[derive(Debug)]
pub(super) struct StateLock {
    file: File,
    path: PathBuf,
}

impl StateLock {
    /// Writes the description of the fabric.
    pub(super) fn write(&mut self, state: &FabricState) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(state).map_err(io::Error::from);
        let written = text.and_then(|text| self.file.write_all(&text));
        written.doing(|| format!("write {}", self.path.display()))
    }

    /// Removes the file.
    pub(super) fn remove(&self) {
        // A file that remains is stale; the next command that finds it removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Locks a name for this process.
pub(super) fn lock(name: &FabricName) -> Result<StateLock, Error> {
    let path = path(name)?;
    let doing = || format!("lock {}", path.display());
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).doing(doing)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(FabricError::AlreadyUp { name: name.to_string() }.into());
            }
            Err(error) => return Err(error).doing(doing),
        }
        // Another process may have removed the file between opening and locking: this lock is then
        // on no name.
        if file.metadata().doing(doing)?.nlink() > 0 {
            file.set_len(0).doing(doing)?;
            return Ok(StateLock { file, path });
        }
    }
}

/// Reads the state of the fabric with this name.
pub(super) fn find(name: &FabricName) -> Result<Lookup, Error> {
    let path = path(name)?;
    let doing = || format!("read {}", path.display());
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Lookup::Absent),
        Err(error) => return Err(error).doing(doing),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => return Ok(Lookup::Stale),
        Err(Errno::WOULDBLOCK) => {}
        Err(error) => return Err(error).doing(doing),
    }
    let mut text = String::new();
    file.read_to_string(&mut text).doing(doing)?;
    // A file that does not parse is still being written.
    Ok(serde_json::from_str(&text).map_or(Lookup::Starting, |state| Lookup::Up(Box::new(state))))
}

/// Removes the stale state file of a fabric that has ended.
pub(super) fn remove_stale(name: &FabricName) -> Result<(), Error> {
    match lock(name) {
        Ok(lock) => {
            lock.remove();
            Ok(())
        }
        // Another owner has locked the name since.
        Err(error) if matches!(FabricError::of(&error), Some(FabricError::AlreadyUp { .. })) => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Returns the names of this user's fabrics that have a state file, in order.
///
/// # Errors
///
/// The state folder cannot be read.
pub fn names() -> Result<Vec<FabricName>, Error> {
    let folder = folder()?;
    let doing = || format!("read {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).doing(doing)? {
        let file = entry.doing(doing)?.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(SUFFIX));
        names.extend(name.and_then(|name| name.parse::<FabricName>().ok()));
    }
    names.sort();
    Ok(names)
}

/// Suffix of state files.
const SUFFIX: &str = ".fabric.json";

fn path(name: &FabricName) -> Result<PathBuf, Error> {
    Ok(folder()?.join(format!("{name}{SUFFIX}")))
}

/// Returns the folder for state that does not survive a reboot: `$XDG_RUNTIME_DIR`, otherwise
/// `/run` for root and `/tmp` for other users. Creates it if necessary.
fn folder() -> Result<PathBuf, Error> {
    let user = geteuid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = match runtime.filter(|folder| folder.is_absolute() && folder.is_dir()) {
        Some(runtime) => runtime.join("apus"),
        None if user.is_root() => PathBuf::from("/run/apus"),
        None => PathBuf::from(format!("/tmp/apus-{}", user.as_raw())),
    };
    own(&folder, user.as_raw()).map(|()| folder)
}

/// Creates a folder accessible only to this user, or checks that an existing folder is: every user
/// may write to `/tmp`, and state files name the processes to kill.
fn own(folder: &Path, user: u32) -> Result<(), Error> {
    let doing = || format!("make {}", folder.display());
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).doing(doing),
    }
    let found = fs::symlink_metadata(folder).doing(doing)?;
    if found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(FabricError::ForeignFolder { folder: folder.to_owned() }.into())
}

impl fmt::Display for FabricName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Default for FabricName {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl FromStr for FabricName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if (1..=32).contains(&text.len()) && text.chars().all(plain) {
            return Ok(Self(text.to_owned()));
        }
        Err("a name has 1 to 32 letters, digits, `-` and `_`; try lab-1".to_owned())
    }
}

impl TryFrom<String> for FabricName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<FabricName> for String {
    fn from(name: FabricName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_name_is_not_a_path() {
        for wrong in ["", ".", "../x", "a b", "a/b", &"x".repeat(33)] {
            assert!(wrong.parse::<FabricName>().unwrap_err().contains("try "), "{wrong}");
        }
        assert_eq!("lab-1_A".parse::<FabricName>().unwrap().to_string(), "lab-1_A");
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let world = tempfile::tempdir().unwrap();
        let (folder, user) = (world.path().join("apus"), geteuid().as_raw());
        own(&folder, user).unwrap();
        own(&folder, user).unwrap();
        assert!(own(&folder, user + 1).is_err(), "another user's");
        let link = world.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(own(&link, user).is_err(), "a link");
        fs::set_permissions(&folder, Permissions::from_mode(0o770)).unwrap();
        let said = own(&folder, user).unwrap_err().to_string();
        assert!(said.contains("rm -r") && said.contains("apus"), "{said}");
    }
}
