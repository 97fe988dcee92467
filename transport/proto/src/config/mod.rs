//! The parameters of the protocol.
//!
//! [`Config`] is one table: every parameter with unit, default, range and source. A
//! [`ConfigBuilder`] or a configuration file (feature `serde`) makes one; [`ConfigBuilder::build`]
//! checks each value and the relations between values. A `Config` that exists is valid.
//!
//! Parameters of the kernel module that have no meaning in user space are listed in
//! `docs/spec/parameters.md` with the reason.

mod error;
mod parameter;

pub use error::ConfigError;
pub use parameter::Parameter;

use apus_wire::{PRIORITIES, Profile};

/// Declares all integer parameters once: fields, getters, setters by method and by name, ranges.
macro_rules! parameters {
    ($($(#[doc = $doc:literal])+ $name:ident: $unit:literal = $default:literal in $min:literal ..= $max:literal;)*) => {
        /// Parameters of the protocol: immutable, and valid as a whole.
        ///
        /// All amounts are integers in the unit that the field's description names. `usecs` in a
        /// name means microseconds. "Kernel: …" gives the name and default in the kernel module
        /// (docs/reference/homa-module.md, *Parameters*).
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(try_from = "ConfigBuilder", into = "ConfigBuilder"))]
        pub struct Config(ConfigBuilder);

        /// Collects parameters for a [`Config`]; starts with the defaults.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
        #[must_use = "call `build`"]
        pub struct ConfigBuilder {
            #[cfg_attr(feature = "serde", serde(with = "ProfileName"))]
            profile: Profile,
            unsched_cutoffs: [u32; PRIORITIES],
            priority_map: [u8; PRIORITIES],
            $($name: u64,)*
        }

        impl Default for ConfigBuilder {
            fn default() -> Self {
                Self {
                    profile: Profile::Udp,
                    unsched_cutoffs: UNSCHED_CUTOFFS,
                    priority_map: [0, 1, 2, 3, 4, 5, 6, 7],
                    $($name: $default,)*
                }
            }
        }

        impl Config {
            $($(#[doc = $doc])+ #[must_use] pub const fn $name(&self) -> u64 { self.0.$name })*
        }

        impl ConfigBuilder {
            $(
                #[doc = concat!("Sets [`Config::", stringify!($name), "`].")]
                pub const fn $name(mut self, value: u64) -> Self {
                    self.$name = value;
                    self
                }
            )*

            /// Sets the integer parameter called `name`, as a sweep or a command line does.
            ///
            /// # Errors
            ///
            /// [`ConfigError::UnknownParameter`]. Ranges are checked by [`ConfigBuilder::build`].
            pub fn set(mut self, name: &str, value: u64) -> Result<Self, ConfigError> {
                match name {
                    $(stringify!($name) => self.$name = value,)*
                    _ => return Err(ConfigError::UnknownParameter(name.to_owned())),
                }
                Ok(self)
            }

            /// Returns each integer parameter with its present value, in the order of the table.
            fn values(&self) -> impl Iterator<Item = (&'static Parameter, u64)> {
                PARAMETERS.iter().zip([$(self.$name,)*])
            }
        }

        /// All integer parameters, in the order of the table.
        pub const PARAMETERS: &[Parameter] = &[$(Parameter {
            name: stringify!($name),
            unit: $unit,
            default: $default,
            min: $min,
            max: $max,
        },)*];
    };
}

/// HM `homa_utils.c` `homa_init`: level 7 up to 200 bytes, 6 up to 2800, 5 up to 15,000, 4 up to
/// 1,000,000; levels 0 to 3 are left to scheduled packets.
const UNSCHED_CUTOFFS: [u32; PRIORITIES] = [0, 0, 0, 0, 1_000_000, 15_000, 2_800, 200];

parameters! {
    /// Unscheduled bytes of a message to a peer whose round-trip time is not known yet.
    ///
    /// Kernel: `unsched_bytes` 40,000 (HM `homa_utils.c` `homa_init`).
    unsched_bytes: "bytes" = 40_000 in 1 ..= 1_000_000;
    /// Fewest unscheduled bytes once the round-trip time is known.
    ///
    /// Default: RTTbytes of SIGCOMM 2018 at 10 Gbit/s (docs/reference/papers.md, *Simulation
    /// set-up*); fewer makes short and medium messages up to 2.5 times slower
    /// (docs/reference/papers.md, *Other findings*).
    unsched_bytes_min: "bytes" = 10_000 in 1 ..= 1_000_000;
    /// Most unscheduled bytes once the round-trip time is known.
    ///
    /// Default: best value on 25 Gbit/s (docs/reference/papers.md, *Constants*); more fills switch
    /// buffers without gain (B.4, A.6).
    unsched_bytes_max: "bytes" = 60_000 in 1 ..= 1_000_000;
    /// Priority levels in use; the highest is this number less one.
    ///
    /// Kernel: `num_priorities` 8.
    num_priorities: "levels" = 8 in 1 ..= 8;
    /// Shortest silence after which missing bytes are requested; a longer round-trip time extends
    /// it.
    ///
    /// Kernel: `resend_ticks` 5 ms (HM `homa_utils.c` `homa_init`). Scheduling stalls of 5 to 7 ms
    /// happen, so that a RESEND before that is mostly spurious (HM `perf.txt`). On a slow link it
    /// is more: the time that the link takes for 960,000 bytes, which may be queued before a packet
    /// (chosen by us).
    resend_usecs: "µs" = 5_000 in 100 ..= 10_000_000;
    /// Time between two RESENDs for the same message.
    ///
    /// Kernel: `resend_interval` 5 ms.
    resend_interval_usecs: "µs" = 5_000 in 100 ..= 10_000_000;
    /// Silence of a peer after which its RPCs are aborted, if RESENDs brought no response.
    ///
    /// Kernel: `timeout_ticks` 100 ms. Chosen longer because processes are descheduled for longer
    /// than interrupt handlers.
    timeout_usecs: "µs" = 1_000_000 in 1_000 ..= 3_600_000_000;
    /// Time from the end of a response's transmission to the first NEED_ACK; doubles with each
    /// further one up to 100 ms.
    ///
    /// Kernel: `request_ack_ticks` 2 ms, not doubling (HM `homa_utils.c` `homa_init`).
    need_ack_usecs: "µs" = 2_000 in 100 ..= 10_000_000;
    /// Unanswered NEED_ACKs after which a server forgets a response, provided that `timeout_usecs`
    /// have passed as well.
    ///
    /// Chosen by us, because the kernel asks forever (HM `homa_timer.c` `homa_timer_check_rpc`).
    need_ack_limit: "packets" = 10 in 1 ..= 1_000;
    /// Rate of the link; 0 takes the rate that the driver reports. If the driver reports none,
    /// pacing is off, and grants and unscheduled bytes assume 25,000.
    ///
    /// Kernel: `link_mbps` 25,000.
    link_mbps: "Mbit/s" = 0 in 0 ..= 1_000_000;

    /// Most granted bytes outstanding, over all messages; 0 takes the bytes that the link carries
    /// in 128 µs, and at least 40,000.
    ///
    /// Kernel: `max_incoming` 400,000 (HM `homa_grant.c` `homa_grant_alloc`), which is 128 µs at
    /// its 25 Gbit/s. The default follows the link, because a fixed number starves fast links and
    /// fills the queues of slow ones.
    max_incoming: "bytes" = 0 in 0 ..= 1_000_000_000;
    /// Messages that are granted at the same time.
    ///
    /// Kernel: `max_overcommit` 8 (HM `homa_grant.c` `homa_grant_alloc`).
    max_overcommit: "messages" = 8 in 1 ..= 64;
    /// Bytes of one message that may be granted and not yet received; 0 divides `max_incoming` by
    /// the number of active messages and one more.
    ///
    /// Kernel: `window` 0 (HM `homa_grant.c` `homa_grant_alloc`).
    window: "bytes" = 0 in 0 ..= 1_000_000_000;
    /// A GRANT raises the limit by at least this much, except at the message's end or when the
    /// window is smaller.
    ///
    /// SIGCOMM 2018 grants every 10,000 bytes (docs/reference/papers.md, *Constants*); without a
    /// step each packet would cost a GRANT when packets arrive one by one.
    grant_increment: "bytes" = 10_000 in 1 ..= 1_000_000;
    /// Share of the granted bytes reserved for the oldest message.
    ///
    /// Kernel: `grant_fifo_fraction` 50, at most 500 (HM `homa_grant.c` `homa_grant_alloc`).
    grant_fifo_fraction: "‰" = 50 in 0 ..= 500;
    /// Bytes of one grant to the oldest message, but no more than an eighth of `max_incoming`
    /// (GRANT-8).
    ///
    /// Kernel: `fifo_grant_increment` 50,000.
    fifo_grant_increment: "bytes" = 50_000 in 1_500 ..= 10_000_000;

    /// Bound on the estimated backlog of the network interface; messages that would exceed it are
    /// throttled.
    ///
    /// Kernel: `max_nic_est_backlog_usecs` 5. Chosen longer because a pass of a user-space engine
    /// takes several microseconds: at 5 the interface would run dry between two passes.
    max_nic_est_backlog_usecs: "µs" = 20 in 1 ..= 10_000;
    /// Share of the throttled output reserved for the oldest message.
    ///
    /// Kernel: `pacer_fifo_fraction` 50.
    pacer_fifo_fraction: "‰" = 50 in 0 ..= 500;
    /// Messages shorter than this are never throttled.
    ///
    /// Kernel: `defer_min_bytes` 1000 (HM `homa_qdisc.c` `homa_qdisc_enqueue`).
    defer_min_bytes: "bytes" = 1_000 in 0 ..= 1_000_000;
    /// Share of the link's rate that the pacer counts on.
    ///
    /// Kernel: `max_link_usage` 99.
    max_link_usage: "%" = 99 in 5 ..= 100;
    /// Most payload bytes of one message that are handed to the driver at once.
    ///
    /// Chosen by us: a 64 kB segmentation-offload send. A shorter message that arrives in the
    /// meantime waits for it.
    burst_bytes: "bytes" = 60_000 in 1_500 ..= 64_000;

    /// Bytes that a message may have in flight if its sender reports its backlog, together with
    /// shorter messages; all such messages together may have half as much again. 0 disables this:
    /// `max_incoming` alone limits grants, and no backlog is reported to other receivers.
    ///
    /// Chosen by us, from sweeps of the simulator (docs/networks.md): 1.8 times the bytes that the
    /// link carries in a round-trip time keep it full; with one level it defines that number
    /// (GRANT-20). It depends on the network and on the hosts, so it is off by default.
    informed_incoming: "bytes" = 0 in 0 ..= 1_000_000_000;

    /// Smallest limit of granted bytes in flight for one sender, however many of its packets
    /// switches mark; a sixth of `informed_incoming` (of `max_incoming` without it) if that is
    /// more. 0 disables limits by marks: marks are ignored, and packets do not declare themselves
    /// markable (ECN).
    ///
    /// Chosen by us (docs/networks.md). It depends on the switches of the network, so it is off
    /// unless it is set.
    marked_incoming: "bytes" = 0 in 0 ..= 1_000_000_000;

    /// Number of additional ports from which an endpoint sends scheduled packets in turn, so that a
    /// network that hashes flows by port (ECMP) spreads the packets of long messages. 0 disables
    /// spraying: such packets are neither sent nor accepted.
    ///
    /// Chosen by us (docs/networks.md). Filters of the network must let them pass, so it is off
    /// unless it is set.
    spray_ports: "ports" = 0 in 0 ..= 64;

    /// Bytes that the responses of all outstanding calls together may send without a GRANT: each
    /// request states the share of its response, at least 128 bytes. 0 disables this: servers
    /// decide.
    ///
    /// Chosen by us (docs/networks.md). It depends on the buffers of the network, so it is off
    /// unless it is set.
    incast_unsched_bytes: "bytes" = 0 in 0 ..= 1_000_000_000;

    /// Least time between two renewals of the cutoffs from the sizes of the messages that arrived.
    ///
    /// Kernel (`homa_prio`): 1000 ms (HM `util/homa_prio.cc`). 0 keeps the cutoffs as configured.
    cutoffs_interval_usecs: "µs" = 1_000_000 in 0 ..= 3_600_000_000;
    /// Messages that must have arrived before the cutoffs are renewed.
    ///
    /// Kernel (`homa_prio`): 10,000.
    cutoffs_min_messages: "messages" = 10_000 in 100 ..= 1_000_000_000;

    /// Longest message, in both directions.
    ///
    /// Kernel: 1,000,000, which is also the limit in the kernel profile. 64 MB otherwise.
    max_message: "bytes" = 67_108_864 in 1 ..= 1_073_741_824;
    /// Payload bytes that may wait for transmission or for their acknowledgment. Requests and
    /// responses each have this limit, because a response that waits for the room of a request may
    /// wait forever. Responses to one host get half (or `max_send_bytes_per_peer`, if that is more),
    /// and an eighth is left to short responses (CAP-21).
    ///
    /// Kernel: `wmem_max` 100 MB per socket (HM `homa_utils.c` `homa_init`).
    max_send_bytes: "bytes" = 268_435_456 in 1 ..= 1_099_511_627_776;
    /// Payload bytes that may wait for transmission to one peer, or for its acknowledgment.
    max_send_bytes_per_peer: "bytes" = 134_217_728 in 1 ..= 1_099_511_627_776;
    /// Bytes of incoming messages that are being received or wait for the application. A message
    /// that is being received counts with the bytes received and the bytes that may still arrive:
    /// unscheduled and granted ones. An eighth is reserved for messages that fit into the
    /// unscheduled window of a peer (CAP-8, CAP-19).
    ///
    /// Kernel: the receive region of the socket (HM `homa_pool.c` `homa_pool_set_region`).
    max_receive_bytes: "bytes" = 268_435_456 in 1 ..= 1_099_511_627_776;
    /// Bytes of messages being received from one peer, without messages that wait for the
    /// application.
    max_receive_bytes_per_peer: "bytes" = 134_217_728 in 1 ..= 1_099_511_627_776;
    /// Bytes of messages being received from one host, without messages that wait for the
    /// application. A host is an IPv4 address, or a /64 of IPv6; all peers behind a NAT are one
    /// host. A request beyond the limit is refused. A value above `max_receive_bytes` has no
    /// effect.
    ///
    /// Chosen by us: half of all, so that no host takes the room of the others (CAP-18).
    max_receive_bytes_per_host: "bytes" = 134_217_728 in 1 ..= 1_099_511_627_776;
    /// RPCs that may be live with this endpoint as client.
    max_client_rpcs: "RPCs" = 65_536 in 1 ..= 16_777_216;
    /// RPCs that may be live with this endpoint as server.
    max_server_rpcs: "RPCs" = 65_536 in 1 ..= 16_777_216;
    /// RPCs that may be live with the clients of one host (an IPv4 address, or a /64 of IPv6). A
    /// request beyond is refused. A value above `max_server_rpcs` has no effect.
    ///
    /// Chosen by us: half of all, so that no host takes the room of the others (CAP-18).
    max_server_rpcs_per_host: "RPCs" = 32_768 in 1 ..= 16_777_216;
    /// Peers that are known at the same time.
    ///
    /// Kernel: `peer_net_max` 10,000 (HM `homa_peer.c` `homa_peer_gc`).
    max_peers: "peers" = 10_000 in 1 ..= 10_000_000;
    /// Peers at one host (an IPv4 address, or a /64 of IPv6). A client beyond displaces the idlest
    /// of them, and is refused if all are busy. Peers that this endpoint calls are not limited by
    /// it. A value above `max_peers` has no effect.
    ///
    /// Chosen by us: half of all, so that no host takes the room of the others, and enough for the
    /// machines behind a NAT or the pods of a node (CAP-18).
    max_peers_per_host: "peers" = 5_000 in 1 ..= 10_000_000;
    /// A peer idle for less than this is never forgotten.
    ///
    /// Kernel: `peer_idle_secs_min` 10.
    peer_idle_secs_min: "s" = 10 in 0 ..= 86_400;
    /// A peer idle for longer than this is forgotten.
    ///
    /// Kernel: `peer_idle_secs_max` 120.
    peer_idle_secs_max: "s" = 120 in 1 ..= 86_400;
    /// Sessions of forgotten clients that are kept (at most 512 bytes each, half of them of one
    /// host), so that their next request is recognised without a round trip.
    ///
    /// Chosen by us; see `docs/spec/at-most-once.md`.
    max_dormant_sessions: "sessions" = 100_000 in 0 ..= 100_000_000;
    /// Answers per millisecond to senders that have shown no session: session challenges, refusals,
    /// RPC_UNKNOWN. Beyond, an endpoint that is behind with reading drops the packet, and its
    /// sender tries again. A host (an IPv4 address, or a /64 of IPv6) gets at most a quarter of
    /// them. An endpoint that keeps up answers everybody.
    ///
    /// Chosen by us: they take a fifth of a core where an answer takes 10 us (BAD-10).
    unproven_answers_per_ms: "answers" = 20 in 1 ..= 1_000_000;
    /// RPCs that one call of `handle_timeout` ends when many must end at once.
    ///
    /// Kernel: `reap_limit` 10 packets (HM `homa_utils.c` `homa_init`).
    reap_limit: "RPCs" = 64 in 1 ..= 65_536;
}

impl Config {
    /// Returns a builder that starts with the defaults.
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder::default()
    }

    /// Returns a builder that starts with this configuration.
    pub fn to_builder(&self) -> ConfigBuilder {
        self.0.clone()
    }

    /// Returns the wire profile.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.0.profile
    }

    /// Returns the cutoffs for traffic to this host until they have been measured: for each of
    /// eight levels, the longest message whose unscheduled packets use it. 0 leaves a level to
    /// scheduled packets; the lowest level that is not 0 has no limit in effect. With fewer levels
    /// in use, the highest entries count.
    ///
    /// Kernel: `unsched_cutoffs` (HM `homa_utils.c` `homa_init`).
    #[must_use]
    pub const fn unsched_cutoffs(&self) -> &[u32; PRIORITIES] {
        &self.0.unsched_cutoffs
    }

    /// Returns the value of the top three bits of TOS or traffic class for each level.
    ///
    /// Kernel: `priority_map`, the identity by default (HM `homa_utils.c` `homa_init`).
    #[must_use]
    pub const fn priority_map(&self) -> &[u8; PRIORITIES] {
        &self.0.priority_map
    }

    /// Returns the highest priority level, used for control packets and for requested
    /// retransmissions (HM `homa_incoming.c` `homa_request_retrans`, `homa_outgoing.c`
    /// `__homa_xmit_control`, PRIO-5).
    #[must_use]
    pub const fn highest_priority(&self) -> u8 {
        self.0.num_priorities as u8 - 1
    }

    /// Longest message that counts as short, in bytes: a peer may send it without a GRANT.
    pub(crate) fn unscheduled_window(&self) -> u64 {
        self.unsched_bytes().max(self.unsched_bytes_max())
    }

    /// Returns whether senders report their backlog of granted bytes, and receivers use it
    /// (GRANT-15).
    pub(crate) fn informs(&self) -> bool {
        self.informed_incoming() > 0 && self.profile() == Profile::Udp
    }

    /// Whether the network has one level, so that this endpoint learns its limit of bytes in flight
    /// (PRIO-16, GRANT-20).
    pub(crate) fn learns_one_level(&self) -> bool {
        self.num_priorities() == 1 && self.informs() && self.cutoffs_interval_usecs() > 0
    }

    /// Returns each integer parameter and its value.
    pub fn values(&self) -> impl Iterator<Item = (&'static Parameter, u64)> {
        self.0.values()
    }
}

impl ConfigBuilder {
    /// Sets the wire profile. The kernel profile also lowers `max_message` to the kernel's limit.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        if profile == Profile::Kernel {
            self.max_message = self.max_message.min(KERNEL_MAX_MESSAGE);
        }
        self
    }

    /// Sets [`Config::unsched_cutoffs`].
    pub const fn unsched_cutoffs(mut self, cutoffs: [u32; PRIORITIES]) -> Self {
        self.unsched_cutoffs = cutoffs;
        self
    }

    /// Sets [`Config::priority_map`].
    pub const fn priority_map(mut self, map: [u8; PRIORITIES]) -> Self {
        self.priority_map = map;
        self
    }

    /// Checks all values.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] that names the parameter, its value and the permitted range.
    pub fn build(mut self) -> Result<Config, ConfigError> {
        if self.profile == Profile::Kernel && self.max_message == Self::default().max_message {
            // The default was not chosen explicitly: a file may name the profile alone.
            self.max_message = KERNEL_MAX_MESSAGE;
        }
        for (parameter, value) in self.values() {
            if value < parameter.min || value > parameter.max {
                return Err(ConfigError::OutOfRange { parameter, value });
            }
        }
        self.check_relations()?;
        if let Some(value) =
            self.priority_map.iter().find(|value| usize::from(**value) >= PRIORITIES)
        {
            return Err(ConfigError::PriorityMap(*value));
        }
        let scheduled = self.unsched_cutoffs.iter().take_while(|cutoff| **cutoff == 0).count();
        let unscheduled = &self.unsched_cutoffs[scheduled..];
        if unscheduled.is_empty()
            || unscheduled.windows(2).any(|pair| pair[0] < pair[1] || pair[1] == 0)
        {
            return Err(ConfigError::Cutoffs);
        }
        Ok(Config(self))
    }

    /// Checks limits that only make sense together.
    fn check_relations(&self) -> Result<(), ConfigError> {
        let of = |name| self.values().find(|(parameter, _)| parameter.name == name);
        let value = |name: &'static str| (name, of(name).expect("a parameter").1);
        let kernel = ("the kernel's limit", KERNEL_MAX_MESSAGE);
        let most = (self.profile == Profile::Kernel).then_some((value("max_message"), kernel));
        let pairs = AT_MOST.iter().map(|(small, large)| (value(small), value(large)));
        let wrong = most.into_iter().chain(pairs).find(|(small, large)| small.1 > large.1);
        wrong.map_or(Ok(()), |(small, large)| Err(ConfigError::Relation { small, large }))
    }
}

/// Pairs of parameters in which the first must not exceed the second.
const AT_MOST: [(&str, &str); 7] = [
    ("max_message", "max_send_bytes_per_peer"),
    ("max_message", "max_receive_bytes_per_peer"),
    ("max_send_bytes_per_peer", "max_send_bytes"),
    ("max_receive_bytes_per_peer", "max_receive_bytes"),
    ("unsched_bytes_min", "unsched_bytes_max"),
    ("resend_usecs", "timeout_usecs"),
    ("peer_idle_secs_min", "peer_idle_secs_max"),
];

/// Longest message that the kernel module accepts. Source: docs/reference/homa-module.md, *Packet
/// types*.
pub(crate) const KERNEL_MAX_MESSAGE: u64 = 1_000_000;

impl TryFrom<ConfigBuilder> for Config {
    type Error = ConfigError;

    fn try_from(builder: ConfigBuilder) -> Result<Self, ConfigError> {
        builder.build()
    }
}

impl From<Config> for ConfigBuilder {
    fn from(config: Config) -> Self {
        config.0
    }
}

/// The name of a profile in a file.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(remote = "Profile", rename_all = "lowercase")]
enum ProfileName {
    Udp,
    Kernel,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Config::builder().build(), Ok(Config::default()));
        assert!(Config::builder().profile(Profile::Kernel).build().is_ok());
        for parameter in PARAMETERS {
            assert!((parameter.min..=parameter.max).contains(&parameter.default), "{parameter:?}");
        }
    }

    #[test]
    fn both_ends_of_every_range_are_checked_and_named() {
        for parameter in PARAMETERS {
            for value in [parameter.min.checked_sub(1), parameter.max.checked_add(1)] {
                let Some(value) = value else { continue };
                let error = Config::builder().set(parameter.name, value).unwrap().build();
                assert_eq!(error, Err(ConfigError::OutOfRange { parameter, value }));
                assert!(error.unwrap_err().to_string().contains(parameter.name));
            }
        }
    }

    #[test]
    fn values_that_do_not_fit_together_are_refused() {
        let error = |builder: ConfigBuilder| builder.build().unwrap_err().to_string();
        let text = error(Config::builder().max_message(200_000_000));
        assert!(text.contains("max_message") && text.contains("max_send_bytes_per_peer"), "{text}");
        let text = error(Config::builder().profile(Profile::Kernel).max_message(1_000_001));
        assert!(text.contains("kernel"), "{text}");
        let text = error(Config::builder().priority_map([0, 1, 2, 3, 4, 5, 6, 8]));
        assert!(text.contains("priority_map"), "{text}");
        let text = error(Config::builder().unsched_cutoffs([0, 0, 0, 0, 100, 200, 300, 400]));
        assert!(text.contains("unsched_cutoffs"), "{text}");
        let text = error(Config::builder().set("no_such", 1).unwrap_err_or_default());
        assert!(text.contains("resend_usecs"), "{text}");
    }

    trait OrInvalid {
        fn unwrap_err_or_default(self) -> ConfigBuilder;
    }

    impl OrInvalid for Result<ConfigBuilder, ConfigError> {
        /// An unknown name is an error of its own; returns another invalid value instead.
        fn unwrap_err_or_default(self) -> ConfigBuilder {
            assert!(matches!(self, Err(ConfigError::UnknownParameter(_))));
            Config::builder().resend_usecs(20_000).timeout_usecs(10_000)
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_file_sets_some_values_and_is_checked() {
        let config: Config = toml::from_str("profile = \"kernel\"\nmax_message = 1000").unwrap();
        assert_eq!((config.profile(), config.max_message()), (Profile::Kernel, 1000));
        let config: Config = toml::from_str("profile = \"kernel\"").unwrap();
        assert_eq!(config.max_message(), KERNEL_MAX_MESSAGE, "the profile alone is enough");
        let written = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<Config>(&written).unwrap(), config);

        let error = toml::from_str::<Config>("max_overcommit = 0").unwrap_err().to_string();
        assert!(error.contains("max_overcommit"), "{error}");
        let error = toml::from_str::<Config>("overcommit = 1").unwrap_err().to_string();
        assert!(error.contains("overcommit"), "{error}");
    }
}
