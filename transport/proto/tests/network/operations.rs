//! Any sequence of operations, over any network, ends well.
//!
//! The input is a list of operations and then the decisions of the network. For all of them: every
//! accepted call ends exactly once, no request is executed twice, responses are intact, and in the
//! end no table holds any state.

use crate::dice::Dice;
use crate::world::{Faults, MICROSECOND, MILLISECOND, SECOND, World};
use apus_proto::{Config, Unreachable};
use arbitrary::{Arbitrary, Unstructured};

/// Operations on the world.
#[derive(Arbitrary, Debug)]
enum Operation {
    Call {
        from: u8,
        to: u8,
        length: Length,
        idempotent: bool,
        deadline: Option<Pause>,
    },
    /// The call that was made this number of calls ago.
    Cancel {
        back: u8,
    },
    Wait(Pause),
    Crash {
        host: u8,
    },
    ShutDown {
        host: u8,
    },
    Unreachable {
        host: u8,
        to: u8,
        trouble: u8,
    },
    PacketLimit {
        host: u8,
        to: u8,
        bytes: u16,
    },
    LinkRate {
        host: u8,
        mbps: u16,
    },
    Serving {
        host: u8,
        serving: bool,
    },
    /// From now on; in units of 4 per mille.
    Faults {
        loss: u8,
        duplication: u8,
        delay: u8,
        very_late: u8,
        abandonment: u8,
    },
    /// From now on; rare, as it takes most promises away.
    Corruption {
        one: u8,
        two: u8,
    },
}

/// Bytes of a request.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Length {
    Short(u8),
    Long(u16),
    /// In packets, more or less.
    Packets(u8, i8),
}

impl Length {
    fn bytes(self) -> usize {
        match self {
            Self::Short(bytes) => usize::from(bytes),
            Self::Long(bytes) => usize::from(bytes) * 2,
            Self::Packets(packets, more) => {
                (usize::from(packets % 64) * 1_416).saturating_add_signed(isize::from(more))
            }
        }
    }
}

/// A time.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Pause {
    Micros(u16),
    Millis(u8),
    Seconds(u8),
}

impl Pause {
    fn nanos(self) -> u64 {
        match self {
            Self::Micros(n) => u64::from(n) * MICROSECOND,
            Self::Millis(n) => u64::from(n) * MILLISECOND,
            Self::Seconds(n) => u64::from(n) * SECOND,
        }
    }
}

/// Operations of one input. More would make it slow, not better.
const MAX_OPERATIONS: usize = 64;

/// Limits that a few calls reach.
fn narrow() -> Config {
    Config::builder()
        .max_message(40_000)
        .max_send_bytes(60_000)
        .max_send_bytes_per_peer(50_000)
        .max_receive_bytes(60_000)
        .max_receive_bytes_per_peer(45_000)
        .max_client_rpcs(4)
        .max_server_rpcs(3)
        .max_peers(2)
        .max_dormant_sessions(1)
        .max_incoming(8_000)
        .max_overcommit(2)
        .unsched_bytes(3_000)
        .unsched_bytes_min(1_000)
        .unsched_bytes_max(6_000)
        .reap_limit(1)
        .need_ack_limit(2)
        .link_mbps(1_000)
        .timeout_usecs(50_000)
        .peer_idle_secs_min(0)
        .peer_idle_secs_max(20)
        .build()
        .expect("the limits fit together")
}

/// The defaults, but for idle peers, whose end belongs to the run.
fn wide() -> Config {
    let builder = Config::builder().peer_idle_secs_min(1).peer_idle_secs_max(20);
    builder.build().expect("the limits fit together")
}

/// Runs one input.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let Ok((kind, hosts)) = <(u8, u8)>::arbitrary(&mut input) else { return };
    let config = if kind % 2 == 0 { narrow() } else { wide() };
    let count = input.int_in_range(1..=MAX_OPERATIONS).unwrap_or(1);
    let operations: Vec<Operation> =
        (0..count).map_while(|_| Operation::arbitrary(&mut input).ok()).collect();
    let dice = Dice::bytes(input.take_rest().to_vec());
    let hosts = 2 + usize::from(hosts % 2);
    let keep = if kind & 2 == 0 { usize::MAX } else { 8 };
    let mut world = World::keeping(keep, dice, hosts, config, Faults::default());
    for operation in &operations {
        operate(&mut world, operation);
    }
    world.heal();
    world.check_calls();
    world.check_nothing_is_left();
}

fn operate(world: &mut World, operation: &Operation) {
    let hosts = world.hosts.len();
    let host = |n: u8| usize::from(n) % hosts;
    match *operation {
        Operation::Call { from, to, length, idempotent, deadline } => {
            let deadline = deadline.map(Pause::nanos);
            // An error is back-pressure, a message too long, or an endpoint that was shut down.
            let _ = world.call(host(from), host(to), length.bytes(), idempotent, deadline);
        }
        Operation::Cancel { back } => {
            if let Some(number) = world.calls.len().checked_sub(1 + usize::from(back)) {
                world.cancel(number);
            }
        }
        Operation::Wait(pause) => world.run_until(world.now + pause.nanos()),
        Operation::Crash { host: n } => world.crash(host(n)),
        Operation::ShutDown { host: n } => world.shut_down(host(n)),
        Operation::Unreachable { host: n, to, trouble } => {
            let trouble = match trouble % 4 {
                0 => Unreachable::PortClosed,
                1 => Unreachable::Protocol,
                2 => Unreachable::Host,
                _ => Unreachable::NotPermitted,
            };
            world.unreachable(host(n), host(to), trouble);
        }
        Operation::PacketLimit { host: n, to, bytes } => {
            let to = crate::world::address(host(to));
            world.hosts[host(n)].transport.set_packet_limit(to, usize::from(bytes));
        }
        Operation::LinkRate { host: n, mbps } => {
            world.hosts[host(n)].transport.set_link_rate(u32::from(mbps));
        }
        Operation::Serving { host: n, serving } => {
            world.hosts[host(n)].transport.set_serving(serving);
        }
        Operation::Faults { loss, duplication, delay, very_late, abandonment } => {
            let corruption = world.faults.corruption;
            let per_mille = |n: u8| u32::from(n) * 4;
            world.faults = Faults {
                loss: per_mille(loss),
                duplication: per_mille(duplication),
                delay: per_mille(delay),
                very_late: per_mille(very_late),
                abandonment: per_mille(abandonment),
                corruption,
                crashes: false,
                longest: None,
            };
        }
        Operation::Corruption { one: 0x5a, two } => world.faults.corruption = u32::from(two) * 4,
        Operation::Corruption { .. } => {}
    }
}
