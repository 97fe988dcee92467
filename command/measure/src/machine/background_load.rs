//! Processor time that other programs used during an experiment.

use super::cpu_ticks::{CpuTicks, ForeignTime};

/// Measures the processor time of other programs while an experiment runs.
///
/// Their time slices lengthen the tail of every latency distribution, and the figures alone cannot
/// tell them from the delays of the contenders.
#[derive(Clone, Copy, Debug)]
pub struct BackgroundLoad {
    began: Option<CpuTicks>,
}

/// Share of the machine's time above which other programs deserve a note. Chosen by us: the
/// system's own housekeeping stays below it.
const NOTE_THRESHOLD: f64 = 0.03;

impl BackgroundLoad {
    /// Starts to measure.
    #[must_use]
    pub fn watch() -> Self {
        Self { began: CpuTicks::now() }
    }

    /// Returns the time that the experiment has not got; `None` if the system does not tell. To be called when all child
    /// processes have ended.
    #[must_use]
    pub fn foreign_time(&self) -> Option<ForeignTime> {
        self.began?.foreign_until(CpuTicks::now()?)
    }

    /// Returns what readers of a result must know about other programs, if anything. To be called
    /// when all child processes have ended.
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
