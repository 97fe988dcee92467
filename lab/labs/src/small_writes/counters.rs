//! Counters of the kernel.
//!
//! They count the delayed ACKs that its timer has sent, and segments of TCP, of all programs of a network namespace
//! together. In a namespace of one program they are that program's.

use std::fs;

use serde::{Deserialize, Serialize};

/// Counts since the namespace was made, or differences of such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    /// ACKs that were sent because the timer of a delayed ACK ran out (`TcpExt: DelayedACKs`).
    pub(super) delayed_acks: u64,
    /// Segments that TCP sent (`Tcp: OutSegs`).
    pub(super) segments: u64,
}

impl Counters {
    /// Returns the current counters; `None` if the kernel does not say.
    pub(super) fn now() -> Option<Self> {
        let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).ok();
        Self::parse(&read("netstat")?, &read("snmp")?)
    }

    /// Returns what has been counted since then.
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

/// Returns a value in one of these tables: a line of names, and one of values behind it. Source: proc_pid_net(5).
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
    fn the_kernels_tables_are_understood() {
        let netstat = "TcpExt: SyncookiesSent DelayedACKs DelayedACKLost\nTcpExt: 1 20 3\nIpExt: a\nIpExt: 5\n";
        let snmp = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm InSegs OutSegs\nTcp: 1 7 8\n";
        let counters = Counters::parse(netstat, snmp).unwrap();
        assert_eq!(counters, Counters { delayed_acks: 20, segments: 8 });
        assert_eq!(counters.since(Counters { delayed_acks: 5, segments: 9 }).delayed_acks, 15);
        assert_eq!(Counters::parse("", snmp), None);
    }

    #[test]
    fn this_kernel_says() {
        if Counters::now().is_none() {
            eprintln!("SKIPPED: this kernel does not say what TCP has done");
        }
    }
}
