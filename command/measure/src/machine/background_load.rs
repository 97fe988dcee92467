//! Processor time that other programs used during an experiment.

use super::cpu_ticks::{CpuTicks, ForeignTime};

/// Measures the processor time of other programs while an experiment runs.
///
/// Their time slices lengthen the tail of every latency distribution, and the figures alone cannot
/// distinguish them from the delays of the contenders.
#[derive(Clone, Copy, Debug)]
pub struct BackgroundLoad {
    began: Option<CpuTicks>,
}

/// Threshold for a note about other programs, as a share of the machine's time. Chosen by us: the
/// system's own housekeeping stays below it.
const NOTE_THRESHOLD: f64 = 0.03;

impl BackgroundLoad {
    /// Starts to measure.
    #[must_use]
    pub fn watch() -> Self {
        Self { began: CpuTicks::now() }
    }

    /// Returns the machine time that the experiment did not get; `None` if the system does not
    /// report it. To be called when all child processes have ended.
    #[must_use]
    pub fn foreign_time(&self) -> Option<ForeignTime> {
        self.began?.foreign_until(CpuTicks::now()?)
    }

    /// Returns a note for readers of the result if other programs were active. To be called when
    /// all child processes have ended.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let time = self.foreign_time()?;
        let share = time.others + time.stolen;
        (share > NOTE_THRESHOLD).then(|| {
            format!(
                "other programs used {:.0} % of the processors meanwhile; tails contain their time \
                 slices",
                share * 100.0
            )
        })
    }
}
