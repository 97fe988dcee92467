//! Contests: one figure of several contenders on this machine, side by side.
//!
//! Each file names one contest: its contenders, the figures of a row and the ratios. All are run in
//! the same way: within one run the contenders are measured one after the other, each with fresh
//! processes. The first contender changes from run to run, so that disturbances of the machine
//! affect all of them.

mod definition;
mod handoff;
mod options;
mod rate;
mod reading;
mod rounds;
mod rtt;
mod throughput;

pub use definition::Contest;
pub use handoff::HANDOFF;
pub use options::ContestOptions;
pub use rate::RATE;
pub use reading::Reading;
pub use rounds::CONTESTS;
pub(crate) use rounds::{JOB, agent};
pub use rtt::RTT;
pub use throughput::THROUGHPUT;
