//! The machine on which a result was measured: cores, sleep states, other programs' load.

mod background_load;
mod cores;
mod cpu_ticks;
mod pm_qos;

pub use background_load::BackgroundLoad;
pub use cores::{Cores, allowed, physical_first, pin};
pub use cpu_ticks::{CpuTicks, ForeignTime};
pub use pm_qos::PmQosRequest;
