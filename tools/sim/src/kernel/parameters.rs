//! Default parameters of the module.

/// Bytes of a message that leave without grants (row U-1).
pub const UNSCHEDULED: u32 = 40_000;
/// Length of the longest message (row P-8).
pub const LONGEST: u32 = 1_000_000;
/// Initial version of the cutoffs of every host.
pub(super) const CUTOFF_VERSION: u16 = 1;
/// The cutoffs (row U-2).
pub(super) const CUTOFFS: [u32; 8] = [0, 0, 0, 0, 1_000_000, 15_000, 2_800, 200];
/// Port of the client socket (row L-4).
pub const CLIENT_PORT: u16 = 0x8000;
/// The highest level.
pub(super) const HIGHEST: u8 = 7;
