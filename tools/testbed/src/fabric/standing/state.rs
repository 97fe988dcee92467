//! Where is written down which fabrics there are?

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

use crate::error::{Doing, Error};
use crate::fabric::refusal::Refusal;
use crate::fabric::{Layout, Process};

/// Name of a standing fabric: 1 to 32 letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// What is written down about a fabric.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    /// Ends it by ending.
    pub(super) keeper: Process,
    pub(super) layout: Layout,
}

/// What a look at a fabric's file can show.
#[derive(Debug)]
pub(super) enum Found {
    /// It is there.
    Up(Box<State>),
    /// A keeper is making it.
    Coming,
    /// Its keeper has ended.
    Stale,
    /// Nothing is written down.
    Absent,
}

/// The file of a fabric, locked for as long as this lives.
#[derive(Debug)]
pub(super) struct Claim {
    file: File,
    path: PathBuf,
}

impl Claim {
    /// Writes down what there is.
    pub(super) fn write(&mut self, state: &State) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(state).map_err(io::Error::from);
        let written = text.and_then(|text| self.file.write_all(&text));
        written.doing(|| format!("write {}", self.path.display()))
    }

    /// Removes the file.
    pub(super) fn remove(&self) {
        // One that stays is stale, and goes with the next look at it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes a name this process's own.
pub(super) fn claim(name: &Name) -> Result<Claim, Error> {
    let path = path(name)?;
    let doing = || format!("lock {}", path.display());
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).doing(doing)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(Error::Fabric(Refusal::AlreadyUp { name: name.to_string() }));
            }
            Err(error) => return Err(error).doing(doing),
        }
        // Somebody may have removed it between opening and locking: then it is nobody's file.
        if file.metadata().doing(doing)?.nlink() > 0 {
            file.set_len(0).doing(doing)?;
            return Ok(Claim { file, path });
        }
    }
}

/// Looks what there is.
pub(super) fn find(name: &Name) -> Result<Found, Error> {
    let path = path(name)?;
    let doing = || format!("read {}", path.display());
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Absent),
        Err(error) => return Err(error).doing(doing),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => return Ok(Found::Stale),
        Err(Errno::WOULDBLOCK) => {}
        Err(error) => return Err(error).doing(doing),
    }
    let mut text = String::new();
    file.read_to_string(&mut text).doing(doing)?;
    // Half a file is one that is being written.
    Ok(serde_json::from_str(&text).map_or(Found::Coming, |state| Found::Up(Box::new(state))))
}

/// Removes what is written down about a fabric that has ended.
pub(super) fn forget(name: &Name) -> Result<(), Error> {
    match claim(name) {
        Ok(claim) => {
            claim.remove();
            Ok(())
        }
        // Somebody has made another one since.
        Err(Error::Fabric(Refusal::AlreadyUp { .. })) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Names of all fabrics of this user about which something is written down, in order.
///
/// # Errors
///
/// The folder cannot be read.
pub fn names() -> Result<Vec<Name>, Error> {
    let folder = folder()?;
    let doing = || format!("read {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).doing(doing)? {
        let file = entry.doing(doing)?.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(SUFFIX));
        names.extend(name.and_then(|name| name.parse::<Name>().ok()));
    }
    names.sort();
    Ok(names)
}

/// End of the names of files.
const SUFFIX: &str = ".fabric.json";

fn path(name: &Name) -> Result<PathBuf, Error> {
    Ok(folder()?.join(format!("{name}{SUFFIX}")))
}

/// The folder for what does not outlive the machine's being up: `$XDG_RUNTIME_DIR`, else `/run` for root
/// and `/tmp` for others. Made if it is not there.
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

/// Makes a folder that nobody else may look into, or sees that it is one: `/tmp` is everybody's, and what
/// stands in these files says which processes to end.
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
    Err(Error::Fabric(Refusal::ForeignFolder { folder: folder.to_owned() }))
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Default for Name {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if (1..=32).contains(&text.len()) && text.chars().all(plain) {
            return Ok(Self(text.to_owned()));
        }
        Err("a name has 1 to 32 letters, digits, `-` and `_`; try lab-1".to_owned())
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_name_is_no_path() {
        for wrong in ["", ".", "../x", "a b", "a/b", &"x".repeat(33)] {
            assert!(wrong.parse::<Name>().unwrap_err().contains("try "), "{wrong}");
        }
        assert_eq!("lab-1_A".parse::<Name>().unwrap().to_string(), "lab-1_A");
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let world = tempfile::tempdir().unwrap();
        let (folder, user) = (world.path().join("apus"), geteuid().as_raw());
        own(&folder, user).unwrap();
        own(&folder, user).unwrap();
        assert!(own(&folder, user + 1).is_err(), "somebody else's");
        let link = world.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(own(&link, user).is_err(), "a link");
        fs::set_permissions(&folder, Permissions::from_mode(0o770)).unwrap();
        let said = own(&folder, user).unwrap_err().to_string();
        assert!(said.contains("rm -r") && said.contains("apus"), "{said}");
    }
}
