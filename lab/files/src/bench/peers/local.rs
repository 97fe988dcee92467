//! A directory without a file service.

use std::path::{Path, PathBuf};

use apus_testbed::error::Error;

use super::{Peer, Site};

/// A directory of this machine, on the same file system as the directories of the servers.
#[derive(Debug)]
pub(in crate::bench) struct Local {
    root: PathBuf,
}

impl Local {
    pub(in crate::bench) fn new(site: &Site<'_>) -> Result<Self, Error> {
        Ok(Self { root: site.workspace.directory(&format!("local-{}", site.name))? })
    }
}

impl Peer for Local {
    fn name(&self) -> &str {
        "local"
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn make_cold(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
