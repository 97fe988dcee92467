//! Lost changes: changes that can never reach the server are kept as files on this host, where the
//! user finds them (FS-14).
//!
//! Each loss gets a separate directory, which only the user of the mount can read:
//!
//! ```text
//! 2026-11-25T23:59:01Z-mnt-shared/
//!   changes.txt        why, and every change in its order
//!   files/PATH         the bytes that were written, at their positions, in files whose path is known
//!   nodes/NUMBER       the same of files whose path is not
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use apus_fs_core::client::{LostChange, LostChanges};
use apus_fs_core::wire::{Ino, Name, NewNode, Record};
use bytes::Bytes;

/// Directories that one mount may make in one second.
const MOST_TRIES: u32 = 100;

/// Keeps changes in a new directory in `folder`, and returns it. `mount` is the path of the mount.
///
/// # Errors
///
/// The error of the system; the files written before it remain.
pub(super) fn keep(folder: &Path, mount: &Path, lost: &LostChanges) -> io::Result<PathBuf> {
    private().recursive(true).create(folder)?;
    if folder.symlink_metadata()?.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("the folder belongs to another user"));
    }
    let kept = new_directory(folder, mount)?;
    let mut text = BufWriter::new(create(&kept.join("changes.txt"))?);
    writeln!(
        text,
        "{} changes of {} were lost: {}\n",
        lost.changes.len(),
        mount.display(),
        lost.why
    )?;
    for change in &lost.changes {
        writeln!(text, "{}", Described { change, lost })?;
        // A write that this file system cannot hold, at a position too large for it, does not keep
        // the others from being kept.
        if let Record::Write { file, offset, .. } = &change.record
            && let Err(error) = keep_bytes(&kept, file.ino, *offset, &change.data, lost)
        {
            writeln!(text, "    these bytes are not kept: {error}")?;
        }
    }
    text.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(kept)
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn new_directory(folder: &Path, mount: &Path) -> io::Result<PathBuf> {
    let time = humantime::format_rfc3339_seconds(SystemTime::now());
    let mount = mount.to_string_lossy().trim_matches('/').replace('/', "-");
    for number in 1..=MOST_TRIES {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{time}-{mount}{suffix}"));
        match private().create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Writes bytes to the file that represents a node.
fn keep_bytes(
    kept: &Path,
    node: Ino,
    offset: u64,
    data: &[Bytes],
    lost: &LostChanges,
) -> io::Result<()> {
    let mut file = open_node(kept, node, lost)?;
    file.seek(SeekFrom::Start(offset))?;
    data.iter().try_for_each(|piece| file.write_all(piece))?;
    file.sync_all()
}

fn open_node(kept: &Path, node: Ino, lost: &LostChanges) -> io::Result<File> {
    if let Some(path) = lost.paths.get(&node).filter(|path| !path.is_empty()) {
        let names = path.iter().map(|name| std::ffi::OsStr::from_bytes(name.as_bytes()));
        let path = names.fold(kept.join("files"), |path, name| path.join(name));
        // The path is too long, or leads through a file here, because names have moved.
        if let Some(above) = path.parent()
            && private().recursive(true).create(above).is_ok()
            && let Ok(file) = create(&path)
        {
            return Ok(file);
        }
    }
    let nodes = kept.join("nodes");
    fs::create_dir_all(&nodes)?;
    create(&nodes.join(node.to_string()))
}

/// A change in words.
struct Described<'a> {
    change: &'a LostChange,
    lost: &'a LostChanges,
}

impl Described<'_> {
    fn node(&self, ino: Ino) -> String {
        match self.lost.paths.get(&ino) {
            Some(path) if path.is_empty() => ".".to_owned(),
            Some(path) => {
                let names: Vec<String> = path.iter().map(Name::to_string).collect();
                names.join("/")
            }
            None => format!("node {ino}"),
        }
    }

    fn place(&self, directory: Ino, name: &Name) -> String {
        match self.lost.paths.get(&directory) {
            Some(path) if path.is_empty() => name.to_string(),
            _ => format!("{}/{name}", self.node(directory)),
        }
    }
}

impl std::fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.change.record {
            Record::Create { parent, ino, node, mode, uid, gid, .. } => {
                let what = match node {
                    NewNode::File => "file".to_owned(),
                    NewNode::Directory => "directory".to_owned(),
                    NewNode::Symlink { target } => {
                        format!("symbolic link to {}", target.escape_ascii())
                    }
                    NewNode::Special { kind, device } => format!("{kind:?} {device}"),
                };
                let at = match parent {
                    Some((parent, name)) => self.place(parent.ino, name),
                    None => format!("node {ino}"),
                };
                write!(f, "create {what}: {at} (mode {mode:04o}, owner {uid}:{gid})")
            }
            Record::Link { node, parent, name } => {
                write!(f, "link {} as {}", self.node(node.ino), self.place(parent.ino, name))
            }
            Record::Unlink { parent, name, .. } => {
                write!(f, "remove {}", self.place(parent.ino, name))
            }
            Record::RemoveDirectory { parent, name, .. } => {
                write!(f, "remove directory {}", self.place(parent.ino, name))
            }
            Record::Rename { from, to, exchange, .. } => {
                let (from, to) = (self.place(from.0.ino, &from.1), self.place(to.0.ino, &to.1));
                let (verb, word) = if *exchange { ("exchange", "and") } else { ("rename", "to") };
                write!(f, "{verb} {from} {word} {to}")
            }
            Record::Write { file, offset, data, .. } => {
                write!(f, "write {}: {} bytes at {offset}", self.node(file.ino), data.length)
            }
            Record::SetAttributes { node, set } => {
                write!(f, "set attributes of {}:", self.node(node.ino))?;
                set.mode.map_or(Ok(()), |mode| write!(f, " mode {mode:04o}"))?;
                set.uid.map_or(Ok(()), |uid| write!(f, " owner {uid}"))?;
                set.gid.map_or(Ok(()), |gid| write!(f, " group {gid}"))?;
                set.size.map_or(Ok(()), |size| write!(f, " size {size}"))?;
                set.atime.map_or(Ok(()), |time| write!(f, " accessed {}", time.seconds))?;
                set.mtime.map_or(Ok(()), |time| write!(f, " modified {}", time.seconds))
            }
            Record::Allocate { file, mode, offset, length } => {
                let file = self.node(file.ino);
                write!(f, "allocate {file}: {mode:?}, {length} bytes at {offset}")
            }
            Record::CopyRange { from, from_offset, to, to_offset, length } => {
                let (from, to) = (self.node(from.ino), self.node(to.ino));
                write!(f, "copy {length} bytes at {from_offset} of {from} to {to_offset} of {to}")
            }
            Record::SetXattr { node, name, value } => {
                let (node, name) = (self.node(node.ino), name.escape_ascii());
                write!(f, "set attribute {name} of {node}: {}", value.escape_ascii())
            }
            Record::RemoveXattr { node, name } => {
                write!(f, "remove attribute {} of {}", name.escape_ascii(), self.node(node.ino))
            }
            Record::Close { node } => write!(f, "close {}", self.node(node.ino)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;

    use apus_fs_core::wire::{Data, Handle, Time};

    use super::*;

    fn write(ino: u64, offset: u64, text: &'static str) -> LostChange {
        let data = Data { start: 0, length: text.len() as u32 };
        let (file, time) = (Handle::created(Ino(ino)), Time::default());
        let record = Record::Write { file, offset, data, time };
        LostChange { record, data: vec![Bytes::from_static(text.as_bytes())] }
    }

    #[test]
    fn bytes_lie_where_they_were_written_and_changes_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let name = |text: &'static str| Name::new(text).unwrap();
        let rename = Record::Rename {
            from: (Handle::created(Ino::ROOT), name("new")),
            to: (Handle::created(Ino(7)), name("file\n")),
            node: Handle::created(Ino(8)),
            replaced: None,
            exchange: false,
        };
        let changes = vec![
            write(8, 3, "def"),
            write(8, 0, "abc"),
            LostChange { record: rename, data: Vec::new() },
            write(9, 0, "without a path"),
            write(10, 0, "through a file"),
        ];
        let paths = BTreeMap::from([
            (Ino::ROOT, Vec::new()),
            (Ino(7), vec![name("directory")]),
            (Ino(8), vec![name("directory"), name("file\n")]),
            (Ino(10), vec![name("directory"), name("file\n"), name("below")]),
        ]);
        let lost = LostChanges { why: "a test".to_owned(), changes, paths };
        let mount = Path::new("/mnt/shared");
        let place = folder.path().join("state/apus");
        let first = keep(&place, mount, &lost).unwrap();
        let second = keep(&place, mount, &lost).unwrap();
        assert_ne!(first, second);
        assert_eq!(fs::read(first.join("files/directory/file\n")).unwrap(), b"abcdef");
        assert_eq!(fs::read(first.join("nodes/9")).unwrap(), b"without a path");
        assert_eq!(fs::read(first.join("nodes/10")).unwrap(), b"through a file");
        let text = fs::read_to_string(first.join("changes.txt")).unwrap();
        assert!(text.starts_with("5 changes of /mnt/shared were lost: a test\n"), "{text}");
        assert!(text.contains("\nwrite directory/file\\n: 3 bytes at 3\n"), "{text}");
        assert!(text.contains("\nrename new to directory/file\\n\n"), "{text}");
        assert_eq!(first.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
