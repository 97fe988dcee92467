//! Prefetching: requests the bytes that [`ReadAhead`](super::read_ahead::ReadAhead) selects.

use std::time::Duration;

use crate::wire::{Ino, NodeRange, SessionRequest};

use super::cache::Cache;
use super::read_ahead::MOST_CALL;
use crate::client::interface::effect::Clock;
use crate::client::link::Link;
use crate::client::link::calls::Purpose;

/// Length of one call to a remote server. Rationale: a receiver grants 400,000 bytes a round trip
/// (GRANT-5), and up to 60,000 of each message need no grant. At 2.3 ms, calls of 512 KiB thus
/// transfer at most 200 MB/s, and calls of this length 330.
const MOST_FAR_CALL: u64 = 128 << 10;
/// Round-trip time from which a server counts as remote.
const FAR: Duration = Duration::from_micros(500);

/// Records a read of a long file. `is_missing`: it waits for bytes that no outstanding call
/// returns.
pub(in crate::client) fn note_read(
    cache: &mut Cache,
    file: Ino,
    offset: u64,
    end: u64,
    is_missing: bool,
) {
    let dropped = cache.read_ahead.note(file, offset, end);
    if let Some(node) = dropped.and_then(|file| cache.get_mut(file)) {
        node.contents.forget_read();
    }
    if is_missing {
        cache.read_ahead.restart(file);
    }
}

/// Requests the bytes that the reader of a file is expected to need next.
pub(in crate::client) fn prefetch(link: &mut Link, cache: &mut Cache, clock: &Clock, file: Ino) {
    let applied = link.log.applied();
    let Some(node) = cache.get(file) else { return };
    if node.recall.is_some() || node.barrier > applied {
        return;
    }
    let size = node.attributes.size;
    let (mut at, until) = cache.read_ahead.take_due(file, size);
    let Some(node) = cache.get(file) else { return };
    let is_far = link.session.round_trip.is_some_and(|time| time >= FAR);
    let most = if is_far { MOST_FAR_CALL } else { MOST_CALL };
    while at < until {
        let part = most.min(until - at);
        if let Err((from, length)) = node.contents.read(at, part)
            && let Some(length) = link.calls.unread(file, from, length)
        {
            link.output.counters.read_ahead += 1;
            let range = NodeRange { file: node.handle, offset: from, length };
            let request = SessionRequest::Read { ranges: vec![range] };
            link.call(clock, Purpose::Read(file, from, length), request);
        }
        at += part;
    }
}
