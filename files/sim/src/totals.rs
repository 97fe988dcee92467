//! Counts of a run.

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Operations that returned.
    pub operations: u64,
    /// Operations that a kernel's cache served.
    pub hits: u64,
    /// Requests that the server received.
    pub requests: u64,
    /// Callbacks that clients received.
    pub callbacks: u64,
    /// Messages that did not arrive.
    pub lost: u64,
    /// Crashes, of clients and of the server.
    pub crashes: u64,
    /// Sessions that ended although their client lived.
    pub fenced: u64,
    /// Operations that a signal ended.
    pub interrupted: u64,
    /// Histories of objects whose search was given up.
    pub undecided: u64,
    /// Simulated time, in milliseconds.
    pub milliseconds: u64,
    /// Hash of all effects of clients and servers with their times. Equal digests mean equal runs:
    /// a change of the protocol cores that claims to keep their behaviour keeps the digests of all
    /// seeds.
    pub digest: u64,
}
