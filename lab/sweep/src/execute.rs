//! Execution of points on several cores.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::plan::{Plan, PlanPoint};
use super::record::PointRecord;
use apus_sim::experiment::Progress;

/// A point that has run.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// Result of the point.
    pub record: PointRecord,
    /// Run time of the carrier on this machine.
    pub took: Duration,
}

/// Progress of all points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// Share of the work done, with equal weight for all points.
    pub share: f64,
    /// Finished points.
    pub points: usize,
    /// Data packets that have reached their hosts.
    pub packets: u64,
}

/// Message from a thread.
enum News {
    Progress(usize, Progress),
    Done(usize, Box<Done>),
}

/// Runs these points of a plan in `jobs` threads: several points at the same time, and if there are
/// fewer points than threads, each in several threads. `done` is called with each record as soon as
/// it is available, `watch` with the progress from time to time.
///
/// # Errors
///
/// The error of `done`; running points are completed, and no further point is started.
pub fn execute<E>(
    plan: &Plan,
    points: &[&PlanPoint],
    jobs: usize,
    watch: &mut dyn FnMut(Status),
    done: &mut dyn FnMut(Done) -> Result<(), E>,
) -> Result<(), E> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (send, news) = mpsc::channel();
    let at_once = jobs.clamp(1, points.len().max(1));
    let threads = jobs / at_once;
    thread::scope(|scope| {
        for _ in 0..at_once {
            let send = send.clone();
            scope.spawn(|| work(plan, points, threads, &next, &stop, send));
        }
        drop(send);
        let mut progress = vec![Progress { share: 0.0, packets: 0 }; points.len()];
        let mut finished = 0;
        for each in news {
            match each {
                News::Progress(index, is) => progress[index] = is,
                News::Done(index, point) => {
                    finished += 1;
                    progress[index] = Progress { share: 1.0, packets: point.record.result.packets };
                    if let Err(error) = done(*point) {
                        stop.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
            let share = progress.iter().map(|each| each.share).sum::<f64>();
            watch(Status {
                share: share / points.len().max(1) as f64,
                points: finished,
                packets: progress.iter().map(|each| each.packets).sum(),
            });
        }
        Ok(())
    })
}

/// Runs points, each in `threads` threads, until all have been started. Takes the sender, so that
/// the channel closes when all threads have ended.
#[expect(clippy::needless_pass_by_value, reason = "the sender has to end with the thread")]
fn work(
    plan: &Plan,
    points: &[&PlanPoint],
    threads: usize,
    next: &AtomicUsize,
    stop: &AtomicBool,
    send: Sender<News>,
) {
    while !stop.load(Ordering::Relaxed) {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(point) = points.get(index) else { return };
        let allowed = point.experiment.allowed_growth();
        let began = Instant::now();
        let mut progress = |progress| {
            // The channel is closed if writing has failed.
            let _ = send.send(News::Progress(index, progress));
        };
        let report = point.experiment.run_observed(threads, allowed, &mut progress, &mut |_| {});
        let took = began.elapsed();
        let record = PointRecord::new(plan, point, &report);
        let _ = send.send(News::Done(index, Box::new(Done { record, took })));
    }
}
