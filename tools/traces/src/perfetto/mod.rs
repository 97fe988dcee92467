//! How does a trace look in the Perfetto UI?
//!
//! [`export`] writes a file of TrackEvents that <https://ui.perfetto.dev> opens:
//!
//! - each process with its threads: passes of the loop with looks and sends inside, sleeps, and everything else that a
//!   thread recorded as a moment, with its RPC and its numbers;
//! - below each process its calls, and the RPCs that it served, with their stages; in as many rows as there are at a time;
//! - arrows from where a request left to where it came, and the same for responses;
//! - how many bytes were granted and had not come, and how many could have been sent, if there were grants.
//!
//! Times are those of the common clock, from the first thing on. Processes of different hosts may have the same number:
//! in the file each number is given once.

mod lanes;
mod nesting;
pub mod schema;
mod writer;

pub use writer::export;
