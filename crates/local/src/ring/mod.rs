//! How do records travel from one process to the other?
//!
//! A ring has one writer and one reader, in different processes. Both count bytes from 0 without end; where
//! that is in the ring, the low bits say.
//!
//! ```text
//!          head (shared: the reader's word)          position (the writer's own)
//!            ▼                                         ▼
//!   ─────────┬──────────┬──────────┬───────────────────┬──────────────
//!    free    │ record   │ record   │ record            │ 0   free
//!   ─────────┴──────────┴──────────┴───────────────────┴──────────────
//! ```
//!
//! There is no shared tail. The reader looks at the first word of the next record, which is 0 until that is
//! there: a message crosses between two caches once, and not once for an index and once more for itself.
//!
//! # From cache to cache
//!
//! The reader looks at the first line of the next record all the time. Whenever the writer has that line and is not
//! done with it, the reader takes it back, and it travels twice more. So
//!
//! - all other lines are written before it: payload beyond the first line, and the 0 behind the record;
//! - those are in the writer's cache by then: two lines behind each record are written as soon as it is visible, more of a
//!   record as long as the last one are fetched while it is put together;
//! - the first line's payload, id, total and first word are stored at once;
//! - the lines of a record that leaves alone are then pushed out to where the reader finds them sooner. That costs the
//!   writer time, so of a batch only the first record's are.
//!
//! docs/perf-log.md 2026-11-21 has what each of these is worth. None of it is needed for correctness.
//!
//! # Invariants
//!
//! - **R1** A record becomes visible with the store of its first word (release), after all of its bytes and
//!   after a 0 was stored where the next record will begin. Before that store nothing of it is: a writer may
//!   be killed anywhere. SYNC POINT 1: that store, and the reader's load of the word (acquire).
//! - **R2** A record never crosses the end of the ring; the rest is padded. The padding becomes visible
//!   last: with it the record at the ring's begin.
//! - **R3** The reader says that it has read a record (`head`, release) after it has copied all that it wants
//!   of it. The writer takes bytes again only after it has seen that (acquire). SYNC POINT 2.
//! - **R4** The reader uses no number that it has not checked, and reads no word twice: first words are
//!   checked against the ring ([`Consumer::peek`]), everything else by whoever puts messages together
//!   ([`super::inbox`]). The writer checks `head` ([`Producer::reserve`]). What a peer scribbles leads to other
//!   payload, to a violation, or to nothing that comes.
//! - **R5** A record takes at most half of its ring, so an empty ring has room for any record.

mod consumer;
mod producer;

pub(crate) use consumer::{Consumer, Record};
pub(crate) use producer::{Producer, PushError};

#[cfg(all(test, not(apus_local_loom)))]
mod tests;
