//! Link rates and switch priorities, as `tc` commands.
//!
//! A port of the switch is an HTB class with the link's rate. It lends to eight child classes with
//! negligible rates, so `prio` alone selects the class that sends: strict priority. Each child
//! class has a separate queue.
//!
//! The level is the IP precedence: the upper three bits of the traffic class, which are also the
//! upper three of the DSCP. Level 7 is the highest. apus writes its levels there (`class` of
//! `apus-socket`).
//!
//! # The buffer
//!
//! A real switch shares the buffer of a port among its queues. HTB cannot, so each of the eight
//! queues may be as long as the buffer. A transport that uses one level, as TCP does, can queue
//! exactly one buffer. A transport that uses several levels may queue more in total;
//! [`super::PortCounters::backlog`] shows whether it does.

use super::error::FabricError;
use super::layout::{INTERFACE, Layout};
use super::spec::{Spec, Uplink};
use super::tool::Tool;
use super::wiring::{every_host, line};
use apus_measure::error::Error;

/// Priority levels in the switch; the highest is sent first.
pub const LEVELS: u8 = 8;

/// Bytes of a frame on the wire that Linux does not count: preamble and start 8, checksum 4, gap 12
/// (IEEE 802.3).
const OVERHEAD: u32 = 24;

/// Bytes of the shortest frame on the wire: 64, preamble and gap.
const SHORTEST: u32 = 84;

/// Minimum bucket size, as link time. Chosen by us: timers are not more precise than this, and at
/// 10 Gbit/s a single frame takes a microsecond.
const SLACK_MICROSECONDS: u64 = 10;

/// Frames that wait in a host: Linux's default for an interface (`txqueuelen`).
const HOST_QUEUE: u32 = 1_000;

/// Shapes every port of the switch, and the hosts' uplinks if configured.
pub(super) fn shape(layout: &Layout) -> Result<(), Error> {
    let ports: String =
        (0..layout.hosts.len()).map(|node| port(&layout.spec, &Layout::port(node))).collect();
    layout.in_switch(Tool::Tc, &["-batch", "-"], &ports).map_err(explain)?;
    let uplink = uplink(&layout.spec);
    if uplink.is_empty() {
        return Ok(());
    }
    every_host(layout, |node| {
        let done = layout.in_host(node, Tool::Tc, &["-batch", "-"], &uplink);
        done.map(drop).map_err(explain)
    })
}

/// Returns the number of a level's HTB class.
fn class(level: u8) -> u8 {
    10 + level
}

/// Returns the level of a queue from the handle assigned by [`port`].
pub(super) fn level(handle: &str) -> Option<u8> {
    let number: u8 = handle.strip_suffix(':')?.parse().ok()?;
    number.checked_sub(class(0)).filter(|level| *level < LEVELS)
}

/// Returns the `tc` commands for a port of the switch.
fn port(spec: &Spec, port: &str) -> String {
    let (rate, buffer) = (spec.bits_per_second(), spec.buffer);
    let frame = spec.frame();
    let wire = format!("overhead {OVERHEAD} mpu {SHORTEST}");
    // One frame is enough to compensate for a timer that is late by less than a frame's time.
    let burst = bucket(spec, 1);
    let mut lines = String::new();
    line(&mut lines, format_args!("qdisc add dev {port} root handle 1: htb default {}", class(0)));
    line(
        &mut lines,
        format_args!(
            "class add dev {port} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit \
             burst {burst} cburst {burst} quantum {frame} {wire}"
        ),
    );
    for level in 0..LEVELS {
        let (class, prio) = (class(level), LEVELS - 1 - level);
        // A class first sends at its assured rate, regardless of `prio`. This rate and its bucket
        // are therefore negligible: one frame per minute (HTB drops older debts).
        line(
            &mut lines,
            format_args!(
                "class add dev {port} parent 1:1 classid 1:{class} htb prio {prio} rate 100bit \
                 ceil {rate}bit burst 1 cburst {burst} quantum {frame} {wire}"
            ),
        );
        line(
            &mut lines,
            format_args!(
                "qdisc add dev {port} parent 1:{class} handle {class}: bfifo limit {buffer}"
            ),
        );
    }
    // The first four bytes of an IPv4 packet: version 4 bits, IHL 4, traffic class 8, length 16; of
    // IPv6: version 4, traffic class 8, flow label 20. All other packets, level 0 included, use
    // HTB's default class.
    for level in (1..LEVELS).rev() {
        let class = class(level);
        for (protocol, prio, shift) in [("ip", 1, 21), ("ipv6", 2, 25)] {
            let (value, mask) = (u32::from(level) << shift, 7u32 << shift);
            line(
                &mut lines,
                format_args!(
                    "filter add dev {port} parent 1: protocol {protocol} prio {prio} u32 \
                     match u32 0x{value:08x} 0x{mask:08x} at 0 flowid 1:{class}"
                ),
            );
        }
    }
    lines
}

/// Returns the `tc` commands for a host's own link.
///
/// A token bucket filter splits long UDP sends into packets *before* it releases them one by one.
/// HTB does not.
fn uplink(spec: &Spec) -> String {
    let mut lines = String::new();
    let shaped = spec.uplink == Uplink::Shaped;
    if shaped {
        let (rate, limit) = (spec.bits_per_second(), HOST_QUEUE * (spec.frame() + OVERHEAD));
        // Unlike HTB, TBF releases a frame only when the bucket covers it in full: two frames
        // compensate for a timer that is late by less than one frame's time.
        let burst = bucket(spec, 2);
        line(
            &mut lines,
            format_args!(
                "qdisc add dev {INTERFACE} root handle 1: tbf rate {rate}bit burst {burst} \
                 limit {limit} overhead {OVERHEAD} mpu {SHORTEST}"
            ),
        );
    }
    if !spec.delay.is_zero() {
        let parent = if shaped { "parent 1:1" } else { "root" };
        let (micros, limit) = (spec.delay.as_secs_f64() * 1e6, packets_under_way(spec));
        line(
            &mut lines,
            format_args!(
                "qdisc add dev {INTERFACE} {parent} handle 2: netem delay {micros:.3}us limit {limit}"
            ),
        );
    }
    lines
}

/// Returns the size of a token bucket in bytes: `frames` frames or the link's capacity in
/// [`SLACK_MICROSECONDS`], whichever is larger, plus a margin because the kernel rounds down.
fn bucket(spec: &Spec, frames: u32) -> u64 {
    let frames = u64::from(frames * (spec.frame() + OVERHEAD));
    frames.max(spec.bits_per_second() * SLACK_MICROSECONDS / 8_000_000) + 64
}

/// Returns the capacity of a delay queue in packets: shortest packets at link rate for the delay,
/// plus the host's queue.
fn packets_under_way(spec: &Spec) -> u64 {
    let bytes = spec.bits_per_second() as f64 / 8.0 * spec.delay.as_secs_f64();
    (bytes / f64::from(SHORTEST)) as u64 + u64::from(HOST_QUEUE)
}

/// Replaces a failure of `tc` by the missing queueing discipline, if that is the reason.
fn explain(error: Error) -> Error {
    let Some(FabricError::Command { said, .. }) = FabricError::of(&error) else { return error };
    // iproute2 repeats the kernel's message; older versions use a different wording.
    if !said.contains("qdisc kind is unknown") && !said.contains("No such file or directory") {
        return error;
    }
    let known = [
        ("netem", "CONFIG_NET_SCH_NETEM", NO_OTHER_DELAY),
        ("htb", "CONFIG_NET_SCH_HTB", ""),
        ("tbf", "CONFIG_NET_SCH_TBF", "; `--uplink free` does without"),
    ];
    let missing = known.into_iter().find(|(qdisc, ..)| said.contains(&format!(" {qdisc} ")));
    match missing {
        Some((qdisc, option, remark)) => FabricError::NoQdisc { qdisc, option, remark }.into(),
        None => error,
    }
}

/// Why no other mechanism delays packets: lab ADR 1.
const NO_OTHER_DELAY: &str = ". Only the kernel can delay packets without taking time from what is \
     measured, so there is no other way; leave --delay out";

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_highest_level_is_the_lowest_prio_and_takes_its_packets_by_the_class() {
        let text = port(&Spec::default(), "p1");
        assert!(
            text.contains("classid 1:17 htb prio 0 ") && text.contains("classid 1:10 htb prio 7 ")
        );
        assert!(
            text.contains(
                "protocol ip prio 1 u32 match u32 0x00e00000 0x00e00000 at 0 flowid 1:17"
            )
        );
        assert!(
            text.contains(
                "protocol ipv6 prio 2 u32 match u32 0x02000000 0x0e000000 at 0 flowid 1:11"
            )
        );
        // A class, a queue and two filters for each level; level 0 needs no filter.
        assert_eq!(text.lines().count(), 2 + 8 * 2 + 7 * 2);
    }

    #[test]
    fn queues_are_identified_by_their_handles() {
        assert_eq!((level("10:"), level("17:")), (Some(0), Some(7)));
        for other in ["1:", "18:", "9:", "17", "", "x:"] {
            assert_eq!(level(other), None, "{other}");
        }
    }

    #[test]
    fn an_uplink_has_the_rate_and_delay_of_its_settings() {
        let delay = Duration::from_nanos(10_500);
        let spec = |uplink, delay| Spec { uplink, delay, ..Spec::default() };
        let shaped = uplink(&spec(Uplink::Shaped, Duration::ZERO));
        assert!(shaped.contains("root handle 1: tbf rate 200000000bit burst 3140 limit 1538000 "));
        assert_eq!(uplink(&spec(Uplink::Free, Duration::ZERO)), "");
        let delayed = uplink(&spec(Uplink::Shaped, delay));
        assert!(
            delayed.contains("parent 1:1 handle 2: netem delay 10.500us limit 1003"),
            "{delayed}"
        );
        assert!(uplink(&spec(Uplink::Free, delay)).contains("root handle 2: netem"));
    }

    #[test]
    fn fast_links_have_larger_buckets_than_a_frame() {
        let link = apus_workload::Rate::from_mbps(10_000).unwrap();
        assert_eq!(bucket(&Spec { link, ..Spec::default() }, 1), 12_500 + 64);
    }

    #[test]
    fn a_missing_discipline_is_distinguished_from_other_failures() {
        let refused = |said: &str| {
            let (place, command) = ("switch".to_owned(), "tc -batch -".to_owned());
            explain(FabricError::Command { place, command, said: said.to_owned() }.into())
        };
        let unknown = "Error: Specified qdisc kind is unknown.; Command failed -:1";
        let said = refused(&format!("{unknown} (qdisc add dev p1 root handle 1: htb default 10)"));
        assert!(
            matches!(FabricError::of(&said), Some(FabricError::NoQdisc { qdisc: "htb", .. })),
            "{said}"
        );
        let said =
            refused(&format!("{unknown} (qdisc add dev fab0 root handle 2: netem delay 1us)"));
        assert!(said.to_string().contains("leave --delay out"), "{said}");
        let said = refused("RTNETLINK answers: File exists (qdisc add dev p1 root htb default 10)");
        assert!(matches!(FabricError::of(&said), Some(FabricError::Command { .. })), "{said}");
    }
}
