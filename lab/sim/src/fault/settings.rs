//! Probabilities of faults of packets.

use apus_workload::time::Nanos;

/// Probabilities in packets of 10,000. The default, all 0, has no faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Packets that are lost independently.
    pub loss: u32,
    /// Packets that start a burst of losses. Bursts of different hosts' links are independent
    /// (model of Gilbert and Elliott).
    pub burst: u32,
    /// Mean number of packets in a burst. All of them are lost.
    pub burst_length: u32,
    /// Packets that are delivered twice.
    pub duplication: u32,
    /// Packets that are delayed by up to [`Settings::reordered_by`], so that others overtake them.
    pub reordering: u32,
    /// See [`Settings::reordering`].
    pub reordered_by: Nanos,
    /// Packets that start a delay spike: they, and all other packets to the same host, are delayed
    /// for up to [`Settings::spike_of`].
    pub spike: u32,
    /// See [`Settings::spike`].
    pub spike_of: Nanos,
    /// Packets that are duplicated, with the copy delivered much later, up to
    /// [`Settings::late_by`], when their state may have been discarded.
    pub very_late: u32,
    /// See [`Settings::very_late`].
    pub late_by: Nanos,
    /// Packets with a flipped bit.
    pub corruption: u32,
    /// Handling of corrupted packets.
    pub corrupted: Corruption,
}

/// Handling of a corrupted packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Corruption {
    /// A checksum, as in Ethernet and UDP, detects it: the packet is dropped.
    #[default]
    Caught,
    /// It is delivered.
    Unnoticed,
}

impl Settings {
    /// Returns whether all faults are disabled.
    #[must_use]
    pub const fn are_none(&self) -> bool {
        let Self { loss, burst, duplication, reordering, spike, very_late, corruption, .. } = self;
        *loss == 0
            && *burst == 0
            && *duplication == 0
            && *reordering == 0
            && *spike == 0
            && *very_late == 0
            && *corruption == 0
    }
}
