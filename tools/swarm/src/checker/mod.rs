//! Was a promise broken?
//!
//! A file for each promise. Checkers see what crosses the API and the wire, and reckon with what the
//! specification says; they ask the core nothing. Where they cannot know what the core knows, they suppose
//! what excuses it: what they report is wrong for certain, and what they let pass they may have missed.
//! Only [`memory`] reads the core's own gauges, at the end.

pub(crate) mod amplification;
pub(crate) mod content;
pub(crate) mod execution;
pub(crate) mod incoming;
pub(crate) mod liveness;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod permission;
mod ranges;
#[cfg(test)]
mod tests;

use super::directory::Directory;
use super::seen::Seen;
use super::violation::Violation;

/// Something that watches over a promise.
pub(crate) trait Checker {
    /// Looks at what was seen next.
    fn see(&mut self, directory: &Directory, seen: &Seen<'_>) -> Result<(), Violation>;
}
