//! Checkers: each verifies one promise of the file service on a recorded history.
//!
//! | promise | checker |
//! |---|---|
//! | every operation is linearisable between mounts | [`names`], [`mod@file`] over [`linearise`] |
//! | a crashed mount leaves a prefix of its operations, with all synced ones | [`prefix`], and [`linearise`] |
//! | appends are neither lost nor torn | [`append`] |
//! | locks exclude | [`lock`] |
//! | every operation ends | [`ending`] |

pub mod append;
pub mod ending;
pub mod file;
pub mod linearise;
pub mod lock;
pub mod names;
pub mod prefix;
