//! Options of the hostile lab.

use apus::PollMode;
use clap::Args;
use serde::Serialize;

use super::attack::Attack;
use apus_bench::options::Repetition;
use apus_report::experiment::defaults;
use apus_testbed::error::{Error, require};

/// The effect of an attacker on a server and its honest client
///
/// An honest client calls a server at random instants (Poisson), at a share of the server's
/// capacity. An attacker sends as many packets as one core can, with any source address: datagrams
/// that are no packets (`malformed`), packets in the name of the honest client (`forged`), first
/// packets of unknown clients (`unknown`). Other attackers need few packets. One claims room for
/// four messages of maximum length, and sends only the first packet of each (`claims`); others keep
/// messages alive that make no progress: a request that announces bytes that it does not send
/// (`announcements`), requests that hold what they were granted (`grants`), and both by a server
/// that the honest client calls as well (`responses`). Under these three, honest calls of 200 B, 1
/// MB and 2 MB are measured. The honest client's calls under each attack
/// are compared with its calls without one (`none`). `ns_per_packet` is the server's processor time
/// per packet read, including unsuccessful polls; it matters only if the server has no time to
/// spare.
///
/// Server, client and attacker are processes in a network namespace that the command creates and
/// removes, which takes root or user namespaces. With --sealed every packet is sealed with
/// throw-away keys, and the attacker has none. The tests in transport/apus/tests/attacks check more
/// attacks, none of which may have an effect; this command measures the cost of floods.
#[derive(Clone, Debug, PartialEq, Args, Serialize)]
#[command(
    mut_arg("poll", |argument| argument.default_value(PollMode::default().to_string())),
    after_help = "Examples:
  apus-lab lab hostile
  apus-lab lab hostile --sealed
  apus-lab lab hostile --attacks malformed,forged --load 0.25 --runs 3 --json"
)]
pub struct HostileOptions {
    /// Only these attacks, with commas between them: `malformed`, `forged`, `unknown`, `claims`,
    /// `announcements`, `grants`, `responses`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(skip)]
    pub attacks: Vec<String>,
    /// Honest calls as a share of the server's capacity without an attack: 0.01 to 0.95 [default:
    /// 0.5, or 0.05 with fewer than three cores, where the honest client shares one with the
    /// attacker]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub load: Option<f64>,
    /// Seal every packet
    #[arg(long)]
    pub sealed: bool,
    /// Seconds and runs of each attack. The poll mode is the server's: the honest client always
    /// spins, so that no call starts late.
    #[command(flatten)]
    #[serde(flatten)]
    pub repetition: Repetition,
}

impl Default for HostileOptions {
    fn default() -> Self {
        defaults()
    }
}

impl HostileOptions {
    /// Checks that each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a value that is not.
    pub fn check(&self) -> Result<(), Error> {
        let known = |name: &String| Attack::ALL.iter().any(|attack| attack.name() == name);
        let problem = "the attacks are malformed, forged, unknown, claims, announcements, grants and responses; try \
                       malformed,forged";
        require(self.attacks.iter().all(known), "attacks", problem)?;
        let possible = !self.attacks().is_empty();
        require(possible, "attacks", "with --sealed only floods need no key; try forged")?;
        let load = self.load.is_none_or(|load| (0.01..=0.95).contains(&load));
        require(load, "load", "a load is 0.01 to 0.95 of the capacity; try 0.5")?;
        self.repetition.check()
    }

    /// Returns the load. `apart` is whether the honest client has its own core.
    pub(super) fn load(&self, apart: bool) -> f64 {
        self.load.unwrap_or(if apart { 0.5 } else { 0.05 })
    }

    /// Returns the selected attacks that are possible.
    pub(super) fn attacks(&self) -> Vec<Attack> {
        let selected = |attack: &Attack| {
            self.attacks.is_empty() || self.attacks.iter().any(|name| name == attack.name())
        };
        let possible = |attack: &Attack| attack.is_possible(self.sealed);
        Attack::ALL.into_iter().filter(selected).filter(possible).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_testbed::error::option_problem;

    #[test]
    fn what_cannot_be_run_is_refused_by_name() {
        let refused =
            |change: fn(&mut HostileOptions)| option_problem(HostileOptions::check, change);
        assert_eq!(refused(|_| ()), "");
        let attacks = refused(|options| options.attacks = vec!["bribes".to_owned()]);
        assert!(attacks.starts_with("attacks: ") && attacks.contains("try malformed"), "{attacks}");
        let sealed = refused(|options| {
            options.attacks = vec!["claims".to_owned()];
            options.sealed = true;
        });
        assert!(sealed.starts_with("attacks: ") && sealed.contains("try forged"), "{sealed}");
        assert!(refused(|options| options.load = Some(1.0)).starts_with("load: "));
        assert!(refused(|options| options.load = Some(f64::NAN)).starts_with("load: "));
        assert!(refused(|options| options.repetition.runs = 0).starts_with("runs: "));
    }

    #[test]
    fn the_selected_attacks_keep_their_order() {
        let attacks = ["claims", "forged"].map(str::to_owned).to_vec();
        let options = HostileOptions { attacks, ..HostileOptions::default() };
        assert_eq!(options.attacks(), [Attack::Forged, Attack::Claims]);
        assert_eq!(HostileOptions { sealed: true, ..options }.attacks(), [Attack::Forged]);
        assert_eq!(HostileOptions::default().attacks(), Attack::ALL);
    }
}
