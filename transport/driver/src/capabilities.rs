//! Capabilities: properties of an open driver.

/// Properties of an open driver, detected at run time. A missing capability costs speed, never
/// correctness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Maximum number of packets that one system call sends to one peer (segmentation offload); 1
    /// without offload.
    pub segments_per_send: usize,
    /// Whether the system may deliver several packets of one peer as one (receive offload).
    pub receive_offload: bool,
    /// Whether each packet can carry its own priority.
    pub priorities: bool,
    /// Whether congestion marks of received packets are visible.
    pub ecn: bool,
    /// Whether ICMP errors such as "port unreachable" become [`crate::NetworkReport`]s.
    pub reports: bool,
    /// Microseconds for which the system polls the interface when no packet has arrived; 0 if busy
    /// polling was not requested or is not supported.
    pub busy_poll_usecs: u32,
    /// Bytes that the system queues between two calls of `receive`, including its own structures,
    /// which may be as large as the packets, and many times as large as small packets.
    pub receive_buffer: usize,
    /// Rate of the link in Mbit/s, if the driver knows it.
    pub link_mbps: Option<u32>,
    /// Ports beside its own from which marked packets leave in turn; 0 if none do, and if marked packets of peers are not taken for
    /// those of the peers' own ports.
    pub spray_ports: usize,
}
