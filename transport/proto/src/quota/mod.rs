//! Quotas: how every budget of the endpoint divides its room.
//!
//! Receiving, sending, sessions, finished ids and waiting requests are budgets of different units,
//! and untrusted hosts can fill each of them. All follow the same four rules (CAP-21), and this module is
//! their only implementation:
//!
//! 1. *A limit per host*: the ports of one host together get a part of the room ([`Quota`]).
//! 2. *A part for the short*: long messages leave an eighth of the room, and of each host's part,
//!    to short ones ([`Size`]).
//! 3. *An end for what makes no progress*: while others wait for room ([`Shortage`]), a message
//!    without progress ends, whatever its peer says ([`Progress`]).
//! 4. *The largest host first*: room is taken from the host that has most ([`Ranking`]).
//!
//! `docs/spec/caps.md` lists the budgets with their limits.

mod limits;
mod progress;
mod ranking;
mod shortage;

pub(crate) use limits::{Excess, Quota, Size};
pub(crate) use progress::Progress;
pub(crate) use ranking::Ranking;
pub(crate) use shortage::Shortage;
