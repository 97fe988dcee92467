//! The background poller: runs the loop while no application thread does.
//!
//! When every waiting thread has its message, the poll role is free, and no thread sends grants,
//! acks and resends. The background poller is a thread that checks at intervals whether the role
//! has been free since its last check. If so, it takes the role, sleeps in the kernel until a
//! packet arrives, and gives the role up as soon as another thread wants it.
//!
//! It does not disturb unloaded calls: a thread that waits again within the interval finds the role
//! free.

use super::alarm::Alarm;
use super::poll_mode::PollMode;
use super::shard::Shard;
use super::wait_target::PollRoleWanted;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two checks. Chosen by us: well below the 5 ms after which a peer requests missing
/// bytes.
const INTERVAL: Duration = Duration::from_millis(2);

/// Time between two checks after one that found the endpoint busy. A check takes the processor from
/// the polling thread: with 500 checks a second one call in a hundred took 10 µs longer. Chosen by
/// us: two checks in 12 ms are rare enough. If the application suddenly stops calling and computes,
/// the background poller is late by this time once, which costs its peers a RESEND or two.
const BUSY_INTERVAL: Duration = Duration::from_millis(10);

/// Changes of the poll role in one interval from which on an endpoint is busy. A call makes two of
/// them.
const BUSY_CHANGES: u64 = 40;

/// Number of checks in a row that find the role taken, after which the background poller sleeps
/// until the role has been free for an interval.
const CHECKS_BEFORE_SLEEP: u32 = 50;

/// Starts the background poller of `shard`.
///
/// # Errors
///
/// The system grants no further thread or descriptor.
pub(crate) fn start(shard: &Arc<Shard>) -> std::io::Result<JoinHandle<()>> {
    let alarm = Arc::new(Alarm::new()?);
    shard.lock().polling().set_alarm(alarm.clone());
    let shard = Arc::downgrade(shard);
    let thread = std::thread::Builder::new().name("apus-background".into());
    thread.spawn(move || run(&shard, &alarm))
}

fn run(shard: &Weak<Shard>, alarm: &Alarm) {
    let mut seen = 0;
    let mut checks_taken = 0;
    let mut interval = INTERVAL;
    loop {
        alarm.wait((checks_taken < CHECKS_BEFORE_SLEEP).then_some(interval));
        let Some(shard) = shard.upgrade() else { return };
        let mut core = shard.lock();
        if core.is_closed() {
            return;
        }
        let polling = core.polling();
        // If the alarm has rung because the role was free, it has been free since the alarm was
        // set.
        seen = polling.take_free_since().unwrap_or(seen);
        if polling.take_role_in_background(seen) {
            core.counters().keeper_turns += 1;
            // The thread that holds messages back is busy with something else.
            core.transmit_held_back();
            drop(core);
            let (mut core, _) = shard.run_loop(&PollRoleWanted, PollMode::Block, None);
            seen = core.polling().changes();
            checks_taken = 0;
            interval = INTERVAL;
            continue;
        }
        let changes = polling.changes();
        // After a long interval the number of changes says little about its end, so the next
        // interval is short.
        let busy = interval == INTERVAL && changes - seen >= BUSY_CHANGES;
        interval = if busy { BUSY_INTERVAL } else { INTERVAL };
        checks_taken = if polling.is_free() { 0 } else { checks_taken.saturating_add(1) };
        polling.set_wake_after((checks_taken >= CHECKS_BEFORE_SLEEP).then_some(INTERVAL));
        seen = changes;
    }
}
