//! TCP server: echoes on many connections.

use std::os::fd::AsFd;
use std::time::Duration;

use apus::PollMode;
use rustix::io::Errno;

use super::connection::Connection;
use super::readiness::{Readiness, Ready, Token};
use crate::contenders::baseline::stream::buffer_pool::BufferPool;
use crate::contenders::transport::work::Work;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Stop;

/// Token of the listener; connections have the following tokens.
const LISTENER: Token = 0;

/// Echoes each message on the connection it arrived on, after some work. The connections may be of
/// any kind that carries bytes.
pub fn serve(listener: &impl AsFd, poll: PollMode, work: Work, stop: &Stop) -> Result<(), Error> {
    rustix::io::ioctl_fionbio(listener, true)
        .doing(|| "make the listener non-blocking".to_owned())?;
    let mut readiness = Readiness::new().doing(|| "create an epoll descriptor".to_owned())?;
    readiness.watch(listener, LISTENER).doing(|| "watch the listener".to_owned())?;

    let mut connections: Vec<Option<Connection>> = Vec::new();
    let pool = BufferPool::default();
    let spin = poll.spin_for().map(clock::as_nanoseconds);
    let mut sleep_at = spin.map(|spin| clock::now() + spin);
    let mut ready: Vec<Ready> = Vec::new();
    while !stop.is_asked() {
        let sleep = sleep_at.is_some_and(|at| clock::now() >= at);
        let wait = if sleep { None } else { Some(Duration::ZERO) };
        ready.extend(readiness.poll(wait).doing(|| "wait for connections".to_owned())?);
        if !ready.is_empty() {
            sleep_at = spin.map(|spin| clock::now() + spin);
        }
        for ready in ready.drain(..) {
            let handled = match ready.token.checked_sub(LISTENER + 1) {
                None => accept(listener, &mut connections, &readiness, &pool),
                Some(index) => {
                    echo(&mut connections[index as usize], ready, &readiness, work, stop)
                }
            };
            handled.doing(|| "echo on a connection".to_owned())?;
        }
    }
    Ok(())
}

/// Accepts the next connection.
fn accept(
    listener: &impl AsFd,
    connections: &mut Vec<Option<Connection>>,
    readiness: &Readiness,
    pool: &BufferPool,
) -> Result<(), Errno> {
    let stream = match rustix::net::accept(listener) {
        Ok(stream) => stream,
        // The client disconnected before, or the listener has been shut down.
        Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INVAL) => return Ok(()),
        Err(error) => return Err(error),
    };
    let token = LISTENER + 1 + connections.len() as Token;
    connections.push(Some(Connection::new(stream, token, readiness, pool)?));
    Ok(())
}

/// Serves one ready connection. The slot is empty afterwards if the client has disconnected.
fn echo(
    slot: &mut Option<Connection>,
    ready: Ready,
    readiness: &Readiness,
    work: Work,
    stop: &Stop,
) -> Result<(), Errno> {
    let Some(connection) = slot else { return Ok(()) };
    if ready.receive && !connection.receive()? {
        *slot = None;
        return Ok(());
    }
    let worked = || {
        work.perform();
        !stop.is_asked()
    };
    if let Some((memory, length)) = connection.inbox.take_long() {
        if !worked() {
            return Ok(());
        }
        connection.outbox.push_whole(memory, length);
    }
    let sent = if work.is_none() {
        for frame in connection.inbox.take().iter() {
            connection.outbox.push_copy(frame);
        }
        connection.send(readiness)
    } else {
        connection.answer_each(readiness, worked)
    };
    connection.inbox.release();
    match sent {
        Err(Errno::CONNRESET | Errno::PIPE) => {
            *slot = None;
            Ok(())
        }
        sent => sent,
    }
}
