//! What does a server do with requests?

use apus::{Closed, Endpoint, Request};

use crate::clock;
use crate::contender::{Plan, Replies, Side};
use crate::error::Error;
use crate::meter::Meter;

/// Sends each request back, until the endpoint is shut down.
pub(crate) fn echo(endpoint: &Endpoint) -> Result<(), Error> {
    serve(endpoint, |mut request| {
        let payload = request.take_payload();
        // A client that has gone is not waited for.
        let _ = request.reply(payload);
    })
}

/// Answers each request with a short one and counts, until the endpoint is shut down.
pub(super) fn absorb(endpoint: &Endpoint, plan: &Plan) -> Result<Side, Error> {
    let mut meter = None;
    serve(endpoint, |request| {
        let meter = meter.get_or_insert_with(|| Meter::start(plan));
        meter.count(clock::now(), 1, request.payload().len() as u64);
        let _ = request.reply(&Replies::SHORT);
    })?;
    Ok(meter.map_or_else(Side::default, Meter::finish))
}

/// Gives each request to `answer`, until the endpoint is shut down.
fn serve(endpoint: &Endpoint, mut answer: impl FnMut(Request)) -> Result<(), Error> {
    loop {
        match endpoint.recv_request() {
            Ok(request) => answer(request),
            Err(Closed::ShutDown) => return Ok(()),
            Err(error) => return Err(Error::endpoint("receive requests".to_owned(), error)),
        }
    }
}
