//! Options of the soak.

use clap::Args;
use serde::Serialize;

use super::transport::Transport;
use apus_report::experiment::defaults;
use apus_testbed::error::{Error, require};

/// Promises under faults: real processes that are killed, paused, cut off and restarted
///
/// For each transport (UDP, shared memory, raw IP in the kernel profile) two client processes keep
/// calls to two server processes outstanding, in network namespaces that the command creates and
/// removes. Faults happen one at a time, in an order drawn from the seed: kill -9 of a client or a
/// server, SIGSTOP of one for longer than a call may take, restart of a server on its port; between
/// hosts also link down, another MTU, another address; and a full disk for time traces. One client
/// and one server of each transport are never killed: their memory, allocated bytes and descriptors
/// are watched.
///
/// Every reply is compared with its expected content, and every statement about execution with the
/// records of the servers. The exit status is 1 if a promise was broken: a wrong byte, a call that
/// never ends, a call executed twice within one life of a server, a false statement about
/// execution, no answer within 10 s after a fault. Growth and recoveries above a second are
/// reported but are no failure, since a busy machine has them as well. After a network fault the
/// recovery time starts when plain UDP between the two hosts passes again; a kernel may hold its
/// first datagram for a second.
///
/// Without root or user namespaces, UDP and shared memory run on the loopback interface, without
/// faults of links, addresses and disks, and the output says so. Left out: a step of the wall
/// clock, unless `--clock-steps` is given; a lower MTU inside the network, since the lab changes
/// both hosts; exact replay, since the seed draws faults and messages but not their timing. A pause
/// exceeds every timeout of a call, but not the time after which idle peers are forgotten (up to
/// 120 s). The first Ctrl-C ends the soak early, with a report of what ran.
#[derive(Clone, Debug, PartialEq, Args, Serialize)]
#[command(after_help = "Examples:
  apus-lab lab soak
  apus-lab lab soak --seconds 3600 --seed 7 --json
  apus-lab lab soak --only udp,memory --seconds 20")]
pub struct SoakOptions {
    /// Seconds of calls and faults: 1 to 604800
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Seed of everything random: the same seed draws the same messages and the same order of
    /// faults
    #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,
    /// Also step the wall clock of the machine, 200 s forward or back, for about a second at a
    /// time. It stays wrong if the soak is killed in this time. Needs root, or CAP_SYS_TIME
    #[arg(long)]
    pub clock_steps: bool,
    /// 1: a soak is not repeated.
    #[arg(skip = 1_usize)]
    pub(super) runs: usize,
    /// Only these transports, with commas between them: `udp`, `memory`, `ip`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
}

impl Default for SoakOptions {
    fn default() -> Self {
        defaults()
    }
}

impl SoakOptions {
    /// Checks that each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a value that is not.
    pub fn check(&self) -> Result<(), Error> {
        let good = (1.0..=604_800.0).contains(&self.seconds);
        require(good, "seconds", "from 1 to 604800; try 60")?;
        let names = Transport::ALL.map(Transport::name);
        let good = self.only.iter().all(|only| names.contains(&&only[..]));
        require(good, "only", "the transports are udp, memory and ip; try udp,memory")
    }

    /// Returns the selected transports.
    pub(super) fn transports(&self) -> Vec<Transport> {
        let selected = |transport: &Transport| {
            self.only.is_empty() || self.only.iter().any(|only| only == transport.name())
        };
        Transport::ALL.into_iter().filter(selected).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_testbed::error::option_problem;

    #[test]
    fn what_cannot_be_run_is_refused_by_name() {
        let refused = |change: fn(&mut SoakOptions)| option_problem(SoakOptions::check, change);
        assert_eq!(refused(|_| ()), "");
        assert!(refused(|options| options.seconds = f64::NAN).starts_with("seconds: "));
        assert!(refused(|options| options.seconds = 0.5).starts_with("seconds: "));
        let only = refused(|options| options.only = vec!["tcp".to_owned()]);
        assert!(only.starts_with("only: ") && only.contains("try udp,memory"), "{only}");
    }

    #[test]
    fn the_selected_transports_keep_their_order() {
        let only = ["ip", "udp"].map(str::to_owned).to_vec();
        let options = SoakOptions { only, ..SoakOptions::default() };
        assert_eq!(options.transports(), [Transport::Udp, Transport::Ip]);
        assert_eq!(SoakOptions::default().transports(), Transport::ALL);
    }
}
