//! Time: greetings, renewals, repeated calls, the end of the term, and operations that wait too
//! long.

use std::time::Duration;

use crate::wire::{Errno, SessionRequest};

use crate::client::interface::effect::{Clock, Invalidation};
use crate::client::link::Link;
use crate::client::link::calls::Purpose;
use crate::client::link::session::{Lost, SessionState};
use crate::client::nodes::cache::Cache;
use crate::client::waiting::Waiting;

/// Performs the actions that are due at `clock.now`.
pub(in crate::client) fn run_due(
    link: &mut Link,
    cache: &Cache,
    waiting: &mut Waiting,
    clock: &Clock,
) {
    link.send_due(clock);
    match link.session.state {
        SessionState::Greeting if clock.now >= link.session.greet_at => link.greet(clock),
        SessionState::Live
            if clock.now >= link.session.renew_at()
                && link.calls.find(&Purpose::Renew).is_none() =>
        {
            link.call(clock, Purpose::Renew, SessionRequest::Renew);
        }
        _ => {}
    }
    if link.session.state == SessionState::Live
        && clock.now >= link.session.valid_until
        && !link.session.has_lapsed
    {
        link.session.has_lapsed = true;
        let pages = cache.iter().filter(|node| node.kernel_data);
        let pages = pages.map(|node| Invalidation::Node { node: node.ino(), data: true });
        let pages: Vec<_> = pages.collect();
        link.output.invalidate(pages);
    }
    if let (Lost::Error(limit), Some(since)) =
        (link.session.settings.lost, link.session.silent_since)
        && clock.now.saturating_sub(since) >= limit
    {
        fail_late(link, waiting, clock, limit);
    }
    link.log.seal_if_due(clock.now);
}

/// Fails operations that have waited for the server for `limit`.
fn fail_late(link: &mut Link, waiting: &mut Waiting, clock: &Clock, limit: Duration) {
    let Some(limit) = clock.now.checked_sub(limit) else { return };
    for token in waiting.submitted_until(limit) {
        waiting.remove(token);
        link.output.reply(token, Err(Errno::TIMEDOUT));
    }
}

/// Returns when [`run_due`] is needed next.
pub(in crate::client) fn next_deadline(link: &Link, waiting: &Waiting) -> Option<Duration> {
    let Link { session, calls, log, .. } = link;
    let due = match session.state {
        SessionState::Live if calls.find(&Purpose::Renew).is_none() => Some(session.renew_at()),
        SessionState::Live if !session.has_lapsed => Some(session.valid_until),
        SessionState::Greeting if calls.find(&Purpose::Greet).is_none() => Some(session.greet_at),
        _ => None,
    };
    let lost = match session.settings.lost {
        Lost::Error(limit) => session.silent_since.map(|since| since + limit),
        Lost::Wait => None,
    };
    let lost = lost.filter(|_| waiting.len() > 0);
    [due, lost, log.deadline(), calls.deadline()].into_iter().flatten().min()
}
