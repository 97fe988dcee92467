//! Counters of the kernel.
//!
//! They count TCP segments, and delayed ACKs sent by the timer, for all programs of a network
//! namespace together. In a namespace with one program they are that program's.

use std::fs;

use serde::{Deserialize, Serialize};

/// Counts since the creation of the namespace, or their differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    /// ACKs sent because the timer of a delayed ACK expired (`TcpExt: DelayedACKs`).
    pub(super) delayed_acks: u64,
    /// Segments sent by TCP (`Tcp: OutSegs`).
    pub(super) segments: u64,
}

impl Counters {
    /// Returns the current counters; `None` if the kernel does not provide them.
    pub(super) fn now() -> Option<Self> {
        let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).ok();
        Self::parse(&read("netstat")?, &read("snmp")?)
    }

    /// Returns the counts since `before`.
    pub(super) const fn since(self, before: Self) -> Self {
        Self {
            delayed_acks: self.delayed_acks.saturating_sub(before.delayed_acks),
            segments: self.segments.saturating_sub(before.segments),
        }
    }

    fn parse(netstat: &str, snmp: &str) -> Option<Self> {
        Some(Self {
            delayed_acks: find(netstat, "TcpExt:", "DelayedACKs")?,
            segments: find(snmp, "Tcp:", "OutSegs")?,
        })
    }
}

/// Returns a value from one of these tables: a line of names, followed by a line of values. Source:
/// proc_pid_net(5).
fn find(table: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|each| each == name)?;
    values.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_parsed() {
        let netstat = "TcpExt: SyncookiesSent DelayedACKs DelayedACKLost\nTcpExt: 1 20 3\nIpExt: a\nIpExt: 5\n";
        let snmp = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm InSegs OutSegs\nTcp: 1 7 8\n";
        let counters = Counters::parse(netstat, snmp).unwrap();
        assert_eq!(counters, Counters { delayed_acks: 20, segments: 8 });
        assert_eq!(counters.since(Counters { delayed_acks: 5, segments: 9 }).delayed_acks, 15);
        assert_eq!(Counters::parse("", snmp), None);
    }

    #[test]
    fn this_kernel_counts() {
        if Counters::now().is_none() {
            eprintln!("SKIPPED: this kernel has no counters of TCP");
        }
    }
}
