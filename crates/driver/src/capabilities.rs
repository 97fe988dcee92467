//! What did the driver find out about the system?

/// Properties of an open driver, found out at run time; a missing one costs speed, never
/// correctness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Most packets that one system call sends to one peer (segmentation offload); 1 without it.
    pub segments_per_send: usize,
    /// Whether the system may hand several packets of one peer over as one (receive offload).
    pub receive_offload: bool,
    /// Whether each packet can carry a priority of its own.
    pub priorities: bool,
    /// Whether congestion marks of arriving packets are seen.
    pub ecn: bool,
    /// Whether "port unreachable" and its kin become [`crate::NetworkReport`]s.
    pub reports: bool,
    /// Microseconds for which the system polls the interface when nothing has arrived; 0 if it was not
    /// asked to, or does not.
    pub busy_poll_usecs: u32,
    /// Bytes that the system queues for us between two calls of `receive`, its own structures included:
    /// these may be as large as the packets, and many times as large as small ones.
    pub receive_buffer: usize,
    /// Rate of the link in Mbit/s, if the driver knows it.
    pub link_mbps: Option<u32>,
}
