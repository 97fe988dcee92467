//! The server's side: carries out commands and replies.

use std::fs::{self, File, FileTimes, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use apus::Bytes;

use super::Failure;
use super::command::FileCommand;

/// The reply to a command that was carried out. Any other reply is an error message.
pub(super) const DONE: &str = "done";

/// The folder into which files are written.
#[derive(Debug)]
pub(super) struct Store {
    root: PathBuf,
}

impl Store {
    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Carries out a command and returns the reply.
    pub(super) fn reply(&self, command: &Bytes) -> String {
        let written = FileCommand::parse(command).and_then(|command| self.write(&command));
        written.map_or_else(|error| error.to_string(), |()| DONE.to_owned())
    }

    /// Writes a file and creates its parent folders as needed.
    fn write(&self, command: &FileCommand) -> Result<(), Failure> {
        let path = self.root.join(&command.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = File::create(&path)?;
        file.write_all(&command.content)?;
        file.set_permissions(Permissions::from_mode(command.mode & 0o7777))?;
        // Last, since every step before changes the time.
        file.set_times(FileTimes::new().set_modified(time(command.changed)?))?;
        Ok(())
    }
}

/// Converts a time; seconds before 1970 are negative, and nanoseconds count forwards from them.
fn time((seconds, nanoseconds): (i64, u32)) -> Result<SystemTime, Failure> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start = SystemTime::UNIX_EPOCH;
    let at = if seconds < 0 { start.checked_sub(whole) } else { start.checked_add(whole) };
    at.and_then(|at| at.checked_add(Duration::from_nanos(nanoseconds.into())))
        .ok_or_else(|| "a time that this system cannot represent".into())
}

/// Returns an error unless the reply reports success.
pub(super) fn check(reply: &[u8]) -> Result<(), Failure> {
    if reply == DONE.as_bytes() {
        return Ok(());
    }
    Err(format!("the server refused: {}", String::from_utf8_lossy(reply)).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn write(root: &Path, path: &str, changed: (i64, u32)) -> String {
        let content = Bytes::from_static(b"text");
        let command = FileCommand { path: path.into(), mode: 0o400, changed, content };
        let bytes = [command.head(), command.content.clone()].concat();
        Store::at(root).reply(&bytes.into())
    }

    #[test]
    fn a_file_has_the_content_and_attributes_of_its_command() {
        let folder = tempfile::tempdir().unwrap();
        for (name, changed) in [("a/b/c", (1_000_000_000, 5)), ("old", (-1, 999_999_999))] {
            assert_eq!(write(folder.path(), name, changed), DONE);
            let path = folder.path().join(name);
            let metadata = fs::metadata(&path).unwrap();
            assert_eq!(fs::read(path).unwrap(), b"text");
            assert_eq!(metadata.mode() & 0o7777, 0o400);
            assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (changed.0, changed.1.into()));
        }
    }

    #[test]
    fn a_failure_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let reply = write(folder.path(), "../outside", (0, 0));
        let error = check(reply.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("the server refused: ../outside leads"), "{error}");
        assert!(!folder.path().parent().unwrap().join("outside").exists());
        assert!(write(folder.path(), "never", (i64::MAX, u32::MAX)).contains("cannot represent"));
        check(DONE.as_bytes()).unwrap();
    }
}
