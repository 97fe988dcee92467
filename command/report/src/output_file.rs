//! Output files: results of experiments on disk, safe from other users of the host.
//!
//! The user may choose a name in a folder that others can write to, such as `/tmp`, and they may
//! have created it first.
//!
//! # Invariants
//!
//! - **OUTPUT-1** A file is replaced as a whole by a new file that was created under an unused name
//!   (O_EXCL) with mode 0600. A replaced file of this user passes its mode on.
//! - **OUTPUT-2** A link or a pipe of another user is refused. Links of this user are followed.
//! - **OUTPUT-3** Names in `/dev`, such as `/dev/stdout`, are written to and never replaced.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use tempfile::NamedTempFile;

/// A file for a result. Opening it leaves nothing behind.
#[derive(Clone, Debug)]
pub struct OutputFile {
    path: PathBuf,
    kind: OutputKind,
}

#[derive(Clone, Debug)]
enum OutputKind {
    /// A plain file or an unused name, with the mode for the new file.
    File { mode: u32 },
    /// A pipe or a device.
    Stream,
}

/// Mode of a new file.
const PRIVATE: u32 = 0o600;

/// Least room on the disk for a result, in bytes: the least that a file system allocates.
const LEAST_ROOM: usize = 4096;

impl OutputFile {
    /// Checks that a result can be written to `path`.
    ///
    /// # Errors
    ///
    /// The folder cannot be written, the disk is full, or the name is a folder, or a link or pipe
    /// of another user.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with_room(path, LEAST_ROOM)
    }

    /// Checks that a result of about `bytes` can be written to `path`.
    ///
    /// # Errors
    ///
    /// As for [`OutputFile::open`], and if the disk has less room.
    pub fn open_with_room(path: &Path, bytes: usize) -> io::Result<Self> {
        let is_device = folder_of(path) == Path::new("/dev") || path.starts_with("/dev/fd");
        let path = if is_device { path.to_owned() } else { follow_own_link(path)? };
        let mode = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => PRIVATE,
            Err(error) => return Err(error),
            Ok(found) if found.is_dir() => return Err(rustix::io::Errno::ISDIR.into()),
            Ok(_) if is_device => return Ok(Self { path, kind: OutputKind::Stream }),
            Ok(found) if !found.is_file() => {
                check_owner(found.uid(), "is a pipe or device of another user")?;
                return Ok(Self { path, kind: OutputKind::Stream });
            }
            Ok(found) if found.uid() == geteuid().as_raw() => found.mode() & 0o777,
            Ok(_) => PRIVATE,
        };
        let file = Self { path, kind: OutputKind::File { mode } };
        let mut trial = file.beside()?;
        trial.write_all(&vec![0; bytes])?;
        // Some file systems allocate only now.
        trial.as_file().sync_data()?;
        Ok(file)
    }

    /// Returns the path of the file, with links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the name is a pipe or a device, which is written and not replaced.
    #[must_use]
    pub const fn is_stream(&self) -> bool {
        matches!(self.kind, OutputKind::Stream)
    }

    /// Replaces the content. After an error the file has its previous content.
    ///
    /// # Errors
    ///
    /// The disk is full, or the file can no longer be written.
    pub fn write(&self, content: &[u8]) -> io::Result<()> {
        let OutputKind::File { mode } = self.kind else {
            return File::options().write(true).open(&self.path)?.write_all(content);
        };
        let mut file = self.beside()?;
        file.write_all(content)?;
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }

    /// Creates a temporary file in the same folder, which is removed unless it takes over the name.
    fn beside(&self) -> io::Result<NamedTempFile> {
        let folder = folder_of(&self.path);
        // Without this check the error would name a temporary file.
        fs::metadata(folder)?;
        let made = tempfile::Builder::new().prefix(".apus-").tempfile_in(folder);
        made.map_err(|error| error.raw_os_error().map_or(error, io::Error::from_raw_os_error))
    }
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    folder.unwrap_or_else(|| Path::new("."))
}

/// Returns the target of a link of this user; any other path unchanged.
fn follow_own_link(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            check_owner(found.uid(), "is a link of another user")?;
            fs::canonicalize(path)
        }
        _ => Ok(path.to_owned()),
    }
}

fn check_owner(uid: u32, problem: &str) -> io::Result<()> {
    if uid == geteuid().as_raw() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{lchown, symlink};

    const OTHER_USER: u32 = 54_321;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_new_file_is_private_and_an_existing_one_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        OutputFile::open(&path).unwrap().write(b"first").unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"first".to_vec(), 0o600));
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        OutputFile::open(&path).unwrap().write(b"second").unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"second".to_vec(), 0o640));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file remains");
    }

    #[test]
    fn an_own_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        OutputFile::open(&link).unwrap().write(b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    /// The attack: another user creates a link to a file of the victim under the name of the
    /// victim's result.
    #[test]
    fn a_link_of_another_user_is_refused_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, link) = (folder.path().join("victim"), folder.path().join("report.html"));
        fs::write(&victim, "precious").unwrap();
        // Even a link created after the check is replaced, not followed.
        let output = OutputFile::open(&link).unwrap();
        symlink(&victim, &link).unwrap();
        output.write(b"result").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::read(&link).unwrap(), b"result");
        fs::remove_file(&link).unwrap();
        symlink(&victim, &link).unwrap();
        if lchown(&link, Some(OTHER_USER), None).is_err() {
            eprintln!("SKIPPED: only root can give a link to another user");
            return;
        }
        let error = OutputFile::open(&link).unwrap_err();
        assert_eq!(error.to_string(), "is a link of another user");
    }

    /// The attack: another user creates the file first, readable for all, to read the result.
    #[test]
    fn a_file_that_another_user_created_first_does_not_receive_the_result() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        if lchown(&path, Some(OTHER_USER), None).is_err() {
            eprintln!("SKIPPED: only root can give a file to another user");
            return;
        }
        let watched = File::open(&path).unwrap();
        OutputFile::open(&path).unwrap().write(b"result").unwrap();
        assert_eq!(watched.metadata().unwrap().len(), 0, "the attacker's file");
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), mode(&path)), (geteuid().as_raw(), 0o600));
    }

    #[test]
    fn a_device_is_written_and_not_replaced() {
        let device = Path::new("/dev/null");
        let output = OutputFile::open(device).unwrap();
        assert!(output.is_stream());
        output.write(b"gone").unwrap();
        assert!(!fs::metadata(device).unwrap().is_file());
    }
}
