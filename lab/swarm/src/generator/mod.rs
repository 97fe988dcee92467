//! Generator: derives a scenario from a seed.
//!
//! Each file generates one part, from its own random stream. Ranges cover sensible configurations
//! and their limits; absurd configurations would not find bugs that occur in practice.

mod config;
mod division;
mod fabric;
mod faults;
mod hostile;
mod kernel;
mod load;
mod outages;
mod overload;
mod processors;
pub(crate) mod random;
mod sealing;
mod sharing;
mod sizes;

use std::collections::BTreeMap;

use apus_proto::Profile;

use super::ends::{Division, Ends};
use super::scenario::{PeerModel, Scenario};
use random::SeededRng;

impl Scenario {
    /// Generates the scenario of a seed, with random peer models.
    #[must_use]
    pub fn generate(seed: u64) -> Self {
        Self::generate_with(seed, PeerModel::Random)
    }

    /// Generates the scenario of a seed, with this peer model.
    #[must_use]
    pub fn generate_with(seed: u64, peers: PeerModel) -> Self {
        generate(seed, peers)
    }
}

/// Percentage of seeds with an overload as the only disturbance.
const OVERLOADED_PERCENT: u32 = 10;

/// Percentage of seeds with one host that attacks the others.
const ATTACKED_PERCENT: u32 = 10;

/// Percentage of the other seeds with sealed packets and a host on the path.
const SEALED_PERCENT: u32 = 10;

/// Generates the scenario of a seed.
fn generate(seed: u64, peers: PeerModel) -> Scenario {
    let stream = |purpose| SeededRng::new(seed, purpose);
    let mut attacked = stream(12);
    let is_drawn = attacked.percent(ATTACKED_PERCENT);
    if peers == PeerModel::Hostile || peers == PeerModel::Random && is_drawn {
        return hostile::generate(&mut attacked, seed);
    }
    let mut overloaded = stream(9);
    // Their checkers require that each packet arrives, but the first packets to a peer wait for its
    // keys.
    let is_disturbed = matches!(peers, PeerModel::Kernel | PeerModel::Sealed | PeerModel::Divided);
    if !is_disturbed && overloaded.percent(OVERLOADED_PERCENT) {
        return overload::generate(&mut overloaded, seed);
    }
    let is_sealed = peers == PeerModel::Random && stream(14).percent(SEALED_PERCENT);
    let peers = if is_sealed { PeerModel::Sealed } else { peers };
    let (fabric, packet_limit) = fabric::generate(&mut stream(1), seed);
    let kernel_hosts = kernel::generate(&mut stream(8), &fabric, peers);
    let required = match peers {
        PeerModel::Sealed | PeerModel::Divided => Some(Profile::Udp),
        _ => (!kernel_hosts.is_empty()).then_some(Profile::Kernel),
    };
    let config = config::generate(&mut stream(2), &fabric, required);
    let sizes = sizes::generate(&mut stream(3), &config, packet_limit);
    let mut calls = load::generate(&mut stream(4), &fabric, &config, &sizes, packet_limit);
    let mut config = config::with_longer_intervals(&config, &fabric, &mut calls);
    if peers == PeerModel::Sealed {
        config = config::with_time_for_handshakes(&config);
    }
    kernel::limit_deadlines(&mut calls, &kernel_hosts);
    let faults = faults::generate(&mut stream(5), &config);
    let last = calls.last().map_or(0, |call| call.at);
    let (mut outages, heal_at) = outages::generate(&mut stream(6), &fabric, &config, last);
    if !kernel_hosts.is_empty() {
        // The module sends NEED_ACK to a dead client every millisecond, forever
        // (HM `homa_timer.c` `homa_timer_check_rpc`); these packets would dominate the run.
        outages.crashes.clear();
    }
    let (processors, end) = processors::generate(&mut stream(10), &fabric, packet_limit, last);
    let sharing = sharing::generate(&mut stream(11), &fabric);
    // Peers of the kernel profile have no ports, and the host on the path of sealed packets
    // supports one end per host.
    let can_divide = config.profile() == Profile::Udp && peers != PeerModel::Sealed;
    let mut divided = stream(15);
    let division = match peers {
        PeerModel::Divided => division::divided(&mut divided),
        _ if can_divide => division::generate(&mut divided),
        _ => Division::Whole,
    };
    let ends = Ends::new(fabric.topology.shape.hosts(), division);
    let config = config::with_peers(&config, ends.count());
    division::divide(&mut divided, ends, &mut calls);
    let restarts = match division {
        Division::Processes(_) => division::restarts(&mut divided, ends, last),
        _ => Vec::new(),
    };
    let mut others = stream(7);
    Scenario {
        seed,
        config,
        fabric,
        division,
        processes_publish: divided.percent(60),
        restarts,
        kernel_hosts,
        packet_limit,
        has_link_rate: others.percent(80),
        consumes_late: others.percent(20),
        calls,
        sizes: sizes.describe(),
        faults,
        outages,
        sharing,
        processors,
        overload: None,
        attack: None,
        baits: Vec::new(),
        sealed: (peers == PeerModel::Sealed).then(|| sealing::generate(&mut stream(13))),
        lost: BTreeMap::new(),
        heal_at: heal_at.max(end),
    }
}
