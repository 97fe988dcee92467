//! Creation and comparison of trees of files.

use std::fmt;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The files below a folder.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) root: PathBuf,
    /// Paths relative to the root, sorted.
    pub(super) files: Vec<PathBuf>,
}

/// File modes, used in turn. The owner may read all of them.
const MODES: [u32; 4] = [0o644, 0o600, 0o755, 0o444];

/// Creates a tree of `files` files of up to 16 kB, like the sources of a program. The tree is the
/// same each time.
pub(super) fn make(root: &Path, files: u32) -> io::Result<Tree> {
    // A linear congruential generator (Knuth's MMIX): statistical quality does not matter here.
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
    /// Lists the files below `root`.
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

    /// Returns the number of bytes in all files.
    pub(super) fn bytes(&self) -> io::Result<u64> {
        self.files.iter().map(|path| Ok(fs::metadata(self.root.join(path))?.len())).sum()
    }
}

/// The first difference found between two trees.
#[derive(Debug)]
pub(super) enum Difference {
    /// The file exists only in the first tree.
    Missing(PathBuf),
    /// The file exists only in the second tree.
    Extra(PathBuf),
    /// Content, mode or time differs.
    Differs(PathBuf, &'static str),
    /// A tree cannot be read.
    Unreadable(io::Error),
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(formatter, "{} was not copied", path.display()),
            Self::Extra(path) => write!(formatter, "{} was copied and not sent", path.display()),
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

/// Compares files, contents, modes and times.
///
/// # Errors
///
/// The first [`Difference`].
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

    fn sample(root: &Path) -> Tree {
        make(root, 9).unwrap()
    }

    #[test]
    fn the_same_tree_is_made_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (sample(&folder.path().join("1")), sample(&folder.path().join("2")));
        assert_eq!(one.files.len(), 9);
        assert!(one.bytes().unwrap() > 0);
        compare(&one, &other).unwrap();
    }

    #[test]
    fn every_difference_is_found_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let one = sample(&folder.path().join("1"));
        let difference = |name: &str, change: &dyn Fn(&Path)| {
            let other = sample(&folder.path().join(name));
            change(&other.root.join(&one.files[4]));
            let other = Tree::read(&other.root).unwrap();
            compare(&one, &other).unwrap_err().to_string()
        };
        let remove = |path: &Path| fs::remove_file(path).unwrap();
        assert!(difference("missing", &remove).ends_with("was not copied"));
        let add = |path: &Path| fs::write(path.with_extension("new"), "x").unwrap();
        assert!(difference("extra", &add).ends_with("was copied and not sent"));
        let mode = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
        assert!(difference("mode", &mode).ends_with("the mode differs"));
        let time = |path: &Path| {
            let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
            File::open(path).unwrap().set_times(times).unwrap();
        };
        assert!(difference("time", &time).ends_with("the time of the last change differs"));
        let content = |path: &Path| {
            remove(path);
            fs::write(path, "something else").unwrap();
        };
        assert!(difference("content", &content).ends_with("the content differs"));
    }
}
