//! The machine of a measurement: cores, sleep states, other programs' load, memory of a process.

mod background_load;
mod cores;
mod cpu_ticks;
mod pm_qos;
mod process_memory;

pub use background_load::BackgroundLoad;
pub use cores::{Cores, allowed, physical_first, pin};
pub use cpu_ticks::{CpuTicks, ForeignTime};
pub use pm_qos::PmQosRequest;
pub use process_memory::{anonymous_memory, raise_descriptor_limit};
