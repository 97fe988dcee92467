//! Both ends of a connection in one task.
//!
//! As in `unix1_processes` of will-it-scale, a byte is written at one end and read at the other, by
//! the same task. No task waits or is woken, so the figure is the cost of the path itself, and of
//! resources shared by concurrent tasks: locks, counters, cache lines. Here each byte is answered
//! with another byte, because calls have responses; each direction counts as a message, so that
//! figures are comparable with `unix1`.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use apus::{Bytes, Endpoint};
use apus_local::{Pair, PairEvent, ReceiveQuota};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::entrant::Entrant;
use crate::contenders::apus::both_sides;
use crate::contenders::baseline::UnixKind;
use crate::contenders::baseline::stream::server::accept;
use crate::contenders::baseline::tcp::socket::{self, Settings};
use crate::contenders::baseline::unix;
use apus_measure::exchange::{Path, builder, open, path};
use apus_measure::meter::Meter;
use apus_measure::plan::{Plan, Side};
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Stop;

/// Exchanges between two readings of the clock. Chosen by us: the cost of a reading disappears
/// among them.
const EXCHANGES: u64 = 64;

/// Writes and reads for the plan's duration.
pub(super) fn run(entrant: Entrant, plan: &Plan, stop: &Stop) -> Result<Side, Error> {
    match entrant {
        Entrant::Stream => streams(unix::socket::pair(UnixKind::Stream)?, plan, stop),
        Entrant::Packets => streams(unix::socket::pair(UnixKind::Seqpacket)?, plan, stop),
        Entrant::Tcp => match connection(stop)? {
            Some(ends) => streams(ends, plan, stop),
            None => Ok(Side::default()),
        },
        Entrant::Pair | Entrant::Bare => pair(&both_sides()?, plan, stop),
        Entrant::Local => endpoints(Path::Local, plan, stop),
        Entrant::Udp => endpoints(Path::Udp, plan, stop),
    }
}

/// Returns both ends of a TCP connection; `None` if the side must stop.
fn connection(stop: &Stop) -> Result<Option<(OwnedFd, OwnedFd)>, Error> {
    let settings = Settings::LOOPBACK;
    let (listener, address) = socket::listen_at(Ipv4Addr::LOCALHOST.into(), &settings)?;
    let client = socket::open(address, &settings)?;
    Ok(accept(&listener, stop)?.map(|server| (client, server)))
}

/// Calls `exchange`, which sends a byte in each direction.
fn measure(
    plan: &Plan,
    stop: &Stop,
    mut exchange: impl FnMut() -> Result<(), Error>,
) -> Result<Side, Error> {
    let mut meter = Meter::start(plan);
    let mut now = clock::now();
    while !meter.is_over(now) && !stop.is_asked() {
        (0..EXCHANGES).try_for_each(|_| exchange())?;
        now = clock::now();
        meter.count(now, 2 * EXCHANGES, 2 * EXCHANGES);
    }
    Ok(meter.finish())
}

fn streams((one, other): (OwnedFd, OwnedFd), plan: &Plan, stop: &Stop) -> Result<Side, Error> {
    let mut byte = [7];
    let mut cross = |from: &OwnedFd, to: &OwnedFd| -> Result<(), Errno> {
        send(from, &byte, SendFlags::NOSIGNAL)?;
        recv(to, &mut byte, RecvFlags::empty())?;
        Ok(())
    };
    measure(plan, stop, || {
        cross(&one, &other)
            .and_then(|()| cross(&other, &one))
            .doing(|| "pass a byte through a socket".to_owned())
    })
}

fn pair((client, server): &(Pair, Pair), plan: &Plan, stop: &Stop) -> Result<Side, Error> {
    let broken = |error| Error::endpoint("pass a byte through a pair".to_owned(), error);
    let lost = || Error::Peer("a pair lost a byte".to_owned());
    let request = [Bytes::from_static(&[7])];
    let mut events = Vec::new();
    measure(plan, stop, || {
        client.send(0, &request).map_err(broken)?;
        server.receive(ReceiveQuota::default(), &mut events).map_err(|gone| broken(gone.into()))?;
        let Some(PairEvent::Request { id, payload }) = events.pop() else { return Err(lost()) };
        server.send(id, &[payload]).map_err(broken)?;
        client.receive(ReceiveQuota::default(), &mut events).map_err(|gone| broken(gone.into()))?;
        let Some(PairEvent::Response { .. }) = events.pop() else { return Err(lost()) };
        Ok(())
    })
}

fn endpoints(path: Path, plan: &Plan, stop: &Stop) -> Result<Side, Error> {
    let open = |serve| open(builder(path).poll_mode(plan.poll).serve(serve));
    let (server, client): (Endpoint, Endpoint) = (open(true)?, open(false)?);
    let to = server.local_addr();
    let shut = (server.clone(), client.clone());
    stop.wake_with(move || {
        shut.0.shutdown();
        shut.1.shutdown();
    });
    let request = Bytes::from_static(&[7]);
    let calling = || format!("call {to} from the same task");
    let exchange = || {
        let sent = client.send(to, request.clone(), 0);
        sent.map_err(|error| Error::endpoint(calling(), error))?;
        let received = server.recv_request();
        let mut received = received.map_err(|error| Error::endpoint(calling(), error))?;
        let payload = received.take_payload();
        let replied = received.reply(payload);
        replied.map_err(|error| Error::endpoint(calling(), error))?;
        let ended = client.recv_completion().map_err(|error| Error::endpoint(calling(), error))?;
        ended.result.map(drop).map_err(|error| Error::endpoint(calling(), error))
    };
    if path == Path::Local {
        path::connect_local(&client, exchange)?;
    }
    match measure(plan, stop, exchange) {
        Err(_) if stop.is_asked() => Ok(Side::default()),
        // Each call is one message in each direction.
        measured => measured.and_then(|side| {
            path::check(path, &client, side.messages / 2)?;
            Ok(side)
        }),
    }
}
