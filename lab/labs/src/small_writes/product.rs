//! Commands over apus.
//!
//! Two endpoints over UDP, for comparison with TCP. A message is passed as one slice or two and
//! arrives as one; a reader takes pieces of it without a copy.

use std::hint::black_box;
use std::net::SocketAddr;

use apus::{Bytes, Closed, Endpoint};

use super::message::{HEAD, LENGTH, Messages};
use super::tally::{Plan, Tally, tally};
use super::variant::{Reading, Variant, Writing};
use apus_measure::exchange::{Path, builder, open, path, serve_at};
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Stop};

/// Echoes commands until it is stopped.
pub(super) fn serve(variant: &Variant, plan: &Plan, control: &mut Control) -> Result<(), Error> {
    let endpoint = serve_at(builder(Path::Udp).poll_mode(plan.poll), control)?;
    loop {
        let mut request = match endpoint.recv_request() {
            Ok(request) => request,
            Err(Closed::ShutDown) => return Ok(()),
            Err(error) => return Err(Error::endpoint("receive requests".to_owned(), error)),
        };
        let command = request.take_payload();
        read(variant.reading, &command);
        // The client may have ended.
        let _ = request.reply(command);
    }
}

/// Makes calls one after another.
pub(super) fn drive(
    variant: &Variant,
    plan: &Plan,
    server: SocketAddr,
    stop: &Stop,
) -> Result<Tally, Error> {
    let endpoint = open(builder(Path::Udp).poll_mode(plan.poll).serve(false))?;
    let shut_down = endpoint.clone();
    stop.wake_with(move || shut_down.shutdown());
    let messages = Messages::draw(plan.seed);
    let tally = tally(plan, |number| {
        match call(&endpoint, server, variant.writing, messages.get(number)) {
            Ok(reply) => {
                read(variant.reading, &reply);
                messages.expect(number, &reply).map(|()| true)
            }
            Err(_) if stop.is_asked() => Ok(false),
            Err(error) => Err(Error::endpoint(format!("call {server}"), error)),
        }
    })?;
    path::check(Path::Udp, &endpoint, tally.exchanges)?;
    Ok(tally)
}

fn call(
    endpoint: &Endpoint,
    server: SocketAddr,
    writing: Writing,
    command: &Bytes,
) -> Result<Bytes, apus::CallError> {
    if writing == Writing::Gather {
        return endpoint.call(server, [command.slice(..HEAD), command.slice(HEAD..)]);
    }
    endpoint.call(server, command.clone())
}

/// Reads a message as a whole, or its head and then the rest.
fn read(reading: Reading, message: &Bytes) {
    // A reply of another length fails the later comparison.
    if reading == Reading::Pieces && message.len() == LENGTH {
        let mut rest = message.clone();
        black_box(rest.split_to(HEAD));
        black_box(rest);
    } else {
        black_box(message);
    }
}
