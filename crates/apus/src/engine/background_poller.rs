//! Who turns the loop while the application computes?
//!
//! When everybody who waited has what he wanted, the turn is free, and nobody sends grants, acks and
//! resends. The keeper is a thread that looks now and then whether the turn has been free since its
//! last look; if so it takes it, sleeps in the kernel until a packet comes, and gives it away as soon
//! as somebody wants it.
//!
//! It never gets in the way of an unloaded call: whoever waits again within the keeper's interval
//! finds the turn free.

use super::alarm::Alarm;
use super::poll_mode::PollMode;
use super::shard::Shard;
use super::wait_target::PollRoleWanted;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks. Ours: well below the 5 ms after which a peer asks for missing bytes.
const INTERVAL: Duration = Duration::from_millis(2);

/// Time between two looks after one that found the endpoint busy. A look takes the processor from
/// whoever polls: at 500 looks a second one call in a hundred took 10 µs longer. Ours: two looks in 12 ms
/// are seldom enough; who stops calling all of a sudden and computes is late by this once, which costs
/// its peers a RESEND or two.
const BUSY_INTERVAL: Duration = Duration::from_millis(10);

/// Changes of the turn in one interval that make an endpoint busy; a call makes two of them.
const BUSY: u64 = 40;

/// Looks without the turn ever being free, after which the keeper sleeps until an interval after it is.
const PATIENCE: u32 = 50;

/// Starts the keeper of `shard`.
///
/// # Errors
///
/// The system gives no further thread or descriptor.
pub(crate) fn start(shard: &Arc<Shard>) -> std::io::Result<JoinHandle<()>> {
    let alarm = Arc::new(Alarm::new()?);
    shard.lock().background_poller = Some(alarm.clone());
    let shard = Arc::downgrade(shard);
    std::thread::Builder::new().name("apus-keeper".into()).spawn(move || keep(&shard, &alarm))
}

fn keep(shard: &Weak<Shard>, alarm: &Alarm) {
    let mut seen = 0;
    let mut in_vain = 0;
    let mut interval = INTERVAL;
    loop {
        alarm.wait((in_vain < PATIENCE).then_some(interval));
        let Some(shard) = shard.upgrade() else { return };
        let mut core = shard.lock();
        if core.closed.is_some() {
            return;
        }
        // If it was woken because the turn was free: since then.
        seen = core.free_since.take().unwrap_or(seen);
        let changes = core.role.changes();
        if core.role.is_free() && changes == seen && core.role.take_in_background() {
            core.metrics.keeper_turns += 1;
            // Whoever held it back is busy with something else.
            core.transmit_held_back();
            drop(core);
            let (core, _) = shard.run_loop(&PollRoleWanted, PollMode::Block, None);
            seen = core.role.changes();
            in_vain = 0;
            interval = INTERVAL;
            continue;
        }
        // A long interval says nothing about its end: the next one is short again.
        let busy = interval == INTERVAL && changes - seen >= BUSY;
        interval = if busy { BUSY_INTERVAL } else { INTERVAL };
        in_vain = if core.role.is_free() { 0 } else { in_vain.saturating_add(1) };
        core.background_wake_after = (in_vain >= PATIENCE).then_some(INTERVAL);
        seen = changes;
    }
}
