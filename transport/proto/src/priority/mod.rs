//! Priorities: which level of the network a packet uses.
//!
//! Unscheduled packets: by the length of their message, with cutoffs that the *receiver* chooses so
//! that each level carries the same amount ([`OwnCutoffs`], from the sizes counted by [`Sampler`]).
//! Scheduled packets: by the rank of their message among the active ones ([`scheduled_level`]).
//! Unscheduled levels lie above the scheduled ones. With the cutoffs a receiver states its [`Room`]
//! for unscheduled bytes.

mod announce;
mod lengths_elsewhere;
mod room;
mod sampler;
mod scheduled;
mod unscheduled;

pub(crate) use announce::announcement;
pub(crate) use room::Room;
pub(crate) use sampler::Sampler;
pub(crate) use scheduled::{oldest_level, scheduled_level};
pub(crate) use unscheduled::OwnCutoffs;
