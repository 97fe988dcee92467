//! Histograms in fixed buckets: counting a value takes two additions and no allocation.
//!
//! | | |
//! |---|---|
//! | [`DurationHistogram`] | durations, to an eighth, and in the coarse buckets of OpenTelemetry |
//! | [`SizeHistogram`] | lengths of messages, in the buckets of the Linux module for Homa |
//! | [`octaves`] | buckets of which eight are in each octave, for histograms of one's own |
//!
//! The protocol core of [apus](https://docs.rs/apus) counts with them, and its metrics show them.

mod durations;
pub mod octaves;
mod sizes;

pub use durations::{
    COARSE_BOUNDS, COARSE_BUCKETS, CoarseHistogram, DurationHistogram, coarse_bucket,
};
pub use sizes::SizeHistogram;
