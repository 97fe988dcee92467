//! Rendezvous of ranks: the secret of the job, and the host and port of rank 0, derived from the
//! launcher's environment.

use std::net::Ipv4Addr;

use ring::digest::{SHA256, digest};

use super::host_port::host_and_port;
use super::ranks_error::RanksError;
use crate::launcher::{KUBERNETES, OPEN_MPI, PMI, SLURM_STEP, number};

/// Returns a text shared only by the processes of this job.
pub(super) fn token(variable: impl Fn(&str) -> Option<String>, launcher: &str) -> Option<String> {
    let slurm = || {
        let job = variable("SLURM_JOB_ID")?;
        // Processes that were not started by srun may be in different steps.
        let step = variable("SLURM_STEP_ID").filter(|_| launcher == SLURM_STEP.index);
        Some(format!("{job}.{}", step.unwrap_or_default()))
    };
    variable("APUS_TOKEN").or_else(|| variable("PMIX_NAMESPACE")).or_else(slurm)
}

/// Returns the host of rank 0, and its port if the environment has one.
pub(super) fn coordinator(
    variable: impl Fn(&str) -> Option<String>,
    launcher: &str,
    size: u32,
) -> Result<(String, Option<u16>), RanksError> {
    if let Some(value) = variable("APUS_COORDINATOR") {
        let problem = "write HOST or HOST:PORT, an IPv6 address in brackets";
        let wrong =
            || RanksError::Variable { name: "APUS_COORDINATOR", value: value.clone(), problem };
        let (host, port) = host_and_port(&value).ok_or_else(wrong)?;
        return Ok((host.to_owned(), port));
    }
    let all_here = |name| Ok::<_, RanksError>(number(&variable, name)? == Some(size));
    let on_one_host = size == 1
        || launcher == OPEN_MPI.index && all_here("OMPI_COMM_WORLD_LOCAL_SIZE")?
        || launcher == PMI.index && all_here("MPI_LOCALNRANKS")?;
    if on_one_host {
        return Ok((Ipv4Addr::LOCALHOST.to_string(), None));
    }
    if launcher == SLURM_STEP.index || launcher == PMI.index {
        let nodes = variable("SLURM_STEP_NODELIST").or_else(|| variable("SLURM_JOB_NODELIST"));
        if let Some(first) = nodes.as_deref().and_then(first_node) {
            return Ok((first, None));
        }
    }
    Err(RanksError::Coordinator(match launcher {
        name if name == OPEN_MPI.index => " (mpirun -x APUS_COORDINATOR=HOST:PORT)",
        name if name == PMI.index => " (mpiexec -genv APUS_COORDINATOR HOST:PORT)",
        name if name == KUBERNETES.index => {
            ", HOST the stable name of pod 0 (JOB-0.SERVICE, with a headless service as the job's subdomain)"
        }
        _ => "",
    }))
}

/// Returns a port derived from the token, the same in all processes of a job and below the range of
/// ephemeral ports.
pub(super) fn derived_port(token: &str) -> u16 {
    let digest = digest(&SHA256, token.as_bytes());
    let digest = digest.as_ref();
    20_000 + u16::from_be_bytes([digest[0], digest[1]]) % 10_000
}

/// Returns the first host of Slurm's list: `node03` of `node[03-05,09],other`.
fn first_node(list: &str) -> Option<String> {
    let mut name = String::new();
    let mut rest = list.trim();
    while let Some(at) = rest.find([',', '[']) {
        name.push_str(&rest[..at]);
        if rest[at..].starts_with(',') {
            rest = "";
            break;
        }
        let (range, after) = rest[at + 1..].split_once(']')?;
        name.push_str(range.split([',', '-']).next()?);
        rest = after;
    }
    name.push_str(rest);
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_host_of_a_list_is_found() {
        for (list, first) in [
            ("node1", "node1"),
            ("a,b", "a"),
            ("n[1-3,7]", "n1"),
            ("n[007,9]-ib,x", "n007-ib"),
            ("r[1-2]n[3-4]", "r1n3"),
        ] {
            assert_eq!(first_node(list).as_deref(), Some(first));
        }
        assert_eq!((first_node(""), first_node("n[1")), (None, None));
    }
}
