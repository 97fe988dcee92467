//! Ranks: the processes of a job that a launcher started.
//!
//! The launcher's environment gives each process its index. Rank 0 is the coordinator, and the
//! others connect to it. The variables:
//!
//! | | always | Slurm (`srun`) | MPI (`mpirun`) | Kubernetes (indexed job) |
//! |---|---|---|---|---|
//! | rank | `APUS_RANK` | `SLURM_PROCID` | `OMPI_COMM_WORLD_RANK`, `PMI_RANK` | `JOB_COMPLETION_INDEX` |
//! | how many | `APUS_NODES` | `SLURM_NTASKS` | `OMPI_COMM_WORLD_SIZE`, `PMI_SIZE` | `APUS_NODES` |
//! | coordinator | `APUS_COORDINATOR` | first of the node list | 127.0.0.1 if all are on one host | `APUS_COORDINATOR` |
//! | token | `APUS_TOKEN` | job and step | `PMIX_NAMESPACE` | `APUS_TOKEN` |
//! | address | `APUS_BIND` | | local address of the connection to the coordinator | |
//!
//! A token derived from a job's number prevents mix-ups between jobs, not attacks. Where other
//! hosts can reach the port, set a secret token. It is not encrypted in transit.

use std::env;
use std::net::IpAddr;
use std::time::Duration;

use super::ranks_error::RanksError;
use super::rendezvous::{coordinator, derived_port, token};
use crate::launcher::{self, KUBERNETES, Launcher, OPEN_MPI, PMI, SLURM_STEP};

/// Default of [`Ranks::timeout`]. Chosen by us: a scheduler may need minutes to start the last
/// rank.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Processes that were started by hand or by an unknown launcher.
const MANUAL: Launcher = Launcher { index: "APUS_RANK", from: None, count: Some("APUS_NODES") };

/// Launchers, the closest to the process first.
const LAUNCHERS: [Launcher; 5] =
    [MANUAL, OPEN_MPI, PMI, SLURM_STEP, Launcher { count: Some("APUS_NODES"), ..KUBERNETES }];

/// A process of a job, with its settings for reaching the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Index of this process, from 0.
    pub rank: u32,
    /// Number of processes.
    pub size: u32,
    /// Name or address of the host of rank 0.
    pub coordinator: String,
    /// Port of rank 0. With 0, rank 0 listens at a port that the system chooses, see
    /// [`super::Coordinator::address`]; other ranks cannot use 0.
    pub port: u16,
    /// Secret of the job.
    pub token: String,
    /// Address for connections from the other ranks; `None` uses the local address of its
    /// connection to rank 0.
    pub bind: Option<IpAddr>,
    /// How long rank 0 waits for the others, and they for it.
    pub timeout: Duration,
}

impl Ranks {
    /// Reads the environment of this process.
    ///
    /// # Errors
    ///
    /// The environment lacks something, or a variable is invalid.
    pub fn here() -> Result<Self, RanksError> {
        Self::from_environment(|name| env::var(name).ok())
    }

    /// Reads an environment.
    ///
    /// # Errors
    ///
    /// The environment lacks something, or a variable is invalid.
    pub fn from_environment(
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, RanksError> {
        let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
        let mut found = None;
        for launcher in LAUNCHERS {
            if let Some((rank, size)) = launcher::find(&[launcher], variable, None)? {
                found = Some((launcher.index, rank, size));
                break;
            }
        }
        let (launcher, rank, size) = found.ok_or(RanksError::Nothing)?;
        let token = match token(variable, launcher) {
            Some(token) => token,
            None if size == 1 => String::new(),
            None => return Err(RanksError::Token),
        };
        let (coordinator, port) = coordinator(variable, launcher, size)?;
        let port = port.unwrap_or_else(|| derived_port(&token));
        let bind = match variable("APUS_BIND") {
            Some(value) => match value.parse::<IpAddr>() {
                Ok(address) if !address.is_unspecified() => Some(address),
                _ => {
                    let problem = "not an address at which the others reach this host";
                    return Err(RanksError::Variable { name: "APUS_BIND", value, problem });
                }
            },
            None => None,
        };
        Ok(Self { rank, size, coordinator, port, token, bind, timeout: TIMEOUT })
    }

    /// Returns the address of rank 0, for messages.
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

    /// Parses an environment of these variables.
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
    fn slurm_provides_everything() {
        let ranks = found(&SLURM).unwrap();
        assert_eq!((ranks.rank, ranks.size, ranks.coordinator.as_str()), (2, 4, "rack1-n08"));
        let other = found(&with(&SLURM, &[("SLURM_PROCID", "0")])).unwrap();
        assert_eq!((other.port, &other.token), (ranks.port, &ranks.token), "all agree");
        let next = found(&with(&SLURM, &[("SLURM_STEP_ID", "1")])).unwrap();
        assert_ne!(next.token, ranks.token);
    }

    #[test]
    fn mpi_provides_everything_on_one_host_only() {
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
    fn kubernetes_needs_variables_of_apus() {
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
    fn variables_of_apus_prevail() {
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
    fn an_invalid_variable_is_named() {
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
