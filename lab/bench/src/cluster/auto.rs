//! The link rate for `--link auto`: a rate that leaves the cores idle enough.
//!
//! Messages must wait for the links, not for the cores of the machine that emulates all hosts. The
//! search measures how busy each rate keeps the cores, since this depends on the machine and on the
//! transport.

use super::options::IDLE;
use apus_testbed::error::Error;

/// Target share of busy core time with the most demanding transport: 45 %. Chosen by us: below the
/// limit, because runs differ by several hundredths, and the busier the cores are, the longer a
/// woken thread waits for one.
const AIM: f64 = (1.0 - IDLE) * 0.75;

/// The search ends within this ratio of [`AIM`].
const NEAR: f64 = 0.85;

/// Share of busy time beyond which transports cannot be compared.
const SATURATED: f64 = 0.85;

/// By how much the next rate is less then.
const LESS: f64 = 0.3;

/// Maximum number of rates tried.
const TRIALS: usize = 6;

/// A rate of the links in Mbit/s, and the mix that needs most of the cores at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) mbps: u64,
    /// Index of the mix.
    pub(super) hungriest: usize,
    /// Share of the time that the cores are idle with it.
    pub(super) idle: f64,
}

/// Searches the rate for `mixes` mixes. `busy` returns the share of busy core time of a mix at a
/// rate; `None` if it cannot be measured: the rate is then too high for that mix, or the mix is
/// left out. Returns `None` if no mix can be measured.
///
/// # Errors
///
/// As for `busy`.
pub(super) fn search(
    start: u64,
    mixes: usize,
    mut busy: impl FnMut(usize, u64) -> Result<Option<f64>, Error>,
) -> Result<Option<Found>, Error> {
    let mut mbps = start;
    let mut hungriest = None;
    // The least busy time that was too much, and the highest rate that was not.
    let mut found: Option<(u64, f64)> = None;
    let mut seen = 1.0;
    for _ in 0..TRIALS {
        seen = match hungriest {
            Some(mix) => busy(mix, mbps)?.unwrap_or(1.0),
            None => {
                let all = (0..mixes).map(|mix| Ok((busy(mix, mbps)?, mix)));
                let all = all.collect::<Result<Vec<_>, Error>>()?;
                let known = all.into_iter().filter_map(|(busy, mix)| Some((busy?, mix)));
                let most = known.max_by(|a, b| a.0.total_cmp(&b.0));
                let Some((most, mix)) = most else { return Ok(None) };
                hungriest = (most < SATURATED || mbps == 1).then_some(mix);
                most
            }
        };
        if seen <= 1.0 - IDLE && found.is_none_or(|(best, _)| mbps > best) {
            found = Some((mbps, seen));
        }
        if (AIM * NEAR..=1.0 - IDLE).contains(&seen) {
            break;
        }
        let factor = if seen < SATURATED { (AIM / seen.max(0.01)).min(4.0) } else { LESS };
        let next = round((mbps as f64 * factor) as u64);
        if next == mbps {
            break;
        }
        mbps = next;
    }
    // If no rate was good enough, the last one is the closest.
    let (mbps, seen) = found.unwrap_or((mbps, seen));
    Ok(Some(Found { mbps, hungriest: hungriest.unwrap_or(0), idle: 1.0 - seen }))
}

/// Two digits, rounded down; at least 1.
fn round(mbps: u64) -> u64 {
    let unit = 10_u64.pow(mbps.max(1).ilog10().saturating_sub(1));
    (mbps / unit * unit).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the rate on a machine where each mix uses the share `per_mbit` of core time per
    /// Mbit/s.
    fn on(per_mbit: &[f64]) -> (Found, usize) {
        let mut trials = 0;
        let found = search(40, per_mbit.len(), |mix, mbps| {
            trials += 1;
            Ok(Some((per_mbit[mix] * mbps as f64).min(1.0)))
        });
        (found.unwrap().unwrap(), trials)
    }

    #[test]
    fn the_hungriest_decides() {
        for per_mbit in [0.0005, 0.005, 0.02, 0.05, 0.1] {
            let (found, trials) = on(&[per_mbit / 3.0, per_mbit, per_mbit / 2.0]);
            assert_eq!(found.hungriest, 1, "{per_mbit}");
            let busy = per_mbit * found.mbps as f64;
            assert!((AIM * 0.7..=1.0 - IDLE).contains(&busy), "{per_mbit}: {found:?}");
            assert!(trials <= 3 * TRIALS);
        }
    }

    #[test]
    fn a_machine_that_is_too_slow_gets_the_slowest_link() {
        let (found, _) = on(&[0.9]);
        assert_eq!((found.mbps, found.hungriest), (1, 0));
        assert!(found.idle < IDLE);
    }

    #[test]
    fn a_failure_ends_the_search() {
        let failing = |_, _| Err(Error::Peer("no".to_owned()));
        assert_eq!(search(40, 1, failing).unwrap_err().to_string(), "no");
    }

    #[test]
    fn a_mix_that_cannot_be_had_is_left_out() {
        let busy = |mix, mbps| Ok((mix == 1).then_some(0.01 * mbps as f64));
        let found = search(40, 3, busy).unwrap().unwrap();
        assert_eq!(found.hungriest, 1);
        assert!(found.idle >= IDLE, "{found:?}");
        assert_eq!(search(40, 3, |_, _| Ok(None)).unwrap(), None);
    }

    #[test]
    fn rates_are_round_numbers() {
        let rates = [0, 1, 9, 10, 99, 123, 999, 1234, 98_765].map(round);
        assert_eq!(rates, [1, 1, 9, 10, 99, 120, 990, 1200, 98_000]);
    }
}
