//! Rings: records travel from one process to the other.
//!
//! A ring has one writer and one reader, in different processes. Both count bytes from 0 without
//! end; the low bits are the offset in the ring.
//!
//! ```text
//!          head (shared: the reader's word)          position (the writer's own)
//!            ▼                                         ▼
//!   ─────────┬──────────┬──────────┬───────────────────┬──────────────
//!    free    │ record   │ record   │ record            │ 0   free
//!   ─────────┴──────────┴──────────┴───────────────────┴──────────────
//! ```
//!
//! There is no shared tail. The reader polls the first word of the next record, which is 0 until
//! the record is visible: a message crosses between two caches once, and not a second time for an
//! index.
//!
//! # From cache to cache
//!
//! The reader polls the first cache line of the next record. If the writer holds that line before
//! it is done with it, the reader takes it back, and the line travels twice more. Therefore
//!
//! - all other lines are written before the first: payload beyond the first line, and the 0 behind
//!   the record;
//! - those lines are in the writer's cache by then: two lines behind each record are written as
//!   soon as the record is visible, and further lines, up to the length of the last record, are
//!   prefetched while the record is assembled;
//! - payload, id, total and first word of the first line are stored together;
//! - the lines of a record that is sent alone are then demoted to a cache where the reader finds
//!   them sooner. This costs the writer time, so in a batch only the first record is demoted.
//!
//! lab/log, 2026-11-21, has the gain of each step. None of them is needed for correctness.
//!
//! # Invariants
//!
//! - **RING-1** A record becomes visible with the store of its first word (release), after all of
//!   its other bytes and after a 0 at the start of the next record; the reader loads the word with
//!   acquire. Before that store no part of the record is visible: the writer may be killed at any
//!   instruction.
//! - **RING-2** A record never crosses the end of the ring; the rest is padded. The padding becomes
//!   visible last, and with it the record at the start of the ring.
//! - **RING-3** The reader publishes that it has read a record (`head`, release) after it has
//!   copied the needed bytes. The writer reuses the bytes only after it has loaded that position
//!   (acquire).
//! - **RING-4** The reader uses no number that it has not checked, and reads no word twice: first
//!   words are checked against the ring ([`Consumer::peek`]), all other fields where messages are
//!   assembled (`pair::inbox`). The writer checks `head` ([`Producer::reserve`]). Whatever a peer
//!   writes results in a wrong payload, in a violation, or in no record.
//! - **RING-5** A record takes at most half of its ring, so an empty ring has room for any record.

mod consumer;
mod producer;
pub(crate) mod record;

pub(crate) use consumer::{Consumer, RingRecord};
pub(crate) use producer::{Producer, PushError};

#[cfg(all(test, not(apus_local_loom)))]
mod tests;
