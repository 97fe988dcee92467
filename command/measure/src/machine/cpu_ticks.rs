//! Processor time as counted by the kernel in `/proc`.

use std::fs;

/// Clock ticks since boot, over all processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTicks {
    /// All ticks.
    all: u64,
    /// Ticks when a program ran, packets were processed, or the hypervisor withheld the
    /// processor.
    busy: u64,
    /// Ticks when interrupts were served. This experiment's packets cause many of them, so they
    /// are charged to no program.
    interrupts: u64,
    /// Ticks when the hypervisor withheld the processor.
    stolen: u64,
    /// Ticks when this process or an ended child ran.
    own: u64,
}

/// Machine time lost to an experiment, as shares of the total.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForeignTime {
    /// Ticks of the measured period, over all processors.
    pub ticks: u64,
    /// Share used by other programs.
    pub others: f64,
    /// Share withheld by the hypervisor.
    pub stolen: f64,
}

impl CpuTicks {
    /// Reads the current counts; `None` if the system does not provide them.
    pub fn now() -> Option<Self> {
        let system = fs::read_to_string("/proc/stat").ok()?;
        let process = fs::read_to_string("/proc/self/stat").ok()?;
        Self::parse(&system, &process)
    }

    /// Parses the first line of `/proc/stat`, and `/proc/self/stat`. Source: `proc(5)`.
    fn parse(system: &str, process: &str) -> Option<Self> {
        let line = system.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user and nice.
        let [user, nice, system, idle, iowait, irq, softirq, steal] = *ticks.first_chunk()?;
        let interrupts = irq + softirq;
        let busy = user + nice + system + interrupts + steal;
        // The name in parentheses may contain any character. utime is the 12th field behind it,
        // followed by stime, cutime and cstime.
        let (_, fields) = process.rsplit_once(')')?;
        let fields = fields.split_whitespace().skip(11).take(4);
        let own = fields.map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
        Some(Self { all: busy + idle + iowait, busy, interrupts, stolen: steal, own })
    }

    /// Returns the time between two readings that was used neither by this process nor by its
    /// children.
    pub(super) fn foreign_until(self, later: Self) -> Option<ForeignTime> {
        let all = later.all.checked_sub(self.all).filter(|&all| all > 0)?;
        let busy = later.busy.checked_sub(self.busy)?;
        let interrupts = later.interrupts.checked_sub(self.interrupts)?;
        let stolen = later.stolen.checked_sub(self.stolen)?;
        let own = later.own.checked_sub(self.own)?;
        let others = busy.saturating_sub(own + interrupts + stolen) as f64 / all as f64;
        Some(ForeignTime { ticks: all, others, stolen: stolen as f64 / all as f64 })
    }

    /// Returns the share of idle time between two readings.
    pub fn idle_until(self, later: Self) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|&all| all > 0)?;
        Some(1.0 - later.busy.checked_sub(self.busy)? as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "cpu  100 1 50 800 10 2 7 30 5 0\ncpu0 1 2 3\nintr 5\n";
    const PROCESS: &str = "12 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 20 30 5 6 20 0 1 0";

    #[test]
    fn the_kernels_text_is_parsed() {
        let ticks = CpuTicks::parse(SYSTEM, PROCESS).unwrap();
        assert_eq!(
            ticks,
            CpuTicks { all: 1000, busy: 190, interrupts: 9, stolen: 30, own: 11 + 20 + 30 + 5 }
        );
        assert_eq!(CpuTicks::parse("", ""), None);
    }

    #[test]
    fn own_time_is_not_counted_as_other_programs_time() {
        let before = CpuTicks { all: 1000, busy: 190, interrupts: 9, stolen: 30, own: 50 };
        let after = CpuTicks { all: 2000, busy: 890, interrupts: 109, stolen: 70, own: 550 };
        let foreign = ForeignTime { ticks: 1000, others: 0.06, stolen: 0.04 };
        assert_eq!(before.foreign_until(after), Some(foreign));
        assert_eq!(before.foreign_until(before), None, "no time has passed");
        assert!((before.idle_until(after).unwrap() - 0.3).abs() < 1e-9);
    }

    #[test]
    fn this_system_provides_the_counts() {
        assert!(CpuTicks::now().is_some());
    }
}
