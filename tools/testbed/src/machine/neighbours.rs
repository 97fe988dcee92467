//! Did somebody else use the machine meanwhile?

use super::ticks::Ticks;

/// Processor time that other programs used while an experiment ran.
///
/// Their time slices are in every latency's tail, and nothing in the figures tells them from the
/// contenders' own delays.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours {
    began: Option<Ticks>,
}

/// Share of the machine's time from which on neighbours are worth a note. Ours: less than the
/// system's own housekeeping takes is not.
const WORTH_A_NOTE: f64 = 0.03;

impl Neighbours {
    /// Watches from now on.
    #[must_use]
    pub fn watch() -> Self {
        Self { began: Ticks::now() }
    }

    /// What readers of a result have to know about the neighbours, if anything. Call it when all
    /// child processes have ended.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let share = self.began?.others_until(Ticks::now()?)?;
        (share > WORTH_A_NOTE).then(|| {
            format!(
                "other programs used {:.0} % of the processors meanwhile; tails contain their time \
                 slices",
                share * 100.0
            )
        })
    }
}
