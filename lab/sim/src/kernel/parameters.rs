//! Default parameters of the module.

/// Bytes of a message that leave without grants (HM `homa_utils.c` `homa_init`).
pub const UNSCHEDULED: u32 = 40_000;
/// Length of the longest message (HM `homa_incoming.c` `homa_message_in_init`).
pub const LONGEST: u32 = 1_000_000;
/// Initial version of the cutoffs of every host.
pub(super) const CUTOFF_VERSION: u16 = 1;
/// The cutoffs (HM `homa_utils.c` `homa_init`).
pub(super) const CUTOFFS: [u32; 8] = [0, 0, 0, 0, 1_000_000, 15_000, 2_800, 200];
/// Port of the client socket (HM `homa.h` `HOMA_MIN_DEFAULT_PORT`).
pub const CLIENT_PORT: u16 = 0x8000;
/// The highest level.
pub(super) const HIGHEST: u8 = 7;
