//! Replies that are held back, under overload, until the next poll of the network.

use crate::overload::{UNDER_WAY, impatient, pair};
use crate::{Endpoint, ShutDown};
use apus::{Bytes, ReplyError, Request};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Serves requests under pressure until a reply is held back for the next poll of the network.
/// Whatever the thread does `then`, the client must receive that reply. Requests are numbered.
///
/// Replies are held back while requests wait, if each takes little time and the background poller
/// does not have the poll role. On a busy machine it gets the role now and then, and releases it
/// when a thread waits for a request; therefore the requests are sent in bursts.
fn a_held_reply_arrives_whatever_its_thread_does(then: impl FnOnce(&Endpoint) + Send) {
    a_held_reply_arrives(|_, request, payload| request.reply(payload), then);
}

/// As above; `reply` sends the reply.
fn a_held_reply_arrives(
    reply: impl Fn(&Endpoint, Request, Bytes) -> Result<(), ReplyError> + Sync,
    then: impl FnOnce(&Endpoint) + Send,
) {
    let (client, server) = pair(&impatient());
    let held = AtomicU64::new(u64::MAX);
    std::thread::scope(|scope| {
        let _shutdown = ShutDown(&[&client, &server]);
        scope.spawn(|| {
            while let Ok(mut request) = server.recv_request() {
                let payload = request.take_payload();
                let number = u64::from_le_bytes(payload[..].try_into().unwrap());
                let before = server.metrics().engine.held_replies;
                reply(&server, request, payload).unwrap();
                if server.metrics().engine.held_replies > before {
                    held.store(number, Ordering::Relaxed);
                    then(&server);
                    return;
                }
            }
        });
        let (mut sent, mut ended, mut answered) = (0_u64, 0, HashSet::new());
        let has_arrived =
            |answered: &HashSet<u64>| answered.contains(&held.load(Ordering::Relaxed));
        while !has_arrived(&answered) {
            for _ in 0..UNDER_WAY {
                client.send(server.local_addr(), sent.to_le_bytes().to_vec(), sent).unwrap();
                sent += 1;
            }
            while ended < sent && !has_arrived(&answered) {
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

/// BACKLOG-3: a held reply waits for the next poll of the network, and its thread may never poll
/// again.
#[test]
fn a_held_reply_leaves_although_its_thread_is_busy() {
    a_held_reply_arrives_whatever_its_thread_does(|_| {});
}

#[test]
fn a_held_reply_of_a_batch_leaves_although_its_thread_is_busy() {
    let reply = |server: &Endpoint, request, payload: Bytes| {
        server.reply_many(&mut vec![(request, payload.into())])
    };
    a_held_reply_arrives(reply, |_| {});
}

/// The protocol discards unsent messages when the endpoint is shut down.
#[test]
fn a_held_reply_leaves_before_its_endpoint_is_shut_down() {
    a_held_reply_arrives_whatever_its_thread_does(|server| server.shutdown());
}
