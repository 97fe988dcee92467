//! Shards: the part of a plan that runs here.
//!
//! Point `p` belongs to shard `i` of `n` if `p % n == i`. A launcher of many processes sets
//! variables with the number of each process; there is no other scheduling:
//!
//! | started by | which | of how many |
//! |---|---|---|
//! | Slurm (array) | `SLURM_ARRAY_TASK_ID`, from `SLURM_ARRAY_TASK_MIN` in steps of `SLURM_ARRAY_TASK_STEP` | `SLURM_ARRAY_TASK_COUNT` |
//! | Kubernetes (indexed job) | `JOB_COMPLETION_INDEX` | must be given: `auto/N` |
//! | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` |
//! | MPICH, Intel MPI, Slurm with PMI | `PMI_RANK` | `PMI_SIZE` |

use std::fmt;
use std::str::FromStr;

use apus_testbed::launcher::{
    self, KUBERNETES, Launcher, LauncherError, OPEN_MPI, PMI, SLURM_ARRAY,
};

/// A part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

/// Choice of the part that runs here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This shard.
    This(Shard),
    /// The shard named by the environment, of this number of shards; `None`: of the number in the
    /// environment.
    Environment(Option<u32>),
}

/// Reason why the part that runs here is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The text is not a shard.
    #[error("`{0}` is no shard: write I/N with I below N, like 0/4, or auto, or auto/N")]
    Syntax(String),
    /// A variable of the environment does not hold a number, or holds an impossible one.
    #[error("{name} is `{value}` in the environment: {problem}; say which shard it is, like 0/4")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// Description of the problem.
        problem: &'static str,
    },
    /// The environment has the number of the shard, but not the count of shards.
    #[error(
        "{0} is set in the environment, and nothing says how many there are; write auto/N, or 0/1 for everything"
    )]
    Count(&'static str),
    /// The environment does not name a shard.
    #[error(
        "no variable of Slurm, Kubernetes or MPI in the environment says which shard this is; write I/N, like 0/4"
    )]
    Nothing,
}

/// Launchers that number parts of a job, not cooperating processes.
const LAUNCHERS: [Launcher; 4] = [SLURM_ARRAY, KUBERNETES, OPEN_MPI, PMI];

impl From<LauncherError> for ShardError {
    fn from(error: LauncherError) -> Self {
        match error {
            LauncherError::Variable { name, value, problem } => {
                Self::Variable { name, value, problem }
            }
            LauncherError::Count(name) => Self::Count(name),
        }
    }
}

impl Shard {
    /// The whole plan.
    pub const ALL: Self = Self { index: 0, count: 1 };

    /// Returns shard `index` of `count`; `None` if it does not exist.
    #[must_use]
    pub const fn new(index: u32, count: u32) -> Option<Self> {
        if index < count { Some(Self { index, count }) } else { None }
    }

    /// Returns the index of the shard.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Returns the number of shards.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Returns whether the point with this index belongs to it.
    #[must_use]
    pub const fn contains(self, point: u32) -> bool {
        point % self.count == self.index
    }

    /// Returns the shard named by the environment, of `count` if given; `None` if the environment
    /// does not name a shard.
    ///
    /// # Errors
    ///
    /// The variables make no sense, or the count is missing.
    pub fn from_environment(
        environment: impl Fn(&str) -> Option<String>,
        count: Option<u32>,
    ) -> Result<Option<Self>, ShardError> {
        let found = launcher::find(&LAUNCHERS, environment, count)?;
        Ok(found.map(|(index, count)| Self { index, count }))
    }
}

impl Choice {
    /// Returns the shard.
    ///
    /// # Errors
    ///
    /// The choice is left to the environment, which does not name a shard.
    pub fn resolve(
        self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Shard, ShardError> {
        match self {
            Self::This(shard) => Ok(shard),
            Self::Environment(count) => {
                Shard::from_environment(environment, count)?.ok_or(ShardError::Nothing)
            }
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Choice {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let wrong = || ShardError::Syntax(text.to_owned());
        let count = |count: &str| count.parse().ok().filter(|count| *count > 0).ok_or_else(wrong);
        match text.split_once('/') {
            None if text == "auto" => Ok(Self::Environment(None)),
            Some(("auto", of)) => Ok(Self::Environment(Some(count(of)?))),
            Some((index, of)) => {
                let index = index.parse().map_err(|_| wrong())?;
                Shard::new(index, count(of)?).map(Self::This).ok_or_else(wrong)
            }
            None => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(index: u32, count: u32) -> Shard {
        Shard::new(index, count).unwrap()
    }

    /// Returns the shard of a process in this environment.
    fn found(variables: &[(&str, &str)], count: Option<u32>) -> Result<Option<Shard>, String> {
        let variable = |name: &str| {
            variables.iter().find(|(each, _)| *each == name).map(|(_, value)| (*value).to_owned())
        };
        Shard::from_environment(variable, count).map_err(|error| error.to_string())
    }

    #[test]
    fn every_point_belongs_to_one_shard() {
        for count in 1..6 {
            for point in 0..20 {
                let owners = (0..count).filter(|index| shard(*index, count).contains(point));
                assert_eq!(owners.count(), 1);
            }
        }
    }

    #[test]
    fn shards_are_written_as_index_and_count() {
        assert_eq!("1/4".parse(), Ok(Choice::This(shard(1, 4))));
        assert_eq!("auto".parse(), Ok(Choice::Environment(None)));
        assert_eq!("auto/8".parse(), Ok(Choice::Environment(Some(8))));
        for wrong in ["4/4", "1/0", "auto/0", "", "one", "1", "-1/4", "1/4/2"] {
            let error = wrong.parse::<Choice>().unwrap_err();
            assert_eq!(error, ShardError::Syntax(wrong.to_owned()));
        }
    }

    #[test]
    fn launchers_name_the_shard() {
        let slurm = [
            ("SLURM_ARRAY_TASK_ID", "7"),
            ("SLURM_ARRAY_TASK_MIN", "1"),
            ("SLURM_ARRAY_TASK_STEP", "2"),
            ("SLURM_ARRAY_TASK_COUNT", "5"),
        ];
        assert_eq!(found(&slurm, None), Ok(Some(shard(3, 5))));
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "3")];
        assert_eq!(found(&open_mpi, None), Ok(Some(shard(2, 3))));
        assert_eq!(found(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")], None), Ok(Some(shard(0, 2))));
        assert_eq!(found(&[("JOB_COMPLETION_INDEX", "4")], Some(5)), Ok(Some(shard(4, 5))));
        assert_eq!(found(&[], None), Ok(None));
    }

    #[test]
    fn an_environment_that_makes_no_sense_is_named() {
        let error = |variables, count| found(variables, count).unwrap_err();
        assert!(error(&[("JOB_COMPLETION_INDEX", "4")], None).contains("auto/N"));
        assert!(error(&[("JOB_COMPLETION_INDEX", "4")], Some(4)).contains("JOB_COMPLETION_INDEX"));
        assert!(error(&[("OMPI_COMM_WORLD_RANK", "x")], None).contains("`x`"));
        let gaps = [
            ("SLURM_ARRAY_TASK_ID", "17"),
            ("SLURM_ARRAY_TASK_MIN", "1"),
            ("SLURM_ARRAY_TASK_COUNT", "3"),
        ];
        assert!(error(&gaps, None).contains("not below the number of processes"));
        assert_eq!(Choice::Environment(None).resolve(|_| None), Err(ShardError::Nothing));
    }
}
