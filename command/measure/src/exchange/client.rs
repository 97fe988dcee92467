//! Clients of apus endpoints: one call at a time, or many.

use std::net::SocketAddr;

use apus::{Bytes, CallOptions, Endpoint, OutgoingCall};

use crate::clock;
use crate::error::Error;
use crate::meter::Meter;
use crate::ping_pong::ping_pong;
use crate::plan::{Plan, Replies, Side};
use crate::process::Stop;

/// Makes one call after another.
pub fn one_by_one(
    endpoint: &Endpoint,
    server: SocketAddr,
    plan: &Plan,
    stop: &Stop,
) -> Result<Side, Error> {
    let request = Bytes::from(vec![0; plan.size]);
    ping_pong(plan, |_| match call(endpoint, server, &request) {
        Ok(reply) => expect_length(&reply, plan.size, server).map(|()| true),
        Err(_) if stop.is_asked() => Ok(false),
        Err(error) => Err(error),
    })
}

/// Makes one call.
pub fn call(endpoint: &Endpoint, server: SocketAddr, request: &Bytes) -> Result<Bytes, Error> {
    let reply = endpoint.call(server, request.clone());
    reply.map_err(|error| Error::endpoint(format!("call {server}"), error))
}

/// Maintains the number of outstanding calls that the plan sets, for the planned time, and then
/// receives the outstanding replies.
///
/// Each completed call triggers the next call. The calls triggered by one batch of replies are made
/// together, as UDP with segmentation sends up to 64 packets at once. The cork releases them when
/// no further reply is available and the client waits, or earlier if they fill a datagram.
pub fn many(
    endpoint: &Endpoint,
    server: SocketAddr,
    plan: &Plan,
    replies: Replies,
    stop: &Stop,
) -> Result<Side, Error> {
    let request = Bytes::from(vec![0; plan.size]);
    let expected = replies.length(plan.size);
    let call = |cookie| OutgoingCall { to: server, request: request.clone().into(), cookie };
    let send = |calls: &mut Vec<_>| {
        let sent = endpoint.send_many(calls, CallOptions::new());
        sent.map_err(|error| Error::endpoint(format!("send to {server}"), error))
    };
    let mut meter = Meter::start(plan);
    // Send time of each call, by its cookie.
    let mut sent = vec![clock::now(); plan.outstanding];
    let mut under_way = sent.len();
    let mut ends = Vec::with_capacity(plan.outstanding);
    let _together = endpoint.cork();
    let mut exchange = || {
        let mut calls: Vec<_> = (0..sent.len() as u64).map(call).collect();
        send(&mut calls)?;
        while under_way > 0 {
            endpoint
                .recv_completions(&mut ends, plan.outstanding)
                .map_err(|error| Error::endpoint(format!("receive from {server}"), error))?;
            let now = clock::now();
            for ended in ends.drain(..) {
                let reply = ended
                    .result
                    .map_err(|error| Error::endpoint(format!("call {server}"), error))?;
                expect_length(&reply, expected, server)?;
                let sent = &mut sent[ended.cookie as usize];
                meter.latency(now - *sent);
                meter.count(now, 1, plan.size as u64);
                if meter.is_over(now) {
                    under_way -= 1;
                    continue;
                }
                *sent = now;
                calls.push(call(ended.cookie));
            }
            send(&mut calls)?;
        }
        Ok(())
    };
    match exchange() {
        Err(_) if stop.is_asked() => {}
        exchanged => exchanged?,
    }
    Ok(meter.finish())
}

/// Checks the length of a reply.
///
/// # Errors
///
/// It differs from `expected`.
pub fn expect_length(reply: &Bytes, expected: usize, server: SocketAddr) -> Result<(), Error> {
    if reply.len() == expected {
        return Ok(());
    }
    let length = reply.len();
    Err(Error::Peer(format!("{server} answered with {length} bytes in place of {expected}")))
}
