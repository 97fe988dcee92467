//! The world of the store in a directory.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use apus_fs_store::{DirectoryOptions, DirectoryStore};
use tempfile::TempDir;

use crate::world::World;

/// A store in a directory; a crash ends its process.
pub(crate) struct DirectoryWorld {
    directory: TempDir,
    /// `None` during a crash: two stores cannot have the directory open at once.
    store: Option<DirectoryStore>,
}

fn temporary() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary directory")
}

fn open(directory: &TempDir) -> DirectoryStore {
    DirectoryStore::open(directory.path(), DirectoryOptions::default()).expect("it opens")
}

impl World for DirectoryWorld {
    type Store = DirectoryStore;

    fn new() -> Self {
        let directory = temporary();
        let store = Some(open(&directory));
        Self { directory, store }
    }

    fn store(&mut self) -> &mut DirectoryStore {
        self.store.as_mut().expect("it is open")
    }

    fn crash(&mut self, _: usize) {
        self.store = None;
        self.store = Some(open(&self.directory));
    }

    fn owner() -> (u32, u32) {
        let metadata = temporary().path().metadata().expect("it exists");
        // An ordinary user's server cannot give files away.
        if metadata.uid() == 0 { (1000, 1000) } else { (metadata.uid(), metadata.gid()) }
    }
}
