//! Processor time that other programs used during an experiment.

use super::cpu_ticks::{CpuTicks, ForeignTime};

/// Measures the processor time of other programs while an experiment runs.
///
/// Their time slices lengthen the tail of every latency distribution, and the figures alone do not
/// distinguish them from the contenders' delays.
#[derive(Clone, Copy, Debug)]
pub struct BackgroundLoad {
    began: Option<CpuTicks>,
}

/// Share of the machine's time used by other programs that triggers a note. Chosen by us: the
/// system's housekeeping stays below it.
const NOTE_THRESHOLD: f64 = 0.03;

impl BackgroundLoad {
    /// Starts to measure.
    #[must_use]
    pub fn watch() -> Self {
        Self { began: CpuTicks::now() }
    }

    /// Returns the time withheld from the experiment; `None` if the system does not report it. Must
    /// be called after all child processes have exited.
    #[must_use]
    pub fn foreign_time(&self) -> Option<ForeignTime> {
        self.began?.foreign_until(CpuTicks::now()?)
    }

    /// Returns a note about other programs for readers of the result, if one is needed. Must be
    /// called after all child processes have exited.
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
