//! Launchers that number the processes they start: Slurm, MPI, Kubernetes.
//!
//! A launcher sets environment variables that give each process its index. Launchers differ only in
//! the names of these variables. Callers list the supported launchers, the closest to the process
//! first: `mpirun` inside a Slurm job starts processes with the variables of both.

/// Environment variables of a launcher.
#[derive(Clone, Copy, Debug)]
pub struct Launcher {
    /// Index of this process.
    pub index: &'static str,
    /// Variables of the least index and of the step between two, if these are not 0 and 1.
    pub from: Option<(&'static str, &'static str)>,
    /// Variable of the number of processes; `None` if the launcher has no such variable.
    pub count: Option<&'static str>,
}

/// Elements of an array of Slurm jobs.
pub const SLURM_ARRAY: Launcher = Launcher {
    index: "SLURM_ARRAY_TASK_ID",
    from: Some(("SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP")),
    count: Some("SLURM_ARRAY_TASK_COUNT"),
};
/// Tasks of a step of a Slurm job, started by `srun`.
pub const SLURM_STEP: Launcher =
    Launcher { index: "SLURM_PROCID", from: None, count: Some("SLURM_NTASKS") };
/// Pods of an indexed job of Kubernetes.
pub const KUBERNETES: Launcher =
    Launcher { index: "JOB_COMPLETION_INDEX", from: None, count: None };
/// Ranks of Open MPI.
pub const OPEN_MPI: Launcher =
    Launcher { index: "OMPI_COMM_WORLD_RANK", from: None, count: Some("OMPI_COMM_WORLD_SIZE") };
/// Ranks of MPICH, Intel MPI, and Slurm with PMI.
pub const PMI: Launcher = Launcher { index: "PMI_RANK", from: None, count: Some("PMI_SIZE") };

/// Invalid launcher variables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LauncherError {
    /// A variable is not a number, or is out of range.
    #[error("{name} is `{value}` in the environment: {problem}")]
    Variable {
        /// Name of the variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// Description of the problem.
        problem: &'static str,
    },
    /// The environment has the index of this process but not the number of processes. The field is
    /// the index variable.
    #[error("{0} is set in the environment, but not the number of processes")]
    Count(&'static str),
}

/// Returns a number from the environment; `None` without such a variable.
///
/// # Errors
///
/// The variable is not a number.
pub fn number(
    environment: &impl Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<Option<u32>, LauncherError> {
    let Some(value) = environment(name) else { return Ok(None) };
    match value.trim().parse::<u32>() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(LauncherError::Variable { name, value, problem: "not a number" }),
    }
}

/// Returns the index of this process, from 0, and the number of processes; `None` without the
/// variables of any launcher. `count` takes precedence over the environment.
///
/// # Errors
///
/// The variables are invalid, or the number of processes is unknown.
pub fn find(
    launchers: &[Launcher],
    environment: impl Fn(&str) -> Option<String>,
    count: Option<u32>,
) -> Result<Option<(u32, u32)>, LauncherError> {
    let number = |name| number(&environment, name);
    for Launcher { index: name, from, count: says } in launchers.iter().copied() {
        let Some(id) = number(name)? else { continue };
        let bad = |problem| LauncherError::Variable { name, value: id.to_string(), problem };
        let index = match from {
            Some((least, step)) => {
                let (least, step) = (number(least)?.unwrap_or(0), number(step)?.unwrap_or(1));
                let above = id.checked_sub(least).ok_or_else(|| bad("below the least index"))?;
                let step = step.max(1);
                if !above.is_multiple_of(step) {
                    return Err(bad("not a multiple of the step"));
                }
                above / step
            }
            None => id,
        };
        let known = says.map(number).transpose()?.flatten();
        let count = count.or(known).ok_or(LauncherError::Count(name))?;
        return if index < count {
            Ok(Some((index, count)))
        } else {
            Err(bad("not below the number of processes"))
        };
    }
    Ok(None)
}
