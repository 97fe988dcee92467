//! On what machine was a result measured, and on which cores?

mod awake;
mod cores;
mod neighbours;
mod ticks;

pub use awake::Awake;
pub use cores::{Cores, pin};
pub use cores::{allowed, apart};
pub use neighbours::Neighbours;
pub use ticks::Ticks;
