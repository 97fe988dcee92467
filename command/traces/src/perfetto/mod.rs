//! Export to the Perfetto UI.
//!
//! [`export`] writes a file of TrackEvents that <https://ui.perfetto.dev> opens:
//!
//! - each process with its threads: passes of the loop that contain polls and sends, sleeps, and
//!   all other thread records as instants, with RPC and numbers;
//! - below each process its calls and the RPCs that it served, with their stages, in rows without
//!   overlap;
//! - arrows from the departure of each request and response to its arrival;
//! - granted bytes not yet received, and granted bytes not yet sent, if there were grants.
//!
//! Times are on the common clock and start at the first event. Process ids of different hosts may
//! coincide; in the file each number is unique.

mod nesting;
mod rows;
pub mod schema;
mod writer;

pub use writer::export;
