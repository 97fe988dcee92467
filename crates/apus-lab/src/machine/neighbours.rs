//! Did somebody else use the machine meanwhile?

use std::fs;

/// Processor time that other programs used while an experiment ran.
///
/// Their time slices are in every latency's tail, and nothing in the figures tells them from the
/// contenders' own delays.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours {
    began: Option<Ticks>,
}

/// Clock ticks since some time in the past, over all processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    /// All there were.
    all: u64,
    /// In which any program ran, or the hypervisor took the processor away.
    busy: u64,
    /// In which this process or one of its ended children ran.
    own: u64,
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

impl Ticks {
    /// As the system counts now; `None` where it does not say.
    fn now() -> Option<Self> {
        let system = fs::read_to_string("/proc/stat").ok()?;
        let process = fs::read_to_string("/proc/self/stat").ok()?;
        Self::parse(&system, &process)
    }

    /// From the first line of `/proc/stat` and from `/proc/self/stat`. Source: `proc(5)`.
    fn parse(system: &str, process: &str) -> Option<Self> {
        let line = system.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user and nice.
        let [user, nice, system, idle, iowait, irq, softirq, steal] = *ticks.first_chunk()?;
        let busy = user + nice + system + irq + softirq + steal;
        // The name in parentheses may contain anything; utime is the 12th field behind it, then
        // stime, cutime and cstime.
        let (_, fields) = process.rsplit_once(')')?;
        let fields = fields.split_whitespace().skip(11).take(4);
        let own = fields.map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
        Some(Self { all: busy + idle + iowait, busy, own })
    }

    /// Share of all time that others used between two countings.
    fn others_until(self, later: Self) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|&all| all > 0)?;
        let busy = later.busy.checked_sub(self.busy)?;
        let own = later.own.checked_sub(self.own)?;
        Some(busy.saturating_sub(own) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "cpu  100 1 50 800 10 2 7 30 5 0\ncpu0 1 2 3\nintr 5\n";
    const PROCESS: &str = "12 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 20 30 5 6 20 0 1 0";

    #[test]
    fn the_systems_lines_are_understood() {
        let ticks = Ticks::parse(SYSTEM, PROCESS).unwrap();
        assert_eq!(ticks, Ticks { all: 1000, busy: 190, own: 11 + 20 + 30 + 5 });
        assert_eq!(Ticks::parse("", ""), None);
    }

    #[test]
    fn own_time_is_not_the_neighbours() {
        let before = Ticks { all: 1000, busy: 190, own: 50 };
        let after = Ticks { all: 2000, busy: 790, own: 550 };
        assert_eq!(before.others_until(after), Some(0.1));
        assert_eq!(before.others_until(before), None, "no time has passed");
    }

    #[test]
    fn this_system_tells() {
        assert!(Ticks::now().is_some());
    }
}
