//! The process that survives.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use apus_local::{Disconnected, Local, PeerName};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::child;

/// A watchdog against hangs, not a measurement.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Parameters of one kill.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Whether the process that is killed is the server.
    pub(crate) child_serves: bool,
    /// Whether the rings have one page, so that everything wraps around and waits for room.
    pub(crate) small: bool,
    /// Messages that the survivor receives before the kill.
    pub(crate) after: u64,
    /// Further iterations of a spin loop before the kill.
    pub(crate) spin: u32,
}

impl Plan {
    pub(crate) fn draw(random: &mut Pcg64) -> Self {
        let after = if random.random_range(0..8) == 0 { 0 } else { random.random_range(0..600) };
        Self {
            child_serves: random.random(),
            small: random.random(),
            after,
            spin: random.random_range(0..100_000),
        }
    }
}

/// State shared by the two threads of the survivor.
#[derive(Default)]
struct Progress {
    got: AtomicU64,
    /// Whether the child was killed and waited for: it runs no more.
    dead: AtomicBool,
    failed: AtomicBool,
}

/// Starts a child, exchanges messages with it and kills it; returns the number of messages received
/// before.
pub(crate) fn run(plan: &Plan, random: &mut Pcg64) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("kill/{}/{next}", std::process::id());
    let progress = Progress::default();
    if plan.child_serves {
        let mut child = child::command(plan, &name).spawn().unwrap();
        wait_until_ready(&mut child);
        let local = Local::new(None, child::config(plan.small)).unwrap();
        let seed = random.random();
        std::thread::scope(|scope| {
            scope.spawn(|| kill(plan, child, &progress));
            let end = progress.survive(|done| {
                let mut all_gone = || done() && local.pairs().is_empty();
                child::call(&local, &PeerName::new(&name), seed, &progress.got, &mut all_gone)
            });
            // If the child was killed before it accepted the client, there was no pair to end.
            assert!(matches!(end, Some(Disconnected::PeerDied) | None), "{end:?}");
            assert!(end.is_some() || plan.after == 0);
        });
        assert_eq!(local.pairs().len(), 0, "the pair was removed");
    } else {
        let local = Local::new(Some(&PeerName::new(&name)), child::config(plan.small)).unwrap();
        let child = child::command(plan, &name).spawn().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| kill(plan, child, &progress));
            let ends = progress.survive(|done| {
                let mut all_gone = || done() && local.pairs().is_empty();
                child::serve(&local, &progress.got, &mut all_gone)
            });
            assert!(ends.iter().all(|end| *end == Disconnected::PeerDied), "{ends:?}");
            assert!(ends.len() <= 1);
        });
    }
    progress.got.load(Ordering::Relaxed)
}

fn wait_until_ready(child: &mut Child) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().expect("the child reports that it is ready").unwrap().contains("ready") {}
}

impl Progress {
    /// Exchanges messages until the child is dead and its pair is removed.
    fn survive<T>(&self, exchange: impl FnOnce(&mut dyn FnMut() -> bool) -> T) -> T {
        let since = Instant::now();
        let failed = SetOnDrop(&self.failed);
        let end = exchange(&mut || {
            assert!(since.elapsed() < LONG, "it hangs");
            self.dead.load(Ordering::Acquire)
        });
        // The exchange may have ended before the child's death; the other thread must not wait for
        // more messages.
        drop(failed);
        end
    }
}

/// Sets a flag when it is dropped, also by a panic, so that the other thread does not wait.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Kills the child after the planned number of messages.
fn kill(plan: &Plan, mut child: Child, progress: &Progress) {
    let failed = || progress.failed.load(Ordering::Acquire);
    while progress.got.load(Ordering::Relaxed) < plan.after && !failed() {
        if let Some(status) = child.try_wait().unwrap() {
            panic!("the child ended by itself: {status}");
        }
        std::thread::yield_now();
    }
    for _ in 0..plan.spin {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "the child was killed and had not failed: {status}");
    progress.dead.store(true, Ordering::Release);
}
