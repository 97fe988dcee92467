//! Trees of files: drawn from a seed, with a given number of files and bytes.

use std::fs;
use std::io;
use std::path::Path;

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Files of a directory on average. Chosen by us: as in the sources of Linux' file systems.
const PER_DIRECTORY: usize = 20;

/// The shape of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Number of files, directories not counted.
    pub(super) files: usize,
    /// Bytes of all files together.
    pub(super) bytes: u64,
}

impl Shape {
    /// A small program with its sources.
    pub(super) const SMALL: Self = Self { files: 443, bytes: 8_000_000 };
    /// The file systems of Linux with their repository.
    pub(super) const LARGE: Self = Self { files: 1_565, bytes: 31_000_000 };

    /// Returns the directories from the root's children to the leaves, each behind its parent.
    fn directories(self) -> Vec<String> {
        let count = self.files.div_ceil(PER_DIRECTORY);
        let mut directories: Vec<String> = Vec::with_capacity(count);
        for index in 0..count {
            // Every third one is a child of an earlier one.
            let parent = (index % 3 == 2).then(|| &directories[index / 3]);
            let name = format!("part-{index}");
            let path = parent.map_or(name.clone(), |parent| format!("{parent}/{name}"));
            directories.push(path);
        }
        directories
    }

    /// Returns the path and the size of each file. Sizes vary over two orders of magnitude, as
    /// sizes of source files do.
    pub(super) fn files(self, seed: u64) -> Vec<(String, u64)> {
        let mut random = Pcg64::seed_from_u64(seed);
        let directories = self.directories();
        let weights: Vec<f64> =
            (0..self.files).map(|_| (random.random_range(0.0..1.0_f64) * 4.6).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mut left = self.bytes;
        let mut files = Vec::with_capacity(self.files);
        for (index, weight) in weights.iter().enumerate() {
            let share = (weight / sum * self.bytes as f64) as u64;
            let is_last = index + 1 == self.files;
            let size = if is_last { left } else { share.min(left) };
            left -= size;
            let directory = &directories[index % directories.len()];
            files.push((format!("{directory}/source-{index}.c"), size));
        }
        files
    }

    /// Writes the tree.
    pub(super) fn write(self, root: &Path, seed: u64) -> io::Result<()> {
        for directory in self.directories() {
            fs::create_dir_all(root.join(directory))?;
        }
        let mut random = Pcg64::seed_from_u64(seed ^ 1);
        for (path, size) in self.files(seed) {
            fs::write(root.join(path), text(&mut random, size))?;
        }
        Ok(())
    }
}

/// Returns lines of letters.
fn text(random: &mut impl Rng, size: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
    random.fill_bytes(&mut bytes);
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = if index % 72 == 71 { b'\n' } else { b'a' + *byte % 26 };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_the_files_and_bytes_that_its_shape_names() {
        for shape in [Shape::SMALL, Shape::LARGE] {
            let files = shape.files(1);
            assert_eq!(files.len(), shape.files);
            assert_eq!(files.iter().map(|(_, size)| size).sum::<u64>(), shape.bytes);
            let mut paths: Vec<_> = files.iter().map(|(path, _)| path).collect();
            paths.sort();
            paths.dedup();
            assert_eq!(paths.len(), shape.files);
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_tree() {
        assert_eq!(Shape::SMALL.files(7), Shape::SMALL.files(7));
        assert_ne!(Shape::SMALL.files(7), Shape::SMALL.files(8));
    }

    #[test]
    fn a_tree_is_written_as_drawn() {
        let directory = tempfile::tempdir().unwrap();
        let shape = Shape { files: 45, bytes: 20_000 };
        shape.write(directory.path(), 3).unwrap();
        for (path, size) in shape.files(3) {
            assert_eq!(fs::metadata(directory.path().join(path)).unwrap().len(), size);
        }
    }
}
