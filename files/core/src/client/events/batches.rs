//! Outcomes of batches: applied, failed or refused.

use crate::wire::{BatchDone, Errno, FailedBatch, Failure, Ino};

use super::ending::{greet_again, lose_log};
use crate::client::core::Core;
use crate::client::interface::effect::{Clock, OpToken};
use crate::client::link::Link;
use crate::client::link::calls::Calls;
use crate::client::link::log::Log;
use crate::client::nodes::cache::Cache;
use crate::client::nodes::install::{KEPT_FILE, install_changed};
use crate::client::nodes::renames::Rename;
use crate::client::waiting::{Event, Waiting};

/// Handles the outcome of the last batch that the server has processed.
pub(in crate::client) fn handle_batch_done(core: &mut Core, clock: &Clock, done: &BatchDone) {
    if done.applied > core.link.log.last_number() {
        return; // The server reports a batch that does not exist.
    }
    if let Some((record, error)) = done.failed {
        let failed = FailedBatch { number: done.applied, record, error };
        if is_new(&core.link.log, &failed) {
            handle_failed(core, clock, &failed);
        }
        return;
    }
    for (handle, attributes) in &done.changed {
        install_changed(&mut core.cache, done.applied, *handle, attributes);
    }
    handle_applied(&mut core.link, &mut core.cache, &mut core.waiting, done.applied);
}

/// Marks batches up to `number` as applied: bytes of long files are dropped, and operations that
/// waited continue.
pub(in crate::client) fn handle_applied(
    link: &mut Link,
    cache: &mut Cache,
    waiting: &mut Waiting,
    number: u64,
) {
    for rename in cache.renames.take_applied(number) {
        forget_renamed(&mut link.calls, cache, &rename);
    }
    for ino in link.log.set_applied(number) {
        link.calls.void_reads(ino);
        let Some(node) = cache.get_mut(ino) else { continue };
        let size = node.attributes.size;
        if node.last_cut > number {
            continue;
        }
        if size > KEPT_FILE {
            node.contents.clean(number, size);
        } else {
            node.contents.keep_clean(number, size);
        }
    }
    waiting.wake_for_batches(number);
    waiting.wake_for(Event::Room);
}

/// Drops the names of both directories of a rename that the server has decided: they are read
/// again.
fn forget_renamed(calls: &mut Calls, cache: &mut Cache, rename: &Rename) {
    for ino in rename.directories {
        calls.void(ino);
        if let Some(node) = cache.get_mut(ino) {
            node.forget_names();
        }
    }
    if let Some(node) = rename.removed.and_then(|ino: Ino| cache.get_mut(ino)) {
        node.become_removed();
    }
}

/// Returns whether a failure is new: its batch is neither applied nor dropped.
pub(in crate::client) fn is_new(log: &Log, failed: &FailedBatch) -> bool {
    failed.number > log.applied() && log.sealed(failed.number).is_some()
}

/// Ends the operations of a batch that failed. Earlier batches have succeeded, and later ones are
/// not applied until the next greeting.
pub(in crate::client) fn handle_failed(core: &mut Core, clock: &Clock, failed: &FailedBatch) {
    let FailedBatch { number, record, error } = *failed;
    let log = &core.link.log;
    match log.sealed(number).and_then(|batch| batch.alone) {
        // No other operation depends on it.
        Some(token) => {
            core.cache.renames.refuse(number);
            fail_operations(&mut core.link, &mut core.waiting, &[token], error);
            handle_applied(&mut core.link, &mut core.cache, &mut core.waiting, number);
            greet_again(&mut core.link, &mut core.waiting, clock);
        }
        None => {
            let why = format!("record {record} of batch {number} failed: {error}");
            let earlier = log.applied() + 1..number;
            let earlier = earlier.filter_map(|number| log.sealed(number));
            let applied: usize = earlier.map(|batch| batch.batch.records.len()).sum();
            lose_log(core, clock, error, &why, applied + record as usize);
            handle_applied(&mut core.link, &mut core.cache, &mut core.waiting, number);
        }
    }
}

/// Handles the refusal of a batch.
pub(in crate::client) fn handle_refused(
    core: &mut Core,
    clock: &Clock,
    number: u64,
    failure: &Failure,
) {
    core.link.output.counters.batches_refused += 1;
    match failure {
        // An earlier batch has failed, and its response may be in flight: the Welcome states which
        // batches are applied, and which one has failed.
        Failure::BatchOutOfOrder { .. } => greet_again(&mut core.link, &mut core.waiting, clock),
        failure => {
            let error = match failure {
                Failure::Errno(error) => *error,
                _ => Errno::IO,
            };
            lose_log(core, clock, error, &format!("batch {number}: {failure}"), 0);
        }
    }
}

/// Ends operations with an error, unless they have ended before.
pub(in crate::client) fn fail_operations(
    link: &mut Link,
    waiting: &mut Waiting,
    tokens: &[OpToken],
    error: Errno,
) {
    for token in tokens {
        if waiting.remove(*token).is_some() {
            link.output.reply(*token, Err(error));
        }
    }
}
