//! `stat` while another thread reads at the speed of the link.
//!
//! Each file is queried once, on a client that has not seen it: otherwise the kernel's cache would
//! answer.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use apus_report::stats::Latencies;
use apus_testbed::error::{Doing, Error};

use super::{large_file, small_files};
use crate::bench::stage::{Sample, Stage, percentiles, record};

/// Pause between two queries.
const PAUSE: Duration = Duration::from_millis(1);
/// Number of queried files.
const FILES: u64 = 200;
/// Bytes that the reader has read before the first query.
const AHEAD: u64 = 8 << 20;

/// Queries without load, and then under load.
pub(super) fn run(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    small_files::prepare(stage)?;
    large_file::prepare(stage)?;
    stage.make_cold()?;
    let (idle, _) = ask(stage, || false)?;
    stage.make_cold()?;
    let path = large_file::path(stage);
    let (read, ended, enough) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let interrupt = stage.interrupt;
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let result = large_file::read_all(&path, |done| {
                read.store(done, Ordering::Relaxed);
                if enough.load(Ordering::Relaxed) {
                    return Err(Error::Peer("enough".to_owned()));
                }
                interrupt.check()
            });
            ended.store(true, Ordering::Relaxed);
            result
        });
        while read.load(Ordering::Relaxed) < AHEAD && !ended.load(Ordering::Relaxed) {
            thread::sleep(PAUSE);
        }
        let asked = ask(stage, || ended.load(Ordering::Relaxed));
        enough.store(true, Ordering::Relaxed);
        let result = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (loaded, seconds) = asked?;
        // A reader that was stopped has failed as well, but has read enough.
        if read.load(Ordering::Relaxed) < AHEAD {
            result?;
        }
        Ok(Sample {
            seconds,
            operations: Some(loaded.len()),
            latency: Some(percentiles(&loaded)),
            idle_p99: Some(percentiles(&idle).1),
            ..Sample::default()
        })
    })
}

/// Queries files, one per pause, until `is_over`; returns the time of each, and the sum in seconds.
fn ask(stage: &Stage<'_>, is_over: impl Fn() -> bool) -> Result<(Latencies, f64), Error> {
    let mut latencies = Latencies::new();
    let mut sum = Duration::ZERO;
    for index in 0..FILES {
        stage.interrupt.check()?;
        let path = stage.path(&small_files::name(index));
        let began = Instant::now();
        fs::metadata(&path).doing(|| format!("stat {}", path.display()))?;
        let time = began.elapsed();
        record(&mut latencies, time);
        sum += time;
        if is_over() {
            break;
        }
        thread::sleep(PAUSE);
    }
    Ok((latencies, sum.as_secs_f64()))
}
