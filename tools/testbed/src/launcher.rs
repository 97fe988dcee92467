//! Which of how many processes is this one, as its launcher says?
//!
//! Who starts many processes tells each of them in the environment which one it is. Launchers differ in
//! the names of the variables only; whoever asks lists those that it knows, the closest to the process
//! first: `mpirun` inside a Slurm job starts processes with the variables of both.

/// Variables with which a launcher numbers its processes.
#[derive(Clone, Copy, Debug)]
pub struct Launcher {
    /// The number of this process.
    pub index: &'static str,
    /// The least number and the distance between two, where they are not 0 and 1.
    pub from: Option<(&'static str, &'static str)>,
    /// How many there are; `None` if the launcher does not say.
    pub count: Option<&'static str>,
}

/// Elements of an array of Slurm jobs.
pub const SLURM_ARRAY: Launcher = Launcher {
    index: "SLURM_ARRAY_TASK_ID",
    from: Some(("SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP")),
    count: Some("SLURM_ARRAY_TASK_COUNT"),
};
/// Tasks of a step of a Slurm job, as `srun` starts them.
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

/// What does not make sense in the environment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LauncherError {
    /// A variable holds no number, or one that cannot be.
    #[error("{name} is `{value}` in the environment: {problem}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The environment says which one it is, and not of how many. The name of the variable.
    #[error("{0} is set in the environment, and nothing says how many there are")]
    Count(&'static str),
}

/// A number from the environment; `None` if there is no such variable.
///
/// # Errors
///
/// It is no number.
pub fn number(
    environment: &impl Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<Option<u32>, LauncherError> {
    let Some(value) = environment(name) else { return Ok(None) };
    match value.trim().parse::<u32>() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(LauncherError::Variable { name, value, problem: "no number" }),
    }
}

/// Which process this is, from 0, and of how many; `None` if no launcher says. A `count` that is given
/// prevails over what the environment says.
///
/// # Errors
///
/// What the environment says makes no sense, or does not say of how many.
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
                let above = id.checked_sub(least).ok_or_else(|| bad("below the least one"))?;
                let step = step.max(1);
                if !above.is_multiple_of(step) {
                    return Err(bad("not one of the steps"));
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
            Err(bad("not one of so many"))
        };
    }
    Ok(None)
}
