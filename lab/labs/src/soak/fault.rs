//! The faults, and the order in which they happen.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::client::CALL_TIMEOUT;
use super::network::{Side, TestNetwork};

/// Something that happens to a process, a host or a disk, and then ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    KillClient,
    KillServer,
    RestartServer,
    PauseClient,
    PauseServer,
    LinkDown,
    Mtu,
    Address,
    FullDisk,
    ClockStep,
}

impl Fault {
    const PROCESSES: [Self; 5] = [
        Self::KillClient,
        Self::KillServer,
        Self::RestartServer,
        Self::PauseClient,
        Self::PauseServer,
    ];
    const NETWORK: [Self; 3] = [Self::LinkDown, Self::Mtu, Self::Address];

    /// Returns the name in results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::KillClient => "kill client",
            Self::KillServer => "kill server",
            Self::RestartServer => "restart server",
            Self::PauseClient => "pause client",
            Self::PauseServer => "pause server",
            Self::LinkDown => "link down",
            Self::Mtu => "mtu 1280",
            Self::Address => "other address",
            Self::FullDisk => "full disk",
            Self::ClockStep => "clock step",
        }
    }

    /// Returns whether it is a fault of the network.
    pub(super) fn is_of_network(self) -> bool {
        Self::NETWORK.contains(&self)
    }

    /// Returns the faults that are possible in a network; with `clock`, including steps of the wall
    /// clock.
    pub(super) fn possible(network: &TestNetwork, clock: bool) -> Vec<Self> {
        let mut all = Self::PROCESSES.to_vec();
        if network.has_hosts() {
            all.extend(Self::NETWORK);
        }
        if network.has_namespaces() {
            all.push(Self::FullDisk);
        }
        if clock {
            all.push(Self::ClockStep);
        }
        all
    }
}

/// A fault that has been drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) fault: Fault,
    /// The side of a fault of a host. A step of the clock is forward for the clients' side, and
    /// back for the servers'.
    pub(super) side: Side,
    /// Which of the side's two processes a pause affects.
    pub(super) index: usize,
    /// Duration of the fault.
    pub(super) hold: Duration,
    /// Time without a fault before it.
    pub(super) before: Duration,
}

/// Faults in an order that is a function of the seed: rounds of all faults, each in a new order.
pub(super) struct Deck {
    possible: Vec<Fault>,
    round: Vec<Fault>,
    random: SmallRng,
}

impl Deck {
    pub(super) fn new(seed: u64, possible: Vec<Fault>) -> Self {
        Self { possible, round: Vec::new(), random: SmallRng::seed_from_u64(seed) }
    }

    /// Draws the next fault.
    pub(super) fn draw(&mut self) -> Drawn {
        if self.round.is_empty() {
            self.round.clone_from(&self.possible);
            self.round.shuffle(&mut self.random);
        }
        let fault = self.round.pop().expect("filled above");
        let side = if self.random.random() { Side::Clients } else { Side::Servers };
        let index = usize::from(self.random.random::<bool>());
        let mut milliseconds =
            |from: u64, to: u64| Duration::from_millis(self.random.random_range(from..to));
        let hold = match fault {
            Fault::KillClient | Fault::KillServer | Fault::RestartServer => milliseconds(0, 300),
            // Longer than the timeout of a call, which exceeds all other timeouts of a single call.
            Fault::PauseClient | Fault::PauseServer => CALL_TIMEOUT + milliseconds(500, 1_000),
            Fault::LinkDown => milliseconds(50, 3_000),
            Fault::Mtu | Fault::Address | Fault::FullDisk | Fault::ClockStep => {
                milliseconds(500, 1_500)
            }
        };
        let before = milliseconds(300, 800);
        Drawn { fault, side, index, hold, before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(seed: u64, number: usize) -> Vec<Drawn> {
        let mut deck = Deck::new(seed, Fault::PROCESSES.to_vec());
        (0..number).map(|_| deck.draw()).collect()
    }

    #[test]
    fn the_order_is_a_function_of_the_seed_and_every_fault_has_its_turn() {
        assert_eq!(names(1, 20), names(1, 20));
        assert_ne!(names(1, 20), names(2, 20));
        for round in names(3, 20).chunks(Fault::PROCESSES.len()) {
            for fault in Fault::PROCESSES {
                assert_eq!(round.iter().filter(|drawn| drawn.fault == fault).count(), 1);
            }
        }
    }

    #[test]
    fn pauses_are_longer_than_a_call_may_take() {
        let pauses = names(1, 50)
            .into_iter()
            .filter(|drawn| matches!(drawn.fault, Fault::PauseClient | Fault::PauseServer));
        assert!(pauses.clone().count() > 10);
        assert!(pauses.into_iter().all(|drawn| drawn.hold > CALL_TIMEOUT));
    }

    #[test]
    fn without_namespaces_only_processes_have_faults() {
        assert_eq!(Fault::possible(&TestNetwork::Loopback, false), Fault::PROCESSES);
        assert!(Fault::possible(&TestNetwork::Loopback, true).contains(&Fault::ClockStep));
    }
}
