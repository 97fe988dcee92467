//! How often does something go wrong with a packet?

use apus_workload::time::Nanos;

/// Probabilities, of 10,000 packets. All 0: nothing goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Packets that are lost, each by itself.
    pub loss: u32,
    /// Packets with which a burst of losses begins. Each host's link has its own bursts (Gilbert and
    /// Elliott's model).
    pub burst: u32,
    /// Mean number of packets in a burst; in it, all are lost.
    pub burst_length: u32,
    /// Packets that arrive twice.
    pub duplication: u32,
    /// Packets that are overtaken: they take up to [`Settings::reordered_by`] longer.
    pub reordering: u32,
    /// See [`Settings::reordering`].
    pub reordered_by: Nanos,
    /// Packets that are held up, together with everything else to the same host, for up to
    /// [`Settings::spike_of`].
    pub spike: u32,
    /// See [`Settings::spike`].
    pub spike_of: Nanos,
    /// Packets of which a copy arrives much later, up to [`Settings::late_by`], when everything may have been
    /// forgotten.
    pub very_late: u32,
    /// See [`Settings::very_late`].
    pub late_by: Nanos,
    /// Packets of which a bit turns over.
    pub corruption: u32,
    /// What becomes of those.
    pub corrupted: Corruption,
}

/// What becomes of a corrupted packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Corruption {
    /// A checksum catches it, as those of Ethernet and UDP do: it is dropped.
    #[default]
    Caught,
    /// It gets through.
    Unnoticed,
}

impl Settings {
    /// Whether nothing can go wrong.
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
