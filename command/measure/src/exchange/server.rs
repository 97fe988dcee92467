//! Servers of apus endpoints: echo and short replies.

use apus::{Closed, Endpoint, Request};

use crate::clock;
use crate::error::Error;
use crate::meter::Meter;
use crate::plan::{Plan, Replies, Side};

/// Echoes each request until the endpoint is shut down.
pub fn echo(endpoint: &Endpoint) -> Result<(), Error> {
    echo_after(endpoint, || ())
}

/// Echoes each request after some work, until the endpoint is shut down.
pub fn echo_after(endpoint: &Endpoint, mut work: impl FnMut()) -> Result<(), Error> {
    serve(endpoint, |mut request| {
        work();
        let payload = request.take_payload();
        // A client that has disconnected needs no reply.
        let _ = request.reply(payload);
    })
}

/// Echoes many small requests: receives all available requests, and sends their replies together.
pub fn echo_together(endpoint: &Endpoint) -> Result<(), Error> {
    let _together = endpoint.cork();
    let mut requests = Vec::with_capacity(AT_ONCE);
    let mut replies = Vec::with_capacity(AT_ONCE);
    loop {
        if let Err(error) = endpoint.recv_requests(&mut requests, AT_ONCE) {
            return ended(error);
        }
        replies.extend(requests.drain(..).map(|mut request| {
            let payload = request.take_payload();
            (request, payload.into())
        }));
        // A client that has disconnected needs no reply.
        let _ = endpoint.reply_many(&mut replies);
    }
}

/// Requests received in one call. Chosen by us: twice the number of replies that fit into a
/// datagram.
const AT_ONCE: usize = 64;

/// Answers each request with a short reply and counts, until the endpoint is shut down.
pub fn absorb(endpoint: &Endpoint, plan: &Plan) -> Result<Side, Error> {
    let mut meter = None;
    serve(endpoint, |request| {
        let meter = meter.get_or_insert_with(|| Meter::start(plan));
        meter.count(clock::now(), 1, request.payload().len() as u64);
        let _ = request.reply(&Replies::SHORT);
    })?;
    Ok(meter.map_or_else(Side::default, Meter::finish))
}

/// Passes each request to `answer` until the endpoint is shut down.
fn serve(endpoint: &Endpoint, mut answer: impl FnMut(Request)) -> Result<(), Error> {
    loop {
        match endpoint.recv_request() {
            Ok(request) => answer(request),
            Err(error) => return ended(error),
        }
    }
}

/// Converts the end of reception: a shutdown is not an error.
fn ended(why: Closed) -> Result<(), Error> {
    match why {
        Closed::ShutDown => Ok(()),
        error => Err(Error::endpoint("receive requests".to_owned(), error)),
    }
}
