//! Trends: growth of a process's memory and descriptors over time, with its noise.

use std::fs;

use serde::Serialize;

use apus_report::result::rounded;

/// Sizes of a process at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProcessSample {
    pub(super) seconds: f64,
    /// Anonymous memory. Pages of the program, loaded on first use, and rings shared with other
    /// processes do not count: the process does not keep them.
    pub(super) anonymous_kb: f64,
    pub(super) descriptors: f64,
}

impl ProcessSample {
    /// Reads the sizes of a process; `None` if it has ended.
    pub(super) fn of(pid: u32, seconds: f64) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        let anonymous_kb = anonymous.trim().strip_suffix("kB")?.trim().parse().ok()?;
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as f64;
        Some(Self { seconds, anonymous_kb, descriptors })
    }
}

/// A line through the values of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Trend {
    /// Value at the end.
    pub(super) last: f64,
    /// Growth in a minute.
    pub(super) per_minute: f64,
    /// Growth that may be chance: twice the standard error of the slope.
    pub(super) noise: f64,
    /// Whether the growth is above the noise.
    pub(super) grows: bool,
}

/// Share of the run that is not counted, and its least number of seconds: tables and buffers grow
/// to their usual size.
const WARM_UP: f64 = 0.25;
const WARM_UP_SECONDS: f64 = 20.0;

/// Number of blocks; the line is fitted to the least value of each, which is the memory that a
/// process keeps. Memory in temporary use, for calls that wait for a paused server, comes and goes:
/// with block means, the line of one side or the other rose by 20 kB per minute in each run, while
/// the least values were the same to the page (lab/log, 2026-11-26). Neighbouring samples
/// are correlated; single samples would make the noise look too small.
const BLOCKS: usize = 10;

impl Trend {
    /// Fits a line by least squares; `None` if there are too few values.
    pub(super) fn fit(values: &[(f64, f64)]) -> Option<Self> {
        let (first, last) = (values.first()?.0, values.last()?);
        let after = first + ((last.0 - first) * WARM_UP).max(WARM_UP_SECONDS);
        let counted: Vec<_> = values.iter().filter(|(seconds, _)| *seconds >= after).collect();
        let size = counted.len() / BLOCKS;
        if size == 0 {
            return None;
        }
        let blocks: Vec<(f64, f64)> = counted
            .chunks_exact(size)
            .map(|block| {
                let middle = block.iter().map(|value| value.0).sum::<f64>() / size as f64;
                (middle, block.iter().map(|value| value.1).fold(f64::INFINITY, f64::min))
            })
            .collect();
        let n = blocks.len() as f64;
        let mean_x = blocks.iter().map(|(x, _)| x).sum::<f64>() / n;
        let mean_y = blocks.iter().map(|(_, y)| y).sum::<f64>() / n;
        let sxx = blocks.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
        if sxx == 0.0 {
            return None;
        }
        let sxy = blocks.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>();
        let slope = sxy / sxx;
        let residual = |(x, y): &(f64, f64)| (y - mean_y - slope * (x - mean_x)).powi(2);
        let variance = blocks.iter().map(residual).sum::<f64>() / (n - 2.0);
        let noise = 2.0 * (variance / sxx).sqrt();
        Some(Self {
            last: last.1,
            per_minute: rounded(slope * 60.0),
            noise: rounded(noise * 60.0),
            // Rounding leaves constant values with a slope that is not exactly zero.
            grows: slope > noise && slope * 60.0 > 1e-6,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns values of 100 s, with a sawtooth of `noise` on a line.
    fn values(per_second: f64, noise: f64) -> Vec<(f64, f64)> {
        let value = |number: u32| {
            let seconds = f64::from(number) / 4.0;
            let tooth = f64::from(number * 7 % 13) / 13.0 - 0.5;
            (seconds, 1_000.0 + per_second * seconds + noise * tooth)
        };
        (0..400).map(value).collect()
    }

    #[test]
    fn growth_above_the_noise_is_found() {
        let trend = Trend::fit(&values(2.0, 10.0)).unwrap();
        assert!((trend.per_minute - 120.0).abs() < 5.0 && trend.grows, "{trend:?}");
    }

    #[test]
    fn noise_and_constant_values_do_not_grow() {
        for still in [values(0.0, 50.0), values(0.0, 0.0), values(-1.0, 1.0)] {
            let trend = Trend::fit(&still).unwrap();
            assert!(!trend.grows, "{trend:?}");
        }
    }

    #[test]
    fn temporary_use_is_no_growth() {
        let mut values = values(0.0, 5.0);
        // Increasingly frequent towards the end.
        (0..20u32).for_each(|at| values[(400 - at * at) as usize - 1].1 += 1_000.0);
        assert!(!Trend::fit(&values).unwrap().grows);
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let mut warming = values(0.0, 5.0);
        warming[..60].iter_mut().enumerate().for_each(|(at, value)| value.1 = at as f64);
        assert!(!Trend::fit(&warming).unwrap().grows);
        assert_eq!(Trend::fit(&warming[..8]), None, "too few");
    }

    #[test]
    fn this_process_has_memory_and_descriptors() {
        let sample = ProcessSample::of(std::process::id(), 1.0).unwrap();
        assert!(sample.anonymous_kb > 100.0 && sample.descriptors >= 3.0, "{sample:?}");
    }
}
