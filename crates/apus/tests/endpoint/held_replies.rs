//! Replies that wait, under overload, for the next look at the network.

use crate::overload::UNDER_WAY;
use crate::{Endpoint, ShutDown, roomy_pair};
use apus::{EndpointBuilder, PollMode};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Serves requests under pressure until a reply waits for the next look at the network; what its thread does `then`, the
/// client must get that reply. Its requests are numbered.
///
/// Replies wait while requests do, if each takes little time and the keeper has not got the turn. On a busy machine the
/// keeper gets it now and then, and gives it back when somebody waits for a request: so these come in bursts.
fn a_reply_that_waits_arrives_whatever_its_thread_does(then: impl FnOnce(&Endpoint) + Send) {
    let (client, server) = roomy_pair(
        &EndpointBuilder::default().poll_mode(PollMode::Block),
        400 * UNDER_WAY as usize,
    );
    let held = AtomicU64::new(u64::MAX);
    std::thread::scope(|scope| {
        let _ends = ShutDown(&[&client, &server]);
        scope.spawn(|| {
            while let Ok(mut request) = server.recv_request() {
                let payload = request.take_payload();
                let number = u64::from_le_bytes(payload[..].try_into().unwrap());
                let before = server.metrics().engine.held_replies;
                request.reply(payload).unwrap();
                if server.metrics().engine.held_replies > before {
                    held.store(number, Ordering::Relaxed);
                    then(&server);
                    return;
                }
            }
        });
        let (mut sent, mut ended, mut answered) = (0_u64, 0, HashSet::new());
        let has_come = |answered: &HashSet<u64>| answered.contains(&held.load(Ordering::Relaxed));
        while !has_come(&answered) {
            for _ in 0..UNDER_WAY {
                client.send(server.local_addr(), sent.to_le_bytes().to_vec(), sent).unwrap();
                sent += 1;
            }
            while ended < sent && !has_come(&answered) {
                if let Some(end) = client.recv_completion_timeout(Duration::from_millis(1)).unwrap()
                {
                    ended += 1;
                    let held = held.load(Ordering::Relaxed);
                    assert!(end.cookie != held || end.result.is_ok(), "it was replied to: {end:?}");
                    answered.extend(end.result.is_ok().then_some(end.cookie));
                }
            }
        }
    });
}

/// Invariant B3 of the engine's backlog: a reply waits for the next look at the network, and whoever made it may
/// never look again.
#[test]
fn a_reply_that_waits_for_others_leaves_although_its_thread_is_busy() {
    a_reply_that_waits_arrives_whatever_its_thread_does(|_| {});
}

/// The protocol forgets what has not left when the endpoint is shut down.
#[test]
fn a_reply_that_waits_for_others_leaves_before_its_endpoint_is_shut_down() {
    a_reply_that_waits_arrives_whatever_its_thread_does(|server| server.shutdown());
}
