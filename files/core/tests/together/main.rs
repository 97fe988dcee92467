//! Clients and a server together: what one client does, the others see at their next operation.

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
