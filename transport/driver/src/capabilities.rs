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
    /// Microseconds that the system polls the interface while no packet arrives; 0 if busy polling
    /// was not requested or is not supported.
    pub busy_poll_usecs: u32,
    /// Bytes that the system queues between two calls of `receive`, including its own structures.
    /// These can be as large as full packets, and many times larger than small packets.
    pub receive_buffer: usize,
    /// Rate of the link in Mbit/s, if the driver knows it.
    pub link_mbps: Option<u32>,
    /// Number of additional source ports that marked packets leave from in turn; 0 if there are
    /// none, or if marked packets of peers are not attributed to the peers' own ports.
    pub spray_ports: usize,
}
