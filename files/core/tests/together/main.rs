//! Clients and a server together: after an operation of one client, the next operations of the
//! others see its effect.

mod attributes;
mod calls;
mod coherence;
mod contention;
mod failures;
mod orphans;
mod relock;
mod renames;
mod returns;
mod sequences;
mod world;
