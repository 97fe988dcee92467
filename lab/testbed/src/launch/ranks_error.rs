//! Errors in the variables that describe the ranks of a job.

use crate::launcher::LauncherError;

/// Reason why the ranks of a job are unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RanksError {
    /// The launcher's variables are invalid.
    #[error("{0}{hint}", hint = hint(.0))]
    Launcher(#[from] LauncherError),
    /// No launcher's variables are set.
    #[error(
        "the environment has no variables of Slurm, MPI or Kubernetes that number this process: start it with srun or mpirun, or set APUS_RANK and APUS_NODES in each"
    )]
    Nothing,
    /// The address of rank 0 is unknown.
    #[error(
        "the environment has no address of rank 0: set APUS_COORDINATOR=HOST:PORT in all processes{0}"
    )]
    Coordinator(&'static str),
    /// The job has no secret.
    #[error(
        "nothing in the environment is known to this job only: set APUS_TOKEN to the same in all processes"
    )]
    Token,
    /// A variable has an invalid value.
    #[error("{name} is `{value}` in the environment: {problem}")]
    Variable {
        /// Name of the variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// Description of a valid value.
        problem: &'static str,
    },
}

fn hint(error: &LauncherError) -> &'static str {
    match error {
        LauncherError::Count(_) => ": set APUS_NODES",
        LauncherError::Variable { .. } => "; APUS_RANK and APUS_NODES take precedence",
    }
}
