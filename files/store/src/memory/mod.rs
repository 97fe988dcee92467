//! A store in memory that loses at a crash the state that it has not promised to keep: the
//! counterpart of the directory store for tests and the simulator.
//!
//! - **MEMSTORE-1** A record is applied as a whole or not at all, and with the result that Linux
//!   has for it on ext4.
//! - **MEMSTORE-2** [`MemoryStore::crash`] keeps all committed batches and a prefix of the appended
//!   batches. Numbers that were handed out are not reused.
//! - **MEMSTORE-3** Two stores that received the same calls are equal: no clock, no randomness and
//!   no hashing order is involved.
//!
//! The clock of ctimes is the counter of changes, in nanoseconds.

mod contents;
mod names;
mod node;
mod store;
mod tree;

pub use store::MemoryStore;
