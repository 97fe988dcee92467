//! Assignment of the two sides of an experiment to cores.

use std::collections::HashMap;
use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::{Doing, Error};

/// Cores of the two sides of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// Core of the client; `None` leaves the choice to the system.
    pub client: Option<usize>,
    /// Core of the server; `None` leaves the choice to the system.
    pub server: Option<usize>,
}

impl Cores {
    /// Chooses a core for each side if this process may use two: the first for the client, the last
    /// for the server, so that the two are rarely hardware threads of one physical core.
    #[must_use]
    pub fn choose() -> Self {
        Self::of_pair(0)
    }

    /// Chooses the cores of one of several concurrent client-server pairs. Clients get cores from
    /// the first upwards, servers from the last downwards. Pairs share cores if there are fewer
    /// than two for each.
    #[must_use]
    pub fn of_pair(index: usize) -> Self {
        Self::of_pair_on(&allowed(), index)
    }

    fn of_pair_on(cores: &[usize], index: usize) -> Self {
        if cores.len() < 2 {
            return Self { client: None, server: None };
        }
        let index = index % cores.len();
        Self { client: Some(cores[index]), server: Some(cores[cores.len() - 1 - index]) }
    }

    /// Chooses the core of one of several clients of the same server, which has exclusive use of
    /// the last core. With one core, the choice is left to the system.
    #[must_use]
    pub fn of_client(index: usize) -> Option<usize> {
        match &allowed()[..] {
            [clients @ .., _] if !clients.is_empty() => Some(clients[index % clients.len()]),
            _ => None,
        }
    }

    /// Returns whether `tasks` tasks can have a core each.
    #[must_use]
    pub fn suffice_for(tasks: usize) -> bool {
        tasks <= allowed().len()
    }

    /// Returns a note for readers of the result if the cores are shared.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.are_shared().then(|| {
            "client and server share one core: they sleep instead of spinning, and latencies contain \
             the switches between them"
                .to_owned()
        })
    }

    /// Returns whether both sides may run on the same core.
    #[must_use]
    pub fn are_shared(&self) -> bool {
        self.client.is_none() || self.server.is_none() || self.client == self.server
    }
}

/// Restricts the calling thread, and threads it starts later, to one core.
///
/// # Errors
///
/// The system refuses, for example because this process may not use the core.
pub fn pin(core: usize) -> Result<(), Error> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).doing(|| format!("run on core {core} only"))
}

/// Returns the cores that this process may use, at least one: first one hardware thread of each
/// physical core, then the others.
pub fn physical_first() -> Vec<usize> {
    let cores = allowed();
    let path = |core| format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    // Without information, each core counts as a separate physical core.
    let siblings =
        |core| fs::read_to_string(path(core)).unwrap_or_else(|_| format!("{core} alone"));
    let cores = round_robin(cores.into_iter().map(|core| (core, siblings(core))));
    if cores.is_empty() { vec![0] } else { cores }
}

/// Returns the first element of each group, then the second of each, and so on.
fn round_robin(cores: impl Iterator<Item = (usize, String)>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let round = |(core, group): (usize, String)| {
        let round = seen.entry(group).or_default();
        *round += 1;
        (*round, core)
    };
    let mut rounds: Vec<_> = cores.map(round).collect();
    rounds.sort_unstable();
    rounds.into_iter().map(|(_, core)| core).collect()
}

/// Returns the cores that this process may use, in ascending order; empty if the system does not
/// report them.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_pinned_thread_may_use_its_core_only() {
        let core = *allowed().last().expect("a test runs on some core");
        thread::spawn(move || {
            pin(core).unwrap();
            assert_eq!(allowed(), [core]);
            let child = thread::spawn(allowed).join().unwrap();
            assert_eq!(child, [core], "threads inherit it");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn each_physical_core_comes_before_any_second_hardware_thread() {
        let cores = [(0, "0,4"), (1, "1,5"), (4, "0,4"), (5, "1,5"), (7, "7")];
        let cores = cores.map(|(core, group)| (core, group.to_owned()));
        assert_eq!(round_robin(cores.into_iter()), [0, 1, 7, 4, 5]);
        let mut here = physical_first();
        here.sort_unstable();
        assert_eq!(here, allowed(), "all of them, each once");
    }

    #[test]
    fn a_core_that_does_not_exist_is_an_error_that_names_it() {
        let error = thread::spawn(|| pin(CpuSet::MAX_CPU - 1)).join().unwrap().unwrap_err();
        assert!(error.to_string().contains(&format!("core {}", CpuSet::MAX_CPU - 1)), "{error}");
    }

    #[test]
    fn two_cores_are_used_without_a_note() {
        let cores = Cores { client: Some(0), server: Some(1) };
        assert_eq!((cores.are_shared(), cores.note()), (false, None));
    }

    #[test]
    fn pairs_share_no_core_while_there_are_two_for_each() {
        let pair = |index| Cores::of_pair_on(&[3, 4, 5, 6], index);
        assert_eq!(pair(0), Cores { client: Some(3), server: Some(6) });
        assert_eq!(pair(1), Cores { client: Some(4), server: Some(5) });
        assert_eq!(pair(2), Cores { client: Some(5), server: Some(4) }, "two tasks on each");
        assert_eq!(pair(4), pair(0));
        assert_eq!(Cores::of_pair_on(&[3], 1), Cores { client: None, server: None });
    }

    #[test]
    fn on_one_core_both_sides_sleep_and_the_result_says_so() {
        let cores = Cores { client: None, server: None };
        assert!(cores.are_shared());
        assert!(cores.note().unwrap().contains("share one core"));
    }
}
