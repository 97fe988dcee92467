//! How do processes that a launcher started find each other?
//!
//! The launcher's environment says which one each is; the first is the coordinator, to which the others
//! come. What is needed, and who says it:
//!
//! | | always | Slurm (`srun`) | MPI (`mpirun`) | Kubernetes (indexed job) |
//! |---|---|---|---|---|
//! | rank | `APUS_RANK` | `SLURM_PROCID` | `OMPI_COMM_WORLD_RANK`, `PMI_RANK` | `JOB_COMPLETION_INDEX` |
//! | how many | `APUS_NODES` | `SLURM_NTASKS` | `OMPI_COMM_WORLD_SIZE`, `PMI_SIZE` | to be said: `APUS_NODES` |
//! | coordinator | `APUS_COORDINATOR` | first of the node list | 127.0.0.1 if all are on one host | to be said |
//! | token | `APUS_TOKEN` | job and step | `PMIX_NAMESPACE` | to be said |
//! | address | `APUS_BIND` | | that of the connection to the coordinator | |
//!
//! A token that is made of a job's number keeps strangers away by accident only; where others can reach
//! the port, say a secret one. It is not encrypted on its way.

use std::env;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::meeting::{coordinator, derived_port, token};
use super::{Coordinator, Node};
use crate::error::Error;
use crate::launcher::{self, KUBERNETES, Launcher, LauncherError, OPEN_MPI, PMI, SLURM_STEP};

/// How long the others are awaited. Ours: a scheduler may need minutes for the last of them.
const PATIENCE: Duration = Duration::from_secs(300);

/// Whoever started the processes by hand or with something else.
const BY_HAND: Launcher = Launcher { index: "APUS_RANK", from: None, count: Some("APUS_NODES") };

/// The closest to the process first.
const LAUNCHERS: [Launcher; 5] =
    [BY_HAND, OPEN_MPI, PMI, SLURM_STEP, Launcher { count: Some("APUS_NODES"), ..KUBERNETES }];

/// What the processes of a job know of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Which one this is, from 0.
    pub rank: u32,
    /// How many there are.
    pub size: u32,
    /// Name or address of the host of rank 0.
    pub coordinator: String,
    /// Where rank 0 listens. 0 lets it choose, see [`Coordinator::address`]; the others cannot use that.
    pub port: u16,
    /// What all of them know, and nobody else.
    pub token: String,
    /// The address at which the others reach this one; `None`: that of its connection to rank 0.
    pub bind: Option<IpAddr>,
    /// How long rank 0 waits for the others, and they for it.
    pub patience: Duration,
}

/// Why it is not known who takes part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RanksError {
    /// The launcher's variables make no sense.
    #[error("{0}{hint}", hint = hint(.0))]
    Launcher(#[from] LauncherError),
    /// There are none.
    #[error(
        "no variable of Slurm, MPI or Kubernetes in the environment says which of how many processes \
         this is: start it with srun or mpirun, or set APUS_RANK and APUS_NODES in each"
    )]
    Nothing,
    /// Nothing says where rank 0 is.
    #[error(
        "nothing in the environment says where rank 0 is: set APUS_COORDINATOR=HOST:PORT in all processes{0}"
    )]
    Coordinator(&'static str),
    /// Nothing in the environment is known to this job only.
    #[error(
        "nothing in the environment is known to this job only: set APUS_TOKEN to the same in all processes"
    )]
    Token,
    /// A variable does not hold what it should.
    #[error("{name} is `{value}` in the environment: {problem}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should hold.
        problem: &'static str,
    },
}

fn hint(error: &LauncherError) -> &'static str {
    match error {
        LauncherError::Count(_) => ": set APUS_NODES",
        LauncherError::Variable { .. } => "; APUS_RANK and APUS_NODES say it otherwise",
    }
}

/// What a process is to do.
#[derive(Debug)]
pub enum Role {
    /// Rank 0: run the experiment.
    Coordinator(Coordinator),
    /// Any other: serve it.
    Node(Node),
}

impl Ranks {
    /// What this process's environment says.
    ///
    /// # Errors
    ///
    /// It does not say enough.
    pub fn here() -> Result<Self, RanksError> {
        Self::from_environment(|name| env::var(name).ok())
    }

    /// What an environment says.
    ///
    /// # Errors
    ///
    /// It does not say enough.
    pub fn from_environment(
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, RanksError> {
        let look = |name: &str| environment(name).filter(|value| !value.is_empty());
        let mut found = None;
        for launcher in LAUNCHERS {
            if let Some((rank, size)) = launcher::find(&[launcher], look, None)? {
                found = Some((launcher.index, rank, size));
                break;
            }
        }
        let (launcher, rank, size) = found.ok_or(RanksError::Nothing)?;
        let token = match token(look, launcher) {
            Some(token) => token,
            None if size == 1 => String::new(),
            None => return Err(RanksError::Token),
        };
        let (coordinator, port) = coordinator(look, launcher, size)?;
        let port = port.unwrap_or_else(|| derived_port(&token));
        let bind = match look("APUS_BIND") {
            Some(value) => match value.parse::<IpAddr>() {
                Ok(address) if !address.is_unspecified() => Some(address),
                _ => {
                    let problem = "not an address at which the others reach this host";
                    return Err(RanksError::Variable { name: "APUS_BIND", value, problem });
                }
            },
            None => None,
        };
        Ok(Self { rank, size, coordinator, port, token, bind, patience: PATIENCE })
    }

    /// Takes part. Rank 0 can start agents at once, and then waits for the others; any other comes to
    /// rank 0. `program` is an agent when its first argument is [`crate::process::AGENT`].
    ///
    /// # Errors
    ///
    /// Rank 0 cannot listen; or it does not answer the others, or not want them.
    pub fn join(self, program: PathBuf) -> Result<Role, Error> {
        let program = OsString::from(program);
        match self.rank {
            0 => Coordinator::listen(self, program).map(Role::Coordinator),
            _ => Node::join(self, program).map(Role::Node),
        }
    }

    /// Where rank 0 is, for messages.
    pub(super) fn place(&self) -> String {
        match self.coordinator.contains(':') {
            true => format!("[{}]:{}", self.coordinator, self.port),
            false => format!("{}:{}", self.coordinator, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What processes in this environment know.
    fn found(variables: &[(&str, &str)]) -> Result<Ranks, RanksError> {
        Ranks::from_environment(|name| {
            variables.iter().find(|(each, _)| *each == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn with<'a>(
        variables: &[(&'a str, &'a str)],
        more: &[(&'a str, &'a str)],
    ) -> Vec<(&'a str, &'a str)> {
        more.iter().chain(variables).copied().collect()
    }

    const SLURM: [(&str, &str); 5] = [
        ("SLURM_PROCID", "2"),
        ("SLURM_NTASKS", "4"),
        ("SLURM_JOB_ID", "77"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NODELIST", "rack1-n[08-09,12],gpu3"),
    ];
    const MPI: [(&str, &str); 4] = [
        ("OMPI_COMM_WORLD_RANK", "1"),
        ("OMPI_COMM_WORLD_SIZE", "2"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ("PMIX_NAMESPACE", "1941897217"),
    ];
    const POD: [(&str, &str); 1] = [("JOB_COMPLETION_INDEX", "1")];
    const SAID: [(&str, &str); 3] =
        [("APUS_NODES", "3"), ("APUS_COORDINATOR", "job-0.svc:7000"), ("APUS_TOKEN", "secret")];

    #[test]
    fn slurm_says_everything() {
        let ranks = found(&SLURM).unwrap();
        assert_eq!((ranks.rank, ranks.size, ranks.coordinator.as_str()), (2, 4, "rack1-n08"));
        let other = found(&with(&SLURM, &[("SLURM_PROCID", "0")])).unwrap();
        assert_eq!((other.port, &other.token), (ranks.port, &ranks.token), "all agree");
        let next = found(&with(&SLURM, &[("SLURM_STEP_ID", "1")])).unwrap();
        assert_ne!(next.token, ranks.token);
    }

    #[test]
    fn mpi_says_everything_on_one_host_only() {
        let ranks = found(&MPI).unwrap();
        assert_eq!((ranks.rank, ranks.size, ranks.coordinator.as_str()), (1, 2, "127.0.0.1"));
        let error = found(&with(&MPI, &[("OMPI_COMM_WORLD_LOCAL_SIZE", "1")])).unwrap_err();
        assert!(error.to_string().contains("mpirun -x APUS_COORDINATOR=HOST:PORT"), "{error}");
        let inside = found(&with(&MPI, &SLURM)).unwrap();
        assert_eq!((inside.rank, inside.size), (1, 2), "mpirun in a job of Slurm is closer");
        let pmi = [("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2"), SLURM[2]];
        assert_eq!(found(&pmi).unwrap().coordinator, "127.0.0.1");
    }

    #[test]
    fn kubernetes_has_to_be_helped() {
        let ranks = found(&with(&POD, &SAID)).unwrap();
        assert_eq!((ranks.rank, ranks.size), (1, 3));
        assert_eq!((ranks.coordinator.as_str(), ranks.port), ("job-0.svc", 7000));
        let error = |said: &[_]| found(&with(&POD, said)).unwrap_err().to_string();
        assert!(error(&[]).ends_with("set APUS_NODES"));
        assert!(error(&SAID[..1]).contains("APUS_TOKEN"));
        assert!(error(&[SAID[0], SAID[2]]).contains("JOB-0.SERVICE"));
        let alone = found(&with(&POD, &[("APUS_NODES", "2"), ("JOB_COMPLETION_INDEX", "2")]));
        assert!(alone.unwrap_err().to_string().contains("JOB_COMPLETION_INDEX is `2`"));
    }

    #[test]
    fn what_is_said_prevails() {
        let more = [
            ("APUS_RANK", "0"),
            ("APUS_NODES", "9"),
            ("APUS_COORDINATOR", "[::1]:5"),
            ("APUS_TOKEN", "mine"),
            ("APUS_BIND", "10.0.0.7"),
        ];
        let ranks = found(&with(&SLURM, &more)).unwrap();
        assert_eq!((ranks.rank, ranks.size, ranks.port), (0, 9, 5));
        assert_eq!((ranks.coordinator.as_str(), ranks.token.as_str()), ("::1", "mine"));
        assert_eq!((ranks.bind, ranks.place()), (Some([10, 0, 0, 7].into()), "[::1]:5".to_owned()));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        assert_eq!(found(&[]), Err(RanksError::Nothing));
        assert_eq!(found(&[("SLURM_PROCID", "")]), Err(RanksError::Nothing), "empty is unset");
        for wrong in ["", ":5", "h:", "h:0", "h:x", "::1", "[::1", "a b"] {
            let error = found(&with(&SLURM, &[("APUS_COORDINATOR", wrong)]));
            match wrong {
                "" => assert!(error.is_ok()),
                _ => {
                    assert!(error.unwrap_err().to_string().contains("APUS_COORDINATOR"), "{wrong}");
                }
            }
        }
        for wrong in ["0.0.0.0", "eth0"] {
            let error = found(&with(&SLURM, &[("APUS_BIND", wrong)])).unwrap_err().to_string();
            assert!(error.contains("APUS_BIND") && error.contains(wrong), "{error}");
        }
    }
}
