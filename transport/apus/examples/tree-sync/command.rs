//! The encoding of a command, which creates one file.
//!
//! ```text
//!   bytes 0..4   length of the path     4..12  length of the content   12..16  mode
//!         16..24 seconds since 1970     24..28 nanoseconds              28..    path, then the content
//! ```
//!
//! All numbers are big-endian. Lengths and paths come from an untrusted sender and are checked.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use apus::Bytes;

use super::Failure;

/// Bytes of a head before the path.
pub(super) const FIXED: usize = 28;

/// Limits for path and content in bytes. The content fits into a message of apus, which has up to
/// 64 MB.
const LONGEST_PATH: usize = 4_096;
const LONGEST_CONTENT: u64 = 60_000_000;

/// A command to create a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileCommand {
    /// Relative to the tree's root, without `..`.
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    /// Time of the last change: seconds since 1970, and nanoseconds.
    pub(super) changed: (i64, u32),
    pub(super) content: Bytes,
}

/// Lengths of the variable parts of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) path: usize,
    pub(super) content: usize,
}

impl Lengths {
    /// Reads and checks the lengths in a head.
    pub(super) fn of(head: &[u8; FIXED]) -> Result<Self, Failure> {
        let path = u32::from_be_bytes(at(head, 0)) as usize;
        let content = u64::from_be_bytes(at(head, 4));
        if path == 0 || path > LONGEST_PATH || content > LONGEST_CONTENT {
            return Err(format!("a path of {path} bytes and a content of {content}").into());
        }
        Ok(Self { path, content: usize::try_from(content)? })
    }

    /// Returns the number of bytes after the fixed part.
    pub(super) const fn total(self) -> usize {
        self.path + self.content
    }
}

impl FileCommand {
    /// Reads the file at `path` below `root`.
    pub(super) fn of_file(root: &Path, path: &Path) -> Result<Self, Failure> {
        let mut file = File::open(root.join(path))?;
        let metadata = file.metadata()?;
        let mut content = Vec::with_capacity(usize::try_from(metadata.len())?);
        file.read_to_end(&mut content)?;
        Ok(Self {
            path: path.to_owned(),
            mode: metadata.mode() & 0o7777,
            changed: (metadata.mtime(), u32::try_from(metadata.mtime_nsec())?),
            content: content.into(),
        })
    }

    /// Returns the encoded command without the content.
    pub(super) fn head(&self) -> Bytes {
        let path = self.path.as_os_str().as_bytes();
        let mut head = Vec::with_capacity(FIXED + path.len());
        head.extend((path.len() as u32).to_be_bytes());
        head.extend((self.content.len() as u64).to_be_bytes());
        head.extend(self.mode.to_be_bytes());
        head.extend(self.changed.0.to_be_bytes());
        head.extend(self.changed.1.to_be_bytes());
        head.extend(path);
        head.into()
    }

    /// Parses a command. The content is a slice of `bytes` and is not copied.
    pub(super) fn parse(bytes: &Bytes) -> Result<Self, Failure> {
        let head: &[u8; FIXED] = bytes.first_chunk().ok_or("a command that is too short")?;
        let lengths = Lengths::of(head)?;
        if bytes.len() != FIXED + lengths.total() {
            return Err("a command of another length than it says".into());
        }
        let (path, content) = (FIXED..FIXED + lengths.path, FIXED + lengths.path..);
        let path = PathBuf::from(OsStr::from_bytes(&bytes[path]));
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(format!("{} leads out of the tree", path.display()).into());
        }
        Ok(Self {
            path,
            mode: u32::from_be_bytes(at(head, 12)),
            changed: (i64::from_be_bytes(at(head, 16)), u32::from_be_bytes(at(head, 24))),
            content: bytes.slice(content),
        })
    }
}

/// Returns the bytes of the number at `offset`.
fn at<const N: usize>(head: &[u8; FIXED], offset: usize) -> [u8; N] {
    *head[offset..].first_chunk().expect("a number that lies in the head")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(path: &str) -> FileCommand {
        let content = Bytes::from_static(b"content");
        FileCommand { path: path.into(), mode: 0o640, changed: (-5, 999_999_999), content }
    }

    fn joined(command: &FileCommand) -> Bytes {
        [command.head(), command.content.clone()].concat().into()
    }

    #[test]
    fn a_command_arrives_as_it_was_sent() {
        let sent = command("some/where/file");
        let bytes = joined(&sent);
        assert_eq!(FileCommand::parse(&bytes).unwrap(), sent);
        let lengths = Lengths::of(bytes.first_chunk().unwrap()).unwrap();
        assert_eq!(lengths.total(), bytes.len() - FIXED);
    }

    #[test]
    fn a_path_that_leads_out_of_the_tree_is_refused() {
        for path in ["../outside", "/etc/passwd", "a/../../b", ".", ".."] {
            let error = FileCommand::parse(&joined(&command(path))).unwrap_err();
            assert!(error.to_string().contains("leads out of the tree"), "{path}: {error}");
        }
    }

    #[test]
    fn anything_but_a_command_is_refused() {
        let good = joined(&command("file"));
        for length in 0..good.len() {
            assert!(FileCommand::parse(&good.slice(..length)).is_err(), "{length}");
        }
        for index in 0..12 {
            let mut wrong = good.to_vec();
            wrong[index] ^= 0x40;
            assert!(FileCommand::parse(&wrong.into()).is_err(), "byte {index}");
        }
        assert!(FileCommand::parse(&joined(&command(""))).is_err(), "no path");
    }
}
