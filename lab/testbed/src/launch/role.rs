//! Entry into a job: rank 0 becomes the coordinator, any other rank a node.

use std::ffi::OsString;
use std::path::PathBuf;

use super::coordinator::Coordinator;
use super::node::Node;
use super::ranks::Ranks;
use apus_measure::error::Error;

/// Part of a process in the experiment.
#[derive(Debug)]
pub enum Role {
    /// Rank 0: runs the experiment.
    Coordinator(Coordinator),
    /// Any other rank: serves it.
    Node(Node),
}

impl Ranks {
    /// Joins the job. Rank 0 can start agents immediately, and then waits for the other ranks; any
    /// other rank connects to rank 0. `program` runs as an agent if its first argument is
    /// [`crate::process::AGENT`].
    ///
    /// # Errors
    ///
    /// Rank 0 cannot listen, does not answer this rank, or refuses it.
    pub fn join(self, program: PathBuf) -> Result<Role, Error> {
        let program = OsString::from(program);
        match self.rank {
            0 => Coordinator::listen(self, program).map(Role::Coordinator),
            _ => Node::join(self, program).map(Role::Node),
        }
    }
}
