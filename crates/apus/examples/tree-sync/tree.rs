//! Where do files come from, and are two trees equal?

use std::fmt;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Files in a folder and in those below it.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) root: PathBuf,
    /// Their paths from the root, sorted.
    pub(super) files: Vec<PathBuf>,
}

/// Modes that take turns. Their owner may read all of them.
const MODES: [u32; 4] = [0o644, 0o600, 0o755, 0o444];

/// Makes a tree of so many files, of up to 16 kB each, like those of a program's sources. The same tree each time.
pub(super) fn make(root: &Path, files: u32) -> io::Result<Tree> {
    // A generator of a line (Knuth's MMIX): what is drawn has to look like nothing, and no more.
    let mut state = 2_008_u64;
    let mut draw = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for number in 0..files {
        let folder = match draw(4) {
            0 => root.to_owned(),
            1 => root.join(format!("folder-{}", draw(8))),
            _ => root.join(format!("folder-{}", draw(8))).join(format!("deeper-{}", draw(4))),
        };
        fs::create_dir_all(&folder)?;
        let mut file = File::create(folder.join(format!("file-{number}")))?;
        // Most are short, and some are empty.
        let longest = 1 + draw(16_000);
        let length = draw(longest);
        let content: Vec<u8> = (0..length).map(|_| draw(256) as u8).collect();
        file.write_all(&content)?;
        file.set_permissions(Permissions::from_mode(MODES[number as usize % MODES.len()]))?;
        let age = Duration::new(1_000_000_000 + draw(600_000_000), draw(1_000_000_000) as u32);
        file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + age))?;
    }
    Tree::read(root)
}

impl Tree {
    /// What is there.
    pub(super) fn read(root: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(root.join(&folder))? {
                let entry = entry?;
                let path = folder.join(entry.file_name());
                if entry.file_type()?.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        Ok(Self { root: root.to_owned(), files })
    }

    fn has(&self, path: &PathBuf) -> bool {
        self.files.binary_search(path).is_ok()
    }

    /// Bytes of all contents.
    pub(super) fn bytes(&self) -> io::Result<u64> {
        self.files.iter().map(|path| Ok(fs::metadata(self.root.join(path))?.len())).sum()
    }
}

/// What is not the same in two trees; the first thing that is found.
#[derive(Debug)]
pub(super) enum Difference {
    /// There is no such file in the other one.
    Missing(PathBuf),
    /// There is none in the first.
    Extra(PathBuf),
    /// Contents, modes or times differ.
    Differs(PathBuf, &'static str),
    /// One cannot be read.
    Unreadable(io::Error),
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(formatter, "{} did not come", path.display()),
            Self::Extra(path) => write!(formatter, "{} came and was not sent", path.display()),
            Self::Differs(path, what) => write!(formatter, "{}: {what} differs", path.display()),
            Self::Unreadable(error) => write!(formatter, "a tree cannot be read: {error}"),
        }
    }
}

impl From<io::Error> for Difference {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

/// Whether the other tree has the same files, with the same contents, modes and times.
pub(super) fn compare(one: &Tree, other: &Tree) -> Result<(), Difference> {
    if let Some(path) = one.files.iter().find(|path| !other.has(path)) {
        return Err(Difference::Missing(path.clone()));
    }
    if let Some(path) = other.files.iter().find(|path| !one.has(path)) {
        return Err(Difference::Extra(path.clone()));
    }
    for path in &one.files {
        let differs = |what| Err(Difference::Differs(path.clone(), what));
        let (ours, theirs) = (one.root.join(path), other.root.join(path));
        let (left, right) = (fs::metadata(&ours)?, fs::metadata(&theirs)?);
        if fs::read(ours)? != fs::read(theirs)? {
            return differs("the content");
        }
        if left.mode() != right.mode() {
            return differs("the mode");
        }
        if (left.mtime(), left.mtime_nsec()) != (right.mtime(), right.mtime_nsec()) {
            return differs("the time of the last change");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(root: &Path) -> Tree {
        make(root, 9).unwrap()
    }

    #[test]
    fn the_same_tree_is_made_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (made(&folder.path().join("1")), made(&folder.path().join("2")));
        assert_eq!(one.files.len(), 9);
        assert!(one.bytes().unwrap() > 0);
        compare(&one, &other).unwrap();
    }

    #[test]
    fn every_difference_is_found_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let one = made(&folder.path().join("1"));
        let spoiled = |name: &str, spoil: &dyn Fn(&Path)| {
            let other = made(&folder.path().join(name));
            spoil(&other.root.join(&one.files[4]));
            let other = Tree::read(&other.root).unwrap();
            compare(&one, &other).unwrap_err().to_string()
        };
        let remove = |path: &Path| fs::remove_file(path).unwrap();
        assert!(spoiled("missing", &remove).ends_with("did not come"));
        let add = |path: &Path| fs::write(path.with_extension("new"), "x").unwrap();
        assert!(spoiled("extra", &add).ends_with("came and was not sent"));
        let mode = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
        assert!(spoiled("mode", &mode).ends_with("the mode differs"));
        let time = |path: &Path| {
            let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
            File::open(path).unwrap().set_times(times).unwrap();
        };
        assert!(spoiled("time", &time).ends_with("the time of the last change differs"));
        let content = |path: &Path| {
            remove(path);
            fs::write(path, "something else").unwrap();
        };
        assert!(spoiled("content", &content).ends_with("the content differs"));
    }
}
