//! Material: archives that are made once, and unpacked by every peer.

use std::path::{Path, PathBuf};

use apus_testbed::error::{Doing, Error};

use super::program;
use super::tree::Shape;
use super::workspace::Workspace;

/// Commands that make a repository of the files in a directory, with one pack as after a clone.
const GIT: [&[&str]; 4] = [
    &["init", "--quiet"],
    &["add", "--all"],
    &[
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@localhost",
        "commit",
        "--quiet",
        "-m",
        "all",
    ],
    &["gc", "--quiet"],
];

/// Material that works start with.
#[derive(Debug)]
pub(super) struct Material {
    folder: PathBuf,
    seed: u64,
}

/// An archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Archive {
    /// 443 files.
    Small,
    /// 1,565 files.
    Large,
    /// 443 files and their repository.
    Repository,
}

impl Archive {
    const fn name(self) -> &'static str {
        match self {
            Self::Small => "tree-443",
            Self::Large => "tree-1565",
            Self::Repository => "repository-443",
        }
    }

    pub(super) const fn shape(self) -> Shape {
        match self {
            Self::Small | Self::Repository => Shape::SMALL,
            Self::Large => Shape::LARGE,
        }
    }
}

impl Material {
    pub(super) fn new(workspace: &Workspace, seed: u64) -> Result<Self, Error> {
        Ok(Self { folder: workspace.directory("material")?, seed })
    }

    /// Returns the path of an archive, which is created if it does not exist.
    pub(super) fn archive(&self, archive: Archive) -> Result<PathBuf, Error> {
        let path = self.folder.join(format!("{}.tar", archive.name()));
        if !path.exists() {
            let tree = self.folder.join(archive.name());
            let doing = || format!("write {}", tree.display());
            archive.shape().write(&tree, self.seed).doing(doing)?;
            if archive == Archive::Repository {
                for arguments in GIT {
                    program::run("git", arguments, &tree)?;
                }
            }
            self.pack(&path, &tree)?;
            std::fs::remove_dir_all(&tree).doing(|| format!("remove {}", tree.display()))?;
        }
        Ok(path)
    }

    fn pack(&self, path: &Path, tree: &Path) -> Result<(), Error> {
        let words = ["--create", "--file", &path.display().to_string(), "."];
        program::run("tar", &words, tree).map(drop)
    }
}
